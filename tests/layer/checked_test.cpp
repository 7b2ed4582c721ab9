// SPDX-License-Identifier: Apache-2.0
/// Each kind of misuse must be detected and classified; a correct program must have no finding.
#include "layer/kernels.hpp"

#include <quarry/layer/buffer.hpp>
#include <quarry/layer/checked/checked.hpp>
#include <quarry/layer/warp_aggregated.hpp>
#include <quarry/pool/bump.hpp>
#include <quarry/pool/circular/circular.hpp>
#include <quarry/pool/system_heap.hpp>

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

namespace checked_test {
namespace {

using namespace quarry;
using namespace quarry::testing;
using ::testing::IsSubstring;

static_assert(freeing_allocator<checked<cfmalloc>> && freeing_allocator<checked<system_heap>>);
static_assert(allocator<checked<bump>> && !freeing_allocator<checked<bump>>);

/// One lane of a grid of 2 x 64 frees a pointer, or writes a byte.
template <class Ref>
struct free_by_one {
  Ref heap;
  std::uint64_t lane;
  void* pointer;
  QUARRY_DEVICE void operator()() const {
    if (simt::global_thread() == lane) heap.free(pointer);
  }
};
template <class Ref>
struct free_by_all {
  Ref heap;
  void* pointer;
  QUARRY_DEVICE void operator()() const { heap.free(pointer); }
};
struct write_byte {
  std::byte* at;
  QUARRY_DEVICE void operator()() const { *at = std::byte{0}; }
};
template <class Ref>
struct malloc_by_one {
  Ref heap;
  std::uint64_t lane, n;
  std::byte** out;
  QUARRY_DEVICE void operator()() const {
    if (simt::global_thread() == lane) *out = static_cast<std::byte*>(heap.malloc(n));
  }
};
/// A correct program: it writes every byte of every block, and some blocks are freed by other
/// lanes.
template <class Ref>
struct correct_program {
  Ref heap;
  request* requests;
  std::uint32_t rounds;
  QUARRY_DEVICE void operator()() const {
    const auto me = static_cast<std::uint32_t>(simt::global_thread());
    simt::lane_random draw(me);
    for (std::uint32_t round = 0; round < rounds; ++round) {
      const std::uint64_t n = 1 + draw.below(draw.below(4) == 0 ? 2000 : 100);
      auto* const p = static_cast<std::byte*>(heap.malloc(n));
      for (std::uint64_t i = 0; p != nullptr && i < n; ++i) p[i] = std::byte{0};
      if (draw.below(3) != 0) {
        heap.free(p);
      } else {
        heap.free(requests[me].block);
        requests[me].block = p;
      }
    }
  }
};

template <class Heap>
void free_by(const Heap& h, std::uint64_t lane, void* p) {
  launch<here>({2, 64}, free_by_one<typename Heap::ref_type>{h.ref(), lane, p});
}
template <class Heap>
std::byte* malloc_by(const Heap& h, std::uint64_t lane, std::uint64_t n) {
  simt::array<std::byte*, here> out(1);
  launch<here>({2, 64}, malloc_by_one<typename Heap::ref_type>{h.ref(), lane, n, out.data()});
  return out.to_host()[0];
}
void write(std::byte* at) { launch<here>({1, 1}, write_byte{at}); }
std::uint64_t number(const void* p) { return reinterpret_cast<std::uint64_t>(p); }

/// Returns the only finding of a heap.
template <class Heap>
finding only(const Heap& h) {
  const std::vector<finding> found = report(h);
  if (found.size() == 1) return found[0];
  ADD_FAILURE() << found.size() << " findings:\n" << to_text(found);
  return {};
}

/// Returns the live bytes of the upstream; 0 if they are unknown.
template <class Heap>
std::uint64_t upstream_bytes(const Heap& h) {
  return h.on_host([](const auto& a) { return a.upstream().statistics().live_bytes.value_or(0); });
}

template <class Upstream>
class Checked : public ::testing::Test {
 public:
  using small = checked<Upstream, checking{.quarantine = 4, .fifos = 1}>;
};
using upstreams = ::testing::Types<cfmalloc, system_heap, warp_aggregated<cfmalloc>>;
TYPED_TEST_SUITE(Checked, upstreams);

TYPED_TEST(Checked, ReportsNothingForACorrectProgram) {
  const heap<checked<TypeParam>, here> h(1_MiB);
  simt::array<request, here> requests(256);
  launch<here>({4, 64}, correct_program<typename heap<checked<TypeParam>, here>::ref_type>{
                            h.ref(), requests.data(), 40});
  EXPECT_EQ(to_text(report(h)), "");
  launch<here>({1, 256}, free_some<typename heap<checked<TypeParam>, here>::ref_type>{
                             h.ref(), requests.data(), 0, 256});
  EXPECT_EQ(to_text(report(h)), "");
  EXPECT_EQ(to_text(leaks(h)), "");
  h.check();
  EXPECT_EQ(h.statistics().live_blocks, 0u);
  EXPECT_EQ(h.statistics().live_bytes.value_or(0), 0u);
}

TYPED_TEST(Checked, ReportsTheLanesOfADoubleFree) {
  const heap<checked<TypeParam>, here> h(1_MiB);
  std::byte* const p = malloc_by(h, 3, 100);
  free_by(h, 70, p);
  free_by(h, 5, p);
  free_by(h, 6, p);
  const finding f = only(h);
  EXPECT_EQ(f.kind, misuse::double_free);
  EXPECT_EQ(f.count, 2u);
  EXPECT_EQ(f.lane, (caller{5, 0}));
  EXPECT_EQ(f.other, (caller{70, 1})) << "the lane that freed it first";
  EXPECT_EQ(f.size, 100u);
  EXPECT_EQ(f.address, number(p));
  EXPECT_EQ(to_text(leaks(h)), "");
}

TYPED_TEST(Checked, FreesABlockOnceIfManyLanesFreeIt) {
  const heap<checked<TypeParam>, here> h(1_MiB);
  std::byte* const p = malloc_by(h, 3, 100);
  launch<here>({2, 64}, free_by_all<typename heap<checked<TypeParam>, here>::ref_type>{h.ref(), p});
  EXPECT_EQ(only(h).kind, misuse::double_free);
  EXPECT_EQ(only(h).count, 127u);
  h.drain();
  EXPECT_EQ(upstream_bytes(h), 0u) << "the upstream has freed it";
}

TYPED_TEST(Checked, RecognisesAFreedBlockAfterItsEviction) {
  const heap<checked<TypeParam>, here> h(1_MiB);
  std::byte* const p = malloc_by(h, 3, 100);
  free_by(h, 4, p);
  h.drain();
  free_by(h, 5, p);
  EXPECT_EQ(only(h).kind, misuse::double_free);
}

TYPED_TEST(Checked, NeverDereferencesAForeignPointer) {
  const heap<checked<TypeParam>, here> h(1_MiB);
  const heap<checked<TypeParam>, here> other(64_KiB);
  simt::array<std::byte, here> elsewhere(64);
  std::byte* const theirs = malloc_by(other, 0, 64);
  std::byte* const ours = malloc_by(h, 0, 64);
  std::vector<void*> wrong = {elsewhere.data(), theirs, theirs - 16, elsewhere.data() + 1};
  for (const std::uint64_t wild : {std::uint64_t{1}, std::uint64_t{16}, std::uint64_t{0x1000},
                                   ~std::uint64_t{0}, ~std::uint64_t{15}, std::uint64_t{1} << 63})
    wrong.push_back(reinterpret_cast<void*>(wild));
  for (void* const p : wrong) free_by(h, 9, p);
  const finding f = only(h);
  EXPECT_EQ(f.kind, misuse::foreign_pointer);
  EXPECT_EQ(f.count, wrong.size());
  EXPECT_EQ(f.lane, (caller{9, 0}));
  EXPECT_EQ(f.address, number(elsewhere.data()));
  EXPECT_EQ(leaks(other).size(), 1u) << "the block of the other heap is still live";
  free_by(other, 0, theirs);
  free_by(h, 0, ours);
  EXPECT_TRUE(leaks(h).empty());
}

TYPED_TEST(Checked, DistinguishesInteriorFromForeignPointers) {
  const heap<checked<TypeParam>, here> h(1_MiB);
  std::byte* const p = malloc_by(h, 3, 20'000);
  free_by(h, 65, p + 16);
  for (const std::uint64_t offset : {1u, 15u, 17u, 1000u, 1024u, 5008u, 19'999u})
    free_by(h, 66, p + offset);
  const finding f = only(h);
  EXPECT_EQ(f.kind, misuse::interior_pointer);
  EXPECT_EQ(f.count, 8u);
  EXPECT_EQ(f.lane, (caller{65, 1}));
  EXPECT_EQ(f.other, (caller{3, 0})) << "the lane that allocated it";
  EXPECT_EQ(f.offset, 16);
  EXPECT_EQ(f.size, 20'000u);
  EXPECT_EQ(f.address, number(p));
  free_by(h, 66, p + 20'000);
  EXPECT_EQ(report(h).size(), 2u) << "one past the end is not inside the block";
  free_by(h, 66, p);
}

TYPED_TEST(Checked, DetectsAWriteAfterABlockOfAnySize) {
  for (const std::uint64_t n : {1u, 7u, 8u, 9u, 15u, 16u, 17u, 31u, 32u, 33u, 100u, 1000u, 4096u}) {
    for (const std::uint64_t beyond : {0u, 1u, 8u, 15u}) {
      const heap<checked<TypeParam>, here> h(64_KiB);
      std::byte* const p = malloc_by(h, 67, n);
      write(p + n - 1);
      EXPECT_EQ(to_text(report(h)), "");
      write(p + n + beyond);
      free_by(h, 4, p);
      const finding f = only(h);
      EXPECT_EQ(f.kind, misuse::overrun);
      EXPECT_EQ(f.size, n);
      EXPECT_EQ(f.offset, static_cast<std::int64_t>(n + beyond));
      EXPECT_EQ(f.lane, (caller{67, 1})) << "the lane that allocated it";
      EXPECT_EQ(f.other, (caller{4, 0})) << "the lane that freed it";
    }
  }
}

TYPED_TEST(Checked, DetectsAWriteBeforeABlock) {
  for (const std::int64_t before : {1, 8, 16}) {
    const heap<checked<TypeParam>, here> h(64_KiB);
    std::byte* const p = malloc_by(h, 67, 40);
    write(p);
    write(p - before);
    free_by(h, 4, p);
    const finding f = only(h);
    EXPECT_EQ(f.kind, misuse::underrun);
    EXPECT_EQ(f.offset, -before);
    EXPECT_EQ(f.lane, (caller{67, 1}));
  }
}

TYPED_TEST(Checked, DetectsAnOverrunOfALiveBlockAndCountsItOnce) {
  const heap<checked<TypeParam>, here> h(1_MiB);
  std::byte* const p = malloc_by(h, 67, 40);
  write(p + 40);
  EXPECT_THROW(h.check(), heap_corrupted);
  EXPECT_EQ(only(h).kind, misuse::overrun);
  EXPECT_EQ(only(h).count, 1u);
  EXPECT_FALSE(only(h).other.has_value()) << "no kernel has detected it";
  free_by(h, 0, p);
  EXPECT_EQ(only(h).count, 1u);
}

TYPED_TEST(Checked, DetectsAWriteToAFreedBlock) {
  for (const bool in_quarantine : {true, false}) {
    const heap<typename TestFixture::small, here> h(256_KiB);
    std::byte* const p = malloc_by(h, 3, 100);
    free_by(h, 70, p);
    write(p + 99);
    if (in_quarantine) {
      EXPECT_FALSE(only(h).other.has_value());
    } else {
      for (int i = 0; i < 4; ++i) free_by(h, 8, malloc_by(h, 8, 100));  // fills the quarantine
      EXPECT_EQ(only(h).other, (caller{8, 0})) << "the lane that evicted it";
    }
    const finding f = only(h);
    EXPECT_EQ(f.kind, misuse::use_after_free);
    EXPECT_EQ(f.count, 1u);
    EXPECT_EQ(f.lane, (caller{70, 1})) << "the lane that freed it";
    EXPECT_EQ(f.size, 100u);
    EXPECT_EQ(f.offset, 99);
    h.drain();
    EXPECT_EQ(only(h).count, 1u) << "it counts once";
  }
}

TYPED_TEST(Checked, ChecksQuarantinedBlocksWhenDrained) {
  const heap<checked<TypeParam>, here> h(1_MiB);
  std::byte* const p = malloc_by(h, 3, 100);
  free_by(h, 70, p);
  write(p);
  h.drain();
  EXPECT_EQ(only(h).kind, misuse::use_after_free);
}

TYPED_TEST(Checked, ChecksTheFrontOfALargeFreedBlock) {
  const heap<checked<TypeParam>, here> h(1_MiB);
  std::byte* const p = malloc_by(h, 3, 10'000);
  free_by(h, 3, p);
  write(p + 4096);
  EXPECT_EQ(to_text(report(h)), "");
  write(p + 4095);
  EXPECT_EQ(only(h).kind, misuse::use_after_free);
}

TYPED_TEST(Checked, DoesNotReuseABlockInQuarantine) {
  const heap<typename TestFixture::small, here> h(256_KiB);
  std::byte* const p = malloc_by(h, 3, 100);
  free_by(h, 3, p);
  std::vector<std::byte*> others;
  for (int i = 0; i < 100; ++i) {
    others.push_back(malloc_by(h, 3, 100));
    EXPECT_NE(others.back(), p);
  }
  for (std::byte* q : others) free_by(h, 3, q);
  EXPECT_EQ(to_text(report(h)), "");
}

TYPED_TEST(Checked, EvictsAllBlocksWhenTheUpstreamIsExhausted) {
  const heap<checked<TypeParam>, here> h(64_KiB);
  const auto got = malloc_by_block(h, std::vector<std::uint64_t>(64, 600));
  free_by_block(h, got, 0, 64);
  std::byte* const large = malloc_by(h, 0, 50'000);
  EXPECT_NE(large, nullptr) << "all blocks are in quarantine, none is live";
  free_by(h, 0, large);
  EXPECT_EQ(to_text(report(h)), "");
}

TYPED_TEST(Checked, ListsLeaksBySize) {
  const heap<checked<TypeParam>, here> h(1_MiB);
  const auto got = malloc_by_block(h, {64, 64, 64, 7, 7, 300, 0});
  free_by_block(h, got, 1, 2);
  const std::vector<leak> found = leaks(h);
  ASSERT_EQ(found.size(), 3u);
  EXPECT_EQ(found[0].size, 7u);
  EXPECT_EQ(found[0].count, 2u);
  EXPECT_EQ(found[1].size, 64u);
  EXPECT_EQ(found[1].count, 2u);
  EXPECT_EQ(found[2].size, 300u);
  EXPECT_EQ(found[2].count, 1u);
  EXPECT_EQ(found[2].lane, (caller{5, 0}));
  EXPECT_EQ(found[2].address, number(got[5].block));
  EXPECT_EQ(h.statistics().live_blocks, 5u);
  EXPECT_EQ(to_text(report(h)), "") << "a live block is not a misuse";
  free_by_block(h, got, 0, 1);
  free_by_block(h, got, 2, 6);
  EXPECT_TRUE(leaks(h).empty());
}

TYPED_TEST(Checked, ReportsAFullRegistry) {
  const heap<checked<TypeParam, checking{.quarantine = 4, .fifos = 1, .pool_per_block = 1u << 20}>,
             here>
      h(64_KiB);  // 256 slots
  std::vector<std::byte*> blocks;
  while (std::byte* const p = malloc_by(h, 70, 16)) blocks.push_back(p);
  EXPECT_EQ(blocks.size(), 256u);
  const finding f = only(h);
  EXPECT_EQ(f.kind, misuse::registry_full);
  EXPECT_EQ(f.lane, (caller{70, 1}));
  free_by(h, 0, blocks.back());
  blocks.back() = malloc_by(h, 70, 16);
  EXPECT_NE(blocks.back(), nullptr);
  for (std::byte* p : blocks) free_by(h, 0, p);
  EXPECT_EQ(only(h).kind, misuse::registry_full) << "the only finding";
  h.drain();
  EXPECT_EQ(upstream_bytes(h), 0u) << "the upstream has freed the block without a slot";
}

TYPED_TEST(Checked, CountsQuarantinedBlocksAsFree) {
  const heap<typename TestFixture::small, here> h(256_KiB);
  std::vector<std::byte*> blocks;
  for (int i = 0; i < 5; ++i) blocks.push_back(malloc_by(h, 0, 1000));
  const auto before = h.statistics();
  for (std::size_t i = 0; i < 4; ++i) free_by(h, 0, blocks[i]);
  const auto after = h.statistics();
  EXPECT_EQ(after.live_blocks, 1u);
  if (before.live_bytes) {
    EXPECT_LE(*after.live_bytes, *before.live_bytes - 4 * 1000);
    EXPECT_GE(upstream_bytes(h), 5000u) << "the blocks are live for the upstream";
    EXPECT_EQ(*after.free_bytes + *after.live_bytes, *before.free_bytes + *before.live_bytes);
  }
  free_by(h, 0, blocks[4]);
  h.drain();
  EXPECT_EQ(upstream_bytes(h), 0u);
  EXPECT_EQ(h.check_invariants(), "");
}

TYPED_TEST(Checked, ReturnsNullptrForZeroAndOversize) {
  const heap<checked<TypeParam>, here> h(1_MiB);
  for (const std::uint64_t n : {std::uint64_t{0}, ~std::uint64_t{0}, ~std::uint64_t{0} - 15,
                                ~std::uint64_t{0} - 47, std::uint64_t{1} << 20})
    EXPECT_EQ(malloc_by(h, 0, n), nullptr) << n;
  free_by(h, 0, nullptr);
  EXPECT_EQ(to_text(report(h)), "");
}

TEST(CheckedHeap, ThrowsItsFindings) {
  const heap<checked<cfmalloc>, here> h(1_MiB);
  std::byte* const p = malloc_by(h, 3, 64);
  h.check();
  write(p + 64);
  free_by(h, 70, p);
  free_by(h, 71, p);
  try {
    h.check();
    FAIL() << "nothing was thrown";
  } catch (const heap_corrupted& e) {
    EXPECT_PRED_FORMAT2(IsSubstring,
                        "double free, 1 time: thread 71 (block 1) freed 64 bytes at 0x", e.what());
    EXPECT_PRED_FORMAT2(IsSubstring, ", which thread 70 (block 1) had freed", e.what());
    EXPECT_PRED_FORMAT2(IsSubstring, "overrun, 1 time: byte 64, after the end of 64 bytes at 0x",
                        e.what());
    EXPECT_PRED_FORMAT2(IsSubstring,
                        "of thread 3 (block 0), was written; detected by thread 70 (block 1)",
                        e.what());
  }
}

TEST(CheckedHeap, HasNoFindingsAfterReset) {
  heap<checked<cfmalloc>, here> h(1_MiB);
  std::byte* const p = malloc_by(h, 3, 64);
  free_by(h, 3, p + 1);
  h.reset();
  EXPECT_EQ(to_text(report(h)), "");
  EXPECT_TRUE(leaks(h).empty());
  free_by(h, 3, p);
  EXPECT_EQ(only(h).kind, misuse::foreign_pointer) << "a block from before the reset";
}

TEST(CheckedHeap, ClassifiesOnlyTheFirst32WrongPointersByAScan) {
  const heap<checked<cfmalloc>, here> h(1_MiB);
  std::byte* const p = malloc_by(h, 3, 20'000);
  for (int i = 0; i < 40; ++i) free_by(h, 3, p + 10'000);
  const std::vector<finding> found = report(h);
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[0].kind, misuse::foreign_pointer);
  EXPECT_EQ(found[0].count, 8u);
  EXPECT_EQ(found[1].kind, misuse::interior_pointer);
  EXPECT_EQ(found[1].count, 32u);
  free_by(h, 3, p + 1024);
  EXPECT_EQ(report(h)[1].count, 33u) << "a pointer near the start of its block needs no scan";
}

TEST(CheckedHeap, ChecksBlocksOverAnUpstreamWithoutFree) {
  const heap<checked<bump>, here> h(1_MiB);
  std::byte* const p = malloc_by(h, 3, 64);
  std::byte* const q = malloc_by(h, 4, 64);
  EXPECT_EQ(h.check_invariants(), "");
  write(p + 64);
  write(q - 1);
  const std::vector<finding> found = report(h);
  ASSERT_EQ(found.size(), 2u) << to_text(found);
  EXPECT_EQ(found[0].kind, misuse::overrun);
  EXPECT_EQ(found[0].lane, (caller{3, 0}));
  EXPECT_EQ(found[1].kind, misuse::underrun);
  EXPECT_EQ(found[1].lane, (caller{4, 0}));
  EXPECT_EQ(leaks(h)[0].count, 2u);
}

TEST(CheckedHeap, ServesUncheckedBlocksOverAnUpstreamWithoutFree) {
  const heap<checked<bump, checking{.pool_per_block = 1u << 20}>, here> h(64_KiB);
  unsigned served = 0;
  while (malloc_by(h, 0, 16) != nullptr) ++served;
  EXPECT_EQ(served, (64u << 10) / 48);
  EXPECT_EQ(only(h).kind, misuse::registry_full);
  EXPECT_EQ(only(h).count, served - 256);
}

TEST(CheckedHeap, DrainsTheLayersBelow) {
  const heap<checked<buffer<cfmalloc>>, here> h(1_MiB);
  free_by(h, 0, malloc_by(h, 0, 100));
  h.drain();
  EXPECT_EQ(h.on_host([](const auto& a) { return a.upstream().cached_bytes(); }), 0u);
}

}  // namespace
}  // namespace checked_test
