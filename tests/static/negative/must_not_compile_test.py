#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""must_not_compile.py reports sources that compile, or that fail for another reason."""
import pathlib
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
import must_not_compile  # noqa: E402

COMMAND = [sys.argv.pop() if len(sys.argv) > 1 else "c++", "-std=c++20"]


class MustNotCompile(unittest.TestCase):
    def fault(self, text):
        with tempfile.TemporaryDirectory() as folder:
            case = pathlib.Path(folder) / "case.cpp"
            case.write_text(text, encoding="utf-8")
            return must_not_compile.fault(str(case), COMMAND)

    def test_accepts_a_source_that_fails_for_its_reason(self):
        self.assertIsNone(self.fault(
            "// expect: needs a reason\n"
            "#ifndef QUARRY_CONTROL\nstatic_assert(false, \"needs a reason\");\n#endif\n"))

    def test_reports_a_source_that_compiles(self):
        self.assertIn("compiles, but must not", self.fault("// expect: anything\nint x;\n"))

    def test_reports_a_source_that_fails_for_another_reason(self):
        self.assertIn("but not with", self.fault(
            "// expect: needs a reason\n#ifndef QUARRY_CONTROL\nint x = \"a\";\n#endif\n"))

    def test_reports_a_control_that_does_not_compile(self):
        self.assertIn("QUARRY_CONTROL", self.fault("// expect: invalid\nint x = \"a\";\n"))

    def test_reports_a_source_without_an_expectation(self):
        self.assertIn("expect: REGEX", self.fault("int x = \"a\";\n"))


if __name__ == "__main__":
    unittest.main()
