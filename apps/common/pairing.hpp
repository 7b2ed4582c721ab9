// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Round-robin pairing: every pair of n workers meets exactly once, in the minimum number of
/// stages. Each worker has at most one partner per stage.
///
/// The schedule is that of a round-robin tournament. For odd n, workers i and j meet in stage
/// (i + j) mod n, and worker i idles in stage 2i mod n. For even n, workers 0 ... n - 2 follow the
/// schedule for n - 1, and worker n - 1 meets the worker that would idle.

namespace quarry::apps {

inline constexpr unsigned no_partner = ~0u;

constexpr unsigned pairing_stages(unsigned n) { return n < 2 ? 0 : n % 2 == 0 ? n - 1 : n; }

/// Returns the partner of worker i of n in a stage, or no_partner if the worker idles.
constexpr unsigned partner(unsigned i, unsigned stage, unsigned n) {
  const unsigned odd = pairing_stages(n);
  const bool last = n % 2 == 0 && i == n - 1;
  if (last)
    return static_cast<unsigned>(static_cast<unsigned long long>(stage) * ((odd + 1) / 2) % odd);
  const unsigned j = (stage + odd - i % odd) % odd;
  return j != i ? j : n % 2 == 0 ? n - 1 : no_partner;
}

}  // namespace quarry::apps
