#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Self-test of the layering check: small trees, sound and broken."""
import pathlib
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
import layering  # noqa: E402

LAYERS = """
include/quarry/core:
include/quarry/pool: include/quarry/core    # a comment
include/quarry: include/quarry/pool
tools/common: include/quarry
"""


class Layering(unittest.TestCase):
    def faults(self, files, layers=LAYERS):
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            allowed = layering.read_layers(layers)
            for layer in allowed:
                (root / layer).mkdir(parents=True, exist_ok=True)
            for name, text in files.items():
                path = root / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text, encoding="utf-8")
            return list(layering.faults(root, allowed))

    def test_accepts_own_and_lower_layers_and_umbrellas(self):
        self.assertEqual([], self.faults({
            "include/quarry/core/ids.hpp": "#pragma once\n#include <cstdint>\n",
            "include/quarry/pool/bump.hpp": "#include <quarry/core/ids.hpp>\n",
            "include/quarry/pool/deep/wrap.hpp": '#include "../../core/ids.hpp"\n',
            "include/quarry/heap.hpp": "#include <quarry/pool/bump.hpp>\n",
            "tools/common/main.cpp": "#include <quarry/core/ids.hpp>\n#include <quarry/heap.hpp>\n",
        }))

    def test_finds_a_higher_layer(self):
        found = self.faults({
            "include/quarry/core/bits.hpp": "#pragma once\n\n#include <quarry/pool/a.hpp>\n",
            "include/quarry/pool/a.hpp": "",
        })
        self.assertEqual(["include/quarry/core/bits.hpp:3: include/quarry/core may not include "
                          "include/quarry/pool/a.hpp (include/quarry/pool)"], found)

    def test_finds_it_through_a_relative_path_and_odd_spacing(self):
        found = self.faults({
            "include/quarry/core/deep/bits.hpp": '  #  include "../../pool/bump.hpp"\n',
            "include/quarry/pool/bump.hpp": "",
        })
        self.assertEqual(1, len(found))

    def test_finds_an_umbrella_inside_a_layer(self):
        found = self.faults({"include/quarry/pool/a.hpp": "#include <quarry/heap.hpp>\n",
                             "include/quarry/heap.hpp": ""})
        self.assertEqual(1, len(found))

    def test_finds_a_tool_in_the_library(self):
        found = self.faults({"include/quarry/pool/a.hpp": '#include "common/text.hpp"\n',
                             "tools/common/text.hpp": ""})
        self.assertEqual(1, len(found))

    def test_finds_files_outside_all_layers(self):
        found = self.faults({"include/quarry/misc/a.hpp": "", "apps/b.cpp": ""})
        self.assertEqual(2, len(found))

    def test_finds_a_layer_that_is_no_folder(self):
        with tempfile.TemporaryDirectory() as folder:
            self.assertEqual(["layers.txt names apps, which is not a folder"],
                             list(layering.faults(folder, {"apps": {"apps"}})))

    def test_an_indented_line_continues_a_layer(self):
        self.assertEqual({"a": {"a"}, "b": {"b"}, "c": {"a", "b", "c"}},
                         layering.read_layers("a:\nb:\nc: a\n  # a comment\n  b\n"))

    def test_rejects_cycles_and_unknown_layers(self):
        for layers, message in [("a: b\nb: c\nc: a\n", "cycle: a -> b -> c -> a"),
                                ("a: b\n", "unknown layer: b"),
                                ("a\n", "line 1"), ("  a\n", "line 1"),
                                ("a:\na:\n", "defined twice")]:
            with self.assertRaisesRegex(layering.LayersError, message):
                layering.read_layers(layers)


if __name__ == "__main__":
    unittest.main()
