#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests of the command quarry report: input, output, errors. page_test.py tests the page.

usage: report_test.py PROGRAM [TEST...]

PROGRAM may be several words: a launcher and the program.
"""
import gzip
import html.parser
import json
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree

HERE = pathlib.Path(__file__).resolve().parent
RESULTS = HERE.parents[2] / "bench" / "results"
PROGRAM = []


def quarry(*arguments):
    return subprocess.run([*PROGRAM, *map(str, arguments)], capture_output=True, text=True,
                          timeout=500)


class Addresses(html.parser.HTMLParser):
    """Every address that a page would load."""

    def __init__(self):
        super().__init__()
        self.found = []

    def handle_starttag(self, tag, attributes):
        self.found += [value for name, value in attributes if name in ("src", "href", "srcset",
                "data", "action")]


class InFolder(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.temporary = tempfile.TemporaryDirectory()
        cls.folder = pathlib.Path(cls.temporary.name)
        cls.sample = cls.folder / "sample.jsonl"
        with cls.sample.open("w", encoding="utf-8") as out:
            subprocess.run([sys.executable, HERE / "make_sample.py"], stdout=out, check=True)

    @classmethod
    def tearDownClass(cls):
        cls.temporary.cleanup()

    def data_of(self, *files):
        page = self.folder / "page.html"
        result = quarry("report", *files, "-o", page)
        self.assertEqual(result.returncode, 0, result.stderr)
        text = page.read_text(encoding="utf-8")
        return json.loads(re.search(r'<script type="application/json" id="data">(.*?)</script>',
                                    text, re.S).group(1))

    def data_of_lines(self, *lines):
        file = self.folder / "lines.jsonl"
        file.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
        return self.data_of(file)


def point(**fields):
    return {"kind": "point", "experiment": "e", "allocator": "A", "series": "A", "x": 1,
            "backend": "cuda",
            "device": "d", "outcome": "ok", "ms": 1.0, **fields}


class Page(InFolder):
    def test_output_names_the_page_and_counts_its_content(self):
        page = self.folder / "said.html"
        result = quarry("report", self.sample, "-o", page)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertRegex(result.stdout, r"^512 data points of 10 experiments on 3 backends\n")
        self.assertTrue(result.stdout.endswith(f"{page}\n"))

    def test_page_refers_to_no_other_file(self):
        page = self.folder / "alone.html"
        quarry("report", self.sample, "-o", page)
        text = page.read_text(encoding="utf-8")
        addresses = Addresses()
        addresses.feed(text)
        self.assertEqual([a for a in addresses.found if not a.startswith(("data:", "#"))], [])
        self.assertIn("default-src 'none'", text)
        self.assertNotIn("@import", text)

    def test_strings_cannot_end_the_script_element(self):
        data = self.data_of_lines({"kind": "experiment", "id": "e", "title": "</script><b>"},
                                  point())
        self.assertEqual(data["experiments"][0]["title"], "</script><b>")

    def test_page_holds_records_of_every_kind(self):
        data = self.data_of(self.sample)
        self.assertEqual([m["kind"] for m in data["backends"]], ["cuda", "cpu",
                "simulated network"])
        by_id = {e["id"]: e for e in data["experiments"]}
        self.assertEqual([len(f["views"]) for f in by_id["sizes"]["figures"]],
                         [2, 3])  # atomics on the CPU only
        self.assertEqual(by_id["kd-tree"]["figures"][0]["grid"]["head"],
                         ["scene", "allocator", "triangles", "build [ms]", "slowdown"])
        self.assertEqual(len(by_id["use"]["figures"][0]["views"][0]["curves"][0]["points"]), 60)
        self.assertEqual(by_id["cluster-barnes-hut"]["form"], "layers")
        self.assertEqual([c["paper"] for c in data["claims"]], ["48", "1.13 – 4.33", "10–1000"])
        self.assertEqual(data["claims"][0]["backends"], [0])
        self.assertEqual(len(data["maps"]), 2)

    def test_remarks_name_the_faults(self):
        figure = next(e for e in self.data_of(self.sample)["experiments"] if e["id"] == "sizes")[
            "figures"][0]
        told = {(r["state"], r["series"]): (r["what"], r["at"]) for r in figure["remarks"]}
        self.assertEqual(told["lost", "CMalloc"], ("timed out: 20 s", ["4 KiB", "8 KiB"]))
        self.assertEqual(told["lost", "CFMalloc"], ("crashed: signal 11", ["8 KiB"]))
        self.assertEqual(told["unsound", "ScatterAlloc"], ("corrupt blocks", ["64 B: 12"]))
        self.assertEqual(told["unsound", "CMalloc-warp"], ("misaligned blocks",
                                                           ["16 B: 3", "32 B: 3"]))
        self.assertEqual(told["failed allocations", "FDGMalloc"], ("failed allocations",
                ["8 KiB: 4,096"]))
        self.assertEqual(told["skipped", "AWMalloc"][1], ["8 KiB"])
        curve = next(c for c in figure["views"][0]["curves"] if c["name"] == "CMalloc")
        self.assertEqual([(d["x"], d["y"]) for d in curve["points"] if d.get("state") == "lost"],
                         [(4096, None), (8192, None)])

    def test_twenty_allocators_have_different_styles(self):
        figure = next(e for e in self.data_of(self.sample)["experiments"] if e["id"] == "sizes")[
            "figures"][0]
        styles = {tuple(c["style"]) for c in figure["views"][0]["curves"]}
        self.assertEqual(len(styles), 20)

    def test_commands_are_kept_and_merged(self):
        figure = next(e for e in self.data_of(self.sample)["experiments"] if e["id"] == "graph")[
            "figures"][0]
        self.assertEqual(figure["command"],
                         ["quarry bench --backend cuda --experiments graph --allocators "
                          "Quarry,CudaMalloc,ScatterAlloc,XMalloc"])
        self.assertEqual(figure["commands"][1], {"series": "CudaMalloc", "commands": [
            "quarry bench --backend cuda --experiments graph --allocators CudaMalloc"]})

    def test_the_newest_of_two_points_counts(self):
        data = self.data_of_lines(point(ms=2.0, date="2026-01-02"), point(ms=1.0,
                date="2026-01-01"), point(x=2))
        self.assertEqual([d["y"] for d in data["experiments"][0]["figures"][0]["views"][0][
            "curves"][0]["points"]], [2, 1])
        self.assertEqual((data["points"], data["replaced"]), (2, 1))

    def test_experiments_without_a_description_are_shown(self):
        data = self.data_of_lines(point(free_ms=3.0), point(series="B", x="text"))
        views = data["experiments"][0]["figures"][0]["views"]
        self.assertEqual([v["field"] for v in views], ["ms", "free_ms"])
        self.assertEqual(views[0]["x"], {"name": "", "unit": "", "scale": "category",
                                         "categories": ["1", "text"]})

    def test_an_experiment_with_only_lost_points_has_a_figure(self):
        data = self.data_of_lines(point(outcome="timed out", ms=None), point(outcome="timed out",
                ms=None, x=2))
        figure = data["experiments"][0]["figures"][0]
        self.assertEqual([d["state"] for d in figure["views"][0]["curves"][0]["points"]],
                         ["lost", "lost"])
        self.assertEqual(figure["remarks"][0]["what"], "timed out")

    def test_points_over_the_time_limit_are_not_faults(self):
        slow = {"series": "B", "allocator": "B"}
        data = self.data_of_lines(point(), point(x=2), point(ms=9.0, **slow),
                                  point(x=2, outcome="given up", ms=None, note="1 took 9 s",
                                        **slow))
        ranking = data["rankings"]["all"]["workloads"][0]
        self.assertEqual(([w["series"] for w in ranking["complete"]],
                          [w["series"] for w in ranking["partial"]], ranking["unsound"]),
                         (["A"], ["B"], []))
        remarks = data["experiments"][0]["figures"][0]["remarks"]
        self.assertEqual([(r["state"], r["what"]) for r in remarks],
                         [("given up", "given up: 1 took 9 s")])

    def test_backends_may_have_different_measures(self):
        def described(*fields):
            return {"kind": "experiment", "id": "e", "title": "t", "y": [{"field": f}
                    for f in fields]}
        data = self.data_of_lines(described("ms", "atomics_per_call"), point(
            backend="cpu", atomics_per_call=2.0), described("ms"), point())
        self.assertEqual([[v["field"] for v in f["views"]] for f in data["experiments"][0][
            "figures"]],
                         [["ms"], ["ms", "atomics_per_call"]])

    def test_curves_of_one_allocator_get_colours_when_dashes_run_out(self):
        data = self.data_of_lines(*(point(series=f"A, {n}", x=x) for n in range(9) for x in (1, 2)))
        curves = data["experiments"][0]["figures"][0]["views"][0]["curves"]
        self.assertEqual(len({c["style"][0] for c in curves}), 9)
        data = self.data_of_lines(*(point(series=s, x=x) for s in ("A", "A, warm", "A, cold")
                                    for x in (1, 2)))
        curves = data["experiments"][0]["figures"][0]["views"][0]["curves"]
        self.assertEqual(len({tuple(c["style"][:2]) for c in curves}), 1)
        self.assertEqual([c["style"][2] for c in curves], [0, 1, 2])

    def test_direction_of_a_measure_is_given_or_guessed(self):
        def compared(**y):
            data = self.data_of_lines({"kind": "experiment", "id": "e",
                                       "y": [{"field": "v", **y}]}, point(v=1.0),
                                      point(series="B", allocator="B", v=4.0))
            return [w["complete"][0]["series"] for w in data["rankings"]["all"]["workloads"]]
        for y, best in (({"unit": "ms"}, ["A"]), ({"unit": "GB/s"}, ["B"]),
                        ({"name": "usable fraction"}, ["B"]),
                        ({"name": "address range / live bytes"}, ["A"]), ({"name": "triangles"},
                                []),
                        ({"name": "triangles", "better": "more"}, ["B"]),
                        ({"unit": "ms", "better": "none"}, [])):
            self.assertEqual(compared(**y), best, y)

    def test_points_with_failed_allocations_do_not_rank_first(self):
        other = {"series": "B", "allocator": "B"}
        for failures in ({"failures": 3}, {"failed_fraction": 0.25}):
            data = self.data_of_lines(point(x=1, ms=1.0, **failures), point(x=2, ms=5.0),
                                      point(x=1, ms=4.0, **other),
                                      point(x=2, ms=4.0, **other))
            ranking = data["rankings"]["all"]["workloads"][0]
            self.assertEqual(([w["series"] for w in ranking["complete"]],
                              [w["series"] for w in ranking["partial"]]),
                             (["B"], ["A"]), failures)

    def test_unknown_kinds_and_empty_lines_are_ignored(self):
        file = self.folder / "odd.jsonl"
        file.write_text('\n{"kind":"comet"}\n \n' + json.dumps(point()) + "\r\n", encoding="utf-8")
        self.assertEqual(self.data_of(file)["points"], 1)

    def test_recorded_results_are_read(self):
        data = self.data_of(*sorted(RESULTS.glob("*/*.jsonl.gz")))
        by_id = {e["id"]: e for e in data["experiments"]}
        self.assertLessEqual({"NVIDIA H200", "simulated network"},
                             {m["label"] for m in data["backends"]})
        sizes = by_id["alloc"]["figures"][0]
        self.assertEqual(sizes["views"][0]["x"]["scale"], "log")
        self.assertIn(64, [d["x"] for d in sizes["views"][0]["curves"][0]["points"]])
        self.assertTrue(all(c["commands"] for c in sizes["commands"]))
        self.assertIn(("lost", "CMMalloc"), {(r["state"], r["series"]) for r in by_id["fill"][
            "figures"][0]["remarks"]})
        self.assertEqual(len(by_id["cluster-scaling"]["figures"][0]["views"][0]["curves"]), 4)
        self.assertEqual(by_id["cluster-delaunay"]["form"], "layers")

    def test_compressed_records_are_read(self):
        file = self.folder / "records.jsonl.gz"
        content = (json.dumps(point()) + "\n") * 3 + json.dumps(point(x=2)) + "\n"
        file.write_bytes(gzip.compress(content.encode()))
        self.assertEqual(self.data_of(file)["points"], 2)
        self.assertEqual(self.data_of(file, self.sample)["points"], 514)


class Text(InFolder):
    def test_markdown_shows_the_pictures_it_draws(self):
        text = self.folder / "docs" / "results.md"
        figures = self.folder / "docs" / "pictures" / "new"
        text.parent.mkdir()
        result = quarry("report", self.sample, "--markdown", text, "--figures", figures, "--title",
                        "A title")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertFalse((self.folder / "report.html").exists())
        written = text.read_text(encoding="utf-8")
        self.assertTrue(written.startswith("# A title\n"))
        shown = re.findall(r"!\[.*\]\((.*)\)", written)
        self.assertEqual({(text.parent / name).resolve() for name in shown},
                         {f.resolve() for f in figures.iterdir()})
        for picture in figures.iterdir():
            self.assertEqual(xml.etree.ElementTree.parse(picture).getroot().tag,
                             "{http://www.w3.org/2000/svg}svg")
        for words in ("Example 2026, Figure 1 (made up).", "quarry bench --backend cuda "
                      "--experiments lanes", "| 0.21 |",
                      "**lost** CMalloc: timed out: 20 s (4 KiB, 8 KiB)", "48 x over CUDA's "
                      "malloc | 48 x | 75.4 x |"):
            self.assertIn(words, written)
        for line in written.splitlines():
            self.assertFalse(line.startswith("|") and not line.endswith("|"), line)

    def test_markdown_shows_hostile_text_as_it_is(self):
        hostile = "<b>x</b> & [a](b) `c` *d* _e_ f_g | h\n# i"
        shown = ("&lt;b&gt;x&lt;/b&gt; &amp; \\[a\\](b) \\`c\\` \\*d\\* \\_e\\_ f_g \\| h # i")
        records = [json.loads(line) for line in
                   pathlib.Path(self.sample).read_text(encoding="utf-8").splitlines()]
        for record in records:
            for key in ("title", "note", "source", "device", "series"):
                if isinstance(record.get(key), str):
                    record[key] = hostile
        file, text = self.folder / "hostile.jsonl", self.folder / "hostile.md"
        file.write_text("".join(json.dumps(r) + "\n" for r in records), encoding="utf-8")
        result = quarry("report", file, "--markdown", text, "--title", hostile)
        self.assertEqual(result.returncode, 0, result.stderr)
        written = text.read_text(encoding="utf-8")
        self.assertTrue(written.startswith(f"# {shown}\n"))
        self.assertIn(f"## {shown}\n", written)
        for raw in ("<b>", "[a](b)", "`c`", "*d*", "\n# i"):
            self.assertNotIn(raw, written.replace("\\[a\\](b)", "").replace("\\`c\\`", "")
                             .replace("\\*d\\*", ""))

    def test_summary_has_the_first_tables_only(self):
        text, summary = self.folder / "whole.md", self.folder / "summary.md"
        result = quarry("report", self.sample, "--markdown", text, "--summary", summary)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertFalse((self.folder / "report.html").exists())
        whole, first = (f.read_text(encoding="utf-8") for f in (text, summary))
        self.assertTrue(whole.startswith(first))
        self.assertIn("48 x over CUDA's malloc", first)
        self.assertNotIn("quarry bench", first)

    def test_pictures_alone(self):
        figures = self.folder / "alone"
        result = quarry("report", self.sample, "--figures", figures)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("18 pictures", result.stdout)
        svg = (figures / "sizes--cuda-imaginary-gpu-made-up--ms.svg").read_text(encoding="utf-8")
        for words in ("ScatterAlloc-warp", "8 KiB", "time to allocate [ms]", "Imaginary GPU"):
            self.assertIn(words, svg)


class BadInput(InFolder):
    def rejects(self, arguments, *words):
        result = quarry("report", *arguments)
        self.assertEqual(result.returncode, 2, arguments)
        self.assertEqual(result.stdout, "")
        self.assertEqual(len(result.stderr.splitlines()), 1, result.stderr)
        self.assertTrue(result.stderr.startswith("quarry: "), result.stderr)
        for word in words:
            self.assertIn(word, result.stderr)

    def file_of(self, text):
        file = self.folder / "bad.jsonl"
        file.write_text(text, encoding="utf-8")
        return file

    def test_files(self):
        self.rejects([], "FILES")
        self.rejects(["/nowhere/at/all"], "cannot read /nowhere/at/all")
        self.rejects([self.folder], "cannot read")
        whole = gzip.compress((json.dumps(point()) + "\n").encode())
        truncated = self.folder / "truncated.jsonl.gz"
        truncated.write_bytes(whole[:len(whole) // 2])
        self.rejects([truncated], f"cannot read {truncated}: ")
        self.rejects([self.file_of("")], "no data points")
        self.rejects([self.file_of('{"kind":"experiment","id":"e"}\n')], "no data points")
        self.rejects([self.sample, "-o", "/nowhere/at/all.html"], "cannot write "
                     "/nowhere/at/all.html")
        self.rejects([self.sample, "--markdown", "/nowhere/at/all.md"], "cannot write "
                     "/nowhere/at/all.md")
        self.rejects([self.sample, "--figures", "/dev/null/x"], "cannot write /dev/null/x")

    def test_lines(self):
        good = json.dumps(point()) + "\n"
        for line, words in (("{", "not a JSON object"), ("[1]", "not a JSON object"),
                            ('"x"', "not a JSON object"),
                            ('{"x":' + "[" * 100_000 + "]" * 100_000 + "}", "nested too deeply"),
                            ('{"kind":"point"}', '"experiment"'), ('{"kind":"experiment"}', '"id"'),
                            ('{"kind":"experiment","id":"e","y":3}', '"y" is not a list'),
                            ('{"kind":"experiment","id":"e","y":[{}]}', 'has no "field"'),
                            ('{"kind":"map"}', '"svg"'),
                            ('{"kind":"claim"}', '"claim"'), ('{"a":1}', 'no "kind"'),
                            ('{"kind":3}', '"kind" is not a string'),
                            ('{"kind":"point","experiment":"e","allocator":7}', '"allocator" is '
                             'not a string')):
            self.rejects([self.file_of(good + line + "\n")], "bad.jsonl:2: ", words)

    def test_help(self):
        result = quarry("report", "--help")
        self.assertEqual(result.returncode, 0)
        self.assertIn("Examples:\n  quarry report ", result.stdout)
        self.assertIn("  report ", quarry("--help").stdout)


if __name__ == "__main__":
    PROGRAM = shlex.split(sys.argv.pop(1))
    unittest.main(verbosity=2)
