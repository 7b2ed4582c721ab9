// SPDX-License-Identifier: Apache-2.0
/// Compares the warp-aggregated bump allocator with the same code written by hand, on a GPU: 2^20
/// lanes, 64 bytes each. Times both kernels alternately with CUDA events, and prints the medians
/// and their ratio.

#include "../tests/static/zero_cost/warp_bump.cu"

#include <algorithm>
#include <cstdio>
#include <vector>

namespace {

constexpr unsigned lanes = 1u << 20;
constexpr unsigned threads = 256;
constexpr int repeats = 101;

struct stopwatch {
  cudaEvent_t begin, end;
  stopwatch() {
    quarry::simt::check_cuda(cudaEventCreate(&begin), "event");
    quarry::simt::check_cuda(cudaEventCreate(&end), "event");
  }
  template <class Work>
  float milliseconds(Work&& work) {
    cudaEventRecord(begin);
    work();
    cudaEventRecord(end);
    quarry::simt::check_cuda(cudaEventSynchronize(end), "kernel");
    float ms = 0;
    cudaEventElapsedTime(&ms, begin, end);
    return ms;
  }
};

float median(std::vector<float>& times) {
  std::nth_element(times.begin(), times.begin() + repeats / 2, times.end());
  return times[repeats / 2];
}

}  // namespace

int main() {
  using namespace quarry;
  heap<warp_bump, quarry::cuda> ours(bytes(std::uint64_t{16} << 30));
  simt::array<char, quarry::cuda> memory(std::size_t{16} << 30);
  simt::array<unsigned long long, quarry::cuda> next(16);
  simt::array<void*, quarry::cuda> out(lanes);
  const counter_pool theirs{memory.data(), memory.size(), next.data()};
  stopwatch watch;
  std::vector<float> library, hand;
  for (int i = -3; i < repeats; ++i) {
    ours.reset();
    next.fill_zero();
    const float a = watch.milliseconds(
        [&] { through_the_library<<<lanes / threads, threads>>>(ours.ref(), 64, out.data()); });
    const float b =
        watch.milliseconds([&] { by_hand<<<lanes / threads, threads>>>(theirs, 64, out.data()); });
    if (i < 0) continue;  // warm-up
    library.push_back(a);
    hand.push_back(b);
  }
  const float a = median(library);
  const float b = median(hand);
  std::printf("1M lanes x 64 B, median of %d: library %.4f ms, by hand %.4f ms, ratio %.3f\n",
              repeats, a, b, a / b);
}
