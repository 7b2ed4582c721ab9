#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Self-test of scripts/tidy: which units it checks, what it prints, and its exit codes."""
import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

import script_under_test

path = sys.argv[1]
tidy = script_under_test.load()

SOUND = "int* none() { return nullptr; }\n"
FAULTY = "inline int* none() { return 0; }\n"


class Tidy(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.build = pathlib.Path(folder.name).resolve()

    def write(self, objects, **sources):
        """Writes a build folder: sources, and compile commands with objects in a folder."""
        (self.build / "src").mkdir(exist_ok=True)
        commands = []
        for name, text in sources.items():
            source = self.build / "src" / f"{name}.cpp"
            source.write_text(text, encoding="utf-8")
            commands.append({"directory": str(self.build), "file": str(source),
                             "command": "c++ -std=c++20 -Winvalid-pch -include cmake_pch.hxx"
                                        f" -Werror -o {objects}/{name}.o -c {source}"})
        (self.build / "compile_commands.json").write_text(json.dumps(commands), encoding="utf-8")

    def run_tidy(self, *arguments):
        done = subprocess.run([sys.executable, path, "--build", str(self.build), *arguments],
                              capture_output=True, text=True, check=False)
        return done.returncode, done.stdout + done.stderr

    def test_fails_for_a_source_with_a_finding(self):
        self.write("src", faulty=FAULTY)
        code, output = self.run_tidy()
        self.assertEqual(1, code, output)
        self.assertIn("src/faulty.cpp:1:29: use nullptr [modernize-use-nullptr]", output)
        self.assertRegex(output.splitlines()[-1], r"^tidy: 1 finding in 1 unit ")

    def test_prints_a_finding_of_a_header_once(self):
        self.write("src", a='#include "common.hpp"\n', b='#include "common.hpp"\n')
        (self.build / "src" / "common.hpp").write_text(FAULTY, encoding="utf-8")
        code, output = self.run_tidy()
        self.assertEqual(1, code, output)
        self.assertEqual(1, output.count("[modernize-use-nullptr]"), output)
        self.assertRegex(output.splitlines()[-1], r"^tidy: 1 finding in 2 units ")

    def test_succeeds_for_a_sound_source(self):
        self.write("tools", sound=SOUND)
        code, output = self.run_tidy()
        self.assertEqual(0, code, output)
        self.assertRegex(output.splitlines()[-1], r"^tidy: 0 findings in 1 unit ")

    def test_reports_a_source_that_does_not_compile(self):
        self.write("src", broken="#include <no_such_header>\n")
        code, output = self.run_tidy()
        self.assertEqual(1, code, output)
        self.assertIn("'no_such_header' file not found", output)

    def test_checks_only_units_of_src_and_tools_with_the_given_text(self):
        self.write("tests", faulty=FAULTY)
        code, output = self.run_tidy()
        self.assertEqual((2, f"tidy: {self.build}: no unit to check\n"), (code, output))
        self.write("src", faulty=FAULTY, sound=SOUND)
        code, output = self.run_tidy("sound")
        self.assertEqual(0, code, output)

    def test_fails_without_compile_commands(self):
        code, output = self.run_tidy()
        self.assertEqual(2, code, output)
        self.assertIn("run cmake --preset cpu first", output)


if __name__ == "__main__":
    try:
        tidy.clang_tidy()
    except tidy.Problem as problem:
        print(f"skipped: {problem}")
        sys.exit(77)
    unittest.main()
