// SPDX-License-Identifier: Apache-2.0
/// libquarry_malloc.so: malloc, free and the related functions of the C library, served from
/// regions.
///
///   LD_PRELOAD=.../libquarry_malloc.so program
///
/// Lyberis et al. (2012) serve a whole process, MPI included, from their slab pools in this way.
/// Here slots are multiples of 16 bytes and slabs have 1 KiB, since most objects of ordinary
/// programs are small. The first call creates the heap. The heap is never destroyed, since programs
/// call free until they end. Functions in this file must not allocate: no exceptions, no dynamic
/// thread-local storage.
///
/// A double free, or a free of an address inside an object, aborts the program with a message, as
/// in glibc. free ignores pointers that the heap did not allocate: the loader allocates before this
/// library is loaded.

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
std::atomic<int> state{0};  // 0: no heap, 1: a thread constructs the heap, 2: constructed

[[noreturn]] void die(const char* why) {
  [[maybe_unused]] const auto written = ::write(2, why, std::strlen(why));
  std::abort();
}

heap_type& constructed_heap() {
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
  return constructed_heap();
}

/// fork runs these handlers, so that the child finds all locks free.
[[gnu::constructor]] void register_fork_handlers() {
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

void* malloc(std::size_t size) { return or_enomem(heap().allocate(size)); }

void free(void* ptr) {
  if (ptr == nullptr) return;
  const int saved = errno;
  if (heap().deallocate(ptr) == region_status::not_an_object)
    die("quarry malloc: free: no live object starts at this address (freed twice?)\n");
  errno = saved;
}

void* calloc(std::size_t nmemb, std::size_t size) {
  std::size_t n = 0;
  if (__builtin_mul_overflow(nmemb, size, &n)) return errno = ENOMEM, nullptr;
  void* p = malloc(n);
  return p == nullptr ? p : std::memset(p, 0, n);
}

void* realloc(void* ptr, std::size_t size) {
  if (ptr != nullptr && size == 0) return free(ptr), nullptr;
  return or_enomem(heap().reallocate(ptr, size));
}

void* reallocarray(void* ptr, std::size_t nmemb, std::size_t size) {
  std::size_t n = 0;
  if (__builtin_mul_overflow(nmemb, size, &n)) return errno = ENOMEM, nullptr;
  return realloc(ptr, n);
}

int posix_memalign(void** memptr, std::size_t alignment, std::size_t size) {
  if (!std::has_single_bit(alignment) || alignment % sizeof(void*) != 0) return EINVAL;
  void* p = heap().allocate(size, std::max(alignment, small_slots.slot));
  if (p == nullptr) return ENOMEM;
  *memptr = p;
  return 0;
}

void* aligned_alloc(std::size_t alignment, std::size_t size) { return aligned(alignment, size); }
void* memalign(std::size_t alignment, std::size_t size) { return aligned(alignment, size); }
void* valloc(std::size_t size) { return aligned(4096, size); }
void* pvalloc(std::size_t size) { return aligned(4096, align_up(size, std::size_t{4096})); }
std::size_t malloc_usable_size(void* ptr) { return ptr == nullptr ? 0 : heap().usable_size(ptr); }

}  // extern "C"
