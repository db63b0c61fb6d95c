#!/usr/bin/env python3
"""A target reads the log again, with the real binary: from the first message, a
time, an id; one message alone; cancelled; in the order of keys with heads that
fail; and over kill -9. Nothing is lost, and the books balance (I17, I18, I33)."""
import collections
import contextlib
import datetime
import json
import os
import random
import subprocess
import time
import urllib.error
import urllib.request

import case

COUNT = 1200
POLICY = "fixed base=15ms jitter=none attempts=3 breaker=none budget=none"


def now():
    return datetime.datetime.now(datetime.timezone.utc).isoformat(
        timespec="milliseconds").replace("+00:00", "Z")


class Rewinding(case.Case):
    order = "none"
    keep = ["--keep", "1h"]

    def setUp(self):
        super().setUp()
        self.answer = lambda request: 200
        self.a = self.leaf(lambda request: self.answer(request))
        self.b = self.leaf()
        self.words = ["--to", f"a={self.a.url()}", "--to",
                      f"b={self.b.url()}", "--policy", POLICY, "--order",
                      self.order, *self.keep]

    def start(self):
        return self.hub(*self.words)

    def call(self, hub, method, path, body=None):
        request = urllib.request.Request(
            f"http://127.0.0.1:{hub.port}/v1/{path}", method=method,
            data=None if body is None else json.dumps(body).encode(),
            headers={"Content-Type": "application/json"})
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:
                return answer.status, json.load(answer)
        except urllib.error.HTTPError as refused:
            return refused.code, json.load(refused)

    def publish(self, hub, count, key=lambda i: f"k{i % 7}"):
        """Returns the ids; both targets have got the messages."""
        with contextlib.closing(hub.producer()) as producer:
            ids = producer.post_lines([{"body": f"{i}", "key": key(i)}
                                       for i in range(count)])
        self.await_settled(2)
        return ids

    def rewind(self, hub, to, status=202):
        got, answer = self.call(hub, "POST", "targets/a/rewind", {"to": to})
        self.assertEqual(got, status, answer)
        return answer

    def newest(self, hub):
        return self.call(hub, "GET", "targets/a/rewind")[1]["rewinds"][0]

    def await_end(self, hub):
        def look():
            found = self.newest(hub)
            return found if found["state"] != "running" else None
        found = case.wait_for(look, "the end of the rewind")
        self.await_settled(2)
        return found

    def counts(self, leaf=None):
        return collections.Counter(r.id for r in (leaf or self.a).receipts)

    def end(self, hub):
        self.await_settled(2)
        self.assertEqual(hub.stop(), 0)
        return self.books()


class From(Rewinding):
    def test_the_first_message(self):
        """All come again under their ids, to this target alone."""
        hub = self.start()
        ids = self.publish(hub, COUNT)
        self.rewind(hub, "earliest")
        found = self.await_end(hub)
        self.assertEqual(found["state"], "done")
        self.assertEqual((found["messages"], found["passed"], found["sent"]),
                         (COUNT, COUNT, COUNT))
        self.assertEqual(self.counts(), {id: 2 for id in ids})
        self.assertEqual(self.counts(self.b), {id: 1 for id in ids})
        hub.event("rewind-ended", target="a", messages=COUNT)
        books = self.end(hub)
        self.assertEqual(books["a"]["routed"], 2 * COUNT)
        self.assertEqual(books["a"]["delivered"], 2 * COUNT)
        self.assertEqual(books["b"]["routed"], COUNT)

    def test_a_time(self):
        hub = self.start()
        self.publish(hub, 20)
        time.sleep(0.02)
        moment = now()
        ids = self.publish(hub, 30)
        self.rewind(hub, moment)
        self.assertEqual(self.await_end(hub)["sent"], 30)
        self.assertEqual({i for i, n in self.counts().items() if n == 2},
                         set(ids))
        self.end(hub)

    def test_an_id_and_up_to_where_it_stood(self):
        """What comes after the call is not sent twice."""
        hub = self.start()
        ids = self.publish(hub, 50)
        self.rewind(hub, ids[40])
        later = self.publish(hub, 10)
        self.assertEqual(self.await_end(hub)["sent"], 10)
        self.assertEqual({i for i, n in self.counts().items() if n == 2},
                         set(ids[40:]))
        self.assertEqual({self.counts()[id] for id in later}, {1})
        # And once more: each has numbers of its own.
        self.rewind(hub, ids[45])
        self.assertEqual(self.await_end(hub)["sent"], 15)
        self.end(hub)

    def test_what_is_none_is_refused(self):
        hub = self.start()
        self.publish(hub, 1)
        for to in ("yesterday", "", "12x", "-1", "0123456789abcdef-1"):
            self.rewind(hub, to, 400)
        self.assertEqual(self.call(hub, "POST", "targets/c/rewind",
                                   {"to": "earliest"})[0], 404)
        self.assertEqual(self.call(hub, "DELETE", "targets/a/rewind")[0], 404)
        self.assertEqual(self.call(hub, "GET", "targets/a/rewind"),
                         (200, {"rewinds": []}))
        self.end(hub)


class Held(Rewinding):
    def test_it_waits_while_the_target_is_paused_and_can_be_cancelled(self):
        hub = self.start()
        ids = self.publish(hub, COUNT)
        self.call(hub, "POST", "targets/a/pause")
        self.rewind(hub, "earliest")
        self.rewind(hub, "earliest", 409)
        sent = 500  # is as many as may wait at once
        case.wait_for(lambda: self.newest(hub)["sent"] == sent,
                      "all that there is room for")
        self.assertEqual(self.call(hub, "DELETE", "targets/a/rewind"),
                         (200, {"is_cancelled": True}))
        self.call(hub, "POST", "targets/a/resume")
        found = self.await_end(hub)
        self.assertEqual((found["state"], found["sent"]), ("cancelled", sent))
        self.assertEqual(sum(self.counts().values()), len(ids) + sent)
        self.end(hub)

    def test_what_fails_again_is_a_dead_letter_that_can_be_sent(self):
        """The dead letters of two rewinds do not stand in each other's way."""
        hub = self.start()
        ids = self.publish(hub, 5)
        self.answer = lambda request: 404
        for n in (1, 2):
            self.rewind(hub, "earliest")
            self.await_end(hub)
            self.assertEqual(len(self.rows()), 5 * n)
        self.answer = lambda request: 200
        self.assertEqual(self.call(hub, "POST", "dead-letters/replay",
                                   {"all": True})[0], 202)
        case.wait_for(lambda: all(n == 5 for n in self.counts().values()),
                      "the replay")
        self.assertEqual(set(self.counts()), set(ids))
        books = self.end(hub)
        self.assertEqual(books["a"]["delivered"], 15)


class One(Rewinding):
    def resend(self, hub, id, target="a"):
        return self.call(hub, "POST", f"messages/{id}/resend",
                         {"target": target})

    def test_it_comes_again(self):
        hub = self.start()
        ids = self.publish(hub, 10)
        for _ in range(2):
            self.assertEqual(self.resend(hub, ids[3]), (202, {"result": "due"}))
            self.await_settled(2)
        self.assertEqual(self.counts()[ids[3]], 3)
        self.assertEqual(sum(self.counts().values()), 12)
        self.assertEqual(sum(self.counts(self.b).values()), 10)
        self.call(hub, "POST", "targets/a/pause")
        self.assertEqual(self.resend(hub, ids[3]), (202, {"result": "due"}))
        self.assertEqual(self.resend(hub, ids[3]),
                         (202, {"result": "waits"}))
        self.call(hub, "POST", "targets/a/resume")
        self.assertEqual(self.end(hub)["a"]["delivered"], 13)

    def test_what_cannot_is_refused(self):
        hub = self.start()
        ids = self.publish(hub, 1)
        self.assertEqual(self.resend(hub, "1")[0], 400)
        self.assertEqual(self.resend(hub, "0123456789abcdef-1")[0], 404)
        self.assertEqual(self.resend(hub, ids[0], "c")[0], 404)
        for body in ({}, {"target": 1}, {"target": "a", "x": 1}, [], "a"):
            self.assertEqual(self.call(hub, "POST", f"messages/{ids[0]}/resend",
                                       body)[0], 400, body)
        self.end(hub)


class Gone(One):
    keep = []

    def test_it_comes_again(self):
        hub = self.start()
        ids = self.publish(hub, 10)
        case.wait_for(lambda: self.rows("SELECT 1 FROM messages") == [],
                      "the end of what is delivered")
        status, answer = self.resend(hub, ids[3])
        self.assertEqual(status, 409)
        self.assertIn("store.keep", answer["detail"])
        self.rewind(hub, "earliest")
        self.assertEqual(self.await_end(hub)["sent"], 0)
        self.end(hub)


class ByCommand(Rewinding):
    def run_with(self, hub, *words):
        done = subprocess.run(
            [os.environ["STAGGER"], *words, "--hub",
             f"http://127.0.0.1:{hub.port}"], stdin=subprocess.DEVNULL,
            capture_output=True, text=True, timeout=60)
        return done.returncode, done.stdout, done.stderr

    def test_what_a_person_types_and_reads(self):
        hub = self.start()
        ids = self.publish(hub, 10)
        rewind = ["targets", "rewind", "a"]
        self.assertEqual(self.run_with(hub, *rewind),
                         (0, "a: there was no rewind; --to begins one\n", ""))
        code, _, why = self.run_with(hub, *rewind, "--to", ids[4])
        self.assertEqual(code, 2)
        self.assertIn("add --yes to confirm", why)
        self.assertEqual(self.run_with(hub, *rewind, "-y", "--to", ids[4]),
                         (0, "a: rewind 1 begins\n", ""))
        self.await_end(hub)
        self.assertRegex(
            self.run_with(hub, *rewind)[1],
            r"^a: rewind 1: done, 6 of 6 positions passed, 6 messages sent "
            r"again, \S+Z to \S+Z\n$")
        code, text, _ = self.run_with(hub, *rewind, "--json")
        self.assertEqual(json.loads(text)["rewinds"][0]["sent"], 6)
        code, _, why = self.run_with(hub, *rewind, "-y", "--to", "monday")
        self.assertEqual(code, 1)
        self.assertIn("a time in UTC", why)
        code, _, why = self.run_with(hub, *rewind, "--cancel")
        self.assertEqual(code, 1)
        self.assertIn("no rewind of this target is under way", why)
        self.assertEqual(
            self.run_with(hub, *rewind, "--cancel", "--to", "earliest")[0], 2)
        self.assertEqual(
            self.run_with(hub, "resend", "--target", "a", ids[0]),
            (0, "a: it is sent again\n", ""))
        self.assertEqual(self.run_with(hub, "resend", ids[0])[0], 2)
        self.assertEqual(self.run_with(hub, "resend", "-t", "a")[0], 2)
        self.assertEqual(self.run_with(hub, "resend", "-t", "c", ids[0])[0], 1)
        self.assertEqual(self.end(hub)["a"]["delivered"], 17)


def find_flaw(receipts, before, lines):
    """A message of a line that was sent again before the one ahead of it had
    been taken again. before: how often each had been taken then."""
    taken = collections.Counter()
    ahead = {id: last for line in lines for last, id in
             zip([None, *line], line)}
    for r in receipts[before:]:
        last = ahead[r.id]
        if last is not None and taken[last] == 0:
            return f"{r.id} came again before {last}"
        taken[r.id] += r.deed == 200
    return None


class Killed(Rewinding):
    """Heads fail, and the hub is killed in the middle."""

    order = "key"
    kills = 5

    def lines(self, ids):
        lines = collections.defaultdict(list)
        for i, id in enumerate(ids):
            lines[i % 7].append(id)
        return list(lines.values())

    def test_nothing_is_lost_and_the_order_holds(self):
        dice = random.Random(time.time_ns())

        def answer(request):
            request.deed = 503 if dice.random() < 0.05 else 200
            return request.deed
        self.answer = answer
        count = 300 if self.order == "strict" else COUNT
        hub = self.start()
        # Attempts end: what fails three times is a dead letter, and no flaw.
        self.words[self.words.index(POLICY)] = POLICY.replace(
            "attempts=3", "attempts=20")
        hub.kill()
        hub = self.start()
        ids = self.publish(hub, count)
        before = len(self.a.receipts)
        self.rewind(hub, "earliest")
        for _ in range(self.kills):
            self.a.wait(len(self.a.receipts) + dice.randrange(1, count // 8))
            hub.kill()
            hub = self.start()
        self.assertEqual(self.await_end(hub)["sent"], count)
        flaw = find_flaw(list(self.a.receipts), before, self.lines(ids))
        self.assertIsNone(flaw)
        again = collections.Counter(
            r.id for r in list(self.a.receipts)[before:] if r.deed == 200)
        self.assertEqual(set(again), set(ids))
        books = self.end(hub)
        self.assertEqual(books["a"]["routed"], 2 * count)
        self.assertEqual(books["a"]["delivered"], 2 * count)
        case.note(self, f"{sum(again.values()) - count} of {count} came a "
                        f"third time over {self.kills} kills")


class KilledStrictly(Killed):
    order = "strict"

    def lines(self, ids):
        return [ids]


if __name__ == "__main__":
    case.main(at_once=1)
