// SPDX-License-Identifier: Apache-2.0
/// One scheduler, message by message, and its behaviour on random and malformed messages.

#include "cluster/scheduler/state.hpp"

#include <gtest/gtest.h>

#include <random>

namespace quarry::cluster::detail::scheduler_test {
namespace {

class Scheduler : public ::testing::Test {
 protected:
  static scheduler_options options() {
    scheduler_options o;
    o.capacity = 64u << 20;
    return o;
  }
  /// Sends a message of worker 0 to the scheduler and returns the reply.
  message exchange(message m) {
    m.from = tree_.worker(0);
    m.ticket = ++ticket_;
    std::vector<message> out;
    top_.receive(std::move(m), out);
    EXPECT_EQ(out.size(), 1u);
    EXPECT_EQ(out.at(0).ticket, ticket_);
    EXPECT_EQ(out.at(0).to, tree_.worker(0));
    return out.at(0);
  }
  template <class Request>
  region_result<typename Request::reply> request(const Request& r) {
    const message m = exchange(make_message(0, r));
    if (m.status != region_status::ok) return m.status;
    const auto body = body_of<typename Request::reply>(m);
    EXPECT_TRUE(body) << "the reply is malformed";
    return *body;
  }
  shape tree_ = shape::for_workers(2);
  scheduler top_{tree_, 0, options()};
  std::uint64_t ticket_ = 0;
};

TEST_F(Scheduler, ServesRegionsAndObjects) {
  const rid r = (*request(create_region_request{root, 0})).region;
  EXPECT_NE(r, root);
  const address p = (*request(allocate_request{r, 100, 64})).object;
  EXPECT_EQ((*request(size_request{p})).size, 128u);
  EXPECT_EQ((*request(free_request{{p}})).freed, 1u);
  const free_reply again = *request(free_request{{p}});
  EXPECT_EQ(again.freed, 0u);
  ASSERT_EQ(again.failures.size(), 1u);
  EXPECT_EQ(again.failures[0].object, p);
  EXPECT_EQ(again.failures[0].status, region_status::not_an_object);
  EXPECT_EQ(request(destroy_region_request{r}).status, region_status::ok);
  EXPECT_EQ(request(destroy_region_request{r}).status, region_status::stale_region);
  EXPECT_EQ(request(allocate_request{r, 100, 64}).status, region_status::stale_region);
  EXPECT_EQ(top_.check_invariants(), "");
}

TEST_F(Scheduler, FailsTheLargeRequestAndServesTheSmallOne) {
  const auto allocate = [&](std::uint64_t size) {
    return request(allocate_request{root, size, 64}).status;
  };
  EXPECT_EQ(allocate(65u << 20), region_status::too_large);
  EXPECT_EQ(allocate(60u << 20), region_status::ok);
  EXPECT_EQ(allocate(32u << 20), region_status::out_of_memory);
  EXPECT_EQ(allocate(100), region_status::ok);
  EXPECT_EQ(request(allocate_bulk_request{root, 1 << 10, 1u << 20}).status,
            region_status::out_of_memory);
  EXPECT_EQ(request(allocate_bulk_request{root, 1 << 10, ~std::uint64_t{0}}).status,
            region_status::out_of_memory);
  EXPECT_EQ(top_.check_invariants(), "");
}

TEST_F(Scheduler, ReusesTheWholeAddressSpaceAfterARegionIsDestroyed) {
  for (int i = 0; i < 3; ++i) {
    const rid r = (*request(create_region_request{root})).region;
    std::uint64_t blocks = 0;
    while (request(allocate_request{r, 1u << 20, 64})) ++blocks;
    EXPECT_EQ(blocks, 64u);
    EXPECT_EQ(request(destroy_region_request{r}).status, region_status::ok);
  }
}

TEST_F(Scheduler, AnswersAMalformedRequestWithAnError) {
  message too_short = make_message(0, allocate_request{root, 100, 64});
  too_short.body.pop_back();
  EXPECT_EQ(exchange(too_short).status, region_status::malformed_message);
  message too_long = make_message(0, allocate_request{root, 100, 64});
  too_long.body.push_back(0);
  EXPECT_EQ(exchange(too_long).status, region_status::malformed_message);
  message bad_length = make_message(0, free_request{{1, 2, 3}});
  bad_length.body[0] = ~std::uint64_t{0};
  EXPECT_EQ(exchange(bad_length).status, region_status::malformed_message);
  EXPECT_EQ(top_.statistics().malformed, 3u);
  EXPECT_EQ(request(allocate_request{root, 100, 64}).status, region_status::ok);
}

class RandomMessages : public Scheduler {
 protected:
  std::uint64_t random_word() {
    switch (random_() % 4) {
      case 0: return random_();
      case 1: return random_() % 8;
      case 2: return default_base + random_() % (64u << 20) / 64 * 64;
      default: return std::uint64_t{1} << random_() % 64;
    }
  }
  /// Random words, or a well-formed body with random fields.
  template <class Body>
  void fill(message& m) {
    m.kind = Body::kind;
    Body body;
    for_each_field(body, [&]<class Field>(Field& field) {
      if constexpr (std::is_same_v<Field, std::vector<address>> ||
                    std::is_same_v<Field, std::vector<rid>>)
        field.assign(random_() % 4, typename Field::value_type{random_word()});
      else if constexpr (std::is_same_v<Field, std::vector<slab_slots>>)
        field.assign(random_() % 3, {random_word(), random_word()});
      else if constexpr (std::is_same_v<Field, std::vector<page_run>>)
        field.assign(random_() % 3, {random_() % 100, random_() % 100});
      else if constexpr (std::is_integral_v<Field> || std::is_same_v<Field, rid>)
        field = static_cast<Field>(random_word());
    });
    encode(body, m.body);
  }
  template <class... Bodies>
  message random_message(std::tuple<Bodies...>*) {
    message m;
    m.from = static_cast<node_id>(random_() % 3);
    m.to = 0;
    m.ticket = random_() % 2 == 0 ? random_() : random_() % 2000;
    const std::size_t choice = random_() % sizeof...(Bodies);
    std::size_t i = 0;
    ((i++ == choice ? fill<Bodies>(m) : void()), ...);
    if (random_() % 4 == 0) m.body.assign(random_() % 6, random_word());
    return m;
  }
  std::mt19937_64 random_{11};
};

TEST_F(RandomMessages, LeaveTheSchedulerUsable) {
  for (int i = 0; i < 30'000; ++i) {
    message m = random_message(static_cast<all_bodies*>(nullptr));
    if (m.kind == message_kind::finish_request) continue;  // A worker finishes only once.
    std::vector<message> out;
    top_.receive(std::move(m), out);
  }
  EXPECT_GT(top_.statistics().malformed, 1000u);
  EXPECT_GT(top_.statistics().served, 100u);
  const rid r = (*request(create_region_request{root, 0})).region;
  EXPECT_NE(r, root);
  EXPECT_EQ(request(destroy_region_request{r}).status, region_status::ok);
}

}  // namespace
}  // namespace quarry::cluster::detail::scheduler_test
