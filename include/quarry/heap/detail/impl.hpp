// SPDX-License-Identifier: Apache-2.0
#pragma once
/// The member functions of heap, and the kernels that they launch on a GPU.

#include <quarry/heap/heap.hpp>
#include <quarry/simt/out_of_line.hpp>

namespace quarry {

namespace detail {

template <class Allocator>
struct initialise_kernel {
  Allocator allocator;
  QUARRY_DEVICE void operator()() const {
    allocator.initialise(simt::global_thread(), simt::grid_threads());
  }
};
template <class Ref>
struct malloc_kernel {
  Ref heap;
  std::size_t n;
  std::uint64_t* out;
  QUARRY_DEVICE void operator()() const { *out = reinterpret_cast<std::uint64_t>(heap.malloc(n)); }
};
template <class Allocator>
struct free_kernel {
  Allocator allocator;
  void* block;
  QUARRY_DEVICE void operator()() const { allocator.free(block); }
};
template <class Allocator>
struct drain_kernel {
  Allocator allocator;
  QUARRY_DEVICE void operator()() const { allocator.drain(); }
};
template <class Allocator>
struct inspect_kernel {
  Allocator allocator;
  QUARRY_DEVICE void operator()() const {
    allocator.inspect(simt::global_thread(), simt::grid_threads());
  }
};
template <class Allocator>
struct resize_kernel {
  Allocator allocator;
  std::uint64_t from;
  std::uint64_t to;
  std::uint64_t* out;
  QUARRY_DEVICE void operator()() const { *out = allocator.resize(from, to); }
};
struct copy_kernel {
  std::byte* to;
  const std::byte* from;
  std::uint64_t n;
  QUARRY_DEVICE void operator()() const {
    for (std::uint64_t i = simt::global_thread(); i < n; i += simt::grid_threads()) to[i] = from[i];
  }
};

}  // namespace detail

// ---- memory -------------------------------------------------------------------------------------

template <allocator Allocator, backend Backend>
heap<Allocator, Backend>::heap(bytes pool, stream_type stream)
    : pool_size_(pool.value()), pool_end_(pool_size_), first_size_(pool_size_) {
  check_size(pool_size_);
  metadata_size_ = metadata_for(pool_end_);
  owner_.pool = simt::array<std::byte, Backend>(can.owns_pool ? pool_size_ : 0, stream);
  owner_.metadata = simt::array<std::byte, Backend>(metadata_size_, stream);
  start(owner_.pool.data(), owner_.metadata.data(), stream);
}

template <allocator Allocator, backend Backend>
heap<Allocator, Backend>::heap(bytes pool, const growth& g,
                               stream_type stream) requires resizable_allocator<Allocator>
    : pool_end_(std::max(pool, g.max).value()), growth_(g) {
  g.check();
  check_size(pool.value());
  metadata_size_ = metadata_for(pool_end_);
  owner_.growing = detail::growing_memory<Backend>(pool_end_);
  owner_.growing.grow(pool.value());
  owner_.metadata = simt::array<std::byte, Backend>(metadata_size_, stream);
  pool_size_ = std::min(owner_.growing.committed(), pool_end_);
  start(owner_.growing.data(), owner_.metadata.data(), stream);
  grow(pool, stream);  // the allocator may have rounded down
  first_size_ = pool_size_;
}

template <allocator Allocator, backend Backend>
heap<Allocator, Backend>::heap(void* memory, bytes size, stream_type stream) {
  const auto first = reinterpret_cast<std::uintptr_t>(memory);
  const std::uint64_t skipped = align_up(first, carve::alignment) - first;
  if (memory == nullptr) throw error("quarry::heap: the memory of the caller is nullptr");
  const division found = divide(size.value() > skipped ? size.value() - skipped : 0);
  if (found.pool < can.min_pool) {
    const std::uint64_t needed = skipped + least_size();
    throw error("quarry::heap: " + std::to_string(size.value()) +
                " bytes of the caller are too few for a pool of " + std::to_string(can.min_pool) +
                " bytes and the metadata of this allocator; provide at least " +
                std::to_string(needed) + " bytes");
  }
  metadata_size_ = found.metadata;
  pool_end_ = first_size_ = pool_size_ = found.pool;
  auto* pool = static_cast<std::byte*>(memory) + skipped;
  simt::memory<Backend>::zero(pool + pool_size_, metadata_size_, stream);
  start(pool, pool + pool_size_, stream);
}

template <allocator Allocator, backend Backend>
typename heap<Allocator, Backend>::division heap<Allocator, Backend>::divide(std::uint64_t size) {
  division p;
  // A smaller pool may need more metadata, because the allocator may divide it into smaller units.
  for (std::uint64_t wanted = metadata_for(size); wanted > p.metadata;
       wanted = metadata_for(p.pool)) {
    p.metadata = align_up(wanted, carve::alignment);
    p.pool = size > p.metadata ? align_down(size - p.metadata, carve::alignment) : 0;
  }
  return p;
}

/// Returns a size that divide() makes a pool of at least min_pool from, and hardly a larger one.
template <allocator Allocator, backend Backend>
std::uint64_t heap<Allocator, Backend>::least_size() {
  std::uint64_t size = align_up(can.min_pool, carve::alignment);
  for (division p = divide(size); p.pool < can.min_pool; p = divide(size))
    size += align_up(can.min_pool - p.pool, carve::alignment);
  return size;
}

template <allocator Allocator, backend Backend>
void heap<Allocator, Backend>::require_memory(const char* function) const {
  if (!has_memory())
    throw error(std::string("quarry::heap::") + function +
                ": this heap was moved from and has no memory; assign a heap to it first");
}

template <allocator Allocator, backend Backend>
void heap<Allocator, Backend>::check_size(std::uint64_t pool) {
  if (pool >= can.min_pool) return;
  throw error("a heap with a pool of " + to_text(pool) +
              " is too small: this allocator needs a pool of at least " + to_text(can.min_pool));
}

template <allocator Allocator, backend Backend>
void heap<Allocator, Backend>::start(std::byte* pool, std::byte* metadata, stream_type stream) {
  if constexpr (requires { Allocator::template reserve<Backend>(pool_end_); })
    Allocator::template reserve<Backend>(pool_end_);
  if constexpr (std::is_same_v<Backend, cuda>) simt::reserve_stack();
  pool_ = pool;
  metadata_ = metadata;
  carve parts(metadata + header_bytes);
  allocator_ = Allocator(memory_range{pool, pool_end_}, parts);
  initialise(stream);
}

template <allocator Allocator, backend Backend>
void heap<Allocator, Backend>::initialise([[maybe_unused]] stream_type stream) {
  if constexpr (std::is_same_v<Backend, cpu>) {
    allocator_.initialise(0, 1);
  } else {
    launch<Backend>({512, 256}, detail::initialise_kernel<Allocator>{allocator_}, stream);
  }
  if constexpr (resizable_allocator<Allocator>)
    if (pool_size_ < pool_end_) pool_size_ = resize(pool_end_, pool_size_, stream);
}

// ---- size ---------------------------------------------------------------------------------------

template <allocator Allocator, backend Backend>
std::uint64_t heap<Allocator, Backend>::resize(std::uint64_t from, std::uint64_t to,
                                               [[maybe_unused]] stream_type stream) const {
  if constexpr (std::is_same_v<Backend, cpu>) {
    return allocator_.resize(from, to);
  } else {
    std::uint64_t* const out = &header()->result;
    launch<Backend>({1, 1}, detail::resize_kernel<Allocator>{allocator_, from, to, out}, stream);
    std::uint64_t size = 0;
    read_back(&size, out, sizeof size, stream);
    return size;
  }
}

template <allocator Allocator, backend Backend>
void heap<Allocator, Backend>::grow(bytes pool,
                                    stream_type stream) requires resizable_allocator<Allocator> {
  require_memory("grow");
  if (pool.value() <= pool_size_) return;
  if (pool.value() > pool_end_)
    throw error("a heap of " + to_text(pool_size_) + " can not grow to " + to_text(pool) +
                ": its maximum is " + to_text(pool_end_) +
                "; construct it with a larger {.max = ...}");
  // The allocator rounds down. Each round commits the missing bytes on top, twice as many as
  // before.
  for (std::uint64_t wanted = pool.value();; wanted += wanted - pool_size_) {
    owner_.growing.grow(std::min(wanted, pool_end_));
    pool_size_ = resize(pool_size_, std::min(owner_.growing.committed(), pool_end_), stream);
    if (pool_size_ >= pool.value() || owner_.growing.committed() >= pool_end_) return;
  }
}

template <allocator Allocator, backend Backend>
std::uint64_t heap<Allocator, Backend>::trim(stream_type stream) requires
    resizable_allocator<Allocator> {
  require_memory("trim");
  if (pool_size_ <= first_size_) return 0;
  const std::uint64_t before = owner_.growing.committed();
  const std::uint64_t last = resize(pool_size_, first_size_, stream);
  owner_.growing.shrink(last);
  pool_size_ = resize(last, std::min(owner_.growing.committed(), pool_end_), stream);
  return before - owner_.growing.committed();
}

template <allocator Allocator, backend Backend>
bool heap<Allocator, Backend>::adapt(stream_type stream) requires resizable_allocator<Allocator> {
  require_memory("adapt");
  const heap_statistics s = statistics(stream);
  const std::uint64_t before = pool_size_;
  if (s.wants_growth) {
    const auto scaled =
        static_cast<std::uint64_t>(static_cast<double>(pool_size_) * growth_.factor);
    const std::uint64_t wanted = std::max(scaled, saturating_add(pool_size_, s.failures.largest));
    grow(std::min(wanted, pool_end_), stream);
  }
  adapted_failures_ = s.failures.count;
  return pool_size_ > before;
}

template <allocator Allocator, backend Backend>
bool heap<Allocator, Backend>::is_short(const heap_statistics& s) const {
  if (growth_.policy == resizing::manual || pool_size_ >= pool_end_ ||
      owner_.growing.committed() >= pool_end_)
    return false;
  const auto least = growth_.least_free * static_cast<double>(pool_size_);
  return s.failures.count > adapted_failures_ ||
         (s.free_bytes && static_cast<double>(*s.free_bytes) < least);
}

// ---- statistics and checks ----------------------------------------------------------------------

template <allocator Allocator, backend Backend>
heap_statistics heap<Allocator, Backend>::statistics(stream_type stream) const {
  require_memory("statistics");
  const auto read = [](const Allocator& a) {
    heap_statistics all = a.statistics();
    if constexpr (mapping_allocator<Allocator>) {
      all.piece_bytes.resize(piece_kinds);
      all.address_range_bytes = 0;
      a.visit_pieces([&](const pool_piece& p) {
        all.piece_bytes[static_cast<unsigned>(p.kind)] += p.size;
        if (p.live != 0 || p.kind == piece_kind::used) all.address_range_bytes = p.offset + p.size;
      });
    }
    return all;
  };
  heap_statistics s = on_host(read, stream);
  s.metadata_bytes = metadata_size_;
  s.max_pool_bytes = pool_end_;
  s.failures = failures(stream);
  s.wants_growth = is_short(s);
  return s;
}

template <allocator Allocator, backend Backend>
std::string heap<Allocator, Backend>::describe_failures(stream_type stream) const {
  const heap_statistics s = statistics(stream);
  const auto known = [](const char* before, std::optional<std::uint64_t> n, const char* after) {
    return n ? before + to_text(bytes(*n)) + after : std::string();
  };
  std::string text = std::to_string(s.failures.count) + " allocations failed, the first of " +
                     to_text(bytes(s.failures.first)) + ", the largest of " +
                     to_text(bytes(s.failures.largest)) + ": the pool has " +
                     to_text(bytes(s.pool_bytes));
  if (s.live_blocks) text += ", " + std::to_string(*s.live_blocks) + " blocks are live";
  text += known(", ", s.live_bytes, " in use") +
          known(", the largest free piece has ", s.largest_free, "");
  if (s.max_pool_bytes > s.pool_bytes)
    text += "; adapt() or grow() can make it " + to_text(bytes(s.max_pool_bytes));
  else
    text += "; make the heap larger, or free blocks earlier";
  return text;
}

template <allocator Allocator, backend Backend>
void heap<Allocator, Backend>::check(stream_type stream) const {
  require_memory("check");
  if (const std::string problem = check_invariants(stream); !problem.empty())
    throw heap_corrupted(problem);
  if (failures(stream).count != 0) throw allocation_failed(describe_failures(stream));
}

template <allocator Allocator, backend Backend>
void heap<Allocator, Backend>::check_empty(stream_type stream) const {
  require_memory("check_empty");
  check(stream);
  const heap_statistics s = statistics(stream);
  const bool blocks = s.live_blocks.value_or(0) != 0;
  if (!blocks && (s.live_blocks || s.live_bytes.value_or(0) == 0)) return;
  throw blocks_leaked(
      "not freed: " + (s.live_blocks ? std::to_string(*s.live_blocks) + " blocks" : "") +
      (s.live_bytes ? (s.live_blocks ? ", " : "") + to_text(bytes(*s.live_bytes)) : ""));
}

template <allocator Allocator, backend Backend>
void heap<Allocator, Backend>::inspect([[maybe_unused]] stream_type stream) const {
  require_memory("inspect");
  if constexpr (inspecting_allocator<Allocator>) {
    if constexpr (std::is_same_v<Backend, cpu>) {
      allocator_.inspect(0, 1);
    } else {
      launch<Backend>({512, 256}, detail::inspect_kernel<Allocator>{allocator_}, stream);
    }
  }
}

// ---- blocks, from the host ----------------------------------------------------------------------

template <allocator Allocator, backend Backend>
void* heap<Allocator, Backend>::allocate(std::size_t n, [[maybe_unused]] stream_type stream) const {
  require_memory("allocate");
  if constexpr (std::is_same_v<Backend, cpu>) {
    return ref().malloc(n);
  } else {
    std::uint64_t* const out = &header()->result;
    launch<Backend>({1, 1}, detail::malloc_kernel<ref_type>{ref(), n, out}, stream);
    std::uint64_t address = 0;
    read_back(&address, out, sizeof address, stream);
    return reinterpret_cast<void*>(address);
  }
}

template <allocator Allocator, backend Backend>
void heap<Allocator, Backend>::deallocate(
    void* p, [[maybe_unused]] stream_type stream) const requires freeing_allocator<Allocator> {
  require_memory("deallocate");
  if constexpr (std::is_same_v<Backend, cpu>) {
    allocator_.free(p);
  } else {
    launch<Backend>({1, 1}, detail::free_kernel<Allocator>{allocator_, p}, stream);
  }
}

template <allocator Allocator, backend Backend>
void heap<Allocator, Backend>::drain([[maybe_unused]] stream_type stream) const requires
    draining_allocator<Allocator> {
  require_memory("drain");
  if constexpr (std::is_same_v<Backend, cpu>) {
    allocator_.drain();
  } else {
    launch<Backend>({1, 1}, detail::drain_kernel<Allocator>{allocator_}, stream);
  }
}

template <allocator Allocator, backend Backend>
void heap<Allocator, Backend>::check_inside(const void* block, std::uint64_t n) const {
  if (!can.owns_pool || n == 0) return;
  const auto* const first = static_cast<const std::byte*>(block);
  const memory_range all = pool();
  if (all.contains(first) && n <= static_cast<std::uint64_t>(all.begin + all.size - first)) return;
  throw error("copying " + to_text(bytes(n)) + " failed: the bytes do not lie in the pool of " +
              to_text(bytes(all.size)) + "; pass a block of this heap and at most its size");
}

/// cudaMemcpy does not accept blocks of CUDA's device heap (system_heap): a kernel copies them to
/// and from a buffer.
template <allocator Allocator, backend Backend>
void heap<Allocator, Backend>::copy_in(void* block, const void* from, std::uint64_t n,
                                       stream_type stream) const {
  require_memory("copy_to");
  check_inside(block, n);
  if constexpr (std::is_same_v<Backend, cpu> || can.owns_pool) {
    simt::memory<Backend>::copy(block, from, n, stream);
    if (!stream.names_stream()) stream.synchronize();
  } else if (n != 0) {
    simt::array<std::byte, Backend> buffer(n, stream);
    simt::memory<Backend>::copy(buffer.data(), from, n, stream);
    auto* const to = static_cast<std::byte*>(block);
    launch<Backend>({64, 256}, detail::copy_kernel{to, buffer.data(), n}, stream);
    stream.synchronize();  // before the buffer ends
  }
}

template <allocator Allocator, backend Backend>
void heap<Allocator, Backend>::copy_out(void* to, const void* block, std::uint64_t n,
                                        stream_type stream) const {
  require_memory("copy_from");
  check_inside(block, n);
  if constexpr (std::is_same_v<Backend, cpu> || can.owns_pool) {
    read_back(to, block, n, stream);
  } else if (n != 0) {
    simt::array<std::byte, Backend> buffer(n, stream);
    const auto* const from = static_cast<const std::byte*>(block);
    launch<Backend>({64, 256}, detail::copy_kernel{buffer.data(), from, n}, stream);
    read_back(to, buffer.data(), n, stream);
  }
}

}  // namespace quarry
