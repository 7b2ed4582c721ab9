// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Draws a heap as a grid of equal cells, coloured by their contents.
///
///   hue         block size, from blue (smallest) over green and red to violet (largest)
///   saturation  fraction of the cell that is live: pale is empty, strong is full
///
/// A cell is a segment, page or chunk of the allocator if their sizes have a suitable common
/// divisor. Otherwise a cell is a fixed part of the pool, and shows the block size of most of its
/// live bytes.

#include <quarry/core/statistics.hpp>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace quarry::tool {

struct map_cell {
  piece_kind kind = piece_kind::free;
  std::uint64_t block_bytes = 0;
  double live = 0;  // fraction of its bytes
};

struct heap_map {
  std::uint64_t cell_bytes = 0;
  std::uint64_t least_block = 0, most_block = 0;  // range of block sizes that the hues cover
  std::vector<map_cell> cells;
};

/// Divides a pool of `size` bytes into cells. Requires: the pieces are sorted and cover the pool.
heap_map cut_into_cells(const std::vector<pool_piece>& pieces, std::uint64_t size);

struct colour {
  std::uint8_t red = 0, green = 0, blue = 0;
  std::string text() const;  // "#rrggbb"
  friend bool operator==(colour, colour) = default;
};
colour colour_of(const heap_map& map, const map_cell& cell);

std::string_view kind_name(piece_kind kind);

/// The title of a picture and the two lines of text below it.
struct map_caption {
  std::string title, workload, figures;
};
std::string draw_svg(const heap_map& map, const std::vector<pool_piece>& pieces,
                     const map_caption& caption);

/// Returns an uncompressed PNG of the cells, without title and legend.
std::string draw_png(const heap_map& map);

}  // namespace quarry::tool
