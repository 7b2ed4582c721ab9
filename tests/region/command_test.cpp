// SPDX-License-Identifier: Apache-2.0
#include "region/command.hpp"

#include <quarry/region/detail/snapshot_file.hpp>

#include <gtest/gtest.h>
#include <unistd.h>
#include <nlohmann/json.hpp>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string>
#include <vector>

namespace command_test {
namespace {

using namespace quarry::tool;

/// Runs `quarry LINE` and returns what it printed.
std::string output_of(const std::string& line) {
  std::istringstream in("quarry " + line);
  std::vector<std::string> words(std::istream_iterator<std::string>(in), {});
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  ::testing::internal::CaptureStdout();
  try {
    EXPECT_EQ(run_command_line({"quarry", "", "", ""}, static_cast<int>(arguments.size()),
                               arguments.data(), add_region),
              exit_success);
  } catch (...) {
    ::testing::internal::GetCapturedStdout();
    throw;
  }
  return ::testing::internal::GetCapturedStdout();
}

class RegionCommand : public ::testing::Test {
 protected:
  RegionCommand() : file_(::testing::TempDir() + "quarry_region_" + std::to_string(::getpid())) {}
  ~RegionCommand() override { std::filesystem::remove(file_); }
  std::string file_;
};

TEST_F(RegionCommand, DrawsTheFiguresOfFragmentation) {
  const auto all = nlohmann::json::parse(
      output_of("region fragmentation --steps 20000 --samples 5 --json --plot " + file_));
  ASSERT_EQ(all.size(), 5u);
  for (const auto& figure : all) {
    EXPECT_EQ(figure["samples"].size(), 6u);
    EXPECT_GE(figure["samples"].back()["packed_per_live"].get<double>(), 1.0);
  }
  // Figure 4a: while objects come faster than they go, few slabs are partial.
  const auto& growing = all[0]["samples"].back();
  EXPECT_LT(growing["partial_slabs"].get<int>() * 4, growing["full_slabs"].get<int>());
  std::ifstream in(file_);
  const std::string svg((std::istreambuf_iterator<char>(in)), {});
  EXPECT_NE(svg.find("<polyline"), std::string::npos);
  EXPECT_NE(svg.find("</svg>"), std::string::npos);
  EXPECT_NE(output_of("region fragmentation --steps 1000 --workload phases").find("partial"),
            std::string::npos);
}

TEST_F(RegionCommand, ShowsThatGrowthFromTheNearestMemoryGivesFewerRanges) {
  const auto ranges_of = [](const std::string& workload) {
    const auto figures = nlohmann::json::parse(
        output_of("region fragmentation --samples 10 --json --workload " + workload));
    std::uint64_t sum = 0;
    for (const auto& sample : figures[0]["samples"]) sum += sample["ranges"].get<std::uint64_t>();
    return sum;
  };
  EXPECT_LT(ranges_of("regions"), ranges_of("lowest"));
}

#if !defined(__SANITIZE_THREAD__) && !defined(__SANITIZE_ADDRESS__)  // they replace malloc
TEST_F(RegionCommand, ComparesWithThePeers) {
  const auto out = nlohmann::json::parse(
      output_of(std::string("region peers --rounds 1 --operations 20000 --json --peer ") +
                QUARRY_REGION_PEER));
  EXPECT_GE(out["results"].size(), 9u);
  for (const auto& row : out["results"]) {
    EXPECT_GT(row["glibc"].get<double>(), 0);
    EXPECT_GT(row["regions"].get<double>(), 0);
  }
  EXPECT_LT(out["free_region_ns"].get<double>(), out["free_one_by_one_ns"].get<double>());
}

TEST_F(RegionCommand, ShowsTheResidentMemoryOfEachAllocator) {
  const std::string line =
      std::string("region stress --workload shift --steps 1000 --threads 2 --live 1 --peer ") +
      QUARRY_REGION_PEER + " --malloc " + QUARRY_MALLOC;
  const auto out = nlohmann::json::parse(output_of(line + " --json"));
  ASSERT_EQ(out.size(), 1u);
  EXPECT_GE(out[0]["results"].size(), 3u);
  for (const auto& row : out[0]["results"]) {
    EXPECT_GT(row["settled_bytes"].get<double>(), 1 << 20) << row["allocator"];
    EXPECT_GE(row["largest_bytes"], row["settled_bytes"]);
  }
  EXPECT_NE(output_of(line).find("interposer / best other"), std::string::npos);
}

TEST_F(RegionCommand, ReportsAMissingInterposer) {
  std::ofstream peer(file_);
  EXPECT_THROW(output_of("region stress --peer " + file_), input_error);
}
#endif

TEST_F(RegionCommand, ReportsAMissingPeerProgram) {
  EXPECT_THROW(output_of("region peers --peer /nowhere/at/all"), input_error);
}

TEST_F(RegionCommand, SavesLoadsAndDescribesASnapshot) {
  output_of("region snapshot save --nodes 2000 --regions 4 " + file_);
  const auto info = nlohmann::json::parse(output_of("region snapshot info --json " + file_));
  EXPECT_EQ(info["regions"], 4);
  const auto loaded = nlohmann::json::parse(output_of("region snapshot load --json " + file_));
  EXPECT_EQ(loaded["nodes"], 2000);
  const auto stats = nlohmann::json::parse(output_of("region stats --json " + file_));
  EXPECT_EQ(stats["regions"].size(), 4u);
  EXPECT_GE(stats["packed_bytes"].get<std::uint64_t>(), stats["live_bytes"].get<std::uint64_t>());
  EXPECT_NE(output_of("region stats " + file_).find("Packed:"), std::string::npos);
}

TEST_F(RegionCommand, SaysWhatIsWrongWithAFile) {
  std::ofstream(file_)
      << "not a snapshot, but long enough to hold a header; not a snapshot, but long "
         "enough to hold a header, and so on, and so on, and so on";
  EXPECT_THROW(output_of("region snapshot info " + file_), quarry::snapshot_error);
  EXPECT_THROW(output_of("region snapshot load " + file_ + ".not"), quarry::snapshot_error);
  EXPECT_THROW(output_of("region snapshot info"), input_error);
}

}  // namespace
}  // namespace command_test
