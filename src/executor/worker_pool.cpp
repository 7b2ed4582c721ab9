// SPDX-License-Identifier: Apache-2.0
#include "executor/worker_pool.hpp"

#include <quarry/simt/detail/cpu_library.hpp>

#include <algorithm>

namespace quarry::simt::detail {

worker_pool& worker_pool::instance() {
  static worker_pool pool;
  return pool;
}

executor& worker_pool::executor_of_this_thread() {
  thread_local executor e;
  return e;
}

void worker_pool::run(const job& work, unsigned workers, std::uint64_t step_limit) {
  if (executor_interface::current() != nullptr)
    throw kernel_error("a lane can not launch a kernel");
  if (workers == 0) workers = needs_quarry_cpu::default_workers();
  workers = std::min(workers, work.blocks);
  std::lock_guard one_grid(launching_);
  task now{work, step_limit};
  if (workers > 1) {
    std::lock_guard lock(mutex_);
    while (threads_.size() + 1 < workers)
      threads_.emplace_back([this, n = threads_.size()] { serve(n); });
    task_ = &now;
    wanted_ = workers - 1;
    busy_ = workers - 1;
    ++round_;
    wake_.notify_all();
  }
  run_blocks(now);
  if (workers > 1) {
    std::unique_lock lock(mutex_);
    done_.wait(lock, [&] { return busy_ == 0; });
    task_ = nullptr;
  }
  if (now.error) std::rethrow_exception(now.error);
}

worker_pool::~worker_pool() {
  {
    std::lock_guard lock(mutex_);
    closing_ = true;
    wake_.notify_all();
  }
  for (std::thread& t : threads_) t.join();
}

void worker_pool::run_blocks(task& now) {
  executor& e = executor_of_this_thread();
  try {
    for (;;) {
      if (now.stop.load(std::memory_order_relaxed)) return;
      const std::uint32_t block = now.next_block.fetch_add(1, std::memory_order_relaxed);
      if (block >= now.work.blocks) return;
      e.run_block(now.work, block, now.step_limit, &now.stop);
    }
  } catch (...) {
    std::lock_guard lock(now.guard);
    if (!now.error) now.error = std::current_exception();
    now.stop.store(true, std::memory_order_relaxed);
  }
}

void worker_pool::serve(std::size_t number) {
  std::uint64_t seen = 0;
  for (;;) {
    std::unique_lock lock(mutex_);
    wake_.wait(lock, [&] { return closing_ || (round_ != seen && task_ != nullptr); });
    if (closing_) return;
    seen = round_;
    if (number >= wanted_) continue;
    task& now = *task_;
    lock.unlock();
    run_blocks(now);
    lock.lock();
    if (--busy_ == 0) done_.notify_all();
  }
}

}  // namespace quarry::simt::detail
