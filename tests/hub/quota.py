#!/usr/bin/env python3
"""A store that fills up while all targets are down: the ingress says so with
503 and Retry-After, nothing that was accepted is lost, the store stays within
its quota, and it goes on when the targets come back."""
import collections
import contextlib
import datetime
import itertools
import json
import os
import signal
import sqlite3
import subprocess
import threading
import urllib.error
import urllib.request

import case
import leaf

QUOTA = 16 << 20
BODY = 60_000
POLICY = ("fixed base=300ms jitter=none attempts=unlimited deadline=none "
          "breaker=none budget=none")


def numbered_bodies():
    i = 0
    while True:
        yield b"%06d" % i * (BODY // 6)
        i += 1


class Limited(case.Case):
    def size(self):
        """Of the file; what is beside it is not in the quota."""
        return os.path.getsize(self.store)

    def check_refusal(self, refused):
        self.assertEqual(refused.status, 503, refused)
        self.assertGreaterEqual(int(refused.headers["Retry-After"]), 1)
        problem = json.loads(refused.body)
        self.assertEqual(refused.headers["Content-Type"],
                         "application/problem+json")
        self.assertEqual(problem["status"], 503)
        self.assertRegex(problem["detail"], "full|quota|room")


class Quota(Limited):
    """What is tried, or waits."""

    def accept_again(self, producer, body):
        """The id of the first message that is accepted."""
        def ask():
            try:
                return producer.post(body)
            except case.Refused as refused:
                self.check_refusal(refused)
        return case.wait_for(ask, "a message is accepted")

    def fill(self, producer, server, bodies, sent):
        """Publishes what is then tried and parked, until the store is full."""
        for body in bodies:
            try:
                id = producer.post(body)
            except case.Refused as refused:
                self.check_refusal(refused)
                self.assertLessEqual(self.size(), QUOTA)
                return
            sent[id] = body
            self.assertLess(len(sent), 1000, "messages accepted")
            case.wait_for(lambda: all(
                any(r.id == id for r in server.of("/" + name))
                for name in "ab"), "an attempt of each")

    def check_full(self, restarts):
        """Parked rows hold what was tried, so that nothing is given up."""
        is_well = []
        server = self.leaf(lambda r: 200 if is_well else 503)
        words = ["--quota", "16M", "--policy", POLICY]
        for name in "ab":
            words += ["--to", f"{name}={server.url('/' + name)}"]
        hub = self.hub(*words)
        producer = self.kept(hub.producer())
        bodies, sent = numbered_bodies(), {}
        self.fill(producer, server, bodies, sent)
        if restarts:
            hub.kill()
            hub = self.hub(*words)
            producer = self.kept(hub.producer())
            # What was parked is trimmed from the log: there is some room.
            self.fill(producer, server, bodies, sent)
        self.assertEqual(self.rows(), [], "nothing is given up")
        is_well.append(True)
        body = next(bodies)
        sent[self.accept_again(producer, body)] = body
        self.await_settled(2)
        for body in (next(bodies) for _ in range(5)):
            sent[producer.post(body)] = body
        self.await_settled(2)
        self.assertEqual(hub.stop(), 0)
        for name in "ab":
            taken = collections.defaultdict(set)
            for r in server.of("/" + name):
                taken[r.id].add(r.body)
            self.assertEqual(set(taken), set(sent), "every message came")
            for id, body in sent.items():
                self.assertEqual(taken[id], {body}, f"the body of {id}")
        self.assertEqual({b["delivered"] for b in self.books().values()},
                         {len(sent)})
        self.assertEqual(self.rows(), [])
        case.note(self, f"{len(sent)} messages of {BODY} bytes")

    def test_it_says_no_when_full_and_drains_when_they_are_back(self):
        self.check_full(restarts=False)

    def test_a_full_store_survives_a_kill(self):
        self.check_full(restarts=True)

    def test_it_refuses_rather_than_gives_up_what_a_target_waits_for(self):
        """With `full: refuse` the oldest stays; the other target goes on."""
        is_well = []
        server = self.leaf(lambda r: 200 if is_well else leaf.reset)
        well, told = self.leaf(), self.leaf()
        path = os.path.join(self.folder, "stagger.yaml")
        with open(path, "w") as file:
            file.write(f"""
listen: {{address: 127.0.0.1:0}}
store: {{path: {self.store}, quota: 16MiB, full: refuse}}
defaults: {{shed-after: none}}
alerts: {{group-wait: 0s, receivers: [{{name: people, type: webhook, url: "{told.url()}"}}]}}
targets:
  - {{name: gone, url: "{server.url()}", policy: "{POLICY}", paused: true}}
  - {{name: well, url: "{well.url()}"}}
""")
        hub = self.hub(settings=path)
        producer = self.kept(hub.producer())
        sent = []
        for body in numbered_bodies():
            try:
                sent.append(producer.post(body))
            except case.Refused as refused:
                self.check_refusal(refused)
                break
            self.assertLess(len(sent), 1000, "messages accepted")
        self.assertGreater(len(sent) * BODY, QUOTA / 2)
        self.assertLessEqual(self.size(), QUOTA)
        self.assertIn("four fifths of store.quota",
                      hub.event("store-full")["detail"])
        self.assertIn(b"four fifths of store.quota", told.wait(1)[0].body)
        well.wait(len(sent))
        is_well.append(True)
        with open(path) as file:
            text = file.read()
        with open(path, "w") as file:
            file.write(text.replace("paused: true", "paused: false"))
        hub.process.send_signal(signal.SIGHUP)
        hub.event("reloaded")
        sent.append(self.accept_again(producer, b"x"))
        self.await_settled(2)
        self.assertEqual(hub.events("expiring"), [])
        self.assertEqual(hub.stop(), 0)
        self.assertEqual(self.rows(), [], "nothing is given up")
        self.assertEqual({r.id for r in server.receipts}, set(sent))

    def check_folded(self, lines):
        """Told once, and then counted every 10 s."""
        at = [datetime.datetime.fromisoformat(line["time"].rstrip("Z"))
              for line in lines if "repeated" not in line]
        for before, after in zip(at, at[1:]):
            self.assertGreater(after - before, datetime.timedelta(seconds=9))

    def test_a_pipe_waits_for_room_and_loses_nothing(self):
        is_well = threading.Event()
        target = self.leaf(lambda r: 200 if is_well.is_set() else 503)
        hub = self.hub("--to", f"a={target.url()}", "--quota", str(QUOTA),
                       "--policy", POLICY)
        lines = list(itertools.islice(numbered_bodies(), 300))
        with subprocess.Popen(
                [case.STAGGER, "send", "--lines", "--hub",
                 f"http://127.0.0.1:{hub.port}"], stdin=subprocess.PIPE,
                stdout=subprocess.PIPE, stderr=subprocess.PIPE) as sending:
            self.addCleanup(sending.kill)
            with case.futures.ThreadPoolExecutor(1) as pool:
                sent = pool.submit(sending.communicate, b"\r\n".join(lines))
                hub.event("request-refused", status=503)
                is_well.set()
                out, err = sent.result()
        self.assertEqual((sending.returncode, err), (0, b""))
        self.assertRegex(out.decode(), "^300 messages accepted, ")
        self.await_settled(1)
        self.assertEqual(hub.stop(), 0)
        # Each of them, and each once: a repeat would be one more.
        self.assertEqual({r.body for r in target.receipts}, set(lines))
        self.assertEqual(self.books()["a"]["delivered"], 300)

    def test_a_line_that_is_too_long_is_told_with_its_number(self):
        hub = self.hub("--to", f"a={self.leaf().url()}", "--memory", "8MiB")
        done = subprocess.run(
            [case.STAGGER, "send", "--lines", "--in-flight=1", "--id", "r",
             "--hub", f"http://127.0.0.1:{hub.port}"], capture_output=True,
            input=b"one\n\nthree\n" + b"x" * (300 << 10) + b"\nfive")
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stderr.decode(),
                         "^stagger send: line 4: refused with 413 ")
        self.assertEqual(hub.stop(), 0)

    def test_what_is_beyond_half_of_the_quota_is_a_range_row(self):
        """All targets refuse, so that what comes is held in the log; the log
        keeps half of the quota, the oldest beyond it is given up, and told."""
        hub = self.hub("--to", f"gone={self.refused()}", "--quota", "16M",
                       "--shed-after", "none", "--policy",
                       "broadcast breaker=1:30s")
        producer = self.kept(hub.producer())
        ids = []
        for i in range(2 * QUOTA // BODY):
            with contextlib.suppress(case.Refused):
                ids.append(producer.post(b"%05d" % i * (BODY // 5)))
            self.assertLessEqual(self.size(), QUOTA)
        hub.event("expiring", target="gone")
        self.assertEqual(hub.stop(), 0)
        self.check_folded(hub.events("expiring"))
        case.note(self, f"{len(ids)} of {2 * QUOTA // BODY} accepted")
        held = self.rows("SELECT position FROM messages ORDER BY position")
        rows = self.rows()
        self.assertEqual([row["count"] for row in rows if
                          row["last_position"] is None], [1], "the first")
        ranges = [row for row in rows if row["last_position"] is not None]
        self.assertEqual({(row["why"], row["cause"], row["category"])
                          for row in ranges},
                         {("retention", "CONNECTION_REFUSED", "A")})
        covered = {1}
        for row in ranges:
            covered |= set(range(row["position"], row["last_position"] + 1))
        positions = {int(id.split("-")[1]) for id in ids}
        base = self.rows("SELECT min(value ->> 'base') AS base FROM cursors, "
                         "json_each(lanes)")[0]["base"]
        lost = {p for p in positions if p < base} - covered
        self.assertEqual(lost, set(), "below the base each is in a row")
        self.assertEqual({p for p in positions if p >= base},
                         {m["position"] for m in held
                          if m["position"] >= base}, "above it in the log")
        # The books count the dead by what the rows count.
        self.assertEqual(self.books()["gone"]["dead"],
                         sum(row["count"] for row in rows))


class DeadLetters(Limited):
    """I30: dead letters are bounded, and never stop intake."""

    def ask(self, hub, path, choice=None):
        """The status and the body."""
        request = urllib.request.Request(
            f"http://127.0.0.1:{hub.port}{path}",
            data=choice and json.dumps(choice).encode(),
            headers={"Content-Type": "application/json"})
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:
                return answer.status, answer.read()
        except urllib.error.HTTPError as e:
            return e.code, e.read()

    def dead(self, hub):
        return json.loads(self.ask(hub, "/v1/targets/a")[1])["dead"]

    def verify(self):
        answer = subprocess.run([case.STAGGER, "store", "verify", self.store],
                                capture_output=True, text=True)
        self.assertEqual(answer.returncode, 0, answer)

    def kill_letters(self, hub, producer, bodies, count, before=0):
        """So many are published, and end as dead letters."""
        for body in itertools.islice(bodies, count):
            producer.post(body)
            self.assertLessEqual(self.size(), QUOTA)
        case.wait_for(lambda: self.dead(hub) == before + count, "all dead")

    def test_intake_goes_on_while_they_fill_their_share(self):
        server = self.leaf(lambda r: 400)
        words = ("--to", f"a={server.url()}", "--quota", "16M")
        hub = self.hub(*words)
        producer = self.kept(hub.producer())
        bodies, sent = numbered_bodies(), 600
        self.kill_letters(hub, producer, bodies, sent)
        self.assertGreater(sent * BODY, 2 * QUOTA)
        self.assertEqual(
            [e["what"] for e in hub.events("dead-letters-filling")],
            ["half", "nine tenths"])
        self.assertEqual(self.ask(hub, "/readyz")[0], 200)
        hub.kill()
        self.verify()
        hub = self.hub(*words)
        self.assertEqual(self.dead(hub), sent, "the books hold")
        producer = self.kept(hub.producer())
        self.kill_letters(hub, producer, bodies, 20, before=sent)
        sent += 20
        case.wait_for(lambda: len(self.rows()) * BODY < QUOTA / 4,
                      "the oldest are evicted")
        rows = self.rows()
        bulk = [row for row in rows if row["why"] == "evicted"]
        whole = [row for row in rows if row["why"] != "evicted"]
        self.assertEqual([(row["target"], row["cause"], row["state"])
                          for row in bulk], [("a", "HTTP_400", "dead")])
        self.assertEqual(bulk[0]["count"] + len(whole), sent)
        self.assertGreater(len(whole) * BODY, QUOTA / 8, "the newest stay")
        self.ask(hub, "/v1/dead-letters/drop", {"all": True})
        case.wait_for(lambda: {e["what"] for e in hub.events(
            "dead-letters-room")} == {"half", "nine tenths"}, "there is room")
        self.assertEqual(self.dead(hub), sent)
        self.assertEqual(hub.stop(), 0)
        self.verify()
        self.assertEqual(self.books()["a"]["dead"], sent)

    def refuse_at_the_end(self, **letters):
        """A hub that evicts nothing, with as many dead letters as fit."""
        path = os.path.join(self.folder, "stagger.yaml")
        with open(path, "w") as file:
            json.dump({
                "listen": {"address": "127.0.0.1:0"},
                "store": {"path": self.store, "quota": "16MiB",
                          "full": "refuse"},
                "targets": [{"name": "a",
                             "url": self.leaf(lambda r: 400).url()}]}, file)
        hub = self.hub(settings=path)
        producer = self.kept(hub.producer())
        bodies, sent = numbered_bodies(), []

        def is_full():
            """Also when the log was trimmed."""
            try:
                sent.append(producer.post(next(bodies)))
            except case.Refused as refused:
                self.check_refusal(refused)
                return (self.dead(hub) == len(sent)
                        and self.ask(hub, "/readyz")[0] == 503)
            self.assertLess(len(sent), 1000, "messages accepted")

        case.wait_for(is_full, "the store is full of dead letters")
        return hub, producer, len(sent)

    def test_where_none_is_evicted_a_drop_makes_room_at_once(self):
        hub, producer, sent = self.refuse_at_the_end()
        self.assertGreater(sent * BODY, QUOTA / 2)
        self.assertEqual(len(self.rows()), sent, "each is there")
        status, body = self.ask(hub, "/readyz")
        self.assertEqual(status, 503)
        self.assertIn(b"the store is full", body)
        producer.post(b"small")  # it fits
        sent += 1
        case.wait_for(lambda: self.dead(hub) == sent, "all dead")
        status, body = self.ask(hub, "/v1/dead-letters/drop",
                                {"all": True})
        self.assertEqual((status, json.loads(body)["letters"]), (200, sent))
        case.wait_for(lambda: self.ask(hub, "/readyz")[0] == 200, "it is ready")
        for _ in range(20):
            producer.post(b"x" * BODY)
        case.wait_for(lambda: self.dead(hub) == sent + 20, "all dead")
        self.assertEqual(hub.stop(), 0)
        self.verify()

    def test_a_copy_that_fails_does_not_stop_intake(self):
        """It is waited for while there is room; then it misses some, and that
        is told."""
        hub = self.hub("--to", f"a={self.leaf(lambda r: 400).url()}",
                       "--quota", "16M", "--dead-letters", "file:/dev/full")
        producer = self.kept(hub.producer())
        bodies = numbered_bodies()
        self.kill_letters(hub, producer, bodies, 100)
        self.assertEqual(len(self.rows()), 100, "more than their share")
        self.kill_letters(hub, producer, bodies, 300, before=100)
        hub.event("dead-letters-filling", what="no copy")
        self.assertEqual(hub.stop(), 0)
        self.verify()

    def test_those_that_ended_go_after_a_day(self):
        """Here by a clock that was set: of the rows, a day is taken away."""
        hub = self.hub("--to", f"a={self.leaf(lambda r: 400).url()}")
        for i in range(5):
            hub.post(b"%d" % i)
        case.wait_for(lambda: self.dead(hub) == 5, "five are dead")
        ids = [row["id"] for row in self.rows()]
        self.ask(hub, "/v1/dead-letters/drop", {"ids": ids[:3]})
        hub.kill()
        with contextlib.closing(sqlite3.connect(self.store)) as db, db:
            db.execute("UPDATE failed_broadcast_logs SET changed_at ="
                       " strftime('%Y-%m-%dT%H:%M:%fZ', changed_at, '-1 day')"
                       " WHERE id < ?", (ids[2],))
        hub = self.hub("--to", f"a={self.leaf(lambda r: 400).url()}")
        case.wait_for(lambda: [row["id"] for row in self.rows()] == ids[2:],
                      "the old ones are gone")
        self.assertEqual(self.dead(hub), 5, "the books hold")
        self.assertEqual(hub.stop(), 0)
        self.verify()


class Receipts(case.ByFile):
    """Of receipts the oldest go where they fill their room."""
    ROOM = (1 << 20) // 80  # rows
    PART = 6000  # messages; each of two targets leaves a receipt

    def publish(self, hub):
        """The CPU time of these, and the id of the last."""
        began, producer = hub.cpu(), self.kept(hub.producer())
        for _ in range(self.PART // 1000):
            ids = producer.post_lines([{"body": "x"}] * 1000)
        self.await_settled(2)
        return hub.cpu() - began, ids[-1]

    def look(self, hub, path):
        with urllib.request.urlopen(f"http://127.0.0.1:{hub.port}{path}",
                                    timeout=leaf.PATIENCE) as answer:
            return answer.read()

    def receipts(self, hub, id):
        """How many each target has, and when the oldest of all came."""
        found = json.loads(self.look(hub, f"/v1/messages/{id}"))
        self.assertEqual(found["receipts"]["state"], "kept")
        return ([len(t["receipts"]) for t in found["targets"]],
                found["receipts"]["since"])

    def await_rows(self, count):
        def rows():
            return self.rows("SELECT count(*) AS all_ FROM receipts")[0]["all_"]
        case.wait_for(lambda: rows() == count, lambda: f"{rows()} receipts")

    def test_the_oldest_go_and_deliveries_go_on(self):
        sink = self.sinks()
        hub = self.start([{"name": name, "url": sink.url("/" + name)}
                          for name in "ab"],
                         receipts={"keep": "1h", "quota": "1MiB"})
        first = hub.post(b"first")
        without, _ = self.publish(hub)
        self.await_rows(2 + 2 * self.PART)
        counts, since = self.receipts(hub, first)
        self.assertEqual(counts, [1, 1])
        for _ in range(2):
            took, last = self.publish(hub)
            self.await_rows(self.ROOM)
            self.assertEqual(self.receipts(hub, first)[0], [0, 0])
            before, (counts, since) = since, self.receipts(hub, last)
            self.assertEqual(counts, [1, 1])
            self.assertGreater(since, before)
            self.assertLess(took, 2 * without + 0.3)
            case.note(self, f"{took:.2f} s of CPU, {without:.2f} with room")
        self.assertIn(b"\nstagger_receipts_dropped_total 0\n",
                      self.look(hub, "/metrics"))
        self.assertEqual(hub.stop(), 0)
        self.assertEqual({b["delivered"] for b in self.books().values()},
                         {1 + 3 * self.PART})
        self.assertEqual(self.rows(), [], "nothing died")


if __name__ == "__main__":
    case.main()
