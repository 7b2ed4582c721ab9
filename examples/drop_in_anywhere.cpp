// SPDX-License-Identifier: Apache-2.0
/// drop_in.cu for both machines: compiled by g++ the kernel runs on the CPU, by nvcc on the GPU.
///
/// A kernel is then a function object with QUARRY_DEVICE on its operator, launched by quarry::launch. malloc and free
/// stay as they are; the line in front of them says whose they are. Programs with several heaps let the kernel inherit
/// from a heap_ref instead, and find that one's.
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

struct mirror_lines {
  char* text;
  QUARRY_DEVICE void operator()() const {
    using quarry::drop_in::malloc,
        quarry::drop_in::free;  // without this line they are the system's
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

struct mirror_back : quarry::heap_ref<> {  // a heap of its own
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
  quarry::simt::array<char, quarry::default_backend> there(text.size());
  there.from_host(text);

  quarry::drop_in::init(16_MiB);
  quarry::launch({lines / 128, 128}, mirror_lines{there.data()});
  const auto mirrored = there.to_host();

  const quarry::heap<> heap(16_MiB);
  quarry::launch({lines / 128, 128}, mirror_back{heap.ref(), there.data()});
  const auto again = there.to_host();

  quarry::drop_in::heap().check_empty();  // throws if a request was refused, or a block left behind
  heap.check_empty();
  std::printf("\"%s\" became \"%s\"\n", &text[7 * width], &mirrored[7 * width]);
  const bool turned = std::strcmp(&mirrored[7 * width], "4201 fo 7 enil") == 0;
  return turned && again == text ? 0 : 1;
}
