#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the `quarry` command: checks output, error messages and exit codes.

usage: cli_test.py PROGRAM [TEST...]      PROGRAM may be several words: a launcher and the program
"""
import json
import pathlib
import shlex
import struct
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree
import zlib

PROGRAM = []


def quarry(*arguments):
    return subprocess.run([*PROGRAM, *arguments], capture_output=True, text=True, timeout=500)


def names():
    return [a["name"] for a in json.loads(quarry("list", "--json").stdout)["allocators"]]


class Help(unittest.TestCase):
    def test_alone_prints_help(self):
        result = quarry()
        self.assertEqual(result.returncode, 0)
        for command in ("demo", "list", "explore", "costs", "map", "Examples:"):
            self.assertIn(command, result.stdout)

    def test_every_command_has_help_with_examples(self):
        for command in ("demo", "list", "explore", "costs", "map"):
            result = quarry(command, "--help")
            self.assertEqual(result.returncode, 0, command)
            self.assertIn("Examples:\n  quarry " + command, result.stdout)
            self.assertEqual(result.stderr, "")

    def test_version(self):
        self.assertRegex(quarry("--version").stdout,
                         r"^quarry \d+\.\d+\.\d+ \(backends: cpu(, cuda)?\)\n$")


class List(unittest.TestCase):
    def test_json_lists_the_abilities(self):
        out = json.loads(quarry("list", "--json").stdout)
        self.assertEqual(out["pool_bytes"], 1 << 30)
        by_name = {a["name"]: a for a in out["allocators"]}
        self.assertFalse(by_name["AtomicMalloc"]["frees_one"])
        self.assertTrue(by_name["AWMalloc"]["overwrites"])
        self.assertFalse(by_name["CudaMalloc"]["owns_pool"])
        self.assertEqual(by_name["AtomicMalloc"]["metadata_bytes"], 8)

    def test_table_names_all_allocators(self):
        result = quarry("list")
        self.assertEqual(result.returncode, 0)
        for name in names():
            self.assertEqual(result.stdout.count(f"\n{name} "), 2, name)

    def test_pool_accepts_sizes(self):
        for text, size in (("16G", 16 << 30), ("64KiB", 64 << 10), ("4096", 4096)):
            out = json.loads(quarry("list", "--json", "--pool", text).stdout)
            self.assertEqual(out["pool_bytes"], size)

    def test_a_pool_that_is_too_small_has_no_metadata(self):
        for a in json.loads(quarry("list", "--json", "--pool", "1").stdout)["allocators"]:
            self.assertIsNone(a["metadata_bytes"])


class Explore(unittest.TestCase):
    def test_one_allocator(self):
        result = quarry("explore", "AWMalloc", "--schedules", "500")
        self.assertEqual(result.returncode, 0, result.stdout)
        self.assertRegex(result.stdout, r"^AWMalloc +passed +500 schedules in")

    def test_a_name_in_any_letter_case_or_a_type(self):
        for name in ("cudamalloc", "system_heap", "quarry::system_heap"):
            out = json.loads(quarry("explore", name, "--schedules", "10", "--json").stdout)
            self.assertEqual([a["name"] for a in out["allocators"]], ["CudaMalloc"])

    def test_all_allocators(self):
        result = quarry("explore", "all", "--schedules", "100", "--json")
        out = json.loads(result.stdout)
        self.assertEqual([a["name"] for a in out["allocators"]], names())
        self.assertEqual(result.returncode, 0, out)
        self.assertTrue(out["ok"])

    def test_options_reach_the_explorer(self):
        def steps(*more):
            out = quarry("explore", "AWMalloc-warp", "--schedules", "200", "--json", *more).stdout
            return json.loads(out)["allocators"][0]["steps"]

        base = steps()
        self.assertEqual(steps(), base)  # the seed determines the schedules
        for more in (["--lanes", "3"], ["--blocks", "1"], ["--operations", "2"], ["--seed", "77"],
                     ["--strategy", "pct"], ["--strategy", "random"], ["--strategy", "lockstep"],
                     ["--pool", "4K"]):
            self.assertNotEqual(steps(*more), base, more)

    def test_seconds_limit_the_exploration(self):
        out = json.loads(quarry("explore", "AWMalloc", "--seconds", "0.2", "--json").stdout)
        self.assertGreater(out["allocators"][0]["schedules"], 0)
        self.assertGreaterEqual(out["allocators"][0]["seconds"], 0.2)

    def test_replay_prints_every_step(self):
        token = "1-s2a-l3-b2-o4-m1024-p8-r2a-x50000"
        result = quarry("explore", "AWMalloc", "--replay", token)
        self.assertEqual(result.returncode, 0)
        self.assertIn("calls malloc(", result.stdout)
        self.assertRegex(result.stdout, r"step 1 +lane \d+  fetch_add next: 0x")
        self.assertTrue(result.stdout.endswith("no failure\n"))
        again = json.loads(quarry("explore", "AWMalloc", "--replay", token, "--json").stdout)
        self.assertEqual("\n".join(again["lines"]) + "\n", result.stdout)


class Costs(unittest.TestCase):
    def test_json_counts_every_call(self):
        out = json.loads(quarry("costs", "--json").stdout)
        self.assertEqual([a["name"] for a in out["allocators"]], names())
        by_name = {a["name"]: a["cases"] for a in out["allocators"]}
        self.assertEqual(by_name["AtomicMalloc"]["equal"]["malloc"]["atomics"],
                         by_name["AtomicMalloc"]["equal"]["malloc"]["calls"])
        self.assertEqual(by_name["AtomicMalloc-warp"]["equal"]["malloc"]["atomics"] * 32,
                         by_name["AtomicMalloc-warp"]["equal"]["malloc"]["calls"])
        self.assertIsNone(by_name["AtomicMalloc"]["lone"]["free"])

    def test_table(self):
        result = quarry("costs")
        self.assertEqual(result.returncode, 0)
        for case in ("lone:", "equal:", "mixed:"):
            self.assertIn("\n" + case, result.stdout)
        for name in names():
            self.assertEqual(result.stdout.count(f"\n{name} "), 3, name)

    def test_counts_are_reproducible(self):
        self.assertEqual(quarry("costs", "--json").stdout, quarry("costs", "--json").stdout)


class Demo(unittest.TestCase):
    def test_json(self):
        result = quarry("demo", "--backend", "cpu", "--lanes", "5000", "--json")
        self.assertEqual(result.returncode, 0, result.stderr)
        out = json.loads(result.stdout)
        self.assertEqual(out["backend"], "cpu")
        self.assertTrue(out["ok"])
        self.assertEqual([a["name"] for a in out["allocators"]], names())
        for a in out["allocators"]:
            self.assertEqual(a["checked_blocks"], 5000, a)
            self.assertGreater(a["mallocs_per_second"], 0)

    def test_table_and_plain_lines_in_a_pipe(self):
        result = quarry("demo", "--backend", "cpu", "--lanes", "1000", "--size", "64")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("1,000 lanes on the CPU executor", result.stdout)
        self.assertIn("Next: `quarry ", result.stdout)
        self.assertEqual(len(result.stderr.splitlines()), len(names()))
        self.assertNotIn("\r", result.stderr)

    def test_lanes_that_fill_no_thread_block(self):
        for lanes in ("1", "33", "257"):
            result = quarry("demo", "--backend", "cpu", "--lanes", lanes, "--size", "1-5000")
            self.assertEqual(result.returncode, 0, result.stderr)


class Map(unittest.TestCase):
    SMALL = ("--heap", "1M", "--lanes", "256", "--sizes", "16-512", "--rounds", "4")

    def drawn(self, name, *arguments):
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder) / name
            result = quarry("map", "--output", str(file), *self.SMALL, *arguments)
            self.assertEqual(result.returncode, 0, result.stderr)
            return file.read_bytes()

    def test_json_covers_the_pool_and_agrees_with_the_statistics(self):
        for allocator in ("Quarry", "CFMalloc", "AtomicMalloc"):
            result = quarry("map", "--json", "--allocator", allocator, *self.SMALL)
            self.assertEqual(result.returncode, 0, result.stderr)
            out = json.loads(result.stdout)
            at = 0
            for piece in out["pieces"]:
                self.assertEqual(piece["offset"], at, allocator)
                at += piece["size"]
            self.assertEqual(at, out["pool_bytes"])
            self.assertEqual(out["problem"], "")
            live = sum(p["live"] * p["block_bytes"] for p in out["pieces"])
            if allocator != "AtomicMalloc":
                self.assertEqual(live, out["live_bytes"])
                self.assertEqual(sum(p["live"] for p in out["pieces"]), out["live_blocks"])

    def test_a_seed_determines_the_picture(self):
        first, again, other = (self.drawn("a.svg", "--seed", s) for s in ("1", "1", "2"))
        self.assertEqual(first, again)
        self.assertNotEqual(first, other)

    def test_svg_is_well_formed_and_has_a_cell_for_each_segment(self):
        pieces = json.loads(quarry("map", "--json", *self.SMALL).stdout)["pieces"]
        root = xml.etree.ElementTree.fromstring(self.drawn("a.svg"))
        cells = [r for r in root.iter("{http://www.w3.org/2000/svg}rect") if len(r) == 1]
        size = min(p["size"] for p in pieces)
        self.assertEqual(len(cells), sum(p["size"] for p in pieces) // size)

    def test_record_is_read_by_the_report(self):
        with tempfile.TemporaryDirectory() as folder:
            file, page = pathlib.Path(folder) / "maps.jsonl", pathlib.Path(folder) / "page.html"
            for allocator in ("Quarry", "CFMalloc"):
                result = quarry("map", "--out", str(file), "--allocator", allocator, *self.SMALL)
                self.assertEqual(result.returncode, 0, result.stderr)
            lines = [json.loads(line) for line in file.read_text().splitlines()]
            self.assertEqual([line["allocator"] for line in lines], ["Quarry", "CFMalloc"])
            for line in lines:
                self.assertEqual(line["kind"], "map")
                xml.etree.ElementTree.fromstring(line["svg"])
            result = quarry("report", str(file), "-o", str(page))
            self.assertEqual(result.returncode, 0, result.stderr)
            self.assertIn("CFMalloc: heap of", page.read_text())
        result = quarry("map", "--out", "/nowhere/at/all", *self.SMALL)
        self.assertEqual(result.returncode, 2)
        self.assertIn("/nowhere/at/all", result.stderr)

    def test_png_can_be_read(self):
        data = self.drawn("a.png")
        self.assertEqual(data[:8], b"\x89PNG\r\n\x1a\n")
        chunks, at = {}, 8
        while at < len(data):
            length, kind = struct.unpack(">I4s", data[at:at + 8])
            body = data[at + 8:at + 8 + length]
            crc = struct.unpack(">I", data[at + 8 + length:at + 12 + length])[0]
            self.assertEqual(crc, zlib.crc32(kind + body))
            chunks[kind] = body
            at += 12 + length
        width, height = struct.unpack(">II", chunks[b"IHDR"][:8])
        self.assertEqual(len(zlib.decompress(chunks[b"IDAT"])), height * (3 * width + 1))

    def test_an_allocator_without_a_map_is_an_error(self):
        result = quarry("map", "--allocator", "XMalloc")
        self.assertEqual(result.returncode, 2)
        self.assertIn("cannot report", result.stderr)
        self.assertEqual(quarry("map", "--output", "/no/such/folder/a.svg", *self.SMALL).returncode,
                         2)


class Measure(unittest.TestCase):
    SCRIPT = str(pathlib.Path(__file__).resolve().parents[3] / "scripts" / "measure")

    def measure(self, *arguments):
        return subprocess.run([self.SCRIPT, "--quarry", " ".join(PROGRAM), *arguments],
                              capture_output=True, text=True,
                              timeout=500)

    def test_all_parts_are_on_one_page(self):
        with tempfile.TemporaryDirectory() as folder:
            result = self.measure("--backend", "cpu", "--quick", "--only", "map,bench", "--bench",
                                  "--experiments widmer --allocators Quarry", folder)
            self.assertEqual(result.returncode, 0, result.stderr)
            self.assertIn("report.html", result.stdout)
            text = (pathlib.Path(folder) / "results.jsonl").read_text()
            lines = [json.loads(line) for line in text.splitlines()]
            self.assertEqual({line["kind"] for line in lines}, {"map", "experiment", "point"})
            for name in ("report.html", "results.md"):
                self.assertIn("widmer", (pathlib.Path(folder) / name).read_text())

    def test_bad_input(self):
        for arguments, word in (([], "usage"), (["a", "b"], "expected one folder"),
                                (["--fast", "a"], "unknown option --fast"),
                                (["--only", "heap", "a"], "unknown part heap"),
                                (["a", "--only"], "needs a value"),
                                (["--quarry", "/no/program", "a"], "no program")):
            result = self.measure(*arguments)
            self.assertEqual(result.returncode, 2, arguments)
            self.assertIn(word, result.stderr)


class Region(unittest.TestCase):
    def test_records_are_read_by_the_report(self):
        with tempfile.TemporaryDirectory() as folder:
            file, page = pathlib.Path(folder) / "r.jsonl", pathlib.Path(folder) / "r.md"
            result = quarry("region", "fragmentation", "--steps", "2000", "--samples", "4", "--out",
                            str(file))
            self.assertEqual(result.returncode, 0, result.stderr)
            lines = [json.loads(line) for line in file.read_text().splitlines()]
            self.assertEqual([line["id"] for line in lines if line["kind"] == "experiment"],
                             ["region-growing", "region-phases", "region-sizes", "region-regions",
                              "region-lowest"])
            points = [line for line in lines if line["kind"] == "point"]
            self.assertEqual(len(points), 5 * 3 * 5)
            self.assertTrue(any(p["slabs"] > 0 for p in points if p["series"] == "partial"))
            result = quarry("report", str(file), "-o", str(page) + ".html", "--markdown", str(page))
            self.assertEqual(result.returncode, 0, result.stderr)
            self.assertIn("Figure 4c", page.read_text())


@unittest.skipUnless(pathlib.Path("/dev/full").exists(), "no /dev/full here")
class FullDisk(unittest.TestCase):
    """Every byte that cannot be written is an error: exit code 1 and a message."""
    COMMANDS = (
        ("map", "--heap", "1M", "--lanes", "256", "--rounds", "1"),
        ("bench", "--workloads", "alloc", "--allocators", "AtomicMalloc", "--quick"),
        ("kd-tree", "--triangles", "100", "--allocators", "Quarry"),
        ("graph", "--experiments", "init", "--scale", "6", "--allocators", "Quarry"),
        ("region", "fragmentation", "--steps", "2000", "--samples", "4"),
        ("cluster", "scaling", "--most", "2"))

    def fails(self, result, name):
        self.assertEqual(result.returncode, 1, result.stderr)
        self.assertIn(f"cannot write {name}: No space left on device", result.stderr)

    def test_records_are_not_lost_silently(self):
        for command in self.COMMANDS:
            with self.subTest(command):
                self.fails(quarry(*command, "--out", "/dev/full"), "/dev/full")

    def test_pictures_are_not_lost_silently(self):
        self.fails(quarry("region", "fragmentation", "--steps", "2000", "--samples", "4", "--plot",
                          "/dev/full"), "/dev/full")

    def test_standard_output_is_not_lost_silently(self):
        for command in (("list",), ("list", "--json"), ("--help",),
                        ("explore", "AWMalloc", "--schedules", "100"), *self.COMMANDS[4:]):
            with self.subTest(command), open("/dev/full", "w", encoding="utf-8") as full:
                self.fails(subprocess.run([*PROGRAM, *command], stdout=full, text=True,
                                          stderr=subprocess.PIPE, timeout=500), "standard output")


class BadInput(unittest.TestCase):
    def rejects(self, arguments, *words):
        result = quarry(*arguments)
        self.assertEqual(result.returncode, 2, arguments)
        self.assertEqual(result.stdout, "")
        self.assertEqual(len(result.stderr.splitlines()), 1, result.stderr)
        self.assertTrue(result.stderr.startswith("quarry: "), result.stderr)
        for word in words:
            self.assertIn(word, result.stderr)

    def test_commands(self):
        self.rejects(["lst"], "no command 'lst'", "did you mean list?", "explore, costs")
        self.rejects(["--frobnicate"], "--frobnicate")
        self.rejects(["list", "extra"], "unexpected: extra", "quarry list --help")

    def test_allocators(self):
        self.rejects(["explore", "AtomicMaloc"], "did you mean AtomicMalloc?", *names())
        self.rejects(["explore", "zzz"], "no allocator 'zzz'", *names())
        self.rejects(["explore"], "ALLOCATOR is required")

    def test_numbers(self):
        for option in ("--lanes", "--blocks", "--operations", "--schedules", "--seed"):
            self.rejects(["explore", "AWMalloc", option, "-1"], option, "negative")
            self.rejects(["explore", "AWMalloc", option, "ten"], option, "not a whole number")
            self.rejects(["explore", "AWMalloc", option, "9" * 30], option, "too large")
        for command in (("cluster", "scaling", "--calls"), ("cluster", "scaling", "--think"),
                        ("cluster", "scaling", "--workers-each"),
                        ("cluster", "scaling", "--schedulers-each"),
                        ("cluster", "barnes-hut", "--steps"),
                        ("region", "snapshot", "save", "--nodes")):
            most = str(2**64 - 1)
            self.rejects([*command, most], command[-1], f"{most} is too large; the maximum is ")
        self.rejects(["explore", "AWMalloc", "--lanes", "0"], "the minimum is 1")
        self.rejects(["explore", "AWMalloc", "--lanes"], "--lanes")
        for text in ("0", "-1", "nan", "inf", "soon", ""):
            self.rejects(["explore", "AWMalloc", "--seconds", text])

    def test_sizes(self):
        self.rejects(["list", "--pool", "1Q"], "--pool", "'1Q' is not a size", "1.5MiB")
        self.rejects(["list", "--pool", "-1G"], "negative")
        self.rejects(["map", "--heap", "8E"], "--heap", "8 EiB", "memory of cpu")
        self.rejects(["list", "--pool", "16E"], "64 bits")
        self.rejects(["demo", "--size", "0"], "minimum block size is 1 byte")
        self.rejects(["demo", "--size", "64-16"], "smaller size comes first")
        self.rejects(["demo", "--backend", "cpu", "--lanes", "1000000", "--size", "1G"], "pool")
        self.rejects(["explore", "AWMalloc", "--pool", "1"], "64 B to 1 GiB")

    def test_words(self):
        self.rejects(["demo", "--backend", "gpu"], "gpu not in {cpu,cuda}")
        self.rejects(["explore", "AWMalloc", "--strategy", "luck"],
                     "luck not in {random,pct,both,lockstep}")

    def test_a_picture_has_a_known_format(self):
        self.rejects(["map", "--output", "x.gif"], "--output", "x.gif", ".svg")

    def test_replay_tokens(self):
        for token in ("", "junk", "2-s1-r1", "1-s", "1-szz", "1-l0", "1-l4096", "1-m9999999999",
                      "1-s1-m0-r1"):
            self.rejects(["explore", "AWMalloc", "--replay", token], "--replay")
        self.rejects(["explore", "all", "--replay", "1-s1-r1"], "one allocator")


if __name__ == "__main__":
    PROGRAM = shlex.split(sys.argv.pop(1))
    unittest.main(verbosity=2)
