// SPDX-License-Identifier: Apache-2.0
#pragma once
/// trial_runner: runs trials of one allocator, each in a sandbox in its initial state, and checks
/// them.
///
///   reset → warm-up (allocators that overwrite) → script under the explorer → guards, invariants
///         → free the live blocks, drain → invariants, statistics → refill (one script in n)
///
/// The refill detects leaks. After all blocks are freed, the pool must serve as many blocks of the
/// smallest size as in its initial state, at distinct addresses. All device code runs under the
/// explorer with a step limit, so that a trial always ends; the phases outside the script run as a
/// grid of one lane. Layers that retain freed blocks (`drain`) release them before the refill:
/// blocks that are allocated around retained ones may fragment the pool, and blocks of the system
/// heap would leak when the sandbox is reset.

#include <quarry/check/oracle.hpp>
#include <quarry/check/sandbox.hpp>
#include <quarry/check/trace.hpp>
#include <quarry/check/trial.hpp>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace quarry {

struct script_kernel;

class trial_runner {
 public:
  /// `paint_hidden`: see shadow_heap.
  explicit trial_runner(const sandbox_maker& subject, bool paint_hidden = false)
      : subject_(subject), paint_hidden_(paint_hidden) {}

  simt::outcome run(const trial& t, trace* out = nullptr);

  /// Effects: later scripts call `tracer` after each access to shared memory.
  void trace_steps(std::function<void(const simt::step&)> tracer);

  // The state of the last trial.
  bool failed_in_script() const { return failed_in_script_; }  // not in the phases around it
  const allocation_script& script() const { return script_; }
  const shadow_heap& shadow() const { return shadow_; }
  memory_range pool() const { return current_->memory->pool(); }
  const carve& metadata() const { return current_->memory->metadata(); }

 private:
  struct sized_sandbox {
    std::unique_ptr<sandbox> memory;
    std::optional<std::uint64_t> initial_capacity;  // in blocks of the smallest size
  };
  static constexpr std::uint64_t refill_limit = 2048;  // blocks; larger pools are refilled in part

  void make_sandboxes(std::uint64_t pool_bytes);
  void prepare(const trial& t, trace* out);
  simt::outcome run_script(const trial& t, trace* out);
  simt::outcome run_sequentially(const trial& t, const script_kernel& kernel);
  std::string check_after_script(const trial& t, trace* out);
  std::string check_integrity(const char* when) const;
  std::string check_statistics() const;
  std::string refill(const trial& t);
  template <class Work>
  std::string run_one_lane(const trial& t, const char* what, const Work& work);
  std::uint64_t fill();
  std::string check_refill();

  sandbox_maker subject_;
  std::vector<sized_sandbox> sandboxes_;
  std::uint64_t largest_pool_ = 0;
  sized_sandbox* current_ = nullptr;  // of the last trial
  allocation_script script_;
  shadow_heap shadow_;
  simt::explorer explorer_;
  std::function<void(const simt::step&)> tracer_;
  bool paint_hidden_;
  bool failed_in_script_ = false;
  std::vector<std::uint32_t> order_;
  std::vector<const std::byte*> refilled_;
};

}  // namespace quarry
