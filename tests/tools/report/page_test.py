#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The page of quarry report in a real browser, as a person uses it.

usage: page_test.py PROGRAM SCREENSHOTS [TEST...]      exit code 77: there is no browser here
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

from browser import Browser, find

HERE = pathlib.Path(__file__).resolve().parent
PROGRAM, SCREENSHOTS = [], None
SIZES, CHURN, LANES = ("#" + name + "--cuda-imaginary-gpu-made-up" for name in ("sizes", "churn", "lanes"))
CHART = "const chart = Chart.getChart(document.querySelector(arguments[0] + ' canvas')); "
FIGURES = "return [...document.querySelectorAll('.figure canvas')].map((c) => '#' + c.closest('.figure').id)"
SPACE = "\ue00d"


class Page(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.temporary = tempfile.TemporaryDirectory()
        cls.folder = pathlib.Path(cls.temporary.name)
        sample, page = cls.folder / "sample.jsonl", cls.folder / "report.html"
        with sample.open("w", encoding="utf-8") as out:
            subprocess.run([sys.executable, HERE / "make_sample.py"], stdout=out, check=True)
        subprocess.run([*PROGRAM, "report", sample, "-o", page], check=True, timeout=100, stdout=subprocess.DEVNULL)
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
        """Whatever a test did: nothing to complain about, and nothing asked of a network."""
        self.assertEqual([entry for entry in self.browser.log("browser") if entry["level"] in ("SEVERE", "WARNING")], [])
        asked = [a for a in self.browser.requests() if not a.startswith(("data:", "blob:", "about:"))]
        self.assertEqual(set(asked), {self.address})

    def drawn(self, figure):
        """Scrolls to the figure and waits for its chart."""
        self.browser.run("document.querySelector(arguments[0]).scrollIntoView()", figure)
        self.browser.wait("return !!Chart.getChart(document.querySelector(arguments[0] + ' canvas'))", figure)

    def shown_curves(self, figure):
        return self.browser.run(CHART + "return chart.data.datasets.map((set) => set.label)", figure)

    def colours_of(self, figure):
        """How many different colours the canvas has."""
        return self.browser.run("const canvas = document.querySelector(arguments[0] + ' canvas');"
                                "const {data} = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);"
                                "return new Set(new Uint32Array(data.buffer)).size", figure)

    def test_everything_is_there(self):
        b = self.browser
        self.assertEqual(b.run("return document.querySelector('h1').textContent"), "Quarry: measured")
        self.assertEqual(b.run("return document.querySelectorAll('.figure').length"), 11)
        self.assertEqual(b.run("return document.querySelectorAll('#runs tbody tr').length"), 3)
        self.assertEqual(b.run("return document.querySelectorAll('#claims tbody tr').length"), 3)
        self.assertIn("</script> & \"quotes\"", b.run("return document.querySelector('#experiment-sizes').textContent"))
        b.wait("return [...document.querySelectorAll('.maps img')].every((image) => image.naturalWidth > 0)")
        self.assertEqual(b.run("return document.querySelectorAll('.maps img').length"), 2)

    def test_every_chart_is_drawn(self):
        figures = self.browser.run(FIGURES)
        self.assertEqual(len(figures), 10)
        for figure in figures:
            self.drawn(figure)
            self.assertGreater(self.colours_of(figure), 10, figure)

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
            width, height = struct.unpack(">II", (SCREENSHOTS / (name + ".png")).read_bytes()[16:24])
            self.assertGreater(height, 5 * width)

    def test_legend_shows_and_hides(self):
        self.drawn(SIZES)
        everything = self.shown_curves(SIZES)
        self.assertEqual(len(everything), 20)
        button = SIZES + " .legend button[data-name=CudaMalloc]"
        self.browser.click(button)
        self.assertEqual(self.shown_curves(SIZES), [name for name in everything if name != "CudaMalloc"])
        pressed = "return document.querySelector(arguments[0]).getAttribute('aria-pressed')"
        self.assertEqual(self.browser.run(pressed, button), "false")
        self.browser.press(button, SPACE)  # the keyboard does the same
        self.assertEqual(self.shown_curves(SIZES), everything)
        self.browser.click(SIZES + " .legend li:last-child button")  # none
        self.assertEqual(self.shown_curves(SIZES), [])
        self.browser.click(button)
        self.assertEqual(self.shown_curves(SIZES), ["CudaMalloc"])

    def test_the_mouse_on_a_name_brings_its_curve_out(self):
        self.drawn(SIZES)
        strong = CHART + ("return chart.data.datasets.filter((set) => !set.borderColor.startsWith('rgba'))"
                          ".map((set) => set.label)")
        self.browser.point_at(SIZES + " .legend button[data-name=XMalloc]", 0, 0)
        self.assertEqual(self.browser.run(strong, SIZES), ["XMalloc"])
        self.browser.point_at(SIZES + " h3", 0, 0)
        self.assertEqual(len(self.browser.run(strong, SIZES)), 20)

    def test_axis_follows_what_is_shown(self):
        self.drawn(SIZES)
        most = "return chart.scales.y.max"
        before = self.browser.run(CHART + most, SIZES)
        for name in ("Imaginary", "FDGMalloc"):
            self.browser.click(f"{SIZES} .legend button[data-name={name}]")
        self.assertLess(self.browser.run(CHART + most, SIZES), before / 1.5)

    def test_axes_are_logarithmic_where_the_experiment_says_so(self):
        self.drawn(SIZES)
        described = "return [chart.scales.x, chart.scales.y].map((s) => [s.type, ...s.ticks.map((t) => t.label)])"
        axes = self.browser.run(CHART + described, SIZES)
        self.assertEqual(axes[0], ["logarithmic", "16", "32", "64", "128", "256", "512", "1 KiB", "2 KiB", "4 KiB",
                                   "8 KiB"])
        self.assertEqual(axes[1], ["logarithmic", "0.1", "1", "10", "100", "1,000"])

    def test_one_row_becomes_lying_bars_in_order(self):
        self.drawn(CHURN)
        described = "return [chart.config.type, chart.options.indexAxis, chart.scales.y.ticks.map((t) => t.label)]"
        shown = self.browser.run(CHART + described, CHURN)
        self.assertEqual(shown[:2], ["bar", "y"])
        self.assertEqual((shown[2][0], shown[2][-1]), ("Quarry", "ScatterAlloc-warp"))  # the fastest, and what was lost

    def test_hovering_tells_value_and_spread(self):
        self.drawn(SIZES)
        place = self.browser.run(CHART + "const box = chart.canvas.getBoundingClientRect();"
                                 "const dot = chart.getDatasetMeta(0).data[2];"
                                 "return [dot.x - box.width / 2, dot.y - box.height / 2]", SIZES)
        self.browser.point_at(SIZES + " canvas", round(place[0]), round(place[1]))
        tooltip = "const t = chart.tooltip; return t.opacity > 0 && [t.title[0], ...t.body[0].lines]"
        told = self.browser.wait(CHART + tooltip, SIZES)
        self.assertEqual(told[0], "Quarry")
        self.assertRegex(told[1], r"^time to allocate \[ms\]: 0\.0\d+$")
        self.assertEqual(told[2], "block size: 64 B")
        self.assertRegex(told[3], r"^repeats: 0\.\d+ to 0\.\d+$")
        self.browser.screenshot(SCREENSHOTS / "hover.png")

    def test_another_measure(self):
        self.drawn(SIZES)
        title = "return [chart.scales.y.options.title.text, chart.data.datasets.length]"
        self.assertEqual(self.browser.run(CHART + title, SIZES), ["time to allocate [ms]", 20])
        self.browser.click(SIZES + " .views button[data-field=free_ms]")
        self.assertEqual(self.browser.run(CHART + title, SIZES), ["time to free [ms]", 16])
        self.assertIn(b">time to free [ms]<", self.exported(SIZES, "svg", "free_ms"))

    def test_machines_are_filtered(self):
        b = self.browser
        visible = "return [...document.querySelectorAll('.figure')].filter((f) => f.offsetParent).map((f) => f.id)"
        self.assertEqual(len(b.run(visible)), 11)
        b.click("#backends button[data-backend='0']")
        self.assertEqual(b.run(visible), ["sizes--cpu-imaginary-cpu-2-threads-made-up", "cluster-scaling--simulated-network",
                                          "cluster-barnes-hut--simulated-network"])
        in_sight = "return [...document.querySelectorAll(arguments[0])].filter((e) => e.offsetParent).length"
        for what, count in (("#claims tbody tr", 0), (".maps figure", 0), ("#experiment-lanes", 0),
                            ("#contents li[data-for=experiment-lanes]", 0), ("#work tbody tr", 1)):
            self.assertEqual(b.run(in_sight, what), count, what)
        for number in "12":
            b.click(f"#backends button[data-backend='{number}']")
        self.assertEqual(b.run(visible), [])
        self.assertTrue(b.run("return !!document.querySelector('#nobody').offsetParent"))
        b.click("#backends button[data-backend='0']")
        self.assertEqual(len(b.run(visible)), 8)

    def test_light_and_dark(self):
        b = self.browser
        paper = "return getComputedStyle(document.body).backgroundColor"
        line = CHART + "return chart.data.datasets[0].borderColor"
        self.drawn(LANES)
        self.assertEqual((b.run(paper), b.run(line, LANES)), ("rgb(255, 255, 255)", "#0067a5"))
        b.prefer("dark")
        b.wait("return document.documentElement.dataset.theme === 'dark'")
        self.assertEqual((b.run(paper), b.run(line, LANES)), ("rgb(20, 23, 27)", "#5aa9e6"))
        b.click("#theme")
        self.assertEqual((b.run(paper), b.run(line, LANES)), ("rgb(255, 255, 255)", "#0067a5"))
        b.run("try { localStorage.clear() } catch {}")

    def test_what_went_wrong_is_in_sight(self):
        text = self.browser.run("return document.querySelector(arguments[0] + ' .remarks').innerText", SIZES)
        for words in ("2 lost, 2 unsound, 1 with refused requests", "CMalloc: timed out: 20 s (4 KiB; 8 KiB)",
                      "ScatterAlloc: corrupt blocks (64 B: 12)"):
            self.assertIn(words, text)
        self.drawn(SIZES)
        red = ("const [x, y] = [chart.scales.x.getPixelForValue(8192), chart.scales.y.bottom];"
               "const {data} = chart.ctx.getImageData(x - 6, y - 6, 12, 12); let n = 0;"
               "for (let i = 0; i < data.length; i += 4)"
               "  n += data[i] > 150 && data[i + 1] < 90 && data[i + 2] < 90 && data[i + 3] > 150;"
               "return n")
        self.assertGreater(self.browser.run(CHART + red, SIZES), 10)

    def test_which_allocator_for_which_work(self):
        b = self.browser
        row = "return document.querySelector('#work tbody tr').innerText.split('\\t').map((t) => t.trim())"
        first = b.run(row)
        self.assertEqual((first[0], first[3], first[4]),
                         ("Every lane allocates one block", "Quarry", "CudaMalloc (11\u00a0×)"))
        self.assertEqual(first[6], "CMalloc, CMalloc-warp, CFMalloc, ScatterAlloc")
        b.run("const select = document.querySelector('#choice select'); select.value = 'everyone';"
              "select.dispatchEvent(new Event('change'))")
        self.assertEqual(b.run(row)[4], "AtomicMalloc (+70\u00a0%)")
        rows = "return document.querySelectorAll('#work tbody tr').length"
        before = b.run(rows)
        b.click("#every-measure")
        self.assertGreater(b.run(rows), before)
        self.assertIn("mean slowdown", b.run("return document.querySelector('#overall').innerText"))

    def test_commands_can_be_copied(self):
        self.browser.run("document.querySelector(arguments[0] + ' .by-command').open = true", LANES)
        commands = "return [...document.querySelectorAll(arguments[0] + ' .command code')].map((c) => c.textContent)"
        self.assertIn("quarry bench --backend cuda --experiments lanes --allocators XMalloc",
                      self.browser.run(commands, LANES))
        self.browser.click(LANES + " .commands .command button")
        self.browser.wait("return document.querySelector('#said').textContent === 'Copied'")

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
        texts = [t.text for t in xml.etree.ElementTree.fromstring(svg).iter("{http://www.w3.org/2000/svg}text")]
        for words in ("AtomicMalloc", "8 KiB", "time to allocate [ms]", "Every lane allocates one block"):
            self.assertIn(words, texts)
        self.assertNotIn("Quarry", texts)
        (SCREENSHOTS / "exported.svg").write_bytes(svg)
        png = self.exported(SIZES, "png")
        self.assertEqual(png[:8], b"\x89PNG\r\n\x1a\n")
        self.assertGreater(struct.unpack(">I", png[16:20])[0], 1500)
        (SCREENSHOTS / "exported.png").write_bytes(png)
        rows = list(csv.DictReader(self.exported(SIZES, "csv").decode().splitlines()))
        self.assertIn({"experiment": "sizes", "backend": "Imaginary GPU (made up)", "measure": "ms", "unit": "ms",
                       "series": "CMalloc", "x": "8192", "value": "", "least": "", "most": "", "state": "lost"}, rows)

    def test_bars_are_exported(self):
        self.drawn(CHURN)
        svg = xml.etree.ElementTree.fromstring(self.exported(CHURN, "svg"))
        self.assertEqual(len(list(svg.iter("{http://www.w3.org/2000/svg}rect"))), 18)  # the paper, and 17 bars
        (SCREENSHOTS / "exported-bars.svg").write_bytes(xml.etree.ElementTree.tostring(svg))

    def test_an_anchor_leads_to_its_figure(self):
        self.browser.open("about:blank")
        self.browser.open(self.address + CHURN)
        top = "document.querySelector(arguments[0]).getBoundingClientRect().top"
        self.browser.wait(f"return Math.abs({top} - 72) < 40", CHURN)  # under the bar that stays

    def test_a_phone_is_wide_enough(self):
        self.browser.resize(390, 844, mobile=True)
        self.drawn(SIZES)
        self.assertLessEqual(self.browser.run("return document.documentElement.scrollWidth"), 390)
        self.assertGreater(self.colours_of(SIZES), 10)
        self.browser.screenshot(SCREENSHOTS / "phone-figure.png")


if __name__ == "__main__":
    PROGRAM = shlex.split(sys.argv.pop(1))
    SCREENSHOTS = pathlib.Path(sys.argv.pop(1)).resolve()
    SCREENSHOTS.mkdir(parents=True, exist_ok=True)
    if isinstance(find(), str):
        print("skipped:", find())
        sys.exit(77)
    unittest.main(verbosity=2)
