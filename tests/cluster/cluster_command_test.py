#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""quarry cluster as people use it.

usage: cluster_command_test.py PROGRAM [-- LAUNCHER...]

PROGRAM may be several words. With a launcher (mpirun and its options) the applications also run
as real processes.
"""
import json
import pathlib
import shlex
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree

PROGRAM = []
LAUNCHER = []


def run(words):
    return subprocess.run(words, capture_output=True, text=True, timeout=200)


def cluster(*arguments):
    return run([*PROGRAM, "cluster", *arguments])


class Simulated(unittest.TestCase):
    def line(self, *arguments):
        result = cluster(*arguments, "--json")
        self.assertEqual(result.returncode, 0, result.stderr)
        return json.loads(result.stdout)

    def test_applications_are_checked(self):
        for app, more in (("barnes-hut", ["--bodies", "500", "--steps", "2"]),
                          ("delaunay", ["--points", "2000"]),
                          ("list-exchange", ["--nodes", "300"])):
            line = self.line(app, "--simulate", "5", *more)
            self.assertEqual((line["app"], line["workers"]), (app, 4))
            self.assertIs(line["correct"], True)
            self.assertGreater(line["allocations"], 0)
            text = cluster(app, "--simulate", "5", *more)
            self.assertEqual(text.returncode, 0)
            self.assertIn("4 workers under 1 scheduler", text.stdout)

    def test_leases_save_messages(self):
        few = self.line("list-exchange", "--simulate", "3", "--nodes", "5000")
        many = self.line("list-exchange", "--simulate", "3", "--nodes", "5000", "--no-leases")
        self.assertLessEqual(few["allocation_messages"], 0.02)
        self.assertEqual(many["allocation_messages"], 2)

    def test_a_tree_stays_flat_where_one_scheduler_bends(self):
        result = cluster("scaling", "--most", "256", "--json")
        self.assertEqual(result.returncode, 0, result.stderr)
        cells = [json.loads(line) for line in result.stdout.splitlines()]
        by = {(c["tree"], c["workers"]): c for c in cells}
        self.assertGreater(by["one scheduler", 256]["call_us"], 5 * by["one scheduler", 1]["call_us"])
        self.assertLess(by["tree", 256]["call_us"], 2 * by["tree", 1]["call_us"])

    def test_pictures_are_drawn(self):
        with tempfile.TemporaryDirectory() as folder:
            for words in (["barnes-hut", "--simulate", "3", "--bodies", "200", "--picture"],
                          ["delaunay", "--simulate", "5", "--points", "200", "--picture"],
                          ["scaling", "--most", "4", "--plot"]):
                file = pathlib.Path(folder) / (words[0] + ".svg")
                self.assertEqual(cluster(*words, str(file)).returncode, 0)
                xml.etree.ElementTree.parse(file)

    def test_runs_are_plotted(self):
        with tempfile.TemporaryDirectory() as folder:
            runs = pathlib.Path(folder) / "runs.jsonl"
            picture = pathlib.Path(folder) / "runs.svg"
            lines = [json.dumps(self.line("barnes-hut", "--simulate", n, "--bodies", "200"))
                     for n in ("2", "3")]
            runs.write_text("\n".join(lines) + "\n", encoding="utf-8")
            self.assertEqual(cluster("plot", str(runs), "-o", str(picture)).returncode, 0)
            xml.etree.ElementTree.parse(picture)
            runs.write_text("nonsense\n", encoding="utf-8")
            result = cluster("plot", str(runs), "-o", str(picture))
            self.assertEqual(result.returncode, 2)
            self.assertIn("runs.jsonl:1:", result.stderr)

    def test_bad_input_is_told(self):
        for words, complaint in (
                (["barnes-hut", "--simulate", "4"], "power of two"),
                (["delaunay", "--simulate", "3"], "power of four"),
                (["barnes-hut"], "mpirun"),
                (["barnes-hut", "--simulate", "1"], "--simulate"),
                (["barnes-hut", "--simulate", "3", "--theta", "7"], "--theta"),
                (["plot", "/nowhere/at/all"], "can not read"),
                (["dance"], "")):
            result = cluster(*words)
            self.assertEqual(result.returncode, 2, words)
            self.assertIn(complaint, result.stderr)
            self.assertEqual(len(result.stderr.splitlines()), 1, result.stderr)


class UnderMpi(unittest.TestCase):
    def test_applications_are_checked(self):
        if not LAUNCHER:
            self.skipTest("no launcher")
        for app, more in (("barnes-hut", ["--bodies", "500", "--steps", "2", "--status"]),
                          ("delaunay", ["--points", "2000", "--hand-over"]),
                          ("list-exchange", ["--nodes", "300"]),
                          ("list-exchange", ["--nodes", "300", "--together"])):
            result = run([*LAUNCHER, "-n", "5", *PROGRAM, "cluster", app, *more, "--json"])
            self.assertEqual(result.returncode, 0, result.stderr)
            line = json.loads(result.stdout)
            self.assertIs(line["correct"], True)
            self.assertEqual(line["workers"], 4)
            if app == "list-exchange":
                self.assertGreater(line["one_sided_seconds"], 0)
                self.assertGreater(line["request_reply_seconds"], 0)


if __name__ == "__main__":
    arguments = sys.argv[1:]
    if "--" in arguments:
        LAUNCHER = arguments[arguments.index("--") + 1:]
        arguments = arguments[:arguments.index("--")]
    if len(arguments) != 1:
        print(__doc__, file=sys.stderr)
        sys.exit(2)
    PROGRAM = shlex.split(arguments[0])
    unittest.main(argv=sys.argv[:1])
