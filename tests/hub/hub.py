#!/usr/bin/env python3
"""stagger hub from end to end: the real binary, real sockets, a real store."""
import collections
import contextlib
import http.client
import json
import os
import signal
import socket
import sqlite3
import subprocess
import threading
import time
import urllib.request

import case
from leaf import PATIENCE, STAGGER, told


class Hub(case.Case):
    def refuse(self, *arguments, code=2):
        found = subprocess.run([STAGGER, "hub", *arguments],
                               capture_output=True, text=True, timeout=PATIENCE,
                               cwd=self.folder, stdin=subprocess.DEVNULL)
        self.assertEqual((found.returncode, found.stdout), (code, ""),
                         found.stderr)
        self.assertTrue(found.stderr.startswith("stagger hub: "), found.stderr)
        return found.stderr

    # -- delivery

    def test_every_target_gets_every_message_once(self):
        leaves = [self.leaf() for _ in range(3)]
        hub = self.hub(*[word for i, leaf in enumerate(leaves)
                         for word in ("--to", f"leaf{i}={leaf.url()}")])
        sent = {hub.post(f"message {i}".encode()): f"message {i}".encode()
                for i in range(20)}
        with contextlib.closing(hub.producer()) as producer:
            ids = producer.post_lines({"body": f"line {i}", "key": "k"}
                                      for i in range(80))
        sent.update((id, f"line {i}".encode()) for i, id in enumerate(ids))
        for leaf in leaves:
            leaf.wait(100)
        self.assertEqual(hub.stop(), 0)
        for leaf in leaves:
            self.assertEqual(len(leaf.receipts), 100)
            self.assertEqual({r.id: r.body for r in leaf.receipts}, sent)
            self.assertEqual({r.attempt for r in leaf.receipts}, {1})
        for name, books in self.books().items():
            self.assertEqual((name, books["routed"], books["delivered"]),
                             (name, 100, 100))
        self.assertEqual(self.rows(), [])
        self.assertTrue(hub.events("stopped")[0]["clean"])

    def test_a_request_says_which_message_and_attempt_it_is(self):
        leaf = self.leaf()
        hub = self.hub("--to", leaf.url("/in?a=b"), "--policy",
                       "broadcast attempts=7")
        id = hub.post(b"\0\xff\r\n", Content_Type="application/x-thing",
                      Stagger_Key="order-7", X_Source="till")
        receipt = leaf.wait(1)[0]
        self.assertEqual(receipt.body, b"\0\xff\r\n")
        for name, value in {"Stagger-Message": id, "Idempotency-Key": id,
                            "Stagger-Attempt": "1",
                            "Stagger-Attempts-Max": "7",
                            "Stagger-Key": "order-7", "X-Source": "till",
                            "Content-Type": "application/x-thing"}.items():
            self.assertEqual(receipt.headers[name.lower()], [value], name)
        self.assertRegex(id, r"^[0-9a-f]{16}-\d+$")
        hub.stop()

    def test_a_message_that_goes_round_ends_as_a_loop(self):
        """By a leaf that publishes what it gets, as a hub does."""
        hubs = []

        def pass_on(request):
            try:
                hubs[0].post(request.body,
                             Stagger_Hops=request.one("stagger-hops"))
            except case.Refused as refused:
                return refused.status, {}, b"no"
            return 202
        leaf = self.leaf(pass_on)
        hub = self.hub("--to", f"round={leaf.url()}", "--policy",
                       "webhook list=1ms")
        hubs.append(hub)
        hub.post(b"x")
        line = hub.event("attempt-failed", decision="dead")
        self.assertEqual((line["cause"], line["attempt"]), ("LOOP", 1))
        self.assertEqual([r.one("stagger-hops") for r in leaf.receipts],
                         [str(i) for i in range(1, 9)])
        hub.stop()
        row, = self.rows()
        self.assertEqual((row["cause"], row["http_status"], row["category"]),
                         ("LOOP", 508, None))

    def test_a_target_that_is_the_hub_itself_is_refused(self):
        with contextlib.closing(socket.socket()) as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        found = subprocess.run(
            [STAGGER, "hub", "--store", self.store,
             "--listen", f"127.0.0.1:{port}",
             "--to", f"me=http://localhost:{port}/v1/messages"],
            capture_output=True, text=True, timeout=PATIENCE)
        self.assertEqual(found.returncode, 2, found.stderr)
        self.assertIn("target 1 (me): the hub itself listens there",
                      found.stderr)

    def test_large_headers_and_bodies_arrive_whole(self):
        leaf = self.leaf()
        hub = self.hub("--to", leaf.url())
        body = os.urandom(3_000_000)
        value = "v" * 5000
        hub.post(body, X_Large=value)
        receipt = leaf.wait(1)[0]
        self.assertEqual(receipt.body, body)
        self.assertEqual(receipt.one("x-large"), value)
        self.assertIsNone(receipt.one("content-type"))
        self.assertEqual(hub.stop(), 0)

    # -- retries

    def test_a_failure_is_tried_again_after_the_policys_wait(self):
        leaf = self.leaf(lambda r: 503 if r.attempt == 1 else 200)
        hub = self.hub("--to", f"a={leaf.url()}", "--policy",
                       "fixed base=150ms jitter=none attempts=3")
        id = hub.post(b"x")
        first, second = leaf.wait(2)
        self.assertEqual((first.id, second.id), (id, id))
        self.assertEqual((first.attempt, second.attempt), (1, 2))
        self.assertGreaterEqual(second.at - first.at, 0.150)
        self.assertEqual(hub.stop(), 0)
        self.assertEqual(len(leaf.receipts), 2)
        self.assertEqual(self.rows(), [])
        self.assertEqual(self.books()["a"]["delivered"], 1)
        line = hub.events("attempt-failed")[0]
        self.assertEqual((line["target"], line["cause"], line["decision"],
                          line["message"], line["attempt"],
                          line["attempts_max"], line["why"]),
                         ("a", "HTTP_503", "parked", id, 1, 3, "backoff"))
        self.assertAlmostEqual(line["wait_ms"], 150, delta=1)

    def test_a_target_that_wants_three_attempts_a_message_gets_them(self):
        """I26 Each message fails twice, which opens the breaker again and
        again. All times are a fifth of those in use: a minute is 12 s."""
        sink = self.sinks("--reply", "503x2,200")
        hub = self.hub("--to", f"shaky={sink.url()}", "--policy",
                       "broadcast base=200ms breaker=20:40ms-6s budget=none")
        with contextlib.closing(hub.producer()) as producer:
            ids = producer.post_lines([{"body": str(i)} for i in range(100)])
        begun_at = time.monotonic()
        case.wait_for(lambda: sum(r["status"] == 200
                                  for r in sink.receipts()) == 100,
                      "100 messages to be taken")
        self.assertLess(time.monotonic() - begun_at, 12)
        self.assertEqual(hub.stop(), 0)
        receipts = collections.Counter(r["id"] for r in sink.receipts())
        self.assertEqual(receipts, {id: 3 for id in ids})
        self.assertEqual(self.books()["shaky"]["delivered"], 100)
        self.assertEqual(self.rows(), [])
        self.assertTrue(hub.events("breaker-opened"))

    def test_it_waits_as_long_as_the_target_asks(self):
        leaf = self.leaf(lambda r: (429, {"Retry-After": "1"})
                         if r.attempt == 1 else 200)
        hub = self.hub("--to", leaf.url(), "--policy",
                       "fixed base=1ms jitter=none attempts=3")
        hub.post(b"x")
        first, second = leaf.wait(2)
        self.assertGreaterEqual(second.at - first.at, 1)
        self.assertEqual(hub.stop(), 0)
        self.assertEqual(hub.events("attempt-failed")[0]["why"],
                         "server-delay")

    def test_attempts_end_in_a_dead_letter(self):
        leaf = self.leaf(lambda r: 500)
        hub = self.hub("--to", leaf.url(), "--policy",
                       "fixed base=1ms jitter=none attempts=3")
        id = hub.post(b"x")
        hub.event("attempt-failed", decision="dead")
        self.assertEqual(hub.stop(), 0)
        self.assertEqual([r.attempt for r in leaf.receipts], [1, 2, 3])
        row, = self.rows()
        self.assertEqual((row["message_id"], row["payload"], row["attempts"],
                          row["cause"], row["category"], row["why"],
                          row["state"], row["http_status"]),
                         (id, b"x", 3, "HTTP_500", "B", "attempts", "dead",
                          500))

    def test_a_refused_connection_is_a_dead_letter_at_once(self):
        url = self.refused()
        hub = self.hub("--to", f"gone={url}")
        id = hub.post(b"x")
        line = hub.event("attempt-failed", decision="dead")
        self.assertEqual((line["target"], line["cause"], line["message"]),
                         ("gone", "CONNECTION_REFUSED", id))
        self.assertEqual(hub.stop(), 0)
        row, = self.rows()
        self.assertEqual((row["target"], row["target_url"], row["message_id"],
                          row["attempts"], row["cause"], row["category"]),
                         ("gone", url, id, 1, "CONNECTION_REFUSED", "A"))
        self.assertEqual(self.books()["gone"]["dead"], 1)

    def test_a_404_is_a_dead_letter_at_once(self):
        leaf = self.leaf(lambda r: 404)
        hub = self.hub("--to", leaf.url())
        hub.post(b"x")
        hub.event("attempt-failed", decision="dead", cause="HTTP_404")
        self.assertEqual(hub.stop(), 0)
        self.assertEqual(len(leaf.receipts), 1)
        self.assertEqual([(row["cause"], row["category"], row["attempts"])
                          for row in self.rows()], [("HTTP_404", "C", 1)])

    def test_a_dead_target_costs_the_others_nothing(self):
        leaf = self.leaf()
        hub = self.hub("--to", f"gone={self.refused()}", "--to",
                       f"well={leaf.url()}")
        for i in range(50):
            hub.post(b"%d" % i)
        leaf.wait(50)
        line = hub.event("breaker-opened")
        self.assertEqual((line["target"], line["cause"]),
                         ("gone", "CONNECTION_REFUSED"))
        self.assertEqual(hub.stop(), 0)
        books = self.books()
        self.assertEqual(books["well"]["delivered"], 50)
        # What was not tried is held in the log; what was, is a dead letter.
        self.assertEqual((books["gone"]["routed"], books["gone"]["dead"]),
                         (3, 3))
        self.assertEqual(len(self.rows()), 3)

    def test_a_restart_of_a_target_costs_five_messages_at_most(self):
        """At 20 a second and 4 s away; it goes on within 4 s of the return."""
        leaf = self.leaf()
        hub = self.hub("--to", f"a={leaf.url()}")
        posted = []
        with contextlib.closing(hub.producer()) as producer:
            def post_until(end_at):
                while time.monotonic() < end_at:
                    posted.append(producer.post(b"%d" % len(posted)))
                    time.sleep(0.05)

            post_until(time.monotonic() + 0.5)
            leaf.close()
            post_until(time.monotonic() + 4)
            before = len(leaf.receipts)
            back_at = time.monotonic()
            leaf.open()
            while len(leaf.receipts) == before:
                post_until(time.monotonic() + 0.05)
            self.assertLess(time.monotonic() - back_at, 4.5)
        leaf.wait(len(posted) - 5)
        self.assertEqual(hub.stop(), 0)
        books = self.books()["a"]
        self.assertLessEqual(books["dead"], 5)
        self.assertEqual(books["delivered"] + books["dead"] + books["parked"],
                         len(posted))

    def test_what_is_held_for_too_long_is_a_range_row(self):
        hub = self.hub("--to", f"gone={self.refused()}",
                       "--shed-after", "10ms", "--policy", "broadcast breaker=2:30s")
        with contextlib.closing(hub.producer()) as producer:
            producer.post_lines([{"body": str(i)} for i in range(10)])
        self.await_settled(1)
        self.assertEqual(hub.stop(), 0)
        self.assertEqual(hub.events("shedding")[0]["target"], "gone")
        *tried, left = self.rows()
        self.assertEqual([row["payload"] for row in tried], [b"0", b"1"])
        self.assertEqual((left["count"], left["payload"],
                          left["last_position"] - left["position"]),
                         (8, None, 7))
        self.assertEqual(self.books()["gone"]["dead"], 10)

    def test_a_recovery_sends_what_never_reached_the_target_again(self):
        leaf = self.leaf(lambda r: 400 if r.body == b"bad" else 200)
        settings = os.path.join(self.folder, "hub.yaml")
        with open(settings, "w") as file:
            json.dump({"store": {"path": self.store},
                       "listen": {"address": "127.0.0.1:0"},
                       "targets": [{"name": "a", "url": leaf.url(),
                                    "policy": "broadcast breaker=2:10ms",
                                    "shed-after": "10ms",
                                    "replay": "on-recovery"}]}, file)
        hub = self.hub(settings=settings)
        posted = {hub.post(b"bad")}
        hub.event("attempt-failed")
        leaf.close()
        with contextlib.closing(hub.producer()) as producer:
            posted.update(producer.post_lines(
                [{"body": str(i)} for i in range(10)]))
            hub.event("breaker-opened")
            hub.event("shedding")
            # A restart in the outage does not spend them.
            self.assertEqual(hub.stop(), 0)
        hub = self.hub(settings=settings)
        with contextlib.closing(hub.producer()) as producer:
            posted.update(producer.post_lines([{"body": "later"}] * 3))
            hub.event("breaker-opened")
            leaf.open()
            posted.add(producer.post(b"last"))
        receipts = leaf.wait(len(posted))
        told = hub.event("replayed-on-recovery")
        with urllib.request.urlopen(f"http://127.0.0.1:{hub.port}/v1/replays") as answer:
            replays = json.load(answer)["replays"]
        self.assertIn(("a", "done", told["messages"]),
                      [(replay["recovered"], replay["state"],
                        replay["messages"]) for replay in replays])
        self.assertEqual(hub.stop(), 0)
        self.assertEqual({r.id for r in receipts}, posted)
        self.assertEqual(len(leaf.receipts), len(posted))
        # What the target has refused stays dead.
        dead = self.rows("SELECT cause FROM failed_broadcast_logs"
                         " WHERE state = 'dead'")
        self.assertEqual([row["cause"] for row in dead], ["HTTP_400"])

    def test_a_letter_that_fails_again_is_not_sent_a_third_time(self):
        """The target takes one message whenever it comes back, and is gone
        again: its circuit closes and opens, and letters fail in their replay."""
        def take_one(connection, request):
            connection.send(told(200))
            leaf.close()
        leaf = self.leaf(lambda r: 200 if is_well else take_one)
        is_well = False
        hub = self.hub(settings=self.put("hub.yaml", json.dumps(
            {"store": {"path": self.store},
             "listen": {"address": "127.0.0.1:0"},
             "targets": [{"name": "a", "url": leaf.url(),
                          "policy": "none breaker=3:10ms",
                          "replay": "on-recovery"}]})))
        leaf.close()
        producer = self.kept(hub.producer())
        posted = set()

        def post(count):
            posted.update(producer.post_lines([{"body": "x"}] * count))
        post(3)
        for _ in range(6):
            hub.event("breaker-opened")
            post(1)
            leaf.open()
            hub.event("breaker-closed")
            post(3)
        hub.event("breaker-opened")
        is_well = True
        leaf.open()
        post(1)
        hub.event("breaker-closed")

        def letters():
            found = collections.defaultdict(list)
            for row in self.rows("SELECT message_id, state, cause FROM "
                                 "failed_broadcast_logs ORDER BY id"):
                found[row["message_id"]].append((row["state"], row["cause"]))
            return found
        refused = "CONNECTION_REFUSED"
        case.wait_for(lambda: [("dead", refused)] not in letters().values(),
                      lambda: f"each is sent again: {letters()}")
        self.await_settled(1)
        self.assertEqual(hub.stop(), 0)
        receipts = collections.Counter(r.id for r in leaf.receipts)
        for id in posted:
            self.assertLessEqual(receipts[id], 1)
            states = [state for state, _ in letters()[id]]
            self.assertIn(states, ([], ["dead"], ["replayed"],
                                   ["replayed", "dead"]))
            self.assertTrue(receipts[id] == 1 or states[-1] == "dead")
        again = [id for id, all in letters().items()
                 if all == [("replayed", refused), ("dead", refused)]]
        self.assertGreater(len(again), 0)
        case.note(self, f"{len(again)} of {len(posted)} failed again")

    def test_a_dead_letter_of_an_outage_is_the_probe_that_was_asked_for(self):
        """Where no message waits; and the others follow when it has closed the
        circuit."""
        leaf = self.leaf()
        settings = os.path.join(self.folder, "hub.yaml")
        with open(settings, "w") as file:
            json.dump({"store": {"path": self.store},
                       "listen": {"address": "127.0.0.1:0"},
                       "targets": [{"name": "a", "url": leaf.url(),
                                    "policy": "none breaker=3:1h",
                                    "replay": "on-recovery"}]}, file)
        hub = self.hub(settings=settings)
        leaf.close()
        posted = {hub.post(str(i).encode()) for i in range(3)}
        hub.event("breaker-opened")
        self.await_settled(1)
        leaf.open()
        ask = urllib.request.Request(
            f"http://127.0.0.1:{hub.port}/v1/targets/a/probe", method="POST")
        with urllib.request.urlopen(ask) as answer:
            self.assertEqual(json.load(answer)["parked"], 1)
        hub.event("breaker-closed")
        self.assertEqual({r.id for r in leaf.wait(3)}, posted)
        self.assertEqual(hub.event("replayed-on-recovery")["letters"], 2)
        self.assertEqual(hub.stop(), 0)

    def test_a_target_that_only_fails_is_disabled(self):
        well = threading.Event()
        leaf = self.leaf(lambda r: 200 if well.is_set() else 404)
        other = self.leaf(lambda r: 404)
        owner = self.leaf(lambda r: 503 if len(owner.receipts) == 1 else 200)
        settings = os.path.join(self.folder, "hub.yaml")
        with open(settings, "w") as file:
            json.dump({"store": {"path": self.store},
                       "listen": {"address": "127.0.0.1:0"},
                       "targets": [{"name": "a", "url": leaf.url(),
                                    "owner": owner.url("/owner"),
                                    "disable-after": "5d"},
                                   {"name": "new", "url": other.url(),
                                    "disable-after": "5d"}]}, file)
        hub = self.hub(settings=settings)
        hub.post(b"x")
        self.await_settled(2)
        self.assertEqual(hub.stop(), 0)
        # Its first failure was long ago.
        with contextlib.closing(sqlite3.connect(self.store)) as db:
            db.execute("UPDATE lanes SET failing_since = ? WHERE name = 'a'",
                       (int((time.time() - 6 * 86400) * 1000),))
            db.commit()
        hub = self.hub(settings=settings)
        with contextlib.closing(hub.producer()) as producer:
            for i in range(10):
                producer.post(b"%d" % i)
            told = hub.event("target-disabled")
            self.assertEqual((told["target"], told["cause"]), ("a", "HTTP_404"))
            letter = json.loads(owner.wait(2)[-1].body)
            self.assertEqual([(a["alert"], a["target"], a["cause"])
                              for a in letter["alerts"]],
                             [("disabled", "a", "HTTP_404")])
            well.set()
            producer.post(b"waits")
        other.wait(12)
        self.assertEqual(hub.stop(), 0)
        hub = self.hub(settings=settings)  # it is disabled still
        self.assertEqual(len(leaf.receipts), 11)
        connection = http.client.HTTPConnection("127.0.0.1", hub.port,
                                                timeout=PATIENCE)
        connection.request("GET", "/v1/targets")
        target = json.loads(connection.getresponse().read())["targets"][0]
        self.assertEqual((target["state"], target["is_disabled"]),
                         ("paused", True))
        connection.request("POST", "/v1/targets/a/resume")
        target = json.loads(connection.getresponse().read())
        self.assertFalse(target["is_disabled"])
        connection.close()
        self.assertEqual(leaf.wait(12)[-1].body, b"waits")
        self.assertEqual(hub.stop(), 0)

    # -- receipts for other programs

    def copying(self, leaf, **more):
        path = os.path.join(self.folder, "receipts.jsonl")
        settings = os.path.join(self.folder, "hub.yaml")
        with open(settings, "w") as file:
            json.dump({"store": {"path": self.store},
                       "listen": {"address": "127.0.0.1:0"},
                       "targets": [{"name": "a", "url": leaf.url(),
                                    "policy": "fixed base=20ms breaker=none"}],
                       "receipts": {"copy": "file:receipts.jsonl", **more}},
                      file)
        return path, settings

    def test_receipts_are_copied_to_a_file_that_may_be_rotated(self):
        leaf = self.leaf(lambda r: 503 if r.attempt == 1 else 200)
        path, settings = self.copying(leaf)
        hub = self.hub(settings=settings)
        ids = [hub.post(b"x")]
        case.wait_for(lambda: os.path.getsize(path) > 0, "a batch")
        os.rename(path, path + ".1")
        ids.append(hub.post(b"y"))
        leaf.wait(4)
        self.assertEqual(hub.stop(), 0)  # what is gathered is written
        for id, name in zip(ids, (path + ".1", path)):
            with open(name) as file:
                lines = [json.loads(line) for line in file]
            self.assertEqual(
                [(r["message_id"], r["target"], r["attempt"], r["http_status"],
                  r["cause"]) for r in lines],
                [(id, "a", 1, 503, "HTTP_503"), (id, "a", 2, 200, None)])
            for r in lines:
                self.assertGreater(r["took_ms"], 0)
                self.assertRegex(r["ended_at"], r"^20\d\d-.*Z$")
        self.assertEqual(os.stat(path).st_mode & 0o777, 0o600)
        # The store was to have none.
        self.assertEqual(self.rows("SELECT * FROM receipts"), [])

    def test_receipts_that_cannot_be_copied_are_told_and_counted(self):
        leaf = self.leaf()
        path, settings = self.copying(leaf, keep="1h")
        hub = self.hub(settings=settings)
        os.unlink(path)
        os.mkdir(path)
        hub.post(b"x")
        self.assertEqual(hub.event("receipts-uncopied")["to"], path)
        os.rmdir(path)
        hub.post(b"y")
        hub.event("receipts-copied")
        text = urllib.request.urlopen(
            f"http://127.0.0.1:{hub.port}/metrics").read().decode()
        self.assertIn("\nstagger_receipts_copied_total 1\n", text)
        self.assertIn("\nstagger_receipts_uncopied_total 1\n", text)
        self.assertEqual(hub.stop(), 0)
        self.assertEqual(len(self.rows("SELECT * FROM receipts")), 2)
        os.unlink(path)
        os.mkdir(path)
        refused = subprocess.run([STAGGER, "hub", "-c", settings], text=True,
                                 capture_output=True, timeout=PATIENCE)
        self.assertEqual(refused.returncode, 2, refused.stderr)
        self.assertIn("receipts.copy", refused.stderr)

    # -- the end and the next start

    def test_a_restart_goes_on_where_it_was(self):
        is_well = threading.Event()
        leaf = self.leaf(lambda r: 200 if is_well.is_set() else 503)
        arguments = ("--to", f"a={leaf.url()}", "--policy",
                     "fixed base=300ms jitter=none attempts=9 breaker=none")
        hub = self.hub(*arguments)
        ids = [hub.post(b"%d" % i) for i in range(5)]
        leaf.wait(5)
        self.assertEqual(hub.stop(), 0)
        self.assertEqual(self.books()["a"]["delivered"], 0)
        is_well.set()
        before = len(leaf.receipts)
        hub = self.hub(*arguments)
        ids.append(hub.post(b"5"))
        receipts = leaf.wait(before + 6)[before:]
        self.assertEqual(hub.stop(), 0)
        self.assertEqual({r.id for r in receipts}, set(ids))
        for receipt in receipts:
            self.assertEqual(receipt.body, b"%d" % ids.index(receipt.id))
            if receipt.id != ids[5]:
                self.assertGreaterEqual(receipt.attempt, 2)
        self.assertEqual(len(leaf.receipts), before + 6)
        self.assertEqual(self.books()["a"]["delivered"], 6)

    def test_a_kill_loses_nothing(self):
        is_well = threading.Event()
        self.addCleanup(is_well.set)
        leaf = self.leaf(lambda r: is_well.wait(PATIENCE) and 200)
        hub = self.hub("--to", f"a={leaf.url()}")
        ids = {hub.post(b"%d" % i) for i in range(5)}
        leaf.wait(1)  # a new target is tried by one at first
        hub.kill()
        is_well.set()
        hub = self.hub("--to", f"a={leaf.url()}")
        first, *others = leaf.wait(6)
        self.assertEqual({r.id for r in others}, ids)
        self.assertEqual(hub.stop(), 0)
        self.assertEqual(len(leaf.receipts), 6)
        self.assertEqual(self.books()["a"]["delivered"], 5)

    def test_an_attempt_that_outlasts_the_drain_is_cut(self):
        is_over = threading.Event()
        self.addCleanup(is_over.set)
        leaf = self.leaf(lambda r: is_over.wait(PATIENCE) and 200)
        hub = self.hub("--to", f"a={leaf.url()}", "--drain", "50ms")
        id = hub.post(b"x")
        leaf.wait(1)
        self.assertEqual(hub.stop(signal.SIGINT), 3)
        self.assertFalse(hub.events("stopped")[0]["clean"])
        is_over.set()
        hub = self.hub("--to", f"a={leaf.url()}")
        self.assertEqual([r.id for r in leaf.wait(2)], [id, id])
        self.assertEqual(hub.stop(), 0)

    def test_an_attempt_within_the_drain_time_ends_well(self):
        is_over = threading.Event()
        self.addCleanup(is_over.set)
        leaf = self.leaf(lambda r: is_over.wait(PATIENCE) and 200)
        hub = self.hub("--to", f"a={leaf.url()}")
        hub.post(b"x")
        leaf.wait(1)
        hub.process.send_signal(signal.SIGTERM)
        hub.event("stopping")
        is_over.set()
        self.assertEqual(hub.wait(), 0)
        self.assertEqual(self.books()["a"]["delivered"], 1)

    def test_a_second_signal_ends_it_at_once(self):
        is_over = threading.Event()
        self.addCleanup(is_over.set)
        leaf = self.leaf(lambda r: is_over.wait(PATIENCE) and 200)
        hub = self.hub("--to", leaf.url())
        hub.post(b"x")
        leaf.wait(1)
        hub.process.send_signal(signal.SIGTERM)
        hub.event("stopping")
        self.assertEqual(hub.stop(signal.SIGINT), 130)

    def test_a_target_that_is_not_named_any_more_is_kept(self):
        one, other = self.leaf(), self.leaf()
        hub = self.hub("--to", f"one={one.url()}", "--to",
                       f"other={other.url()}")
        hub.post(b"0")
        one.wait(1), other.wait(1)
        self.assertEqual(hub.stop(), 0)
        hub = self.hub("--to", f"one={one.url()}")
        self.assertEqual(hub.events("target-unknown")[0]["target"], "other")
        id = hub.post(b"1")
        one.wait(2)
        self.assertEqual(hub.stop(), 0)
        self.assertEqual(len(other.receipts), 1)
        hub = self.hub("--to", f"one={one.url()}", "--to",
                       f"other={other.url('/moved')}")
        self.assertEqual(other.wait(2)[1].id, id)
        self.assertEqual(hub.stop(), 0)
        self.assertEqual(len(one.receipts), 2)

    def test_a_store_that_fails_ends_it_and_a_restart_recovers(self):
        is_over = threading.Event()
        self.addCleanup(is_over.set)
        leaf = self.leaf(lambda r: is_over.wait(2 * PATIENCE) and 200)
        hub = self.hub("--to", f"a={leaf.url()}", "--policy",
                       "broadcast attempt-timeout=none")
        ids = {hub.post(b"x" * 50000) for _ in range(20)}
        os.rename(self.store, self.store + ".aside")
        with self.assertRaises((case.Refused, OSError,
                                http.client.HTTPException)):
            for _ in range(100):
                ids.add(hub.post(b"x" * 50000))
        self.assertEqual(hub.wait(), 4)
        os.rename(self.store + ".aside", self.store)
        self.assertIn(self.store, hub.events("store-broken")[0]["detail"])
        before = len(leaf.receipts)
        is_over.set()
        hub = self.hub("--to", f"a={leaf.url()}")
        with leaf.changed:
            self.assertTrue(leaf.changed.wait_for(
                lambda: ids <= {r.id for r in leaf.receipts[before:]},
                PATIENCE))
        self.assertEqual(hub.stop(), 0)

    # -- what it refuses

    def test_options_that_cannot_be_used_are_told(self):
        to = ("--to", "http://127.0.0.1:9/")
        for arguments, words in (
                (("--to", "ftp://x/"), "target 1: url: it does not begin"),
                ((*to, "--to", "x=nothing"), "target 2 (x): url"),
                (("--to", "http://u:secret@x/"), "password"),
                (("--to", "bad name=http://127.0.0.1/"), "bad name"),
                ((*to, *to), "two targets have this name"),
                (("--to", "a=http://x/", "--to", "a=http://y/"),
                 "two targets have this name"),
                ((*to, "--policy", "attempts=0"), "attempts=0"),
                ((*to, "--memory", "1M"), "8M"),
                ((*to, "--memory", "12Q"), "12Q"),
                ((*to, "--quota", "1"), "16M"),
                ((*to, "--drain", "1"), "like 10s"),
                ((*to, "--retention", "1s"), "1m"),
                ((*to, "--shed-after", "long"), "10m"),
                ((*to, "--rate", "5"), "100/s"),
                ((*to, "--order", "any"), "strict"),
                ((*to, "--in-flight", "0"), "10000"),
                ((*to, "--from", "file"), "none of them"),
                ((*to, "--from", "-"), "stagger send --lines"),
                ((*to, "--from", "stdin"), "stagger send --lines"),
                ((*to, "--from", "kafka"), "brokers"),
                ((*to, "--from", "kafka://h:1"), "no topic"),
                ((*to, "--from", "kafka://h:0/t"), "no broker"),
                ((*to, "--from", "kafka://h/t?g=1"), "?group="),
                ((*to, "--store", "postgres://h/d"), "--from kafka://"),
                ((*to, "--dead-letters", "kafka:t"), "--from kafka://"),
                ((*to, "--store", "postgres://u:p@h/d"), ".pgpass"),
                ((*to, "--dead-letters", "x"), "file:"),
                ((*to, "--log", "xml"), "logfmt"),
                ((*to, "--listen", "somewhere"), "somewhere"),
                ((*to, "--listen", "0.0.0.0:0"), "token"),
                ((*to, "word"), "word"),
        ):
            with self.subTest(arguments=arguments):
                found = self.refuse(*arguments)
                self.assertIn(words, found)
                self.assertNotIn("secret", found)

    def test_a_port_or_a_store_in_use_is_told(self):
        leaf = self.leaf()
        hub = self.hub("--to", leaf.url())
        words = self.refuse("--to", leaf.url(), "--listen", "127.0.0.1:0",
                            "--store", self.store, code=4)
        self.assertIn(self.store, words)
        words = self.refuse("--to", leaf.url(), "--listen",
                            f"127.0.0.1:{hub.port}", "--store", "other.db",
                            code=4)
        self.assertIn(str(hub.port), words)
        self.assertEqual(hub.stop(), 0)


if __name__ == "__main__":
    case.main()
