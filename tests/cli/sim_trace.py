#!/usr/bin/env python3
"""stagger sim overload --trace: arrivals and service times of one's own."""

import json
import os
import pathlib
import random
import subprocess
import tempfile
import unittest

STAGGER = os.environ["STAGGER"]
PLAIN = ["-p", "client", "--trigger", "none", "--reps", "2", "--warmup", "0"]
DAY = "10/Oct/2000:13:55:{:02} -0700"
ACCESS = '192.0.2.1 - - [{}] "GET /a?b HTTP/1.1" 200 2326'


def overload(*words):
    return subprocess.run([STAGGER, "sim", "overload", *map(str, words)],
                          text=True, errors="replace", capture_output=True,
                          timeout=300)


class Trace(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.path = pathlib.Path(self.folder.name) / "trace"

    def found(self, lines, *words):
        self.path.write_text("\n".join(lines) + "\n")
        found = overload("--trace", self.path, *PLAIN, "--json", *words)
        self.assertEqual(found.returncode, 0, found.stderr)
        return json.loads(found.stdout)

    def check(self, lines, begun, p50_ms, *words):
        """How many operations begin in each second, and what half of them
        take."""
        both = self.found(lines, "--bin", "1s", *words)
        series, = both["series"]
        self.assertEqual(series["begun_per_s"], begun)
        result, = both["results"]
        self.assertAlmostEqual(result["latency_p50_ms"]["mean"], p50_ms + 2,
                               delta=0.1 * (p50_ms + 2))

    def test_reads_csv_with_seconds(self):
        lines = ["time,duration", "100.5,0.020", "100.7,0.020", "102.6,0.020"]
        self.check(lines, [2, 0, 1], 20)
        self.check(lines[1:], [2, 0, 1], 20)

    def test_reads_csv_with_times_and_takes_the_service_from_elsewhere(self):
        self.check(["2026-03-01T12:00:00.5Z", "2026-03-01T14:00:00.9+02:00",
                    "2026-03-01T12:00:02.7Z"], [2, 0, 1], 30,
                   "--service", "30ms")

    def test_reads_access_logs_of_nginx_and_apache(self):
        times = [DAY.format(second) for second in (30, 30, 32)]
        for end in (' "-" "curl/8 \\"x\\" 1.5" 0.050', " 0.050", " 50000",
                    ' "-" "x" rt=0.050 uct="0.001"', ' "-" "x" - 50000'):
            # They ended so, in the middle of a second that two share.
            self.check([ACCESS.format(time) + end for time in times],
                       [2, 0, 1], 50)

    def test_spreads_what_ends_in_one_second(self):
        lines = [ACCESS.format(DAY.format(30)) + " 0.001"] * 10
        self.check(lines, [10], 1)
        series, = self.found(lines, "--bin", "500ms")["series"]
        self.assertEqual(series["begun_per_s"], [10, 10])

    def test_reads_the_first_attempts_of_the_hubs_log(self):
        def line(event, second, attempt):
            return json.dumps(
                {"time": f"2026-03-01T12:00:0{second}.000Z", "level": "debug",
                 "event": event, "target": "a \",\"took_ms\":9", "message": "1",
                 "attempt": attempt, "status": 200, "took_ms": 40},
                separators=(",", ":"))

        folded = json.dumps({"time": "2026-03-01T12:00:02.000Z",
                             "level": "warn", "event": "attempt-failed",
                             "cause": "HTTP_503", "folded": 4990},
                            separators=(",", ":"))
        self.check([line("ready", 0, 1), line("delivered", 1, 1), folded,
                    line("attempt-failed", 1, 1), line("delivered", 2, 2),
                    line("delivered", 3, 1)], [2, 0, 1], 40)

    def test_is_the_same_in_each_run_and_goes_through_trouble(self):
        lines = [f"{i / 50:.3f},0.01" for i in range(3000)]
        both = self.found(lines, "--workers", "2", "--trigger", "outage",
                          "--from", "20s", "--to", "25s", "--sweep",
                          "budget=none,ratio:0.1")
        one, two = both["series"]
        self.assertEqual(one["begun_per_s"], two["begun_per_s"])
        self.assertGreater(both["results"][0]["amplification"]["mean"], 1)

    def test_says_which_line_is_wrong(self):
        good = ACCESS.format(DAY.format(30)) + " 0.050"
        for lines, said in (
                (["1,2", "x"], "trace:2: expected time,duration"),
                (["1,2", "2,x"], "trace:2: expected a duration in seconds"),
                (["1,2", "", "3,1e400"], "trace:3: expected a duration"),
                (["1,99999999", "2,1"], "trace:1: a duration of more than"),
                (["1,2"], "two operations at least"),
                ([], "two operations at least"),
                ([good, good.replace("Oct", "Okt")],
                 "trace:2: expected a time, such as [10/Oct/2000"),
                ([good, good.replace("10/Oct", "31/Jun")],
                 "trace:2: expected a time"),
                ([good, good.split('"')[0]], "trace:2: expected a request"),
                ([good, '1 [' + DAY.format(3) + '] "GET" 200'],
                 "trace:2: expected a status and a number of bytes"),
                (['{"time":"2026-03-01T12:00:00.000Z"}'],
                 "trace:1: expected a line of the hub's JSON log"),
                (['{"time":"yesterday","event":"delivered"}'],
                 "trace:1: expected a time, such as 2026"),
                (["1,0.1", "2,\0"], "trace:2: a line with a zero byte")):
            self.path.write_text("\n".join(lines))
            found = overload("--trace", self.path, *PLAIN)
            self.assertEqual(found.returncode, 2, lines)
            self.assertIn(said, found.stderr)
            self.assertEqual(len(found.stderr.splitlines()), 1)

    def test_refuses_what_does_not_fit_a_trace(self):
        self.path.write_text("1\n2\n60\n")
        for words, said in (
                (["--rate", "5"], "leave out --rate"),
                (["--trigger", "outage"], "no durations"),
                (["--service", "1ms", "--trigger", "spike:3"],
                 "begin as in the trace"),
                (["--service", "1ms", "--sweep", "rate=1,2"],
                 "begin as in the trace")):
            found = overload("--trace", self.path, *words)
            self.assertEqual(found.returncode, 2)
            self.assertIn(said, found.stderr)
        found = overload("--trace", self.path.parent / "none")
        self.assertEqual(found.returncode, 2)
        self.assertIn("No such file", found.stderr)

    def test_any_bytes_end_in_order(self):
        rng = random.Random(1)
        lines = ["1.5,0.2", ACCESS.format(DAY.format(30)) + ' "-" "x" 0.050',
                 '{"time":"2026-03-01T12:00:00.000Z","event":"delivered",'
                 '"attempt":1,"took_ms":4}']
        for _ in range(300):
            text = bytearray("\n".join([rng.choice(lines)] * 3).encode())
            for _ in range(rng.randint(1, 4)):
                at = rng.randrange(len(text))
                text[at:at + rng.randint(0, 3)] = bytes(
                    rng.choice(b'"[]{}\\,.:/-+ 019e\n\0\xff')
                    for _ in range(rng.randint(0, 2)))
            self.path.write_bytes(text)
            found = overload("--trace", self.path, "-p", "client", "--trigger",
                             "none", "--duration", "1s", "--reps", "1")
            self.assertIn(found.returncode, (0, 2), text)


if __name__ == "__main__":
    unittest.main()
