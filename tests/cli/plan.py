"""stagger plan and stagger itself: arguments, complaints and exit codes."""
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True  # the sources are to stay as they are
from plan_command import PRESETS, STAGGER, plan, read, shown


def stagger(*arguments):
    return subprocess.run([STAGGER, *arguments], text=True,
                          capture_output=True)


class Stagger(unittest.TestCase):
    def test_helps(self):
        for arguments in (["--help"], ["-h"], ["help"], ["help", "help"]):
            r = stagger(*arguments)
            self.assertEqual((r.returncode, r.stderr), (0, ""))
            self.assertIn("usage: stagger COMMAND", r.stdout)

    def test_helps_with_a_command(self):
        r = stagger("help", "plan")
        self.assertEqual(r.stdout, stagger("plan", "--help").stdout)
        self.assertEqual(r.stdout, stagger("--help", "plan").stdout)
        self.assertIn("usage: stagger plan", r.stdout)
        self.assertIn("usage: stagger run", stagger("help", "run").stdout)

    def test_says_its_version(self):
        source = pathlib.Path(os.environ["STAGGER_SOURCE"])
        header = (source / "include/stagger/stagger.h").read_text()
        version = header.split('#define STG_VERSION "')[1].split('"')[0]
        self.assertEqual(stagger("--version").stdout, f"stagger {version}\n")

    def test_wants_a_command(self):
        r = stagger()
        self.assertEqual((r.returncode, r.stdout), (2, ""))
        self.assertIn("usage: stagger COMMAND", r.stderr)

    def test_refuses_what_is_no_command_and_guesses_what_was_meant(self):
        r = stagger("pln", "backend")
        self.assertEqual((r.returncode, r.stdout), (2, ""))
        self.assertIn("there is no command pln, did you mean stagger plan?", r.stderr)
        self.assertIn("did you mean stagger run?", stagger("rnu").stderr)
        text = stagger("xylophone").stderr
        self.assertIn("there is no command xylophone\nThe commands are plan, "
                      "run, sim", text)
        for name in re.findall(r"^  (\w+) ", stagger("--help").stdout, re.M):
            if name != "stagger":
                self.assertRegex(text, rf"[ ,]{name}[,.]")
        self.assertIn("did you mean stagger dead replay?",
                      stagger("replay").stderr)
        self.assertEqual(stagger("--plot").returncode, 2)
        self.assertEqual(stagger("help", "xylophone").returncode, 2)


class Plan(unittest.TestCase):
    def refused(self, *arguments):
        r = plan(*arguments)
        self.assertEqual((r.returncode, r.stdout), (2, ""), arguments)
        self.assertTrue(r.stderr.startswith("stagger plan: "), r.stderr)
        return r.stderr

    def file(self, text):
        file = tempfile.NamedTemporaryFile("w", suffix=".conf", delete=False)
        self.addCleanup(os.unlink, file.name)
        with file:
            file.write(text)
        return file.name

    # -- what it takes

    def test_help_fits_80_columns_and_names_every_preset(self):
        text = shown("--help")
        self.assertEqual(text, shown("-h"))
        self.assertLessEqual(max(map(len, text.splitlines())), 80)
        for preset in PRESETS:
            self.assertIn(f"\n  {preset} ", text)

    def test_takes_presets_texts_and_nothing(self):
        self.assertEqual([p["name"] for p in read()], ["default"])
        self.assertEqual(
            [p["name"] for p in read("backend", "backend attempts=3", "none")],
            ["backend", "backend attempts=3", "none"])

    def test_takes_options_anywhere(self):
        self.assertEqual(shown("--json", "backend", "aws"),
                         shown("backend", "--json", "aws"))
        self.assertIn("no such", plan("--file=/nonexistent/file").stderr
                      .lower())
        self.assertEqual(shown("--", "none"), shown("none"))

    def test_takes_the_names_of_a_file(self):
        path = self.file("# ours\ndb: backend deadline=10s\nhooks: webhook\n")
        self.assertEqual([p["name"] for p in read("-f", path)],
                         ["db", "hooks"])
        policies = read("--file", path, "hooks", "aws", "backend attempts=2")
        self.assertEqual([p["name"] for p in policies],
                         ["hooks", "aws", "backend attempts=2"])
        self.assertEqual(read("-f", path, "db")[0]["deadline_ms"], 10000)

    # -- what it refuses

    def test_shows_the_place_of_a_mistake(self):
        self.assertEqual(
            self.refused("exponential base=200ms cap=100ms"),
            "stagger plan: policy:1:24: cap=100ms is below base=200ms\n"
            "  exponential base=200ms cap=100ms\n"
            "                         ^\n")

    def test_shows_the_place_in_a_text_that_is_too_long_to_show(self):
        faults = ",".join(str(i) for i in range(400, 460))
        lines = self.refused(f"retry={faults},foo,{faults}").splitlines()
        self.assertEqual(len(lines), 3)
        self.assertLessEqual(max(map(len, lines[1:])), 80)
        self.assertEqual(lines[1][lines[2].index("^"):][:4], "foo,")
        self.refused("attempts=" + "9" * 2000)

    def test_shows_the_place_with_tabs_and_strange_bytes(self):
        lines = self.refused("fixed\tbase=1s \x01é=3").splitlines()
        self.assertEqual(lines[1][lines[2].index("^"):], "???=3")

    def test_shows_the_place_in_a_file(self):
        path = self.file("a: backend\n\n  b: aws cap=1ns # odd\n")
        self.assertEqual(
            self.refused("-f", path),
            f"stagger plan: {path}:3:10: cap=1ns is below base=1s\n"
            "    b: aws cap=1ns # odd\n"
            "           ^\n")

    def test_refuses_files_it_cannot_use(self):
        self.assertIn("No such file", self.refused("-f", "/nonexistent"))
        self.assertIn("has no policy", self.refused("-f", self.file("# no\n")))
        path = self.file("hooks: webhook\n")
        self.assertIn(f"hook: neither a policy of {path} nor a preset\n"
                      "Did you mean hooks?", self.refused("-f", path, "hook"))

    def test_guesses_what_was_meant(self):
        self.assertIn("Did you mean backend?", self.refused("bakend"))
        self.assertIn("Did you mean webhook?", self.refused("wehbook"))
        self.assertNotIn("Did you mean", self.refused("database"))
        self.refused("")

    def test_refuses_a_text_without_its_quotes(self):
        for words, quoted in [
                ("exponential base=1s attempts=4",
                 "'exponential base=1s attempts=4'"),
                ("backend attempts=3 webhook attempts=4",
                 "'backend attempts=3' 'webhook attempts=4'"),
                ("backend fixed aws", "'backend fixed' aws"),
                ("aws attempts=3 base=1s list=1s,2s",
                 "'aws attempts=3 base=1s list=1s,2s'"),
                ("jitter=full jitter=equal attempts=3",
                 "jitter=full 'jitter=equal attempts=3'"),
                ("base=1s exponential cap=1ms",
                 "'base=1s exponential cap=1ms'")]:
            text = self.refused(*words.split())
            self.assertIn("quote a text", text)
            self.assertIn(f"  stagger plan {quoted}\n", text)
        self.refused("backend attempts=3", "deadline=1s")

    def test_takes_words_that_can_only_be_policies_of_their_own(self):
        for words in ["jitter=full jitter=equal jitter=20%",
                      "fixed linear exponential list=1s", "backend aws none"]:
            self.assertEqual(len(read(*words.split())), len(words.split()))
        self.assertEqual(len(read("backend attempts=3", "attempts=3")), 2)

    def test_refuses_bad_options(self):
        self.assertIn("--bogus", self.refused("--bogus"))
        self.assertIn("--help", self.refused("--bogus"))
        self.refused("--plot", "--json")
        self.refused("--file")
        for number in ["0", "-1", "x", "", "1x", "100000001", "99999999999"]:
            self.assertIn("expected 1 to", self.refused("--clients", number))

    # -- how it ends

    def test_strict_ends_with_1_for_warnings(self):
        self.assertEqual(plan("unjittered").returncode, 0)
        self.assertEqual(plan("--strict", "unjittered").returncode, 1)
        self.assertEqual(plan("--strict", "--json", "unjittered").returncode,
                         1)
        self.assertEqual(plan("--strict", "--plot", "unjittered").returncode,
                         1)
        self.assertEqual(plan("--strict", "backend").returncode, 0)
        self.assertEqual(plan("--strict", "aws", "unjittered").returncode, 1)
        self.assertEqual(plan("--strict", "unjittered", "--clients=1")
                         .returncode, 0)

    def test_says_when_it_cannot_write(self):
        if not os.path.exists("/dev/full"):
            self.skipTest("no /dev/full")
        for arguments in [[], ["--json"], ["--plot"], ["--help"]]:
            with open("/dev/full", "w") as full:
                r = subprocess.run([STAGGER, "plan", *arguments], stdout=full,
                                   stderr=subprocess.PIPE, text=True)
            self.assertEqual(r.returncode, 2)
            self.assertIn("cannot write the output", r.stderr)


if __name__ == "__main__":
    unittest.main()
