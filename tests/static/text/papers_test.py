#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Self-test of scripts/check-papers: it accepts a good page and reports each kind of fault."""
import pathlib
import subprocess
import sys
import tempfile
import unittest

import script_under_test

path = sys.argv[1]
check_papers = script_under_test.load()

HEAD = f"| {' | '.join(check_papers.COLUMNS)} |\n| {' | '.join(['---'] * 6)} |\n"
GOOD = ["Section 1: a pool", "implemented", "`src/pool.cpp`",
        "`Pool.Works`, `quarry bench --experiments one,two`", "1 ms, `bench/a.json`", "none"]
FILES = {
    "src/pool.cpp": "", "bench/a.json": "",
    "tests/pool_test.cpp": "TEST(Pool, Works) {}\nTYPED_TEST(\n    Pool, Grows) {}\n",
    "tests/CMakeLists.txt": "add_test(NAME pool.check\n  COMMAND x)\nquarry_test(pool_test y)\n",
    "tools/main.cpp": 'app.add_subcommand(\n  "bench", "");\nregion.add_subcommand("peers", "");\n'
                      'app.add_subcommand("region", ""); add("--experiments"); '
                      'add("--lanes,--threads"); add("!--no-check"); "one" "two"',
}


class Papers(unittest.TestCase):
    def run_on(self, page, files=FILES):
        """Returns the exit code and the faults, without their places, of a repository."""
        with tempfile.TemporaryDirectory() as folder:
            for name, text in {**files, "docs/papers.md": page}.items():
                if text is None:
                    continue
                file = pathlib.Path(folder, name)
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_text(text, encoding="utf-8")
            done = subprocess.run([sys.executable, path, folder], capture_output=True, text=True)
            return done.returncode, [line.split(": ", 1)[1] for line in done.stdout.splitlines()]

    def faults_of(self, **changes):
        """Returns the faults of a page with one row: the good one, with other cells."""
        columns = {"item": 0, "status": 1, "file": 2, "test": 3, "value": 4, "departure": 5}
        row = list(GOOD)
        for name, cell in changes.items():
            row[columns[name]] = cell
        code, faults = self.run_on(HEAD + f"| {' | '.join(row)} |\n")
        self.assertEqual(1 if faults else 0, code)
        return faults

    def test_accepts_a_good_row(self):
        self.assertEqual([], self.faults_of())
        self.assertEqual([], self.faults_of(item="a \\| b", status="departs", departure="no room"))

    def test_reports_the_line(self):
        with tempfile.TemporaryDirectory() as folder:
            repository = check_papers.Repository(pathlib.Path(folder))
            found = list(check_papers.faults_of_page("text\n\n" + HEAD + "| a | b |\n", repository))
        self.assertIn((5, "the row has 2 columns, not 6"), found)

    def test_reports_empty_cells_in_every_column(self):
        for column in ["item", "status", "file", "test", "value", "departure"]:
            for empty in ["", "–", "` `"]:
                self.assertTrue(any("is empty" in f for f in self.faults_of(**{column: empty})),
                                (column, empty))

    def test_reports_a_wrong_number_of_columns(self):
        for row in [GOOD[:-1], GOOD + ["more"]]:
            code, faults = self.run_on(HEAD + f"| {' | '.join(row)} |\n")
            self.assertEqual(1, code)
            self.assertIn(f"the row has {len(row)} columns, not 6", faults)

    def test_reports_other_columns_and_pages_without_rows(self):
        self.assertIn("the columns are not: item, status", ", ".join(
            self.run_on(HEAD.replace("status", "state"))[1]))
        self.assertEqual((1, ["the page has no row"]), self.run_on("text\n"))

    def test_reports_an_unknown_status_and_a_missing_reason(self):
        self.assertIn("the status 'done' is none of", self.faults_of(status="done")[0])
        for status in ["departs", "not done"]:
            self.assertEqual([f"the status '{status}' needs a reason"],
                             self.faults_of(status=status))
        for column in ["file", "test", "value"]:
            self.assertEqual(["a row without a file, a test or a value needs a reason"],
                             self.faults_of(**{column: "none"}))

    def test_reports_files_that_do_not_exist(self):
        for column in ["file", "value"]:
            self.assertEqual(["there is no file 'src/gone.cpp'"],
                             self.faults_of(**{column: "`src/gone.cpp`"}))
        self.assertEqual(["the cell 'file' names no file"], self.faults_of(file="src/pool.cpp"))
        self.assertEqual(["there is no file '/etc/passwd'"], self.faults_of(file="`/etc/passwd`"))

    def test_reports_tests_that_do_not_exist(self):
        for test in ["Pool.Works", "Pool.Grows", "pool.check", "pool_test", "tests/pool_test.cpp"]:
            self.assertEqual([], self.faults_of(test=f"`{test}`"), test)
        for test in ["Pool.Work", "Other.Works", "pool.checks", "tests/gone.py", "src/pool.cpp"]:
            self.assertEqual([f"'{test}' is neither a test nor a command of quarry"],
                             self.faults_of(test=f"`{test}`"))
        self.assertEqual(["the cell 'test or command' names no test and no command"],
                         self.faults_of(test="all of them"))

    def test_reports_commands_that_do_not_exist(self):
        for command in ["quarry bench", "build/bin/quarry region peers", "quarry bench --threads 4",
                        "mpirun -n 5 quarry bench --no-check", "quarry bench NAME"]:
            self.assertEqual([], self.faults_of(test=f"`{command}`"), command)
        for command, fault in [
                ("quarry bench --experiments one,three", "there is no experiment 'three'"),
                ("quarry bench --thread 4", "there is no option '--thread'"),
                ("quarry benches", "there is no subcommand 'benches'"),
                ("quarry peers", "there is no subcommand 'peers'"),
                ("quarry bench peers", "there is no subcommand 'peers'"),
                ("quarry region map", "there is no subcommand 'map'"),
                ("quarry", "it names no subcommand"),
                ("quarry --lanes 1", "it names no subcommand")]:
            self.assertEqual([f"'{command}': {fault}"], self.faults_of(test=f"`{command}`"))

    def test_fails_without_the_page(self):
        with tempfile.TemporaryDirectory() as folder:
            done = subprocess.run([sys.executable, path, folder], capture_output=True, text=True)
            self.assertEqual(2, done.returncode)
            self.assertIn("check-papers: ", done.stderr)


if __name__ == "__main__":
    unittest.main()
