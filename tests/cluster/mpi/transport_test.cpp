// SPDX-License-Identifier: Apache-2.0
// Messages and bytes over MPI, without schedulers: order, sizes, addresses.
#include "cluster/mpi/network.hpp"

#include <gtest/gtest.h>

#include <random>
#include <vector>

namespace quarry::cluster::detail::transport_test {
namespace {

int rank() {
  int r = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &r);
  return r;
}
int ranks() {
  int n = 0;
  MPI_Comm_size(MPI_COMM_WORLD, &n);
  return n;
}

TEST(Mailbox, EncodesEveryFieldOfAMessage) {
  message m;
  m.kind = message_kind::page_exchange;
  m.status = region_status::no_such_worker;
  m.hops = 200;
  m.from = 0xfedc'ba98;
  m.to = 0x89ab'cdef;
  m.ticket = ~std::uint64_t{0};
  m.body = {7, 0, ~std::uint64_t{0}};
  std::vector<std::uint64_t> wire;
  encode_message(m, wire);
  message n;
  n.body = {5};
  ASSERT_TRUE(decode_message(wire, n));
  EXPECT_EQ(n.kind, m.kind);
  EXPECT_EQ(n.status, m.status);
  EXPECT_EQ(n.hops, m.hops);
  EXPECT_EQ(n.from, m.from);
  EXPECT_EQ(n.to, m.to);
  EXPECT_EQ(n.ticket, m.ticket);
  EXPECT_EQ(n.body, m.body);
}

TEST(Mailbox, RejectsWordsThatAreNoMessage) {
  message m;
  EXPECT_FALSE(decode_message({}, m));
  EXPECT_FALSE(decode_message({0, 0}, m)) << "no whole envelope";
  EXPECT_TRUE(decode_message({0, 0, 0}, m));
  EXPECT_FALSE(decode_message({message_kinds, 0, 0}, m)) << "no kind";
  EXPECT_FALSE(decode_message({(last_region_status + 1) << 8, 0, 0}, m)) << "no status";
}

TEST(ByteParts, CoverTheRangesInOrderAndStayBelowTheLimits) {
  std::mt19937 random(5);
  std::vector<std::byte> memory(1 << 20);
  for (unsigned round = 0; round < 300; ++round) {
    std::vector<packed_range> ranges;
    for (std::size_t at = 0; at < memory.size();) {
      const std::size_t n = std::min<std::size_t>(random() % 60'000, memory.size() - at);
      ranges.push_back({&memory[at], n});
      at += n + 1 + random() % 3000;
    }
    transfer_limits limits;
    limits.max_part = 1 + random() % 50'000;
    limits.min_alone = 1 + random() % 40'000;
    limits.max_ranges = 1 + random() % 10;
    byte_parts parts(ranges, limits);
    std::vector<packed_range> part;
    auto range = ranges.begin();
    std::size_t done = 0;
    for (parts.next(part); !part.empty(); parts.next(part)) {
      std::size_t size = 0;
      ASSERT_LE(part.size(), limits.max_ranges);
      for (const packed_range& block : part) {
        while (range->size == 0) ++range;
        ASSERT_NE(block.size, 0u);
        ASSERT_EQ(block.address, range->address + done);
        ASSERT_LE(block.size, range->size - done);
        size += block.size;
        done += block.size;
        if (done == range->size) ++range, done = 0;
      }
      ASSERT_LE(size, limits.max_part);
    }
    while (range != ranges.end() && range->size == 0) ++range;
    ASSERT_EQ(range, ranges.end());
  }
}

TEST(Mailbox, KeepsTheOrderOfEachSenderForMessagesOfAllSizes) {
  constexpr unsigned each = 400;
  mpi_mailbox mail(MPI_COMM_WORLD);
  const auto size_of = [](unsigned i) -> std::size_t {
    return i % 50 == 7 ? 200'000 : i % 10 == 3 ? 3000 : i % 5;
  };
  // Every rank posts all its messages before it receives the first one.
  for (unsigned i = 0; i < each; ++i)
    for (int to = 0; to < ranks(); ++to) {
      if (to == rank()) continue;
      message m;
      m.from = static_cast<node_id>(rank());
      m.to = static_cast<node_id>(to);
      m.ticket = i;
      m.body.assign(size_of(i), i);
      mail.post(m.to, m);
    }
  std::vector<unsigned> next(static_cast<std::size_t>(ranks()), 0);
  unsigned left = each * static_cast<unsigned>(ranks() - 1);
  back_off pause;
  while (left > 0 || !mail.all_sent()) {
    message m;
    if (!mail.try_receive(m)) {
      mail.progress();
      pause.yield();
      continue;
    }
    ASSERT_EQ(m.to, static_cast<node_id>(rank()));
    const unsigned expected = next[m.from]++;
    ASSERT_EQ(m.ticket, expected);
    ASSERT_EQ(m.body, std::vector<std::uint64_t>(size_of(expected), expected));
    --left;
  }
  EXPECT_TRUE(mail.is_quiescent());
  MPI_Barrier(MPI_COMM_WORLD);
}

TEST(Transfer, WritesTheBytesOfTheRangesAndNoOthers) {
  MPI_Comm comm;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  constexpr std::size_t size = 3 << 20;
  const int to = (rank() + 1) % ranks(), from = (rank() + ranks() - 1) % ranks();
  for (unsigned round = 0; round < 20; ++round) {
    std::mt19937 random(round);  // the same in all ranks
    transfer_limits limits;
    limits.max_part = 1000 + random() % 500'000;
    limits.min_alone = round % 2 == 0 ? 64 << 10 : 1000;
    std::vector<std::byte> out(size, static_cast<std::byte>(rank() + 1)), in(size);
    std::vector<packed_range> give, take;
    std::vector<bool> covered(size);
    for (std::size_t at = random() % 5000; at < size;) {
      const std::size_t most = random() % 10 == 0 ? 400'000 : 6000;
      const std::size_t n = std::min<std::size_t>(random() % most, size - at);
      give.push_back({&out[at], n});
      take.push_back({&in[at], n});
      std::fill_n(covered.begin() + static_cast<std::ptrdiff_t>(at), n, true);
      at += n + random() % 9000;
    }
    mpi_transfer sent(comm, direction::send, static_cast<node_id>(to), give, limits);
    mpi_transfer got(comm, direction::receive, static_cast<node_id>(from), take, limits);
    back_off pause;
    for (bool a = false, b = false; !a || !b; pause.yield()) {
      a = sent.finished();
      b = got.finished();
    }
    for (std::size_t i = 0; i < size; ++i)
      ASSERT_EQ(in[i], static_cast<std::byte>(covered[i] ? from + 1 : 0)) << i;
  }
  MPI_Comm_free(&comm);
}

}  // namespace
}  // namespace quarry::cluster::detail::transport_test

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  ::testing::InitGoogleTest(&argc, argv);
  const int result = RUN_ALL_TESTS();
  if (result != 0) MPI_Abort(MPI_COMM_WORLD, result);
  MPI_Finalize();
  return result;
}
