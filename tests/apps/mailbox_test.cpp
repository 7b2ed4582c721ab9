// SPDX-License-Identifier: Apache-2.0
#include "apps/common/mailbox.hpp"
#include "apps/common/phases.hpp"

#include <quarry/cluster/simulation.hpp>

#include <gtest/gtest.h>

#include <numeric>

namespace mailbox_test {
namespace {

using namespace quarry;
using namespace quarry::apps;

void in_cluster(unsigned workers, bool isolated,
                const std::function<void(cluster::worker&)>& main) {
  cluster::simulation s({.workers = workers, .isolated = isolated, .capacity = 1 << 30});
  const auto result = s.run(main);
  EXPECT_EQ(result.left.regions, 0u);
  EXPECT_EQ(result.left.objects, 0u);
}

TEST(Mailbox, DeliversMessagesOfAnyLength) {
  for (const bool isolated : {false, true})
    in_cluster(2, isolated, [](cluster::worker& w) {
      mailbox mail(w);
      for (const std::size_t length : {0u, 1u, 100u, 100'000u}) {
        std::vector<int> mine(length, static_cast<int>(w.number()));
        const std::vector<int> theirs = mail.swap(1 - w.number(), std::span<const int>(mine));
        EXPECT_EQ(theirs, std::vector<int>(length, static_cast<int>(1 - w.number())));
      }
      mail.close();
    });
}

/// The sender writes the next message while the receiver may still read the previous one.
TEST(Mailbox, KeepsAMessageUntilThePeerHasReadIt) {
  in_cluster(2, false, [](cluster::worker& w) {
    mailbox mail(w);
    for (int i = 0; i < 50; ++i)
      if (w.number() == 0)
        mail.send(1, std::span<const int>(&i, 1));
      else
        EXPECT_EQ(mail.receive<int>(0), std::vector{i});
    mail.close();
  });
}

TEST(Mailbox, ReducesAndGathersOverGroups) {
  in_cluster(8, true, [](cluster::worker& w) {
    mailbox mail(w);
    const std::uint64_t me = w.number();
    EXPECT_EQ(mail.sum(8, std::vector{me, std::uint64_t{1}}), (std::vector<std::uint64_t>{28, 8}));
    EXPECT_EQ(mail.sum(2, std::vector{me}).at(0), me / 2 * 4 + 1);
    EXPECT_EQ(mail.sum(1, std::vector{me}).at(0), me);
    std::vector<std::uint64_t> all = mail.gather(std::vector{me});
    std::sort(all.begin(), all.end());
    std::vector<std::uint64_t> expected(8);
    std::iota(expected.begin(), expected.end(), 0);
    EXPECT_EQ(all, expected);
    mail.close();
  });
}

TEST(Mailbox, GathersTheValuesOfAnyNumberOfWorkers) {
  for (const unsigned workers : {1u, 2u, 3u, 6u, 8u, 13u})
    in_cluster(workers, true, [&](cluster::worker& w) {
      mailbox mail(w);
      std::vector<unsigned> expected(workers);
      std::iota(expected.begin(), expected.end(), 100);
      EXPECT_EQ(mail.all_gather(100 + w.number()), expected);
      mail.close();
    });
}

TEST(PhaseClock, AttributesAllElapsedTime) {
  in_cluster(4, false, [](cluster::worker& w) {
    const double start = w.now();
    phase_clock clock(w);
    time_shares messages, barriers;
    mailbox mail(w);
    mail.sum(4, std::vector{1.0});
    clock.charge(messages);
    w.barrier();
    clock.charge(barriers);
    EXPECT_GT(messages.workers, 0);
    EXPECT_GT(messages.schedulers, 0);
    EXPECT_EQ(barriers.workers, 0);
    EXPECT_NEAR(messages.total() + barriers.total(), w.now() - start, 1e-12);
    mail.close();
  });
}

}  // namespace
}  // namespace mailbox_test
