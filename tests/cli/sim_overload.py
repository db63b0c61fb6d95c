#!/usr/bin/env python3
"""stagger sim overload: what it prints, writes, refuses, and when it is
interrupted."""

import csv
import json
import os
import pathlib
import re
import signal
import subprocess
import tempfile
import unittest

STAGGER = os.environ["STAGGER"]
# A small one: a second of outage in ten.
SMALL = ["--rate", "200", "--workers", "4", "--from", "2s", "--to", "3s",
         "--duration", "10s", "--reps", "2"]


def run(*options, word="overload", **more):
    return subprocess.run([STAGGER, "sim", word, *options], text=True,
                          capture_output=True, timeout=300, **more)


def results(*options):
    found = run("--json", *options)
    assert found.returncode == 0, found.stderr
    return json.loads(found.stdout)


class Overload(unittest.TestCase):
    def test_shows_the_storm_and_that_a_budget_ends_it(self):
        found = results("--reps", "2", "--sweep",
                        "budget=none,tokens:100:10/s,ratio:0.1")
        none, tokens, ratio = found["results"]
        self.assertEqual(none["recovered"], 0)
        self.assertIsNone(none["recovery_ms"])
        self.assertGreater(none["amplification"]["mean"], 3)
        self.assertLess(none["before"]["latency_p50_ms"]["mean"], 15)
        self.assertGreater(none["after"]["latency_p50_ms"]["mean"], 500)
        for each in tokens, ratio:
            self.assertEqual(each["recovered"], 2)
            self.assertGreater(each["after"]["goodput_per_s"]["mean"], 600)
            self.assertLess(each["recovery_ms"]["mean"], 10000)
            self.assertLess(each["amplification"]["mean"], 1.2)
            self.assertIn("budget=", each["text"])

    def test_compares_policies_without_options(self):
        found = run("--reps", "1")
        self.assertIn("One run of each: no conclusion", found.stdout)
        found = run("--reps", "2")
        self.assertEqual(found.returncode, 0, found.stderr)
        self.assertIn("After the outage budgeted recovers", found.stdout)
        self.assertRegex(found.stdout, r"(?m)^jittered +not within 60 s ")
        self.assertEqual(found.stderr, "")

    def test_sweeps_ranges(self):
        for given, names in (
                ("rate=100..300/100", ["rate=100", "rate=200", "rate=300"]),
                ("to=2.5s..3s/250ms", ["to=2.5s", "to=2.75s", "to=3s"]),
                ("errors=5%..15%/10%", ["errors=5%", "errors=15%"]),
                ("queue=5,10..20/10", ["queue=5", "queue=10", "queue=20"])):
            found = results(*SMALL, "-p", "client", "--sweep", given)
            self.assertEqual([r["policy"] for r in found["results"]], names)

    def test_finds_where_recovery_ends(self):
        found = results("--reps", "2", "--edge", "to=21s..80s")
        plain, jittered, budgeted = found["results"]
        self.assertEqual(found["results"][0]["key"], "to")
        for each in plain, jittered:
            self.assertFalse(each["recovers_everywhere"])
            self.assertLess(each["recovers_at"], 30000)
            self.assertGreater(each["fails_at"], each["recovers_at"])
            self.assertLess(each["fails_at"] - each["recovers_at"], 600)
        self.assertTrue(budgeted["recovers_everywhere"])
        self.assertIsNone(budgeted["fails_at"])
        # What it says is so.
        for at, recovered in ((plain["recovers_at"], 2),
                              (plain["fails_at"], None)):
            again = results("--reps", "2", "--duration",
                            f"{-(-at // 1000) + 60:.0f}s", "--to", f"{at}ms",
                            "-p", plain["policy"] + "=exponential base=500ms "
                            "cap=5s attempts=6 jitter=none")["results"][0]
            if recovered is None:
                self.assertLess(again["recovered"], 2)
            else:
                self.assertEqual(again["recovered"], recovered)

    def test_an_edge_may_be_from_a_value_on(self):
        found = results(*SMALL, "-p", "attempts=6 base=500ms budget=none",
                        "--rate", "380", "--to", "6s", "--duration", "30s",
                        "--edge", "workers=4..12")["results"][0]
        self.assertGreater(found["recovers_at"], found["fails_at"])
        self.assertRegex(found["words"], r"^from [0-9]+ on, not with [0-9]+$")

    def test_maps_two_settings(self):
        options = [*SMALL, "-p", "storm=attempts=6 base=500ms budget=none",
                   "-p", "calm=attempts=1", "--duration", "20s"]
        with tempfile.TemporaryDirectory() as folder:
            at = pathlib.Path(folder)
            found = run(*options, "--map", "rate=200..390/95,to=3s..5s/1s",
                        f"--json={at}/m.json", "--svg", at / "svg")
            self.assertEqual(found.returncode, 0, found.stderr)
            whole = json.loads((at / "m.json").read_text())["results"]
            picture = (at / "svg" / "map.svg").read_text()
        self.assertEqual([(r["policy"], r["to"]) for r in whole],
                         [(p, t) for p in ("storm", "calm")
                          for t in (5000, 4000, 3000)])
        for each in whole:
            self.assertEqual(list(each["recovered"]), ["200", "295", "390"])
        # The signs say the same, and each place is what a run of its own is.
        lines = [line.split() for line in found.stdout.splitlines()[4:]]
        self.assertEqual(
            [line[2] for line in lines],
            ["".join("#" if n == 2 else "+" if n else "."
                     for n in r["recovered"].values()) for r in whole])
        alone = results(*options, "--rate", "390", "--to", "4s",
                        "--duration", "21s")["results"]
        self.assertEqual([whole[1]["recovered"]["390"],
                          whole[4]["recovered"]["390"]],
                         [r["recovered"] for r in alone])
        self.assertEqual(picture.count("<rect class=\"f c2"), 18)
        self.assertGreater(whole[4]["recovered"]["390"],
                           whole[0]["recovered"]["390"])

    def test_refuses_maps_that_are_none(self):
        for given, words in (
                ("rate=1..9", "expected two settings with a range each"),
                ("rate=1..9,to", "--map=to: expected a setting and a range"),
                ("rate=1..90/1,to=21s..22s", "more than 32 values"),
                ("rate=1..9,two=1..2", "--map=two: no option of the model")):
            found = run("--reps", "1", "--map", given)
            self.assertEqual(found.returncode, 2, found.stdout)
            self.assertIn(words, found.stderr)

    def test_refuses_edges_that_are_none(self):
        for edge, words in (
                ("to", "expected a setting and a range"),
                ("to=5s", "expected a setting and a range"),
                ("to=80s..21s", "expected a setting and a range"),
                ("two=1..2", "--edge=two: no option of the model"),
                ("to=1s..60s", "--edge: the trigger's start=20s is out of range"),
                ("rate=1..2%", "rate=1%: expected")):
            found = run("--reps", "1", "--edge", edge)
            self.assertEqual(found.returncode, 2, found.stdout)
            self.assertIn(words, found.stderr)
        found = run("--trigger", "none", "--edge", "rate=1..900")
        self.assertIn("without trouble", found.stderr)

    def test_gives_the_same_bytes_for_the_same_seed(self):
        first = run(*SMALL, "--json", "--threads", "1")
        second = run(*SMALL, "--json", "--threads", "3")
        other = run(*SMALL, "--json", "--seed", "2")
        self.assertEqual(first.stdout, second.stdout)
        self.assertNotEqual(first.stdout, other.stdout)

    def test_writes_what_it_is_asked_for(self):
        with tempfile.TemporaryDirectory() as folder:
            at = pathlib.Path(folder)
            found = run(*SMALL, f"--json={at}/o.json", "--csv", at / "o.csv",
                        "--html", at / "o.html", "--svg", at / "svg")
            self.assertEqual(found.returncode, 0, found.stderr)
            whole = json.loads((at / "o.json").read_text())
            with (at / "o.csv").open() as table:
                rows = list(csv.DictReader(table))
            page = (at / "o.html").read_text()
            pictures = sorted(p.name for p in (at / "svg").iterdir())
        self.assertFalse(whole["partial"])
        self.assertEqual([row["policy"] for row in rows],
                         [each["policy"] for each in whole["results"]])
        for row, each in zip(rows, whole["results"]):
            self.assertAlmostEqual(float(row["goodput_per_s"]),
                                   each["goodput_per_s"]["mean"], 6)
        for each in whole["series"]:
            bins = round(10000 / each["bin_ms"])
            self.assertEqual(len(each["queue"]), bins)
            self.assertEqual(len(each["latency_p99_ms"]), bins)
        self.assertEqual(pictures, [
            "overload-amplification.svg", "overload-cost.svg",
            "overload-latency.svg", "overload-rates.svg"])
        self.assertIn("<svg", page)
        headings = re.findall("<h[12]>(.*?)</h[12]>", page)
        self.assertEqual(len(headings), 4) # the finding, and of three charts
        self.assertEqual(len(set(headings)), 4)
        self.assertNotIn("<script", page)

    def test_follows_a_file_of_rates(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "rates.csv"
            path.write_text("time,rate\n0,100\n5s,100\n5s,300\n")
            found = results(*SMALL, "-p", "attempts=1", "--trigger", "none",
                            "--arrivals", "regular", "--warmup", "0",
                            "--rate-file", path, "--bin", "1s")
            begun = found["series"][0]["begun_per_s"]
            self.assertEqual([round(each, -1) for each in begun],
                             [100] * 5 + [300] * 5)
            path.write_text("0,100\nlater,1\n")
            refused = run("--rate-file", path)
        self.assertEqual(refused.returncode, 2)
        self.assertEqual(refused.stderr,
                         f"stagger sim overload: --rate-file={path}: line 2: "
                         "expected a time and a rate, as 90s,700\n")
        refused = run("--rate-file", "/nowhere")
        self.assertEqual(refused.returncode, 2)
        self.assertIn("--rate-file: ", refused.stderr)
        self.assertIn("/nowhere", refused.stderr)

    def test_tells_the_parts_of_a_fleet_apart(self):
        options = [*SMALL, "-p", "calm=attempts=1", "--others",
                   "attempts=6 base=100ms"]
        alone = results(*SMALL, "-p", "attempts=1")["results"][0]
        self.assertIsNone(alone["own"]["success"])
        self.assertIsNone(alone["others"]["amplification"])
        calm, half = results(*options, "--sweep", "share=0%,50%")["results"]
        self.assertIsNone(calm["others"]["success"])
        self.assertEqual(calm["own"]["success"]["mean"],
                         calm["success"]["mean"])
        self.assertEqual(half["own"]["amplification"]["mean"], 1)
        self.assertGreater(half["others"]["amplification"]["mean"], 1.1)
        refused = run("--others", "attempst=3")
        self.assertEqual(refused.returncode, 2)
        self.assertIn("did you mean attempts=?", refused.stderr)
        self.assertIn("expected others=POLICY, too",
                      run("--share", "10%").stderr)

    def test_multiplies_the_retries_of_services_in_a_row(self):
        options = [*SMALL, "--rate", "50", "-p", "attempts=3 base=20ms"]
        one, three = results(*options, "--sweep", "layers=1,3")["results"]
        self.assertIsNone(one["to_service"]["1"])
        self.assertIsNone(three["to_service"]["4"])
        first, last = (three["to_service"][k]["mean"] for k in "13")
        self.assertEqual(last, three["amplification"]["mean"])
        self.assertGreater(last, first * 2)
        self.assertGreater(last, one["amplification"]["mean"] * 2)
        inner = results(*options, "--inner", "attempts=1|attempts=1")
        self.assertAlmostEqual(
            inner["results"][0]["to_service"]["3"]["mean"],
            inner["results"][0]["to_service"]["1"]["mean"], 2)
        refused = run("--inner", "client|clinet")
        self.assertEqual(refused.returncode, 2)
        self.assertIn("did you mean client?", refused.stderr)

    def test_takes_a_closed_load(self):
        found = results(*SMALL[2:], "--clients", "50", "--think",
                        "exponential:200ms", "-p", "attempts=2")["results"][0]
        self.assertLess(found["goodput_before_per_s"]["mean"], 250)
        self.assertGreater(found["goodput_before_per_s"]["mean"], 150)

    def test_opens_the_breaker_of_a_slow_service(self):
        found = results("--reps", "1", "--timeout", "none", "--trigger",
                        "slow:3", "-p", "none breaker=90%/20/10s:5s",
                        "--sweep", "breaker-slow=none,50%/300ms")["results"]
        # Held back, in place of queueing: no answer is bad but for a full queue.
        self.assertEqual(found[0]["held_per_s"]["mean"], 0)
        self.assertGreater(found[1]["held_per_s"]["mean"], 10)

    def test_counts_hedges(self):
        found = results("--reps", "1", "--trigger", "none", "--rate", "300",
                        "--workers", "20", "--service", "mix:2%:300ms:8ms", "-p", "attempts=2",
                        "--sweep", "hedge=none,40ms")["results"]
        for key in "hedges_per_s", "hedges_won_per_s", "hedges_refused_per_s":
            self.assertIsNone(found[0][key], key)
        self.assertGreater(found[1]["hedges_per_s"]["mean"], 3)
        self.assertGreater(found[1]["hedges_won_per_s"]["mean"], 2)
        self.assertEqual(found[1]["hedges_refused_per_s"]["mean"], 0)
        self.assertLess(found[1]["latency_p99_ms"]["mean"],
                        found[0]["latency_p99_ms"]["mean"] / 2)

    def test_shows_columns_that_have_something_to_say(self):
        bare = run(*SMALL, "--trigger", "none", "-p", "attempts=1").stdout
        for word in "hedges", "recovers", "before", "p50 after":
            self.assertNotIn(word, bare)
        hedged = run(*SMALL, "-p", "attempts=1 hedge=50ms").stdout
        self.assertIn("hedges/s", hedged)
        self.assertIn("recovers", hedged)

    def test_sweeps_all_combinations(self):
        found = results(*SMALL, "--sweep", "order=fifo,lifo", "--sweep",
                        "attempts=1,2,3", "--sweep", "backoff=linear;list=1s,2s")
        names = [each["policy"] for each in found["results"]]
        self.assertEqual(len(names), 12)
        self.assertEqual(len(set(names)), 12)
        self.assertIn("order=lifo attempts=2 backoff=list=1s,2s", names)
        for each in found["results"]:
            attempts = each["policy"].split("attempts=")[1][0]
            if attempts != "3": # the default, which a text does not say
                self.assertIn(f"attempts={attempts}", each["text"])
            self.assertEqual("list=1s,2s" in each["text"],
                             "list=1s,2s" in each["policy"])

    def test_says_nothing_of_recovery_without_a_trigger(self):
        found = results(*SMALL, "--trigger", "none")["results"][0]
        self.assertIsNone(found["recovered"])
        self.assertIsNone(found["recovery_ms"])
        self.assertIsNone(found["after"]["goodput_per_s"])

    def test_refuses_what_is_wrong_and_says_the_range(self):
        for options, words in [
                (["--queue", "x"], "--queue=x: expected 0 to 10000000"),
                (["--workers", "0"], "expected 1 to 100000"),
                (["--rate", "-1"], "0.001 to 4000000"),
                (["--service", "fast"], "expected a time as 10ms"),
                (["--trigger", "slow"], "slow:FACTOR"),
                (["--errors", "101%"], "0% to 100%"),
                (["--to", "95s"], "less than the duration"),
                (["--from", "31s"], "less than its end, to=30s"),
                (["--edge", "to=1s..60s"], "start=20s is out of range, expected "
                 "less than its end, to=1s"),
                (["--bin", "7ms"], "divides the duration"),
                (["--reps", "0"], "expected 1 to 10000"),
                (["--sweep", "budget"], "expected a setting and values"),
                (["--sweep", "budget=foo"], "budget=foo: expected none"),
                (["--sweep", "colour=red"], "--sweep=colour: no option of the "
                 "model, and no setting of a policy; see"),
                (["--sweep", "quue=1,2"], "did you mean queue?"),
                (["--sweep", "skip-gon=yes"], "did you mean skip-gone?"),
                (["--sweep", "budgt=none"], "did you mean budget?"),
                (["--sweep", "at-mots=1:5xx"], "did you mean at-most?"),
                (["--sweep", "bckoff=fixed"], "did you mean backoff?"),
                (["--sweep", "base-delay=1s"], "no setting of a policy; see"),
                (["--sweep", "rate=" + ",".join("1" * 33)], "1 to 32 values"),
                (["-p", "fixed attempts=0"], "attempts=0"),
                (["-p", "attempts=0 base=1s"], "1 to 4294967295"),
                (["-p", "mine=attempts=0"], "1 to 4294967295"),
                (["--rate", "1000000000000"], "0.001 to 4000000"),
                (["--timeout", "nan"], "1us to 1d"),
                (["--html", ""], "expected a path"),
                (["--svg", ""], "expected a path"),
                (["--svg", "/dev/null"], "folder"),
                (["--html", "/nowhere/x"], "cannot write"),
                (["one"], "unexpected argument one"),
        ]:
            with self.subTest(options=options):
                found = run(*options)
                self.assertEqual(found.returncode, 2, found.stderr)
                self.assertIn(words, found.stderr)
                self.assertEqual(found.stdout, "")

    def test_refuses_what_does_not_fit_memory(self):
        found = run("--clients", "10000000", "--processes", "1000000",
                    preexec_fn=limit_memory)
        self.assertEqual(found.returncode, 2)
        self.assertRegex(found.stderr, r"MiB of memory, and there are \d+")

    def interrupt(self, seconds, *options):
        """Returns what a simulation prints that is interrupted after some seconds."""
        with subprocess.Popen(
                [STAGGER, "sim", "overload", "--threads", "1", *options],
                text=True, stdout=subprocess.PIPE,
                stderr=subprocess.PIPE) as process:
            try:
                process.wait(seconds) # enough for a part, and not for all
            except subprocess.TimeoutExpired:
                process.send_signal(signal.SIGINT)
            out, err = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 130)
        self.assertIn("interrupted: the results are incomplete", err)
        return out

    def test_prints_what_it_has_when_it_is_interrupted(self):
        found = json.loads(self.interrupt(2, "--json", "--reps", "10000",
                                          *SMALL[:-2]))
        self.assertTrue(found["partial"])
        self.assertGreater(found["results"][0]["reps"], 0)

    def test_concludes_nothing_when_it_is_interrupted(self):
        # One run, which is cut long after the outage.
        with tempfile.TemporaryDirectory() as folder:
            at = pathlib.Path(folder)
            out = self.interrupt(
                6, "--rate", "200", "--workers", "4", "--from", "432s", "--to",
                "433s", "--duration", "432000s", "--bin", "432s", "--warmup",
                "0", "--reps", "1", "-p", "attempts=2",
                f"--json={at}/o.json", "--html", at / "o.html")
            found = json.loads((at / "o.json").read_text())
            page = (at / "o.html").read_text()
        result, = found["results"]
        self.assertTrue(found["partial"] and result["cut"])
        self.assertIsNone(result["recovered"])
        self.assertIsNone(result["recovery_ms"])
        self.assertGreater(result["goodput_per_s"]["mean"], 0)
        self.assertGreater(len(found["series"][0]["goodput_per_s"]), 0)
        self.assertIn("Interrupted: nothing is concluded", out)
        self.assertIn("<h1>Overload: interrupted, no conclusion</h1>", page)
        self.assertIn("<h2>Overload rates: interrupted, no conclusion</h2>",
                      page)
        for text in out, page:
            self.assertIn("was cut", text)
            self.assertNotRegex(text, "It recovers|does not recover|never"
                                      "|An operation becomes|at once")


def limit_memory():
    import resource
    resource.setrlimit(resource.RLIMIT_AS, (512 << 20, 512 << 20))


if __name__ == "__main__":
    unittest.main()
