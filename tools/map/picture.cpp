// SPDX-License-Identifier: Apache-2.0
#include "map/picture.hpp"

#include "common/text.hpp"

#include <quarry/core/bits.hpp>
#include <quarry/core/bytes.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <numeric>

namespace quarry::tool {
namespace {

constexpr std::uint64_t max_cells = 4096;
constexpr std::uint64_t map_columns = 64;
constexpr std::uint64_t side = 14;  // of a cell, in SVG units and pixels
constexpr std::uint64_t margin = 24;

/// Requires: hue in [0, 360), saturation and lightness in [0, 1].
colour from_hsl(double hue, double saturation, double lightness) {
  const auto channel = [&](double n) {
    const double k = std::fmod(n + hue / 30, 12.0);
    const double a = saturation * std::min(lightness, 1 - lightness);
    const double v = lightness - a * std::max(-1.0, std::min({k - 3, 9 - k, 1.0}));
    return static_cast<std::uint8_t>(std::lround(255 * v));
  };
  return {channel(0), channel(8), channel(4)};
}

std::uint64_t cells_in(std::uint64_t size, std::uint64_t cell) { return ceil_div(size, cell); }

}  // namespace

std::string colour::text() const { return fmt::format("#{:02x}{:02x}{:02x}", red, green, blue); }

std::string_view kind_name(piece_kind kind) {
  constexpr std::array<std::string_view, piece_kinds> names = {
      "free", "reserve", "size class", "single block", "in use", "uncommitted"};
  return names[static_cast<unsigned>(kind)];
}

colour colour_of(const heap_map& map, const map_cell& cell) {
  switch (cell.kind) {
    case piece_kind::free: return {244, 244, 244};
    case piece_kind::kept: return {250, 232, 170};
    case piece_kind::uncommitted: return {90, 90, 90};
    case piece_kind::used: return {110, 130, 160};
    case piece_kind::blocks:
    case piece_kind::single: break;
  }
  const auto doublings = [&](std::uint64_t size) {
    return std::log2(static_cast<double>(size) / static_cast<double>(map.least_block));
  };
  const double place = map.most_block > map.least_block
                           ? doublings(cell.block_bytes) / doublings(map.most_block)
                           : 0;
  const double hue = 230 - 290 * std::clamp(place, 0.0, 1.0);
  return from_hsl(hue < 0 ? hue + 360 : hue, 0.65, 0.92 - 0.44 * cell.live);
}

heap_map cut_into_cells(const std::vector<pool_piece>& pieces, std::uint64_t size) {
  heap_map map;
  std::uint64_t unit = 0;
  for (const pool_piece& p : pieces)
    if (p.kind != piece_kind::uncommitted && p.kind != piece_kind::used)
      unit = std::gcd(std::gcd(unit, p.offset), p.size);
  if (unit == 0 || cells_in(size, unit) > max_cells || cells_in(size, unit) < 16)
    unit =
        std::uint64_t{1} << log2_ceil(std::max<std::uint64_t>(ceil_div(size, max_cells / 4), 16));
  map.cell_bytes = unit;
  map.cells.resize(cells_in(size, unit));
  std::vector<double> most(
      map.cells.size());  // weight of the piece that determines the colour of a cell
  for (const pool_piece& p : pieces) {
    if (p.size == 0) continue;
    if (p.block_bytes != 0 && p.kind != piece_kind::uncommitted) {
      map.least_block =
          map.least_block == 0 ? p.block_bytes : std::min(map.least_block, p.block_bytes);
      map.most_block = std::max(map.most_block, p.block_bytes);
    }
    const double full =
        p.kind == piece_kind::blocks
            ? static_cast<double>(p.live * p.block_bytes) / static_cast<double>(p.size)
            : (p.kind == piece_kind::single || p.kind == piece_kind::used ? 1.0 : 0.0);
    for (std::uint64_t c = p.offset / unit; c < map.cells.size() && c * unit < p.offset + p.size;
         ++c) {
      const double here = static_cast<double>(std::min((c + 1) * unit, p.offset + p.size) -
                                              std::max(c * unit, p.offset));
      map_cell& cell = map.cells[c];
      cell.live += full * here / static_cast<double>(unit);
      const double weight =
          here * (full > 0 ? 1 : 1e-3);  // live pieces take precedence over free ones
      if (weight <= most[c]) continue;
      most[c] = weight;
      cell.kind = p.kind;
      cell.block_bytes = p.block_bytes;
    }
  }
  return map;
}

std::string draw_svg(const heap_map& map, const std::vector<pool_piece>& pieces,
                     const map_caption& caption) {
  // The legend lists the kinds of pieces and the block sizes that occur.
  std::array<std::uint64_t, piece_kinds> bytes_of{};
  struct size_row {
    std::uint64_t live = 0;
    std::uint64_t pieces = 0;
    piece_kind kind = piece_kind::blocks;
  };
  std::map<std::uint64_t, size_row> sizes;
  for (const pool_piece& p : pieces) {
    bytes_of[static_cast<unsigned>(p.kind)] += p.size;
    if (p.kind != piece_kind::blocks && p.kind != piece_kind::single) continue;
    size_row& row = sizes[p.block_bytes];
    row.live += p.live;
    row.pieces += 1;
    row.kind = p.kind;
  }
  // More than 48 block sizes are merged into powers of two.
  if (sizes.size() > 48) {
    std::map<std::uint64_t, size_row> doublings;
    for (const auto& [size, row] : sizes) {
      size_row& sum = doublings[std::uint64_t{1} << log2_ceil(size)];
      sum.live += row.live;
      sum.pieces += row.pieces;
      sum.kind = row.kind;
    }
    sizes = doublings;
  }

  const std::uint64_t rows = cells_in(map.cells.size(), map_columns);
  const std::uint64_t width = 2 * margin + map_columns * side;
  const std::uint64_t top = margin + 68;
  const std::uint64_t kinds_at = top + rows * side + 20;
  constexpr std::uint64_t legend_columns = 3, line = 18;
  const std::uint64_t sizes_at = kinds_at + 2 * line;
  const std::uint64_t legend_rows =
      cells_in(std::max<std::uint64_t>(sizes.size(), 1), legend_columns);
  const std::uint64_t height = sizes_at + legend_rows * line + margin;

  std::string out = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0} {1}\" width=\"{0}\" "
      "height=\"{1}\" "
      "font-family=\"sans-serif\" font-size=\"12\">\n<title>{2}</title>\n"
      "<rect width=\"{0}\" height=\"{1}\" fill=\"#ffffff\"/>\n"
      "<text x=\"{3}\" y=\"{4}\" font-size=\"17\" font-weight=\"bold\">{2}</text>\n"
      "<text x=\"{3}\" y=\"{5}\" fill=\"#444444\">{6}</text>\n<text x=\"{3}\" y=\"{7}\" "
      "fill=\"#444444\">{8}</text>\n",
      width, height, caption.title, margin, margin + 16, margin + 36, caption.workload, margin + 54,
      caption.figures);
  const auto box = [&](std::uint64_t x, std::uint64_t y, std::uint64_t w, const map_cell& cell,
                       const std::string& tooltip) {
    out += fmt::format(
        "<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" fill=\"{}\" stroke=\"#c8c8c8\" "
        "stroke-width=\"0.5\"{}\n",
        x, y, w, side, colour_of(map, cell).text(),
        tooltip.empty() ? "/>" : fmt::format("><title>{}</title></rect>", tooltip));
  };
  for (std::uint64_t i = 0; i < map.cells.size(); ++i) {
    const map_cell& cell = map.cells[i];
    std::string tooltip =
        fmt::format("at {}: {}", to_text(bytes(i * map.cell_bytes)), kind_name(cell.kind));
    if (cell.block_bytes != 0)
      tooltip +=
          fmt::format(" of {}, {:.0f} % live", to_text(bytes(cell.block_bytes)), 100 * cell.live);
    box(margin + i % map_columns * side, top + i / map_columns * side, side, cell, tooltip);
  }
  std::uint64_t x = margin;
  for (unsigned k = 0; k < piece_kinds; ++k) {
    const auto kind = static_cast<piece_kind>(k);
    if (bytes_of[k] == 0 || kind == piece_kind::blocks || kind == piece_kind::single) continue;
    box(x, kinds_at, side, {kind, 0, 0}, "");
    out += fmt::format("<text x=\"{}\" y=\"{}\">{}, {}</text>\n", x + side + 6, kinds_at + 11,
                       kind_name(kind), to_text(bytes(bytes_of[k])));
    x += 180;
  }
  out += fmt::format(
      "<text x=\"{}\" y=\"{}\" fill=\"#444444\">one cell: {}; pale: empty, strong: full</text>\n",
      std::max(x, margin), kinds_at + 11, to_text(bytes(map.cell_bytes)));
  std::uint64_t number = 0;
  for (const auto& [size, row] : sizes) {
    const std::uint64_t at = margin + number / legend_rows * (map_columns * side / legend_columns);
    const std::uint64_t y = sizes_at + number % legend_rows * line;
    for (std::uint64_t shade = 0; shade < 3; ++shade)
      box(at + shade * side, y, side, {row.kind, size, 0.5 * static_cast<double>(shade)}, "");
    out += fmt::format("<text x=\"{}\" y=\"{}\">{}: {} live in {} {}</text>\n", at + 3 * side + 6,
                       y + 11, to_text(bytes(size)), grouped(row.live), grouped(row.pieces),
                       row.kind == piece_kind::single ? "chunks" : "segments");
    ++number;
  }
  return out + "</svg>\n";
}

// ---- PNG
// ---------------------------------------------------------------------------------------------

namespace {

std::string big_endian(std::uint32_t n) {
  return {static_cast<char>(n >> 24), static_cast<char>(n >> 16), static_cast<char>(n >> 8),
          static_cast<char>(n)};
}

std::uint32_t crc_of(std::string_view data) {
  std::uint32_t crc = ~std::uint32_t{0};
  for (const char c : data) {
    crc ^= static_cast<unsigned char>(c);
    for (int bit = 0; bit < 8; ++bit) crc = crc >> 1 ^ (0xedb88320u & (0u - (crc & 1)));
  }
  return ~crc;
}

std::string chunk(const std::string& type, const std::string& data) {
  return big_endian(static_cast<std::uint32_t>(data.size())) + type + data +
         big_endian(crc_of(type + data));
}

/// Returns a zlib stream with stored (uncompressed) blocks.
std::string stored(const std::string& data) {
  constexpr std::size_t most = 65535;
  std::string out = "\x78\x01";
  for (std::size_t at = 0; at < data.size() || at == 0; at += most) {
    const auto n = static_cast<std::uint32_t>(std::min(most, data.size() - at));
    const bool last = at + most >= data.size();
    for (const std::uint32_t byte : {last ? 1u : 0u, n & 255, n >> 8, ~n & 255, ~n >> 8 & 255})
      out += static_cast<char>(byte);
    out.append(data, at, n);
  }
  std::uint32_t a = 1;
  std::uint32_t b = 0;
  for (const char c : data) {
    a = (a + static_cast<unsigned char>(c)) % 65521;
    b = (b + a) % 65521;
  }
  return out + big_endian(b << 16 | a);
}

}  // namespace

std::string draw_png(const heap_map& map) {
  const std::uint64_t width = map_columns * side + 1;
  const std::uint64_t height = cells_in(map.cells.size(), map_columns) * side + 1;
  std::string pixels;
  for (std::uint64_t y = 0; y < height; ++y) {
    pixels += '\0';  // no filter
    for (std::uint64_t x = 0; x < width; ++x) {
      const std::uint64_t i = y / side * map_columns + x / side;
      colour c{255, 255, 255};
      if (i < map.cells.size() && x / side < map_columns)
        c = x % side == 0 || y % side == 0 ? colour{200, 200, 200} : colour_of(map, map.cells[i]);
      for (const std::uint8_t channel : {c.red, c.green, c.blue})
        pixels += static_cast<char>(channel);
    }
  }
  const std::string header = big_endian(static_cast<std::uint32_t>(width)) +
                             big_endian(static_cast<std::uint32_t>(height)) +
                             std::string("\x08\x02\x00\x00\x00", 5);
  return "\x89PNG\r\n\x1a\n" + chunk("IHDR", header) + chunk("IDAT", stored(pixels)) +
         chunk("IEND", "");
}

}  // namespace quarry::tool
