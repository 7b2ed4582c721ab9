// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Runs a check once per lane on the backend that this file is compiled for, and counts the lanes
/// for which it fails.

#include <quarry/simt/simt.hpp>

#include <cstdint>

namespace quarry::testing {

using this_host = default_backend;

template <class T>
using shared_array = simt::array<T, this_host>;

template <class Check>
struct counted_check {
  Check check;
  std::uint32_t* failures;
  QUARRY_DEVICE void operator()() const {
    if (!check(simt::global_thread()))
      simt::atomic_ref<std::uint32_t>(*failures).add(1, simt::relaxed);
  }
};

/// Returns: the number of lanes for which check(index of the thread in the grid) returns false.
template <class Check>
std::uint32_t lanes_that_fail(const grid& g, const Check& check) {
  shared_array<std::uint32_t> failures(1);
  launch<this_host>(g, counted_check<Check>{check, failures.data()});
  return failures.to_host()[0];
}

}  // namespace quarry::testing
