// SPDX-License-Identifier: Apache-2.0
#pragma once
/// worker_memory: a worker's memory over the cluster's address space, and its exchange with other
/// workers of the host without a copy.
///
/// Each worker of a host has a memory file (memfd) as long as the address space. It is mapped so
/// that an address has the same offset in all files; the kernel allocates pages at the first
/// access. A hand-over of a range from A to B exchanges what the two map there:
///
///             before                 after
///   A         | A  A  A  A |         | A  B  B  A |        B reads what A wrote;
///   B         | B  B  B  B |         | B  A  A  B |        A has B's pages, which are empty
///
/// Invariant: at every address, the workers of a host map their files as a permutation. No page is
/// visible to two workers, none is lost, and a worker can hand over everything that it owns.
/// A send between workers of a host reads from the sender's file (copy_shared).
/// A hand-over takes three steps, so that the receiver can decline: the sender names its file
/// ranges (export_ranges), the receiver maps them and names its own in return (map_shared), the
/// sender maps those (map_exchanged).
///
/// Protection: with `protect`, the sender cannot access what it handed over until it owns the range
/// again (enable_access); an access ends the program. Each interval of a file costs the kernel a
/// mapping; beyond max_mappings, hand-overs copy instead. Files are opened through /proc, which
/// Linux permits for processes of the same user on the same host. If that fails, or for the only
/// worker of a host, the memory is anonymous and hand-overs copy.

#include "cluster/memory/address_space.hpp"
#include "cluster/memory/interval_map.hpp"
#include "cluster/protocol/bodies.hpp"

#include <quarry/region/packing.hpp>

#include <cstdint>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

namespace quarry::cluster::detail {

class worker_memory {
 public:
  static constexpr std::size_t system_page = 4096;
  static constexpr std::size_t max_mappings = 20'000;  // Linux allows 65,530 by default.

  /// How other processes find the file of a worker.
  struct file_id {
    std::uint64_t owner = no_node;
    std::uint64_t process = 0;
    std::uint64_t descriptor = 0;
    std::uint64_t device = 0;  // device and inode identify the file
    std::uint64_t inode = 0;
  };

  /// Maps memory over the address space. shared: in a file, if the system supports it. Throws
  /// out_of_memory.
  worker_memory(const address_space& space, node_id self, bool shared, bool protect = false);
  worker_memory(const worker_memory&) = delete;
  worker_memory& operator=(const worker_memory&) = delete;
  ~worker_memory();

  bool is_shared() const { return !files_.empty(); }
  file_id own_file() const;
  /// Opens the files of other workers, all or none. Returns whether all could be opened.
  bool open_files(std::span<const file_id> files);
  void close_other_files();
  bool shares_with(node_id other) const { return other != self_ && files_.contains(other); }

  // ---- exchange with other workers; ranges of whole system pages ----
  /// The file ranges behind the address ranges. Nothing: they cannot be shared.
  std::optional<std::vector<file_range>> export_ranges(std::span<const packed_range> ranges) const;
  /// Receiver of a hand-over: maps the sender's file ranges, empties its own pages there and
  /// returns their file ranges. Nothing: it cannot, and nothing has changed.
  std::optional<std::vector<file_range>> map_shared(std::span<const file_range> files,
                                                    std::span<const packed_range> ranges);
  /// Sender of a hand-over whose receiver has mapped the ranges: maps the receiver's file ranges.
  void map_exchanged(std::span<const file_range> files, std::span<const packed_range> ranges);
  /// Sender of a hand-over whose receiver has a copy: frees the memory.
  void give_up(std::span<const packed_range> ranges);
  /// Reads from the sender's files into the ranges: one copy, where a transfer through MPI makes
  /// two. Returns false if it cannot; the contents of the ranges are then undefined.
  bool copy_shared(std::span<const file_range> files, std::span<const packed_range> ranges);

  // ---- access ----
  /// This worker owns the range again: access is enabled.
  void enable_access(packed_range range);
  /// Whether a part of the range was handed over and is protected.
  bool is_protected(packed_range range) const;
  /// Frees the memory of the whole system pages of the range; they read as zeros.
  void discard(packed_range range);

  /// The number of mappings with different files or protection.
  std::size_t mappings() const { return mappings_.size(); }

 private:
  struct mapping {
    node_id file;
    bool is_protected;
    friend bool operator==(mapping, mapping) = default;
  };

  bool use_anonymous() const;
  bool use_file();
  bool open_file(const file_id& f);
  std::vector<file_range> files_of(std::span<const packed_range> ranges) const;
  bool are_whole_pages(std::span<const packed_range> ranges) const;
  bool match(std::span<const file_range> files, std::span<const packed_range> ranges) const;
  void map_all(std::span<const file_range> files, bool protect);
  bool try_map(std::uint64_t begin, std::uint64_t end, mapping m);
  void exclude_from_core_dumps(std::uint64_t begin, std::uint64_t end) const;
  void set_rights(std::uint64_t begin, std::uint64_t end, int rights) const;
  [[noreturn]] void fail(const char* what) const;
  void set_protected(std::span<const packed_range> ranges, bool is_protected);
  void record(std::uint64_t begin, std::uint64_t end, mapping m);
  template <class F>
  void for_each(std::span<const packed_range> ranges, F f) const {
    for (const packed_range& r : ranges)
      mappings_.for_each(offset(r.address), offset(r.address) + r.size, f);
  }
  std::uint64_t offset(const std::byte* p) const {
    return static_cast<std::uint64_t>(p - space_->base());
  }
  /// The smallest range of whole system pages that covers r.
  packed_range pages_around(packed_range r) const;
  /// The largest range of whole system pages inside r.
  packed_range pages_inside(packed_range r) const;

  const address_space* space_;
  node_id self_;
  bool protect_;
  std::unordered_map<node_id, int> files_;  // descriptors of the host's workers, including this one
  interval_map<mapping> mappings_;          // by offset
  std::uint64_t protected_bytes_ = 0;
};

}  // namespace quarry::cluster::detail
