// SPDX-License-Identifier: Apache-2.0
#pragma once
/// How a slab heap becomes longer and shorter between kernels.
///
///   segments   | 0 | 1 | ………… | n-1 | n …………………………………… |
///                                     withheld: in no list, and the state of segment n says how many
///
/// Shape and metadata are those of the longest pool from the beginning. A segment behind the present end is one that
/// nobody can find: it is not in `free`, no class has it, no entry leads to it, and it lies beyond the end that the
/// frontier knows. Growing moves that end; shrinking too, and where it comes to segments that were used, it makes free
/// what entries hold, and takes free segments out, from the end downwards, until it meets one that is in use. For
/// everybody else the withheld ones look like a large block that is never freed.
///
/// Between kernels, by one lane. Bound: a try that fails is followed by one for half as much, so there are two passes
/// over the words of `free` for each power of two, at most.

#include <quarry/pool/slab/slab.hpp>

#include <cstdint>

namespace quarry {

template <slab_tuning T>
QUARRY_DEVICE std::uint64_t basic_slab<T>::resize(std::uint64_t from, std::uint64_t to) const {
  const auto segments = [this](std::uint64_t bytes) {
    const std::uint64_t n = bytes >> shape_.segment_log2;
    return n < shape_.segments ? static_cast<std::uint32_t>(n) : shape_.segments;
  };
  std::uint32_t end = segments(from);
  if (end < shape_.segments) segments_.state_word(end).store(0, simt::relaxed);
  const std::uint32_t wanted = segments(to);
  std::uint32_t used = frontier_.look().used();
  if (wanted > end || wanted >= used) {
    end = wanted;
  } else if (wanted < end) {
    flush();
    join_runs();
    end = used;
    for (std::uint32_t step = end - wanted; step != 0;) {
      if (segments_.free().take_all(end - step, step)) {
        end -= step;
        step = step < end - wanted ? step : end - wanted;
      } else {
        step /= 2;
      }
    }
    used = end;
  }
  if (end < shape_.segments)
    segments_.state_word(end).store(slab_state::withheld(shape_.segments - end).word,
                                    simt::relaxed);
  frontier_.set(used, end);
  return std::uint64_t{end} << shape_.segment_log2;
}

}  // namespace quarry
