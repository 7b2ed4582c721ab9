// SPDX-License-Identifier: Apache-2.0
#pragma once
/// What the checked layer tells the host: findings (one for each kind of misuse), leaks (one for each
/// size), and both as text.
///
/// Each kind has a record in the metadata: a count and the first case. The lane that counts from 0 to 1 writes
/// the case; the host reads it between kernels.
///
/// A lane is named by its place in the grid of the kernel that it ran in. Calls from the host between
/// kernels are thread 0 of block 0.

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
  foreign_pointer,   // freed, but no block of this heap
  interior_pointer,  // freed, but inside a block
  overrun,           // bytes after a block were written
  underrun,          // bytes before it were
  use_after_free,    // a freed block was written
  registry_full,     // no misuse: there were more blocks than the layer can know
};
inline constexpr std::uint32_t misuse_kinds = 7;

/// A lane of some kernel.
struct caller {
  std::uint64_t thread = 0;  // in the grid
  std::uint32_t block = 0;

  friend bool operator==(const caller&, const caller&) = default;

  /// The running lane in one word, never 0: block | its size | thread in it.
  QUARRY_DEVICE static std::uint64_t here() {
    return std::uint64_t{simt::block_id()} << 22 | simt::block_size() << 11 | simt::thread_id();
  }
  static caller unpack(std::uint64_t word) {
    const std::uint64_t block = word >> 22;
    return {block * (word >> 11 & 2047) + (word & 2047), static_cast<std::uint32_t>(block)};
  }
};

/// A kind of misuse that happened, and its first case.
struct finding {
  misuse kind{};
  std::uint64_t count = 0;  // cases of this kind
  caller lane;  // who did it, as far as can be known: who freed wrongly, who had asked for
                // the damaged block, who had freed the block that was written
  std::uint64_t size = 0;       // of the block, as it was asked for; 0: of no block
  std::uint64_t address = 0;    // of the block; else the pointer that was freed
  std::int64_t offset = 0;      // where in the block: the first damaged byte, the interior pointer
  std::optional<caller> other;  // who had freed or asked for the block before, or who noticed
};

/// Blocks of one size that are live.
struct leak {
  std::uint64_t size = 0;
  std::uint64_t count = 0;
  caller lane;  // who asked for one of them, the one at
  std::uint64_t address = 0;
};

/// What was found, in the metadata.
class misuse_records {
 public:
  misuse_records() = default;
  explicit misuse_records(carve& metadata)
      : records_(metadata.take<record>("findings", misuse_kinds)) {}

  /// Lanes as caller::here() packs them; 0: nobody.
  QUARRY_DEVICE void note(misuse kind, std::uint64_t address, std::uint64_t size,
                          std::uint64_t offset, std::uint64_t lane, std::uint64_t other) const {
    record& r = records_[static_cast<std::uint32_t>(kind)];
    if (word(r.count).fetch_add(1, simt::relaxed) != 0) return;
    word(r.address).store(address, simt::relaxed);
    word(r.size).store(size, simt::relaxed);
    word(r.offset).store(offset, simt::relaxed);
    word(r.lane).store(lane, simt::relaxed);
    word(r.other).store(other, simt::relaxed);
  }

  /// On the host, between kernels.
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

// ---- text ----------------------------------------------------------------------------------------

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

/// "overrun, 3 times: byte 64 behind 64 bytes at 0x7f… that thread 5 (block 0) had asked for; …"
inline std::string to_text(const finding& f) {
  const std::string lane = to_text(f.lane);
  const std::string block = detail::block_text(f.size, f.address);
  const std::string byte = "byte " + std::to_string(f.offset < 0 ? -f.offset : f.offset);
  const std::string noticed =
      f.other ? "; noticed by " + to_text(*f.other) : "; noticed between kernels";
  std::string text = name_of(f.kind);
  text += ", " + std::to_string(f.count) + (f.count == 1 ? " time: " : " times, the first: ");
  switch (f.kind) {
    case misuse::double_free:
      text += lane + " freed " + block;
      if (f.other) text += ", which " + to_text(*f.other) + " had freed";
      break;
    case misuse::foreign_pointer:
      text += lane + " freed " + detail::address_text(f.address) + ", no block of this heap";
      break;
    case misuse::interior_pointer:
      text += lane + " freed " + byte + " of " + block;
      if (f.other) text += ", which belong to " + to_text(*f.other);
      break;
    case misuse::overrun:
      text += byte + ", behind " + block + " of " + lane + ", was written" + noticed;
      break;
    case misuse::underrun:
      text += "the " + byte + " before " + block + " of " + lane + " was written" + noticed;
      break;
    case misuse::use_after_free:
      text += byte + " of " + block + " was written after " + lane + " had freed it" + noticed;
      break;
    case misuse::registry_full:
      text += "no room to note " + std::to_string(f.size) + " bytes for " + lane +
              "; give the layer more (checking::pool_per_block)";
      break;
  }
  return text;
}

/// A line for each; empty: nothing was found.
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
