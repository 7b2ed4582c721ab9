// SPDX-License-Identifier: Apache-2.0
/// Vectors in kernels. Each lane collects the divisors of its number in its own vector; the lanes
/// of a warp collect the primes among their numbers in one shared vector.
#include <quarry/heap.hpp>

#include <cstdint>
#include <cstdio>

using namespace quarry::literals;
namespace simt = quarry::simt;
using memory_ref = quarry::heap_ref<>;
using numbers = quarry::vector<std::uint32_t, memory_ref>;

int main() {
  constexpr std::uint32_t blocks = 8, threads = 128, lanes = blocks * threads;
  const quarry::heap<> heap(16_MiB);
  const auto memory = heap.ref();
  simt::array<numbers*, quarry::default_backend> shared(lanes / 32);
  simt::array<std::uint32_t, quarry::default_backend> totals(3);  // divisors, primes, failures
  numbers** const primes = shared.data();
  std::uint32_t* const total = totals.data();

  quarry::launch({blocks, threads}, [=] QUARRY_DEVICE {
    const auto number = static_cast<std::uint32_t>(simt::global_thread()) + 1;
    numbers divisors(memory);  // the destructor frees the elements
    bool served = true;
    for (std::uint32_t d = 1; d <= number; ++d)
      if (number % d == 0) served = divisors.push_back(d) && served;
    simt::atomic_ref(total[0]).add(static_cast<std::uint32_t>(divisors.size()), simt::relaxed);

    constexpr simt::lane_mask warp = ~simt::lane_mask{0};
    numbers*& list = primes[(number - 1) / 32];
    if (simt::lane_id() == 0) list = memory.create<numbers>(memory);
    simt::sync_warp(warp);
    if (list != nullptr) served = list->append(warp, number, divisors.size() == 2) && served;
    if (!served || list == nullptr) simt::atomic_ref(total[2]).add(1, simt::relaxed);
  });
  // A second kernel checks the order of the primes, counts them, and destroys the vectors.
  quarry::launch({1, 1}, [=] QUARRY_DEVICE {
    std::uint32_t last = 0;
    for (std::uint32_t w = 0; w < lanes / 32; ++w) {
      for (const std::uint32_t p : *primes[w]) {
        if (p <= last) total[2] += 1;
        last = p;
        total[1] += 1;
      }
      memory.destroy(primes[w]);
    }
  });

  const auto got = totals.to_host();
  std::printf("1 to %u: %u divisors, %u primes\n", lanes, got[0], got[1]);
  heap.check_empty();  // throws if an allocation failed or a block is still live
  return got[0] == 7262 && got[1] == 172 && got[2] == 0 ? 0 : 1;
}
