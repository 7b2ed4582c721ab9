#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs quarry kd-tree and quarry graph and checks their output.

usage: workload_test.py PROGRAM [TEST...]

PROGRAM may be several words: a launcher and the program.
"""
import json
import os
import shlex
import subprocess
import sys
import tempfile
import unittest

PROGRAM = []
TREE = ("kd-tree", "--backend", "cpu", "--triangles", "400", "--repeats", "1")
GRAPH = ("graph", "--backend", "cpu", "--scale", "6", "--degree", "4", "--batches", "50,200",
         "--repeats", "1")
ALWAYS = ("experiment", "allocator", "series", "x", "command", "backend", "device", "driver",
          "cuda", "compiler", "commit", "date", "outcome", "note", "repeats", "ms", "min_ms",
          "max_ms", "free_ms", "min_free_ms", "max_free_ms", "atomics_per_call",
          "free_atomics_per_call", "values", "failures", "corrupt", "misaligned")


def quarry(*arguments):
    return subprocess.run([*PROGRAM, *arguments], capture_output=True, text=True, timeout=500)


def names():
    return [a["name"] for a in json.loads(quarry("list", "--json").stdout)["allocators"]]


def split(lines):
    return tuple([line for line in lines if line["kind"] == kind]
                 for kind in ("experiment", "point"))


class Both(unittest.TestCase):
    def test_help(self):
        for command in ("kd-tree", "graph"):
            result = quarry(command, "--help")
            self.assertEqual(result.returncode, 0)
            self.assertIn("Examples:\n  quarry " + command, result.stdout)

    def test_bad_input(self):
        cases = (
            (["kd-tree", "--scene", "no.obj"], "no.obj: cannot be read"),
            (["kd-tree", "--scene", "thick"], "not a .obj or .ply file"),
            (["kd-tree", "--triangles", "0"], "the minimum is 1"),
            (["kd-tree", "--triangles", "9999999"], "the maximum is 4194304"),
            (["kd-tree", "--allocators", "CFMaloc"], "did you mean CFMalloc?"),
            (["kd-tree", "--heap", "1K"], "at least 1 MiB"),
            (["kd-tree", "--heap", "1000T"], "is more than"),
            (["kd-tree", "--out", "/no/such/folder/file"], "cannot write /no/such/folder/file"),
            (["graph", "--experiments", "grow"], "'grow' is not one of init, update"),
            (["graph", "--batches", "1,many"], "not a whole number"),
            (["graph", "--scale", "24", "--degree", "4096"], "the maximum of 67,108,864"),
            (["graph", "--repeats", "x"], "not a whole number"),
        )
        for arguments, word in cases:
            result = quarry(*arguments, "--backend", "cpu")
            self.assertEqual(result.returncode, 2, arguments)
            self.assertEqual(result.stdout, "")
            self.assertEqual(len(result.stderr.splitlines()), 1, result.stderr)
            self.assertIn(word, result.stderr)


class KdTree(unittest.TestCase):
    def test_every_allocator_builds_the_reference_tree(self):
        result = quarry(*TREE, "--scene", "thin", "--check", "--json")
        out = json.loads(result.stdout)
        self.assertEqual(result.returncode, 0, out)
        self.assertTrue(out["ok"])
        experiments, points = split(out["lines"])
        self.assertEqual([e["id"] for e in experiments], ["kd-tree"])
        self.assertEqual(experiments[0]["x"]["scale"], "category")
        self.assertEqual(sorted(p["allocator"] for p in points), sorted(names()))
        self.assertEqual(points[0]["allocator"], "AtomicMalloc")
        self.assertEqual(points[0]["slowdown"], 1)
        for p in points:
            for key in ALWAYS + tuple(y["field"] for y in experiments[0]["y"]):
                self.assertIn(key, p)
            self.assertEqual((p["outcome"], p["note"], p["corrupt"], p["x"]),
                             ("ok", "", 0, "thin 400"), p)
            self.assertEqual(p["digest"], points[0]["digest"])
            self.assertEqual(p["triangles"], 400)
            self.assertGreater(p["rays"], 0)
            self.assertAlmostEqual(p["references_per_triangle"] * 400, p["references"])
            self.assertAlmostEqual(p["mean_bytes"] * p["allocations"], p["bytes"])
        ms = {p["allocator"]: p["ms"] for p in points}
        claims = [line for line in out["lines"] if line["kind"] == "claim"]
        self.assertEqual([c["paper"] for c in claims], [1.13, 4.33])
        for c in claims:
            self.assertAlmostEqual(c["ours"], ms["ScatterAlloc"] / ms["CFMalloc"])

    def test_the_baseline_is_always_measured(self):
        result = quarry(*TREE, "--scene", "clustered", "--allocators", "CFMalloc", "--json")
        points = split(json.loads(result.stdout)["lines"])[1]
        self.assertEqual([p["allocator"] for p in points], ["AtomicMalloc", "CFMalloc"])

    def test_scene_from_a_file_and_appended_records(self):
        with tempfile.TemporaryDirectory() as folder:
            mesh = os.path.join(folder, "strip.obj")
            record = os.path.join(folder, "trees.jsonl")
            with open(mesh, "w", encoding="utf-8") as file:
                for i in range(60):
                    file.write(f"v {i} {i % 2} {i * i % 7}\n")
                for i in range(1, 59):
                    file.write(f"f {i} {i + 1} {i + 2}\n")
            for _ in range(2):
                result = quarry("kd-tree", "--backend", "cpu", "--scene", mesh, "--repeats", "2",
                                "--allocators", "CMalloc", "--check", "--out", record)
            with open(record, encoding="utf-8") as file:
                experiments, points = split([json.loads(line) for line in file])
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("strip: 58 triangles", result.stdout)
        self.assertRegex(result.stdout, r"\nCMalloc +\d+\.\d+ +\d+\.\d+ +\d+\.\d+ +\d+\.\d+\s")
        self.assertEqual((len(experiments), len(points)), (2, 4))
        self.assertEqual({p["x"] for p in points}, {"strip"})
        self.assertIn(f"--scene {mesh}", points[0]["command"])

    def test_a_heap_that_is_too_small_is_reported(self):
        result = quarry("kd-tree", "--backend", "cpu", "--scene", "thin", "--triangles", "20000",
                        "--heap", "1M", "--repeats", "1", "--leaf", "100", "--allocators",
                        "AWMalloc", "--json")
        first, second = split(json.loads(result.stdout)["lines"])[1]
        self.assertEqual(result.returncode, 1)
        self.assertEqual(first["outcome"], "failed")
        self.assertIn("the heap of 1 MiB has no room", first["note"])
        self.assertEqual(second["outcome"], "skipped")
        self.assertIn("would overwrite", second["note"])

    def test_a_build_that_exceeds_the_time_limit_is_killed(self):
        result = quarry("kd-tree", "--backend", "cpu", "--scene", "tessellated", "--triangles",
                        "300000", "--timeout", "1", "--allocators", "AtomicMalloc", "--json")
        self.assertEqual(result.returncode, 1)
        point = split(json.loads(result.stdout)["lines"])[1][0]
        self.assertEqual((point["outcome"], point["note"]), ("timed out", "after 1 s"))


class Graph(unittest.TestCase):
    def test_every_experiment_with_every_allocator(self):
        result = quarry(*GRAPH, "--check", "--json")
        out = json.loads(result.stdout)
        self.assertEqual(result.returncode, 0, out)
        experiments, points = split(out["lines"])
        self.assertEqual([e["id"] for e in experiments],
                         ["graph-init", "graph-update", "graph-range", "graph-expand"])
        for e in experiments:
            axis = [1, 4, 16, 64] if e["id"] == "graph-init" else [50, 200]
            mine = [p for p in points if p["experiment"] == e["id"]]
            self.assertEqual([(p["allocator"], p["x"]) for p in mine],
                             [(a, x) for a in names() for x in axis])
            for p in mine:
                for key in ALWAYS:
                    self.assertIn(key, p)
                self.assertEqual((p["outcome"], p["note"], p["corrupt"]), ("ok", "", 0), p)
                self.assertGreaterEqual(p["ms"], 0)
                if e["id"] in ("graph-update", "graph-range"):
                    self.assertIsNotNone(p["free_ms"])
                    self.assertLessEqual(p["final_edges"], p["edges"])
                if e["id"] == "graph-expand":
                    self.assertGreater(p["final_edges"], p["edges"])

    def test_table(self):
        result = quarry(*GRAPH, "--experiments", "update", "--allocators", "CFMalloc,AtomicMalloc")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("Graph update: time to insert / time to erase, ms, by edges in the batch",
                      result.stdout)
        self.assertRegex(result.stdout, r"\nCFMalloc +\d+\.\d+ / \d+\.\d+ +\d+\.\d+ / \d+\.\d+\n")

    def test_a_failed_data_point_ends_its_series(self):
        result = quarry("graph", "--backend", "cpu", "--scale", "10", "--heap", "1M",
                        "--experiments", "expand", "--batches", "10,800000,20", "--repeats", "1",
                        "--allocators", "AtomicMalloc", "--json")
        self.assertEqual(result.returncode, 1)
        points = split(json.loads(result.stdout)["lines"])[1]
        self.assertEqual([p["outcome"] for p in points], ["ok", "failed", "not run"])
        self.assertIn("had no room for the lists of", points[1]["note"])


if __name__ == "__main__":
    PROGRAM = shlex.split(sys.argv.pop(1))
    unittest.main(verbosity=2)
