// SPDX-License-Identifier: Apache-2.0
/// drop_in.cu for both machines: compiled by g++ the kernel runs on the CPU, by nvcc on the GPU.
///
/// A kernel is then a function object with QUARRY_DEVICE on its operator, launched by quarry::launch.
/// Here malloc and free stay as they are: the kernel inherits from heap_ref, and finds that one's. The two
/// lines that change are the first line of the kernel, and the launch.
#include <quarry/heap.hpp>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

using namespace quarry::literals;
using allocator = quarry::cfmmalloc;  // or any other: see `quarry list`

constexpr int lines = 1024;
constexpr int width = 80;

// Before: the system's malloc, whichever machine that is.
struct mirror_before {
  char* text;
  QUARRY_DEVICE void operator()() const {
    char* line = text + quarry::simt::global_thread() * width;
    std::size_t length = 0;
    while (length < width && line[length] != '\0') ++length;
    if (length == 0) return;
    char* copy = static_cast<char*>(malloc(length));
    if (copy == nullptr) return;
    for (std::size_t i = 0; i < length; ++i) copy[i] = line[i];
    for (std::size_t i = 0; i < length; ++i) line[i] = copy[length - 1 - i];
    free(copy);
  }
};

// After.
struct mirror_after : quarry::heap_ref<allocator> {
  char* text;
  QUARRY_DEVICE void operator()() const {
    char* line = text + quarry::simt::global_thread() * width;
    std::size_t length = 0;
    while (length < width && line[length] != '\0') ++length;
    if (length == 0) return;
    char* copy = static_cast<char*>(malloc(length));
    if (copy == nullptr) return;
    for (std::size_t i = 0; i < length; ++i) copy[i] = line[i];
    for (std::size_t i = 0; i < length; ++i) line[i] = copy[length - 1 - i];
    free(copy);
  }
};

int main() {
  std::vector<char> text(lines * width);
  for (int i = 0; i < lines; ++i)
    std::snprintf(&text[static_cast<std::size_t>(i) * width], width, "line %d of %d", i, lines);
  quarry::simt::array<char, quarry::default_machine> there(text.size());
  there.from_host(text);

  const quarry::heap<allocator> heap(16_MiB);
  quarry::launch({lines / 128, 128}, mirror_after{heap.ref(), there.data()});
  const auto mirrored = there.to_host();
  quarry::launch({lines / 128, 128}, mirror_before{there.data()});  // turns them round again
  const auto again = there.to_host();

  const auto live = heap.statistics().live_blocks.value_or(0);
  std::printf("\"%s\" became \"%s\"; %llu blocks left\n", &text[7 * width], &mirrored[7 * width],
              static_cast<unsigned long long>(live));
  const bool turned = std::strcmp(&mirrored[7 * width], "4201 fo 7 enil") == 0;
  return turned && again == text && live == 0 ? 0 : 1;
}
