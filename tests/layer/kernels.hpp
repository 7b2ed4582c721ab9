// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Kernels for the tests of layers: each lane works on its element of an array that the host reads.

#include <quarry/heap.hpp>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace quarry::testing {

using here = default_backend;

struct request {
  std::uint64_t size;
  std::byte* block;
};

/// Every lane allocates the block of its request.
template <class Ref>
struct malloc_all {
  Ref heap;
  request* requests;
  QUARRY_DEVICE void operator()() const {
    request& r = requests[simt::global_thread()];
    r.block = static_cast<std::byte*>(heap.malloc(r.size));
  }
};
/// Lanes [first, last) free the block of their request.
template <class Ref>
struct free_some {
  Ref heap;
  request* requests;
  std::uint64_t first, last;
  QUARRY_DEVICE void operator()() const {
    const std::uint64_t me = simt::global_thread();
    if (me >= first && me < last) heap.free(requests[me].block);
  }
};
/// One lane drains the layers.
template <class Ref>
struct drain {
  Ref heap;
  QUARRY_DEVICE void operator()() const { heap.allocator().drain(); }
};

/// The lanes of one thread block allocate these sizes. Returns the results.
template <class Heap>
std::vector<request> malloc_by_block(const Heap& heap, const std::vector<std::uint64_t>& sizes) {
  simt::array<request, here> requests(sizes.size());
  std::vector<request> wanted;
  for (const std::uint64_t n : sizes) wanted.push_back({n, nullptr});
  requests.from_host(wanted);
  launch<here>({1, static_cast<std::uint32_t>(sizes.size())},
               malloc_all<typename Heap::ref_type>{heap.ref(), requests.data()});
  return requests.to_host();
}
/// Lanes [first, last) of one thread block free their blocks.
template <class Heap>
void free_by_block(const Heap& heap, const std::vector<request>& got, std::uint64_t first,
                   std::uint64_t last) {
  simt::array<request, here> requests(got.size());
  requests.from_host(got);
  launch<here>({1, static_cast<std::uint32_t>(got.size())},
               free_some<typename Heap::ref_type>{heap.ref(), requests.data(), first, last});
}

}  // namespace quarry::testing
