"""Hubs that share PostgreSQL, through TLS, on librdkafka's mock cluster: dead
letters to a topic, and shards by targets."""
import collections
import itertools
import json
import os
import subprocess
import sys
import tempfile
import threading

import case
import endpoint
import kafka_case
import postgres
from case import wait_for
from kafka_case import ids
from leaf import PATIENCE, STAGGER

# Each of two shards has some of them, and of three; some change their shard.
NAMES = ["shop", "mail", "stock", "billing", "archive", "audit", "search"]
server = None


class Shared(kafka_case.Case):
    def setUp(self):
        super().setUp()
        self.url = server.database()

    def ask(self, query):
        return server.ask(query, self.url)

    def shared(self, broker, targets, *options, more=""):
        return self.hub(broker, "t", *(f"{name}={leaf.url()}" for name, leaf
                                       in targets.items()), options=options,
                        store=self.url, more=more, defaults="policy: fixed "
                        "base=1s attempts=3 attempt-timeout=5m")

    def refused_hub(self, broker, store, more="", names=NAMES):
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
        self.assertEqual(r.returncode, 2, r.stderr)
        return r.stderr

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
        topic = "dead-letters: kafka:t.dead"
        one = self.shared(broker, targets, more=topic)
        self.await_partitions(one, count=4)

        def produce(first, end):
            for p in range(4):
                broker.produce("t", {p: [f"k{i}:{p}{i}".encode()
                                         for i in range(first, end)]}, "-K:")
            return {f"t.{p}.{i}" for p in range(4) for i in range(first, end)
                    if i % 5 == 2}
        wanted = produce(0, 50)
        wait_for(lambda: self.letters(broker), "the first of them")
        two = self.shared(broker, targets, more=topic)
        wait_for(lambda: two.events("partition-taken"), "its share")
        wanted |= produce(50, 100)
        targets["a"].wait(390)
        one.kill()
        gate.set()
        watcher = self.watch(broker, "t", 4)
        watcher.wait(dict.fromkeys(range(4), 100))
        wait_for(lambda: wanted <= set(self.letters(broker)),
                 lambda: f"{sorted(wanted - set(self.letters(broker)))[:9]}")
        self.assertEqual(two.stop(), 0)
        self.judge_letters(self.letters(broker), wanted)

    def judge_letters(self, found, wanted):
        rows = dict(line.split("|") for line in self.ask(
            "SELECT id, message_id FROM failed_broadcast_logs").splitlines())
        self.assertEqual(collections.Counter(rows.values()),
                         collections.Counter(wanted), "one row each")
        self.assertEqual(set(found), wanted)
        for message, copies in found.items():
            partition, position = message.split(".")[1:]
            for record, headers in copies:
                self.assertEqual(rows[headers["stagger-id"]], message)
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

    # -- shards

    def test_shards_by_targets_go_on_when_their_number_changes(self):
        broker = self.mock(t=2)
        targets = {name: self.leaf() for name in NAMES}

        def produce(count):
            for p in range(2):
                broker.produce("t", {p: [b"x"] * count})

        def start(of, me):
            return self.shared(broker, targets, more="shard: {by: targets, "
                                                     f"of: {of}, me: {me}}}")

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
                                 "shard: {by: targets, of: 3, me: 1}")
        self.assertIn("hubs are running that share it by 2 shards, and this "
                      "one wants 3: stop all of them", words)
        words = self.refused_hub(broker, self.url,
                                 "shard: {by: targets, of: 2, me: 1}", ["shop"])
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
        wanted = {f"t.{p}.{i}" for p in range(2) for i in range(50)}
        new = {f"t.{p}.{i}" for p in range(2) for i in range(30, 50)}
        for name, leaf in targets.items():
            self.assertEqual(set(ids(leaf.receipts)), wanted, name)
            self.assertEqual(set(ids(leaf.receipts[before[name]:])), new, name)


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
