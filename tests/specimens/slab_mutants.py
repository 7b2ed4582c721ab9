#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Slab with one deliberate defect: specimens that the explorer must find.

    slab_mutants.py NAME INCLUDE OUT     writes OUT/quarry/pool/… and OUT/mutant.hpp
    slab_mutants.py --list

A specimen is the real slab with a few words changed, so it can not fall behind. A program that finds
OUT before INCLUDE gets the mutant. If the words to be changed are no longer there, exactly once, this
fails: then somebody has to think what the defect would look like now.
"""
import pathlib
import sys

# name: (what the explorer says, schedules it may take, [(header, words, other words)])
MUTANTS = {
    # The one count that says "wholly free" decides: not the other two, of which additions may be under way, nor
    # whether another lane holds the segment.
    "releases_before_all_have_counted": (
        "", 20_000,
        [("slab_segments.hpp",
          "return s == slab_state::empty(c, words) ||",
          "return (slab_state::kind(s) == c + 1 &&\n"
          "          slab_state::count(s, slab_state::wholly_free) == static_cast<std::int32_t>(words)) ||"),
         ("slab_segments.hpp",
          "if (s == slab_state::empty(c, d.words)) {",
          "if (slab_state::count(s, slab_state::wholly_free) == static_cast<std::int32_t>(d.words)) {")]),
    # Two lanes see the word as it was before either: both count the same change.
    "counts_apart_from_the_bit": (
        "", 2_000,
        [("slab.hpp",
          "const std::uint32_t was = segments_.word(segment, slot / 32).fetch_or(slots, simt::after_fence);",
          "const std::uint32_t was = segments_.word(segment, slot / 32).load(simt::relaxed);\n"
          "    segments_.word(segment, slot / 32).bit_or(slots, simt::after_fence);")]),
    # Who waits for an entry is not told that there is no memory for it.
    "keeps_quiet_about_a_failure": (
        "step limit", 200,
        [("slab_impl.hpp",
          "  rings_.publish(classes_[c], shard, k, word);\n",
          "  if (!word.is_failed()) rings_.publish(classes_[c], shard, k, word);\n")]),
    # A segment that was released still shows its old slots as free.
    "releases_with_its_bits_set": (
        "", 200,
        [("slab_segments.hpp",
          "for (std::uint32_t w = 0; w < d.words; ++w) word(segment, w).store(0, simt::relaxed);",
          "(void)words;")]),
}


def fail(text):
    print(f"slab_mutants: {text}", file=sys.stderr)
    return 1


def write(name, include, out):
    says, schedules, changes = MUTANTS[name]
    texts = {}
    for header, old, new in changes:
        if header not in texts:
            texts[header] = (include / "quarry" / "pool" / header).read_text(encoding="utf-8")
        if texts[header].count(old) != 1:
            return fail(f"{name}: {header} has {texts[header].count(old)} times: {old}")
        texts[header] = texts[header].replace(old, new)
    folder = out / "quarry" / "pool"
    folder.mkdir(parents=True, exist_ok=True)
    for header, text in texts.items():
        (folder / header).write_text(text, encoding="utf-8")
    (out / "mutant.hpp").write_text(
        "#pragma once\n#include <cstdint>\n"
        f'inline constexpr const char* mutant_name = "{name}";\n'
        f'inline constexpr const char* mutant_says = "{says}";\n'
        f"inline constexpr std::uint64_t mutant_schedules = {schedules};\n", encoding="utf-8")
    return 0


def main():
    if sys.argv[1:] == ["--list"]:
        print("\n".join(MUTANTS))
        return 0
    if len(sys.argv) != 4 or sys.argv[1] not in MUTANTS:
        return fail(f"usage: slab_mutants.py NAME INCLUDE OUT; names are {', '.join(MUTANTS)}")
    return write(sys.argv[1], pathlib.Path(sys.argv[2]), pathlib.Path(sys.argv[3]))


if __name__ == "__main__":
    sys.exit(main())
