#!/usr/bin/env python3
"""stagger sim contention and overload --events: a trace for Perfetto."""

import json
import os
import pathlib
import subprocess
import tempfile
import unittest

STAGGER = os.environ["STAGGER"]


def events(*words):
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "events.json"
        found = subprocess.run(
            [STAGGER, "sim", *words, "--events", path, "--json"], text=True,
            capture_output=True, timeout=300)
        assert found.returncode == 0, found.stderr
        text = path.read_text()
    # An object a line, and an array as a whole.
    lines = text.splitlines()
    assert (lines[0], lines[-1]) == ("[", "]")
    for line in lines[1:-1]:
        json.loads(line.rstrip(","))
    return json.loads(text), json.loads(found.stdout)["results"]


class Events(unittest.TestCase):
    def check_spans(self, spans):
        """Attempts of a client follow one another."""
        ends = {}
        for span in spans:
            thread = span["pid"], span["tid"]
            self.assertGreaterEqual(span["dur"], 0)
            self.assertGreaterEqual(span["ts"], ends.get(thread, 0) - 0.001)
            ends[thread] = span["ts"] + span["dur"]

    def test_has_each_attempt_of_a_contention(self):
        found, rows = events("contention", "-n", "5,20", "--reps", "1", "-p",
                             "client attempts=unlimited deadline=none", "-p",
                             "a=fixed base=50ms jitter=none attempts=3")
        spans = [event for event in found if event["ph"] == "X"]
        names = [event["args"]["name"] for event in found
                 if event["name"] == "process_name"]
        self.assertEqual(names, [row["policy"] for row in rows[2:]])
        for number, row in enumerate(rows[2:], 1):
            own = [span for span in spans if span["pid"] == number]
            self.assertEqual(len(own), row["calls"]["mean"])
            wins = [span for span in own if span["name"] == "success"]
            self.assertEqual(len(wins), row["successes"]["mean"])
            self.assertLessEqual({span["tid"] for span in own},
                                 set(range(1, 21)))
            self.assertAlmostEqual(
                max(span["ts"] + span["dur"] for span in own) / 1000,
                row["completion_ms"]["mean"], delta=0.01)
        self.assertIn("serialization", {span["name"] for span in spans})
        self.check_spans(spans)

    def test_has_each_attempt_of_an_overload(self):
        found, rows = events("overload", "--rate", "50", "--duration", "10s",
                             "--from", "4s", "--to", "5s", "--reps", "1",
                             "-p", "client", "--warmup", "0")
        spans = [event for event in found if event["ph"] == "X"]
        self.check_spans(spans)
        self.assertIn("refused", {span["name"] for span in spans})
        sent = rows[0]["offered_per_s"]["mean"] * 10
        self.assertAlmostEqual(len(spans), sent, delta=20)

    def test_has_an_end(self):
        found, rows = events("contention", "-n", "500", "--reps", "1", "-p",
                             "a=fixed base=0 jitter=none attempts=unlimited "
                             "deadline=none", "-p", "client")
        own = [event for event in found
               if event["ph"] == "X" and event["pid"] == 1]
        self.assertEqual(len(own), 50000)
        label, = [event for event in found if event["name"] == "process_labels"]
        self.assertEqual(label["args"]["labels"], "cut: {:.0f} more attempts"
                         .format(rows[0]["calls"]["mean"] - 50000))


if __name__ == "__main__":
    unittest.main()
