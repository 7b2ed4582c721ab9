// SPDX-License-Identifier: Apache-2.0
#pragma once
/// The results of the checked layer on the host: findings (one per kind of misuse), leaks (one per
/// block size), and their text.
///
/// The metadata has one record per kind: a count and the first case. The lane that raises the count
/// from 0 to 1 writes the case; the host reads it between kernels.
///
/// A lane is identified by its thread and block in the grid of its kernel. Calls from the host
/// between kernels are thread 0 of block 0.

#include <quarry/core/carve.hpp>
#include <quarry/core/config.hpp>
#include <quarry/simt/atomic.hpp>
#include <quarry/simt/ids.hpp>

#include <charconv>
#include <cstdint>
#include <iterator>
#include <optional>
#include <string>
#include <vector>

namespace quarry {

enum class misuse : std::uint32_t {
  double_free,
  foreign_pointer,   // a freed pointer that is not a block of this heap
  interior_pointer,  // a freed pointer into a block
  overrun,           // a write after the end of a block
  underrun,          // a write before the start of a block
  use_after_free,    // a write to a freed block
  registry_full,     // not a misuse: more blocks than the registry has slots
};
inline constexpr std::uint32_t misuse_kinds = 7;

/// A lane, identified by its position in the grid of its kernel.
struct caller {
  std::uint64_t thread = 0;  // in the grid
  std::uint32_t block = 0;

  friend bool operator==(const caller&, const caller&) = default;

  /// The calling lane as a word, never 0: block | block size | thread in the block.
  QUARRY_DEVICE static std::uint64_t here() {
    return std::uint64_t{simt::block_id()} << 22 | simt::block_size() << 11 | simt::thread_id();
  }
  static caller unpack(std::uint64_t word) {
    const std::uint64_t block = word >> 22;
    return {block * (word >> 11 & 2047) + (word & 2047), static_cast<std::uint32_t>(block)};
  }
};

/// A kind of misuse that was detected, and its first case.
struct finding {
  misuse kind{};
  std::uint64_t count = 0;  // number of cases
  // The lane that freed wrongly, that allocated the overwritten block, or that freed the block that
  // was written afterwards.
  caller lane;
  std::uint64_t size = 0;     // requested size of the block; 0 if the pointer belongs to no block
  std::uint64_t address = 0;  // of the block, or the freed pointer
  std::int64_t offset = 0;    // of the first overwritten byte, or of the interior pointer
  // The lane that freed or allocated the block before, or that detected the misuse.
  std::optional<caller> other;
};

/// The live blocks of one size.
struct leak {
  std::uint64_t size = 0;
  std::uint64_t count = 0;
  caller lane;  // the lane that allocated one of them, at `address`
  std::uint64_t address = 0;
};

/// The records of all findings, in the metadata.
class misuse_records {
 public:
  misuse_records() = default;
  explicit misuse_records(carve& metadata)
      : records_(metadata.take<record>("findings", misuse_kinds)) {}

  /// Counts a case and stores the first one. Lanes are words of caller::here(); 0: unknown.
  QUARRY_DEVICE void add(misuse kind, std::uint64_t address, std::uint64_t size,
                         std::uint64_t offset, std::uint64_t lane, std::uint64_t other) const {
    record& r = records_[static_cast<std::uint32_t>(kind)];
    if (word(r.count).fetch_add(1, simt::relaxed) != 0) return;
    word(r.address).store(address, simt::relaxed);
    word(r.size).store(size, simt::relaxed);
    word(r.offset).store(offset, simt::relaxed);
    word(r.lane).store(lane, simt::relaxed);
    word(r.other).store(other, simt::relaxed);
  }

  /// Returns the findings. On the host; requires quiescence.
  std::vector<finding> report() const {
    std::vector<finding> findings;
    for (std::uint32_t kind = 0; kind < misuse_kinds; ++kind) {
      const record& r = records_[kind];
      if (r.count == 0) continue;
      findings.push_back({static_cast<misuse>(kind),
                          r.count,
                          caller::unpack(r.lane),
                          r.size,
                          r.address,
                          static_cast<std::int64_t>(r.offset),
                          {}});
      if (r.other != 0) findings.back().other = caller::unpack(r.other);
    }
    return findings;
  }

 private:
  struct record {
    std::uint64_t count, address, size, offset, lane, other;
  };
  QUARRY_DEVICE static simt::atomic_ref<std::uint64_t> word(std::uint64_t& w) {
    return simt::atomic_ref<std::uint64_t>(w);
  }
  record* records_;
};

inline const char* name_of(misuse kind) {
  constexpr const char* names[] = {"double free", "foreign pointer", "interior pointer", "overrun",
                                   "underrun",    "use after free",  "registry full"};
  static_assert(std::size(names) == misuse_kinds);
  return names[static_cast<std::uint32_t>(kind)];
}

// ---- text --------------------------------------------------------------------------------------

inline std::string to_text(const caller& c) {
  return "thread " + std::to_string(c.thread) + " (block " + std::to_string(c.block) + ")";
}

namespace detail {
inline std::string address_text(std::uint64_t address) {
  char digits[16];
  return "0x" + std::string(digits, std::to_chars(digits, digits + 16, address, 16).ptr);
}
inline std::string block_text(std::uint64_t size, std::uint64_t address) {
  return std::to_string(size) + (size == 1 ? " byte at " : " bytes at ") + address_text(address);
}
}  // namespace detail

/// Returns a line such as "overrun, 1 time: byte 64, after the end of 64 bytes at 0x7f… of thread 5
/// (block 0), was written; detected by thread 5 (block 0)".
inline std::string to_text(const finding& f) {
  const std::string lane = to_text(f.lane);
  const std::string block = detail::block_text(f.size, f.address);
  const std::string byte = "byte " + std::to_string(f.offset < 0 ? -f.offset : f.offset);
  const std::string detected =
      f.other ? "; detected by " + to_text(*f.other) : "; detected between kernels";
  std::string text = name_of(f.kind);
  text += ", " + std::to_string(f.count) + (f.count == 1 ? " time: " : " times, the first: ");
  switch (f.kind) {
    case misuse::double_free:
      text += lane + " freed " + block;
      if (f.other) text += ", which " + to_text(*f.other) + " had freed";
      break;
    case misuse::foreign_pointer:
      text += lane + " freed " + detail::address_text(f.address) +
              ", which is not a block of this heap";
      break;
    case misuse::interior_pointer:
      text += lane + " freed " + byte + " of " + block;
      if (f.other) text += ", a block of " + to_text(*f.other);
      break;
    case misuse::overrun:
      text += byte + ", after the end of " + block + " of " + lane + ", was written" + detected;
      break;
    case misuse::underrun:
      text += "the " + byte + " before " + block + " of " + lane + " was written" + detected;
      break;
    case misuse::use_after_free:
      text += byte + " of " + block + " was written after " + lane + " had freed it" + detected;
      break;
    case misuse::registry_full:
      text += "no free slot for a block of " + std::to_string(f.size) + " bytes of " + lane +
              "; decrease checking::pool_per_block";
      break;
  }
  return text;
}

/// Returns one line per finding.
inline std::string to_text(const std::vector<finding>& findings) {
  std::string text;
  for (const finding& f : findings) text += to_text(f) + "\n";
  return text;
}
inline std::string to_text(const std::vector<leak>& leaks) {
  std::string text;
  for (const leak& l : leaks)
    text += std::to_string(l.count) + (l.count == 1 ? " block of " : " blocks of ") +
            std::to_string(l.size) + (l.size == 1 ? " byte" : " bytes") +
            (l.count == 1 ? "" : ", one") + " at " + detail::address_text(l.address) + " for " +
            to_text(l.lane) + "\n";
  return text;
}

}  // namespace quarry
