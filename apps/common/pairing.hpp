// SPDX-License-Identifier: Apache-2.0
#pragma once
/// All pairs of n workers in as few stages as possible, each worker in one pair a stage.
///
/// As a tournament is drawn: for odd n, i and j meet in the stage (i + j) mod n, and i rests when
/// that is 2i. For even n the last worker meets, among the n - 1 others, whoever would rest.

namespace quarry::apps {

inline constexpr unsigned nobody = ~0u;

constexpr unsigned pairing_stages(unsigned n) { return n < 2 ? 0 : n % 2 == 0 ? n - 1 : n; }

/// Whom worker i of n meets in a stage.
constexpr unsigned partner(unsigned i, unsigned stage, unsigned n) {
  const unsigned odd = pairing_stages(n);
  const bool last = n % 2 == 0 && i == n - 1;
  if (last)
    return static_cast<unsigned>(static_cast<unsigned long long>(stage) * ((odd + 1) / 2) % odd);
  const unsigned j = (stage + odd - i % odd) % odd;
  return j != i ? j : n % 2 == 0 ? n - 1 : nobody;
}

}  // namespace quarry::apps
