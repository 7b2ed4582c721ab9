// SPDX-License-Identifier: Apache-2.0
#pragma once
/// The wire form of a message:
///
///   | kind, status, hops | from, to | ticket | body ... |     64-bit words

#include "cluster/protocol/message.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace quarry::cluster::detail {

inline constexpr std::size_t envelope_words = 3;

inline void encode_message(const message& m, std::vector<std::uint64_t>& wire) {
  wire.resize(envelope_words + m.body.size());
  wire[0] = static_cast<std::uint64_t>(m.kind) | static_cast<std::uint64_t>(m.status) << 8 |
            std::uint64_t{m.hops} << 16;
  wire[1] = std::uint64_t{m.from} | std::uint64_t{m.to} << 32;
  wire[2] = m.ticket;
  std::copy(m.body.begin(), m.body.end(), wire.begin() + envelope_words);
}

/// Returns false if the words are no message: too few, or with an unknown kind or status.
inline bool decode_message(const std::vector<std::uint64_t>& wire, message& m) {
  if (wire.size() < envelope_words) return false;
  const std::uint64_t kind = wire[0] & 0xff, status = wire[0] >> 8 & 0xff;
  if (kind >= message_kinds || status > last_region_status || wire[0] >> 24 != 0) return false;
  m.kind = static_cast<message_kind>(kind);
  m.status = static_cast<region_status>(status);
  m.hops = static_cast<std::uint8_t>(wire[0] >> 16);
  m.from = static_cast<node_id>(wire[1]);
  m.to = static_cast<node_id>(wire[1] >> 32);
  m.ticket = wire[2];
  m.body.assign(wire.begin() + envelope_words, wire.end());
  return true;
}

}  // namespace quarry::cluster::detail
