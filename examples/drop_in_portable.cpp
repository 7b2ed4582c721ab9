// SPDX-License-Identifier: Apache-2.0
/// drop_in.cu for both backends: compiled by g++ the kernels run on the CPU, by nvcc on the GPU.
///
/// Here a kernel is a function object whose operator is marked QUARRY_DEVICE, started by
/// quarry::launch. A using-declaration selects malloc and free of drop_in. A program with several
/// heaps can derive the kernel from a heap_ref instead, whose malloc and free the kernel then
/// calls.
#include <quarry/drop_in.hpp>

#include <cstdio>
#include <cstring>
#include <vector>

using namespace quarry::literals;

constexpr int lines = 1024;
constexpr int width = 80;

QUARRY_DEVICE std::size_t length_of(const char* line) {
  std::size_t length = 0;
  while (length < width && line[length] != '\0') ++length;
  return length;
}

/// Each lane reverses one line of the text.
struct reverse_lines {
  char* text;
  QUARRY_DEVICE void operator()() const {
    using quarry::drop_in::free, quarry::drop_in::malloc;  // without this line: the C library's
    char* line = text + quarry::simt::global_thread() * width;
    const std::size_t length = length_of(line);
    if (length == 0) return;
    char* copy = static_cast<char*>(malloc(length));
    if (copy == nullptr) return;
    for (std::size_t i = 0; i < length; ++i) copy[i] = line[i];
    for (std::size_t i = 0; i < length; ++i) line[i] = copy[length - 1 - i];
    free(copy);
  }
};

/// The same with a second heap.
struct reverse_again : quarry::heap_ref<> {
  char* text;
  QUARRY_DEVICE void operator()() const {
    char* line = text + quarry::simt::global_thread() * width;
    const std::size_t length = length_of(line);
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
  quarry::simt::array<char, quarry::default_backend> device_text(text.size());
  device_text.from_host(text);

  quarry::drop_in::init(16_MiB);
  quarry::launch({lines / 128, 128}, reverse_lines{device_text.data()});
  const auto reversed = device_text.to_host();

  const quarry::heap<> heap(16_MiB);
  quarry::launch({lines / 128, 128}, reverse_again{heap.ref(), device_text.data()});
  const auto again = device_text.to_host();

  quarry::drop_in::heap().check_empty();  // throws if an allocation failed or a block is live
  heap.check_empty();
  std::printf("\"%s\" became \"%s\"\n", &text[7 * width], &reversed[7 * width]);
  const bool correct = std::strcmp(&reversed[7 * width], "4201 fo 7 enil") == 0;
  return correct && again == text ? 0 : 1;
}
