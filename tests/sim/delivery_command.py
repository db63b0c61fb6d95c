#!/usr/bin/env python3
"""stagger sim delivery, as its users see it; and each script in events/, which
once found something.

usage: delivery_command.py [TEST...]
"""
import csv
import json
import os
import pathlib
import re
import subprocess
import tempfile
import unittest

STAGGER = os.environ["STAGGER"]
SCRIPTS = pathlib.Path(os.environ["STAGGER_SOURCE"], "tests/sim/events")
# What is to be sent in nine hours does not end within the hour of I20.
FAILS = """world seed=1 times=9h
lane in-flight=4 parked-max=100
publish count=8
events count=3
crash after=1s
run for=1s
"""


def sim(*arguments, **options):
    return subprocess.run([STAGGER, "sim", "delivery", *arguments], text=True,
                          timeout=300, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, **options)


class Swarm(unittest.TestCase):

    def test_says_how_much_it_has_looked_at(self):
        found = sim("--swarm", "4", "--seed", "7")
        self.assertEqual(found.returncode, 0, found.stdout + found.stderr)
        self.assertRegex(found.stdout, r"^4 worlds from seed 7: 0 failed")
        for words in ("attempts", "deliveries", "dead letters", "events",
                      "days of virtual time"):
            self.assertIn(words, found.stdout)

    def test_does_not_depend_on_the_threads(self):
        figures = r"in [0-9.]+ s|\([0-9]+/s by each of [0-9]+ threads?\)"
        said = [re.sub(figures, "",
                       sim("--swarm", "5", "--threads", n).stdout)
                for n in ("1", "3")]
        self.assertEqual(*said)

    def test_begins_no_world_when_the_time_is_over(self):
        found = sim("--swarm", "1000000", "--for", "1ms", "--threads", "1")
        self.assertEqual(found.returncode, 0, found.stderr)
        self.assertLess(int(found.stdout.split()[0]), 100)

    def test_replays_the_script_that_it_prints(self):
        script = sim("--script", "--seed", "11").stdout
        by_seed = sim("--trace", "--seed", "11").stdout
        by_script = sim("--trace", "--events", "-", input=script).stdout
        self.assertGreater(len(by_seed.splitlines()), 10)
        self.assertEqual(by_seed, by_script)

    def test_shows_a_failure_and_makes_it_small(self):
        with tempfile.TemporaryDirectory() as folder:
            small = os.path.join(folder, "small.events")
            found = sim("--events", "-", "--shrink", small, input=FAILS)
            self.assertEqual(found.returncode, 1, found.stderr)
            self.assertIn("I20 does not hold", found.stdout)
            self.assertIn("-- crash after=1s", found.stdout)
            self.assertIn(f"--events {small}", found.stdout)
            self.assertLess(
                len(pathlib.Path(small).read_text().splitlines()), 6)
            again = sim("--events", small)
            self.assertEqual(again.returncode, 1)
            self.assertIn("I20 does not hold", again.stdout)

    def test_refuses_what_it_cannot_read(self):
        for arguments, words in (
                ((), "expected the settings of a hub, --swarm N or --events"),
                (("--rate", "5"), "--rate: expected the settings of a hub"),
                (("--swarm", "0"), "expected 1 to"),
                (("--for", "soon"), "expected a time"),
                (("--swarm", "1", "--events", "x"), "expected one"),
                (("--events", "/nowhere"), "No such file")):
            found = sim(*arguments)
            self.assertEqual(found.returncode, 2, found.stdout)
            self.assertIn(words, found.stderr)
        found = sim("--events", "-", input="world\nlane colour=red\n")
        self.assertEqual(found.returncode, 2)
        self.assertIn("-:2: colour=red", found.stderr)
        found = sim("--events", "-", input="lane\n")
        self.assertIn("expected the line `world` first", found.stderr)


class Events(unittest.TestCase):

    def test_that_once_found_something_hold(self):
        scripts = sorted(SCRIPTS.glob("*.events"))
        self.assertTrue(scripts)
        for script in scripts:
            with self.subTest(script.name):
                found = sim("--events", str(script))
                self.assertEqual(found.returncode, 0, found.stdout)


SETTINGS = """
store: {path: x.db}
alerts: {threshold: 10 failures in 5m}
targets:
  - {name: well, url: 'http://127.0.0.1:1/'}
  - {name: leaf3, url: 'http://127.0.0.1:3/'}
"""


class Scenario(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.settings = self.write("stagger.yaml", SETTINGS)

    def write(self, name, text):
        path = self.folder / name
        path.write_text(text)
        return str(path)

    def run_it(self, *words):
        found = sim(*words)
        self.assertEqual(found.returncode, 0, found.stderr)
        self.assertEqual(found.stderr, "")
        return found.stdout

    def rows(self, *words):
        text = json.loads(self.run_it(*words, "--json"))
        return {row["target"]: row for row in text["results"]}, text["series"]

    def refused(self, words, *arguments):
        found = sim(*arguments)
        self.assertEqual((found.returncode, found.stdout), (2, ""), found.stderr)
        self.assertIn(words, found.stderr)

    def test_says_what_a_hub_would_do_while_a_target_is_down(self):
        said = self.run_it(self.settings, "--rate", "50", "--down", "leaf3=2m")
        self.assertIn("leaf3: refused from 1 min to 3 min.", said)
        self.assertRegex(said, r"\nleaf3 had late messages .more than 10 s. for 2\.\d+ min, until 3")
        self.assertIn("No other target had: each that arrived did so within", said)
        self.assertRegex(said, r"\n    0:01:\d\d  leaf3: the breaker opened")
        self.assertRegex(said, r"\n    0:0[3-9]:\d\d  leaf3: over: the breaker opened, and closed after")
        self.assertIn("no receiver", said)

    def test_has_every_number_for_programs(self):
        rows, series = self.rows(self.settings, "--rate", "50", "--down", "leaf3=2m")
        self.assertEqual(list(rows), ["well", "leaf3", "all of them"])
        for row in rows.values():
            self.assertEqual(row["delivered"] + row["dead"], row["messages"])
        self.assertEqual(rows["well"]["attempts"], rows["well"]["delivered"])
        self.assertGreater(rows["leaf3"]["waiting_most"], 5000)
        self.assertGreater(rows["leaf3"]["delay_max_ms"], 60000)
        self.assertLess(rows["well"]["delay_max_ms"], 1000)
        for name in "well", "leaf3":
            mine = [each for each in series if each["target"] == name]
            for key in "attempts", "delivered", "dead":
                self.assertEqual(sum(each[key] for each in mine), rows[name][key])
            self.assertEqual(mine[-1]["waiting"], 0)

    def test_tells_programs_what_was_asked_and_what_alerts_would_tell(self):
        found = json.loads(self.run_it(self.settings, "--rate", "0.5", "--for", "20m", "--fault",
                                       "leaf3 503 from=2m for=10m share=50%", "--down", "leaf3=10s", "--json"))
        self.assertEqual([found[key] for key in ("rate", "for_ms", "size", "latency_ms")],
                         [0.5, 1200000, 1024, 20])
        self.assertEqual(found["faults"], [
            {"target": "leaf3", "answer": "503", "from_ms": 120000, "to_ms": 720000, "share": 0.5},
            {"target": "leaf3", "answer": "refused", "from_ms": 60000, "to_ms": 70000, "share": 1}])
        self.assertGreater(len(found["alerts"]), 0)
        self.assertEqual({each["target"] for each in found["alerts"]}, {"leaf3"})
        self.assertEqual(found["alerts_left_out"], 0)
        self.assertAlmostEqual(found["results"][0]["messages"], 600, delta=100)

    def test_lists_twenty_alerts_and_counts_the_others(self):
        targets = "".join(f'  - {{name: t{i}, url: "http://t{i}/"}}\n' for i in range(30))
        said = self.run_it(self.write("many.yaml", "targets:\n" + targets), "--rate", "5", "--down", "*=3m")
        self.assertEqual(said.count("breaker opened"), 20 + 1)  # the table's head
        self.assertRegex(said, r"\n    and \d+ more: t0 \d+, t1 \d+, .*, \.\.\.\n")

    def test_says_one_of_a_thing(self):
        said = self.run_it(self.write("one.yaml", 'targets: [{name: t, url: "http://t/"}]\n'), "--rate", "1", "--for", "1m")
        self.assertIn("1 message a second of 1,024 bytes for 1 min, to 1 target, which answers in about 20 ms.", said)

    def test_is_the_same_again_and_writes_files(self):
        table, page = self.folder / "a.csv", self.folder / "a.html"
        words = self.settings, "--rate", "20", "--fault", "* 503 from=1m for=1m share=50%"
        first = self.run_it(*words, "--csv", str(table), "--html", str(page), "--svg", str(self.folder))
        self.assertEqual(first, self.run_it(*words))
        self.assertNotEqual(first, self.run_it(*words, "--seed", "2"))
        rows = list(csv.DictReader(table.read_text().splitlines()))
        self.assertEqual([row["target"] for row in rows], ["well", "leaf3", "all of them"])
        self.assertIn("503 for 50 % of the attempts", page.read_text())
        self.assertIn("<svg", (self.folder / "delivery-course.svg").read_text())

    def test_reads_a_scenario_beside_its_settings(self):
        scenario = self.write("outage.yaml", """
settings: stagger.yaml
rate: 50
for: 5m
size: 2000
latency: 40ms
faults:
  - leaf3 hang from=1m for=30s
  - well 200 took=3s from=2m for=10s
""")
        said = self.run_it(scenario)
        self.assertIn("50 messages a second of 2,000 bytes for 5 min, to 2 targets, which answer in about 40 ms.", said)
        self.assertIn("leaf3: hang from 1 min to 1.5 min; well: 200 after 3 s from 2 min to", said)
        # An option goes before the file, and so do its faults.
        said = self.run_it(scenario, "--rate", "7", "--down", "well=5s")
        self.assertIn("7 messages a second", said)
        self.assertIn("\nwell: refused from 1 min to 1.08 min; leaf3: hang", said)

    def test_gives_up_what_is_older_than_the_retention(self):
        settings = self.write("short.yaml", SETTINGS.replace(
            "{path: x.db}", "{path: x.db, retention: 1m}").replace("3/'}", "3/', in-flight: 4}"))
        rows, _ = self.rows(settings, "--for", "5m", "--fault", "leaf3 200 took=5s from=0s for=5m")
        self.assertGreater(rows["leaf3"]["dead"], 100)
        self.assertEqual(rows["leaf3"]["delivered"] + rows["leaf3"]["dead"], rows["leaf3"]["messages"])
        self.assertEqual(rows["well"]["dead"], 0)
        self.assertIn("for they were older than `store.retention`", self.run_it(
            settings, "--for", "5m", "--fault", "leaf3 200 took=5s from=0s for=5m"))

    def test_does_not_wait_for_what_is_paused(self):
        settings = self.write("paused.yaml", SETTINGS.replace("3/'}", "3/', paused: true}"))
        said = self.run_it(settings, "--for", "1m")
        self.assertIn("leaf3 is paused: its messages wait.", said)
        self.assertNotIn("leaf3 had late messages", said)

    def test_says_that_filters_are_not_asked(self):
        settings = self.write("filtered.yaml", SETTINGS.replace(
            "3/'}", "3/', match: {body: {a: [1]}}}"))
        self.assertIn("Filters (match) are not asked", self.run_it(settings))

    def test_refuses_what_is_wrong_and_says_where(self):
        def of(more, settings="stagger.yaml"):
            return self.write(f"{abs(hash(more))}bad.yaml", f"settings: {settings}\n{more}\n")

        for words, arguments in (
                ("No such file", ["/nowhere.yaml"]),
                ("a fault is of leaf4: " + str(self.settings) + " has no such target; did you mean leaf3?", [
                    self.settings, "--down", "leaf4=1m"]),
                ("expected an answer", [self.settings, "--fault", "leaf3 100"]),
                ("--down=leaf3: expected TARGET=TIME", [self.settings, "--down", "leaf3"]),
                ("--down='leaf3 refused for=x': for: expected a time", [self.settings, "--down", "leaf3=x"]),
                ("expected an answer", [self.settings, "--fault", "leaf3 down"]),
                ("--rate=0: expected 0.001 to 100000, messages a second", [self.settings, "--rate", "0"]),
                ("more than 10,000,000 deliveries", [self.settings, "--rate", "100000", "--for", "1h"]),
                ("a fault begins when the load has ended: of, found leaf3", [self.settings, "--for", "5m", "--fault", "leaf3 503 from=5m"]),
                ("--down=leaf3=: expected TARGET=TIME", [self.settings, "--down", "leaf3="]),
                ("--size=1048576: expected 262144 at most", [
                    self.write("small.yaml", SETTINGS + "memory: 8MiB\n"), "--size", "1048576"]),
                ("bad.yaml:1:1: expected `settings`, the path", [self.write("1bad.yaml", "rate: 5\n")]),
                ("--swarm does not go with", [self.settings, "--swarm", "1"]),
                ("bad.yaml:2:1: fualts: there is no such key of a scenario; did you mean faults?", [of("fualts: []")]),
                ("bad.yaml:2:7: rate: expected 0.001 to 100000", [of("rate: many")]),
                ("bad.yaml:2:6: for: expected a time", [of("for: 5")]),
                ("faults: expected a list", [of("faults: leaf3 503")]),
                ("bad.yaml:2:10: expected an answer", [of("faults: [leaf3 down]")]),
                ("No such file", [of("rate: 5", "other.yaml")]),
                ("settings: expected a path", [of("rate: 6", "[]")])):
            with self.subTest(words=words):
                self.refused(words, *arguments)


if __name__ == "__main__":
    unittest.main()
