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
# Limits that a sanitizer on a busy machine keeps to, too.
SMALL = ["--backend", "cpu", "--lanes", "64", "--repeats", "2", "--heap", "32M", "--timeout", "100",
         "--time-limit", "20"]


def quarry(*arguments):
    return subprocess.run([*PROGRAM, *arguments], capture_output=True, text=True, timeout=500)


def names():
    return [a["name"] for a in json.loads(quarry("list", "--json").stdout)["allocators"]]


KEYS = ("experiment", "allocator", "series", "x", "command", "backend", "device", "driver", "cuda", "compiler",
        "commit", "date", "outcome", "note", "repeats", "ms", "min_ms", "max_ms", "free_ms", "min_free_ms",
        "max_free_ms", "atomics_per_call", "free_atomics_per_call", "values", "failures", "corrupt", "misaligned",
        "lanes", "heap_bytes", "heap_state")


class Bench(unittest.TestCase):
    def test_help(self):
        result = quarry("bench", "--help")
        self.assertEqual(result.returncode, 0)
        self.assertIn("Examples:\n  quarry bench", result.stdout)
        for experiment in ("alloc", "widmer", "xmalloc-2", "fdgmalloc-5", "cmalloc-3a", "survey-oom", "steady"):
            self.assertIn(f" {experiment} ", result.stdout)

    def test_list(self):
        result = quarry("bench", "--list")
        self.assertEqual(result.returncode, 0)
        for experiment in ("xmalloc-2 ", "fdgmalloc-6 ", "cmalloc-registers ", "survey-write ", "latency ", "fill "):
            self.assertIn("\n" + experiment, result.stdout)
        self.assertIn("Huang et al. 2013, Figure 2", result.stdout)

    def test_every_workload_of_every_allocator(self):
        # The other two have 30,720 lanes whatever --lanes says; one allocator will do, below.
        work = "alloc,mixed,churn,one-lane,xmalloc,widmer,fragmentation,fill"
        result = quarry("bench", *SMALL, "--quick", "--json", "--workloads", work)
        out = json.loads(result.stdout)
        self.assertEqual(result.returncode, 0, out)
        self.assertTrue(out["ok"])
        seen = {(c["experiment"], c["allocator"]) for c in out["points"]}
        self.assertEqual(seen, {(w, a) for w in work.split(",") for a in names()})
        for cell in out["points"]:
            self.check_cell(cell)

    def check_cell(self, cell):
        self.assertIn(cell["outcome"], ("ok", "skipped"), cell)
        if cell["outcome"] == "skipped":
            self.assertTrue(cell["note"], cell)
            return
        if cell["ms"] is not None:
            self.assertGreaterEqual(cell["ms"], 0)
            self.assertLessEqual(cell["min_ms"], cell["max_ms"])
        self.assertEqual((cell["corrupt"], cell["misaligned"]), (0, 0), cell)

    def test_every_experiment_has_points_of_somebody(self):
        with tempfile.TemporaryDirectory() as folder:
            name = os.path.join(folder, "figures.jsonl")
            who = "ScatterAlloc,FDGMalloc,XMalloc,CudaMalloc,baseline"
            result = quarry("bench", *SMALL, "--quick", "--allocators", who, "--out", name)
            self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
            with open(name, encoding="utf-8") as file:
                lines = [json.loads(line) for line in file]
        described = {}
        good = set()
        for line in lines:
            if line["kind"] == "experiment":
                described[line["id"]] = line
                for key in ("title", "source", "x", "y", "form", "note"):
                    self.assertIn(key, line)
            elif line["kind"] == "point":
                self.check_point(line, described[line["experiment"]])
                if line["outcome"] == "ok":
                    good.add(line["experiment"])
        listed = {line.split()[0] for line in quarry("bench", "--list").stdout.splitlines()[2:]}
        self.assertEqual(set(described), listed)
        self.assertEqual(good, listed)
        claims = {line["id"]: line for line in lines if line["kind"] == "claim"}
        self.assertLessEqual({"xmalloc-48", "fdgmalloc-least", "fdgmalloc-most"}, set(claims))
        for claim in claims.values():
            self.assertGreater(claim["ours"], 0)
            self.assertEqual(claim["backend"], "cpu")
        self.assertIn("What the papers say, and here:", result.stdout)

    def check_point(self, line, described):
        for key in KEYS:
            self.assertIn(key, line)
        self.check_cell(line)
        self.assertIn(f"--experiments {line['experiment']} --allocators {line['allocator']}", line["command"])
        self.assertEqual(isinstance(line["x"], str), described["x"]["scale"] == "category", line)
        for y in described["y"]:
            self.assertIn(y["field"], line)
        if line["outcome"] == "ok":
            self.assertIsNotNone(line[described["y"][0]["field"]], line)

    def test_the_literature(self):
        result = quarry("bench", *SMALL, "--json", "--workloads", "acd,p", "--allocators", "CudaMalloc")
        cells = json.loads(result.stdout)["points"]
        self.assertEqual([(c["experiment"], c["x_label"]) for c in cells],
                         [("acd", "10 x 16 B"), ("acd", "100 x 16 B"), ("p", "16 B")])
        self.assertEqual({c["lanes"] for c in cells}, {960})

    def test_sizes_and_ranges_are_rows(self):
        result = quarry("bench", *SMALL, "--json", "--workloads", "alloc,mixed", "--allocators",
                        "AtomicMalloc,bump,AWMalloc", "--sizes", "48,1K,10-20")
        rows = [(c["experiment"], c["allocator"], c["x_label"]) for c in json.loads(result.stdout)["points"]]
        self.assertEqual(rows, [("alloc", a, r) for a in ("AtomicMalloc", "AWMalloc") for r in ("48 B", "1 KiB")] +
                         [("mixed", a, "10-20 B") for a in ("AtomicMalloc", "AWMalloc")])

    def test_cold_and_warm_are_curves(self):
        result = quarry("bench", *SMALL, "--json", "--experiments", "alloc", "--sizes", "64", "--allocators",
                        "ScatterAlloc,CudaMalloc", "--heap-state", "cold,warm")
        cells = json.loads(result.stdout)["points"]
        self.assertEqual([(c["series"], c["heap_state"]) for c in cells],
                         [("ScatterAlloc", "warm"), ("ScatterAlloc, cold", "cold"),
                          ("CudaMalloc", "warm"), ("CudaMalloc, cold", "cold")])
        self.assertEqual([c["repeats"] for c in cells], [2, 2, 2, 1])  # the system's heap is new once

    def test_threads_are_lanes(self):
        result = quarry("bench", "--backend", "cpu", "--threads", "48", "--repeats", "1", "--json", "--experiments",
                        "alloc", "--sizes", "16", "--allocators", "AtomicMalloc")
        cell = json.loads(result.stdout)["points"][0]
        self.assertEqual(cell["lanes"], 48)
        self.assertIn("--lanes 48", cell["command"])

    def test_the_command_behind_a_point_gives_it_again(self):
        result = quarry("bench", *SMALL, "--json", "--experiments", "xmalloc-6", "--allocators", "XMalloc,AtomicMalloc")
        cells = json.loads(result.stdout)["points"]
        self.assertEqual({c["allocator"] for c in cells}, {"XMalloc"})
        again = quarry(*shlex.split(cells[0]["command"])[1:], "--json", "--timeout", "100")
        wanted = [(c["series"], c["x"], c["lanes"], c["heap_bytes"]) for c in cells]
        self.assertEqual([(c["series"], c["x"], c["lanes"], c["heap_bytes"])
                          for c in json.loads(again.stdout)["points"]], wanted)

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
        self.assertEqual([line["kind"] for line in lines], (["experiment"] + 4 * ["point"]) * 2)  # it appends
        self.assertEqual(lines[1]["atomics_per_call"], 1)
        for key in KEYS:
            self.assertIn(key, lines[1])

    def test_a_heap_too_small_is_seen(self):
        result = quarry("bench", "--backend", "cpu", "--heap", "1M", "--lanes", "1024", "--workloads", "alloc",
                        "--sizes", "2K", "--allocators", "AtomicMalloc", "--json")
        cell = json.loads(result.stdout)["points"][0]
        self.assertEqual((cell["outcome"], cell["failures"]), ("ok", 512))
        self.assertEqual(result.returncode, 0)

    def test_bad_input(self):
        for arguments, word in ((["--workloads", "chrun"], "did you mean churn?"),
                                (["--experiments", "xmaloc-2"], "did you mean xmalloc-2?"),
                                (["--heap-state", "hot"], "'hot' is not one of cold, warm"),
                                (["--time-limit", "0"], "0 s is out of range"),
                                (["--allocators", "AtomicMaloc"], "did you mean AtomicMalloc?"),
                                (["--allocators", "AWMalloc,"], "no allocator ''"),
                                (["--sizes", "0"], "at least one byte"),
                                (["--sizes", "2G"], "the most is 1 GiB"),
                                (["--sizes", "64", "--workloads", "churn"], "none of which was chosen"),
                                (["--sizes", "many"], "'many' is not a size"),
                                (["--lanes", "0"], "the minimum is 1"),
                                (["--repeats", "x"], "not a whole number"),
                                (["--timeout", "0"], "the minimum is 1"),
                                (["--heap", "1K"], "1 MiB at least"),
                                (["--heap", "1000T"], "is more than"),
                                (["--quick", "extra"], "unexpected: extra"),
                                (["--out", "/no/such/folder/file"], "can not be written")):
            result = quarry("bench", "--backend", "cpu", *arguments)
            self.assertEqual(result.returncode, 2, arguments)
            self.assertEqual(result.stdout, "")
            self.assertEqual(len(result.stderr.splitlines()), 1, result.stderr)
            self.assertIn(word, result.stderr)
        self.assertIn("gpu not in {cpu,cuda}", quarry("bench", "--backend", "gpu").stderr)


if __name__ == "__main__":
    PROGRAM = shlex.split(sys.argv.pop(1))
    unittest.main(verbosity=2)
