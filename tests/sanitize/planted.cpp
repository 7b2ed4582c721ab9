// SPDX-License-Identifier: Apache-2.0
/// Kernels with a deliberate defect, and the same kernels without it. A sanitizer must report the
/// former, although all lanes share one OS thread, and must accept the latter. Usage: planted NAME.

#include <quarry/heap.hpp>

#include <array>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <map>
#include <string>

namespace {

using namespace quarry;
using simt::atomic_ref;

constexpr grid one_thread = {.blocks = 1, .threads = 64, .workers = 1};

std::uint32_t flag;
std::uint32_t data;
std::array<std::uint32_t, 64> cells;

// Two lanes write one word without ordering.
void lane_race() {
  launch<cpu>(one_thread, [] { data += 1; });
}

void publish_with(std::memory_order store, std::memory_order load) {
  flag = data = 0;
  launch<cpu>(one_thread, [=] {
    if (simt::thread_id() == 0) {
      data = 7;
      atomic_ref<std::uint32_t>(flag).store(1, store);
    } else {
      while (atomic_ref<std::uint32_t>(flag).load(load) == 0) simt::spin();
      if (data != 7) std::puts("the data is not visible");
    }
  });
}
void relaxed_publish() { publish_with(simt::relaxed, simt::relaxed); }
void released_publish() { publish_with(simt::release, simt::acquire); }

// Lanes exchange values around a collective. A ballot does not order memory; a barrier does.
void exchange_through(void (*collective)()) {
  launch<cpu>(one_thread, [=] {
    cells[simt::thread_id()] = simt::thread_id();
    collective();
    if (cells[simt::thread_id() ^ 1] != (simt::thread_id() ^ 1)) std::puts("not yet written");
  });
}
void ballot_as_barrier() {
  exchange_through([] { (void)simt::ballot(simt::full_warp, true); });
}
void warp_barrier() {
  exchange_through([] { simt::sync_warp(simt::full_warp); });
}
void block_barrier() {
  exchange_through([] { simt::sync_block(); });
}

// A lane writes past the end of an array on its own stack.
void stack_overrun() {
  launch<cpu>(one_thread, [] {
    std::array<volatile char, 64> local{};
    volatile char* byte = local.data();
    if (simt::lane_id() == 3) byte += 64;
    *byte = 1;
    simt::sync_warp(simt::full_warp);
  });
}

void malloc_and_write(std::size_t beyond) {
  const heap<system_heap, cpu> h(1_MiB);
  launch<cpu>(one_thread, [ref = h.ref(), beyond] {
    auto* p = static_cast<volatile char*>(ref.malloc(48));
    p[47 + beyond] = 1;
    ref.free(const_cast<char*>(p));
  });
}
void heap_overrun() { malloc_and_write(1); }
void heap_in_bounds() { malloc_and_write(0); }

void use_after_free() {
  const heap<system_heap, cpu> h(1_MiB);
  launch<cpu>(one_thread, [ref = h.ref()] {
    auto* p = static_cast<volatile char*>(ref.malloc(48));
    ref.free(const_cast<char*>(p));
    p[0] = 1;
  });
}

const std::map<std::string, std::function<void()>> programs = {
    {"lane_race", lane_race},
    {"relaxed_publish", relaxed_publish},
    {"released_publish", released_publish},
    {"ballot_as_barrier", ballot_as_barrier},
    {"warp_barrier", warp_barrier},
    {"block_barrier", block_barrier},
    {"stack_overrun", stack_overrun},
    {"heap_overrun", heap_overrun},
    {"heap_in_bounds", heap_in_bounds},
    {"use_after_free", use_after_free},
};

}  // namespace

int main(int argc, char** argv) {
  const auto program = argc == 2 ? programs.find(argv[1]) : programs.end();
  if (program == programs.end()) {
    std::fputs("usage: planted NAME\n", stderr);
    return 2;
  }
  program->second();
  std::puts("the program has ended");
}
