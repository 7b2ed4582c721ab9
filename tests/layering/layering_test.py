#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The layering check sees what it must see: small trees, sound and broken."""
import pathlib
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
import layering  # noqa: E402


class Layering(unittest.TestCase):
    def faults(self, files):
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder) / "quarry"
            for name, text in files.items():
                path = root / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text, encoding="utf-8")
            return list(layering.faults(root))

    def test_accepts_own_and_earlier_folders_and_umbrellas(self):
        self.assertEqual([], self.faults({
            "simt/ids.hpp": "#pragma once\n#include <cstdint>\n",
            "pool/bump.hpp": "#include <quarry/simt/ids.hpp>\n#include <quarry/pool/wrap.hpp>\n",
            "pool/wrap.hpp": '#include "../simt/ids.hpp"\n#include "bump.hpp"\n',
            "heap.hpp": "#include <quarry/heap/heap.hpp>\n",
        }))

    def test_finds_a_later_folder(self):
        found = self.faults({"core/bits.hpp": "#pragma once\n\n#include <quarry/heap/heap.hpp>\n"})
        self.assertEqual(["core/bits.hpp:3: core/ may not include heap/heap.hpp"], found)

    def test_finds_it_through_a_relative_path_and_odd_spacing(self):
        found = self.faults({
            "core/deep/bits.hpp": '  #  include "../../pool/bump.hpp"\n',
            "pool/bump.hpp": "",
        })
        self.assertEqual(["core/deep/bits.hpp:1: core/ may not include pool/bump.hpp"], found)

    def test_finds_an_umbrella_inside_a_folder(self):
        found = self.faults({"check/script.hpp": "#include <quarry/heap.hpp>\n"})
        self.assertEqual(1, len(found))

    def test_finds_a_folder_without_a_place(self):
        found = self.faults({"misc/a.hpp": "", "simt/b.hpp": "#include <quarry/misc/a.hpp>\n"})
        self.assertEqual(2, len(found))


if __name__ == "__main__":
    unittest.main()
