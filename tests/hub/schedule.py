#!/usr/bin/env python3
"""A message's own times: Stagger-Not-Before and Stagger-Expires (I34)."""
import contextlib
import datetime
import json
import subprocess
import time
import urllib.request

import case
from case import wait_for
from leaf import PATIENCE, STAGGER

POLICY = "fixed base=100ms jitter=none attempts=50 breaker=none budget=none"


def instant(seconds):
    at = datetime.datetime.now(datetime.timezone.utc)
    at += datetime.timedelta(seconds=seconds)
    return at.isoformat(timespec="milliseconds").replace("+00:00", "Z")


class Schedule(case.Case):
    def start(self, *words, answer=200):
        self.target = self.leaf(lambda request: answer)
        return self.hub("--to", f"a={self.target.url()}", "--policy", POLICY,
                        *words)

    def status(self, hub, id):
        with urllib.request.urlopen(
                f"http://127.0.0.1:{hub.port}/v1/messages/{id}",
                timeout=PATIENCE) as answer:
            return json.load(answer)["targets"][0]

    def await_parked(self, count):
        wait_for(lambda: self.rows("SELECT count(*) AS n FROM parked")[0]["n"]
                 == count, f"{count} are parked")

    def test_a_message_waits_for_its_time_and_no_other_for_it(self):
        hub = self.start()
        at = time.time()
        later = hub.post(b"later", Stagger_Not_Before="2s")
        soon = hub.post(b"soon", Stagger_Not_Before=instant(-5))
        self.assertEqual([r.id for r in self.target.wait(1)], [soon])
        self.await_parked(1)
        found = self.status(hub, later)
        self.assertEqual((found["state"], found["attempts"], found["cause"]),
                         ("scheduled", 0, None))
        self.assertGreater(found["due_at"], instant(0))
        last = self.target.wait(2)[1]
        self.assertGreater(time.time(), at + 2)
        self.assertEqual((last.id, last.attempt), (later, 1))
        self.assertNotIn("stagger-not-before", last.headers)
        wait_for(lambda: self.status(hub, later)["state"] == "delivered",
                 "it is settled")
        self.assertEqual(hub.stop(), 0)
        self.assertEqual(self.books()["a"]["delivered"], 2)

    def test_a_crash_keeps_the_time(self):
        hub = self.start()
        hub.post(b"later", Stagger_Not_Before="3s", Stagger_Expires="1h")
        at = time.time()
        self.await_parked(1)
        hub.kill()
        self.assertEqual(self.target.receipts, [])
        hub = self.hub("--to", f"a={self.target.url()}", "--policy", POLICY)
        receipt = self.target.wait(1)[0]
        self.assertGreater(time.time(), at + 2.5)
        # Another hub would hold to it, too.
        self.assertRegex(receipt.one("stagger-expires"), r"^20.*Z$")
        hub.stop()

    def test_what_has_expired_is_a_dead_letter_of_its_own_cause(self):
        hub = self.start(answer=503)
        tried = hub.post(b"tried", Stagger_Expires="1s")
        untried = hub.post(b"untried", Stagger_Expires=instant(-1))
        self.await_settled(1)
        self.assertEqual(hub.stop(), 0)
        rows = {row["message_id"]: row for row in self.rows()}
        self.assertEqual({row["cause"] for row in rows.values()},
                         {"MESSAGE_EXPIRED"})
        self.assertEqual({row["why"] for row in rows.values()}, {"deadline"})
        self.assertEqual(rows[tried]["http_status"], 503)
        self.assertGreater(rows[tried]["attempts"], 1)
        self.assertEqual((rows[untried]["attempts"],
                          rows[untried]["first_attempt_at"]), (0, None))
        self.assertNotIn(untried, {r.id for r in self.target.receipts})
        self.assertEqual(self.books()["a"]["dead"], 2)

    def test_a_key_waits_for_its_scheduled_message(self):
        hub = self.start("--order", "key")
        first = hub.post(b"1", Stagger_Key="k", Stagger_Not_Before="2s")
        second = hub.post(b"2", Stagger_Key="k")
        other = hub.post(b"3", Stagger_Key="o")
        self.assertEqual([r.id for r in self.target.wait(3)],
                         [other, first, second])
        hub.stop()

    def test_lines_have_times_of_their_own(self):
        hub = self.start()
        with contextlib.closing(hub.producer()) as producer:
            ids = producer.post_lines([
                {"body": "late", "not_before": "1s", "headers": {"X-A": "b"}},
                {"body": "over", "expires": instant(-1)},
                {"body": "now"}])
        found = self.target.wait(2)
        self.assertEqual([r.id for r in found], [ids[2], ids[0]])
        self.assertEqual(found[1].one("x-a"), "b")
        self.await_settled(1)
        hub.stop()
        self.assertEqual([row["message_id"] for row in self.rows()], [ids[1]])

    def test_what_is_no_time_is_refused(self):
        hub = self.start()
        for name, value, why in (
                ("Stagger-Not-Before", "tomorrow", "30d ahead"),
                ("Stagger-Not-Before", "31d", "30d ahead"),
                ("Stagger-Not-Before", "", "30d ahead"),
                ("Stagger-Expires", "Sun, 01 Mar 2026 12:00:00 GMT",
                 "expected a time like")):
            with self.assertRaises(case.Refused) as refused:
                hub.post(b"x", **{name: value})
            self.assertEqual(refused.exception.status, 400)
            detail = json.loads(refused.exception.body)["detail"]
            self.assertIn(f"{name}: ", detail)
            self.assertIn(why, detail)
        with self.assertRaises(case.Refused):
            hub.post(b"x", Stagger_Not_Before="2m", Stagger_Expires="1m")
        hub.stop()

    def test_a_repeated_message_has_the_first_ones_time(self):
        hub = self.start()
        ids = {hub.post(b"x", Stagger_Not_Before="1s", Idempotency_Key="k")
               for _ in range(2)}
        self.assertEqual(len(ids), 1)
        self.target.wait(1)
        self.await_settled(1)
        hub.stop()
        self.assertEqual(len(self.target.receipts), 1)

    def test_send_says_both(self):
        hub = self.start()

        def send(*words, text=b"x\n"):
            return subprocess.run(
                [STAGGER, "send", "--hub", f"http://127.0.0.1:{hub.port}",
                 *words], input=text, capture_output=True, timeout=PATIENCE)
        for form in ([], ["--lines"]):
            self.assertEqual(send("--not-before", "1s", "--expires", "1h",
                                  *form).returncode, 0)
        self.await_parked(2)
        for found in self.target.wait(2):
            self.assertIn("stagger-expires", found.headers)
        for words, why in ((["--not-before", "soon"], b"--not-before=soon: "),
                           (["--expires", "1x"], b"--expires=1x: ")):
            found = send(*words)
            self.assertEqual(found.returncode, 2)
            self.assertIn(why, found.stderr)
        hub.stop()


if __name__ == "__main__":
    case.main()
