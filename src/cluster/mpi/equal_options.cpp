// SPDX-License-Identifier: Apache-2.0
#include "cluster/mpi/equal_options.hpp"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <cstdio>
#include <type_traits>

namespace quarry::cluster::detail {

namespace {

template <class T>
std::string text_of(T value) {
  if constexpr (std::is_same_v<T, bool>) {
    return value ? "true" : "false";
  } else if constexpr (std::is_enum_v<T>) {
    return std::to_string(static_cast<int>(value));
  } else {
    char text[32];
    return {text, std::to_chars(text, text + sizeof text, value).ptr};
  }
}

/// The members of an options structure, in order. The structured bindings below name all members
/// of a structure: a new member does not compile until it is compared.
struct option_list {
  named_values all;
  template <class T>
  void add(const char* name, T value) {
    all.emplace_back(name, text_of(value));
  }
};

/// The text of a list: every name and value ends with a zero.
std::string joined(const named_values& values) {
  std::string text;
  for (const auto& [name, value] : values) ((text += name) += '\0') += value + '\0';
  return text;
}
named_values split(const std::string& text) {
  named_values values;
  std::size_t at = 0;
  const auto next = [&] {
    const std::size_t end = text.find('\0', at);
    return text.substr(std::exchange(at, end + 1), end - at);
  };
  while (at < text.size()) {
    std::string name = next();
    values.emplace_back(std::move(name), next());
  }
  return values;
}

std::string or_not_given(const std::string& value) { return value.empty() ? "not given" : value; }

}  // namespace

named_values options_as_text(const run_options& options) {
  const auto& [tree, worker, scheduler, leak_handling, capacity, share_memory, protect,
               scheduler_timeout, status, transfers, arguments] = options;
  option_list list{arguments};
  const auto& [schedulers_each, workers_each] = tree;
  list.add("tree.schedulers_each", schedulers_each);
  list.add("tree.workers_each", workers_each);
  const auto& [leases, reports, worker_fault] = worker;
  list.add("worker.leases", leases);
  list.add("worker.reports", reports);
  list.add("worker.fault", worker_fault);
  const auto& [base, scheduler_capacity, tuning, scheduler_fault] = scheduler;
  const auto& [reserve_pages, low_pages, load_change, load_fraction] = tuning;
  list.add("scheduler.base", base);
  list.add("scheduler.capacity", scheduler_capacity);
  list.add("scheduler.reserve_pages", reserve_pages);
  list.add("scheduler.low_pages", low_pages);
  list.add("scheduler.load_change", load_change);
  list.add("scheduler.load_fraction", load_fraction);
  list.add("scheduler.fault", scheduler_fault);
  list.add("leaks", leak_handling);
  list.add("capacity", capacity);
  list.add("share_memory", share_memory);
  list.add("protect", protect);
  list.add("scheduler_timeout", scheduler_timeout);
  list.add("status", status);
  const auto& [max_part, min_alone, max_ranges] = transfers;
  list.add("transfers.max_part", max_part);
  list.add("transfers.min_alone", min_alone);
  list.add("transfers.max_ranges", max_ranges);
  return list.all;
}

std::optional<option_difference> differs_at(const named_values& first, const named_values& second) {
  const auto [a, b] = std::mismatch(first.begin(), first.end(), second.begin(), second.end());
  if (a == first.end() && b == second.end()) return {};
  if (b == second.end()) return option_difference{a->first, a->second, ""};
  if (a == first.end()) return option_difference{b->first, "", b->second};
  // Lists of different programs may have different names at one place.
  return option_difference{a->first, a->second, a->first == b->first ? b->second : ""};
}

bool options_are_equal(MPI_Comm world, const run_options& options) {
  int rank = 0, size = 0;
  MPI_Comm_rank(world, &rank);
  MPI_Comm_size(world, &size);
  const named_values mine = options_as_text(options);
  std::string text = joined(mine);
  auto length = static_cast<std::uint64_t>(text.size());
  MPI_Bcast(&length, 1, MPI_UINT64_T, 0, world);
  text.resize(length);
  MPI_Bcast(text.data(), static_cast<int>(length), MPI_CHAR, 0, world);
  const auto difference = rank == 0 ? std::nullopt : differs_at(split(text), mine);
  const int differs = difference ? rank : size;
  int lowest = size;
  MPI_Allreduce(&differs, &lowest, 1, MPI_INT, MPI_MIN, world);
  if (lowest == rank)
    std::fprintf(stderr,
                 "quarry: %s is %s on rank 0 and %s on rank %d; all ranks need the same options\n",
                 difference->name.c_str(), or_not_given(difference->first).c_str(),
                 or_not_given(difference->second).c_str(), rank);
  return lowest == size;
}

}  // namespace quarry::cluster::detail
