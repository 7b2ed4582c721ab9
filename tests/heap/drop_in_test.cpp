// SPDX-License-Identifier: Apache-2.0
/// drop_in: malloc, free, calloc and realloc in kernels of two translation units and in host code.
#include "heap/drop_in_unit.hpp"

#include <quarry/drop_in.hpp>

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <string>

namespace drop_in_test {
namespace {

using namespace quarry;
using here = default_backend;

struct allocate_sixteen {
  void** out;
  QUARRY_DEVICE void operator()() const {
    using quarry::drop_in::calloc, quarry::drop_in::malloc;
    out[simt::global_thread()] = simt::global_thread() % 2 == 0 ? malloc(16) : calloc(4, 4);
  }
};
/// A kernel written for CUDA's functions: allocates, clears, grows and frees.
struct use_all {
  std::uint32_t* correct;
  QUARRY_DEVICE void operator()() const {
    using quarry::drop_in::calloc, quarry::drop_in::free, quarry::drop_in::malloc,
        quarry::drop_in::realloc;
    auto* p = static_cast<std::uint32_t*>(calloc(10, sizeof(std::uint32_t)));
    bool good = p != nullptr;
    for (std::uint32_t i = 0; good && i < 10; ++i) good = p[i] == 0;
    if (good) p[9] = 9;
    p = static_cast<std::uint32_t*>(realloc(p, 4000));
    good = good && p != nullptr && p[9] == 9;
    free(p);
    free(nullptr);
    good = good && malloc(0) == nullptr;
    if (good) simt::atomic_ref<std::uint32_t>(*correct).add(1, simt::relaxed);
  }
};

TEST(DropIn, ReturnsNullptrBeforeInit) {
  if (drop_in::detail::process_heap<here>::was_made())
    GTEST_SKIP() << "another test has called init";
  simt::array<void*, here> out(32);
  launch<here>({1, 32}, allocate_sixteen{out.data()});
  for (void* p : out.to_host()) EXPECT_EQ(p, nullptr);
  EXPECT_THROW(drop_in::heap(), error);
}

/// Returns the heap of the process, and makes it in the first call.
heap<drop_in::allocator_type, here>& initialised_heap() {
  if (drop_in::detail::process_heap<here>::find() == nullptr) drop_in::init(8_MiB);
  return drop_in::heap();
}

TEST(DropIn, ServesAllFourFunctions) {
  const auto& h = initialised_heap();
  simt::array<std::uint32_t, here> correct(1);
  launch<here>({4, 128}, use_all{correct.data()});
  EXPECT_EQ(correct.to_host()[0], 512u);
  EXPECT_EQ(h.statistics().live_blocks, 0u);
}

TEST(DropIn, ServesAllTranslationUnitsFromOneHeap) {
  const auto& h = initialised_heap();
  simt::array<void*, here> blocks(256);
  launch<here>({1, 256}, allocate_sixteen{blocks.data()});
  for (void* p : blocks.to_host()) EXPECT_TRUE(h.pool().contains(p));
  quarry::testing::replace_in_second_unit(blocks);
  for (void* p : blocks.to_host()) EXPECT_TRUE(h.pool().contains(p));
  EXPECT_EQ(h.statistics().live_blocks, 256u);
  initialised_heap().reset();
}

TEST(DropIn, KeepsTheHeapIfInitIsCalledAgainWithItsSize) {
  const auto& h = initialised_heap();
  const std::byte* const pool = h.pool().begin;
  simt::array<void*, here> blocks(32);
  launch<here>({1, 32}, allocate_sixteen{blocks.data()});
  drop_in::init(bytes(h.pool_bytes()));
  EXPECT_EQ(drop_in::heap().pool().begin, pool);
  EXPECT_EQ(drop_in::heap().statistics().live_blocks, 32u);
  drop_in::heap().reset();
}

std::string message_of_init(bytes pool) {
  try {
    drop_in::init(pool);
  } catch (const error& e) {
    return e.what();
  }
  return "";
}

TEST(DropIn, NamesBothSizesIfInitIsCalledWithAnotherSize) {
  const auto& h = initialised_heap();
  const std::string message = message_of_init(3_MiB);
  EXPECT_NE(message.find("init(3 MiB)"), std::string::npos) << message;
  EXPECT_NE(message.find(to_text(bytes(h.pool_bytes()))), std::string::npos) << message;
  EXPECT_EQ(drop_in::heap().pool_bytes(), h.pool_bytes());
}

/// A function for both sides: returns a copy of the text.
QUARRY_DEVICE char* copy_of(const char* text, std::size_t size) {
  using quarry::drop_in::malloc;
  auto* const copy = static_cast<char*>(malloc(size));
  for (std::size_t i = 0; copy != nullptr && i < size; ++i) copy[i] = text[i];
  return copy;
}
struct copy_kernel {
  const char* text;
  std::size_t size;
  char** out;
  QUARRY_DEVICE void operator()() const { out[simt::global_thread()] = copy_of(text, size); }
};
struct free_kernel {
  void** blocks;
  QUARRY_DEVICE void operator()() const { drop_in::free(blocks[simt::global_thread()]); }
};

TEST(DropIn, ServesHostCodeFromTheCLibrary) {
  const auto& h = initialised_heap();
  char* const copy = copy_of("text", 5);
  ASSERT_NE(copy, nullptr);
  EXPECT_STREQ(copy, "text");
  EXPECT_FALSE(h.pool().contains(copy));
  auto* const larger = static_cast<char*>(drop_in::realloc(copy, 100'000));
  ASSERT_NE(larger, nullptr);
  EXPECT_STREQ(larger, "text");
  EXPECT_EQ(drop_in::realloc(larger, 0), nullptr);  // freed
  auto* const words = static_cast<std::uint64_t*>(drop_in::calloc(10, sizeof(std::uint64_t)));
  ASSERT_NE(words, nullptr);
  for (int i = 0; i < 10; ++i) EXPECT_EQ(words[i], 0u);
  drop_in::free(words);
  drop_in::free(drop_in::realloc(nullptr, 10));
  drop_in::free(nullptr);
  EXPECT_EQ(drop_in::malloc(0), nullptr);
  EXPECT_EQ(drop_in::calloc(0, 8), nullptr);
  EXPECT_EQ(h.statistics().live_blocks, 0u);
}

TEST(DropIn, OneFunctionAllocatesInKernelsAndInHostCode) {
  const auto& h = initialised_heap();
  simt::array<char, here> text(5);
  text.from_host(std::vector<char>{'t', 'e', 'x', 't', '\0'});
  simt::array<char*, here> copies(32);
  launch<here>({1, 32}, copy_kernel{text.data(), 5, copies.data()});
  for (const char* p : copies.to_host()) EXPECT_TRUE(h.pool().contains(p));
  launch<here>({1, 32}, free_kernel{reinterpret_cast<void**>(copies.data())});
  EXPECT_EQ(h.statistics().live_blocks, 0u);
}

#if QUARRY_CUDA
TEST(DropIn, HostCodeCanNotFreeOrResizeBlocksOfTheGpu) {
  const auto& h = initialised_heap();
  simt::array<void*, here> blocks(32);
  launch<here>({1, 32}, allocate_sixteen{blocks.data()});
  for (void* p : blocks.to_host()) {
    EXPECT_THROW(drop_in::free(p), error);
    EXPECT_THROW((void)drop_in::realloc(p, 100), error);
  }
  launch<here>({1, 32}, free_kernel{blocks.data()});
  EXPECT_EQ(h.statistics().live_blocks, 0u);
}

TEST(DropIn, ANewHeapCanBeMadeAfterDeviceReset) {
  const std::byte* const old_pool = initialised_heap().pool().begin;
  const std::uint64_t old_size = drop_in::heap().pool_bytes();
  ASSERT_EQ(cudaDeviceReset(), cudaSuccess);
  EXPECT_THROW(drop_in::heap(), error);

  // Another allocation may have the addresses of the old pool now.
  std::vector<void*> others(8);
  bool has_old_address = false;
  for (void*& p : others) {
    ASSERT_EQ(cudaMalloc(&p, old_size), cudaSuccess);
    ASSERT_EQ(cudaMemset(p, 0x5a, old_size), cudaSuccess);
    has_old_address = has_old_address || p == old_pool;
  }
  RecordProperty("has_old_address", has_old_address ? "yes" : "no");
  EXPECT_THROW(drop_in::heap(), error);
  {
    simt::array<void*, here> blocks(32);
    launch<here>({1, 32}, allocate_sixteen{blocks.data()});
    for (void* p : blocks.to_host()) EXPECT_EQ(p, nullptr);
  }

  drop_in::init(bytes(2 * old_size));
  EXPECT_EQ(drop_in::heap().pool_bytes(), 2 * old_size);
  simt::array<std::uint32_t, here> correct(1);
  launch<here>({4, 128}, use_all{correct.data()});
  EXPECT_EQ(correct.to_host()[0], 512u);
  simt::array<void*, here> blocks(256);
  launch<here>({1, 256}, allocate_sixteen{blocks.data()});
  quarry::testing::replace_in_second_unit(blocks);
  for (void* p : blocks.to_host()) EXPECT_TRUE(drop_in::heap().pool().contains(p));
  EXPECT_EQ(drop_in::heap().statistics().live_blocks, 256u);
  drop_in::heap().reset();

  std::vector<unsigned char> bytes_of(old_size);
  for (void* p : others) {
    ASSERT_EQ(cudaMemcpy(bytes_of.data(), p, old_size, cudaMemcpyDeviceToHost), cudaSuccess);
    EXPECT_EQ(bytes_of, std::vector<unsigned char>(old_size, 0x5a));
    EXPECT_EQ(cudaFree(p), cudaSuccess);
  }
}
#else
TEST(DropIn, HostCodeAndKernelsOfTheCpuFreeEachOthersBlocks) {
  const auto& h = initialised_heap();
  simt::array<void*, here> blocks(32);
  launch<here>({1, 32}, allocate_sixteen{blocks.data()});
  blocks.data()[0] = drop_in::realloc(blocks.data()[0], 1000);
  EXPECT_TRUE(h.pool().contains(blocks.data()[0]));
  for (std::size_t i = 0; i < 32; ++i) {
    drop_in::free(blocks.data()[i]);
    blocks.data()[i] = drop_in::malloc(16);
  }
  EXPECT_EQ(h.statistics().live_blocks, 0u);
  launch<here>({1, 32}, free_kernel{blocks.data()});
  EXPECT_EQ(h.statistics().live_blocks, 0u);
}
#endif

}  // namespace
}  // namespace drop_in_test
