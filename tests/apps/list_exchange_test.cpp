// SPDX-License-Identifier: Apache-2.0
#include "apps/list_exchange/list_exchange.hpp"

#include <quarry/cluster/simulation.hpp>

#include <gtest/gtest.h>

namespace list_exchange_test {
namespace {

using namespace quarry;
using namespace quarry::apps;

TEST(ListExchange, ReturnsEveryListModifiedByAllOtherWorkers) {
  for (const unsigned workers : {1u, 2u, 3u, 4u, 7u, 16u})
    for (const bool isolated : {false, true}) {
      cluster::simulation s(
          {.workers = workers, .seed = workers, .isolated = isolated, .capacity = 1 << 30});
      unsigned correct = 0;
      std::uint64_t changed = 0;
      const auto result = s.run([&](cluster::worker& w) {
        const list_exchange_result r = run(w, list_exchange_options{.nodes = 300, .rounds = 2});
        correct += r.correct;
        changed += r.nodes_changed;
        EXPECT_EQ(r.stages, 2 * pairing_stages(workers));
      });
      EXPECT_EQ(correct, workers) << (isolated ? "isolated" : "shared");
      EXPECT_EQ(changed, 2u * 300 * workers * (workers - 1));
      EXPECT_EQ(result.left.regions, 0u);
      EXPECT_EQ(result.left.objects, 0u);
    }
}

/// The pairs of workers exchange lists and nothing else.
TEST(ListExchange, CallsSchedulersOnlyForListsOnceTheExchangeRuns) {
  const auto calls = [](unsigned workers, unsigned rounds) {
    cluster::simulation s({.workers = workers, .capacity = 1 << 30});
    return s.run([&](cluster::worker& w) {
              run(w, list_exchange_options{2, rounds});
            })
        .workers.calls;
  };
  const std::uint64_t of_round = calls(16, 2) - calls(16, 1);
  EXPECT_LE(calls(16, 1) - of_round, 16u * 12);
}

TEST(ListExchange, DetectsANodeWithWrongWords) {
  linked_node n{};
  fill(n, 1, 5);
  change(n, 0);
  EXPECT_TRUE(has_expected_words(n, 1, 5, 2, 1));
  n.words[30] ^= 1;
  EXPECT_FALSE(has_expected_words(n, 1, 5, 2, 1));
}

}  // namespace
}  // namespace list_exchange_test
