#!/usr/bin/env python3
"""stagger sim delivery, as its users see it; and each script in events/, which
once found something.

usage: delivery_command.py [TEST...]
"""
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
        said = [re.sub(r"in [0-9.]+ s|\([0-9]+/s\)", "",
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
                ((), "expected --swarm N or --events FILE"),
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


if __name__ == "__main__":
    unittest.main()
