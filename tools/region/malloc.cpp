// SPDX-License-Identifier: Apache-2.0
/// libquarry_malloc.so: malloc, free and the related functions of the C library, served from
/// regions.
///
///   LD_PRELOAD=.../libquarry_malloc.so program
///
/// Lyberis et al. (2012) serve a whole process, MPI included, from their slab pools in this way.
/// The first call creates the heap. The heap is never destroyed, since programs
/// call free until they end. Functions in this file must not allocate: no exceptions, no dynamic
/// thread-local storage.
///
/// A double free, or a free of an address inside an object, aborts the program with a message, as
/// in glibc. free ignores pointers that the heap did not allocate: the loader allocates before this
/// library is loaded. realloc needs the size of the object and aborts in all these cases.
///
/// The heap reserves a terabyte of addresses, or less where the system allows less (ulimit -v).

#include <quarry/region/heap.hpp>

#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <new>

namespace {

using namespace quarry;

using heap_type = region_heap<>;

alignas(heap_type) unsigned char place[sizeof(heap_type)];
std::atomic<int> state{0};  // 0: no heap, 1: a thread constructs the heap, 2: constructed

[[noreturn]] void die(const char* why) {
  [[maybe_unused]] const auto written = ::write(2, why, std::strlen(why));
  std::abort();
}

bool can_reserve(std::size_t size) {
  void* p = ::mmap(nullptr, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (p == MAP_FAILED) return false;
  ::munmap(p, size);
  return true;
}

/// The largest range that leaves addresses for its metadata, and for stacks and other mappings of
/// the program. A range near the limit would fail at the next thread.
std::uint64_t largest_range() {
  constexpr std::uint64_t most = std::uint64_t{1} << 40, least = std::uint64_t{16} << 20;
  for (std::uint64_t range = most; range >= least; range /= 2)
    if (can_reserve(range + range / 4 + (std::uint64_t{64} << 20))) return range;
  die("quarry malloc: the system reserves less than 84 MiB of addresses (ulimit -v)\n");
}

heap_type& constructed_heap() {
  static thread_local bool constructs = false;
  // The constructor allocates no memory, except for the message of an exception.
  if (constructs) die("quarry malloc: the heap cannot be created: no addresses (ulimit -v)\n");
  int expected = 0;
  if (state.compare_exchange_strong(expected, 1, std::memory_order_acquire)) {
    constructs = true;
    tree_options options = heap_type::default_options();
    options.range = largest_range();
    new (place) heap_type(options);
    constructs = false;
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

/// Sets the n bytes at p to zero. Whole pages are returned to the system, which provides zeros at
/// the next access: a large array takes no memory before it is used.
void* cleared(void* p, std::size_t n) {
  constexpr std::size_t page = address_range::system_page, least = std::size_t{1} << 20;
  if (n < least) return std::memset(p, 0, n);
  const auto first = reinterpret_cast<std::uintptr_t>(p), end = first + n;
  const std::uintptr_t inner = align_up(first, page), inner_end = align_down(end, page);
  if (::madvise(reinterpret_cast<void*>(inner), inner_end - inner, MADV_DONTNEED) != 0)
    return std::memset(p, 0, n);
  std::memset(p, 0, inner - first);
  std::memset(reinterpret_cast<void*>(inner_end), 0, end - inner_end);
  return p;
}

void* aligned(std::size_t alignment, std::size_t n) {
  if (!std::has_single_bit(alignment)) return errno = EINVAL, nullptr;
  return or_enomem(heap().allocate(n, std::max(alignment, heap_geometry.slot)));
}

}  // namespace

#pragma GCC visibility push(default)
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
  return p == nullptr ? p : cleared(p, n);
}

void* realloc(void* ptr, std::size_t size) {
  if (ptr != nullptr && size == 0) return free(ptr), nullptr;
  void* const p = heap().reallocate(ptr, size);
  if (p == nullptr && ptr != nullptr && heap().usable_size(ptr) == 0)
    die("quarry malloc: realloc: no live object starts at this address (freed, or foreign)\n");
  return or_enomem(p);
}

void* reallocarray(void* ptr, std::size_t nmemb, std::size_t size) {
  std::size_t n = 0;
  if (__builtin_mul_overflow(nmemb, size, &n)) return errno = ENOMEM, nullptr;
  return realloc(ptr, n);
}

int posix_memalign(void** memptr, std::size_t alignment, std::size_t size) {
  if (!std::has_single_bit(alignment) || alignment % sizeof(void*) != 0) return EINVAL;
  void* p = heap().allocate(size, std::max(alignment, heap_geometry.slot));
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
#pragma GCC visibility pop
