#!/usr/bin/env python3
"""The pages and pictures of the simulator, as people see them in a browser.

usage: pages.py [TEST...]

In headless Chromium, light and dark, wide and narrow: texts do not overlap and
are not cut, axes say what they measure, a number shows under the pointer, and
axe-core finds nothing serious. The colours are told apart by who lacks a primary
colour. STAGGER_SHOTS is a folder that keeps the screenshots.
"""
import itertools
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

import browser

STAGGER = os.environ["STAGGER"]
SOURCE = pathlib.Path(os.environ["STAGGER_SOURCE"])
GOLDEN = SOURCE / "tests/sim/golden"
AXE = SOURCE / "build/tools/node_modules/axe-core/axe.min.js"
SHOTS = pathlib.Path(os.environ.get("STAGGER_SHOTS") or tempfile.mkdtemp())
WIDTHS = 1280, 700, 390, 320
FEW = {"sweep": (1280, 360), "advise": (1280, 360)}  # like "storm" otherwise

LONG = ("<tags>-and-a-name-that-is-long&so-on=exponential base=10ms cap=2s "
        "jitter=full attempts=20 deadline=5m")
# What is simulated for a page: its name, and the command.
PAGES = {
    "aws": ["contention", "--reps", "10", "-n", "10..190/60"],
    "one": ["contention", "--reps", "3", "-n", "1000", "-p", "client"],
    "workers": ["contention", "--reps", "5", "-n", "5,50,500", "-p", LONG,
                "-p", "client", "-p", "client attempts=9 base=1s",
                "-r", "workers=4 service=exponential:50ms queue=20"],
    "storm": ["overload", "--reps", "3"],
    "sweep": ["overload", "--reps", "2", "--sweep",
              "budget=none,tokens:100:10/s,ratio:0.1"],
    "advise": ["advise", "--clients", "20", "--processes", "2", "--capacity",
               "40", "--outage", "5s", "--patience", "3s", "--reps", "2"],
}

# Pairs of texts of a picture that overlap, and texts that leave it.
OVERLAPS = """
[...document.querySelectorAll("svg.stg")].flatMap((svg) => {
    const frame = svg.getBoundingClientRect();
    if (frame.width === 0) return [];
    const texts = [...svg.querySelectorAll("text")].map((text) => {
        const box = text.getBoundingClientRect();
        return {said: text.firstChild.data, left: box.left + 1,
                right: box.right - 1, top: box.top + 2,
                bottom: box.bottom - 2};
    });
    const found = [];
    texts.forEach((a, i) => {
        if (a.left < frame.left - 2 || a.right > frame.right + 2 ||
            a.top < frame.top - 3 || a.bottom > frame.bottom + 3)
            found.push(`${a.said} leaves ${svg.ariaLabel}`);
        for (const b of texts.slice(i + 1))
            if (a.left < b.right && b.left < a.right &&
                a.top < b.bottom && b.top < a.bottom)
                found.push(`${a.said} | ${b.said} of ${svg.ariaLabel}`);
    });
    return found;
})
"""

# The titles of the axes of each picture that shows.
AXES = """
[...document.querySelectorAll("svg.stg")]
    .filter((svg) => svg.getBoundingClientRect().width > 0)
    .map((svg) => [...svg.querySelectorAll(".u")].map((it) => it.textContent))
"""
UNITS = ("(us)", "(ms)", "(s)", "(min)", "(h)", "(d)", "(%)", "(/s)",
         "(logarithmic)", "logarithmic)", "square root)", "(number)", "(calls)", "(requests)",
         "calls", "clients", "retry", "requests", "attempts", "operations")


# Whether each width of the window shows one drawing of each picture.
SHOWN = """
["svg.stg", ".wide svg.stg", ".narrow svg.stg"].map((which) =>
    [...document.querySelectorAll(which)].filter(
        (it) => it.getBoundingClientRect().width > 0).length)
"""


def sim(*arguments):
    subprocess.run([STAGGER, "sim", *map(str, arguments)], check=True,
                   timeout=300, stdout=subprocess.DEVNULL)


class Pages(unittest.TestCase):

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.chromium = browser.Browser()
        root = pathlib.Path(cls.folder.name)
        cls.urls = {}
        for name, command in PAGES.items():
            file = root / f"{name}.html"
            sim(*command, "--html", file, "--svg", root / name)
            cls.urls[name] = file.as_uri()
        cls.pictures = sorted((root / "aws").glob("*.svg"))
        # All kinds of charts, at the width that they were drawn for.
        for width in 760, 360:
            cls.urls[f"kinds-{width}"] = cls.sheet(root, width)

    @staticmethod
    def sheet(root, width):
        file = root / f"kinds-{width}.html"
        pictures = [path.read_text()
                    for path in sorted(GOLDEN.glob(f"*-{width}.svg"))]
        file.write_text("<!DOCTYPE html><html lang='en'><meta charset='utf-8'>"
                        "<title>kinds</title><link rel='icon' href='data:,'>"
                        "<body style='margin:0'>" + "".join(pictures))
        return file.as_uri()

    @classmethod
    def tearDownClass(cls):
        cls.chromium.close()
        cls.folder.cleanup()

    def open(self, name, **options):
        page = self.chromium.open(self.urls[name], **options)
        self.addCleanup(page.close)
        return page

    def each(self):
        """Each page at each width, its own where it has one."""
        for name, url in self.urls.items():
            kind, _, width = name.partition("-")
            for width in [int(width)] if width else FEW.get(name, WIDTHS):
                yield name, kind, width

    def test_reads_well_at_any_width_light_and_dark(self):
        for name, kind, width in self.each():
            page = self.chromium.open(self.urls[name], width=width)
            with self.subTest(page=name, width=width):
                self.assertEqual(page.evaluate(OVERLAPS), [])
                self.assertLessEqual(page.evaluate(
                    "document.documentElement.scrollWidth"), width)
                self.check_axes(page.evaluate(AXES))
                for shade in "light", "dark":
                    page.prefer(shade == "dark")
                    page.screenshot(str(SHOTS / f"{kind}-{width}-{shade}.png"))
                self.assertEqual(page.complaints, [])
                self.assertEqual(page.requests, [self.urls[name]])
            page.close()

    def test_begins_with_the_key_numbers(self):
        for name, count, words in (
                ("aws", 5, r"[\d,]+ calls\n[\d.]+ (s|min) until all"),
                ("storm", 3, r"[\d.]+.% succeed\nrecovery: .+; [\d.]+ requests")):
            page = self.open(name)
            tiles = page.evaluate("[...document.querySelectorAll('.tiles div')]"
                                  ".map((it) => it.innerText)")
            self.assertEqual(len(tiles), count)
            for tile in tiles:
                self.assertRegex(tile, words)
            # What the page is about stands there once.
            heads = page.evaluate("[...document.querySelectorAll('h1, h2')]"
                                  ".map((it) => it.innerText)")
            self.assertEqual(len(set(heads)), len(heads))

    def check_axes(self, pictures):
        self.assertTrue(pictures)
        for titles in pictures:
            self.assertGreaterEqual(len(titles), 2, titles)
            for title in titles:
                self.assertTrue(any(unit in title for unit in UNITS), title)

    def test_shows_one_drawing_of_each_picture(self):
        page = self.open("aws")
        count = len(self.pictures)
        for width, shown in ((1280, [count, count, 0]),
                             (390, [count, 0, count])):
            page.resize(width, 900)
            self.assertEqual(page.evaluate(SHOWN), shown)

    def test_shows_the_number_under_the_pointer(self):
        page = self.open("aws", width=1280)
        x, y = page.evaluate("""(() => {
            const it = [...document.querySelectorAll(".wide .h")].find((h) =>
                h.textContent.includes("clients\\n"));
            it.scrollIntoView({block: "center"});
            const box = it.getBoundingClientRect();
            return [box.x + box.width / 2, box.y + box.height / 2];
        })()""")
        page.mouse("mouseMoved", x, y)
        self.assertEqual(page.wait(
            "[...document.querySelectorAll('.h')].filter((h) => "
            "getComputedStyle(h).fillOpacity > 0).length"), 1)
        said = page.evaluate(
            "document.querySelector('.h:hover title').textContent")
        self.assertRegex(said, r"^\d+ clients\nnone: [\d,.]+ calls "
                               r"± [\d,.]+ calls\n")

    def test_prints_dark_on_white_all_of_it(self):
        page = self.open("aws", width=390, dark=True)
        page.command("Emulation.setEmulatedMedia", media="print", features=[
            {"name": "prefers-color-scheme", "value": "dark"}])
        self.assertEqual(page.evaluate(
            "getComputedStyle(document.body).backgroundColor"),
            "rgb(255, 255, 255)")
        self.assertEqual(page.evaluate(
            "[...document.querySelectorAll('.narrow')].filter((it) => "
            "it.getBoundingClientRect().width > 0).length"), 0)
        self.assertGreater(len(page.command("Page.printToPDF")["data"]), 10000)

    def test_has_pictures_that_stand_alone(self):
        self.assertGreater(len(self.pictures), 5)
        for path in self.pictures:
            page = self.chromium.open(path.as_uri(), width=760)
            with self.subTest(picture=path.name):
                page.screenshot(str(SHOTS / f"{path.stem}.png"), whole=False)
                self.assertEqual(page.evaluate(OVERLAPS), [])
                self.assertEqual(page.complaints, [])
            page.close()

    def test_has_nothing_serious_for_axe(self):
        if not AXE.exists():
            if os.environ.get("CI") == "true":
                self.fail("no axe-core: scripts/deps all")
            self.skipTest("no axe-core: scripts/deps all installs it")
        for name, width, dark in (("aws", 1280, False), ("one", 1280, True),
                                  ("workers", 390, False),
                                  ("sweep", 1280, False),
                                  ("advise", 390, True)):
            page = self.open(name, width=width, dark=dark)
            with self.subTest(page=name, width=width, dark=dark):
                page.evaluate(AXE.read_text() + "; 0")
                found = page.evaluate("axe.run().then((run) => "
                                      "run.violations.map((it) => [it.id, "
                                      "it.impact, it.nodes[0].html]))")
                self.assertEqual([it for it in found if it[1] in
                                  ("serious", "critical")], [])


# -- colours

# What is seen of linear red, green and blue: Machado, Oliveira and Fernandes,
# "A Physiologically-based Model for Simulation of Color Vision Deficiency",
# 2009, at full severity.
EYES = {
    "all": ((1, 0, 0), (0, 1, 0), (0, 0, 1)),
    "no red": ((0.152286, 1.052583, -0.204868),
               (0.114503, 0.786281, 0.099216),
               (-0.003882, -0.048116, 1.051998)),
    "no green": ((0.367322, 0.860646, -0.227968),
                 (0.280085, 0.672501, 0.047413),
                 (-0.011820, 0.042940, 0.968881)),
    "no blue": ((1.255528, -0.076749, -0.178779),
                (-0.078411, 0.930809, 0.147602),
                (0.004733, 0.691367, 0.303900)),
}
# Ottosson, "A perceptual color space for image processing", 2020: Oklab.
TO_CONES = ((0.4122214708, 0.5363325363, 0.0514459929),
            (0.2119034982, 0.6806995451, 0.1073969566),
            (0.0883024619, 0.2817188376, 0.6299787005))
TO_LAB = ((0.2104542553, 0.7936177850, -0.0040720468),
          (1.9779984951, -2.4285922050, 0.4505937099),
          (0.0259040371, 0.7827717662, -0.8086757660))


def times(matrix, vector):
    return [sum(a * b for a, b in zip(row, vector)) for row in matrix]


def linear(colour):
    """Of "rgb(1, 2, 3)"."""
    parts = [int(part) / 255 for part in colour[4:-1].split(",")]
    return [part / 12.92 if part <= 0.04045
            else ((part + 0.055) / 1.055) ** 2.4 for part in parts]


def seen(colour, eye):
    light = [min(1, max(0, part)) for part in times(EYES[eye], linear(colour))]
    return times(TO_LAB, [part ** (1 / 3) for part in times(TO_CONES, light)])


def distance(a, b, eye):
    return sum((x - y) ** 2
               for x, y in zip(seen(a, eye), seen(b, eye))) ** 0.5


def chroma(colour):
    _, a, b = seen(colour, "all")
    return (a * a + b * b) ** 0.5


def contrast(a, b):
    """By WCAG 2.2."""
    dim, bright = sorted(
        sum(part * weight for part, weight in
            zip(linear(colour), (0.2126, 0.7152, 0.0722))) for colour in (a, b))
    return (bright + 0.05) / (dim + 0.05)


# The least distances of the most vivid colours that a search has found: of the
# five of the experiment, and of all eight, whose points differ in shape, too.
VIVID = {
    False: {"all": (0.211, 0.116), "no red": (0.162, 0.116),
            "no green": (0.160, 0.120), "no blue": (0.167, 0.103)},
    True: {"all": (0.197, 0.133), "no red": (0.158, 0.112),
           "no green": (0.156, 0.120), "no blue": (0.161, 0.104)},
}


class Colours(unittest.TestCase):
    """Two colours 0.02 apart are just told apart side by side. Thin lines want
    more: as much as the most vivid colours have, whose mean chroma is 0.17 on
    white and 0.15 on black."""

    def test_are_told_apart_by_everybody(self):
        with browser.Browser() as chromium:
            page = chromium.open((GOLDEN / "page.html").as_uri())
            for dark in False, True:
                page.prefer(dark)
                ground, *colours = page.evaluate("""(() => {
                    const svg = document.querySelector("svg.stg");
                    const of = (i) => {
                        const it = document.createElementNS(
                            "http://www.w3.org/2000/svg", "g");
                        it.setAttribute("class", "c" + i);
                        svg.append(it);
                        return getComputedStyle(it).color;
                    };
                    return [getComputedStyle(document.body).backgroundColor,
                            ...[0, 1, 2, 3, 4, 5, 6, 7].map(of)];
                })()""")
                self.judge(ground, colours, dark)

    def judge(self, ground, colours, dark):
        for colour in colours:
            with self.subTest(colour=colour, dark=dark):
                self.assertGreaterEqual(contrast(colour, ground), 3)
        for eye in EYES:
            for (i, a), (k, b) in itertools.combinations(
                    enumerate(colours), 2):
                with self.subTest(eye=eye, colours=(i, k), dark=dark):
                    self.assertGreaterEqual(distance(a, b, eye),
                                            VIVID[dark][eye][k >= 5])
        self.assertLess(sum(chroma(colour) for colour in colours) / 8,
                        0.1 if dark else 0.125)


if __name__ == "__main__":
    browser.skip_without()
    print(f"screenshots: {SHOTS}")
    unittest.main(verbosity=1, argv=sys.argv)
