#!/usr/bin/env python3
"""stagger sim advise: an answer to paste, why, and what the others cost."""

import functools
import json
import os
import pathlib
import shlex
import signal
import subprocess
import tempfile
import unittest

STAGGER = os.environ["STAGGER"]
# Two processes of ten clients, and a service that is quickly simulated.
SMALL = ["--clients", "20", "--processes", "2", "--capacity", "40",
         "--outage", "5s", "--patience", "3s", "--reps", "2"]


def run(*words):
    return subprocess.run([STAGGER, *words], text=True, capture_output=True,
                          timeout=300)


@functools.cache
def small():
    """The answer to SMALL, asked once: what was printed, and its files by name."""
    with tempfile.TemporaryDirectory() as folder:
        at = pathlib.Path(folder)
        found = run("sim", "advise", *SMALL, f"--json={at}/a.json",
                    "--html", at / "a.html", "--svg", at / "svg",
                    "--csv", at / "a.csv", "--threads", "2")
        return found, {str(path.relative_to(at)): path.read_text()
                       for path in at.rglob("*.*") if path.is_file()}


class Advise(unittest.TestCase):
    def test_answers_with_a_text_to_paste_and_what_the_others_cost(self):
        found, files = small()
        self.assertEqual(found.returncode, 0, found.stderr)
        rows = json.loads(files["a.json"])["results"]
        pictures = [name.removeprefix("svg/") for name in files
                    if name.startswith("svg/")]
        page = files["a.html"]
        best = rows[0]
        self.assertIn(f"\n    {best['text']}\n", found.stdout)
        self.assertEqual(sorted(pictures),
                         ["advice-frontier.svg", "overload-rates.svg"])
        self.assertIn("<svg", page)
        self.assertEqual(best["not_recovered"], 0)
        self.assertEqual(run("plan", best["text"]).returncode, 0)
        # It stands a storm that retries without a budget do not.
        bare = next(row for row in rows if row["policy"] == "no budget")
        self.assertGreater(bare["not_recovered"], 0)
        self.assertIn("With no budget", found.stdout)
        for row in rows[1:]:
            self.assertGreaterEqual(
                (row["not_recovered"], row["lost_percent"]),
                (0, best["lost_percent"]))

    def test_names_no_policy_twice(self):
        # Of ten thousand processes none may have a retry a second: budgets of
        # several sizes are one.
        found = run("sim", "advise", "--clients", "10000", "--capacity", "2",
                    "--outage", "5s", "--reps", "2", "--json")
        for text in small()[1]["a.json"], found.stdout:
            rows = json.loads(text)["results"]
            self.assertGreater(len(rows), 3)
            for key in "policy", "text":
                values = [row[key] for row in rows]
                self.assertEqual(len(values), len(set(values)))

    def test_shows_a_command_that_gives_the_same_numbers(self):
        found, files = small()
        line = next(line for line in found.stdout.splitlines()
                    if "stagger sim overload" in line)
        rows = json.loads(files["a.json"])
        shown = run(*shlex.split(line)[1:], "--json")
        self.assertEqual(shown.returncode, 0, shown.stderr)
        result, = json.loads(shown.stdout)["results"]
        best = rows["results"][0]
        self.assertEqual(result["text"], best["text"])
        self.assertEqual(result["recovered"], 2)
        self.assertEqual(result["recovery_ms"]["mean"],
                         best["recovery_outage_ms"])

    def test_says_where_no_policy_helps(self):
        # Clients that leave before the service can answer.
        found = run("sim", "advise", "--clients", "20", "--capacity", "20",
                    "--patience", "60ms", "--service", "50ms", "--outage",
                    "2s", "--reps", "2")
        self.assertEqual(found.returncode, 1, found.stderr)
        self.assertIn("not well even before the trouble, in 28 of 28 runs",
                      found.stdout)

    def test_gives_the_same_bytes_for_the_same_seed(self):
        first = run("sim", "advise", *SMALL, "--json", "--threads", "1")
        self.assertEqual(first.stdout, small()[1]["a.json"])

    def test_advises_nothing_when_it_is_interrupted(self):
        # An early round, and mostly a late one.
        for seconds in 0.5, 1.5:
            with self.subTest(seconds=seconds):
                self.interrupt(seconds)

    def interrupt(self, seconds):
        with subprocess.Popen(
                [STAGGER, "sim", "advise", "--capacity", "2000", "--reps", "5",
                 "--outage", "5m", "--threads", "1"], text=True,
                stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
            try:
                process.wait(seconds)
            except subprocess.TimeoutExpired:
                process.send_signal(signal.SIGINT)
            out, err = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 130)
        self.assertIn("interrupted", err)
        self.assertIn("Interrupted: nothing is advised", out)
        self.assertIn("no retries", out)
        self.assertNotRegex(out, "never|at once|recovers|best")

    def test_refuses_what_is_wrong_and_says_the_range(self):
        for words, expected in [
                (["--clients", "0"], "expected 1 to 10000000"),
                (["--processes", "6000"], "as many as there are clients"),
                (["--capacity", "much"], "1 to 4000000 requests a second"),
                (["--capacity", "0.5"], "1 to 4000000 requests a second"),
                (["--load", "70"], "expected 1% to 95%"),
                (["--load", "96%"], "1% to 95%"),
                (["--load", "100%"], "load=100% is out of range"),
                (["--clients", "1000000000000"], "expected 1 to 10000000"),
                (["--outage", "0"], "100ms to 1h"),
                (["--html", ""], "expected a path"),
                (["--outage", "soon"], "expected a time"),
                (["--patience", "2h"], "10ms to 1h"),
                (["--service", "20s"], "less than the patience"),
                (["--reps", "1"], "expected 2 to 100"),
                (["one"], "unexpected argument one"),
        ]:
            with self.subTest(words=words):
                found = run("sim", "advise", *words)
                self.assertEqual(found.returncode, 2, found.stderr)
                self.assertIn(expected, found.stderr)


if __name__ == "__main__":
    unittest.main()
