"""The plan of the simulator's page: run by web.py, in the same browser."""
import json
import os
import subprocess

from web_case import FAINT, OVERLAPS, PageCase, SHOTS, STAGGER, put

TEXT = "document.querySelector('#plan textarea')"


class Plan(PageCase):
    TAB = "#plan"

    def by_command(self, text, clients=100):
        return json.loads(subprocess.run(
            [STAGGER, "plan", "--json", "--clients", str(clients), text],
            check=True, text=True, stdout=subprocess.PIPE).stdout)["policies"][0]

    def ours(self, page):
        return page.evaluate(
            "plan.engine.plan(plan.state.text, plan.state.clients)")

    def test_numbers_and_warnings_are_those_of_the_command(self):
        page = self.open()
        for text in ("exponential base=500ms cap=5s attempts=6", "webhook",
                     "fixed base=1s jitter=none attempts=20 deadline=10s",
                     "exponential attempts=unlimited deadline=none",
                     "backend breaker=5 attempts=9 hedge=50ms", "none", "aws"):
            with self.subTest(policy=text):
                put(page, TEXT, text)
                ours, theirs = self.ours(page), self.by_command(text)
                self.assertEqual(
                    [[wait["retry"], wait["least"] / 1e6, wait["mean"] / 1e6,
                      wait["total"]["most"] / 1e6] for wait in ours["waits"]],
                    [[wait["retry"], wait["wait_min_ms"], wait["wait_mean_ms"],
                      wait["total_max_ms"]] for wait in theirs["waits"]])
                self.assertEqual(
                    ours["warnings"],
                    [[each["code"], each["text"], each["fix"]]
                     for each in theirs["warnings"]])
        self.assert_quiet(page)

    def test_says_what_is_wrong_and_keeps_the_last_plan(self):
        page = self.open()
        title = page.evaluate("document.querySelector('#plan-title').innerText")
        self.assertIn("6 attempts at most", title)
        put(page, TEXT, "exponential bse=1s")
        self.assertIn("bse=1s", page.evaluate(
            "document.querySelector('#plan .says').textContent"))
        self.assertEqual(page.evaluate(
            "document.querySelector('#plan-title').innerText"), title)
        page.evaluate("document.querySelectorAll('#plan-presets button')[0]"
                      ".click()")
        self.assertNotEqual(page.evaluate(
            "document.querySelector('#plan-title').innerText"), title)
        self.assert_quiet(page)

    def test_warns_and_mends(self):
        page = self.open()
        put(page, TEXT, "exponential base=1s jitter=none attempts=6")
        said = page.evaluate("[...document.querySelectorAll('#plan-warnings li'"
                             ")].map((it) => it.innerText)")
        self.assertEqual(said, ["100 clients that fail together come back in "
                                "the same moment, every time. jitter=full"])
        page.evaluate("document.querySelector('#plan .fix').click()")
        self.assertEqual(page.evaluate("plan.state.text"),
                         "exponential base=1s jitter=full attempts=6")
        self.assertEqual(page.evaluate(
            "document.querySelectorAll('#plan-warnings li').length"), 0)

    def test_a_link_has_the_policy(self):
        page = self.open()
        put(page, TEXT, "fixed base=2s attempts=3")
        link = page.evaluate("page.link()").split("#")[1]
        other = self.open("#" + link)
        self.assertEqual(other.evaluate("plan.state"),
                         page.evaluate("plan.state"))

    def test_reads_well_at_any_width_light_and_dark(self):
        for width, dark in (375, True), (1280, False):
            page = self.open(width=width, dark=dark)
            put(page, TEXT, "exponential base=1s jitter=none attempts=9")
            with self.subTest(width=width):
                self.assertLessEqual(page.evaluate(
                    "document.documentElement.scrollWidth"), width)
                self.assertEqual(page.evaluate(OVERLAPS), [])
                self.assertEqual(page.evaluate(FAINT), [])
                page.screenshot(os.path.join(SHOTS, f"plan-{width}.png"))
                self.assert_clean(page)
