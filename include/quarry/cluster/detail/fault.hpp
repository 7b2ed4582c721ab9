// SPDX-License-Identifier: Apache-2.0
#pragma once
/// fault: deliberate defects of schedulers and workers. Tests select one fault and show that the
/// oracle over the simulated network, or check_invariants(), reports it
/// (tests/cluster/fault_test.cpp).
///
/// Each fault is one `if` at the statement that it breaks. Programs never set a fault.

#include <cstdint>

namespace quarry::cluster::detail {

enum class fault : std::uint8_t {
  none,

  // Faults of a scheduler.
  reuse_slot_before_revocation,  // frees a leased slot without an acknowledgement of its holder
  omit_lease_recall,             // destroys a region without recalling the leases inside
  keep_child_of_dead_parent,     // keeps a remote child that was created while its parent died
  keep_returned_pages,           // returns pages to the parent and keeps them in its own page table
  fail_small_with_large_request,  // fails all requests that wait for pages, not only the largest
  serve_dying_region,             // serves requests for a region that is being destroyed
  omit_lease_record,              // leases slots without recording their holder
  free_released_objects,          // frees objects that a worker takes off its lease
  omit_remote_packing,            // packs a region without its children at other schedulers

  // Faults of a worker.
  ignore_lease_recall,   // acknowledges a recall and keeps allocating from the lease
  keep_stale_slab_list,  // keeps a slab in the magazine of its former size class
  defer_frees,           // sends a region while its own batched frees are still unsent
};

}  // namespace quarry::cluster::detail
