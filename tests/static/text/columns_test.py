#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Self-test of scripts/check-columns: which lines are too long, and in which files."""
import pathlib
import subprocess
import sys
import tempfile
import unittest

import script_under_test

path = sys.argv[1]
check_columns = script_under_test.load()

LONGEST = "x" * 100
TOO_LONG = "x" * 101


class Columns(unittest.TestCase):
    def run_on(self, files):
        """Returns the exit code and the output lines for a repository with these files."""
        with tempfile.TemporaryDirectory() as folder:
            subprocess.run(["git", "init", "--quiet", folder], check=True)
            for name, text in files.items():
                file = pathlib.Path(folder, name)
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_bytes(text.encode() if isinstance(text, str) else text)
            done = subprocess.run([sys.executable, path, folder], capture_output=True, text=True)
            return done.returncode, done.stdout.splitlines()

    def test_says_where(self):
        self.assertEqual([(2, 101), (4, 101)],
                         list(check_columns.find(f"a\n{TOO_LONG}\n{LONGEST}\n{TOO_LONG}")))

    def test_counts_characters_not_bytes(self):
        self.assertEqual([], list(check_columns.find("–" * 100)))
        self.assertEqual([(1, 101)], list(check_columns.find("–" * 101)))

    def test_fails_on_a_long_line_of_any_kind_of_file(self):
        code, lines = self.run_on({
            "Makefile": f"a\n{TOO_LONG}\n", "src/a.cpp": TOO_LONG, "web/a.js": TOO_LONG,
            "scripts/tool": TOO_LONG, "short.txt": LONGEST,
        })
        self.assertEqual(1, code)
        self.assertEqual(["Makefile:2", "scripts/tool:1", "src/a.cpp:1", "web/a.js:1"],
                         [line.split(": ")[0] for line in lines])

    def test_passes_without_a_long_line(self):
        self.assertEqual((0, []), self.run_on({"Makefile": LONGEST, "src/a.cpp": "int a;\n"}))

    def test_skips_exceptions_binary_files_and_ignored_files(self):
        self.assertEqual((0, []), self.run_on({
            "docs/a.md": TOO_LONG, "bench/results/a.jsonl": TOO_LONG, "LICENSE": TOO_LONG,
            "include/quarry/pool/slab/a.hpp": TOO_LONG, "a.bin": b"\xff" * 200,
            ".gitignore": "build\n", "build/a.cpp": TOO_LONG,
        }))

    def test_an_exception_is_a_whole_path(self):
        code, lines = self.run_on({"a.md.in": TOO_LONG, "src/LICENSE": TOO_LONG})
        self.assertEqual((1, 2), (code, len(lines)))

    def test_fails_without_a_repository(self):
        with tempfile.TemporaryDirectory() as folder:
            done = subprocess.run([sys.executable, path, folder], capture_output=True, text=True)
            self.assertEqual(2, done.returncode)
            self.assertIn("check-columns: ", done.stderr)


if __name__ == "__main__":
    unittest.main()
