// SPDX-License-Identifier: Apache-2.0
#pragma once
/// worker_pool: the threads that run the blocks of a grid on the CPU.
///
/// The launching thread works too. A block stays on its worker from beginning to end; workers take
/// the next block by an atomic counter. Threads, executors and fibers live as long as the process, so
/// that only the first launch pays for them. One grid runs at a time; launches from several host
/// threads queue.

#include <quarry/simt/executor/executor.hpp>

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <cstdlib>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

namespace quarry::simt::exec {

class worker_pool {
 public:
  static worker_pool& instance() {
    static worker_pool pool;
    return pool;
  }

  /// Runs the grid to its end on `workers` threads (0: as many as QUARRY_WORKERS or the machine
  /// says). Throws what the first failing block threw, after the others have stopped.
  void run(const job& work, unsigned workers, std::uint64_t step_limit) {
    if (executor::here() != nullptr) throw kernel_error("a kernel can not be launched from a lane");
    if (workers == 0) workers = default_workers();
    if (workers > work.blocks) workers = work.blocks;
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
    help(now);
    if (workers > 1) {
      std::unique_lock lock(mutex_);
      done_.wait(lock, [&] { return busy_ == 0; });
      task_ = nullptr;
    }
    if (now.error) std::rethrow_exception(now.error);
  }

  static unsigned default_workers() {
    if (const char* text = std::getenv("QUARRY_WORKERS")) {
      const int n = std::atoi(text);
      if (n > 0) return static_cast<unsigned>(n);
    }
    const unsigned n = std::thread::hardware_concurrency();
    return n == 0 ? 1 : n;
  }

  /// The calling thread's executor.
  static executor& mine() {
    thread_local executor e;
    return e;
  }

  worker_pool(const worker_pool&) = delete;
  worker_pool& operator=(const worker_pool&) = delete;

 private:
  struct task {
    job work;
    std::uint64_t step_limit;
    std::atomic<std::uint32_t> next_block{0};
    std::atomic<bool> stop{false};
    std::mutex guard{};
    std::exception_ptr error{};
  };

  worker_pool() = default;
  ~worker_pool() {
    {
      std::lock_guard lock(mutex_);
      closing_ = true;
      wake_.notify_all();
    }
    for (std::thread& t : threads_) t.join();
  }

  static void help(task& now) {
    executor& e = mine();
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

  void serve(std::size_t number) {
    std::uint64_t seen = 0;
    for (;;) {
      std::unique_lock lock(mutex_);
      wake_.wait(lock, [&] { return closing_ || (round_ != seen && task_ != nullptr); });
      if (closing_) return;
      seen = round_;
      if (number >= wanted_) continue;
      task& now = *task_;
      lock.unlock();
      help(now);
      lock.lock();
      if (--busy_ == 0) done_.notify_all();
    }
  }

  std::mutex launching_;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::condition_variable done_;
  std::vector<std::thread> threads_;
  task* task_ = nullptr;
  std::size_t wanted_ = 0;
  std::size_t busy_ = 0;
  std::uint64_t round_ = 0;
  bool closing_ = false;
};

}  // namespace quarry::simt::exec
