"""A hub that reads topics of Kafka, on librdkafka's mock cluster."""
import collections
import datetime
import http.client
import json
import os
import re
import signal
import subprocess
import threading
import urllib.request

import case
import kafka_case
from case import wait_for
from kafka_case import ids
from leaf import PATIENCE, STAGGER


def lines(count, word="m"):
    return [f"{word}{i}".encode() for i in range(count)]


UNKNOWN_TOPIC = 3  # of Kafka's protocol


class Kafka(kafka_case.Case):
    # -- messages

    def test_every_record_goes_to_every_leaf_once(self):
        broker = self.mock(t=4)
        broker.produce("t", {p: lines(25, f"p{p}-") for p in range(4)})
        a, b, c = (self.leaf() for _ in range(3))
        watcher = self.watch(broker, "t", 4)
        hub = self.hub(broker, "t", *(f"{n}={x.url()}" for n, x in
                                      zip("abc", (a, b, c))))
        for leaf in a, b, c:
            leaf.wait(100)
        watcher.wait(dict.fromkeys(range(4), 25))
        self.assertEqual(hub.stop(), 0)
        expected = {f"t.{p}.{i}": f"p{p}-{i}".encode()
                  for p in range(4) for i in range(25)}
        for leaf in a, b, c:
            self.assertEqual({r.id: r.body for r in leaf.receipts}, expected)
            self.assertEqual(len(leaf.receipts), 100)
        self.assertEqual({n: book["delivered"]
                          for n, book in self.totals().items()},
                         dict.fromkeys("abc", 100))

    def totals(self, store=None):
        """The books of each lane over all partitions; each balances."""
        all_books = collections.defaultdict(collections.Counter)
        for row in self.rows(
                "SELECT name, value AS cursor FROM cursors, json_each(lanes), "
                "lanes WHERE number = json_each.key", store=store):
            book = json.loads(row["cursor"])
            for name in ("routed", "delivered", "dead", "cancelled", "parked"):
                all_books[row["name"]][name] += book.get(name, 0)
        for name, book in all_books.items():
            self.assertEqual(book["routed"],
                             book["delivered"] + book["dead"]
                             + book["cancelled"] + book["parked"],
                             f"I17: the books of {name}: {book}")
        return all_books

    def test_key_and_headers_go_on_through_the_list(self):
        broker = self.mock(t=1)
        broker.produce("t", {0: [b"k1:body"]}, "-K", ":", "-H", "X-Kind=paid",
                       "-H", "Secret=no", "-H", "Content-Type=text/x")
        a = self.leaf()
        self.hub(broker, "t", f"a={a.url()}")
        r = a.wait(1)[0]
        self.assertEqual(r.body, b"body")
        self.assertEqual(r.one("stagger-key"), "k1")
        self.assertEqual(r.one("x-kind"), "paid")
        self.assertEqual(r.one("content-type"), "text/x")
        self.assertIsNone(r.one("secret"))
        self.assertEqual(r.one("idempotency-key"), "t.0.0")

    def test_headers_that_cannot_be_sent_are_told_or_a_dead_letter(self):
        broker = self.mock(t=1)
        bad = ("-H", "X-Bad=a\x01b", "-H", "X-Good=yes", "-H", "Other=\x02")
        broker.produce("t", {0: [b"one"]}, *bad)
        broker.produce("t", {0: [b"two"]}, "-H", "X-Long=" + "x" * 17000)
        broker.produce("t", {0: [b"three"]}, "-H", "X-Good=yes")
        a, b = self.leaf(), self.leaf()
        hub = self.hub(broker, "t", f"a={a.url()}", group="drops")
        a.wait(3)
        self.assertEqual({r.body: r.one("x-good") for r in a.receipts},
                         {b"one": "yes", b"two": None, b"three": "yes"})
        line = hub.event("headers-lost")
        self.assertEqual((line["topic"], line["partition"], line["position"],
                          line["headers"]), ("t", 0, 0, 1))
        self.await_metric(hub, "stagger_kafka_headers_lost_total", 2)
        hub = self.hub_of(f"""
source: "{broker.url('t', group='refuses')}"
kafka: {{headers-lost: dead-letter}}
store: {{path: other.db}}
listen: {{address: 127.0.0.1:0}}
targets: [{{name: b, url: "{b.url()}"}}]
""")
        b.wait(1)
        found = wait_for(
            lambda: [d for d in [self.call(hub, "/v1/dead-letters")
                                 ["dead_letters"]] if len(d) == 2], "two")[0]
        self.assertEqual({(d["message_id"], d["cause"]) for d in found},
                         {("t.0.0", "INVALID"), ("t.0.1", "INVALID")})
        self.assertEqual(hub.stop(), 0)
        self.assertEqual([r.body for r in b.receipts], [b"three"])
        self.assertEqual({(bytes(r["payload"]), r["detail"])
                          for r in self.rows(
                              store=os.path.join(self.folder, "other.db"))},
                         {(b"one", "1 of its headers cannot be sent"),
                          (b"two", "1 of its headers cannot be sent")})

    def test_a_record_has_times_of_its_own(self):
        """Those of other producers may be wrong: then nobody knows when."""
        broker = self.mock(t=1)
        broker.produce("t", {0: [b"later"]}, "-H", "Stagger-Not-Before=9s")
        broker.produce("t", {0: [b"over"]}, "-H",
                       "Stagger-Expires=2020-01-01T00:00:00Z")
        broker.produce("t", {0: [b"wrong"]}, "-H", "Stagger-Expires=soon")
        broker.produce("t", {0: [b"far"]}, "-H", "Stagger-Not-Before=31d")
        broker.produce("t", {0: [b"twice"]}, "-H", "Stagger-Expires=2020-01-01T00:00:00Z",
                       "-H", "stagger-expires=2099-01-01T00:00:00Z")
        broker.produce("t", {0: [b"lower"]}, "-H",
                       "stagger-expires=2020-01-01T00:00:00Z")
        broker.produce("t", {0: [b"first"]}, "-H",
                       "Stagger-Expires=1970-01-01T00:00:00Z")
        broker.produce("t", {0: [b"now"]})
        a = self.leaf()
        hub = self.hub(broker, "t", f"a={a.url()}")
        self.assertEqual([r.body for r in a.wait(2)], [b"now", b"later"])
        wait_for(lambda: not self.rows("SELECT * FROM parked"), "all has ended")
        self.assertEqual(hub.stop(), 0)
        unread = "its Stagger-Not-Before or Stagger-Expires cannot be read"
        self.assertEqual(
            {(bytes(r["payload"]), r["cause"], r["headers"], r["detail"])
             for r in self.rows()},
            {(b"over", "MESSAGE_EXPIRED",
              "Stagger-Expires: 2020-01-01T00:00:00.000Z\r\n", None),
             (b"lower", "MESSAGE_EXPIRED",
              "Stagger-Expires: 2020-01-01T00:00:00.000Z\r\n", None),
             (b"first", "MESSAGE_EXPIRED",
              "Stagger-Expires: 1970-01-01T00:00:00.000Z\r\n", None),
             (b"twice", "INVALID",
              "Stagger-Expires: ? 2099-01-01T00:00:00Z\r\n", unread),
             (b"wrong", "INVALID", "Stagger-Expires: ? soon\r\n", unread),
             (b"far", "INVALID", "Stagger-Not-Before: ? 31d\r\n", unread)})

    def test_a_dead_letter_in_a_topic_is_the_record_that_it_was(self):
        """Its key, its headers, its partition: also of one that was parked over
        a restart, and of one that was replayed."""
        broker = self.mock(**{"t": 4, "t.dead": 4})
        key, long_key = b"\x01\xff\x80k", b"\x02" * 300
        headers = ("-H", "X-Bad=a\x01b", "-H", "Other=1", "-H", "Other=2",
                   "-H", "None", "-H", "X-Good=yes")
        own = [b"X-Bad=a\x01b", b"Other=1", b"Other=2", b"None=NULL",
               b"X-Good=yes"]
        a = self.leaf(lambda r: 503 if r.body == b"parked" and r.attempt == 1
                      else 404)
        more = "dead-letters: {copy: kafka:t.dead}"
        slow = "policy: fixed base=4s jitter=none attempts=5"
        broker.produce("t", {3: [key + b"::parked"]}, "-K::", *headers)
        hub = self.hub(broker, "t", f"a={a.url()}", more=more, defaults=slow)
        wait_for(lambda: self.rows("SELECT * FROM parked"), "a parked row")
        self.assertEqual(hub.stop(), 0)
        hub = self.hub(broker, "t", f"a={a.url()}", more=more, defaults=slow)
        broker.produce("t", {1: [long_key + b"::long"]}, "-K::", *headers)
        broker.produce("t", {2: [b"k1::text"]}, "-K::")
        broker.produce("t", {2: [b"::empty"]}, "-K::")
        broker.produce("t", {0: [b"none"], 1: [b"none"]}, "-H", "X-A=1")

        def judge(count):
            wait_for(lambda: len(self.copies(broker)) == count, lambda:
                     f"{count} copies, not {self.copies(broker)}")
            found = self.copies(broker)
            for partition, k, value, given, _ in found:
                self.assertIn((partition, k, given), [
                    (3, key, own), (1, long_key, own), (2, b"k1", []),
                    (2, b"", []), (0, None, [b"X-A=1"]), (1, None, [b"X-A=1"])])
            return found
        found = judge(6)
        self.assertEqual({c[2] for c in found},
                         {b"parked", b"long", b"text", b"empty", b"none"})
        letter, = [c[4]["stagger-dead-letter-id"] for c in found
                   if c[2] == b"parked"]
        whole = self.call(hub, f"/v1/dead-letters/{letter}")
        self.assertEqual(whole["key"], "base64:Af+Aaw==")
        self.assertEqual(whole["source_key_base64"], "Af+Aaw==")
        shown = self.dead("show", letter, "--json")
        self.assertEqual(json.loads(shown)["source_key_base64"], "Af+Aaw==")
        self.assertIn("\nKey of the record, 4 bytes\n  00000000  01 ff 80 6b",
                      self.dead("show", letter))
        at = f"http://127.0.0.1:{hub.port}"
        subprocess.run([STAGGER, "dead", "replay", "--hub", at, "--yes",
                        "--id", letter], check=True, timeout=PATIENCE,
                       capture_output=True)
        # The row was replayed, and another one is dead.
        found = [c for c in judge(8) if c[0] == 3]
        self.assertEqual([(c[2], c[4]["stagger-state"]) for c in found],
                         [(b"parked", "dead"), (None, "replayed"),
                          (b"parked", "dead")])
        self.assertEqual(found[2][4]["stagger-replay"], "1")
        self.assertEqual({r.one("stagger-key") for r in a.receipts
                          if r.body == b"parked"}, {"base64:Af+Aaw=="})
        self.assertEqual(hub.stop(), 0)

    def copies(self, broker):
        """Of dead letters: partition, key, value, the record's headers, and a
        dictionary of ours."""
        def of(headers, are_ours):
            return [h for h in headers if h.startswith(b"stagger-") == are_ours]
        return [(partition, key, value, of(headers, False),
                 dict(h.decode().split("=", 1) for h in of(headers, True)))
                for partition, key, value, headers in broker.records("t.dead")]

    def dead(self, *words):
        return subprocess.run(
            [STAGGER, "dead", *words, "--store",
             os.path.join(self.folder, "hub.db")], text=True, check=True,
            timeout=PATIENCE, capture_output=True).stdout

    def test_a_key_is_an_order_where_a_target_wants_one(self):
        broker = self.mock(t=2)
        broker.produce("t", {p: [f"k{i % 3}:{p}-{i}".encode()
                                 for i in range(60)] for p in range(2)},
                       "-K", ":")
        a = self.leaf(lambda r: 503 if r.attempt == 1 and r.body[-1:] == b"5"
                      else 200)
        self.hub(broker, "t", f"a={a.url()}",
                 defaults="order: key, policy: fixed base=10ms attempts=5")
        def delivered():
            with a.changed:
                return [r for r in a.receipts
                        if r.attempt > 1 or r.body[-1:] != b"5"]
        wait_for(lambda: len(delivered()) >= 120, "all of them")
        seen = collections.defaultdict(list)
        for r in delivered():
            partition, number = map(int, r.body.split(b"-"))
            seen[partition, r.one("stagger-key")].append(number)
        for key, numbers in seen.items():
            self.assertEqual(numbers, sorted(numbers), key)

    def test_a_target_chooses_its_topics(self):
        broker = self.mock(orders=2, refunds=1)
        broker.produce("orders", {0: lines(3, "o"), 1: lines(3, "o")})
        broker.produce("refunds", {0: lines(4, "r")})
        a, b, c = (self.leaf() for _ in range(3))
        hub = self.hub_of(f"""
source: kafka
kafka: {{brokers: [{broker.addresses.replace(',', ', ')}],
         topics: [orders, refunds], group: hub, start: earliest}}
store: {{path: hub.db}}
listen: {{address: 127.0.0.1:0}}
targets:
  - {{name: a, url: "{a.url()}"}}
  - {{name: b, url: "{b.url()}", topics: refunds}}
  - {{name: c, url: "{c.url()}", topics: [orders]}}
""")
        a.wait(10), b.wait(4), c.wait(6)
        self.assertEqual(hub.stop(), 0)
        self.assertEqual(len(a.receipts), 10)
        self.assertEqual({r.id for r in b.receipts},
                         {f"refunds.0.{i}" for i in range(4)})
        self.assertEqual({r.id.rsplit(".", 1)[0] for r in c.receipts},
                         {"orders.0", "orders.1"})

    def test_a_record_without_a_value_is_skipped_or_sent(self):
        broker = self.mock(t=1)
        broker.produce("t", {0: [b"k:one", b"k:", b"k:two"]}, "-K", ":", "-Z")
        a, b = self.leaf(), self.leaf()
        watcher = self.watch(broker, "t", 1, group="skips")
        self.hub(broker, "t", f"a={a.url()}", group="skips")
        watcher.wait({0: 3})
        self.assertEqual({r.body for r in a.wait(2)}, {b"one", b"two"})
        self.hub_of(f"""
source: "{broker.url('t', group='sends')}"
kafka: {{tombstones: send}}
store: {{path: other.db}}
listen: {{address: 127.0.0.1:0}}
targets: [{{name: b, url: "{b.url()}"}}]
""")
        self.assertEqual({r.id: r.body for r in b.wait(3)},
                         {"t.0.0": b"one", "t.0.1": b"", "t.0.2": b"two"})

    def test_a_message_that_is_too_large_is_a_dead_letter_of_each(self):
        broker = self.mock(t=1)
        # A thirty-second of 8 MiB is 256 KiB.
        broker.produce("t", {0: [b"small", b"x" * (300 << 10), b"last"]})
        a, b = self.leaf(), self.leaf()
        watcher = self.watch(broker, "t", 1)
        hub = self.hub(broker, "t", f"a={a.url()}", f"b={b.url()}",
                       options=["--memory", "8M"])
        watcher.wait({0: 3})
        self.assertEqual(hub.stop(), 0)
        for leaf in a, b:
            self.assertEqual({r.body for r in leaf.receipts},
                             {b"small", b"last"})
        rows = self.rows()
        self.assertEqual([r["cause"] for r in rows], ["TOO_LARGE"] * 2)
        self.assertTrue(hub.events("message-too-large"))

    def test_no_filter_of_bodies_hides_what_is_too_large(self):
        broker = self.mock(t=1)
        broker.produce("t", {0: [b"x" * (300 << 10), b'{"a": 1}']})
        a, b = self.leaf(), self.leaf()
        hub = self.hub_of(f"""
source: "{broker.url('t')}"
memory: 8M
store: {{path: other.db}}
listen: {{address: 127.0.0.1:0}}
targets:
- {{name: a, url: "{a.url()}", match: {{body: {{a: [1]}}}}}}
- {{name: b, url: "{b.url()}", match: {{X-Kind: paid, body: {{a: [1]}}}}}}
""")
        self.assertEqual(a.wait(1)[0].body, b'{"a": 1}')
        self.assertEqual(hub.stop(), 0)
        self.assertEqual(
            [(r["target"], r["cause"]) for r in
             self.rows(store=os.path.join(self.folder, "other.db"))],
            [("a", "TOO_LARGE")])

    # -- commits

    def test_without_targets_it_reads_nothing_until_there_is_one(self):
        broker = self.mock(t=2)
        a = self.leaf()
        hub = self.hub_of(f"""
source: "{broker.url("t")}"
store: {{path: hub.db}}
listen: {{address: 127.0.0.1:0}}
targets: []
""")
        hub.event("no-targets")
        self.await_partitions(hub, count=2)
        broker.produce("t", {p: [b"first"] for p in range(2)})
        request = urllib.request.Request(
            f"http://127.0.0.1:{hub.port}/v1/targets", method="POST",
            data=json.dumps({"name": "a", "url": a.url()}).encode(),
            headers={"Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
            self.assertEqual(answer.status, 201)
        broker.produce("t", {p: [b"a"] * 5 for p in range(2)})
        self.assertEqual(collections.Counter(r.body for r in a.wait(12)),
                         {b"first": 2, b"a": 10})
        watcher = self.watch(broker, "t", 2)
        watcher.wait({0: 6, 1: 6})
        self.assertEqual(hub.stop(), 0)

    def test_no_commit_passes_what_is_not_settled(self):
        broker = self.mock(t=2)
        broker.produce("t", {0: lines(50), 1: lines(50)})
        gate = threading.Event()
        a = self.leaf()
        b = self.leaf(lambda r: gate.wait(PATIENCE) and 200
                      if r.id == "t.0.20" else 200)
        watcher = self.watch(broker, "t", 2)
        hub = self.hub(broker, "t", f"a={a.url()}", f"b={b.url()}")
        watcher.wait({0: 20, 1: 50})
        a.wait(100)
        self.assertEqual(watcher.committed[0], 20)
        gate.set()
        watcher.wait({0: 50})
        self.assertEqual(hub.stop(), 0)
        offsets = [offset for _, p, offset in watcher.history if p == 0]
        self.assertEqual(offsets, sorted(offsets))

    def test_a_dead_letter_is_settled_and_carries_its_id(self):
        broker = self.mock(t=1)
        broker.produce("t", {0: lines(5)})
        a = self.leaf(lambda r: 404 if r.id == "t.0.2" else 200)
        watcher = self.watch(broker, "t", 1)
        hub = self.hub(broker, "t", f"a={a.url()}")
        watcher.wait({0: 5})
        found = self.call(hub, "/v1/dead-letters")["dead_letters"]
        place = {"message_id": "t.0.2", "cause": "HTTP_404", "topic": "t",
                 "partition": 0, "position": 2}
        self.assertEqual([{key: f[key] for key in place} for f in found],
                         [place])
        message = self.call(hub, "/v1/messages/t.0.2")
        self.assertEqual(message["targets"][0]["state"], "dead")
        for store in (["--store", self.store],
                      ["--hub", f"http://127.0.0.1:{hub.port}"]):
            found, = json.loads(subprocess.run(
                [STAGGER, "dead", "list", "--json", *store], check=True,
                stdout=subprocess.PIPE,
                timeout=PATIENCE).stdout)["dead_letters"]
            self.assertEqual({key: found[key] for key in place}, place)
        self.assertEqual(hub.stop(), 0)

    # -- restarts

    def test_a_restart_goes_on_where_it_was(self):
        broker = self.mock(t=3)
        a = self.leaf()
        sent = 0
        for round in range(3):
            broker.produce("t", {p: lines(10, f"r{round}-") for p in range(3)})
            sent += 30
            hub = self.hub(broker, "t", f"a={a.url()}")
            a.wait(sent)
            self.assertEqual(hub.stop(), 0)
        self.assertEqual(set(ids(a.receipts).values()), {1})
        self.assertEqual(len(a.receipts), 90)

    def test_a_kill_loses_nothing(self):
        broker = self.mock(t=2)
        broker.produce("t", {p: lines(300) for p in range(2)})
        a = self.leaf(lambda r: 503 if r.attempt == 1 and r.id.endswith("7")
                      else 200)
        policy = "policy: fixed base=10ms attempts=5"
        expected = {f"t.{p}.{i}" for p in range(2) for i in range(300)}
        for kill in range(3):
            hub = self.hub(broker, "t", f"a={a.url()}", defaults=policy)
            a.wait(len(a.receipts) + 60)
            hub.kill()
        watcher = self.watch(broker, "t", 2)
        hub = self.hub(broker, "t", f"a={a.url()}", defaults=policy)
        watcher.wait({0: 300, 1: 300})
        wait_for(lambda: self.call(hub, "/v1/targets/a")["parked"] == 0,
                 "nothing is parked")
        self.assertEqual(hub.stop(), 0)
        good = ids(r for r in a.receipts
                   if r.attempt > 1 or not r.id.endswith("7"))
        self.assertEqual(set(good), expected)
        self.assertLessEqual(max(good.values()), 4) # I16: 1 + kills
        self.totals()

    def test_a_group_that_is_set_back_does_not_send_again(self):
        broker = self.mock(t=1)
        broker.produce("t", {0: lines(20)})
        a = self.leaf()
        hub = self.hub(broker, "t", f"a={a.url()}")
        a.wait(20)
        self.assertEqual(hub.stop(), 0)
        # Another group has committed nothing: its offsets are set back.
        broker.produce("t", {0: [b"last"]})
        hub = self.hub(broker, "t", f"a={a.url()}", group="other")
        hub.event("offset-missing", topic="t", partition=0)
        a.wait(21)
        self.assertEqual(hub.stop(), 0)
        self.assertEqual(len(a.receipts), 21)

    def test_a_dead_target_costs_the_others_nothing(self):
        broker = self.mock(t=2)
        a = self.leaf()
        watcher = self.watch(broker, "t", 2)
        hub = self.hub(broker, "t", f"a={a.url()}", f"gone={self.refused()}")
        broker.produce("t", {p: lines(200) for p in range(2)})
        a.wait(400)
        self.assertEqual(set(ids(a.receipts).values()), {1})
        self.assertLess(watcher.committed[0], 200)
        hub.stop()

    # -- several hubs

    def test_two_hubs_share_the_partitions(self):
        broker = self.mock(t=4)
        a = self.leaf()
        quick = ["--drain", "2s"]
        one = self.hub(broker, "t", f"a={a.url()}", options=quick)
        self.await_partitions(one, count=4)
        broker.produce("t", {p: lines(50, "x") for p in range(4)})
        a.wait(200)
        two = self.hub(broker, "t", f"a={a.url()}", options=quick,
                       store="two.db")
        wait_for(lambda: len(two.events("partition-taken")) > 0,
                 "the second has some")
        self.await_partitions(one, two, count=4)
        broker.produce("t", {p: lines(50, "y") for p in range(4)})
        watcher = self.watch(broker, "t", 4)
        watcher.wait(dict.fromkeys(range(4), 100))
        self.assertEqual(one.stop(), 0)
        self.await_partitions(two, count=4)
        broker.produce("t", {p: lines(50, "z") for p in range(4)})
        watcher.wait(dict.fromkeys(range(4), 150))
        self.assertEqual(two.stop(), 0)
        self.assertEqual(len(ids(a.receipts)), 600)
        lost = sum(len(h.events("partition-lost")) for h in (one, two))
        case.note(self, f"{len(a.receipts) - 600} twice, {lost} lost")

    # -- what goes wrong

    def test_a_broker_that_goes_and_comes_is_told_and_loses_nothing(self):
        broker = self.mock(t=1)
        broker.produce("t", {0: lines(10)})
        a = self.leaf()
        watcher = self.watch(broker, "t", 1)
        hub = self.hub(broker, "t", f"a={a.url()}")
        a.wait(10)
        for node in 1, 2, 3:
            broker.tell("down", node)
        hub.event("kafka-away")
        for node in 1, 2, 3:
            broker.tell("up", node)
        broker.produce("t", {0: lines(10)})
        a.wait(20)
        watcher.wait({0: 20})
        self.assertEqual(set(ids(a.receipts).values()), {1})
        hub.event("kafka-back")
        self.assertEqual(hub.stop(), 0)
        # One line, however many connections fail how often.
        trouble, = hub.events("kafka-trouble")
        self.assertIn("see to the brokers, the network", trouble["detail"])
        self.assertEqual([line for line in hub.events("librdkafka")
                          if line["level"] == "error"], [])

    def test_a_broker_that_hangs_is_told_and_loses_nothing(self):
        """Its connections stay, and nothing comes by them."""
        broker = self.mock(t=1)
        broker.produce("t", {0: lines(10)})
        a = self.leaf()
        watcher = self.watch(broker, "t", 1)
        hub = self.hub(broker, "t", f"a={a.url()}")
        a.wait(10)
        broker.process.send_signal(signal.SIGSTOP)
        try:
            hub.event("kafka-away")
            self.await_metric(hub, "stagger_kafka_up", 0)
        finally:
            broker.process.send_signal(signal.SIGCONT)
        hub.event("kafka-back")
        broker.produce("t", {0: lines(10)})
        wait_for(lambda: len(ids(a.receipts)) == 20, "all of them")
        watcher.wait({0: 20})
        self.assertEqual(hub.stop(), 0)

    def test_a_topic_that_is_not_there_is_told_and_waited_for(self):
        broker = self.mock(t=1)
        broker.produce("t", {0: lines(5)})
        a = self.leaf()
        # The mock makes a topic that is asked for, unless it is told not to.
        broker.tell("refuse", "late", UNKNOWN_TOPIC)
        hub = self.hub(broker, ["t", "late"], f"a={a.url()}")
        self.assertEqual(hub.event("topic-gone")["topic"], "late")
        a.wait(5)
        self.await_metric(hub, "stagger_kafka_topics_missing", 1)
        broker.tell("refuse", "late", 0)
        hub.event("topic-found")
        broker.produce("late", {0: lines(5)})
        a.wait(10)
        self.await_metric(hub, "stagger_kafka_topics_missing", 0)
        self.assertEqual(hub.stop(), 0)

    def test_topics_are_chosen_by_pattern_also_those_that_come_later(self):
        broker = self.mock(**{"orders.eu": 2, "plain": 1, "other": 1})
        broker.produce("orders.eu", {0: lines(5, "old")})
        broker.produce("plain", {0: lines(4)})
        broker.produce("other", {0: lines(4)})
        a, b, c = (self.leaf() for _ in range(3))
        text = f"""
source: kafka
kafka: {{brokers: [{broker.addresses.replace(',', ', ')}],
         topics: ['^orders\\..*', plain, '^none'], group: hub,
         options: {{session.timeout.ms: 3000, heartbeat.interval.ms: 500,
                    topic.metadata.refresh.interval.ms: 1000}}}}
store: {{path: hub.db}}
listen: {{address: 127.0.0.1:0}}
targets:
  - {{name: a, url: "{a.url()}"}}
  - {{name: b, url: "{b.url()}", topics: '^orders\\.u'}}
  - {{name: c, url: "{c.url()}", topics: [orders.eu, plain]}}
"""
        hub = self.hub_of(text)
        self.await_partitions(hub, count=3)
        self.assertEqual([line["topic"] for line in hub.events("topic-gone")],
                         ["^none"])
        # Those that are there begin at kafka.start, which is latest.
        self.assertEqual({line["topic"]: line["older"] for line in
                          hub.events("topic-started")},
                         {"orders.eu": 5, "plain": 4})
        broker.produce("orders.eu", {1: lines(3, "eu")})
        a.wait(3), c.wait(3)
        # One that is made meanwhile begins at its first record.
        broker.tell("topic", "orders.us", 1)
        broker.produce("orders.us", {0: lines(6, "us")})
        a.wait(9), b.wait(6)
        broker.tell("topic", "none.other", 1)
        broker.produce("none.other", {0: lines(1, "n")})
        a.wait(10)
        self.assertEqual(hub.event("topic-found")["topic"], "^none")
        wait_for(lambda: 'topic="orders.us"' in self.page(hub), "its metrics")
        self.assertEqual(hub.stop(), 0)
        # So does one that is made while no hub runs.
        broker.tell("topic", "orders.cn", 1)
        broker.produce("orders.cn", {0: lines(2, "cn")})
        hub = self.hub_of(text)
        a.wait(12)
        self.assertEqual(hub.stop(), 0)
        self.assertEqual(ids(a.receipts).keys(),
                         {f"orders.eu.1.{i}" for i in range(3)}
                         | {f"orders.us.0.{i}" for i in range(6)}
                         | {f"orders.cn.0.{i}" for i in range(2)}
                         | {"none.other.0.0"})
        self.assertEqual({r.id.rsplit(".", 2)[0] for r in b.receipts},
                         {"orders.us"})
        self.assertEqual({r.id.rsplit(".", 2)[0] for r in c.receipts},
                         {"orders.eu"})

    def test_a_topic_of_a_pattern_may_vanish(self):
        broker = self.mock(**{"o.a": 1, "o.b": 1})
        a = self.leaf()
        hub = self.hub_of(f"""
source: "kafka://{broker.addresses}/^o?group=hub&start=earliest"
kafka: {{options: {{session.timeout.ms: 3000, heartbeat.interval.ms: 500,
                    topic.metadata.refresh.interval.ms: 1000}}}}
store: {{path: hub.db}}
listen: {{address: 127.0.0.1:0}}
targets: [{{name: a, url: "{a.url()}"}}]
""")
        self.await_partitions(hub, count=2)
        broker.tell("refuse", "o.a", UNKNOWN_TOPIC)
        self.assertEqual(hub.event("topic-vanished")["topic"], "o.a")
        self.await_metric(hub, "stagger_kafka_topics_missing", 0)
        broker.produce("o.b", {0: lines(3)})
        a.wait(3)
        broker.tell("refuse", "o.a", 0)
        broker.produce("o.a", {0: lines(3)})
        a.wait(6)
        self.assertEqual(hub.stop(), 0)

    def test_a_pattern_that_is_none_is_refused_with_its_place(self):
        self.assertRegex(self.checked(r"topics: [t, '^orders\.(']"),
                         r":2:\d+:.*`\^orders\\\.\(` is no regular expression "
                         r"\(POSIX extended\): ")
        self.assertRegex(self.checked("topics: ['^t']}\ndead-letters: "
                                      "{copy: 'kafka:t.dead'"),
                         r":3:\d+:.*messages come from the topic t\.dead")
        self.assertRegex(self.checked("topics: [t]", "topics: ['^u']"),
                         r"\^u is none of `kafka.topics`")

    def checked(self, kafka, target="topics: t"):
        with open(os.path.join(self.folder, "x.yaml"), "w") as file:
            file.write("source: kafka\n"
                       f"kafka: {{brokers: ['b:1'], {kafka}}}\n"
                       "store: {path: none.db}\n"
                       "targets: [{name: a, url: 'http://127.0.0.1:1/', "
                       f"{target}}}]\n")
        r = subprocess.run([STAGGER, "check", "-c", file.name], text=True,
                           capture_output=True, timeout=PATIENCE)
        self.assertEqual(r.returncode, 2, r.stdout + r.stderr)
        return r.stdout + r.stderr

    def test_what_has_expired_is_told_and_counted(self):
        """The mock keeps 5 MB of a partition. A target with other topics has
        lost nothing (I31)."""
        broker = self.mock(t=1, u=1)
        broker.produce("t", {0: lines(5)})
        broker.produce("u", {0: lines(5)})
        a, b = self.leaf(), self.leaf()
        settings = f"""
source: "{broker.url('t', 'u')}"
kafka: {{options: {{session.timeout.ms: 3000, heartbeat.interval.ms: 500}}}}
store: {{path: hub.db}}
listen: {{address: 127.0.0.1:0}}
targets:
  - {{name: a, url: "{a.url()}", topics: [t]}}
  - {{name: b, url: "{b.url()}", topics: [u]}}
"""
        hub = self.hub_of(settings)
        a.wait(5), b.wait(5)
        self.assertEqual(hub.stop(), 0)
        broker.produce("t", {0: [b"x" * 20000] * 400})
        hub = self.hub_of(settings)
        lost = int(hub.event("messages-lost")["messages"])
        self.assertGreater(lost, 50)
        a.wait(405 - lost)
        self.await_metric(hub, "stagger_kafka_expired_total", lost)
        self.assertEqual(hub.stop(), 0)
        row, = self.rows("SELECT * FROM failed_broadcast_logs")
        self.assertEqual((row["target"], row["cause"], row["count"],
                          row["payload"]), ("a", "EXPIRED", lost, None))

    def ask(self, hub, method, path, body=None):
        request = urllib.request.Request(
            f"http://127.0.0.1:{hub.port}/v1/{path}", method=method,
            data=None if body is None else json.dumps(body).encode(),
            headers={"Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
            return json.load(answer)

    def rewind(self, hub, to):
        self.ask(hub, "POST", "targets/a/rewind", {"to": to})

        def look():
            found = self.ask(hub, "GET", "targets/a/rewind")["rewinds"][0]
            return found if found["state"] == "done" else None
        return wait_for(look, "the end of the rewind")["sent"]

    def test_a_target_reads_its_topic_again(self):
        """I33: from the first record, a time and an id; what was committed
        stays so."""
        broker = self.mock(t=2)
        broker.produce("t", {0: lines(30), 1: lines(20)})
        a, b = self.leaf(), self.leaf()
        watcher = self.watch(broker, "t", 2)
        hub = self.hub(broker, "t", f"a={a.url()}", f"b={b.url()}")
        a.wait(50), b.wait(50)
        watcher.wait({0: 30, 1: 20})
        self.assertEqual(self.rewind(hub, "earliest"), 50)
        a.wait(100)
        self.assertEqual(set(ids(a.receipts).values()), {2})
        moment = datetime.datetime.now(datetime.timezone.utc).isoformat(
            timespec="milliseconds").replace("+00:00", "Z")
        broker.produce("t", {1: lines(5, "later")})
        a.wait(105)
        self.assertEqual(self.rewind(hub, moment), 5)
        a.wait(110)
        self.assertEqual(self.rewind(hub, "t.0.28"), 2)
        a.wait(112)
        self.assertEqual(ids(a.receipts)["t.0.28"], 3)
        self.assertEqual(self.ask(hub, "POST", "messages/t.0.0/resend",
                                  {"target": "a"}), {"result": "due"})
        a.wait(113)
        b.wait(55)
        watcher.wait({0: 30, 1: 25})
        self.assertEqual(hub.stop(), 0)
        self.assertEqual(len(b.receipts), 55)

    def await_metric(self, hub, name, value):
        wait_for(lambda: f"\n{name} {value}\n" in self.page(hub),
                 lambda: f"{name} {value}: {self.page(hub)}")

    def test_a_commit_that_is_refused_is_made_again(self):
        broker = self.mock(t=1)
        offset_commit, coordinator_gone = 8, 15
        a = self.leaf()
        watcher = self.watch(broker, "t", 1)
        hub = self.hub(broker, "t", f"a={a.url()}")
        self.await_partitions(hub, count=1)
        broker.tell("error", offset_commit, coordinator_gone, 2)
        broker.produce("t", {0: lines(10)})
        watcher.wait({0: 10})
        self.assertEqual(hub.stop(), 0)

    def test_a_leader_that_moves_is_followed(self):
        broker = self.mock(t=1)
        a = self.leaf()
        watcher = self.watch(broker, "t", 1)
        hub = self.hub(broker, "t", f"a={a.url()}")
        for round, node in enumerate((1, 2, 3), 1):
            broker.tell("leader", "t", 0, node)
            broker.produce("t", {0: lines(5)})
            a.wait(5 * round)
        watcher.wait({0: 15})
        self.assertEqual(hub.stop(), 0)
        self.assertEqual(set(ids(a.receipts).values()), {1})

    def refusal(self, command, options):
        """What is said of them; no store is made."""
        with open(os.path.join(self.folder, "x.yaml"), "w") as file:
            file.write("source: \"kafka://127.0.0.1:1/t\"\n"
                       f"kafka: {{options: {{{options}}}}}\n"
                       "store: {path: none.db}\n"
                       "listen: {address: 127.0.0.1:0}\n"
                       "targets: [{name: a, url: 'http://127.0.0.1:1/'}]\n")
        r = subprocess.run([STAGGER, command, "-c", file.name], text=True,
                           capture_output=True, timeout=PATIENCE,
                           cwd=self.folder)
        self.assertEqual(r.returncode, 2, r.stdout + r.stderr)
        self.assertFalse(os.path.exists(os.path.join(self.folder, "none.db")))
        return r.stdout + r.stderr

    def test_a_property_that_is_none_is_told_at_once(self):
        for command in "hub", "check":
            said = self.refusal(command, "no.such.property: x")
            self.assertRegex(said, r":2:\d+:.*no\.such\.property")
            said = self.refusal(command, "session.timeout.ms: soon")
            self.assertRegex(said, r":2:\d+:.*session\.timeout\.ms")

    def test_an_unwise_assignor_is_told(self):
        broker = self.mock(t=1)
        broker.produce("t", {0: lines(3)})
        a = self.leaf()
        hub = self.hub_of(f"""
source: "{broker.url('t')}"
kafka: {{options: {{partition.assignment.strategy: cooperative-sticky}}}}
store: {{path: hub.db}}
listen: {{address: 127.0.0.1:0}}
targets: [{{name: a, url: "{a.url()}"}}]
""")
        version = self.version()
        if version < (2, 10):
            self.assertIn("{}.{}".format(*version),
                          hub.event("kafka-config-warning")["detail"])
        a.wait(3)
        self.assertEqual(len(hub.events("kafka-config-warning")), version < (2, 10))
        self.assertEqual(hub.stop(), 0)

    def version(self):
        """librdkafka's, as it says it: in words of what it does not know."""
        said = self.refusal("check", "no.such.property: x")
        return tuple(map(int, re.search(r"librdkafka (\d+)\.(\d+)",
                                        said).groups()))

    def test_a_group_begins_with_what_comes(self):
        broker = self.mock(t=2)
        broker.produce("t", {0: lines(30, "old"), 1: lines(7, "old")})
        a = self.leaf()
        watcher = self.watch(broker, "t", 2)
        text = f"""
source: "{broker.url('t', start='latest')}"
kafka: {{options: {{session.timeout.ms: 3000, heartbeat.interval.ms: 500}}}}
store: {{path: hub.db}}
listen: {{address: 127.0.0.1:0}}
targets: [{{name: a, url: "{a.url()}"}}]
"""
        hub = self.hub_of(text)
        told = hub.event("topic-started", topic="t")
        self.assertEqual(told["older"], 37)
        self.assertIn("kafka.start: earliest", told["detail"])
        # It is committed before anything is read: so it counts once.
        watcher.wait({0: 30, 1: 7})
        self.assertEqual(hub.stop(), 0)
        broker.produce("t", {0: lines(5, "new")})
        hub = self.hub_of(text)
        a.wait(5)
        self.assertEqual(hub.stop(), 0)
        self.assertEqual({r.body for r in a.receipts}, set(lines(5, "new")))
        self.assertEqual(hub.events("topic-started"), [])

    def test_a_target_that_is_gone_holds_the_offset_for_the_retention(self):
        broker = self.mock(t=1)
        a = self.leaf()
        watcher = self.watch(broker, "t", 1)
        hub = self.hub(broker, "t", f"a={a.url()}", "gone=http://127.0.0.1:1/")
        self.await_partitions(hub, count=1)
        self.assertEqual(hub.stop(), 0)
        hub = self.hub(broker, "t", f"a={a.url()}")
        self.await_partitions(hub, count=1)
        broker.tell("past", "t", 20, 90000) # 25 hours ago
        a.wait(20)
        told = hub.event("target-released", target="gone")
        self.assertIn("stagger targets forget gone", told["detail"])
        watcher.wait({0: 20})
        self.assertEqual(hub.stop(), 0)
        row, = self.rows("SELECT * FROM failed_broadcast_logs")
        self.assertEqual((row["target"], row["count"], row["state"]),
                         ("gone", 20, "dead"))

    def test_a_target_that_is_forgotten_holds_no_offset(self):
        broker = self.mock(t=1)
        a = self.leaf()
        watcher = self.watch(broker, "t", 1)
        hub = self.hub(broker, "t", f"a={a.url()}", "gone=http://127.0.0.1:1/")
        self.await_partitions(hub, count=1)
        self.assertEqual(hub.stop(), 0)
        hub = self.hub(broker, "t", f"a={a.url()}")
        self.await_partitions(hub, count=1)
        broker.produce("t", {0: lines(20)})
        a.wait(20)
        wait_for(lambda: self.call(hub, "/v1/targets/a")["delivered"] == 20,
                 "all of it is settled")
        self.assertLess(max((offset for _, _, offset in watcher.history),
                            default=0), 20)
        subprocess.run([STAGGER, "targets", "forget", "gone", "--yes", "--hub",
                        f"http://127.0.0.1:{hub.port}"], check=True,
                       stdout=subprocess.DEVNULL, timeout=PATIENCE)
        watcher.wait({0: 20})
        self.assertEqual(hub.stop(), 0)

    def test_what_librdkafka_refuses_is_told_at_once(self):
        """Only an instance of it finds them out: a hub that went on would wait
        for ever, and say nothing."""
        self.assertIn("ssl.ca.location", self.refusal(
            "hub", "security.protocol: ssl, ssl.ca.location: /no/such"))
        self.assertIn("sasl.username", self.refusal(
            "hub", "security.protocol: sasl_ssl, sasl.mechanism: PLAIN"))

    # -- for people

    def test_status_and_metrics_tell_of_partitions(self):
        broker = self.mock(orders=2)
        broker.produce("orders", {0: lines(7)})
        a = self.leaf()
        watcher = self.watch(broker, "orders", 2)
        hub = self.hub(broker, "orders", f"a={a.url()}",
                       more="dead-letters: {copy: kafka:orders.dead}")
        watcher.wait({0: 7})
        self.await_partitions(hub, count=2)
        found = wait_for(
            lambda: [p for p in self.call(hub, "/v1/status")["source"]
                     ["partitions"] if p["committed_position"] == 7], "7")
        self.assertEqual(self.call(hub, "/v1/status")["accepted"], 7)
        self.assertEqual((found[0]["topic"], found[0]["partition"],
                          found[0]["next_position"], found[0]["lag_messages"]),
                         ("orders", 0, 7, 0))
        table = subprocess.run(
            [STAGGER, "status", "--hub", f"http://127.0.0.1:{hub.port}",
             "--once", "--interval", "10ms"], text=True, check=True,
            capture_output=True, timeout=PATIENCE).stdout
        self.assertIn("Kafka: 2 partitions, 2 of orders, 0 to read", table)
        self.assertIn("\n7 accepted, 7 delivered, ", table)
        page = self.page(hub)
        self.assertIn('stagger_kafka_committed_position{topic="orders",'
                      'partition="0"} 7', page)
        self.assertIn('stagger_kafka_lag_messages{topic="orders",'
                      'partition="0",target="a"} 0', page)
        self.assertIn("stagger_kafka_up 1", page)
        for name in self.documented():
            self.assertIn(f"# TYPE {name} ", page)
        self.assertEqual(hub.stop(), 0)

    def documented(self):
        path = os.path.join(os.environ["STAGGER_SOURCE"], "docs/metrics.md")
        with open(path) as text:
            return set(re.findall(r"^\| `(stagger_kafka_\w+)`", text.read(),
                                  re.M))


if __name__ == "__main__":
    case.main(4)
