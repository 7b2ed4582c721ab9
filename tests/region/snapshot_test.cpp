// SPDX-License-Identifier: Apache-2.0
#include <quarry/region.hpp>

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <random>

namespace snapshot_test {
namespace {

using namespace quarry;

struct node {
  node* next;
  std::uint64_t number;
  char text[100];
};

tree_options one_thread() {
  tree_options options;
  options.range = 256 << 20;
  options.metadata = 16 << 20;
  options.threads = sharing::one_thread;
  return options;
}

/// A list whose nodes lie in the region and its children, with holes between them.
node* build(region_tree& tree, region_id id, unsigned count) {
  std::mt19937_64 random(1);
  std::vector<region_id> in{id, *tree.create_region(id), *tree.create_region(id)};
  node* first = nullptr;
  for (unsigned i = 0; i < count; ++i) {
    void* hole = *tree.allocate(in[i % 3], random() % 6000 + 1);
    auto* n = new (*tree.allocate(in[random() % 3], i % 50 == 0 ? 70'000 : sizeof(node))) node;
    n->next = first;
    n->number = i;
    std::snprintf(n->text, sizeof(n->text), "node %u", i);
    first = n;
    tree.deallocate(hole);
  }
  return first;
}

void expect_list(const node* n, unsigned count) {
  for (unsigned i = count; i > 0; --i, n = n->next) {
    ASSERT_NE(n, nullptr);
    ASSERT_EQ(n->number, i - 1);
    ASSERT_EQ(std::string(n->text), "node " + std::to_string(i - 1));
  }
  EXPECT_EQ(n, nullptr);
}

class Snapshot : public ::testing::Test {
 protected:
  Snapshot() : path_(::testing::TempDir() + "quarry_snapshot_" + std::to_string(::getpid())) {}
  ~Snapshot() override { std::filesystem::remove(path_); }

  std::string fault_of_loading(region_tree& tree) {
    try {
      load_snapshot(tree, path_);
    } catch (const snapshot_error& e) {
      EXPECT_EQ(tree.check_invariants(), "");
      EXPECT_EQ(tree.regions(), 1u);
      return e.what();
    }
    return "";
  }
  std::string contents() {
    std::ifstream in(path_, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  void set_contents(const std::string& all) {
    std::ofstream(path_, std::ios::binary | std::ios::trunc) << all;
  }
  /// A region of ten nodes goes into the file, whose contents are `good`, and out of the tree.
  void save_and_free(region_tree& tree, std::string& good) {
    const region_id id = *tree.create_region(root_region);
    build(tree, id, 10);
    save_snapshot(tree, id, path_);
    ASSERT_EQ(tree.destroy_region(id), region_status::ok);
    good = contents();
  }
  std::string path_;
};

TEST_F(Snapshot, ComesBackWithItsPointersAfterTheRegionWasFreed) {
  region_tree tree(one_thread());
  const region_id id = *tree.create_region(root_region);
  node* first = build(tree, id, 3000);
  const packed_region before = pack(tree, id).value();
  save_snapshot(tree, id, path_, first);
  ASSERT_EQ(tree.check_invariants(), "");
  expect_list(first, 3000);
  ASSERT_EQ(tree.destroy_region(id), region_status::ok);
  for (const packed_range& r : before.ranges) std::memset(r.address, 0xdd, r.size);
  const loaded_snapshot loaded = load_snapshot(tree, path_);
  ASSERT_EQ(loaded.root, first);
  expect_list(first, 3000);
  EXPECT_EQ(tree.regions(), 4u);
  EXPECT_EQ(pack(tree, loaded.id)->ranges, before.ranges);
  EXPECT_EQ(tree.check_invariants(), "");
  for (node* n = first; n != nullptr;) {
    node* next = n->next;
    ASSERT_EQ(tree.deallocate(n), region_status::ok);
    n = next;
  }
  EXPECT_EQ(pack(tree, loaded.id)->live_bytes, 0u);
  EXPECT_EQ(tree.check_invariants(), "");
}

TEST_F(Snapshot, ComesBackInAnotherProcess) {
  const pid_t child = ::fork();
  if (child == 0) {
    tree_options options = one_thread();
    options.where = snapshot_address;
    options.range = std::uint64_t{64} << 30;
    region_tree tree(options);
    const region_id id = *tree.create_region(root_region);
    save_snapshot(tree, id, path_ + ".first", nullptr);
    save_snapshot(tree, id, path_, build(tree, id, 0));
    save_snapshot(tree, id, path_, build(tree, id, 500));
    std::filesystem::remove(path_ + ".first");
    ::_exit(0);
  }
  int status = 1;
  ::waitpid(child, &status, 0);
  ASSERT_EQ(status, 0);
  region_tree tree(snapshot_options(path_));
  const loaded_snapshot loaded = load_snapshot(tree, path_);
  expect_list(static_cast<node*>(loaded.root), 500);
  EXPECT_EQ(tree.check_invariants(), "");
  EXPECT_THROW(region_tree second(snapshot_options(path_)), out_of_memory) << "the range is taken";
}

TEST_F(Snapshot, IsWholeIfSeveralProcessesSaveToOnePath) {
  std::vector<::pid_t> children;
  for (unsigned c = 0; c < 3; ++c) {
    children.push_back(::fork());
    if (children.back() != 0) continue;
    region_tree tree(one_thread());
    const region_id id = *tree.create_region(root_region);
    build(tree, id, 200 * (c + 1));
    for (int i = 0; i < 12; ++i) save_snapshot(tree, id, path_);
    ::_exit(0);
  }
  for (const ::pid_t child : children) {
    int status = 1;
    ::waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
    region_tree tree(snapshot_options(path_));
    EXPECT_NO_THROW(load_snapshot(tree, path_));
  }
  unsigned files = 0;
  const std::filesystem::path path(path_);
  for (const auto& entry : std::filesystem::directory_iterator(path.parent_path()))
    files += entry.path().filename().string().starts_with(path.filename().string()) ? 1 : 0;
  EXPECT_EQ(files, 1u) << "temporary files are left";
}

TEST_F(Snapshot, ReplacesOnlyRegularFiles) {
  region_tree tree(one_thread());
  const region_id id = *tree.create_region(root_region);
  const auto reason = [&](const std::string& path) -> std::string {
    try {
      save_snapshot(tree, id, path);
    } catch (const snapshot_error& failure) {
      return failure.what();
    }
    return "";
  };
  ASSERT_EQ(::mkfifo(path_.c_str(), 0600), 0);
  EXPECT_NE(reason(path_).find("not a regular file"), std::string::npos);
  EXPECT_TRUE(std::filesystem::is_fifo(path_));
  std::filesystem::remove(path_);
  EXPECT_NE(reason(::testing::TempDir()).find("not a regular file"), std::string::npos);
  EXPECT_NE(reason(path_ + "/missing/file").find("cannot be written"), std::string::npos);

  const std::string link = path_ + ".link";
  std::ofstream(path_) << "old";
  std::filesystem::permissions(path_, std::filesystem::perms{0640});
  std::filesystem::create_symlink(path_, link);
  EXPECT_EQ(reason(link), "");
  EXPECT_TRUE(std::filesystem::is_symlink(link));
  EXPECT_EQ(std::filesystem::status(path_).permissions(), std::filesystem::perms{0640});
  EXPECT_GT(std::filesystem::file_size(path_), 100u);
  std::filesystem::remove(link);
}

TEST_F(Snapshot, IsRejectedIfItsAddressesAreInUse) {
  region_tree tree(one_thread());
  const region_id id = *tree.create_region(root_region);
  build(tree, id, 100);
  save_snapshot(tree, id, path_);
  const std::uint64_t regions = tree.regions();
  EXPECT_THROW(load_snapshot(tree, path_), snapshot_error);
  EXPECT_EQ(tree.regions(), regions);
  EXPECT_EQ(tree.check_invariants(), "");
  region_tree elsewhere(one_thread());
  EXPECT_NE(fault_of_loading(elsewhere).find("outside"), std::string::npos);
}

TEST_F(Snapshot, IsRejectedIfAnyByteIsChanged) {
  region_tree tree(one_thread());
  std::string good;
  ASSERT_NO_FATAL_FAILURE(save_and_free(tree, good));
  std::mt19937_64 random(5);
  for (int i = 0; i < 300; ++i) {
    const std::size_t at = i < 120 ? static_cast<std::size_t>(i) : random() % good.size();
    std::string bad = good;
    bad[at] = static_cast<char>(bad[at] ^ (1 << random() % 8));
    set_contents(bad);
    ASSERT_NE(fault_of_loading(tree), "") << "byte " << at;
  }
  set_contents(good);
  EXPECT_NO_THROW(load_snapshot(tree, path_));
}

TEST_F(Snapshot, IsRejectedIfTruncatedOrTooLong) {
  region_tree tree(one_thread());
  std::string good;
  ASSERT_NO_FATAL_FAILURE(save_and_free(tree, good));
  for (const std::size_t length :
       {std::size_t{0}, std::size_t{8}, std::size_t{100}, good.size() / 2, good.size() - 1}) {
    set_contents(good.substr(0, length));
    EXPECT_NE(fault_of_loading(tree).find("shorter than its header says"), std::string::npos)
        << length;
  }
  set_contents(good + "x");
  EXPECT_NE(fault_of_loading(tree).find("longer"), std::string::npos);
  std::filesystem::remove(path_);
  EXPECT_NE(fault_of_loading(tree).find("opened"), std::string::npos);
}

TEST_F(Snapshot, IsRejectedIfInconsistentUnderAValidChecksum) {
  region_tree tree(one_thread());
  std::string good;
  ASSERT_NO_FATAL_FAILURE(save_and_free(tree, good));
  snapshot_header header;
  std::memcpy(&header, good.data(), sizeof(header));
  // Changes in the lists, with sums made right again.
  std::mt19937_64 random(9);
  const std::size_t lists = header.regions * sizeof(snapshot_region) +
                            header.ranges * sizeof(snapshot_range) +
                            header.slabs * sizeof(snapshot_slab);
  unsigned rejected = 0;
  for (int i = 0; i < 300; ++i) {
    std::string bad = good;
    const std::size_t at = sizeof(header) + random() % lists;
    bad[at] = static_cast<char>(random());
    snapshot_sum sum;
    sum.add(bad.data() + sizeof(header), bad.size() - sizeof(header));
    snapshot_header h = header;
    h.body_sum = sum.value();
    h.header_sum = snapshot_sum::of(h);
    std::memcpy(bad.data(), &h, sizeof(h));
    set_contents(bad);
    try {
      const loaded_snapshot loaded = load_snapshot(tree, path_);
      ASSERT_EQ(tree.check_invariants(), "");
      ASSERT_EQ(tree.destroy_region(loaded.id), region_status::ok);
    } catch (const snapshot_error&) {
      ++rejected;
    }
    ASSERT_EQ(tree.check_invariants(), "");
    ASSERT_EQ(tree.regions(), 1u);
  }
  EXPECT_GT(rejected, 50u);
}

/// The numbers of ranges of two regions, whose sum is right modulo 2^64.
TEST_F(Snapshot, IsRejectedIfItsNumbersOfRangesOverflow) {
  region_tree tree(one_thread());
  std::string bad;
  ASSERT_NO_FATAL_FAILURE(save_and_free(tree, bad));
  snapshot_header header;
  std::memcpy(&header, bad.data(), sizeof(header));
  ASSERT_GE(header.regions, 2u);
  for (std::size_t i = 0; i < 2; ++i) {
    snapshot_region region;
    char* const at = bad.data() + sizeof(header) + i * sizeof(region);
    std::memcpy(&region, at, sizeof(region));
    region.ranges += std::uint64_t{1} << 63;
    std::memcpy(at, &region, sizeof(region));
  }
  snapshot_sum sum;
  sum.add(bad.data() + sizeof(header), bad.size() - sizeof(header));
  header.body_sum = sum.value();
  header.header_sum = snapshot_sum::of(header);
  std::memcpy(bad.data(), &header, sizeof(header));
  set_contents(bad);
  EXPECT_NE(fault_of_loading(tree).find("inconsistent"), std::string::npos);
}

}  // namespace
}  // namespace snapshot_test
