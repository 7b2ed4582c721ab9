// SPDX-License-Identifier: Apache-2.0
#pragma once
/// mpi_bytes: the bytes of objects, from their place in one process to the same place in another.
///
///   ranges   [------------- large ------------] [s] [s] [---- large ----] [s]
///   parts    |  part  |  part  |   part       | | part | |     part     | |part|
///
/// A range of 64 KiB or more goes alone, cut where a part would grow too long for MPI's 32-bit
/// counts: contiguous memory is what MPI moves without a copy on the way. Smaller ranges in a row
/// share a part of a derived datatype. Both sides cut the same ranges, so their parts match one by
/// one; MPI keeps the order of a pair. A window of parts is under way at a time.

#include <quarry/cluster/link.hpp>
#include <quarry/cluster/mpi_header.hpp>

#include <algorithm>
#include <array>
#include <memory>
#include <span>
#include <utility>
#include <vector>

namespace quarry::cluster {

struct byte_limits {
  std::size_t part = std::size_t{1} << 30;    // bytes, below 2^31
  std::size_t alone = std::size_t{64} << 10;  // a range from this size on is not put together
  std::size_t blocks = 1024;                  // ranges in a part
};

/// Cuts ranges into parts.
class byte_parts {
 public:
  byte_parts(std::span<const packed_range> ranges, byte_limits limits)
      : ranges_(ranges.begin(), ranges.end()), limits_(limits) {
    std::erase_if(ranges_, [](const packed_range& r) { return r.size == 0; });
  }

  /// The next part; empty at the end.
  void next(std::vector<packed_range>& part) {
    part.clear();
    std::size_t size = 0;
    while (at_ < ranges_.size() && part.size() < limits_.blocks) {
      const packed_range whole = ranges_[at_];
      if (whole.size >= limits_.alone || whole.size > limits_.part) {
        if (part.empty()) cut(part);
        return;
      }
      if (size + whole.size > limits_.part) return;
      part.push_back(whole);
      size += whole.size;
      ++at_;
    }
  }

 private:
  void cut(std::vector<packed_range>& part) {
    packed_range& whole = ranges_[at_];
    const std::size_t n = std::min(whole.size, limits_.part);
    part.push_back({whole.address, n});
    whole.address += n;
    whole.size -= n;
    if (whole.size == 0) ++at_;
  }

  std::vector<packed_range> ranges_;
  byte_limits limits_;
  std::size_t at_ = 0;
};

enum class direction { out, in };

class mpi_transfer final : public transfer {
 public:
  mpi_transfer(MPI_Comm comm, direction way, node peer, std::span<const packed_range> ranges,
               byte_limits limits)
      : comm_(comm), way_(way), peer_(static_cast<int>(peer)), parts_(ranges, limits) {
    requests_.fill(MPI_REQUEST_NULL);
    finished();
  }
  mpi_transfer(const mpi_transfer&) = delete;
  mpi_transfer& operator=(const mpi_transfer&) = delete;
  /// MPI may not be left with requests on memory that its owner believes to be free.
  ~mpi_transfer() override { MPI_Waitall(window, requests_.data(), MPI_STATUSES_IGNORE); }

  bool finished() override {
    bool under_way = false;
    for (MPI_Request& request : requests_) {
      if (request != MPI_REQUEST_NULL) {
        int ended = 0;
        MPI_Test(&request, &ended, MPI_STATUS_IGNORE);
      }
      if (request == MPI_REQUEST_NULL && !all_begun_) begin(request);
      under_way |= request != MPI_REQUEST_NULL;
    }
    return all_begun_ && !under_way;
  }

 private:
  static constexpr int window = 16;

  void begin(MPI_Request& request) {
    parts_.next(part_);
    if (part_.empty()) {
      all_begun_ = true;
      return;
    }
    if (part_.size() == 1) {
      begin(request, part_[0].address, static_cast<int>(part_[0].size), MPI_BYTE);
      return;
    }
    lengths_.clear();
    places_.clear();
    for (const packed_range& r : part_) {
      lengths_.push_back(static_cast<int>(r.size));
      MPI_Aint place = 0;
      MPI_Get_address(r.address, &place);
      places_.push_back(place);
    }
    MPI_Datatype type;
    MPI_Type_create_hindexed(static_cast<int>(part_.size()), lengths_.data(), places_.data(),
                             MPI_BYTE, &type);
    MPI_Type_commit(&type);
    begin(request, MPI_BOTTOM, 1, type);
    MPI_Type_free(&type);  // when the request has ended
  }
  void begin(MPI_Request& request, void* start, int count, MPI_Datatype type) {
    if (way_ == direction::out)
      MPI_Isend(start, count, type, peer_, 0, comm_, &request);
    else
      MPI_Irecv(start, count, type, peer_, 0, comm_, &request);
  }

  MPI_Comm comm_;
  direction way_;
  int peer_;
  byte_parts parts_;
  bool all_begun_ = false;
  std::array<MPI_Request, window> requests_;
  std::vector<packed_range> part_;
  std::vector<int> lengths_;
  std::vector<MPI_Aint> places_;
};

}  // namespace quarry::cluster
