// SPDX-License-Identifier: Apache-2.0
#pragma once
/// A heap as a picture: its pool cut into equal cells, each coloured by what lies in it.
///
///   colour    the size of the blocks, from blue (the smallest there are) over green and red to violet (the largest)
///   strength  the share of the cell that is live: pale is empty, strong is full
///
/// A cell is a segment, page or chunk where all of these are multiples of one size; else a part of the pool small
/// enough to see something, which shows the size that most of its live bytes have.

#include <quarry/core/statistics.hpp>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace quarry::tool {

struct map_cell {
  piece_kind kind = piece_kind::free;
  std::uint64_t block_bytes = 0;
  double live = 0;  // share of its bytes
};

struct heap_map {
  std::uint64_t cell_bytes = 0;
  std::uint64_t least_block = 0, most_block = 0;  // sizes between which colours are spread
  std::vector<map_cell> cells;
};

/// Cuts a pool of `size` bytes. Pieces are in order and cover it.
heap_map cut_into_cells(const std::vector<pool_piece>& pieces, std::uint64_t size);

struct colour {
  std::uint8_t red = 0, green = 0, blue = 0;
  std::string text() const;  // "#rrggbb"
  friend bool operator==(colour, colour) = default;
};
colour colour_of(const heap_map& map, const map_cell& cell);

std::string_view kind_name(piece_kind kind);

/// With a title, two lines of text under it, and a legend.
struct map_caption {
  std::string title, workload, figures;
};
std::string draw_svg(const heap_map& map, const std::vector<pool_piece>& pieces,
                     const map_caption& caption);

/// The cells alone: a PNG without compression.
std::string draw_png(const heap_map& map);

}  // namespace quarry::tool
