"""Tests what `stagger plan` shows to people: tables, columns and plots."""
import re
import sys
import unittest

sys.dont_write_bytecode = True  # the sources are to stay as they are
from plan_command import EXTREMES, PRESETS, on_terminal, read, shown

BACKEND = """\
backend: exponential base=200ms cap=30s jitter=full attempts=5 deadline=2m
    retry=default budget=tokens:100:10/s

                   ------------- wait ---------  --------- all waits --------
  retry    window     least      mean      most     least      mean      most
      1    200 ms         0    100 ms    200 ms         0    100 ms    200 ms
      2    400 ms         0    200 ms    400 ms         0    300 ms    600 ms
      3    800 ms         0    400 ms    800 ms         0    700 ms     1.4 s
      4     1.6 s         0    800 ms     1.6 s         0     1.5 s       3 s

  attempts      at most 5
  worst time    2 min, the deadline; an attempt may take what is left of it
  worst load    up to 5 requests for one while all fails; in the long run
                retries at 10/s
  Retry-After   followed; one past the deadline ends the operation at once
  budget        100 retries at once, then 10 a second; what finds it empty is
                given up
  breaker       none

  retried       refused unreachable dns-temporary connect-timeout tls-timeout
                tls-handshake timeout reset protocol 5xx 408 425 429 deadlock
                serialization lock-timeout too-many-connections connection-lost
                outcome-unknown pushback transient grpc:4 grpc:10 grpc:14
                no-files no-ports no-buffers interrupted proxy
  given up      dns tls egress 3xx other 4xx sql rejected grpc:8 other grpc exit
                error
  in run        exit codes are retried, too, but 126 and 127
"""

COLUMNS = """\
1 aws: exponential base=1s cap=20s jitter=full attempts=3 deadline=2m
    retry=default budget=aws
2   list=5s,1m jitter=50% attempts=6 deadline=65s attempt-timeout=1s retry=503

                               1 aws  2 list=5s,1m attem
  retry             window      mean    window      mean
      1                1 s    500 ms       5 s       5 s
      2                2 s       1 s     1 min     1 min
      3                                  1 min     1 min
      4                                past the deadline

  attempts                         3                   6
  mean waits                   1.5 s                65 s
  worst waits                    3 s                65 s
  worst time                   2 min                65 s
  worst load                       3                   4
  sustained load                   3                   4
  retries/s               it depends            no limit
  Retry-After                    1 h                 1 h
  warnings                      none                   1

     1     2   retried: yes, once or so often at most, or no
   yes    no   refused unreachable dns-temporary connect-timeout tls-timeout
               tls-handshake timeout reset protocol 500 502 504 other 5xx 408
               425 429 deadlock serialization lock-timeout too-many-connections
               connection-lost outcome-unknown pushback transient grpc:4 grpc:10
               grpc:14 no-files no-ports no-buffers interrupted proxy
    no    no   dns tls egress 3xx other 4xx sql rejected grpc:8 other grpc exit
               error
   yes   yes   503

Warning
  2 deadline-short: retry 4 of 5 is never made: the waits up to it take 92.5 s
      or more, the deadline is 65 s
      fix: deadline=7m, or attempts=4
"""

PLOT = """\
exponential base=1s cap=30s jitter=equal attempts=4 deadline=2m retry=default

  retry     window
      1        1 s         [===o==]
      2        2 s                [======o=======]
      3        4 s                               [=============o=============]
                    +-------------+--------------+-------------+-------------+
                    0            1 s            2 s           3 s          4 s

A wait falls anywhere in its bar; o is the mean.
"""

LOGARITHMIC = """\
list=0,1s,1h jitter=50% attempts=5 deadline=none attempt-timeout=1s
retry=default

  retry     window
      1          0  o
      2        1 s    [===o==]
      3        1 h                                                      [====o=]
      4        1 h                                                      [====o=]
                    +-----+----+--------+----------+--------------+----------+--
                    0    1 s  2 s     10 s       1 min         10 min       1 h

A wait falls anywhere in its bar; o is the mean. The axis is logarithmic.
"""


def waits(text):
    """The rows of the table, and what stands under them."""
    return shown(text).split("most\n")[1].split("\n\n")[0].splitlines()


class Table(unittest.TestCase):
    maxDiff = None

    def test_of_a_policy(self):
        self.assertEqual(shown("backend"), BACKEND)

    def test_starts_with_the_canonical_text(self):
        for text in PRESETS + EXTREMES:
            head = shown(text).split("\n\n")[0]
            if text in PRESETS:
                self.assertTrue(head.startswith(f"{text}: "))
                head = head[len(text) + 2:]
            # Between lines stands a blank, or nothing behind a comma.
            canonical, = read(text)
            self.assertEqual("".join(head.split()),
                             canonical["text"].replace(" ", ""))

    def test_says_in_words_that_a_fixed_wait_is_drawn(self):
        drawn = ("  waits         each is drawn between 0 and 1 s (full jitter); "
                 "with jitter=none\n                it is exactly 1 s\n")
        for text in ("fixed base=1s", "fixed base=1s jitter=full",
                     "fixed base=1s attempts=unlimited deadline=none"):
            self.assertIn(drawn, shown(text))
        self.assertIn("each is drawn between 0 and its time in the list",
                      shown("list=1s,5s"))
        for text in ("fixed base=1s jitter=none", "fixed base=1s jitter=50%",
                     "exponential base=1s", "fixed base=1s attempts=1",
                     "fixed base=0", "fixed base=1s retry=none"):
            self.assertNotIn("each is drawn", shown(text))

    def test_counts_one_of_a_thing(self):
        self.assertIn("1 retry at once, then 1 a second",
                      shown("budget=1:1/s"))
        self.assertIn("at most 1 retry for each first attempt",
                      shown("budget=ratio:1"))
        self.assertIn("at most 1 retry a second", shown("budget=ratio:0+1/s"))
        self.assertIn("1 token: a failure takes 1", shown("budget=grpc:1:1"))
        self.assertIn("among 1 call or more", shown("breaker=1%/1/10s"))
        self.assertIn("in 10 s, or when 80% of them took 2 s or longer, for",
                      shown("breaker=1%/1/10s breaker-slow=80%/2s",
                            env={"COLUMNS": "200"}))
        self.assertIn("or longer, or after 3 of category connect, for",
                      shown("breaker=1%/1/10s breaker-slow=80%/2s "
                            "breaker-connect=3", env={"COLUMNS": "200"}))
        self.assertIn("opens after 1 failure of any kind",
                      shown("breaker=1 breaker-connect=1",
                            env={"COLUMNS": "120"}))

    def test_folds_waits_that_are_all_the_same(self):
        rows = waits("fixed base=1s jitter=none attempts=100 deadline=none")
        self.assertEqual([r.split()[0] for r in rows], ["1", "...", "99"])
        self.assertTrue(rows[2].endswith(" 99 s"))
        self.assertEqual(len(waits("fixed attempts=4")), 3)
        self.assertEqual(waits("base=1s cap=4s attempts=unlimited "
                               "deadline=none")[-1],
                         "    ...   and so on, without end")
        self.assertEqual(waits("base=1s cap=4s attempts=unlimited")[-1],
                         "    ...   and so on, until the deadline")

    def test_folds_what_is_too_much_to_show(self):
        rows = waits("linear base=1s cap=1d attempts=101 deadline=365d")
        self.assertEqual(len(rows), 34)
        self.assertEqual(rows[32], "    ...")
        self.assertEqual(rows[33].split()[:2], ["100", "100"])

    def test_says_which_retries_the_deadline_forbids(self):
        rows = waits("base=1s cap=40s attempts=9 jitter=equal deadline=60s")
        self.assertEqual(rows[5].split()[-1], "s*")  # at most 63 s
        self.assertEqual(rows[7:], [
            "      8 never made: past the deadline of 1 min",
            "      * not made if it comes to that: the deadline is 1 min"])
        rows = waits("fixed base=20s attempts=9 jitter=none deadline=1m")
        self.assertEqual(
            rows[2:], ["      3 and later never made: past the deadline of "
                       "1 min"])

    def test_marks_means_that_are_estimates(self):
        rows = waits("jitter=decorrelated base=1s cap=5s attempts=4")
        self.assertNotIn("~", rows[0])
        self.assertIn("~", rows[1])
        self.assertEqual(rows[-1], "      ~ the mean of 65536 draws")

    def test_says_never_for_what_has_no_end(self):
        text = shown("base=365d cap=none factor=100 attempts=4 deadline=none")
        self.assertIn("never", text)
        self.assertIn("no bound: an attempt may take any time", text)

    def test_of_one_attempt_has_no_waits(self):
        text = shown("none")
        self.assertIn("attempts      1, and no retry", text)
        self.assertIn("given up      everything, at once", text)
        self.assertNotIn("window", text)

    def test_says_what_keeps_it_from_its_attempts(self):
        for text, line in [
                ("retry=none", "1: no fault is retried in time"),
                ("attempts=9 retry=none once=503",
                 "at most 9, but the limits on faults leave 2"),
                ("attempts=unlimited fixed base=1s jitter=none deadline=1m",
                 "no limit, but the deadline leaves time for 60")]:
            self.assertIn(f"  attempts      {line}\n", shown(text))

    def test_says_what_the_budget_allows_in_the_long_run(self):
        for budget, words in [
                ("ratio:0.2", "; in the long run 1.2 for one Retry-After"),
                ("ratio:0.2+3/s", "; in the long run 1.2 for one, and 3 a "
                 "second besides Retry-After"),
                ("9:0.5/s", "; in the long run retries at 0.5/s")]:
            self.assertIn("up to 3 requests for one while all fails" + words,
                          " ".join(shown(f"budget={budget}").split()))

    def test_says_what_retries_cost(self):
        for budget, words in [
                ("aws", "500 tokens: a retry costs 5, after a timeout 10;"),
                ("aws:500:14:14:5",
                 "500 tokens: a retry costs 14, after a 429 5;"),
                ("aws:9:1:2:3", "9 tokens: a retry costs 1, after a timeout 2, "
                 "after a 429 3;"),
                ("aws:9:3:3:3", "9 tokens: a retry costs 3;")]:
            self.assertIn(f"budget {words} successes give them back",
                          " ".join(shown(f"budget={budget}").split()))

    def test_says_whose_base_is_another(self):
        self.assertIn("as if the base were 50 ms after a fault of category "
                      "connect, 1 s after",
                      " ".join(shown("base-for=1s:overload "
                                     "base-for=50ms:connect").split()))

    def test_says_what_the_bulkhead_is(self):
        text = " ".join(shown("bulkhead=20").split())
        self.assertIn("bulkhead 20 attempts at once of all operations "
                      "together; the others are given up", text)
        text = " ".join(shown("bulkhead=1:500ms").split())
        self.assertIn("bulkhead 1 attempt at once of all operations together; "
                      "the others wait, and are given up after 500", text)
        self.assertNotIn("bulkhead", shown("client"))

    def test_says_what_the_hedge_is(self):
        text = " ".join(shown("hedge=100ms budget=aws "
                              "attempt-timeout=1s").split())
        self.assertIn("hedge a further attempt after 100 ms, the first good "
                      "answer wins; paid from the budget", text)
        self.assertIn("worst load up to 6 requests for one", text)
        self.assertIn("3 attempts of 1.1 s with hedges, waits of", text)
        text = " ".join(shown("hedge=p95:2 attempts=1").split())
        self.assertIn("hedge up to 2 further attempts, each after what 95 % "
                      "of the latest answers took, the first good answer "
                      "wins; no budget pays", text)
        self.assertIn("worst load up to 3 requests for one", text)
        self.assertNotIn("hedge", shown("client"))

    def test_says_what_the_throttle_is(self):
        text = " ".join(shown("throttle=sre:1.5").split())
        self.assertIn("throttle at most about 1.5 requests for each one that "
                      "was accepted in the last two minutes", text)
        text = " ".join(shown("throttle=aws").split())
        self.assertIn("throttle after a 429 at seven tenths of the rate", text)
        text = " ".join(
            shown("attempt-timeout=1s deadline=none throttle=aws").split())
        self.assertIn("no bound: the throttle is waited for", text)

    def test_says_what_the_rate_is(self):
        text = " ".join(shown("rate=2.5/s").split())
        self.assertIn("rate 2.5 attempts a second of all operations together, "
                      "first ones and retries; the others wait", text)
        self.assertIn("; in the long run retries at 2.5/s", text)
        self.assertNotIn("  rate ", shown("client"))

    def test_says_how_long_all_may_take(self):
        for text, words in [
                ("none attempt-timeout=3s", "3 s, the timeout of the attempt"),
                ("broadcast", "32 s: 3 attempts of 10 s, waits of 2 s"),
                ("deadline=65s attempt-timeout=1m", "65 s, the deadline"),
                ("reset-after=1m", "no bound: an attempt that ran for "
                 "reset-after starts all anew"),
                ("attempt-timeout=1s deadline=none rate=5/s",
                 "no bound: the rate is waited for"),
                ("fixed attempt-timeout=1s deadline=none attempts=unlimited",
                 "no bound: there may be any number of attempts")]:
            self.assertIn(f"  worst time    {words}\n", shown(text))

    def test_says_how_many_come_back_together(self):
        self.assertIn("about 50 of them", shown("client", "--clients=500"))
        self.assertIn("all come back within 100 ms",
                      shown("unjittered", "--clients=500"))


class Columns(unittest.TestCase):
    maxDiff = None

    def test_of_several_policies(self):
        self.assertEqual(
            shown("aws", "list=5s,1m attempts=6 jitter=50% deadline=65s "
                  "attempt-timeout=1s retry=503"), COLUMNS)

    def test_say_how_many_come_back_together(self):
        text = shown("client", "unjittered", "--clients=500")
        self.assertIn("  back in 100 ms                  50                 "
                      "500\n", text)

    def test_go_on_below_where_the_terminal_ends(self):
        text = shown(*PRESETS)
        self.assertEqual(text.count("  retry  "), 3)
        self.assertEqual(shown(*PRESETS, env={"COLUMNS": "200"})
                         .count("  retry  "), 2)

    def test_fold_rows_that_all_repeat(self):
        text = shown("fixed attempts=30", "attempts=20 cap=1s")
        rows = text.split("mean\n")[1].split("\n\n")[0].splitlines()
        self.assertEqual([r.split()[0] for r in rows],
                         ["1", "2", "3", "4", "...", "19", "20", "...", "29"])


class Plot(unittest.TestCase):
    maxDiff = None

    def test_draws_the_waits(self):
        self.assertEqual(shown("--plot", "base=1s jitter=equal attempts=4",
                               env={"COLUMNS": "78"}), PLOT)

    def test_draws_what_is_far_apart(self):
        self.assertEqual(shown("--plot", "list=0,1s,1h jitter=50% attempts=5 "
                               "deadline=none attempt-timeout=1s"),
                         LOGARITHMIC)

    def test_has_one_axis_for_all(self):
        text = shown("--plot", "backend", "webhook", "none")
        axes = [line for line in text.splitlines() if "+---" in line]
        self.assertEqual(len(axes), 2)
        self.assertEqual(axes[0], axes[1])
        self.assertIn("no retry", text)

    def test_marks_the_mean_inside_the_bar(self):
        for text in PRESETS + EXTREMES:
            plot = shown("--plot", text).split("Warning")[0]
            bars = [line[20:].strip() for line in plot.splitlines()
                    if line[:7].strip().isdigit() and "past the" not in line]
            for bar in bars:
                self.assertRegex(bar, r"^(o|\[=*o=*\]|o=*\]|\[=*o)$")


class Any(unittest.TestCase):
    def test_fits_the_terminal_and_ends_no_line_in_blanks(self):
        for width in (60, 80):
            for options in ([], ["--plot", "webhook"],
                            ["broadcast", "--clients=100000000"]):
                for text in PRESETS + EXTREMES:
                    with self.subTest(text=text, options=options, width=width):
                        self.check_lines(width, shown(
                            text, *options, env={"COLUMNS": str(width)}))

    def check_lines(self, width, text):
        self.assertTrue(text.isascii())
        self.assertTrue(text.endswith("\n"))
        for line in text.splitlines():
            self.assertLessEqual(len(line), width)
            self.assertEqual(line, line.rstrip())

    def test_bears_with_any_width(self):
        for width in ("1", "0", "-5", "x", "40", "99999", ""):
            shown("backend", env={"COLUMNS": width})
            shown("backend", "aws", env={"COLUMNS": width})
            shown("backend", "--plot", env={"COLUMNS": width})

    def test_has_colour_on_a_terminal_only(self):
        self.assertIn("\033[", on_terminal("unjittered", NO_COLOR=""))
        self.assertNotIn("\033[", on_terminal("unjittered", NO_COLOR="1"))
        self.assertNotIn("\033[", on_terminal("unjittered", NO_COLOR="",
                                              TERM="dumb"))
        self.assertNotIn("\033[", shown("unjittered", env={"NO_COLOR": "",
                                                           "TERM": "xterm"}))

    def test_says_the_same_in_colour(self):
        for arguments in (["unjittered"], ["unjittered", "aws"],
                          ["--plot", "unjittered"]):
            text = on_terminal(*arguments, NO_COLOR="", LC_ALL="C")
            self.assertEqual(re.sub("\033\\[[0-9]*m", "", text),
                             shown(*arguments))

    def test_draws_better_lines_on_a_utf8_terminal_only(self):
        utf8 = {"LC_ALL": "C.UTF-8", "NO_COLOR": "1"}
        text = on_terminal("--plot", "backend", **utf8)
        if "┤" not in text:
            self.skipTest("no locale C.UTF-8")
        self.assertEqual(text.translate(str.maketrans("├─●┤┴", "[=o]+"))
                         .count("o"), shown("--plot", "backend").count("o"))
        self.assertTrue(shown("--plot", "backend", env=utf8).isascii())
        self.assertNotIn("┤", on_terminal("--plot", "backend", LC_ALL="C"))


if __name__ == "__main__":
    unittest.main()
