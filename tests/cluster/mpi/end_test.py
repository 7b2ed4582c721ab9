#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Ends clusters in regular and irregular ways; checks exit codes, messages, and that they end.

    end_test.py PROGRAM MPIRUN [OPTION...]
"""
import re
import subprocess
import sys
import time
import unittest

PROGRAM, LAUNCH = sys.argv[1], sys.argv[2:]


def end(how, *more, ranks=5):
    """Returns the exit code, the output and the seconds of a job that ends this way."""
    start = time.monotonic()
    done = subprocess.run([*LAUNCH, *more, "-n", str(ranks), PROGRAM, how], text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=500)
    return done.returncode, done.stdout, time.monotonic() - start


def ours(text):
    """The lines that Quarry printed, without those of MPI."""
    return "".join(line + "\n" for line in text.splitlines() if line.startswith("quarry"))


class End(unittest.TestCase):
    def bad(self, how, *words, more=()):
        code, text, seconds = end(how, *more)
        print(f"{how} {' '.join(more)}: {seconds:.1f} s", flush=True)
        if not more:  # Open MPI returns 0 if it was told to continue
            self.assertNotEqual(code, 0, text)
        for word in words:
            self.assertIn(word, text)

    def test_prints_nothing_if_everything_is_freed(self):
        code, text, _ = end("clean")
        self.assertEqual((code, ours(text)), (0, ""))

    def test_allows_long_computations_while_others_wait(self):
        code, text, _ = end("compute")
        self.assertEqual((code, ours(text)), (0, ""))

    def test_returns_the_largest_number(self):
        self.assertEqual(end("return")[0], 3)

    def test_reports_leaks_once(self):
        line = "quarry: not freed at the end: 1 region, 1 object (128 B)\n"
        code, text, _ = end("leak")
        self.assertEqual((code, ours(text)), (0, line))
        code, text, _ = end("leak-quiet")
        self.assertEqual((code, ours(text)), (0, ""))
        code, text, _ = end("leak-fail")
        self.assertEqual(code, 1)
        self.assertEqual(text.count(line), 1)

    def test_names_the_worker_that_threw(self):
        self.bad("throw", "quarry: rank 2 (worker 1): this worker has had enough")
        self.bad("throw-number",
                 "quarry: rank 2 (worker 1): an exception that is no std::exception")

    def test_names_the_worker_that_exited(self):
        self.bad("exit", "quarry: rank 2 (worker 1) called exit")
        self.bad("vanish", "rank 2")

    def test_names_the_rank_that_was_killed(self):
        self.bad("kill", "rank 2")
        self.bad("kill-scheduler", "rank 0")

    def test_names_the_rank_that_accessed_handed_over_memory(self):
        self.bad("touch", "rank 2")

    def test_returns_2_if_the_options_of_ranks_differ(self):
        for how, difference in (
                ("unequal", "tree.workers_each is 16 on rank 0 and 2 on rank 3"),
                ("unequal-arguments", "input is 0 on rank 0 and 1 on rank 2")):
            code, text, _ = end(how)
            self.assertEqual((code, ours(text)),
                             (2, f"quarry: {difference}; all ranks need the same options\n"))

    def test_rejects_a_single_rank(self):
        code, text, _ = end("clean", ranks=1)
        self.assertNotEqual(code, 0)
        self.assertIn("a cluster needs at least two processes", text)

    def test_detects_a_scheduler_that_hangs(self):
        self.bad("stop-scheduler", "rank 0 (scheduler) gives no sign of life")

    def test_detects_the_end_of_a_rank_if_the_launcher_continues(self):
        version = subprocess.run([LAUNCH[0], "--version"], text=True, stdout=subprocess.PIPE)
        if not re.search("Open ?(MPI|RTE)", version.stdout):
            self.skipTest("an option of Open MPI")
        more = ("--enable-recovery",)
        self.bad("kill", "quarry: rank 2 (worker 1) has ended while", more=more)
        self.bad("kill-scheduler", "quarry: rank 0 (scheduler) has ended while", more=more)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
