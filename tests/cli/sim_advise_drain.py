#!/usr/bin/env python3
"""stagger sim advise --resource: how clients that begin together should retry."""

import json
import os
import pathlib
import shlex
import subprocess
import tempfile
import unittest

STAGGER = os.environ["STAGGER"]
SMALL = ["-n", "200", "-r", "workers=5 service=50ms queue=20", "--reps", "2"]


def run(*words):
    return subprocess.run([STAGGER, *words], text=True, capture_output=True,
                          timeout=300)


def advise(*words):
    return run("sim", "advise", *words)


class AdviseDrain(unittest.TestCase):
    def test_answers_with_a_policy_and_a_spread_that_are_near_the_best(self):
        with tempfile.TemporaryDirectory() as folder:
            at = pathlib.Path(folder)
            found = advise(*SMALL, f"--json={at}/a.json", "--html",
                           at / "a.html", "--svg", at / "svg")
            self.assertEqual(found.returncode, 0, found.stderr)
            rows = json.loads((at / "a.json").read_text())["results"]
            self.assertEqual([path.name for path in (at / "svg").iterdir()],
                             ["advice-frontier.svg"])
            self.assertIn("<svg", (at / "a.html").read_text())
        best = rows[0]
        self.assertIn(f"\n    {best['text']}\n", found.stdout)
        self.assertEqual(run("plan", best["text"]).returncode, 0)
        self.assertIn("Each client succeeds, in all 10 runs (100 to 400 "
                      "clients).\n", found.stdout)
        # 200 calls of 50 ms by five workers.
        self.assertIn("(at best 2 s)", found.stdout)
        self.assertGreaterEqual(best["completion_ms"]["mean"], 2000)
        self.assertLess(best["completion_ms"]["mean"], 3000)
        self.assertEqual(len({row["policy"] for row in rows}), len(rows))

    def test_shows_a_command_that_gives_the_same_numbers(self):
        for more in [], ["--start", "0"], ["--seed", "7"]:
            found = advise(*SMALL, *more)
            line, = [line for line in found.stdout.splitlines()
                     if "stagger sim contention" in line]
            best = json.loads(advise(*SMALL, *more, "--json").stdout)["results"][0]
            shown = run(*shlex.split(line)[1:], "--json")
            self.assertEqual(shown.returncode, 0, shown.stderr)
            result, = json.loads(shown.stdout)["results"]
            self.assertEqual(result["text"], best["text"])
            self.assertEqual(result["completion_ms"], best["completion_ms"])
            self.assertEqual("--start" in line, best["start_ms"] > 0)

    def test_keeps_the_starts_within_what_it_may(self):
        rows = json.loads(advise(*SMALL, "--start", "300ms", "--json").stdout)
        for row in rows["results"]:
            self.assertLessEqual(row["start_ms"], 300)

    def test_does_not_depend_on_the_threads(self):
        one, two = (advise(*SMALL, "--threads", threads).stdout
                    for threads in ("1", "3"))
        self.assertEqual(one, two)

    def test_ends_with_1_where_patience_is_too_short(self):
        found = advise(*SMALL, "--patience", "500ms", "--start", "0")
        self.assertEqual(found.returncode, 1)
        self.assertRegex(found.stdout, r"Not each client succeeds: with the "
                                       r"best of \d+ candidates [\d.]+ % of")

    def test_refuses_options_of_the_other_question(self):
        for words, said in (
                (["-r", "lock", "--outage", "5s"],
                 "--outage is of a service that fails"),
                (["--start", "5s"], "--start needs --resource"),
                (["-r", "lock", "-n", "200000"], "1 to 100000"),
                (["-r", "lock", "--timeout", "0"], "--timeout=0: expected"),
                (["-r", "lok"], "--resource: ")):
            found = advise(*words)
            self.assertEqual(found.returncode, 2)
            self.assertIn(said, found.stderr)
            self.assertEqual(found.stdout, "")


if __name__ == "__main__":
    unittest.main()
