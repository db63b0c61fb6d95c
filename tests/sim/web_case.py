"""The simulator's page in one headless Chromium that its tests share.

PAGE is the file; STAGGER_SHOTS is a folder that keeps the screenshots.
"""
import atexit
import json
import os
import shlex
import subprocess
import tempfile
import unittest

import browser

STAGGER = os.environ["STAGGER"]
AXE = os.path.join(os.environ.get("STAGGER_SOURCE", "."),
                   "build/tools/node_modules/axe-core/axe.min.js")
SHOTS = os.environ.get("STAGGER_SHOTS") or tempfile.mkdtemp()

# Of a slider, by its label: the element.
FIELD = """[...document.querySelectorAll('form label')].find((label) =>
    label.textContent === %s && label.htmlFor && label.checkVisibility() &&
    document.getElementById(label.htmlFor))"""


def by_label(label):
    return f"document.getElementById(({FIELD % json.dumps(label)}).htmlFor)"


def put(page, element, value, event="input"):
    """As if it had been typed, or chosen, there."""
    page.evaluate(f"""(() => {{
        const it = {element};
        it.value = {json.dumps(value)};
        it.dispatchEvent(new Event("{event}", {{bubbles: true}}));
    }})()""")


class PageCase(unittest.TestCase):
    PAGE = None  # the file
    TAB = ""  # what the address has behind it, where a test does not say
    chromium = None

    @classmethod
    def setUpClass(cls):
        if PageCase.chromium is None:
            PageCase.chromium = browser.Browser()
            atexit.register(PageCase.chromium.close)

    def open(self, link=None, **options):
        link = self.TAB if link is None else link
        page = self.chromium.open(f"file://{PageCase.PAGE}{link}", **options)
        self.addCleanup(page.close)
        page.wait("typeof page === 'object' && page.tab !== undefined")
        return page

    def assert_quiet(self, page):
        self.assertEqual(page.complaints, [])
        self.assertEqual([each for each in page.requests
                          if not each.startswith(("file:///", "blob:",
                                                  "data:"))], [])

    def csv_of(self, page, place, model):
        """What the command that the page shows there writes."""
        text = page.evaluate(f"document.getElementById('{place}').textContent")
        words = shlex.split(text.replace("\\\n", " "))
        self.assertEqual(words[:3], ["stagger", "sim", model])
        with tempfile.NamedTemporaryFile(mode="r") as file:
            subprocess.run([STAGGER, *words[1:], "--csv", file.name],
                           stdout=subprocess.DEVNULL, check=True,
                           timeout=browser.PATIENCE)
            return file.read()

    def assert_clean(self, page):
        """For axe-core."""
        if not os.path.exists(AXE):
            if os.environ.get("CI") == "true":
                self.fail("no axe-core: scripts/deps all")
            self.skipTest("no axe-core: scripts/deps all installs it")
        with open(AXE, encoding="utf-8") as file:
            page.evaluate(file.read() + "; 0")
        self.assertEqual(page.evaluate(
            "axe.run().then((run) => run.violations.map((it) => "
            "[it.id, it.impact, it.nodes[0].html]))"), [])


# Texts whose contrast against what is behind them is below 4.5.
FAINT = """(() => {
  const parse = (colour) => colour.match(/[\\d.]+/g).map(Number);
  const shine = ([r, g, b]) => {
    const [x, y, z] = [r, g, b].map((c) => (c /= 255) <= 0.04045 ? c / 12.92
      : ((c + 0.055) / 1.055) ** 2.4);
    return 0.2126 * x + 0.7152 * y + 0.0722 * z;
  };
  const ground = (node) => {
    for (; node; node = node.parentElement) {
      const colour = parse(getComputedStyle(node).backgroundColor);
      if (colour.length === 3 || colour[3] === 1) return colour;
    }
    return [255, 255, 255];
  };
  return [...document.querySelectorAll("body *")].filter((node) =>
    node.checkVisibility() && !node.closest("svg, .stale #totals, select") &&
    !node.disabled &&
    [...node.childNodes].some((c) => c.nodeType === 3 && c.data.trim()) ||
    node.matches("input, textarea")).filter((node) => {
      const [a, b] = [parse(getComputedStyle(node).color), ground(node)]
        .map(shine).sort((x, y) => y - x);
      return (a + 0.05) / (b + 0.05) < 4.5;
    }).map((node) => node.outerHTML.slice(0, 120));
})()"""

# Texts and controls that lie on one another.
OVERLAPS = """(() => {
  const boxes = [...document.querySelectorAll(
    "form label, form output, form input, form select, form textarea, button, " +
    "form p, td, th, h1, h2, figcaption, .note, #storm p")]
    .filter((node) => node.checkVisibility() && !node.closest(".near, #scenarios"))
    .map((node) => [node, node.getBoundingClientRect()]);
  const bad = [];
  boxes.forEach(([a, p], i) => boxes.slice(i + 1).forEach(([b, q]) => {
    if (a.contains(b) || b.contains(a)) return;
    const x = Math.min(p.right, q.right) - Math.max(p.left, q.left);
    const y = Math.min(p.bottom, q.bottom) - Math.max(p.top, q.top);
    if (x > 1 && y > 1)
      bad.push(`${a.outerHTML.slice(0, 60)} on ${b.outerHTML.slice(0, 60)}`);
  }));
  return bad;
})()"""
