"""Hubs that share PostgreSQL, through TLS, on librdkafka's mock cluster: dead
letters to a topic, shards by targets, servers that refuse, and clocks."""
import collections
import contextlib
import glob
import http.client
import itertools
import json
import os
import re
import socket
import struct
import subprocess
import sys
import tempfile
import threading

import case
import endpoint
import kafka_case
import postgres
import targets
from case import wait_for
from kafka_case import ids
from leaf import PATIENCE, STAGGER

# Each of two shards has some of them, and of three; some change their shard.
NAMES = ["shop", "mail", "stock", "billing", "archive", "audit", "search"]
server = None


class Case(kafka_case.Case):
    def setUp(self):
        super().setUp()
        self.url = server.database()
        self.name = self.url.split("/")[3].split("?")[0]

    def ask(self, query):
        return server.ask(query, self.url)

    def shared(self, broker, targets, *options, more=""):
        return self.hub(broker, "t", *(f"{name}={leaf.url()}" for name, leaf
                                       in targets.items()), options=options,
                        store=self.url, more=more, defaults="policy: fixed "
                        "base=1s attempts=3 attempt-timeout=5m")

    def refused_hub(self, broker, store, more="", names=NAMES, code=2):
        """What a hub says that does not start."""
        handle, path = tempfile.mkstemp(".yaml", dir=self.folder)
        os.write(handle, f"""
source: "{broker.url("t")}"
store: {{path: "{store}"}}
listen: {{address: 127.0.0.1:0}}
{more}
targets: {json.dumps([{"name": name, "url": "http://127.0.0.1:1/"}
                      for name in names])}
""".encode())
        os.close(handle)
        r = subprocess.run([STAGGER, "hub", "-c", path], text=True,
                           capture_output=True, timeout=PATIENCE)
        self.assertEqual(r.returncode, code, r.stderr)
        return r.stderr


class Shared(Case):
    # -- fencing

    def test_who_is_fenced_takes_it_again_while_it_has_the_partition(self):
        """As if another hub had taken it in the database, which the group knows
        nothing of: what this one writes is refused, and it begins anew at the
        cursors that it finds."""
        broker = self.mock(t=1)
        broker.produce("t", {0: [b"x"] * 20})
        a = self.leaf()
        watcher = self.watch(broker, "t", 1)
        hub = self.shared(broker, {"a": a})
        a.wait(20)
        watcher.wait({0: 20})
        generation = self.ask("UPDATE claims SET generation = generation + 1 "
                              "RETURNING generation").splitlines()[0]
        broker.produce("t", {0: [b"y"] * 20})
        fenced = hub.event("partition-fenced")
        self.assertEqual((fenced["topic"], fenced["partition"]), ("t", 0))
        hub.event("partition-taken")
        watcher.wait({0: 40})
        broker.produce("t", {0: [b"z"] * 20})
        watcher.wait({0: 60})
        self.assertGreater(int(self.ask("SELECT generation FROM claims")),
                           int(generation))
        self.assertEqual(hub.stop(), 0)
        receipts = ids(a.receipts)
        self.assertEqual(len(receipts), 60)
        twice = {name for name, count in receipts.items() if count > 1}
        self.assertLessEqual(twice, {f"t.0.{i}" for i in range(20, 40)},
                             "what it could not store, and nothing else")

    # -- through TLS

    def test_a_server_with_another_root_is_refused(self):
        broker = self.mock(t=1)
        broker.produce("t", {0: [b"x", b"y"]})
        a = self.leaf()
        hub = self.shared(broker, {"a": a})
        a.wait(2)
        is_ciphered = self.ask(
            "SELECT bool_and(ssl), count(*) > 0 FROM pg_stat_ssl JOIN "
            "pg_stat_activity USING (pid) WHERE datname = current_database() "
            "AND pid <> pg_backend_pid()")
        self.assertEqual(is_ciphered, "t|t")
        self.assertEqual(hub.stop(), 0)

        words = self.refused_hub(broker, server.trusting("other.crt", self.url))
        self.assertRegex(words, "there is no TLS with the server: .*certificate "
                                "verify failed; see to its certificate")
        words = self.refused_hub(broker, self.url.replace("localhost",
                                                          "127.0.0.1"))
        self.assertIn('does not match host name "127.0.0.1"', words)
        words = self.refused_hub(broker, server.trusting("none.crt", self.url))
        self.assertIn('none.crt" does not exist', words)
        for text in words, *hub.noise, json.dumps(hub.lines):
            self.assertNotIn(server.password, text, "I23")

    # -- dead letters in a topic

    def letters(self, broker):
        """Of each message that is there: headers of all copies."""
        found = collections.defaultdict(list)
        for line in broker.kcat("-C", "-t", "t.dead", "-o", "beginning", "-e",
                                "-J").stdout.splitlines():
            record = json.loads(line)
            words = record["headers"]
            headers = dict(zip(words[::2], words[1::2]))
            found[headers["stagger-message"]].append((record, headers))
        return found

    def test_dead_letters_are_in_the_topic_whoever_dies(self):
        broker = self.mock(**{"t": 4, "t.dead": 1})
        gate = threading.Event()

        def answer(r):
            """Some are without an answer when the first one dies."""
            if r.body.endswith(b"97"):
                gate.wait(PATIENCE)
            return 404 if int(r.body[1:]) % 5 == 2 else 200
        targets = {"a": self.leaf(answer), "b": self.leaf()}
        topic = "dead-letters: {copy: kafka:t.dead}"
        one = self.shared(broker, targets, more=topic)
        self.await_partitions(one, count=4)

        def produce(first, end):
            for p in range(4):
                broker.produce("t", {p: [f"k{i}:{p}{i}".encode()
                                         for i in range(first, end)]}, "-K:")
            return {f"t.{p}.{i}" for p in range(4) for i in range(first, end)
                    if i % 5 == 2}
        expected = produce(0, 50)
        wait_for(lambda: self.letters(broker), "the first of them")
        two = self.shared(broker, targets, more=topic)
        wait_for(lambda: two.events("partition-taken"), "its share")
        expected |= produce(50, 100)
        targets["a"].wait(390)
        one.kill()
        gate.set()
        watcher = self.watch(broker, "t", 4)
        watcher.wait(dict.fromkeys(range(4), 100))
        wait_for(lambda: expected <= set(self.letters(broker)),
                 lambda: f"{sorted(expected - set(self.letters(broker)))[:9]}")
        self.assertEqual(two.stop(), 0)
        self.judge_letters(self.letters(broker), expected)

    def judge_letters(self, found, expected):
        rows = dict(line.split("|") for line in self.ask(
            "SELECT id, message_id FROM failed_broadcast_logs").splitlines())
        self.assertEqual(collections.Counter(rows.values()),
                         collections.Counter(expected), "one row each")
        self.assertEqual(set(found), expected)
        for message, copies in found.items():
            partition, position = message.split(".")[1:]
            for record, headers in copies:
                self.assertEqual(rows[headers["stagger-dead-letter-id"]],
                                 message)
                self.assertEqual(
                    [headers["stagger-" + name] for name in
                     ("cause", "category", "target", "attempts", "topic",
                      "partition", "position", "state", "status")],
                    ["HTTP_404", "C", "a", "1", "t", partition, position,
                     "dead", "404"])
                self.assertEqual((record["key"], record["payload"]),
                                 (f"k{position}", partition + position))
        case.note(self, f"{sum(map(len, found.values())) - len(found)} of "
                        f"{len(found)} twice")

    # -- HTTP producers

    def test_http_producers_outlive_a_hub_that_is_killed(self):
        """As a load balancer has them: who gets no answer, or another one than
        202, goes to the other hub, with the same key. All that was accepted is
        delivered, each under one id."""
        broker = self.mock(t=8)
        targets = {"a": self.leaf(), "b": self.leaf()}
        hubs = [self.shared(broker, targets) for _ in range(2)]
        self.await_partitions(*hubs, count=8)
        accepted, halfway = set(), threading.Event()

        def produce(number):
            for i in range(150):
                body = b"%d-%d" % (number, i)
                while not self.is_posted(hubs[i % 2], body, accepted):
                    if self.is_posted(hubs[1], body, accepted):
                        break
                if i % 10 == 0: # an answer that was lost on its way
                    self.is_posted(hubs[1], body, accepted)
                if i == 50:
                    halfway.set()
        producers = [threading.Thread(target=produce, args=[n])
                     for n in range(4)]
        for thread in producers:
            thread.start()
        halfway.wait(PATIENCE)
        hubs[0].kill()
        for thread in producers:
            thread.join(PATIENCE)
        self.assertEqual(len(accepted), 600)
        for leaf in targets.values():
            wait_for(lambda: accepted <= {(r.id, r.body)
                                          for r in leaf.receipts}, "all")
            last = hubs[1].post(b"last")
            wait_for(lambda: last in {r.id for r in leaf.receipts}, "last")
            self.assertEqual({(r.id, r.body) for r in leaf.receipts
                              if r.body != b"last"}, accepted)
        self.assertEqual(hubs[1].stop(), 0)

    def is_posted(self, hub, body, accepted):
        try:
            accepted.add((hub.post(body, Idempotency_Key=body.decode()), body))
        except (case.Refused, OSError, http.client.HTTPException):
            return False
        return True

    def test_a_key_holds_on_all_hubs(self):
        """I10, I11: by the same key the same message has the same id, on
        whichever hub, and is delivered once."""
        broker = self.mock(t=4)
        a = self.leaf()
        hubs = [self.shared(broker, {"a": a}) for _ in range(2)]
        self.await_partitions(*hubs, count=4)
        message = hubs[0].post(b"x", Idempotency_Key="k", X_A="1")
        for hub in hubs * 2:
            hub.http = http.client.HTTPConnection("127.0.0.1", hub.port,
                                                  timeout=PATIENCE)
            hub.http.request("POST", "/v1/messages", b"x",
                             {"Idempotency-Key": '"k"', "X-A": "1",
                              "traceparent": "00-ab"})
            answer = hub.http.getresponse()
            self.assertEqual((answer.status, json.loads(answer.read())["id"],
                              answer.headers["Stagger-Repeat"]),
                             (202, message, "true"))
            hub.http.close()
        with self.assertRaises(case.Refused) as refused:
            hubs[1].post(b"y", Idempotency_Key="k", X_A="1")
        self.assertEqual(refused.exception.status, 409)
        lines = [{"body": "1", "idempotency_key": "b1"}, {"body": "2"},
                 {"body": "3", "idempotency_key": "b3", "key": "o"},
                 {"body": "1", "idempotency_key": "b1"}]
        ids = hubs[1].producer().post_lines(lines)
        again = hubs[0].producer().post_lines(lines)
        self.assertEqual([ids[0], ids[2]], [again[0], again[2]])
        self.assertEqual(ids[0], ids[3])
        self.assertNotEqual(ids[1], again[1])
        lines[2]["body"] = "other"
        with self.assertRaises(case.Refused) as refused:
            hubs[0].producer().post_lines(lines)
        self.assertEqual(refused.exception.status, 409)
        self.assertIn(b'"line":3', refused.exception.body)
        sent = [subprocess.run(
            [STAGGER, "send", "--hub", f"http://127.0.0.1:{hub.port}",
             "--topic", "t", "--lines", "--id", "pipe"], text=True, check=True,
            input="".join(f"line {i}\n" for i in range(1500)),
            capture_output=True, timeout=PATIENCE).stdout for hub in hubs]
        self.assertEqual(sent[0], sent[1])
        self.await_all(broker, a)
        wait_for(lambda: len({r.body for r in a.receipts
                              if r.body.startswith(b"line ")}) >= 1500,
                 "the lines")
        lines = collections.Counter(r.body for r in a.receipts
                                    if r.body.startswith(b"line "))
        self.assertEqual((len(lines), set(lines.values())), (1500, {1}))
        self.assertEqual(collections.Counter(r.body for r in a.receipts
                                             if len(r.body) == 1),
                         {b"x": 1, b"1": 1, b"2": 2, b"3": 1})
        self.assertEqual({r.id for r in a.receipts if r.body == b"1"},
                         {ids[0]})
        self.assertEqual(self.ask("SELECT count(*) FROM published WHERE "
                                  "position IS NULL").strip(), "0")

    def await_all(self, broker, leaf):
        """Until the last record of each partition was delivered: others may still
        be in flight beside it."""
        for p in range(4):
            broker.produce("t", {p: [b"last"]})
        seen = sum(r.body == b"last" for r in leaf.receipts) // 4 * 4 + 4
        wait_for(lambda: sum(r.body == b"last" for r in leaf.receipts)
                 >= seen, "the last ones")

    def repeated(self, *hubs):
        return sum(int(line.split()[1]) for hub in hubs
                   for line in self.page(hub).splitlines()
                   if line.startswith("stagger_kafka_repeated_total "))

    def test_a_second_record_of_a_message_is_left_out(self):
        """Whoever reads it, whenever: also by the catch-up reader, and after a
        restart. In another topic it is another message."""
        broker = self.mock(t=4, u=1)
        a = self.leaf()
        hubs = [self.hub(broker, ["t", "u"], f"a={a.url()}", store=self.url)
                for _ in range(2)]
        self.await_partitions(*hubs, count=5)
        at = "/v1/messages?topic=t"
        message = hubs[0].post(b"x", at, Idempotency_Key="k")
        header = "stagger-id=" + self.ask(
            "SELECT encode(id, 'hex') FROM published").strip()
        for p in range(4):
            broker.produce("t", {p: [b"again"]}, "-H", header)
        broker.produce("u", {0: [b"copied"]}, "-H", header)
        broker.produce("t", {0: [b"none"]}, "-H", "stagger-id=" + "0" * 32)
        self.await_all(broker, a)
        wait_for(lambda: b"copied" in {r.body for r in a.receipts}, "the copy")
        self.assertEqual(sorted(r.body for r in a.receipts
                                if r.body != b"last"),
                         [b"copied", b"none", b"x"])
        self.assertEqual(self.repeated(*hubs), 4)
        for hub in hubs:
            self.assertEqual(hub.stop(), 0)
        hub = self.hub(broker, ["t", "u"], f"a={a.url()}", store=self.url)
        self.assertEqual(hub.post(b"x", at, Idempotency_Key="k"), message)
        self.assertEqual(hub.stop(), 0)

    def test_a_key_without_an_answer_is_written_again_under_its_id(self):
        broker = self.mock(t=1)
        a = self.leaf()
        hub = self.hub_of(f"""
source: "{broker.url('t')}"
kafka: {{options: {{message.timeout.ms: 2000}}}}
store: {{path: "{self.url}"}}
listen: {{address: 127.0.0.1:0}}
targets: [{{name: a, url: "{a.url()}"}}]
""")
        self.await_partitions(hub, count=1)
        hub.post(b"before")
        for number in 1, 2, 3:
            broker.tell("down", number)
        with self.assertRaises(case.Refused) as refused:
            hub.post(b"x", Idempotency_Key="k")
        self.assertEqual(refused.exception.status, 503)
        for number in 1, 2, 3:
            broker.tell("up", number)
        found = []

        def post():
            with contextlib.suppress(case.Refused):
                found.append(hub.post(b"x", Idempotency_Key="k"))
            return found
        wait_for(post, "an answer")
        self.assertEqual(hub.post(b"x", Idempotency_Key="k"), found[0])
        last = hub.post(b"last")
        wait_for(lambda: last in {r.id for r in a.receipts}, "the last one")
        self.assertEqual([r.id for r in a.receipts if r.body == b"x"], found)
        ids = [h for _, _, value, headers in broker.records("t")
               for h in headers if value == b"x"]
        self.assertEqual(len(set(ids)), 1, ids)
        self.assertEqual(hub.stop(), 0)

    # -- shards

    def test_shards_by_targets_go_on_when_their_number_changes(self):
        broker = self.mock(t=2)
        targets = {name: self.leaf() for name in NAMES}

        def produce(count):
            for p in range(2):
                broker.produce("t", {p: [b"x"] * count})

        def start(of, me):
            return self.shared(broker, targets, more="shard: {mode: targets, "
                                                     f"count: {of}, index: {me}}}")

        def await_all(of, count):
            for leaf in targets.values():
                leaf.wait(2 * count)
            for me in range(1, of + 1):
                watcher = self.watch(broker, "t", 2, group=f"hub.{me}-of-{of}")
                watcher.wait({0: count, 1: count})
        produce(30)
        hubs = [start(2, 1), start(2, 2), start(2, 1)]
        self.await_partitions(*hubs, count=4)
        await_all(2, 30)

        words = self.refused_hub(broker, self.url,
                                 "shard: {mode: targets, count: 3, index: 1}")
        self.assertIn("hubs are running that share it by 2 shards, and this "
                      "one wants 3: stop all of them", words)
        words = self.refused_hub(broker, self.url,
                                 "shard: {mode: targets, count: 2, index: 1}", ["shop"])
        self.assertIn("no target whose name falls to shard 1 of 2", words)
        for hub in hubs[1:]:
            self.assertEqual(hub.stop(), 0)
        words = self.refused_hub(broker, self.url)
        self.assertIn("share it by 2 shards", words)
        self.assertEqual(hubs[0].stop(), 0)

        before = {name: len(leaf.receipts) for name, leaf in targets.items()}
        produce(20)
        hubs = [start(3, me) for me in (1, 2, 3)]
        await_all(3, 50)
        for hub in hubs:
            self.assertEqual(hub.stop(), 0)
        expected = {f"t.{p}.{i}" for p in range(2) for i in range(50)}
        new = {f"t.{p}.{i}" for p in range(2) for i in range(30, 50)}
        for name, leaf in targets.items():
            self.assertEqual(set(ids(leaf.receipts)), expected, name)
            self.assertEqual(set(ids(leaf.receipts[before[name]:])), new, name)


class Trouble(Case):
    """A server that lets the hub in, and refuses what it stores."""

    def test_a_server_that_is_read_only_is_waited_for_and_told(self):
        self.refuse("default_transaction_read_only = on",
                    "cannot execute .* in a read-only transaction")

    def test_a_server_that_ends_each_command_is_waited_for_and_told(self):
        self.refuse("statement_timeout = 300",
                    "canceling statement due to statement timeout",
                    "LOCK TABLE cursors")

    def test_a_key_waits_for_the_server(self):
        broker = self.mock(t=1)
        a = self.leaf()
        hub = self.shared(broker, {"a": a})
        found = []
        thread = threading.Thread(target=lambda: found.append(
            hub.post(b"x", Idempotency_Key="k")))
        with server.holding("LOCK TABLE published", self.url):
            thread.start()
            wait_for(lambda: "\nstagger_ingress_waiting_messages 1"
                     in self.page(hub), "it waits")
            hub.event("store-trouble")
            self.assertEqual(found, [])
        thread.join(PATIENCE)
        self.assertEqual(found, ["t.0.0"])
        self.assertEqual(a.wait(1)[0].id, "t.0.0")
        self.assertEqual(hub.post(b"x", Idempotency_Key="k"), "t.0.0")
        self.assertEqual(hub.stop(), 0)

    def is_ready(self, hub):
        c = http.client.HTTPConnection("127.0.0.1", hub.port, timeout=PATIENCE)
        c.request("GET", "/readyz")
        answer = c.getresponse()
        text = answer.read().decode()
        c.close()
        if answer.status != 200:
            self.assertEqual(answer.status, 503)
            self.assertIn("see store-trouble in the hub's log", text)
        return answer.status == 200

    def begin_anew(self, command, setting):
        """Each session of the hub; its next ones have the setting."""
        server.ask(f"ALTER DATABASE {self.name} {command} {setting}")
        server.ask("SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                   "WHERE application_name = 'stagger' "
                   f"AND datname = '{self.name}'")

    def refuse(self, setting, words, lock=""):
        broker = self.mock(t=1)
        a = self.leaf()
        watcher = self.watch(broker, "t", 1)
        hub = self.shared(broker, {"a": a})
        broker.produce("t", {0: [b"x"] * 20})
        watcher.wait({0: 20})
        self.assertTrue(self.is_ready(hub))
        with server.holding(lock, self.url):
            self.begin_anew("SET", setting)
            broker.produce("t", {0: [b"y"] * 20})
            detail = hub.event("store-trouble")["detail"]
            self.assertRegex(detail, "refuses what is stored: " + words)
            self.assertFalse(self.is_ready(hub))
            self.begin_anew("RESET", setting.split()[0])
        hub.event("store-trouble-over")
        self.assertTrue(self.is_ready(hub))
        watcher.wait({0: 40})
        self.assertEqual(hub.stop(), 0)
        self.assertEqual([len(hub.events("store-trouble")),
                          len(hub.events("store-trouble-over"))], [1, 1])
        self.assertEqual(set(ids(a.receipts)), {f"t.0.{i}" for i in range(40)})


class Added(Case):
    """Targets by API: each hub has what one was told."""

    def setUp(self):
        super().setUp()
        self.key = self.put("secrets.key", "1f" * 32 + "\n")
        self.broker = self.mock(t=2)
        self.a, self.b = self.leaf(), self.leaf()
        self.hubs = [self.shared(self.broker, {"a": self.a},
                                 more=f"secrets: {{key: {self.key}}}")
                     for _ in range(2)]
        self.await_partitions(*self.hubs, count=2)

    def good(self, status, *arguments, **more):
        answer = targets.ask(*arguments, **more)
        self.assertEqual(answer.status, status, answer)
        return answer

    def await_version(self, hub, tag):
        """tag None: until it is gone."""
        wait_for(lambda: targets.ask(hub, "GET", "/b").tag == tag,
                 lambda: targets.ask(hub, "GET", "/b"))

    def delivered(self, hub):
        return self.good(200, hub, "GET", "/b").json["delivered"]

    def deliver(self, key):
        """What both partitions have, of which each hub has one."""
        before = len(self.b.receipts)
        counts = [self.delivered(hub) for hub in self.hubs]
        self.broker.produce("t", {0: [b"x"] * 5, 1: [b"x"] * 5})
        for receipt in self.b.wait(before + 10)[before:]:
            self.assertEqual(receipt.headers["x-key"], [key])
        for hub, count in zip(self.hubs, counts):
            wait_for(lambda: self.delivered(hub) == count + 5, "half of them")

    def test_what_one_is_told_the_other_delivers_to(self):
        one, two = self.hubs
        made = self.good(201, one, "POST", body={
            "name": "b", "url": self.b.url("/in?key=hush"),
            "headers": {"X-Key": "hush-1"}})
        self.await_version(two, made.tag)
        self.assertEqual(self.good(200, two, "GET", "/b").json["settings"],
                         made.json["settings"])
        self.deliver("hush-1")
        self.assertEqual({r.line.split()[1] for r in self.b.receipts},
                         {"/in?key=hush"})

        changed = self.good(200, two, "PATCH", "/b", If_Match=made.tag,
                            body={"headers": {"X-Key": "hush-2"}})
        self.good(412, one, "PATCH", "/b", If_Match=made.tag,
                  body={"rate": "5/s"})
        self.await_version(one, changed.tag)
        self.deliver("hush-2")
        self.good(412, one, "DELETE", "/b", If_Match=made.tag)

        row = self.ask("SELECT settings FROM targets WHERE name = 'b'")
        self.assertRegex(row, "^sealed:1:")
        self.assertNotIn("hush", json.dumps([h.lines for h in self.hubs]))
        for more, words in (("", "the hub has none"),
                            (self.put("other.key", "2e" * 32 + "\n"),
                             "the hub has others")):
            said = self.refused_hub(self.broker, self.url,
                                    more and f"secrets: {{key: {more}}}", ["a"])
            self.assertIn("target b, of the store: it is encrypted", said)
            self.assertIn(words, said)

        self.good(200, one, "DELETE", "/b?waiting=cancel",
                  If_Match=changed.tag)
        self.await_version(two, None)
        self.good(404, two, "PATCH", "/b", body={"rate": "5/s"})
        self.assertEqual(self.ask("SELECT count(*) FROM targets"), "0")
        before = len(self.b.receipts)
        self.broker.produce("t", {0: [b"last"], 1: [b"last"]})
        wait_for(lambda: sum(r.body == b"last" for r in self.a.receipts) == 2,
                 "the last ones")
        self.assertEqual(len(self.b.receipts), before)
        for hub in self.hubs:
            self.assertEqual(hub.stop(), 0)
            self.assertEqual(hub.events("target-refused"), [])

    def test_of_hubs_that_are_told_at_once_one_does_it(self):
        def at_once(*calls):
            with case.futures.ThreadPoolExecutor(2) as pool:
                found = [pool.submit(targets.ask, hub, *call, **more)
                         for hub, (call, more) in zip(self.hubs, calls)]
            answers = [one.result() for one in found]
            return sorted(answers, key=lambda answer: answer.status)
        for i in range(2):
            path = f"/b{i}"
            made, refused = at_once(*(
                (("POST",), {"body": {"name": f"b{i}", "url": leaf.url()}})
                for leaf in (self.a, self.b)))
            self.assertEqual((made.status, refused.status), (201, 409))
            wait_for(lambda: {targets.ask(hub, "GET", path).tag
                              for hub in self.hubs} == {made.tag}, "on both")
            changed, refused = at_once(*(
                (("PATCH", path), {"body": {"rate": rate},
                                   "If_Match": made.tag})
                for rate in ("5/s", "6/s")))
            self.assertEqual((changed.status, refused.status), (200, 412))
            wait_for(lambda: {targets.ask(hub, "GET", path).tag
                              for hub in self.hubs} == {changed.tag}, "on both")


class Refused(Case):
    """At the start: 4 is tried again by who watches over the hub, 2 is not."""

    def role(self, more=""):
        """The URL of a new one, that has the same password."""
        name = f"role_{self.name}_{next(self.numbers)}"
        server.ask(f"CREATE ROLE {name} LOGIN PASSWORD '{server.password}' "
                   f"{more}")
        return self.url.replace("stagger@", name + "@")

    def setUp(self):
        super().setUp()
        self.numbers = itertools.count()
        self.broker = self.mock(t=1)

    def check(self, code, words, url):
        said = self.refused_hub(self.broker, url, code=code)
        self.assertRegex(said, words)
        self.assertNotIn(server.password, said, "I23")

    def test_what_ends_by_itself_is_exit_code_4(self):
        self.check(4, "too many connections for role", # 53300
                   self.role("CONNECTION LIMIT 0"))
        with server.holding("SELECT pg_advisory_xact_lock(hashtext('stagger'),"
                            " hashtext(current_schema()))", self.url):
            for setting, words in (
                    ("lock_timeout", "due to lock timeout"), # 55P03
                    ("statement_timeout", "due to statement timeout")): # 57014
                self.check(4, words,
                           self.url + f"&options=-c%20{setting}%3D300")
        self.check(4, "in a read-only transaction", self.url # 25006
                   + "&options=-c%20default_transaction_read_only%3Don")
        self.check(4, "the server does not answer",
                   re.sub(r"port=\d+", "port=1", self.url))

    def test_a_server_that_starts_up_is_exit_code_4(self):
        for state, words in (("57P03", "the database system is starting up"),
                             ("57P03", "the database system is not yet "
                                       "accepting connections"),
                             ("53300", "sorry, too many clients already")):
            gate = self.kept(Gate(state, words))
            self.check(4, f"the server refuses for now: .*{words}",
                       f"postgres://stagger@127.0.0.1:{gate.port}/stagger")

    def test_what_only_people_mend_is_exit_code_2(self):
        self.check(2, "password authentication failed", # 28P01
                   self.url.replace("stagger@", "nobody@"))
        self.check(2, 'database "nothing" does not exist', # 3D000
                   self.url.replace(f"/{self.name}?", "/nothing?"))
        self.check(2, "none in the passfile /nowhere/pass: No such file",
                   self.url.replace(server.passfile, "/nowhere/pass"))
        self.check(2, "permission denied for schema public", self.role())
        hub = self.shared(self.broker, {"a": self.leaf()})
        self.assertEqual(hub.stop(), 0)
        self.check(2, "lacks in the store: .*INSERT on claims",
                   self.role("IN ROLE pg_read_all_data"))
        self.ask("UPDATE stagger SET version = 99")
        self.check(2, "version 99", self.url)

    def test_nothing_secret_of_a_url_is_printed(self):
        """I23: libpq says what is secret; it reads %77 as w."""
        path = os.path.join(self.folder, "hub.yaml")
        for part in ("pass%77ord=S3cr3t", "sslpassword=S3cr3t",
                     "sslpass%77ord=S3cr3t", "password=S3cr3t"):
            url = f"postgres://stagger@127.0.0.1:1/stagger?{part}"
            with open(path, "w") as file:
                file.write(f'source: "{self.broker.url("t")}"\n'
                           f'store: {{path: "{url}"}}\n'
                           'targets: [{name: a, url: "http://127.0.0.1:1/"}]\n')
            for words in (["hub", "-c", path], ["check", "-c", path],
                          ["hub", "--store", url],
                          ["dead", "list", "--store", url]):
                r = self.command(words)
                self.assertEqual(r.returncode, 2, (words, r.stderr))
                self.assertIn("has a password", r.stdout + r.stderr)
            # There it may stand, and nobody is shown it.
            with open(path, "w") as file:
                file.write(f'source: "{self.broker.url("t")}"\n'
                           'targets: [{name: a, url: "http://127.0.0.1:1/"}]\n')
            for words, code in ((["hub", "-c", path], 4), (["check", "-c", path], 0)):
                r = self.command(words, STAGGER_STORE=url)
                self.assertEqual(r.returncode, code, (words, r.stderr))

    def command(self, words, **environment):
        r = subprocess.run([STAGGER, *words], text=True, capture_output=True,
                           timeout=PATIENCE, env={**os.environ, **environment})
        self.assertNotIn("S3cr3t", r.stdout + r.stderr, words)
        return r


class Gate:
    """A server that sends everybody away, with a code of PostgreSQL's."""

    def __init__(self, state, words):
        fields = [b"SFATAL", b"VFATAL", b"C" + state.encode(),
                  b"M" + words.encode()]
        text = b"\0".join(fields) + b"\0\0"
        self.answer = b"E" + struct.pack("!i", 4 + len(text)) + text
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        with contextlib.suppress(OSError):
            while True:
                guest = self.listener.accept()[0]
                with guest, contextlib.suppress(OSError, struct.error):
                    self.refuse(guest)

    def refuse(self, guest):
        while True:
            size, code = struct.unpack("!ii", guest.recv(8))
            if code not in (80877103, 80877104): # wants TLS, or GSSAPI
                break
            guest.sendall(b"N")
        guest.recv(size)
        guest.sendall(self.answer)

    def close(self):
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()


class Clocks(Case):
    """Of the hubs' machines one is hours ahead."""
    AHEAD = 2 * 3600

    def test_rows_outlive_a_hub_whose_clock_is_ahead(self):
        libraries = glob.glob("/usr/lib/*/faketime/libfaketime.so.1")
        if not libraries:
            self.skipTest("no libfaketime")
        ahead = ("env", f"LD_PRELOAD={libraries[0]}", "DONT_FAKE_MONOTONIC=1",
                 f"FAKETIME=+{self.AHEAD}s")
        broker = self.mock(t=1)
        status = 503
        a = self.leaf(lambda r: status)

        def start(before=()):
            return self.hub(broker, "t", f"a={a.url()}", store=self.url,
                            defaults="policy: fixed base=1s jitter=none "
                            "attempts=1000 deadline=5m", before=before)

        def parked():
            return int(self.ask("SELECT count(*) FROM parked"))
        broker.produce("t", {0: [b"x"] * 5})
        for number, before in enumerate(((), ahead, ())):
            hub = start(before)
            told = hub.events("store-clock")
            self.assertEqual(len(told), len(before) > 0)
            for line in told:
                self.assertAlmostEqual(line["seconds"], self.AHEAD, delta=60)
                self.assertIn("ahead of the database's", line["detail"])
            count = len(a.receipts)
            a.wait(count + 10) # of each two attempts, by each hub
            wait_for(lambda: parked() == 5, "all of it is parked")
            if number == 2:
                status = 200
                wait_for(lambda: parked() == 0, "all of it is delivered")
            self.assertEqual(hub.stop(), 0)
        self.assertEqual(
            self.ask("SELECT count(*) FROM failed_broadcast_logs"), "0")
        self.assertEqual(set(ids(a.receipts)), {f"t.0.{i}" for i in range(5)})


class Server(postgres.Server):
    """It wants TLS."""

    def __init__(self, folder):
        certificates = endpoint.Certificates(folder)
        certificates.sign("postgres", "DNS:localhost")
        path = certificates.path
        super().__init__(folder, "--tls", path("postgres.crt"),
                         path("postgres.key"))
        self.url += "&sslmode=verify-full&sslrootcert=" + path("root.crt")
        with open(self.passfile) as line:
            self.password = line.read().strip().split(":")[-1]
        self.numbers = itertools.count()

    def database(self):
        """The URL of a new one."""
        name = f"hub{next(self.numbers)}"
        self.ask(f"CREATE DATABASE {name}")
        return self.url.replace("/stagger?", f"/{name}?")

    @contextlib.contextmanager
    def holding(self, command, url):
        """What the command locks, meanwhile."""
        psql = subprocess.Popen(["psql", url, "-XAtq"], text=True,
                                stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        try:
            psql.stdin.write(f"BEGIN; {command};\nSELECT 'held';\n")
            psql.stdin.flush()
            while psql.stdout.readline() != "held\n":
                assert psql.poll() is None, command
            yield
        finally:
            psql.stdin.close() # and so it is rolled back
            psql.wait(PATIENCE)
            psql.stdout.close()

    def trusting(self, name, url):
        return url.replace("root.crt", name)


if __name__ == "__main__":
    folder = tempfile.TemporaryDirectory(prefix="stagger-")
    try:
        server = Server(folder.name)
    except postgres.Missing as missing:
        print(f"left out: {missing}")
        sys.exit(1 if os.environ.get("CI") == "true" else 77)
    case.main(3, behind=(server.close, folder.cleanup))
