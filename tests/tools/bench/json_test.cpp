// SPDX-License-Identifier: Apache-2.0
/// Requests and results survive the pipe between parent and child: every member of every structure
/// is in the JSON, and comes back with its value.

#include "bench/json.hpp"

#include <gtest/gtest.h>

#include <cstddef>
#include <string>
#include <utility>

namespace quarry::tool::json_test {
namespace {

using nlohmann::json;

/// Converts to any type, in unevaluated operands only.
struct any_value {
  template <class T>
  constexpr operator T() const noexcept;  // NOLINT(google-explicit-constructor)
};
template <std::size_t>
using any_value_at = any_value;

template <class T, std::size_t... I>
constexpr bool is_initialisable_with(std::index_sequence<I...>) {
  return requires { T{any_value_at<I>{}...}; };
}
/// Returns the number of members of an aggregate: the largest number of initialisers that it
/// accepts.
template <class T, std::size_t N = 64>
constexpr std::size_t member_count() {
  if constexpr (is_initialisable_with<T>(std::make_index_sequence<N>{}))
    return N;
  else
    return member_count<T, N - 1>();
}

struct three_members {
  int a = 0;
  std::string b;
  bench_time c;
};
static_assert(member_count<three_members>() == 3);

/// Checks that the JSON of `value` has a key for each member, that `value` sets every member to
/// another value than the default, and that the value comes back unchanged.
template <class T>
void expect_round_trip(const T& value) {
  const json sent = value;
  const json defaults = T{};
  EXPECT_EQ(sent.size(), member_count<T>()) << "a member is missing from the macro: " << sent;
  for (const auto& [key, part] : sent.items())
    EXPECT_NE(part, defaults.at(key)) << key << " keeps its default: the test does not cover it";
  EXPECT_EQ(json(json::parse(sent.dump()).template get<T>()), sent);
}

const bench_time time{0.25, 0.125, 0.5};

bench_measurement measurement() {
  bench_measurement m;
  m.experiment = "alloc";
  m.x_label = "64 B";
  m.x = 64;
  m.variant = "cold";
  m.workload = bench_workload::fill_levels;
  m.sizes = {16, 1024};
  m.lanes = 100;
  m.lanes_per_warp = 1;
  m.threads_per_block = 1024;
  m.batch = 16;
  m.rounds = 5;
  m.loads = {{16, 32}, {64, 128}};
  m.turnover = 100;
  m.occupied = 25;
  m.heap_bytes = 12345;
  m.cold = true;
  return m;
}

TEST(BenchJson, CarriesEveryMemberOfTheSmallStructures) {
  expect_round_trip(size_range{16, 1024});
  expect_round_trip(bench_load{16, 64});
  expect_round_trip(time);
  expect_round_trip(bench_step{1, time, {3, 2, 4}, {{"live", 0.75}}});
}

TEST(BenchJson, CarriesEveryMemberOfAMeasurement) { expect_round_trip(measurement()); }

TEST(BenchJson, CarriesEveryMemberOfARequest) {
  bench_request r;
  r.backend = "cuda";
  r.allocator = "Quarry";
  r.heap_bytes = 1 << 20;
  r.repeats = 7;
  r.timeout = 60;
  r.time_limit = 0.5;
  r.queued = true;
  r.measurements = {measurement(), bench_measurement{}};
  expect_round_trip(r);
}

TEST(BenchJson, CarriesEveryMemberOfAResult) {
  bench_result r;
  r.outcome = bench_outcome::timed_out;
  r.note = "after 5 s";
  r.repeats = 5;
  r.time = time;
  r.free_time = {3, 2, 4};
  r.atomics = 1.0 / 32;
  r.free_atomics = 2;
  r.values = {1.5, 2.5};
  r.fields = {{"usable_fraction", 0.5}};
  r.curve = {{1, time, {}, {{"live", 0.75}}}, {2, {}, time, {}}};
  r.seconds = 1.25;
  r.failures = 1;
  r.corrupt = 2;
  r.misaligned = 3;
  expect_round_trip(r);
}

TEST(BenchJson, NamesEveryWorkloadAndOutcomeDifferently) {
  for (int i = 0; i <= static_cast<int>(bench_workload::fill_levels); ++i) {
    const auto w = static_cast<bench_workload>(i);
    EXPECT_EQ(json(w).get<bench_workload>(), w) << i;
  }
  for (int i = 0; i <= static_cast<int>(bench_outcome::not_run); ++i) {
    const auto o = static_cast<bench_outcome>(i);
    EXPECT_EQ(json(o).get<bench_outcome>(), o) << i;
  }
  EXPECT_EQ(outcome_text(bench_outcome::given_up), "given up");
}

TEST(BenchJson, ReadsOnlyWhatItWrites) {
  bench_result r;
  r.values = {1.5};
  const json good = r;
  EXPECT_TRUE(result_of(good.dump()));
  const auto with = [&](const char* key, const json& value) {
    json changed = good;
    changed[key] = value;
    return changed.dump();
  };
  EXPECT_FALSE(result_of("{ printed by a kernel"));
  EXPECT_FALSE(result_of("{}"));
  EXPECT_FALSE(result_of(with("outcome", "fine")));
  EXPECT_FALSE(result_of(with("repeats", 1e300)));
  EXPECT_FALSE(result_of(with("repeats", -1)));
  EXPECT_FALSE(result_of(with("values", {1.5, nullptr})));
  EXPECT_FALSE(result_of(std::string(100'000, '[') + std::string(100'000, ']')));
  EXPECT_THROW(requests_of("{}"), input_error);
  EXPECT_THROW(requests_of("[1]"), input_error);
  EXPECT_THROW(requests_of(std::string(100'000, '[')), input_error);
  const std::vector<bench_request> two(2);
  EXPECT_EQ(requests_of(json(two).dump()).size(), 2u);
  EXPECT_EQ(requests_of(json(two[0]).dump()).size(), 1u);
}

TEST(BenchJson, KeepsTimesThatWereNotMeasured) {
  EXPECT_FALSE(json(bench_time{}).get<bench_time>().measured());
}

}  // namespace
}  // namespace quarry::tool::json_test
