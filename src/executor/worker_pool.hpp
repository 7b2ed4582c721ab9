// SPDX-License-Identifier: Apache-2.0
#pragma once
/// worker_pool: the threads that run the blocks of a grid on the CPU.
///
/// The launching thread is one of the workers. Workers take the next block by an atomic counter,
/// and run it from its beginning to its end. Threads, executors and fibers live until the process
/// ends, so that only the first launch pays for them. One grid runs at a time; concurrent launches
/// of several host threads wait for each other.

#include "executor/executor.hpp"

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

namespace quarry::simt::detail {

class worker_pool {
 public:
  static worker_pool& instance();
  /// Returns: the executor of the calling thread.
  static executor& executor_of_this_thread();

  /// As needs_quarry_cpu::run_grid().
  void run(const job& work, unsigned workers, std::uint64_t step_limit);

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
  ~worker_pool();

  static void run_blocks(task& now);
  void serve(std::size_t number);

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

}  // namespace quarry::simt::detail
