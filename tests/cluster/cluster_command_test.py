#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The subcommands of quarry cluster, started as programs.

usage: cluster_command_test.py PROGRAM [-- LAUNCHER...]

PROGRAM may be several words. With a launcher (mpirun and its options) the applications also run
as MPI processes.
"""
import json
import os
import pathlib
import pty
import shlex
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree

PROGRAM = []
LAUNCHER = []
# The figures of Lyberis et al. (2012) that show the same application.
FIGURES = {"barnes-hut": "Figures 4e and 4f", "delaunay": "Figure 4d",
           "list-exchange": "Figures 4g and 4h"}


def run(words):
    return subprocess.run(words, capture_output=True, text=True, timeout=200)


def cluster(*arguments):
    return run([*PROGRAM, "cluster", *arguments])


def records_of(text):
    return [json.loads(line) for line in text.splitlines()]


class Simulated(unittest.TestCase):
    def run_of(self, *arguments):
        """Runs an application and returns one of its data points, which hold the whole run."""
        result = cluster(*arguments, "--json")
        self.assertEqual(result.returncode, 0, result.stderr)
        experiment, *points = records_of(result.stdout)
        self.assertEqual((experiment["kind"], experiment["form"]), ("experiment", "layers"))
        self.assertEqual(experiment["source"],
                         f"compare Lyberis et al. 2012, {FIGURES[points[0]['app']]}")
        self.assertEqual([p["series"] for p in points],
                         ["computation", "worker communication", "scheduler communication"])
        for p in points:
            self.assertEqual((p["kind"], p["experiment"], p["outcome"]),
                             ("point", experiment["id"], "ok"))
            self.assertEqual(p["backend"], "simulated network")
            self.assertIn("--simulate", p["command"])
        self.assertAlmostEqual(points[0]["mean_seconds"], points[0]["computation"])
        return points[0]

    def test_applications_are_checked(self):
        for app, more in (("barnes-hut", ["--bodies", "500", "--steps", "2"]),
                          ("delaunay", ["--points", "2000"]),
                          ("list-exchange", ["--nodes", "300"])):
            line = self.run_of(app, "--simulate", "5", *more)
            self.assertEqual((line["app"], line["workers"]), (app, 4))
            self.assertIs(line["correct"], True)
            self.assertGreater(line["allocations"], 0)
            text = cluster(app, "--simulate", "5", *more)
            self.assertEqual(text.returncode, 0)
            self.assertIn("4 workers under 1 scheduler", text.stdout)

    def test_a_terminal_shows_the_progress(self):
        for words in (["list-exchange", "--nodes", "20"], ["delaunay", "--points", "200"],
                      ["barnes-hut", "--bodies", "200", "--steps", "2"]):
            terminal, end = pty.openpty()
            result = subprocess.run([*PROGRAM, "cluster", *words, "--simulate", "5"],
                                    stdout=subprocess.PIPE, stderr=end, timeout=200,
                                    env={**os.environ, "TERM": "xterm"})
            os.close(end)
            self.assertEqual(result.returncode, 0)
            self.assertRegex(os.read(terminal, 100_000).decode(), r"\[=* *\] +\d+ %  \w")
            os.close(terminal)

    def test_leases_save_messages(self):
        few = self.run_of("list-exchange", "--simulate", "3", "--nodes", "5000")
        many = self.run_of("list-exchange", "--simulate", "3", "--nodes", "5000", "--no-leases")
        self.assertLessEqual(few["allocation_messages"], 0.02)
        self.assertEqual(many["allocation_messages"], 2)

    def test_waiting_time_grows_with_one_scheduler_and_not_with_a_tree(self):
        result = cluster("scaling", "--most", "256", "--json")
        self.assertEqual(result.returncode, 0, result.stderr)
        points = [r for r in records_of(result.stdout) if r["kind"] == "point"]
        by = {(p["series"], p["x"]): p for p in points}
        self.assertGreater(by["one scheduler", 256]["call_us"],
                           5 * by["one scheduler", 1]["call_us"])
        self.assertLess(by["tree", 256]["call_us"], 2 * by["tree", 1]["call_us"])

    def test_pages_in_advance_shorten_the_longest_call(self):
        def longest(*options):
            result = cluster("scaling", "--most", "16", "--calls", "1024", "--size", "32768",
                             "--json", *options)
            self.assertEqual(result.returncode, 0, result.stderr)
            return {p["series"]: p["longest_us"] for p in records_of(result.stdout)
                    if p["kind"] == "point" and p["x"] == 16}
        early, late = longest(), longest("--low-pages", "0")
        self.assertEqual(early["one scheduler"], late["one scheduler"])
        self.assertLess(early["tree"], 0.8 * late["tree"])

    def test_pictures_are_drawn(self):
        with tempfile.TemporaryDirectory() as folder:
            for words in (["barnes-hut", "--simulate", "3", "--bodies", "200", "--picture"],
                          ["delaunay", "--simulate", "5", "--points", "200", "--picture"],
                          ["scaling", "--most", "4", "--plot"]):
                file = pathlib.Path(folder) / (words[0] + ".svg")
                self.assertEqual(cluster(*words, str(file)).returncode, 0)
                xml.etree.ElementTree.parse(file)

    def test_quarry_report_draws_the_records(self):
        with tempfile.TemporaryDirectory() as folder:
            folder = pathlib.Path(folder)
            records, figures = folder / "runs.jsonl", folder / "figures"
            for words in (["barnes-hut", "--simulate", "2", "--bodies", "200"],
                          ["barnes-hut", "--simulate", "3", "--bodies", "200"],
                          ["scaling", "--most", "4"]):
                result = cluster(*words, "--out", str(records))
                self.assertEqual(result.returncode, 0, result.stderr)
                self.assertNotIn("{", result.stdout)
            result = run([*PROGRAM, "report", str(records), "--figures", str(figures)])
            self.assertEqual(result.returncode, 0, result.stderr)
            bars = figures / "cluster-barnes-hut--simulated-network--mean_seconds.svg"
            text = "".join(xml.etree.ElementTree.parse(bars).getroot().itertext())
            for label in ("1 (1)", "2 (1)", "computation", "scheduler communication"):
                self.assertIn(label, text)
            self.assertTrue((figures / "cluster-scaling--simulated-network--call_us.svg").exists())

    def test_bad_input_is_reported_in_one_line(self):
        for words, complaint in (
                (["barnes-hut", "--simulate", "4"], "power of two"),
                (["delaunay", "--simulate", "3"], "power of four"),
                (["barnes-hut"], "mpirun"),
                (["barnes-hut", "--simulate", "1"], "--simulate"),
                (["barnes-hut", "--simulate", "3", "--theta", "7"], "--theta"),
                (["scaling", "--most", "2", "--out", "/nowhere/at/all"], "cannot write /nowhere"),
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
            line = records_of(result.stdout)[1]
            self.assertEqual(line["backend"], "mpi")
            self.assertIs(line["correct"], True)
            self.assertEqual(line["workers"], 4)
            if app == "list-exchange":
                self.assertGreater(line["one_sided_seconds"], 0)
                self.assertGreater(line["request_reply_seconds"], 0)

    def test_ranks_with_different_options_end_with_a_message(self):
        if not LAUNCHER:
            self.skipTest("no launcher")
        for first, second, complaint in (
                (["barnes-hut", "--steps", "2"], ["barnes-hut", "--steps", "3"],
                 "--steps is 2 on rank 0 and 3 on rank 2; all ranks need the same options"),
                (["list-exchange", "--nodes", "30000", "--workers-each", "16"],
                 ["list-exchange", "--workers-each", "1"],
                 "--workers-each is 16 on rank 0 and 1 on rank 2;"),
                (["delaunay"], ["delaunay", "--out", "/nowhere"],
                 "--out is not given on rank 0 and /nowhere on rank 2;"),
                (["delaunay"], ["list-exchange", "--simulate", "3"], "start a simulation without"),
                (["delaunay"], ["barnes-hut"],
                 "the command is delaunay on rank 0 and barnes-hut on rank 2;")):
            result = run([*LAUNCHER, "-n", "2", *PROGRAM, "cluster", *first,
                          ":", "-n", "1", *PROGRAM, "cluster", *second])
            self.assertEqual(result.returncode, 2, result.stderr)
            self.assertEqual(result.stderr.count("quarry: "), 1, result.stderr)
            self.assertIn("quarry: ", result.stderr)
            self.assertIn(complaint, result.stderr)
            self.assertEqual(result.stdout.count("workers"), 0, result.stdout)

    def test_equal_options_may_be_written_differently(self):
        if not LAUNCHER:
            self.skipTest("no launcher")
        result = run([*LAUNCHER, "-n", "1", *PROGRAM, "cluster", "barnes-hut", "--bodies", "200",
                      "--theta", "0.50", ":", "-n", "1", *PROGRAM, "cluster", "barnes-hut",
                      "--seed", "1", "--bodies", "200"])
        self.assertEqual(result.returncode, 0, result.stderr)


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
