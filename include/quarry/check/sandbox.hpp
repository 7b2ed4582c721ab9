// SPDX-License-Identifier: Apache-2.0
#pragma once
/// sandbox: an allocator under test, with its pool and metadata in host memory between guard zones.
///
///   | guard | pool | guard | metadata | guard |
///
/// check_guards() detects writes to a guard zone. reset() fills the pool with one byte value, so
/// that reads of memory that was never allocated give the same result in every run.
///
/// The base class hides the type of the allocator: the explorer and the cost ledger are compiled
/// once, in quarry::check, and call the allocator by virtual functions.

#include <quarry/core/allocator.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

namespace quarry {

class sandbox {
 public:
  sandbox(const sandbox&) = delete;
  sandbox& operator=(const sandbox&) = delete;
  virtual ~sandbox() = default;

  const abilities& can() const { return can_; }
  memory_range pool() const { return {memory_.get() + guard, pool_bytes_}; }
  const carve& metadata() const { return metadata_; }

  /// Effects: restores the initial state. `lanes` lanes call initialise(), one after the other.
  void reset(std::uint64_t lanes = 1) const;

  /// Returns: an empty string if the guard zones are intact, otherwise a description of the write.
  std::string check_guards() const;

  // Called by lanes.
  virtual void* malloc(std::size_t n) const = 0;
  virtual void free(void* p) const = 0;  // does nothing if the allocator frees no single block
  virtual void drain() const = 0;        // does nothing if the allocator retains no blocks

  // Called while no lane runs.
  virtual void inspect() const = 0;  // does nothing if the allocator has no inspect()
  virtual std::string check_invariants() const = 0;
  virtual heap_statistics statistics() const = 0;

 protected:
  sandbox(const abilities& can, std::uint64_t pool_bytes, std::uint64_t metadata_bytes);

  carve& layout() { return metadata_; }

 private:
  static constexpr std::uint64_t guard = carve::alignment;

  struct release {
    void operator()(std::byte* p) const;
  };

  virtual void initialise(std::uint64_t lane, std::uint64_t lanes) const = 0;
  bool intact(std::uint64_t first, std::uint64_t last) const;

  abilities can_;
  std::uint64_t pool_bytes_;
  std::uint64_t metadata_bytes_;
  std::uint64_t metadata_offset_;
  std::uint64_t bytes_;
  std::unique_ptr<std::byte[], release> memory_;
  carve metadata_;
};

template <allocator A>
class allocator_sandbox final : public sandbox {
 public:
  explicit allocator_sandbox(std::uint64_t pool_bytes)
      : sandbox(A::can, pool_bytes, metadata_bytes<A>(pool_bytes)), heap_(pool(), layout()) {}

  const A& heap() const { return heap_; }

  void* malloc(std::size_t n) const override { return heap_.malloc(n); }
  void free([[maybe_unused]] void* p) const override {
    if constexpr (A::can.frees_one) heap_.free(p);
  }
  void drain() const override {
    if constexpr (requires(const A a) { a.drain(); }) heap_.drain();
  }
  void inspect() const override {
    if constexpr (requires(const A a) { a.inspect(0, 1); }) heap_.inspect(0, 1);
  }
  std::string check_invariants() const override { return heap_.check_invariants(); }
  heap_statistics statistics() const override { return heap_.statistics(); }

 private:
  void initialise(std::uint64_t lane, std::uint64_t lanes) const override {
    heap_.initialise(lane, lanes);
  }

  A heap_;
};

/// An allocator as the explorer needs it: how to make a sandbox with a pool of a given size.
struct sandbox_maker {
  abilities can;
  std::unique_ptr<sandbox> (*make)(std::uint64_t pool_bytes);

  template <allocator A>
  static constexpr sandbox_maker of() {
    return {A::can, [](std::uint64_t pool_bytes) -> std::unique_ptr<sandbox> {
              return std::make_unique<allocator_sandbox<A>>(pool_bytes);
            }};
  }
};

}  // namespace quarry
