// SPDX-License-Identifier: Apache-2.0
#pragma once
/// piece_map: what lies at each offset of a range, as few pieces as there are differences.
///
///   offsets   0        a        b                 end
///   pieces    | A      | B      | A               |
///
/// Invariant: pieces cover the range and neighbours differ. Costs grow with the logarithm of the
/// pieces, and with the pieces touched.

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <map>

namespace quarry::cluster {

template <class Piece>
class piece_map {
 public:
  explicit piece_map(Piece everywhere) : pieces_{{0, everywhere}} {}

  void assign(std::uint64_t begin, std::uint64_t end, Piece piece) {
    if (begin == end) return;
    const auto last = split(end);
    auto first = split(begin);
    pieces_.erase(std::next(first), last);
    first->second = piece;
    if (last != pieces_.end() && last->second == piece) pieces_.erase(last);
    if (first != pieces_.begin() && std::prev(first)->second == piece) pieces_.erase(first);
  }

  /// f(begin, end, piece), in order. f may not change the map.
  template <class F>
  void for_each(std::uint64_t begin, std::uint64_t end, F f) const {
    auto it = std::prev(pieces_.upper_bound(begin));
    while (begin < end) {
      const Piece& piece = it->second;
      ++it;
      const std::uint64_t stop = it == pieces_.end() || it->first > end ? end : it->first;
      f(begin, stop, piece);
      begin = stop;
    }
  }
  std::size_t pieces() const { return pieces_.size(); }

 private:
  /// The piece that starts at `at`, made by cutting where none does.
  typename std::map<std::uint64_t, Piece>::iterator split(std::uint64_t at) {
    const auto it = std::prev(pieces_.upper_bound(at));
    if (it->first == at) return it;
    return pieces_.emplace_hint(std::next(it), at, it->second);
  }

  std::map<std::uint64_t, Piece> pieces_;
};

}  // namespace quarry::cluster
