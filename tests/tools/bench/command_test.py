#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs `quarry bench` as a program.

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
# Time limits that suffice for a sanitizer build on a loaded host.
SMALL = ["--backend", "cpu", "--lanes", "64", "--repeats", "2", "--heap", "32M", "--timeout", "100",
         "--time-limit", "20"]


def quarry(*arguments):
    return subprocess.run([*PROGRAM, *arguments], capture_output=True, text=True, timeout=500)


def names():
    return [a["name"] for a in json.loads(quarry("list", "--json").stdout)["allocators"]]


KEYS = ("experiment", "allocator", "series", "x", "command", "backend", "device", "driver", "cuda",
        "compiler",
        "commit", "date", "outcome", "note", "repeats", "ms", "min_ms", "max_ms", "free_ms",
        "min_free_ms",
        "max_free_ms", "atomics_per_call", "free_atomics_per_call", "values", "failures", "corrupt",
        "misaligned",
        "lanes", "heap_bytes", "heap_state")


class Bench(unittest.TestCase):
    def test_help(self):
        result = quarry("bench", "--help")
        self.assertEqual(result.returncode, 0)
        self.assertIn("Examples:\n  quarry bench", result.stdout)
        for experiment in ("alloc", "widmer", "xmalloc-2", "fdgmalloc-5", "cmalloc-3a",
                           "survey-oom", "steady"):
            self.assertIn(f" {experiment} ", result.stdout)

    def test_list(self):
        result = quarry("bench", "--list")
        self.assertEqual(result.returncode, 0)
        for experiment in ("xmalloc-2 ", "fdgmalloc-6 ", "cmalloc-registers ", "survey-write ",
                           "latency ", "fill "):
            self.assertIn("\n" + experiment, result.stdout)
        self.assertIn("Huang et al. 2013, Figure 2", result.stdout)

    def test_every_workload_of_every_allocator(self):
        # acd and p have 30,720 lanes, whatever --lanes says; test_the_literature runs them.
        workloads = "alloc,mixed,churn,one-lane,xmalloc,widmer,fragmentation,fill"
        result = quarry("bench", *SMALL, "--quick", "--json", "--workloads", workloads)
        out = json.loads(result.stdout)
        self.assertEqual(result.returncode, 0, out)
        self.assertTrue(out["ok"])
        seen = {(c["experiment"], c["allocator"]) for c in out["points"]}
        self.assertEqual(seen, {(w, a) for w in workloads.split(",") for a in names()})
        for point in out["points"]:
            self.check_result(point)

    def check_result(self, point):
        self.assertIn(point["outcome"], ("ok", "skipped"), point)
        if point["outcome"] == "skipped":
            self.assertTrue(point["note"], point)
            return
        if point["ms"] is not None:
            self.assertGreaterEqual(point["ms"], 0)
            self.assertLessEqual(point["min_ms"], point["max_ms"])
        self.assertEqual((point["corrupt"], point["misaligned"]), (0, 0), point)

    def test_every_experiment_measures_an_allocator(self):
        with tempfile.TemporaryDirectory() as folder:
            name = os.path.join(folder, "results.jsonl")
            allocators = "ScatterAlloc,FDGMalloc,XMalloc,CudaMalloc,baseline"
            result = quarry("bench", *SMALL, "--quick", "--allocators", allocators, "--out", name)
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
        self.assertIn("Claims of the papers, and what was measured here:", result.stdout)

    def check_point(self, line, described):
        for key in KEYS:
            self.assertIn(key, line)
        self.check_result(line)
        self.assertIn(f"--experiments {line['experiment']} --allocators {line['allocator']}",
                      line["command"])
        self.assertEqual(isinstance(line["x"], str), described["x"]["scale"] == "category", line)
        for y in described["y"]:
            self.assertIn(y["field"], line)
        if line["outcome"] == "ok":
            self.assertIsNotNone(line[described["y"][0]["field"]], line)

    def test_the_literature(self):
        result = quarry("bench", *SMALL, "--json", "--workloads", "acd,p", "--allocators",
                        "CudaMalloc")
        points = json.loads(result.stdout)["points"]
        self.assertEqual([(c["experiment"], c["x_label"]) for c in points],
                         [("acd", "10 x 16 B"), ("acd", "100 x 16 B"), ("p", "16 B")])
        self.assertEqual({c["lanes"] for c in points}, {960})

    def test_sizes_and_ranges_are_x_values(self):
        result = quarry("bench", *SMALL, "--json", "--workloads", "alloc,mixed", "--allocators",
                        "AtomicMalloc,bump,AWMalloc", "--sizes", "48,1K,10-20")
        found = [(c["experiment"], c["allocator"], c["x_label"])
                 for c in json.loads(result.stdout)["points"]]
        allocators = ("AtomicMalloc", "AWMalloc")
        self.assertEqual(found, [("alloc", a, x) for a in allocators for x in ("48 B", "1 KiB")] +
                         [("mixed", a, "10-20 B") for a in allocators])

    def test_cold_and_warm_heaps_are_two_curves(self):
        result = quarry("bench", *SMALL, "--json", "--experiments", "alloc", "--sizes", "64",
                        "--allocators",
                        "ScatterAlloc,CudaMalloc", "--heap-state", "cold,warm")
        points = json.loads(result.stdout)["points"]
        self.assertEqual([(c["series"], c["heap_state"]) for c in points],
                         [("ScatterAlloc", "warm"), ("ScatterAlloc, cold", "cold"),
                          ("CudaMalloc", "warm"), ("CudaMalloc, cold", "cold")])
        # A process has one new system heap.
        self.assertEqual([c["repeats"] for c in points], [2, 2, 2, 1])

    def test_threads_are_lanes(self):
        result = quarry("bench", "--backend", "cpu", "--threads", "48", "--repeats", "1", "--json",
                        "--experiments",
                        "alloc", "--sizes", "16", "--allocators", "AtomicMalloc")
        point = json.loads(result.stdout)["points"][0]
        self.assertEqual(point["lanes"], 48)
        self.assertIn("--lanes 48", point["command"])

    def test_the_command_of_a_point_measures_it_again(self):
        result = quarry("bench", *SMALL, "--json", "--experiments", "xmalloc-6", "--allocators",
                        "XMalloc,AtomicMalloc")
        points = json.loads(result.stdout)["points"]
        self.assertEqual({c["allocator"] for c in points}, {"XMalloc"})
        again = quarry(*shlex.split(points[0]["command"])[1:], "--json", "--timeout", "100")
        wanted = [(c["series"], c["x"], c["lanes"], c["heap_bytes"]) for c in points]
        self.assertEqual([(c["series"], c["x"], c["lanes"], c["heap_bytes"])
                          for c in json.loads(again.stdout)["points"]], wanted)

    def test_table_and_record(self):
        with tempfile.TemporaryDirectory() as folder:
            name = os.path.join(folder, "results.jsonl")
            for _ in range(2):
                result = quarry("bench", *SMALL, "--workloads", "alloc", "--sizes", "16,64",
                                "--allocators",
                                "AtomicMalloc,CudaMalloc", "--out", name)
            with open(name, encoding="utf-8") as file:
                lines = [json.loads(line) for line in file]
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("alloc: ", result.stdout)
        self.assertRegex(result.stdout, r"\n16 B +\d+\.\d+ +\d+\.\d+ / \d+\.\d+\n")
        self.assertIn("4 data points were checked", result.stdout)
        # The second run appends.
        self.assertEqual([line["kind"] for line in lines], (["experiment"] + 4 * ["point"]) * 2)
        self.assertEqual(lines[1]["atomics_per_call"], 1)
        for key in KEYS:
            self.assertIn(key, lines[1])

    def test_failed_allocations_are_counted(self):
        result = quarry("bench", "--backend", "cpu", "--heap", "1M", "--lanes", "1024",
                        "--workloads", "alloc",
                        "--sizes", "2K", "--allocators", "AtomicMalloc", "--json")
        point = json.loads(result.stdout)["points"][0]
        self.assertEqual((point["outcome"], point["failures"]), ("ok", 512))
        self.assertEqual(result.returncode, 0)

    def test_bad_input(self):
        for arguments, word in ((["--workloads", "chrun"], "did you mean churn?"),
                                (["--experiments", "xmaloc-2"], "did you mean xmalloc-2?"),
                                (["--heap-state", "hot"], "'hot' not in {cold,warm}"),
                                (["--time-limit", "0"], "0 s is out of range"),
                                (["--allocators", "AtomicMaloc"], "did you mean AtomicMalloc?"),
                                (["--allocators", "AWMalloc,"], "no allocator ''"),
                                (["--sizes", "0"], "at least 1 byte"),
                                (["--sizes", "2G"], "the maximum is 1 GiB"),
                                (["--sizes", "64", "--workloads", "churn"],
                                 "none of the chosen experiments uses it"),
                                (["--sizes", "many"], "'many' is not a size"),
                                (["--lanes", "0"], "the minimum is 1"),
                                (["--repeats", "x"], "not a whole number"),
                                (["--timeout", "0"], "the minimum is 1"),
                                (["--heap", "1K"], "the minimum is 1 MiB"),
                                (["--heap", "1000T"], "is more than"),
                                (["--quick", "extra"], "unexpected: extra"),
                                (["--out", "/no/such/folder/file"], "cannot write /no/such/")):
            result = quarry("bench", "--backend", "cpu", *arguments)
            self.assertEqual(result.returncode, 2, arguments)
            self.assertEqual(result.stdout, "")
            self.assertEqual(len(result.stderr.splitlines()), 1, result.stderr)
            self.assertIn(word, result.stderr)
        self.assertIn("gpu not in {cpu,cuda}", quarry("bench", "--backend", "gpu").stderr)


if __name__ == "__main__":
    PROGRAM = shlex.split(sys.argv.pop(1))
    unittest.main(verbosity=2)
