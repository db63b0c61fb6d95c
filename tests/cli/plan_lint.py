"""The warnings of stagger plan: each known mistake has one, and its fix mends
it; a good policy has none."""
import math
import os
import random
import re
import sys
import unittest

sys.dont_write_bytecode = True  # the sources are to stay as they are
from plan_command import PRESETS, read, shown

MISTAKES = {
    "jitter=none": "no-jitter",
    "fixed jitter=none attempts=9": "no-jitter",
    "attempts=unlimited deadline=none budget=aws attempt-timeout=1s":
        "unbounded",
    "cap=none deadline=none attempt-timeout=1s attempts=30 breaker=5":
        "unbounded",
    "attempts=9 deadline=1s": "deadline-short",
    "fixed base=1m jitter=none deadline=2m": "deadline-short",
    "jitter=decorrelated base=1m attempts=4": "deadline-short",
    "deadline=none": "attempt-timeout-missing",
    "none deadline=none": "attempt-timeout-missing",
    "attempt-timeout=2m": "timeout-over-deadline",
    "attempt-timeout=1h deadline=2ns base=1ns attempts=2":
        "timeout-over-deadline",
    "unsafe=yes": "unsafe",
    "retry-after-max=0": "retry-after-ignored",
    "retry-after-max=4s": "retry-after-short",
    "retry-after=exact": "retry-after-exact",
    "retry-after=ignore": "retry-after-ignored",
    "retry=any": "retries-everything",
    "retry=default,request": "retries-everything",
    "retry=default,4xx": "retries-everything",
    "retry=default once=any": "retries-everything",
    "at-most=2:request": "retries-everything",
    "attempts=50 cap=1s": "no-budget",
    "attempts=unlimited fixed": "no-budget",
    "jitter=decorrelated list=1s,2s": "decorrelated-ignores-growth",
    "jitter=decorrelated linear": "decorrelated-ignores-growth",
    "jitter=decorrelated fixed": "decorrelated-ignores-growth",
    "jitter=decorrelated polynomial": "decorrelated-ignores-growth",
    "jitter=decorrelated factor=3": "decorrelated-ignores-growth",
    "factor=1": "factor-one",
    "linear factor=3": "no-effect",
    "polynomial factor=3": "no-effect",
    "list=1s,5s,30s": "no-effect",  # three attempts by default: no third wait
    "list=1s,5s,30s attempts=3": "no-effect",
    "list=1s,5s attempts=2 jitter=none": "no-effect",
    "never=server": "no-effect",
    "never=overload": "no-effect",
    "never=4xx": "no-effect",
    "once=rpc": None,  # it decides about grpc:8
    "never=any": "no-effect",
    "never=server once=5xx": "no-effect",
    "at-most=2:database": None,  # it decides about sql
    "retry=none once=server,5xx,timeout,reset,protocol": None,  # it is so
    "retry=default,204": "no-effect",
    "breaker=5 breaker-connect=5": "no-effect",
    "breaker=50%/20/10s breaker-slow=80%/2m": "no-effect",
    "breaker=50%/20/10s breaker-slow=80%/2s attempt-timeout=2s": "no-effect",
    "retry=default,sqlstate:00000": "no-effect",
    "nested=full": "nested-full",
    "budget=9:1/s budget-empty=wait deadline=none attempt-timeout=1s":
        "budget-wait-unbounded",
    "base=0": "no-wait",
    "list=0,0 jitter=none": "no-wait",
    "retry=none": "retries-nothing",
    "reset-after=3m": "reset-after-unreachable",
    "hedge=2m budget=aws": "hedge-unreachable",
    "hedge=1s:2 budget=aws attempt-timeout=1s": "hedge-unreachable",
    "hedge=100ms": "hedge-without-budget",
    "hedge=p95": "hedge-without-budget",
    "reset-after=3s attempt-timeout=2s": "reset-after-unreachable",
}

GOOD = [
    "", "hedge=999ms budget=aws attempt-timeout=1s", "budget=aws hedge=p99",
    "attempts=1", "jitter=none attempts=2", "list=1s,5s,30s attempts=4",
    "list=1s,5s attempts=9", "list=1s,5s attempts=1", "list=0,5s", "list=5s,0",
    "attempts=unlimited deadline=10m budget=ratio:0.2",
    "attempts=10", "attempts=50 breaker=5 cap=1s",
    "retry=any never=410", "retry=default,503", "retry=default,error",
    "never=dns,404", "retry=5xx,429 never=501", "once=timeout at-most=2:503",
    "retry=none once=timeout", "retry-after-max=5s", "deadline=10s",
    "attempt-timeout=30s deadline=none", "reset-after=1m",
    "jitter=decorrelated", "jitter=polly", "linear", "fixed base=1s", "jitter=1%",
    "budget=9:1/s budget-empty=wait", "nested=once unsafe=no",
    "retry=circuit-open,default breaker=5", "breaker=5 breaker-connect=4",
    "breaker=50%/20/10s breaker-slow=80%/2s attempt-timeout=2001ms",
    "breaker=50%/20/10s breaker-connect=30", "attempts=1 jitter=none unsafe=yes",
]


def codes(text, *options):
    policy, = read(*options, f"fixed {text}" if text == "" else text)
    return [w["code"] for w in policy["warnings"]]


def key_of(word):
    if (word in ("fixed", "linear", "exponential", "polynomial")
            or word.startswith("list=")):
        return "growth"
    return word.split("=")[0]


def mended(text, fix):
    """The text with the words of a fix in the place of its own."""
    words = text.split()
    for word in fix.split():
        words = [w for w in words if key_of(w) != key_of(word)] + [word]
    presets = [w for w in words if w in PRESETS]
    return " ".join(presets + [w for w in words if w not in presets])


# The table's columns: retry, window; least, mean, most of the wait; of all.
ROW = r"^ *(\d+) " + r" +~?(\d[\d.]*(?: [a-z]+)?)" * 7 + r"\*?$"
ROW = re.compile(ROW, re.M)
SEEDS = int(os.environ.get("STAGGER_SEEDS", "100")) * 3


def random_policy(r):
    """Settings in the range where their numbers meet."""
    times = ["0", "1ms", "300ms", "1s", "10s", "1m", "1h"]
    words = [r.choice(["", "fixed", "linear", "exponential", "polynomial",
                       "linear offset=1s count-from=0",
                       "polynomial power=4 offset=15s", "list=0,1s,10s"])]
    if not words[0].startswith("list"):
        words.append("base=" + r.choice(times))
    settings = {
        "jitter": ["none", "full", "equal", "decorrelated", "50%"],
        "factor": ["1", "2", "3"],
        "cap": ["1h", "2h", "none"],
        "attempts": ["1", "2", "3", "11", "40", "unlimited"],
        "deadline": ["500ms", "1s", "15s", "2m", "none"],
        "attempt-timeout": ["1s", "1m", "none"],
        "nested": ["once", "full"],
        "budget": ["none", "1:1/s", "ratio:1", "ratio:0.2+1/s", "ratio:0+1/s",
                   "aws", "grpc:1:0.5"],
        "budget-empty": ["wait", "give-up"],
        "breaker": ["none", "1", "1 breaker-connect=1", "5 breaker-connect=1",
                    "50%/1/10s", "50%/1/10s breaker-slow=50%/2s"],
        "retry": ["default", "none", "any", "5xx"],
        "once": ["timeout", "dns"],
        "reset-after": ["1s", "none"],
    }
    for name, values in settings.items():
        if r.random() < 0.4:
            words.append(f"{name}={r.choice(values)}")
    return " ".join(word for word in words if word)


class Lint(unittest.TestCase):
    def test_warns_of_each_mistake(self):
        for text, code in MISTAKES.items():
            with self.subTest(text):
                self.assertEqual(set(codes(text)), {code} if code else set())

    def test_has_nothing_against_good_policies(self):
        for text in GOOD:
            with self.subTest(text):
                self.assertEqual(codes(text), [])

    def test_warns_of_presets_without_jitter_only(self):
        for preset in PRESETS:
            bad = preset in ("unjittered", "broadcast")
            self.assertEqual(codes(preset), ["no-jitter"] if bad else [])

    def test_gives_fixes_that_mend(self):
        for text, code in MISTAKES.items():
            policy, = read(text)
            for warning in policy["warnings"]:
                for fix in re.split(r", or |, and ", warning["fix"]):
                    if "=" not in fix and fix != "exponential":
                        self.assertTrue(fix.startswith("leave") or
                                        fix == "send an idempotency key", fix)
                        continue
                    with self.subTest(text=text, fix=fix):
                        self.assertNotIn(warning["code"],
                                         codes(mended(text, fix)))

    def test_says_what_goes_wrong_in_numbers(self):
        def text_of(policy, *options):
            return read(*options, policy)[0]["warnings"][0]["text"]

        self.assertIn("retry 8 of 8 is never made: the waits up to it take "
                      "71.5 s or more", text_of(
                          "base=1s cap=40s attempts=9 jitter=equal "
                          "deadline=71500ms"))
        self.assertIn("retry 8 of 8 is seldom made: the waits up to it take "
                      "107.25 s on average", text_of(
                          "base=1s cap=40s attempts=9 jitter=equal "
                          "deadline=100s"))
        self.assertIn("sends 50 requests", text_of("attempts=50 cap=1s"))
        self.assertIn("500 clients", text_of("unjittered", "--clients=500"))
        self.assertIn("is asked again after 4 s",
                      text_of("retry-after-max=4s"))

    def test_lets_one_client_do_without_jitter(self):
        self.assertEqual(codes("unjittered", "--clients=1"), [])
        self.assertEqual(codes("unjittered", "--clients=2"), ["no-jitter"])

    def test_names_the_faults_that_a_broad_rule_misses(self):
        fix = read("never=server")[0]["warnings"][0]["fix"]
        self.assertEqual(fix, "never=timeout,reset,protocol,5xx")
        fix = read("at-most=3:overload")[0]["warnings"][0]["fix"]
        self.assertEqual(fix, "at-most=3:408,425,429")
        fix = read("never=server once=5xx")[0]["warnings"][0]["fix"]
        self.assertEqual(fix, "never=timeout,reset,protocol")

    def test_never_contradicts_the_table(self):
        for seed in range(SEEDS):
            text = random_policy(random.Random(seed))
            with self.subTest(seed=seed, text=text):
                self.check_against_the_table(shown(
                    text, env={"COLUMNS": "200"}))

    def check_against_the_table(self, view):
        table, _, warnings = view.partition("\nWarning")
        self.assertNotRegex(view, r"(?<![\w.:=/%-])1 (request|retrie|token|call|"
                                  "failure|attempt|fault|client|tokens)s")
        rows = {cells[0]: cells for cells in re.findall(ROW, table)}
        last = list(rows.values())[-1] if rows else None
        load = re.search(r"up to (\d+) requests for one", table)
        load = float(load[1]) if load else math.inf
        for code, words in re.findall(r"^  ([\w-]+): (.*)$", warnings, re.M):
            if code == "nested-full":
                n = re.search(r"multiply: up to (\d+) requests", words)
                self.assertEqual(float(n[1]) if n else math.inf, load, view)
            elif code == "no-budget":
                n = re.search(r"usually sends (\d+) requests", words)
                self.assertLessEqual(float(n[1]) if n else math.inf, load)
            elif code == "deadline-short":
                self.check_deadline(words, rows, table)
            elif code == "factor-one":
                window = words.rpartition("every window is ")[2]
                self.assertLessEqual({cells[1] for cells in rows.values()},
                                     {window}, view)
            elif code == "no-wait":
                self.assertLessEqual({cells[4] for cells in rows.values()},
                                     {"0"}, view)
            elif code == "unbounded" and "up to" in words:
                most = words.rpartition("waits grow up to ")[2]
                self.assertEqual(last[4], most, view)
            elif code == "no-jitter":
                self.assertTrue(rows, view)

    def check_deadline(self, words, rows, table):
        retry, total = re.match(
            r"retry (\d+) of \d+ is \w+ made: the waits up to it take (.+?) "
            "(?:or more|on average)", words).groups()
        never = re.search(r"^ *(\d+)(?: and later)? never made", table, re.M)
        if "is never made" in words:
            self.assertTrue(never and int(never[1]) == int(retry), table)
        else:
            self.assertTrue(not never or int(never[1]) > int(retry), table)
            if retry in rows:
                self.assertEqual(rows[retry][6], total, table)

    def test_stands_at_the_end_of_every_view(self):
        for options in ([], ["--plot"], ["aws"], ["aws", "--plot"]):
            text = shown("unjittered", *options)
            self.assertIn("no-jitter: clients that fail together", text)
            self.assertTrue(text.endswith("      fix: jitter=full\n"), text)
            self.assertNotIn("Warning", shown("backend", *options))


if __name__ == "__main__":
    unittest.main()
