#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Self-test of scripts/check-words: what matches an avoided word, and what does not."""
import unittest

import script_under_test

check_words = script_under_test.load()

GLOSSARY = """
| term | meaning | avoid |
| --- | --- | --- |
| peers | lanes | `mates` |
| failed | none | `refus*` |
| fast path | short | `quick way` |

| write | avoid |
| --- | --- |
| n slots | `so many` |

| no column | of that name |
| --- | --- |
| a | `b` |
"""


class Words(unittest.TestCase):
    def found(self, text):
        found = check_words.find(text, check_words.avoided(GLOSSARY))
        return [word for _, word, _ in sorted(found)]

    def test_reads_the_last_column_of_every_table(self):
        self.assertEqual(["mates", "refus*", "quick way", "so many"],
                         [word for word, _ in check_words.avoided(GLOSSARY)])

    def test_finds_words_in_prose_and_in_identifiers(self):
        self.assertEqual(["mates"] * 4, self.found("mates, Mates; its_mates_of; ItsMatesOf"))

    def test_does_not_find_a_part_of_a_word(self):
        self.assertEqual([], self.found("estimates, matesx, matess; checkmates"))

    def test_a_star_matches_any_ending(self):
        self.assertEqual(["refus*"] * 3, self.found("refused RefusesAll first_refusal"))

    def test_finds_phrases_across_spaces_underscores_case_and_lines(self):
        self.assertEqual(["quick way"] * 4,
                         self.found("quick way quick_way QuickWay quick\n/// way"))
        self.assertEqual(["so many"], self.found("so many slots"))

    def test_says_where(self):
        self.assertEqual([(2, "mates", "the mates")],
                         list(check_words.find("a\n  the mates\n", check_words.avoided(GLOSSARY))))


if __name__ == "__main__":
    unittest.main()
