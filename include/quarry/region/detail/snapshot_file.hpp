// SPDX-License-Identifier: Apache-2.0
#pragma once
/// The format of a snapshot file, its checksum, and a stream that computes the checksum.
///
///   header       magic number, version, geometry, addresses, counts, checksums of body and header
///   regions      parent, sharing, number of ranges           parents before children
///   ranges       address, slabs                              of all regions, in that order
///   slabs        live, free or count, units, place           of all ranges
///   contents     4 KiB for each slab that is used            of all ranges
/// Numbers have the byte order of the machine; a machine of the other byte order reads a wrong
/// magic number.

#include <quarry/core/error.hpp>
#include <quarry/region/geometry.hpp>

#include <cstdint>
#include <cstdio>
#include <cstring>
#include <optional>
#include <string>

namespace quarry {

/// A snapshot cannot be written or read; the message names the file and the reason.
class snapshot_error : public error {
 public:
  using error::error;
};

struct snapshot_header {
  static constexpr std::uint64_t magic_number = 0x315041'4e535951ull;
  static constexpr std::uint32_t this_version = 1;

  std::uint64_t magic = magic_number;
  std::uint32_t version = this_version;
  std::uint32_t regions = 0;
  std::uint64_t slab = 0, page = 0, slot = 0;
  std::uint64_t base = 0;   // start of the address range of the saved tree
  std::uint64_t range = 0;  // size of that range
  std::uint64_t root = 0;   // the address that save_snapshot was given
  std::uint64_t ranges = 0;
  std::uint64_t slabs = 0;
  std::uint64_t used_slabs = 0;
  std::uint64_t body_bytes = 0;
  std::uint64_t body_sum = 0;
  std::uint64_t header_sum = 0;
};
struct snapshot_region {
  std::uint32_t parent;  // index in the list of regions; 0 for the first
  std::uint32_t shared;
  std::uint64_t ranges;
};
struct snapshot_range {
  std::uint64_t address;
  std::uint64_t slabs;
};
struct snapshot_slab {
  std::uint64_t live;
  std::uint64_t free;
  std::uint32_t units;
  std::uint32_t place;
};

/// A 64-bit checksum that depends on the order of the bytes.
class snapshot_sum {
 public:
  void add(const void* data, std::size_t size) {
    const auto* p = static_cast<const unsigned char*>(data);
    for (; size >= 8; p += 8, size -= 8) {
      std::uint64_t word;
      std::memcpy(&word, p, 8);
      mix(word);
    }
    for (; size > 0; ++p, --size) mix(*p + 256u);
  }
  std::uint64_t value() const { return sum_; }
  static std::uint64_t of(snapshot_header header) {
    header.header_sum = 0;
    snapshot_sum sum;
    sum.add(&header, sizeof(header));
    return sum.value();
  }

 private:
  void mix(std::uint64_t word) {
    sum_ = (sum_ ^ word) * 0x9e37'79b9'7f4a'7c15ull;
    sum_ ^= sum_ >> 32;
  }
  std::uint64_t sum_ = 0x243f'6a88'85a3'08d3ull;
};

/// Reads or writes a file and updates the checksum of all bytes that pass. Throws snapshot_error.
class snapshot_stream {
 public:
  /// Reads the file.
  explicit snapshot_stream(const std::string& path);
  /// Writes to an open file, whose path appears in messages.
  snapshot_stream(const std::string& path, int descriptor);
  snapshot_stream(const snapshot_stream&) = delete;
  snapshot_stream& operator=(const snapshot_stream&) = delete;
  ~snapshot_stream();

  void write(const void* data, std::size_t size);
  void read(void* data, std::size_t size);
  template <class T>
  T read() {
    T value;
    read(&value, sizeof(T));
    return value;
  }
  /// Continues at this offset of the file, with a new checksum.
  void seek(long offset);
  bool at_end();
  /// Closes the file after its bytes have reached the disk.
  void close();
  std::uint64_t sum() const { return sum_.value(); }
  std::uint64_t bytes() const { return bytes_; }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
  std::FILE* file_;
  snapshot_sum sum_;
  std::uint64_t bytes_ = 0;
};

/// A new version of a file. stream() writes to a temporary file with a unique name in the folder of
/// the file; commit() renames it, so that other processes see the old version or the new one. The
/// destructor removes the temporary file if commit() was not called. If the path is a symbolic
/// link, the file that it names is replaced.
class snapshot_replacement {
 public:
  /// Throws snapshot_error if the path names something that is not a regular file.
  explicit snapshot_replacement(const std::string& path);
  snapshot_replacement(const snapshot_replacement&) = delete;
  snapshot_replacement& operator=(const snapshot_replacement&) = delete;
  ~snapshot_replacement();

  snapshot_stream& stream() { return *stream_; }
  void commit();

 private:
  std::string path_;
  std::string temporary_;
  std::optional<snapshot_stream> stream_;
};

}  // namespace quarry
