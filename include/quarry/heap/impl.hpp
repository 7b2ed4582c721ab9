// SPDX-License-Identifier: Apache-2.0
#pragma once
/// The bodies of heap.hpp, and the kernels by which the host reaches a heap on a GPU.

#include <quarry/heap/heap.hpp>

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
  void** out;
  QUARRY_DEVICE void operator()() const { *out = heap.malloc(n); }
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

// ---- memory ------------------------------------------------------------------------------------------

template <allocator Allocator, backend Backend>
heap<Allocator, Backend>::heap(bytes pool)
    : pool_size_(pool.value()), pool_end_(pool_size_), metadata_size_(0), first_size_(pool_size_) {
  check_size(pool_size_);
  metadata_size_ = metadata_for(pool_end_);
  owner_.pool = simt::array<std::byte, Backend>(can.owns_pool ? pool_size_ : 0);
  owner_.metadata = simt::array<std::byte, Backend>(metadata_size_);
  start(owner_.pool.data(), owner_.metadata.data());
}

template <allocator Allocator, backend Backend>
heap<Allocator, Backend>::heap(bytes pool, const growth& g) requires resizable_allocator<Allocator>
    : pool_end_(std::max(pool, g.max).value()), growth_(g) {
  check_size(pool.value());
  metadata_size_ = metadata_for(pool_end_);
  owner_.growing = growing_memory<Backend>(pool_end_);
  owner_.growing.grow(pool.value());
  owner_.metadata = simt::array<std::byte, Backend>(metadata_size_);
  pool_size_ = std::min(owner_.growing.committed(), pool_end_);
  start(owner_.growing.data(), owner_.metadata.data());
  grow(pool);  // the allocator may have rounded down
  first_size_ = pool_size_;
}

template <allocator Allocator, backend Backend>
heap<Allocator, Backend>::heap(void* memory, bytes size) {
  const auto first = reinterpret_cast<std::uintptr_t>(memory);
  const std::uint64_t skipped = align_up(first, carve::alignment) - first;
  const std::uint64_t usable = size.value() > skipped ? size.value() - skipped : 0;
  // A smaller pool may have more metadata, if the allocator cuts it finer.
  for (std::uint64_t wanted = metadata_for(usable); wanted > metadata_size_;
       wanted = metadata_for(pool_size_)) {
    metadata_size_ = align_up(wanted, carve::alignment);
    pool_size_ =
        usable > metadata_size_ ? align_down(usable - metadata_size_, carve::alignment) : 0;
  }
  pool_end_ = first_size_ = pool_size_;
  if (memory == nullptr) throw error("a heap can not live at the null pointer");
  check_size(pool_size_);
  auto* pool = static_cast<std::byte*>(memory) + skipped;
  simt::memory<Backend>::zero(pool + pool_size_, metadata_size_);
  start(pool, pool + pool_size_);
}

template <allocator Allocator, backend Backend>
void heap<Allocator, Backend>::check_size(std::uint64_t pool) {
  if (pool >= can.min_pool) return;
  throw error("a heap of " + to_text(pool) +
              " is too small: this allocator needs a pool of at least " + to_text(can.min_pool));
}

template <allocator Allocator, backend Backend>
void heap<Allocator, Backend>::start(std::byte* pool, std::byte* metadata) {
  if constexpr (requires { Allocator::template reserve<Backend>(pool_end_); })
    Allocator::template reserve<Backend>(pool_end_);
  pool_ = pool;
  metadata_ = metadata;
  carve parts(metadata + book_bytes);
  allocator_ = Allocator(memory_range{pool, pool_end_}, parts);
  initialise();
}

template <allocator Allocator, backend Backend>
void heap<Allocator, Backend>::initialise() {
  if constexpr (std::is_same_v<Backend, cpu>) {
    allocator_.initialise(0, 1);
  } else {
    launch<Backend>({512, 256}, detail::initialise_kernel<Allocator>{allocator_});
  }
  if constexpr (resizable_allocator<Allocator>)
    if (pool_size_ < pool_end_) pool_size_ = resize(pool_end_, pool_size_);
}

// ---- size --------------------------------------------------------------------------------------------

template <allocator Allocator, backend Backend>
std::uint64_t heap<Allocator, Backend>::resize(std::uint64_t from, std::uint64_t to) const {
  if constexpr (std::is_same_v<Backend, cpu>) {
    return allocator_.resize(from, to);
  } else {
    simt::array<std::uint64_t, Backend> out(1);
    launch<Backend>({1, 1}, detail::resize_kernel<Allocator>{allocator_, from, to, out.data()});
    return out.to_host()[0];
  }
}

template <allocator Allocator, backend Backend>
void heap<Allocator, Backend>::grow(bytes pool) requires resizable_allocator<Allocator> {
  if (pool.value() <= pool_size_) return;
  if (pool.value() > pool_end_)
    throw error("a heap of " + to_text(pool_size_) + " can not grow to " + to_text(pool) +
                ": it was made for " + to_text(pool_end_) + " at most; make it with {.max = …}");
  // The allocator rounds down: what is missing is asked for on top, twice as much each time.
  for (std::uint64_t wanted = pool.value();; wanted += wanted - pool_size_) {
    owner_.growing.grow(std::min(wanted, pool_end_));
    pool_size_ = resize(pool_size_, std::min(owner_.growing.committed(), pool_end_));
    if (pool_size_ >= pool.value() || owner_.growing.committed() >= pool_end_) return;
  }
}

template <allocator Allocator, backend Backend>
std::uint64_t heap<Allocator, Backend>::trim() requires resizable_allocator<Allocator> {
  if (pool_size_ <= first_size_) return 0;
  const std::uint64_t before = owner_.growing.committed();
  const std::uint64_t last = resize(pool_size_, first_size_);
  owner_.growing.shrink(last);
  pool_size_ = resize(last, std::min(owner_.growing.committed(), pool_end_));
  return before - owner_.growing.committed();
}

template <allocator Allocator, backend Backend>
bool heap<Allocator, Backend>::adapt() requires resizable_allocator<Allocator> {
  const heap_statistics s = statistics();
  const std::uint64_t before = pool_size_;
  if (s.wants_growth) {
    const auto scaled =
        static_cast<std::uint64_t>(static_cast<double>(pool_size_) * growth_.factor);
    const std::uint64_t wanted = std::max(scaled, saturating_add(pool_size_, s.refused.largest));
    grow(std::min(wanted, pool_end_));
  }
  answered_ = s.refused.count;
  return pool_size_ > before;
}

template <allocator Allocator, backend Backend>
bool heap<Allocator, Backend>::is_short(const heap_statistics& s) const {
  if (growth_.policy == resizing::manual || pool_size_ >= pool_end_ ||
      owner_.growing.committed() >= pool_end_)
    return false;
  const auto least = growth_.least_free * static_cast<double>(pool_size_);
  return s.refused.count > answered_ ||
         (s.free_bytes && static_cast<double>(*s.free_bytes) < least);
}

// ---- what it says about itself ------------------------------------------------------------------------

template <allocator Allocator, backend Backend>
heap_statistics heap<Allocator, Backend>::statistics() const {
  heap_statistics s = on_host([](const Allocator& a) {
    heap_statistics all = a.statistics();
    if constexpr (mapping_allocator<Allocator>) {
      all.piece_bytes.resize(piece_kinds);
      all.extent_bytes = 0;
      a.visit_pieces([&](const pool_piece& p) {
        all.piece_bytes[static_cast<unsigned>(p.kind)] += p.size;
        if (p.live != 0 || p.kind == piece_kind::used) all.extent_bytes = p.offset + p.size;
      });
    }
    return all;
  });
  s.metadata_bytes = metadata_size_;
  s.max_pool_bytes = pool_end_;
  s.refused = refusals();
  s.wants_growth = is_short(s);
  return s;
}

template <allocator Allocator, backend Backend>
std::string heap<Allocator, Backend>::describe_refusals() const {
  const heap_statistics s = statistics();
  const auto known = [](const char* before, std::optional<std::uint64_t> n, const char* after) {
    return n ? before + to_text(bytes(*n)) + after : std::string();
  };
  std::string text = std::to_string(s.refused.count) + " requests were refused, the first for " +
                     to_text(bytes(s.refused.first)) + ", the largest for " +
                     to_text(bytes(s.refused.largest)) + ": the heap has " +
                     to_text(bytes(s.pool_bytes));
  if (s.live_blocks) text += ", " + std::to_string(*s.live_blocks) + " blocks are live";
  text += known(", ", s.live_bytes, " in use") +
          known(", the largest free piece has ", s.largest_free, "");
  if (s.max_pool_bytes > s.pool_bytes)
    text += "; it can grow to " + to_text(bytes(s.max_pool_bytes));
  return text;
}

template <allocator Allocator, backend Backend>
void heap<Allocator, Backend>::check() const {
  if (const std::string problem = check_invariants(); !problem.empty())
    throw heap_corrupted(problem);
  if (refusals().count != 0) throw requests_refused(describe_refusals());
}

template <allocator Allocator, backend Backend>
void heap<Allocator, Backend>::check_empty() const {
  check();
  const heap_statistics s = statistics();
  const bool blocks = s.live_blocks.value_or(0) != 0;
  if (!blocks && (s.live_blocks || s.live_bytes.value_or(0) == 0)) return;
  throw blocks_leaked(
      "blocks were not freed: " +
      (s.live_blocks ? std::to_string(*s.live_blocks) + " of them" : "") +
      (s.live_bytes ? (s.live_blocks ? ", " : "") + to_text(bytes(*s.live_bytes)) : ""));
}

template <allocator Allocator, backend Backend>
void heap<Allocator, Backend>::inspect() const {
  if constexpr (inspecting_allocator<Allocator>) {
    if constexpr (std::is_same_v<Backend, cpu>) {
      allocator_.inspect(0, 1);
    } else {
      launch<Backend>({512, 256}, detail::inspect_kernel<Allocator>{allocator_});
    }
  }
}

// ---- blocks, from the host ----------------------------------------------------------------------------

template <allocator Allocator, backend Backend>
void* heap<Allocator, Backend>::malloc(std::size_t n) const {
  if constexpr (std::is_same_v<Backend, cpu>) {
    return ref().malloc(n);
  } else {
    simt::array<void*, Backend> out(1);
    launch<Backend>({1, 1}, detail::malloc_kernel<ref_type>{ref(), n, out.data()});
    return out.to_host()[0];
  }
}

template <allocator Allocator, backend Backend>
void heap<Allocator, Backend>::free(void* p) const requires freeing_allocator<Allocator> {
  if constexpr (std::is_same_v<Backend, cpu>) {
    allocator_.free(p);
  } else {
    launch<Backend>({1, 1}, detail::free_kernel<Allocator>{allocator_, p});
  }
}

template <allocator Allocator, backend Backend>
void heap<Allocator, Backend>::drain() const requires draining_allocator<Allocator> {
  if constexpr (std::is_same_v<Backend, cpu>) {
    allocator_.drain();
  } else {
    launch<Backend>({1, 1}, detail::drain_kernel<Allocator>{allocator_});
  }
}

template <allocator Allocator, backend Backend>
void heap<Allocator, Backend>::check_inside(const void* block, std::uint64_t n) const {
  if (!can.owns_pool || n == 0) return;
  const auto* const first = static_cast<const std::byte*>(block);
  const memory_range all = pool();
  if (all.contains(first) && n <= static_cast<std::uint64_t>(all.begin + all.size - first)) return;
  throw error("a copy of " + to_text(bytes(n)) + " would leave the heap's pool of " +
              to_text(bytes(all.size)));
}

/// CUDA's own blocks are no memory to cudaMemcpy: a kernel copies them.
template <allocator Allocator, backend Backend>
void heap<Allocator, Backend>::copy_in(void* block, const void* from, std::uint64_t n) const {
  check_inside(block, n);
  if constexpr (std::is_same_v<Backend, cpu> || can.owns_pool) {
    simt::memory<Backend>::copy(block, from, n);
  } else if (n != 0) {
    simt::array<std::byte, Backend> there(n);
    simt::memory<Backend>::copy(there.data(), from, n);
    launch<Backend>({64, 256},
                    detail::copy_kernel{static_cast<std::byte*>(block), there.data(), n});
  }
}

template <allocator Allocator, backend Backend>
void heap<Allocator, Backend>::copy_out(void* to, const void* block, std::uint64_t n) const {
  check_inside(block, n);
  if constexpr (std::is_same_v<Backend, cpu> || can.owns_pool) {
    simt::memory<Backend>::copy(to, block, n);
  } else if (n != 0) {
    simt::array<std::byte, Backend> there(n);
    launch<Backend>({64, 256},
                    detail::copy_kernel{there.data(), static_cast<const std::byte*>(block), n});
    simt::memory<Backend>::copy(to, there.data(), n);
  }
}

}  // namespace quarry
