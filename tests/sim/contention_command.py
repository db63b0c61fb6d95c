#!/usr/bin/env python3
"""stagger sim contention, as its users see it.

usage: contention_command.py [TEST...]
"""
import csv
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import unittest

STAGGER = os.environ["STAGGER"]
USUAL = ["none", "exponential", "equal", "full", "decorrelated"]
ESTIMATES = ["calls", "wasted", "successes", "given_up", "completion_ms",
             "peak_100ms"]


def sim(*arguments, **options):
    return subprocess.run([STAGGER, "sim", *arguments], text=True, timeout=300,
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, **options)


def results(*arguments):
    found = sim("contention", "--json", *arguments)
    assert found.returncode == 0, found.stderr
    return json.loads(found.stdout)["results"]


class Contention(unittest.TestCase):

    def test_runs_the_experiment_without_options(self):
        found = results("--reps", "2")
        self.assertEqual([(cell["clients"], cell["policy"]) for cell in found],
                         [(n, name) for n in range(10, 191, 10)
                          for name in USUAL])
        for cell in found:
            self.assertEqual((cell["reps"], cell["seed"], cell["cut"]),
                             (2, 1, 0))
            self.assertEqual(cell["successes"], {"mean": cell["clients"],
                                                 "se": 0})
            for name in ESTIMATES:
                self.assertEqual(set(cell[name]), {"mean", "se"})

    def test_gives_the_same_with_any_number_of_threads(self):
        arguments = ["contention", "-n", "7,40..60/20", "--reps", "9", "--json"]
        texts = {sim(*arguments, "--threads", n).stdout for n in "123"}
        self.assertEqual(len(texts), 1)

    def test_spreads_the_starts(self):
        options = ["-n", "1000", "-r", "workers=10 service=10ms queue=20",
                   "-p", "client attempts=20 deadline=none", "--reps", "4"]
        once, spread = (results(*options, *more)[0]
                        for more in ([], ["--start", "10s"]))
        # A thousand jobs are a second's work; over ten they hardly meet.
        self.assertGreater(once["wasted"]["mean"], 500)
        self.assertLess(spread["wasted"]["mean"],
                        once["wasted"]["mean"] / 20)
        self.assertLess(spread["peak_100ms"]["mean"], 60)
        self.assertAlmostEqual(spread["completion_ms"]["mean"], 10000,
                               delta=500)
        self.assertEqual(results(*options, "--start", "0"),
                         results(*options))
        for wrong in ("x", "-1s", "400d"):
            found = sim("contention", "--start", wrong)
            self.assertEqual(found.returncode, 2)
            self.assertIn("--start", found.stderr)

    def test_sweeps_settings_of_the_policy_and_of_the_model(self):
        base = ["-n", "60", "--reps", "4", "-p", "client"]
        found = results(*base, "-r", "workers=2 queue=9", "--sweep",
                        "workers=2..6/2", "--sweep", "base=50ms,1s")
        self.assertEqual([cell["policy"] for cell in found],
                         [f"workers={workers} base={wait}" for workers in
                          (2, 4, 6) for wait in ("50ms", "1s")])
        self.assertIn("base=1s", found[1]["text"])
        # Each is what it would be alone.
        alone, = results("-n", "60", "--reps", "4", "-p", "client base=1s",
                         "-r", "workers=6 queue=9")
        self.assertEqual(found[5]["calls"], alone["calls"])
        for sweep in ("start=0,1s", "network=1ms,uniform:5ms:9ms",
                      "resource=lock;workers=2 queue=1", "fault=503,429"):
            found = results(*base, "-r", "lock", "--sweep", sweep)
            self.assertEqual(len(found), 2)
            self.assertNotEqual(found[0]["policy"], found[1]["policy"])
        many = results(*base, "-p", "backend", "--sweep", "start=0,1s")
        self.assertEqual([cell["policy"] for cell in many],
                         ["client start=0", "client start=1s",
                          "backend start=0", "backend start=1s"])

    def test_has_calls_and_successes_over_time(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder)
            found = sim("contention", "-n", "20,50", "--reps", "3", "-p",
                        "backend attempts=unlimited deadline=none", "-p",
                        "client attempts=unlimited deadline=none",
                        f"--json={path / 'x.json'}", "--series",
                        path / "x.csv")
            self.assertEqual(found.returncode, 0, found.stderr)
            with open(path / "x.csv", encoding="ascii") as file:
                rows = list(csv.DictReader(file))
            both = json.loads((path / "x.json").read_text())
        self.assertEqual(len(both["series"]), 4)
        for cell, series in zip(both["results"], both["series"]):
            self.assertEqual(cell["policy"], series["policy"])
            self.assertEqual(cell["clients"], series["clients"])
            self.assertLessEqual(len(series["calls"]), 200)
            for name in "calls", "successes":
                self.assertAlmostEqual(sum(series[name]),
                                       cell[name]["mean"], delta=0.01)
                self.assertEqual(
                    [round(float(row[name]), 3) for row in rows
                     if row["policy"] == cell["policy"]
                     and int(row["clients"]) == cell["clients"]],
                    [round(value, 3) for value in series[name]])
            # The last success is in the last bin or before it.
            self.assertLessEqual(cell["client_ms"]["max"],
                                 series["bin_ms"] * len(series["calls"]))

    def test_gives_another_answer_with_another_seed(self):
        one, two = (results("-n", "20", "-p", "client", "--seed", seed)
                    for seed in ("1", "2"))
        self.assertNotEqual(one[0]["calls"], two[0]["calls"])

    def test_takes_policies_by_preset_text_and_name(self):
        found = results("-n", "3", "--reps", "1", "-p", "backend", "-p",
                        "jitter=full attempts=9", "-p", "mine=fixed base=1s")
        self.assertEqual([cell["policy"] for cell in found],
                         ["backend", "jitter=full attempts=9", "mine"])
        self.assertTrue(found[2]["text"].startswith("fixed base=1s "))

    def test_knows_every_resource(self):
        for resource in ("optimistic", "lock hold=5ms", "rate=10/1s",
                         "rate=10/1s retry-after=yes fault=503",
                         "workers=2 service=exponential:20ms queue=3",
                         "workers=2 queue=unlimited", "round=40ms"):
            cell, = results("-n", "20", "--reps", "3", "-r", resource, "-p",
                            "client attempts=unlimited deadline=none")
            self.assertEqual(cell["successes"]["mean"], 20, resource)

    def test_shows_a_table_and_writes_the_files(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder)
            found = sim("contention", "-n", "10", "--reps", "2",
                        f"--json={path / 'x.json'}", "--csv", path / "x.csv")
            self.assertEqual(found.returncode, 0)
            self.assertIn("decorrelated", found.stdout)
            with open(path / "x.csv", encoding="ascii") as file:
                rows = list(csv.DictReader(file))
            cells = json.loads((path / "x.json").read_text())["results"]
        self.assertEqual([row["policy"] for row in rows], USUAL)
        self.assertEqual([float(row["calls"]) for row in rows],
                         [cell["calls"]["mean"] for cell in cells])

    def test_the_page_is_small_and_shows_the_calls_of_clients_first(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "x.html"
            self.assertEqual(sim("contention", "--html",
                                 path).returncode, 0)
            text = path.read_text(encoding="utf-8")
            # With a resource whose capacity is known it is drawn.
            sim("contention", "-n", "50", "--reps", "2", "-r", "workers=4",
                "-p", "client", "--html", path)
            self.assertIn(">capacity<", path.read_text(encoding="utf-8"))
        self.assertLess(len(text.encode()), 300000)
        first, second = text.split("<section>")[1:3]
        self.assertIn("One repetition, call by call", first)
        self.assertIn("time (s, square root)", first)
        self.assertEqual(text.count("<h1>"), 1)
        for name in USUAL:
            self.assertIn(f"<div><dt>{name}</dt>", text)
        # Equal and full make as many calls: one line has gaps.
        self.assertIn('class="l k ', second)

    def test_refuses_what_is_wrong_and_says_the_range(self):
        for arguments, words in (
                (["-n", "0"], "1 to 100000000"),
                (["-n", "10..5"], "10..190/10"),
                (["-n", "1000000000000"], "1 to 100000000"),
                (["-n", "nan"], "1 to 100000000"),
                (["--svg", "/dev/null"], "folder"),
                (["--json="], "expected a path"),
                (["-n", "1..2000"], "1000 of them"),
                (["-n", ""], "10..190/10"),
                (["-p", "nobody"], "nobody"),
                (["-p", "a=client", "-p", "a=backend"], "two are called a"),
                (["-p", "x=jitter=none cap"], "cap"),
                (["-p", "hedge=50ms"], "stagger sim overload"),
                (["-p", "x=hedge=p95"], "hedge=none"),
                (["-r", "lock"], None),
                (["-r", "look"], "optimistic, lock"),
                (["-r", "rate=0/1s"], "1 to 1000000"),
                (["-r", "workers=1 hold=3ms"], "hold=3ms"),
                (["-r", "optimistic fault=200"], "300 to 599"),
                (["--network", "normal:1ms"], "normal:10ms:2ms"),
                (["--sweep", "basee=1s"], "did you mean base?"),
                (["--sweep", "networkk=1s"], "did you mean network?"),
                (["--sweep", "workers=3"], "not of the resource optimistic"),
                (["--sweep", "zzz=3"], "no option of the model"),
                (["--sweep", "clients=3,4"], "--clients LIST"),
                (["--sweep", "start=x"], "expected a time"),
                (["--sweep", "hedge=50ms"], "stagger sim overload"),
                (["--sweep", "base=1ms..10ms/1ms"], "50 combinations"),
                (["--series", "/none/x"], "cannot write"),
                (["--reps", "0"], "1 to 1000000"),
                (["--seed", "-1"], "0 to 4294967295"),
                (["--until", "0"], "365d"),
                (["--threads", "0"], "1 to 1024"),
                (["--csv", "/nowhere/x.csv", "-n", "1"], "/nowhere/x.csv"),
                (["more"], "more")):
            found = sim("contention", "-n", "2", "--reps", "1", *arguments)
            if words is None:
                self.assertEqual(found.returncode, 0, found.stderr)
            else:
                self.assertEqual(found.returncode, 2, arguments)
                self.assertIn(words, found.stderr)
                self.assertNotIn("successes", found.stdout)

    def test_refuses_what_does_not_fit_memory_before_it_starts(self):
        if subprocess.run([STAGGER, "--version"], stdout=subprocess.DEVNULL,
                          stderr=subprocess.DEVNULL, timeout=300,
                          preexec_fn=limit_memory).returncode:
            self.skipTest("it takes more memory by itself: a sanitizer")
        found = sim("contention", "-n", "100000000", "--reps", "1",
                    preexec_fn=limit_memory)
        self.assertEqual(found.returncode, 2)
        self.assertIn("MiB of memory", found.stderr)
        self.assertEqual(found.stdout, "")

    def test_refuses_a_second_word_that_is_none(self):
        for words in ((), ("contentoin",), ("xylophone",)):
            found = sim(*words)
            self.assertEqual(found.returncode, 2)
            self.assertIn("stagger sim --help", found.stderr)
        self.assertIn("contention", sim("contentoin").stderr)

    def test_interrupted_prints_what_it_has(self):
        # The first cell of the output ends at once, and the other never.
        with subprocess.Popen(
                [STAGGER, "sim", "contention", "-n", "10,20000", "--reps",
                 "100", "--json", "--threads", "2", "-p",
                 "fixed base=1s jitter=full attempts=unlimited deadline=none"],
                stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                text=True) as child:
            while not catches(child.pid, signal.SIGINT):
                self.assertIsNone(child.poll())
            child.send_signal(signal.SIGINT)
            out, err = child.communicate(timeout=300)
        self.assertEqual(child.returncode, 130)
        self.assertIn("interrupted", err)
        self.assertTrue(json.loads(out)["partial"])

    def test_interrupted_concludes_nothing_from_its_charts(self):
        with tempfile.NamedTemporaryFile("r") as page, subprocess.Popen(
                [STAGGER, "sim", "contention", "-n", "100", "--reps", "1000000",
                 "-p", "base=10ms attempts=unlimited deadline=none", "--html",
                 page.name], stdout=subprocess.PIPE,
                stderr=subprocess.PIPE, text=True) as child:
            try:
                child.wait(3) # enough for some repetitions, and not for all
            except subprocess.TimeoutExpired:
                child.send_signal(signal.SIGINT)
            _, err = child.communicate(timeout=300)
            self.assertEqual(child.returncode, 130, err)
            titles = re.findall("<h2>(.*)</h2>", page.read())
        self.assertIn("Work against time: interrupted, no conclusion", titles)
        for title in titles:
            self.assertRegex(title, ": interrupted, no conclusion$")


def catches(pid, number):
    status = pathlib.Path(f"/proc/{pid}/status").read_text()
    caught = next(line.split()[1] for line in status.splitlines()
                  if line.startswith("SigCgt:"))
    return int(caught, 16) >> (number - 1) & 1


def limit_memory():
    import resource
    resource.setrlimit(resource.RLIMIT_AS, (2 ** 30, 2 ** 30))


if __name__ == "__main__":
    unittest.main()
