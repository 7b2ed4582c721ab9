// SPDX-License-Identifier: Apache-2.0
/// libquarry_malloc.so: the C library's allocation calls, served from regions. For LD_PRELOAD:
///
///   LD_PRELOAD=.../libquarry_malloc.so program
///
/// The paper serves a whole process, MPI included, from its slab pools by catching these calls. Here
/// slots are multiples of 16 bytes and slabs have 1 KiB, since most objects of ordinary programs are
/// small. The heap is made by the first call and never destroyed: programs free until their very end.
/// Nothing below may allocate: no exceptions, no dynamic thread-local storage.
///
/// A double free, or a free inside an object, ends the program with a message, as in glibc. A pointer
/// that is not ours (the loader allocates before we are there) is left alone.

#include <quarry/region/detail/definitions.hpp>
#include <quarry/region/heap.hpp>

#include <pthread.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <new>

namespace {

using namespace quarry;

constexpr slab_geometry small_slots{1024, std::size_t{1} << 20, 16};
using heap_type = region_heap<small_slots>;

alignas(heap_type) unsigned char place[sizeof(heap_type)];
std::atomic<int> state{0};  // 0: nothing, 1: somebody makes it, 2: there

[[noreturn]] void die(const char* why) {
  [[maybe_unused]] const auto written = ::write(2, why, std::strlen(why));
  std::abort();
}

heap_type& made_heap() {
  int expected = 0;
  if (state.compare_exchange_strong(expected, 1, std::memory_order_acquire)) {
    new (place) heap_type;
    state.store(2, std::memory_order_release);
  }
  while (state.load(std::memory_order_acquire) != 2) std::this_thread::yield();
  return *std::launder(reinterpret_cast<heap_type*>(place));
}

heap_type& heap() {
  if (state.load(std::memory_order_acquire) == 2)
    return *std::launder(reinterpret_cast<heap_type*>(place));
  return made_heap();
}

/// fork runs these: a child's locks are as free as its parent's.
[[gnu::constructor]] void watch_forks() {
  ::pthread_atfork([] { heap().before_fork(); }, [] { heap().after_fork(false); },
                   [] { heap().after_fork(true); });
}

void* or_enomem(void* p) {
  if (p == nullptr) errno = ENOMEM;
  return p;
}

void* aligned(std::size_t alignment, std::size_t n) {
  if (!std::has_single_bit(alignment)) return errno = EINVAL, nullptr;
  return or_enomem(heap().allocate(n, std::max(alignment, small_slots.slot)));
}

}  // namespace

extern "C" {

void* malloc(std::size_t n) { return or_enomem(heap().allocate(n)); }

void free(void* p) {
  if (p == nullptr) return;
  const int saved = errno;
  if (heap().deallocate(p) == region_status::not_an_object)
    die("quarry malloc: free of an address where no living object starts (freed twice?)\n");
  errno = saved;
}

void* calloc(std::size_t count, std::size_t size) {
  std::size_t n = 0;
  if (__builtin_mul_overflow(count, size, &n)) return errno = ENOMEM, nullptr;
  void* p = malloc(n);
  return p == nullptr ? p : std::memset(p, 0, n);
}

void* realloc(void* p, std::size_t n) {
  if (p != nullptr && n == 0) return free(p), nullptr;
  return or_enomem(heap().reallocate(p, n));
}

void* reallocarray(void* p, std::size_t count, std::size_t size) {
  std::size_t n = 0;
  if (__builtin_mul_overflow(count, size, &n)) return errno = ENOMEM, nullptr;
  return realloc(p, n);
}

int posix_memalign(void** out, std::size_t alignment, std::size_t n) {
  if (!std::has_single_bit(alignment) || alignment % sizeof(void*) != 0) return EINVAL;
  void* p = heap().allocate(n, std::max(alignment, small_slots.slot));
  if (p == nullptr) return ENOMEM;
  *out = p;
  return 0;
}

void* aligned_alloc(std::size_t alignment, std::size_t n) { return aligned(alignment, n); }
void* memalign(std::size_t alignment, std::size_t n) { return aligned(alignment, n); }
void* valloc(std::size_t n) { return aligned(4096, n); }
void* pvalloc(std::size_t n) { return aligned(4096, align_up(n, std::size_t{4096})); }
std::size_t malloc_usable_size(void* p) { return p == nullptr ? 0 : heap().usable_size(p); }

}  // extern "C"
