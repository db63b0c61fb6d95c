"""The advice of the simulator's page: run by web.py, in the same browser."""
import os
import shlex
import subprocess

from web_case import FAINT, OVERLAPS, PageCase, SHOTS, STAGGER

# A question that is soon answered.
SMALL = ("advise.take({clients: 20, processes: 2, capacity: 40, outage: 5e9, "
         "patience: 3e9})")
DONE = "/^Found/.test(document.getElementById('advise-status').textContent)"


class Advise(PageCase):
    TAB = "#advise"

    def test_says_what_the_command_says(self):
        page = self.open()
        page.evaluate(SMALL)
        command = shlex.split(page.evaluate(
            "document.getElementById('advise-command').textContent").replace(
                "\\\n", " "))
        said = subprocess.run([STAGGER, *command[1:]], check=True, text=True,
                              stdout=subprocess.PIPE).stdout
        page.evaluate("document.getElementById('advise-ask').click()")
        page.wait("document.getElementById('advise-share').value > 0.1")
        page.wait(DONE)
        policy = page.evaluate(
            "document.getElementById('advise-policy').textContent")
        self.assertIn(f"\n    {policy}\n", said)
        lines = page.evaluate("[...document.querySelectorAll('#advise-said p')]"
                              ".map((it) => it.textContent)")
        self.assertGreater(len(lines), 5)
        self.assertIn("\n".join(lines), said)
        names = page.evaluate("[...document.querySelectorAll('#advise-table "
                              "tbody th')].map((it) => it.textContent)")
        table = said[said.index("\npolicy  "):].splitlines()[2:]
        self.assertEqual([line.split("  ")[0] for line in table], names)
        self.check_looks(page)
        page.evaluate("document.getElementById('advise-plan').click()")
        self.assertEqual(page.evaluate("[page.tab, plan.state.text]"),
                         ["plan", policy])
        self.assert_quiet(page)

    def check_looks(self, page):
        for width in 375, 1280:
            page.resize(width, 900)
            self.assertLessEqual(page.evaluate(
                "document.documentElement.scrollWidth"), width)
            self.assertEqual(page.evaluate(OVERLAPS), [])
            self.assertEqual(page.evaluate(FAINT), [])
            page.screenshot(os.path.join(SHOTS, f"advise-{width}.png"))
        self.assert_clean(page)

    def test_is_stopped(self):
        page = self.open()
        page.evaluate("document.getElementById('advise-ask').click()")
        page.wait("document.getElementById('advise-share').value > 0")
        page.evaluate("document.getElementById('advise-ask').click()")
        self.assertEqual(page.evaluate(
            "[advise.computer.isBusy, document.getElementById('advise-status')"
            ".textContent]"), [False, "Stopped."])
        page.evaluate("advise.take({clients: 2, processes: 3})")
        page.evaluate("document.getElementById('advise-ask').click()")
        self.assertIn("processes=3", page.wait(
            "!document.getElementById('advise-refused').hidden && "
            "document.getElementById('advise-refused').textContent"))
        self.assert_quiet(page)

    def test_a_link_has_the_question(self):
        page = self.open()
        page.evaluate(SMALL)
        other = self.open("#" + page.evaluate("page.link()").split("#")[1])
        self.assertEqual(other.evaluate("advise.state"),
                         page.evaluate("advise.state"))
