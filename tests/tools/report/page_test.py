#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests of the page of quarry report in a browser.

usage: page_test.py PROGRAM SCREENSHOTS [TEST...]      exit code 77: no browser, or no selenium
"""
import csv
import pathlib
import shlex
import struct
import subprocess
import sys
import tempfile
import time
import unittest
import xml.etree.ElementTree

try:
    from browser import Browser, find
except ImportError as problem:  # selenium is a package of the system's Python
    print("skipped:", problem, "(scripts/install-deps browser)")
    sys.exit(77)

HERE = pathlib.Path(__file__).resolve().parent
PROGRAM, SCREENSHOTS = [], None
SIZES, CHURN, LANES = (f"#{name}--cuda-imaginary-gpu-made-up"
                       for name in ("sizes", "churn", "lanes"))
LAYERS = "#cluster-barnes-hut--simulated-network"
FIGURES = ("return [...document.querySelectorAll('.figure .picture')]"
           ".map((p) => '#' + p.closest('.figure').id)")
SVG = "{http://www.w3.org/2000/svg}"
SPACE = "\ue00d"
DECADES = ["0.1", "1", "10", "100", "1,000"]  # ticks of the y axis of SIZES
# Colours of the background and of the first curve.
LIGHT = ("rgb(255, 255, 255)", "rgb(0, 103, 165)")
DARK = ("rgb(20, 23, 27)", "rgb(90, 169, 230)")

# What the tests ask of a figure; arguments[0] selects it.
CURVES = "[...document.querySelectorAll(arguments[0] + ' .picture .curve')]"
SHOWN = CURVES + ".filter((c) => c.getAttribute('display') !== 'none')"
TICKS = ("[...document.querySelectorAll(arguments[0] + ' .picture .tick')]"
         ".filter((t) => t.getAttribute('display') !== 'none').map((t) => t.textContent)")
TEXTS = "[...document.querySelectorAll(arguments[0] + ' .picture text')].map((t) => t.textContent)"


class Page(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.temporary = tempfile.TemporaryDirectory()
        cls.folder = pathlib.Path(cls.temporary.name)
        sample, page = cls.folder / "sample.jsonl", cls.folder / "report.html"
        with sample.open("w", encoding="utf-8") as out:
            subprocess.run([sys.executable, HERE / "make_sample.py"], stdout=out, check=True)
        subprocess.run([*PROGRAM, "report", sample, "-o", page], check=True, timeout=100,
                       stdout=subprocess.DEVNULL)
        cls.address = page.as_uri()
        cls.browser = Browser(cls.folder)
        cls.browser.__enter__()

    @classmethod
    def tearDownClass(cls):
        cls.browser.__exit__()
        cls.temporary.cleanup()

    def setUp(self):
        b = self.browser
        b.open("about:blank")
        b.prefer("light")
        b.resize(1400, 1000)
        b.log("browser")
        b.requests()
        b.open(self.address)
        b.run("try { localStorage.clear() } catch {}")

    def tearDown(self):
        """After every test: the console is empty, and the page has requested nothing."""
        self.assertEqual([entry for entry in self.browser.log("browser")
                          if entry["level"] in ("SEVERE", "WARNING")], [])
        asked = [a for a in self.browser.requests()
                 if not a.startswith(("data:", "blob:", "about:"))]
        self.assertEqual(set(asked), {self.address})

    def drawn(self, figure):
        """Scrolls to the figure and waits for its picture."""
        self.browser.run("document.querySelector(arguments[0]).scrollIntoView()", figure)
        self.browser.wait("return !!document.querySelector(arguments[0] + ' .picture svg')", figure)

    def shown_curves(self, figure):
        return self.browser.run(f"return {SHOWN}.map((c) => c.dataset.name)", figure)

    def point_of(self, figure, name, index):
        """Position of a point in pixels, relative to the centre of the picture."""
        return self.browser.run(
            "const box = document.querySelector(arguments[0] + ' "
            ".picture').getBoundingClientRect();"
            f"const curve = {CURVES}.find((c) => c.dataset.name === arguments[1]);"
            "const point = curve.querySelector(`.point[data-index='${arguments[2]}']`);"
            "const r = point.getBoundingClientRect();"
            "return [r.left + r.width / 2 - box.left - box.width / 2, r.top + r.height / 2 - "
            "box.top - box.height / 2]",
            figure, name, index)

    def test_page_holds_all_figures_tables_and_maps(self):
        b = self.browser
        self.assertEqual(b.run("return document.querySelector('h1').textContent"),
                         "Quarry: measurements")
        self.assertEqual(b.run("return document.querySelectorAll('.figure').length"), 11)
        self.assertEqual(b.run("return document.querySelectorAll('#runs tbody tr').length"), 3)
        self.assertEqual(b.run("return document.querySelectorAll('#claims tbody tr').length"), 3)
        self.assertIn("</script> & \"quotes\"",
                      b.run("return document.querySelector('#experiment-sizes').textContent"))
        b.wait("return [...document.querySelectorAll('.maps img')].every((image) => "
               "image.naturalWidth > 0)")
        self.assertEqual(b.run("return document.querySelectorAll('.maps img').length"), 2)

    def test_every_chart_is_drawn(self):
        figures = self.browser.run(FIGURES)
        self.assertEqual(len(figures), 10)
        for figure in figures:
            self.drawn(figure)
            drawn = ("return document.querySelectorAll(arguments[0] + ' "
                     ".picture .curve .point').length")
            self.assertGreaterEqual(self.browser.run(drawn, figure), 4, figure)
            box = ("const r = document.querySelector(arguments[0] + ' .picture svg')"
                   ".getBoundingClientRect();")
            width, height = self.browser.run(box + "return [r.width, r.height]", figure)
            self.assertGreater(width, 500, figure)
            self.assertGreater(height, 80, figure)

    def test_screenshots(self):
        b = self.browser
        for figure in b.run(FIGURES):
            self.drawn(figure)
        b.run("scrollTo(0, 0)")
        time.sleep(1)
        b.screenshot(SCREENSHOTS / "light.png", whole=True)
        b.prefer("dark")
        time.sleep(1)
        b.screenshot(SCREENSHOTS / "dark.png", whole=True)
        b.resize(390, 844, mobile=True)
        time.sleep(1)
        b.screenshot(SCREENSHOTS / "phone.png", whole=True)
        for name in ("light", "dark", "phone"):
            header = (SCREENSHOTS / (name + ".png")).read_bytes()[16:24]
            width, height = struct.unpack(">II", header)
            self.assertGreater(height, 5 * width)

    def test_legend_shows_and_hides(self):
        self.drawn(SIZES)
        everything = self.shown_curves(SIZES)
        self.assertEqual(len(everything), 20)
        button = SIZES + " .legend button[data-name=CudaMalloc]"
        self.browser.click(button)
        self.assertEqual(self.shown_curves(SIZES), [name for name in everything
                                                    if name != "CudaMalloc"])
        pressed = "return document.querySelector(arguments[0]).getAttribute('aria-pressed')"
        self.assertEqual(self.browser.run(pressed, button), "false")
        self.browser.press(button, SPACE)  # the same by keyboard
        self.assertEqual(self.shown_curves(SIZES), everything)
        self.browser.click(SIZES + " .legend li:last-child button")  # none
        self.assertEqual(self.shown_curves(SIZES), [])
        self.browser.click(button)
        self.assertEqual(self.shown_curves(SIZES), ["CudaMalloc"])

    def test_pointing_at_a_name_highlights_its_curve(self):
        self.drawn(SIZES)
        strong = (f"return {CURVES}.filter((c) => !c.classList.contains('pale'))"
                  f".map((c) => c.dataset.name)")
        self.browser.point_at(SIZES + " .legend button[data-name=XMalloc]", 0, 0)
        self.assertEqual(self.browser.run(strong, SIZES), ["XMalloc"])
        self.browser.point_at(SIZES + " h3", 0, 0)
        self.assertEqual(len(self.browser.run(strong, SIZES)), 20)

    def test_axis_follows_what_is_shown(self):
        self.drawn(SIZES)
        self.assertEqual(self.browser.run(f"return {TICKS}", SIZES), DECADES)
        before = self.point_of(SIZES, "Quarry", 9)
        self.browser.click(SIZES + " .legend li:last-child button")  # none
        for name in ("Quarry", "AtomicMalloc"):
            self.browser.click(f"{SIZES} .legend button[data-name={name}]")
        ticks = [float(t) for t in self.browser.run(f"return {TICKS}", SIZES)]
        self.assertGreaterEqual(len(ticks), 3)
        self.assertLess(max(ticks), 1)
        self.assertLess(self.point_of(SIZES, "Quarry", 9)[1], before[1] - 50)  # moves up
        svg = xml.etree.ElementTree.fromstring(self.exported(SIZES, "svg"))
        self.assertEqual([c.get("data-name") for c in svg.iter(SVG + "g") if c.get("data-name")],
                         ["Quarry", "AtomicMalloc"])
        self.browser.click(SIZES + " .legend li:nth-last-child(2) button")  # all
        self.assertEqual(self.browser.run(f"return {TICKS}", SIZES), DECADES)
        self.assertAlmostEqual(self.point_of(SIZES, "Quarry", 9)[1], before[1], delta=0.1)

    def test_axes_are_logarithmic_where_the_experiment_says_so(self):
        self.drawn(SIZES)
        texts = self.browser.run(f"return {TEXTS}", SIZES)
        sizes = ["16", "32", "64", "128", "256", "512", "1 KiB", "2 KiB", "4 KiB", "8 KiB"]
        self.assertEqual(texts[texts.index("16"):][:10], sizes)
        self.assertEqual(self.browser.run(f"return {TICKS}", SIZES), DECADES)

    def test_a_single_x_value_makes_horizontal_bars_in_order(self):
        self.drawn(CHURN)
        names = self.shown_curves(CHURN)
        self.assertEqual((names[0], names[-1]),
                         ("Quarry", "ScatterAlloc-warp"))  # the fastest, and a lost one
        rows = f"return {SHOWN}.map((c) => c.getBoundingClientRect().top)"
        before = self.browser.run(rows, CHURN)
        self.assertEqual(before, sorted(before))
        self.browser.click(CHURN + " .legend button[data-name=Quarry]")
        after = self.browser.run(rows, CHURN)
        self.assertEqual(len(after), len(before) - 1)
        gap = before[1] - before[0]
        self.assertTrue(all(abs(b - a - gap) < 2 for a, b in zip(after, after[1:])))

    def test_layers_stay_stacked_when_one_is_hidden(self):
        self.drawn(LAYERS)
        bars = ("const curve = " + CURVES + ".find((c) => c.dataset.name === arguments[1]);"
                "return [...curve.querySelectorAll('.point')].map((b) => [+b.getAttribute('y'), "
                "+b.getAttribute('height')])")
        lower = self.browser.run(bars, LAYERS, "computation")
        upper = self.browser.run(bars, LAYERS, "worker communication")
        for (top, _), (y, height) in zip(lower, upper):
            self.assertAlmostEqual(y + height, top, delta=0.3)
        self.browser.click(LAYERS + " .legend button[data-name=computation]")
        moved = self.browser.run(bars, LAYERS, "worker communication")
        for (top, height), (y, h) in zip(lower, moved):
            self.assertAlmostEqual(y + h, top + height, delta=0.3)

    def test_tooltip_shows_value_and_range_of_repetitions(self):
        self.drawn(SIZES)
        place = self.point_of(SIZES, "Quarry", 2)
        self.browser.point_at(SIZES + " .picture", round(place[0]), round(place[1]))
        tooltip = ("const t = document.querySelector(arguments[0] + ' .tooltip');"
                   "return t.offsetParent && [...t.children].map((line) => line.textContent)")
        told = self.browser.wait(tooltip, SIZES)
        self.assertEqual(told[0], "Quarry")
        self.assertRegex(told[1], r"^time to allocate \[ms\]: 0\.0\d+$")
        self.assertEqual(told[2], "block size: 64 B")
        self.assertRegex(told[3], r"^repetitions: 0\.\d+ to 0\.\d+$")
        self.browser.screenshot(SCREENSHOTS / "hover.png")

    def test_measures_can_be_switched(self):
        self.drawn(SIZES)
        title = (f"return [document.querySelector(arguments[0] + ' .axis').textContent,"
                 f" {CURVES}.length]")
        self.assertEqual(self.browser.run(title, SIZES), ["time to allocate [ms]", 20])
        self.browser.click(SIZES + " .views button[data-field=free_ms]")
        self.assertEqual(self.browser.run(title, SIZES), ["time to free [ms]", 16])
        self.assertIn(b">time to free [ms]<", self.exported(SIZES, "svg", "free_ms"))

    def test_backends_can_be_filtered(self):
        b = self.browser
        visible = ("return [...document.querySelectorAll('.figure')].filter((f) => f.offsetParent)"
                   ".map((f) => f.id)")
        self.assertEqual(len(b.run(visible)), 11)
        b.click("#backends button[data-backend='0']")
        self.assertEqual(b.run(visible), ["sizes--cpu-imaginary-cpu-2-threads-made-up",
                                          "cluster-scaling--simulated-network",
                                          "cluster-barnes-hut--simulated-network"])
        in_sight = ("return [...document.querySelectorAll(arguments[0])]"
                    ".filter((e) => e.offsetParent).length")
        for what, count in (("#claims tbody tr", 0), (".maps figure", 0), ("#experiment-lanes", 0),
                            ("#contents li[data-for=experiment-lanes]", 0),
                            ("#ranking-table tbody tr", 1)):
            self.assertEqual(b.run(in_sight, what), count, what)
        for number in "12":
            b.click(f"#backends button[data-backend='{number}']")
        self.assertEqual(b.run(visible), [])
        self.assertTrue(b.run("return !!document.querySelector('#no-backend').offsetParent"))
        b.click("#backends button[data-backend='0']")
        self.assertEqual(len(b.run(visible)), 8)

    def test_light_and_dark(self):
        b = self.browser
        paper = "return getComputedStyle(document.body).backgroundColor"
        line = f"return getComputedStyle({CURVES}[0].querySelector('polyline')).stroke"
        self.drawn(LANES)
        self.assertEqual((b.run(paper), b.run(line, LANES)), LIGHT)
        b.prefer("dark")
        b.wait("return document.documentElement.dataset.theme === 'dark'")
        self.assertEqual((b.run(paper), b.run(line, LANES)), DARK)
        self.assertNotIn(b"#5aa9e6", self.exported(LANES, "svg"))  # files have light colours
        b.click("#theme")
        self.assertEqual((b.run(paper), b.run(line, LANES)), LIGHT)
        b.run("try { localStorage.clear() } catch {}")

    def test_faults_are_listed_and_drawn(self):
        text = self.browser.run("return document.querySelector(arguments[0] + ' "
                                ".remarks').innerText", SIZES)
        for words in ("2 lost, 2 unsound, 1 with failed allocations", "CMalloc: timed out: 20 s "
                      "(4 KiB; 8 KiB)",
                      "ScatterAlloc: corrupt blocks (64 B: 12)"):
            self.assertIn(words, text)
        self.drawn(SIZES)
        signs = ("const all = document.querySelectorAll(arguments[0] + ' .picture ' + "
                 "arguments[1]);"
                 "return [...all].map((sign) => getComputedStyle(sign).stroke)")
        red = "rgb(200, 16, 26)"
        self.assertEqual(self.browser.run(signs, SIZES, "path.cross"), [red] * 3)
        self.assertEqual(self.browser.run(signs, SIZES, "circle.fault"), [red] * 3)
        count = "return document.querySelector(arguments[0] + ' .lost-count').textContent"
        self.assertEqual(self.browser.run(count, SIZES), "2")
        self.browser.click(SIZES + " .legend button[data-name=CMalloc]")
        self.assertEqual(self.browser.run(count, SIZES), "")

    def test_rankings_follow_the_selected_allocators(self):
        b = self.browser
        row = ("return document.querySelector('#ranking-table tbody tr').innerText.split('\\t')"
               ".map((t) => t.trim())")
        first = b.run(row)
        self.assertEqual((first[0], first[3], first[4]),
                         ("Every lane allocates one block", "Quarry", "CudaMalloc (11\u00a0×)"))
        self.assertEqual(first[6], "CMalloc, CMalloc-warp, CFMalloc, ScatterAlloc")
        b.run("const select = document.querySelector('#rankings select'); select.value = 'all';"
              "select.dispatchEvent(new Event('change'))")
        self.assertEqual(b.run(row)[4], "AtomicMalloc (+70\u00a0%)")
        rows = "return document.querySelectorAll('#ranking-table tbody tr').length"
        before = b.run(rows)
        b.click("#every-measure")
        self.assertGreater(b.run(rows), before)
        self.assertIn("mean slowdown", b.run("return document.querySelector('#overall').innerText"))

    def test_commands_can_be_copied(self):
        self.browser.run("document.querySelector(arguments[0] + ' .by-command').open = true", LANES)
        commands = ("return [...document.querySelectorAll(arguments[0] + ' .command code')]"
                    ".map((c) => c.textContent)")
        self.assertIn("quarry bench --backend cuda --experiments lanes --allocators XMalloc",
                      self.browser.run(commands, LANES))
        self.browser.click(LANES + " .commands .command button")
        self.browser.wait("return document.querySelector('#notice').textContent === 'Copied'")

    def exported(self, figure, kind, field="ms"):
        file = self.folder / f"{figure[1:]}{'' if kind == 'csv' else '--' + field}.{kind}"
        self.browser.click(f"{figure} button[data-export={kind.upper()}]")
        for _ in range(300):
            if file.exists() and not list(self.folder.glob("*.crdownload")):
                break
            time.sleep(0.1)
        data = file.read_bytes()
        file.unlink()
        return data

    def test_figures_are_exported_as_they_are_shown(self):
        self.drawn(SIZES)
        self.browser.click(SIZES + " .legend button[data-name=Quarry]")
        svg = self.exported(SIZES, "svg")
        texts = [t.text for t in xml.etree.ElementTree.fromstring(svg).iter(
            "{http://www.w3.org/2000/svg}text")]
        for words in ("AtomicMalloc", "8 KiB", "time to allocate [ms]", "Every lane allocates one "
                      "block"):
            self.assertIn(words, texts)
        self.assertNotIn("Quarry", texts)
        (SCREENSHOTS / "exported.svg").write_bytes(svg)
        png = self.exported(SIZES, "png")
        self.assertEqual(png[:8], b"\x89PNG\r\n\x1a\n")
        self.assertGreater(struct.unpack(">I", png[16:20])[0], 1500)
        (SCREENSHOTS / "exported.png").write_bytes(png)
        rows = list(csv.DictReader(self.exported(SIZES, "csv").decode().splitlines()))
        self.assertIn({"experiment": "sizes", "backend": "Imaginary GPU (made up)",
                       "measure": "ms", "unit": "ms",
                       "series": "CMalloc", "x": "8192", "value": "", "least": "", "most": "",
                       "state": "lost"}, rows)

    def test_bars_are_exported(self):
        self.drawn(CHURN)
        svg = xml.etree.ElementTree.fromstring(self.exported(CHURN, "svg"))
        self.assertEqual(len(list(svg.iter("{http://www.w3.org/2000/svg}rect"))),
                         18)  # the background, and 17 bars
        (SCREENSHOTS / "exported-bars.svg").write_bytes(xml.etree.ElementTree.tostring(svg))

    def test_an_anchor_scrolls_to_its_figure(self):
        self.browser.open("about:blank")
        self.browser.open(self.address + CHURN)
        top = "document.querySelector(arguments[0]).getBoundingClientRect().top"
        self.browser.wait(f"return Math.abs({top} - 72) < 40", CHURN)  # below the sticky bar

    def test_page_fits_on_a_phone(self):
        self.browser.resize(390, 844, mobile=True)
        self.drawn(SIZES)
        self.assertLessEqual(self.browser.run("return document.documentElement.scrollWidth"), 390)
        self.browser.screenshot(SCREENSHOTS / "phone-figure.png")


if __name__ == "__main__":
    PROGRAM = shlex.split(sys.argv.pop(1))
    SCREENSHOTS = pathlib.Path(sys.argv.pop(1)).resolve()
    SCREENSHOTS.mkdir(parents=True, exist_ok=True)
    if isinstance(find(), str):
        print("skipped:", find())
        sys.exit(77)
    unittest.main(verbosity=2)
