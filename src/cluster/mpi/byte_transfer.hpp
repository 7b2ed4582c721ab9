// SPDX-License-Identifier: Apache-2.0
#pragma once
/// mpi_transfer: the bytes of objects, from their addresses in one process to the same addresses in
/// another.
///
///   ranges   [------------- large ------------] [s] [s] [---- large ----] [s]
///   parts    |  part  |  part  |   part       | | part | |     part     | |part|
///
/// A range of 64 KiB or more is sent alone, split where a part would exceed MPI's 32-bit counts:
/// MPI moves contiguous memory without an intermediate copy. Consecutive smaller ranges share a
/// part with a derived datatype. Both sides split the same ranges, so their parts match one by one;
/// MPI keeps the order of a pair. A bounded window of parts is in transit at a time.

#include "cluster/worker/link.hpp"

#include <quarry/cluster/detail/mpi.hpp>
#include <quarry/cluster/run.hpp>

#include <array>
#include <span>
#include <vector>

namespace quarry::cluster::detail {

/// Splits ranges into parts.
class byte_parts {
 public:
  byte_parts(std::span<const packed_range> ranges, transfer_limits limits);
  /// Replaces `part` by the next part; empty at the end.
  void next(std::vector<packed_range>& part);

 private:
  void split_front(std::vector<packed_range>& part);

  std::vector<packed_range> ranges_;
  transfer_limits limits_;
  std::size_t at_ = 0;
};

enum class direction { send, receive };

class mpi_transfer final : public transfer {
 public:
  mpi_transfer(MPI_Comm comm, direction d, node_id peer, std::span<const packed_range> ranges,
               transfer_limits limits);
  mpi_transfer(const mpi_transfer&) = delete;
  mpi_transfer& operator=(const mpi_transfer&) = delete;
  /// Waits: MPI must not keep requests on memory that its owner may reuse.
  ~mpi_transfer() override;

  bool finished() override;

 private:
  static constexpr int window = 16;

  void start_next(MPI_Request& request);
  void start(MPI_Request& request, void* first, int count, MPI_Datatype type);

  MPI_Comm comm_;
  direction direction_;
  int peer_;
  byte_parts parts_;
  bool all_started_ = false;
  std::array<MPI_Request, window> requests_;
  // Reused by start_next.
  std::vector<packed_range> part_;
  std::vector<int> lengths_;
  std::vector<MPI_Aint> addresses_;
};

}  // namespace quarry::cluster::detail
