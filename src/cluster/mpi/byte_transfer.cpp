// SPDX-License-Identifier: Apache-2.0
#include "cluster/mpi/byte_transfer.hpp"

#include <algorithm>

namespace quarry::cluster::detail {

byte_parts::byte_parts(std::span<const packed_range> ranges, transfer_limits limits)
    : ranges_(ranges.begin(), ranges.end()), limits_(limits) {
  std::erase_if(ranges_, [](const packed_range& r) { return r.size == 0; });
}

void byte_parts::next(std::vector<packed_range>& part) {
  part.clear();
  std::size_t size = 0;
  while (at_ < ranges_.size() && part.size() < limits_.max_ranges) {
    const packed_range whole = ranges_[at_];
    if (whole.size >= limits_.min_alone || whole.size > limits_.max_part) {
      if (part.empty()) split_front(part);
      return;
    }
    if (size + whole.size > limits_.max_part) return;
    part.push_back(whole);
    size += whole.size;
    ++at_;
  }
}

void byte_parts::split_front(std::vector<packed_range>& part) {
  packed_range& whole = ranges_[at_];
  const std::size_t n = std::min(whole.size, limits_.max_part);
  part.push_back({whole.address, n});
  whole.address += n;
  whole.size -= n;
  if (whole.size == 0) ++at_;
}

mpi_transfer::mpi_transfer(MPI_Comm comm, direction d, node_id peer,
                           std::span<const packed_range> ranges, transfer_limits limits)
    : comm_(comm), direction_(d), peer_(static_cast<int>(peer)), parts_(ranges, limits) {
  requests_.fill(MPI_REQUEST_NULL);
  finished();
}

mpi_transfer::~mpi_transfer() { MPI_Waitall(window, requests_.data(), MPI_STATUSES_IGNORE); }

bool mpi_transfer::finished() {
  bool in_transit = false;
  for (MPI_Request& request : requests_) {
    if (request != MPI_REQUEST_NULL) {
      int ended = 0;
      MPI_Test(&request, &ended, MPI_STATUS_IGNORE);
    }
    if (request == MPI_REQUEST_NULL && !all_started_) start_next(request);
    in_transit |= request != MPI_REQUEST_NULL;
  }
  return all_started_ && !in_transit;
}

void mpi_transfer::start_next(MPI_Request& request) {
  parts_.next(part_);
  if (part_.empty()) {
    all_started_ = true;
    return;
  }
  if (part_.size() == 1)
    return start(request, part_[0].address, static_cast<int>(part_[0].size), MPI_BYTE);
  lengths_.clear();
  addresses_.clear();
  for (const packed_range& r : part_) {
    lengths_.push_back(static_cast<int>(r.size));
    MPI_Aint at = 0;
    MPI_Get_address(r.address, &at);
    addresses_.push_back(at);
  }
  MPI_Datatype type;
  MPI_Type_create_hindexed(static_cast<int>(part_.size()), lengths_.data(), addresses_.data(),
                           MPI_BYTE, &type);
  MPI_Type_commit(&type);
  start(request, MPI_BOTTOM, 1, type);
  MPI_Type_free(&type);  // MPI frees the datatype when the request has ended.
}

void mpi_transfer::start(MPI_Request& request, void* first, int count, MPI_Datatype type) {
  if (direction_ == direction::send)
    MPI_Isend(first, count, type, peer_, 0, comm_, &request);
  else
    MPI_Irecv(first, count, type, peer_, 0, comm_, &request);
}

}  // namespace quarry::cluster::detail
