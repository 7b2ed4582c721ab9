// SPDX-License-Identifier: Apache-2.0
/// One scheduler, message by message; and nothing that arrives stops it.

#include <quarry/cluster/scheduler.hpp>

#include <gtest/gtest.h>

#include <random>

namespace quarry::cluster {
namespace {

class Scheduler : public ::testing::Test {
 protected:
  static scheduler_options options() {
    scheduler_options o;
    o.room = 64u << 20;
    return o;
  }
  message ask(verb what, std::uint64_t a = 0, std::uint64_t b = 0, std::uint64_t c = 0,
              std::vector<std::uint64_t> words = {}) {
    message m;
    m.what = what;
    m.from = tree_.worker(0);
    m.to = 0;
    m.ticket = ++ticket_;
    m.a = a, m.b = b, m.c = c;
    m.words = std::move(words);
    std::vector<message> out;
    top_.receive(std::move(m), out);
    EXPECT_EQ(out.size(), 1u);
    EXPECT_EQ(out.at(0).ticket, ticket_);
    EXPECT_EQ(out.at(0).to, tree_.worker(0));
    return out.at(0);
  }
  shape tree_ = shape::for_workers(2);
  scheduler top_{tree_, 0, options()};
  std::uint64_t ticket_ = 0;
};

TEST_F(Scheduler, ServesRegionsAndObjects) {
  const rid r = ask(verb::create, root, 0).a;
  EXPECT_NE(r, root);
  const std::uint64_t p = ask(verb::alloc, r, 100, 64).a;
  EXPECT_EQ(ask(verb::size_of, p).a, 128u);
  EXPECT_EQ(ask(verb::free_objects, 0, 0, 0, {p}).a, 1u);
  const message again = ask(verb::free_objects, 0, 0, 0, {p});
  EXPECT_EQ(again.a, 0u);
  ASSERT_EQ(again.words.size(), 2u);
  EXPECT_EQ(static_cast<region_status>(again.words[1]), region_status::not_an_object);
  EXPECT_EQ(ask(verb::free_region, r).status, region_status::ok);
  EXPECT_EQ(ask(verb::free_region, r).status, region_status::stale_region);
  EXPECT_EQ(ask(verb::alloc, r, 100, 64).status, region_status::stale_region);
  EXPECT_EQ(top_.check_invariants(), "");
}

TEST_F(Scheduler, RefusesTheLargeRequestAndServesTheSmallOne) {
  EXPECT_EQ(ask(verb::alloc, root, 65u << 20, 64).status, region_status::too_large);
  EXPECT_EQ(ask(verb::alloc, root, 60u << 20, 64).status, region_status::ok);
  EXPECT_EQ(ask(verb::alloc, root, 32u << 20, 64).status, region_status::out_of_memory);
  EXPECT_EQ(ask(verb::alloc, root, 100, 64).status, region_status::ok);
  EXPECT_EQ(ask(verb::alloc_bulk, root, 1 << 10, 1u << 20).status, region_status::out_of_memory);
  EXPECT_EQ(ask(verb::alloc_bulk, root, 1 << 10, ~std::uint64_t{0}).status,
            region_status::out_of_memory);
  EXPECT_EQ(top_.check_invariants(), "");
}

TEST_F(Scheduler, GivesTheWholeRoomAgainAfterAFree) {
  for (int i = 0; i < 3; ++i) {
    const rid r = ask(verb::create, root).a;
    std::uint64_t blocks = 0;
    while (ask(verb::alloc, r, 1u << 20, 64).status == region_status::ok) ++blocks;
    EXPECT_EQ(blocks, 64u);
    EXPECT_EQ(ask(verb::free_region, r).status, region_status::ok);
  }
}

TEST_F(Scheduler, SurvivesAnything) {
  std::mt19937_64 random(11);
  for (int i = 0; i < 30'000; ++i) {
    message m;
    m.what = static_cast<verb>(random() % 32);
    m.from = static_cast<node>(random() % 3);
    m.to = 0;
    m.ticket = random() % 2 == 0 ? random() : random() % 2000;
    const auto some = [&]() -> std::uint64_t {
      switch (random() % 4) {
        case 0: return random();
        case 1: return random() % 8;
        case 2: return default_base + random() % (64u << 20) / 64 * 64;
        default: return std::uint64_t{1} << random() % 64;
      }
    };
    m.a = some(), m.b = some(), m.c = some();
    for (std::uint64_t n = random() % 6; n > 0; --n) m.words.push_back(some());
    // These two only neighbours send, and a worker never does.
    if (m.what == verb::give_pages || m.what == verb::goodbye) continue;
    std::vector<message> out;
    top_.receive(std::move(m), out);
  }
  const rid r = ask(verb::create, root, 0).a;
  EXPECT_NE(r, root);
  EXPECT_EQ(ask(verb::free_region, r).status, region_status::ok);
}

}  // namespace
}  // namespace quarry::cluster
