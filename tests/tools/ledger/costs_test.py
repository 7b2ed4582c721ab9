#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that scripts/costs detects changed costs and does not compare registers across compilers.

usage: costs_test.py SCRIPT PROGRAM
"""
import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

SCRIPT = PROGRAM = ""

# Prints the output of nvcc for the given number of probes.
FAKE_NVCC = """#!/bin/sh
if [ "$1" = --version ]; then echo 'Cuda compilation tools, release 13.0, V{version}'; exit 0; fi
i=0
while [ $i -lt {probes} ]; do
  name=_ZN6quarry14register_probeILj${{i}}ENS_4bumpEEEvm
  echo "ptxas info    : Compiling entry function '$name' for 'sm_90'"
  echo "ptxas info    : Function properties for $name"
  echo "    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads"
  echo "ptxas info    : Used $((40 + i)) registers, used 0 barriers, 8 bytes cumulative stack size"
  i=$((i + 1))
done
"""


class Costs(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.ledger = self.folder / "costs.json"
        self.assertEqual(self.costs("--nvcc", self.nvcc("13.0.1")).returncode, 0)
        self.names = list(self.read()["allocators"])

    def costs(self, *arguments):
        command = [sys.executable, SCRIPT, "--quarry", PROGRAM, "--docs", str(self.folder)]
        return subprocess.run([*command, *arguments], capture_output=True, text=True, timeout=500)

    def nvcc(self, version, probes=None):
        if probes is None:
            listed = subprocess.run([*PROGRAM.split(), "list", "--json"], check=True,
                                    capture_output=True, text=True).stdout
            probes = len(json.loads(listed)["allocators"])
        fake = self.folder / f"nvcc-{version}"
        fake.write_text(FAKE_NVCC.format(version=version, probes=probes))
        fake.chmod(0o755)
        return str(fake)

    def read(self):
        return json.loads(self.ledger.read_text())

    def change(self, before, after):
        text = self.ledger.read_text()
        self.assertIn(before, text)
        self.ledger.write_text(text.replace(before, after, 1))

    def test_a_new_ledger_is_up_to_date(self):
        result = self.costs("--check", "--nvcc", self.nvcc("13.0.1"))
        self.assertEqual(result.returncode, 0, result.stdout)

    def test_a_changed_count_is_detected(self):
        self.change('"atomics": 256', '"atomics": 255')
        for more in ([], ["--only", "counts"]):
            result = self.costs("--check", "--nvcc", self.nvcc("13.0.1"), *more)
            self.assertEqual(result.returncode, 1)
            self.assertIn('"atomics": 255', result.stdout)

    def test_a_changed_register_count_is_detected(self):
        self.change('"registers": 41', '"registers": 39')
        result = self.costs("--check", "--only", "registers", "--nvcc", self.nvcc("13.0.1"))
        self.assertEqual(result.returncode, 1)
        self.assertIn('-      "registers": 39', result.stdout)
        self.assertIn('+      "registers": 41', result.stdout)

    def test_registers_belong_to_their_allocators(self):
        for place, name in enumerate(self.names):
            self.assertEqual(self.read()["allocators"][name]["registers"], 40 + place)
            self.assertEqual(self.read()["allocators"][name]["stack"], 8)

    def test_registers_of_another_compiler_are_not_compared(self):
        self.change('"registers": 41', '"registers": 39')
        result = self.costs("--check", "--only", "registers", "--nvcc", self.nvcc("13.0.2"))
        self.assertEqual(result.returncode, 77)
        self.assertIn("this is nvcc 13.0.2", result.stdout)

    def test_a_new_compiler_is_recorded(self):
        self.assertEqual(self.costs("--nvcc", self.nvcc("14.1.0")).returncode, 0)
        self.assertEqual(self.read()["nvcc"], "14.1.0")

    def test_counts_alone_keep_the_registers(self):
        before = self.read()
        self.assertEqual(self.costs("--only", "counts").returncode, 0)
        self.assertEqual(self.read(), before)

    def test_a_probe_without_output_is_an_error(self):
        result = self.costs("--nvcc", self.nvcc("13.0.1", probes=len(self.names) - 1))
        self.assertEqual(result.returncode, 2)
        self.assertIn(self.names[-1], result.stderr)

    def test_a_page_edited_by_hand_is_detected(self):
        page = self.folder / "costs.md"
        page.write_text(page.read_text().replace("| AtomicMalloc | 1 |", "| AtomicMalloc | 0 |", 1))
        self.assertEqual(self.costs("--check", "--only", "counts").returncode, 1)

    def test_a_missing_program_is_an_error(self):
        result = subprocess.run([sys.executable, SCRIPT, "--quarry", "/nonexistent/quarry"],
                                capture_output=True, text=True, timeout=500)
        self.assertEqual(result.returncode, 2)
        self.assertEqual(len(result.stderr.splitlines()), 1)


if __name__ == "__main__":
    PROGRAM = sys.argv.pop(2)
    SCRIPT = sys.argv.pop(1)
    unittest.main()
