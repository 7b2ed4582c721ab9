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

COUNTED = 0  # no segment has its bits in its state
FEW = 25     # in the explored pools all have

# name: (what the explorer says, schedules it may take, slots whose bits are in the state, [(header, words, other words)])
MUTANTS = {
    # A segment that became free still shows its old slots as free.
    "ends_with_its_bits_set": (
        "", 200, COUNTED,
        [("segments.hpp",
          "        simt::clear_four(bits_ + (segment * words_per_segment_ + w));\n",
          "        (void)bits(segment, w).load(simt::relaxed);\n")]),
    # Rights are handed out, but the count does not say so: two entries, or an entry and the segment's end, share slots.
    "recycles_without_counting": (
        "", 2_000, COUNTED,
        [("segments.hpp",
          "next = is_few(capacity) ? s.word & ~moved : s.word + rights;",
          "next = s.word;")]),
    # Rights are handed out to slots that nobody can take.
    "recycles_and_moves_no_bits": (
        "step limit", 200, FEW,
        [("segments.hpp",
          "    if (is_few(capacity)) bits(segment, 0).bit_or(moved, simt::release);\n",
          "")]),
    # Rights that are taken back leave their bits behind: the slots are free twice.
    "renounces_and_leaves_the_bits": (
        "", 2_000, FEW,
        [("segments.hpp",
          "mine |= bits(segment, 0).fetch_and(~some, simt::by_value) & some;",
          "mine |= bits(segment, 0).load(simt::by_value) & some;")]),
    # Lanes take some of a segment's free slots, and nobody finds the others.
    "recycles_some_and_forgets_the_rest": (
        "not listed", 200, FEW,
        [("segments.hpp",
          "    if (left != 0) enlist",
          "    if (left == capacity) enlist")]),
    # Who waits for an entry is not told that there is no memory for it.
    "keeps_quiet_about_a_failure": (
        "step limit", 200, FEW,
        [("impl.hpp",
          "    entries_.at(v->entry).store(v->word.still_vacant().value, simt::release);\n",
          "")]),
    # The group that drew the ticket behind the limit renews the entry too: what the other one found is lost.
    "renews_twice": (
        "", 2_000, FEW,
        [("impl.hpp",
          "if (waits && word.ticket() <= word.limit(capacity)) {",
          "if (waits && word.ticket() <= word.limit(capacity) + 1) {")]),
    # The count is lowered before the bit is set, and nobody knows: a segment may end, and be used again, with a bit on its way.
    "counts_before_the_bit": (
        "", 20_000, COUNTED,
        [("segments.hpp",
          "what the explorer sees.\n    before = lower(segment, 1 - slab_state::one_coming);\n",
          "what the explorer sees.\n    before = lower(segment, 1);\n"),
         ("segments.hpp",
          "    if (!counts || !ends)\n"
          "      state_word(segment).add((counts ? 0 : 1) - slab_state::one_coming, simt::after_loads);\n",
          "    if (!counts && !ends) state_word(segment).add(1, simt::after_loads);\n")]),
    # It is known that a bit is coming, and nobody waits for it.
    "ends_while_bits_are_coming": (
        "", 20_000, COUNTED,
        [("segments.hpp",
          "      if (before.coming() != 0 && !bits_have_come(segment)) return false;\n",
          "")]),
    # A segment is free before it is out of its lists: who takes it may list it again, and that is undone.
    "gives_up_before_it_unlists": (
        "not listed", 100_000, FEW,
        [("segments.hpp",
          "    bool last = false;\n",
          "    give_up(segment);\n    bool last = false;\n"),
         ("segments.hpp",
          "    give_up(segment);  // after a branch on what the lists had: somebody may list it again now\n",
          ""),
         ("segments.hpp",
          "    give_up(segment);\n    const std::uint64_t to_sparse",
          "    const std::uint64_t to_sparse")]),
    # Segments are taken again, but the last of them still looks free: what is given back in it is lost.
    "leaves_one_without_a_class": (
        "", 2_000, FEW,
        [("impl.hpp",
          "  segments_.adopt(first, segments, c, capacity);\n",
          "  segments_.adopt(first, segments - 1, c, capacity);\n")]),
}


def fail(text):
    print(f"slab_mutants: {text}", file=sys.stderr)
    return 1


def write(name, include, out):
    says, schedules, few, changes = MUTANTS[name]
    texts = {}
    for header, old, new in changes:
        if header not in texts:
            texts[header] = (include / "quarry" / "pool" / "slab" / header).read_text(encoding="utf-8")
        if texts[header].count(old) != 1:
            return fail(f"{name}: {header} has {texts[header].count(old)} times: {old}")
        texts[header] = texts[header].replace(old, new)
    folder = out / "quarry" / "pool" / "slab"
    folder.mkdir(parents=True, exist_ok=True)
    for left_over in folder.glob("*.hpp"):  # of a time when other headers were changed
        left_over.unlink()
    for header, text in texts.items():
        (folder / header).write_text(text, encoding="utf-8")
    (out / "mutant.hpp").write_text(
        "#pragma once\n#include <cstdint>\n"
        f'inline constexpr const char* mutant_name = "{name}";\n'
        f'inline constexpr const char* mutant_says = "{says}";\n'
        f"inline constexpr std::uint64_t mutant_schedules = {schedules};\n"
        f"inline constexpr std::uint32_t mutant_few_slots = {few};\n", encoding="utf-8")
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
