#!/usr/bin/env python3
"""The simulator's page in headless Chromium, from a file.

usage: web.py PAGE [TEST...]

Numbers are those of the command; whatever is moved shows at once; what is wrong
is said in core's own words; nothing goes out. STAGGER_SHOTS is a folder that
keeps the screenshots. This file has what is about contention and about the whole
page; web_storm.py, web_advise.py and web_plan.py have the other tabs.
"""
import base64
import csv
import json
import os
import re
import subprocess
import sys
import unittest

import browser

from web_case import (FAINT, OVERLAPS, PageCase, SHOTS, STAGGER, by_label,
                      put)
from web_advise import Advise  # tests that run with these, in the same browser
from web_plan import Plan
from web_storm import Storm

assert Advise and Plan and Storm

DONE = "document.getElementById('results').dataset.done"


class Web(PageCase):
    maxDiff = None
    TAB = "#contention"

    def settle(self, page):
        """Until all repetitions of what is asked for have been shown."""
        page.wait(f"{DONE} === String(contention.computer.id) && "
                  "!contention.isAsking")

    def by_command(self, page):
        return self.csv_of(page, "command", "contention")

    def assert_same(self, page):
        """The page's numbers are the command's, byte by byte; and what it shows
        is made of them."""
        self.settle(page)
        written = page.evaluate("contention.csv")
        self.assertEqual(written, self.by_command(page))
        shown = page.evaluate("""[...document.querySelectorAll(
            '#totals tbody tr')].map((row) => [row.cells[0], row.cells[1]].map(
            (cell) => cell.textContent.trim().split(' ')[0]))""")
        rows = list(csv.DictReader(written.splitlines()))
        self.assertEqual([row["policy"] for row in rows],
                         [name for name, _ in shown])
        for row, (_, calls) in zip(rows, shown):
            self.assertAlmostEqual(float(calls.replace(",", "")),
                                   float(row["calls"]), delta=0.5)

    # -- it works, from a file, by itself

    def test_loads_from_a_file_and_asks_for_nothing(self):
        page = self.open()
        self.settle(page)
        self.assert_quiet(page)
        self.assertEqual(page.evaluate(
            "document.querySelectorAll('#totals tbody tr').length"), 5)
        self.assertGreaterEqual(page.evaluate(
            "document.querySelectorAll('#charts svg').length"), 4)
        with open(self.PAGE, encoding="utf-8") as file:
            text = re.sub(r"http://www\.w3\.org/2000/svg", "", file.read())
        self.assertEqual(re.findall(r"https?://\S*", text), [])

    def test_may_not_fetch_anything(self):
        page = self.open()
        self.settle(page)
        self.assertEqual(page.evaluate(
            "fetch('https://stagger.example/').then(() => 'went', () => 'no')"),
            "no")
        self.assertEqual(page.evaluate(
            "fetch(location.href).then(() => 'went', () => 'no')"), "no")
        self.assertFalse([each for each in page.requests
                          if each.startswith("http")])

    def test_works_without_a_worker(self):
        page = self.open(script="delete window.Worker")
        self.assert_same(page)
        self.assert_quiet(page)

    # -- the numbers

    def test_totals_are_those_of_the_command(self):
        page = self.open()
        self.assert_same(page)
        self.assert_quiet(page)

    def test_each_resource_has_the_totals_of_the_command(self):
        page = self.open()
        put(page, by_label("clients"), "37")
        put(page, by_label("seed"), "4294967295")
        put(page, by_label("repetitions"), "7")
        for kind in page.evaluate("Object.keys(RESOURCES)"):
            with self.subTest(resource=kind):
                put(page, "document.getElementById('resource-kind')", kind,
                    "change")
                for slider in range(page.evaluate(
                        "document.querySelectorAll('#resource [type=range]')"
                        ".length")):
                    element = ("document.querySelectorAll("
                               f"'#resource [type=range]')[{slider}]")
                    put(page, element, page.evaluate(
                        f"String(Number({element}.value) + 1)"))
                self.assert_same(page)
        page.evaluate("document.querySelector('#resource-kind').value")
        self.assert_quiet(page)

    def test_presets_have_the_totals_of_the_command(self):
        page = self.open()
        while page.evaluate("contention.state.policies.length"):
            page.evaluate("document.querySelector('.remove').click()")
        for name in "none", "backend", "aws", "webhook":
            put(page, "document.getElementById('new-policy')",
                f"preset {name}", "change")
            page.evaluate("document.getElementById('add-policy').click()")
        self.assert_same(page)
        self.assert_quiet(page)

    def test_the_same_seed_draws_the_same_bytes(self):
        drawn = "[...document.querySelectorAll('#charts svg')].map((svg) => " \
                "svg.outerHTML).join('')"
        pages = [self.open(), self.open()]
        for page in pages:
            self.settle(page)
        first, second = [page.evaluate(drawn) for page in pages]
        self.assertEqual(first, second)
        pages[0].command("Page.bringToFront")  # the others draw nothing
        put(pages[0], by_label("seed"), "2")
        self.settle(pages[0])
        self.assertNotEqual(pages[0].evaluate(drawn), second)

    # -- moving things

    def test_redraws_while_a_slider_is_dragged(self):
        page = self.open()
        put(page, by_label("repetitions"), "3")
        self.settle(page)
        slider = "document.querySelector('#clients [type=range]')"
        box = page.evaluate(
            f"(({{x, y, width, height}}) => [x, y, width, height])"
            f"({slider}.getBoundingClientRect())")
        x, y = box[0] + box[2] * 0.52, box[1] + box[3] / 2
        seen = set()
        page.mouse("mousePressed", x, y, buttons=1)
        for step in range(5):
            page.mouse("mouseMoved", x + step * 12, y, buttons=1)
            self.settle(page)
            seen.add(page.evaluate("document.querySelector('#totals tbody')"
                                   ".textContent + document.querySelector("
                                   "'#charts svg').outerHTML"))
        page.mouse("mouseReleased", x + 48, y)
        self.assertGreaterEqual(len(seen), 4)
        self.assert_same(page)
        self.assert_quiet(page)

    def test_is_the_readers_also_while_it_computes(self):
        page = self.open()
        self.settle(page)
        before = page.evaluate(DONE)
        # Minutes of work, which nobody waits for.
        put(page, by_label("repetitions"), "1000")
        put(page, by_label("clients"), "10000")
        page.wait("contention.computer.isBusy && !contention.isAsking")
        self.assertEqual(page.evaluate(
            "new Promise((go) => requestAnimationFrame(() => go(7)))"), 7)
        self.assertIn(page.evaluate(DONE), (before, ""))
        put(page, by_label("clients"), "10")
        put(page, by_label("repetitions"), "2")
        self.assert_same(page)
        self.assert_quiet(page)

    def test_shows_a_part_of_a_long_run(self):
        page = self.open()
        put(page, by_label("repetitions"), "1000")
        put(page, by_label("clients"), "1000")
        page.wait("/^[0-9]+ of 1000 /.test("
                  "document.getElementById('status').textContent) && "
                  "contention.sums[0].repetitions < 1000 && "
                  "contention.sums[0].calls > 1000")
        self.assert_quiet(page)

    def test_sliders_write_the_policy(self):
        page = self.open()
        card = "document.querySelectorAll('.card')[3]"
        text = f"{card}.querySelector('textarea').value"
        page.evaluate(f"{card}.querySelector('details').open = true")
        sliders = f"{card}.querySelectorAll('[type=range]')"
        put(page, f"{sliders}[0]", "14")
        self.assertRegex(page.evaluate(text), r"^exponential base=\S+ cap=2s "
                         "jitter=full attempts=unlimited deadline=none$")
        self.assertNotIn("base=10ms", page.evaluate(text))
        put(page, f"{sliders}[3]", "4")
        self.assertIn("attempts=5 ", page.evaluate(text))
        put(page, f"{card}.querySelector('select')", "equal", "change")
        self.assertIn("jitter=equal", page.evaluate(text))
        self.assert_same(page)
        self.assert_quiet(page)

    def test_policies_come_and_go(self):
        page = self.open()
        page.evaluate("document.querySelector('.remove').click()")
        self.settle(page)
        rows = "[...document.querySelectorAll('#totals tbody th')].map(" \
               "(th) => th.textContent.trim())"
        self.assertEqual(page.evaluate(rows), [
            "exponential", "equal", "full", "decorrelated"])
        for _ in range(4):
            page.evaluate("document.getElementById('add-policy').click()")
        self.assertTrue(page.evaluate(
            "document.getElementById('add-policy').disabled"))
        self.settle(page)
        self.assertEqual(page.evaluate(rows)[4:], [
            "full-2", "full-3", "full-4", "full-5"])
        while page.evaluate("contention.cards.length"):
            page.evaluate("document.querySelector('.remove').click()")
        page.wait("!document.getElementById('refused').hidden")
        self.assert_quiet(page)

    # -- what is wrong

    def test_says_what_core_says_of_a_wrong_policy(self):
        page = self.open()
        self.settle(page)
        area = "document.querySelectorAll('.card textarea')[1]"
        said = "document.querySelectorAll('.card .says')[1].textContent"
        for wrong in ("exponential bse=10ms", "exponential base=5m cap=2s",
                      "jitter=most", "fixed base=1s retry=599x", ""):
            with self.subTest(policy=wrong):
                put(page, area, wrong)
                plan = subprocess.run(
                    [STAGGER, "plan", wrong], text=True, check=False,
                    stderr=subprocess.PIPE, stdout=subprocess.PIPE)
                if plan.returncode == 0:
                    continue
                words = plan.stderr.split("\n")[0]
                self.assertEqual("stagger plan: " + page.evaluate(said), words)
                self.assertEqual(page.evaluate(
                    f"{area}.getAttribute('aria-invalid')"), "true")
                page.wait("!document.getElementById('refused').hidden")
        put(page, area, "backend")
        page.wait("document.getElementById('refused').hidden")
        self.assert_same(page)
        self.assert_quiet(page)

    def test_a_number_out_of_range_changes_nothing(self):
        page = self.open()
        self.settle(page)
        before = page.evaluate("contention.state.clients")
        for wrong in "0", "10001", "1.5", "":
            put(page, by_label("clients"), wrong)
            self.assertEqual(page.evaluate("contention.state.clients"), before)
            self.assertEqual(page.evaluate(
                by_label("clients") + ".getAttribute('aria-invalid')"), "true")
        put(page, by_label("clients"), "99")
        self.assert_same(page)

    def test_a_page_in_the_background_is_computed(self):
        page = self.open()
        self.open()
        self.assertTrue(page.evaluate("document.hidden"))
        put(page, by_label("clients"), "42")
        self.assert_same(page)

    # -- links

    def test_a_link_has_all_of_it(self):
        page = self.open()
        put(page, by_label("clients"), "42")
        put(page, "document.querySelectorAll('.card textarea')[2]",
            "linear base=30ms cap=3s jitter=equal")
        put(page, "document.getElementById('resource-kind')", "rate", "change")
        link = page.evaluate("page.link()")
        self.assertLess(len(link.split("#")[1]), 200)
        other = self.open("#" + link.split("#")[1])
        self.settle(page)
        self.settle(other)
        self.assertEqual(other.evaluate("contention.state"),
                         page.evaluate("contention.state"))
        self.assertEqual(other.evaluate("contention.csv"),
                         page.evaluate("contention.csv"))
        self.assert_quiet(other)

    def test_a_link_of_nonsense_is_harmless(self):
        said = {"clients": "many", "seed": 3, "resource": {"kind": "magic"},
                "policies": [{"name": "<b>x</b>", "text": "<img src=x>"}]}
        code = base64.urlsafe_b64encode(json.dumps(said).encode()).decode()
        page = self.open("#contention=" + code.rstrip("="))
        page.wait("!document.getElementById('refused').hidden")
        self.assertEqual(page.evaluate("contention.state.clients"), 100)
        self.assertEqual(page.evaluate("contention.state.seed"), 3)
        self.assertIsNone(page.evaluate("document.querySelector('img')"))
        self.assert_quiet(page)
        for code in "%7b", "bnVsbA", "W10", "!":
            self.settle(self.open(f"#contention={code}"))
        self.open("#nothing").wait("page.tab === 'storm'")

    # -- for everybody

    def test_works_by_keys_alone(self):
        page = self.open()
        self.settle(page)
        before = page.evaluate("contention.state.clients")
        focus = "document.activeElement"
        for _ in range(10):
            page.key("Tab")
            if page.evaluate(f"{focus} === document.querySelector("
                             "'#clients [type=range]')"):
                break
        page.key("ArrowRight", times=3)
        self.assertGreater(page.evaluate("contention.state.clients"), before)
        self.assert_same(page)
        seen = set()
        for _ in range(60):
            page.key("Tab")
            seen.add(page.evaluate(
                f"{focus}.id || {focus}.className || {focus}.tagName"))
        for name in ("add-policy", "resource-kind", "copy-command", "remove",
                     "scroll", "reset"):
            self.assertIn(name, seen)

    def test_all_that_can_be_used_has_a_name(self):
        page = self.open()
        page.evaluate("document.querySelectorAll('details').forEach("
                      "(each) => { each.open = true; })")
        self.settle(page)
        nodes = page.command("Accessibility.getFullAXTree")["nodes"]
        roles = {"slider", "textbox", "spinbutton", "combobox", "button",
                 "checkbox", "image", "table", "region", "form"}
        used = [node for node in nodes if not node["ignored"] and
                node.get("role", {}).get("value") in roles]
        self.assertGreater(len(used), 40)
        nameless = [node["role"]["value"] for node in used
                    if not node.get("name", {}).get("value")]
        self.assertEqual(nameless, [])
        self.assertEqual(page.evaluate(
            "[...document.querySelectorAll('.card')].map((card) => "
            "card.getAttribute('aria-label'))")[1:3],
            ["Policy exponential", "Policy equal"])

    def test_has_nothing_serious_for_axe(self):
        for dark, width in (False, 1300), (True, 390):
            page = self.open(dark=dark, width=width)
            # Two policies have all that five have, and axe reads every mark.
            page.evaluate("contention.put({...usual(), clients: 20, "
                          "policies: usual().policies.slice(2, 4)})")
            self.settle(page)
            page.evaluate("document.querySelectorAll('details').forEach("
                          "(each) => { each.open = true; })")
            self.assert_clean(page)

    def test_texts_stand_out(self):
        """A contrast of 4.5 for texts, as WCAG 2.2, 1.4.3 has it."""
        for dark in False, True:
            page = self.open(dark=dark)
            put(page, "document.querySelector('.card textarea')", "oops")
            page.evaluate("document.querySelectorAll('details').forEach("
                          "(each) => { each.open = true; })")
            page.wait("!document.getElementById('refused').hidden")
            self.assertEqual(page.evaluate(FAINT), [], f"dark: {dark}")

    def test_fits_narrow_and_wide(self):
        for name, width, dark in (
                ("wide", 1400, False), ("wide-dark", 1400, True),
                ("middle", 900, False), ("narrow", 360, False),
                ("narrow-dark", 360, True)):
            page = self.open(width=width, dark=dark)
            self.settle(page)
            page.screenshot(os.path.join(SHOTS, f"web-{name}.png"))
            self.assertLessEqual(
                page.evaluate("document.documentElement.scrollWidth"), width)
            self.assertEqual(page.evaluate(OVERLAPS), [], name)
            self.assert_quiet(page)

    def test_memory_is_used_again(self):
        page = self.open()
        put(page, by_label("clients"), "300")
        put(page, by_label("repetitions"), "2")
        self.settle(page)
        grown = page.evaluate("""(() => {
            const engine = new Engine(contention.computer.module);
            const sizes = [];
            for (let i = 0; i < 8; i++) {
                engine.begin(contention.run);
                for (let k = 0; k < contention.run.policies.length; k++)
                    while (engine.repeat(k));
                engine.charts(900);
                sizes.push(engine.c.memory.buffer.byteLength);
            }
            return sizes.at(-1) - sizes[1];
        })()""")
        self.assertEqual(grown, 0)


def main(arguments):
    if len(arguments) < 2:
        sys.exit(__doc__)
    browser.skip_without()
    PageCase.PAGE = os.path.abspath(arguments.pop(1))
    print(f"screenshots: {SHOTS}")
    unittest.main(argv=arguments)


if __name__ == "__main__":
    main(sys.argv)
