#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""quarry bench as people use it.

usage: bench_test.py PROGRAM [TEST...]      PROGRAM may be several words: a launcher and the program
"""
import json
import os
import shlex
import subprocess
import sys
import tempfile
import unittest

PROGRAM = []
SMALL = ["--machine", "cpu", "--lanes", "64", "--repeats", "2", "--heap", "32M", "--timeout", "100"]


def quarry(*arguments):
    return subprocess.run([*PROGRAM, *arguments], capture_output=True, text=True, timeout=100)


def names():
    return [a["name"] for a in json.loads(quarry("list", "--json").stdout)["allocators"]]


class Bench(unittest.TestCase):
    def test_help(self):
        result = quarry("bench", "--help")
        self.assertEqual(result.returncode, 0)
        self.assertIn("Examples:\n  quarry bench", result.stdout)
        for workload in ("alloc", "mixed", "churn", "one-lane", "xmalloc", "acd", "p", "widmer", "extent", "fill"):
            self.assertIn(f"\n  {workload} ", result.stdout)

    def test_every_workload_of_every_allocator(self):
        # The other two have 30,720 lanes whatever --lanes says; one allocator will do, below.
        work = "alloc,mixed,churn,one-lane,xmalloc,widmer,extent,fill"
        result = quarry("bench", *SMALL, "--quick", "--json", "--workloads", work)
        out = json.loads(result.stdout)
        self.assertEqual(result.returncode, 0, out)
        self.assertTrue(out["ok"])
        seen = {(c["workload"], c["allocator"]) for c in out["cells"]}
        self.assertEqual(seen, {(w, a) for w in work.split(",") for a in names()})
        for cell in out["cells"]:
            self.assertIn(cell["outcome"], ("ok", "skipped"), cell)
            if cell["outcome"] == "skipped":
                self.assertTrue(cell["note"], cell)
                continue
            self.assertGreaterEqual(cell["ms"], 0)
            self.assertLessEqual(cell["least_ms"], cell["most_ms"])
            self.assertEqual((cell["corrupt"], cell["misaligned"]), (0, 0), cell)

    def test_the_literature(self):
        result = quarry("bench", *SMALL, "--json", "--workloads", "acd,p", "--allocators", "CudaMalloc")
        cells = json.loads(result.stdout)["cells"]
        self.assertEqual([(c["workload"], c["row"]) for c in cells],
                         [("acd", "10 x 16 B"), ("acd", "100 x 16 B"), ("p", "16 B")])
        self.assertEqual({c["lanes"] for c in cells}, {960})

    def test_sizes_and_ranges_are_rows(self):
        result = quarry("bench", *SMALL, "--json", "--workloads", "alloc,mixed", "--allocators",
                        "AtomicMalloc,bump,AWMalloc", "--sizes", "48,1K,10-20")
        rows = [(c["workload"], c["allocator"], c["row"]) for c in json.loads(result.stdout)["cells"]]
        self.assertEqual(rows, [("alloc", a, r) for a in ("AtomicMalloc", "AWMalloc") for r in ("48 B", "1 KiB")] +
                         [("mixed", a, "10-20 B") for a in ("AtomicMalloc", "AWMalloc")])

    def test_table_and_record(self):
        with tempfile.TemporaryDirectory() as folder:
            name = os.path.join(folder, "figures.jsonl")
            for _ in range(2):
                result = quarry("bench", *SMALL, "--workloads", "alloc", "--sizes", "16,64", "--allocators",
                                "AtomicMalloc,CudaMalloc", "--out", name)
            with open(name, encoding="utf-8") as file:
                lines = [json.loads(line) for line in file]
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("alloc: ", result.stdout)
        self.assertRegex(result.stdout, r"\n16 B +\d+\.\d+ +\d+\.\d+ / \d+\.\d+\n")
        self.assertIn("4 cells were checked", result.stdout)
        self.assertEqual(len(lines), 8)  # the second run appends
        self.assertEqual(lines[0]["atomics_per_call"], 1)
        for key in ("machine", "device", "driver", "cuda", "compiler", "commit", "date", "allocator", "workload",
                    "lanes", "heap_bytes", "repeats", "ms", "least_ms", "most_ms", "free_ms", "failures", "corrupt",
                    "misaligned"):
            self.assertIn(key, lines[0])

    def test_a_heap_too_small_is_seen(self):
        result = quarry("bench", "--machine", "cpu", "--heap", "1M", "--lanes", "1024", "--workloads", "alloc",
                        "--sizes", "2K", "--allocators", "AtomicMalloc", "--json")
        cell = json.loads(result.stdout)["cells"][0]
        self.assertEqual((cell["outcome"], cell["failures"]), ("ok", 512))
        self.assertEqual(result.returncode, 0)

    def test_bad_input(self):
        for arguments, word in ((["--workloads", "chrun"], "did you mean churn?"),
                                (["--allocators", "AtomicMaloc"], "did you mean AtomicMalloc?"),
                                (["--allocators", "AWMalloc,"], "no allocator ''"),
                                (["--sizes", "0"], "at least one byte"),
                                (["--sizes", "2G"], "the most is 1 GiB"),
                                (["--sizes", "64", "--workloads", "churn"], "none of which was chosen"),
                                (["--sizes", "many"], "'many' is not a size"),
                                (["--lanes", "0"], "the least is 1"),
                                (["--repeats", "x"], "not a whole number"),
                                (["--timeout", "0"], "the least is 1"),
                                (["--heap", "1K"], "1 MiB at least"),
                                (["--heap", "1000T"], "is more than"),
                                (["--quick", "extra"], "unexpected: extra"),
                                (["--out", "/no/such/folder/file"], "can not be written")):
            result = quarry("bench", "--machine", "cpu", *arguments)
            self.assertEqual(result.returncode, 2, arguments)
            self.assertEqual(result.stdout, "")
            self.assertEqual(len(result.stderr.splitlines()), 1, result.stderr)
            self.assertIn(word, result.stderr)
        self.assertIn("'gpu' is not one of cpu, cuda", quarry("bench", "--machine", "gpu").stderr)


if __name__ == "__main__":
    PROGRAM = shlex.split(sys.argv.pop(1))
    unittest.main(verbosity=2)
