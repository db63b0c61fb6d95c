"""Hubs on a real broker (scripts/kafka), with PostgreSQL (scripts/postgres).

usage: kafka_real.py [TEST...]      for example Chaos, or Foreign

Left out where Java, Maven or kcat is missing. STAGGER_CHAOS: how many messages
there are (20000); STAGGER_CHAOS_SEED: which things go wrong when.
"""
import collections
import http.client
import json
import os
import pathlib
import random
import re
import shutil
import signal
import subprocess
import sys
import threading
import time

import case
import kafka_case
from case import wait_for
from leaf import PATIENCE

SOURCE = pathlib.Path(os.environ["STAGGER_SOURCE"])
MESSAGES = int(os.environ.get("STAGGER_CHAOS") or "20000")
SEED = int(os.environ.get("STAGGER_CHAOS_SEED", "0")) or random.randrange(1 << 30)
SLOW = 180 # seconds to wait for what a broker and a group take their time for
SESSION = "6000"


def script(name, *words, check=True):
    r = subprocess.run([SOURCE / "scripts" / name, *map(str, words)],
                       stdin=subprocess.DEVNULL, capture_output=True, text=True,
                       timeout=3 * SLOW) # the first one fetches it
    if r.returncode == 77:
        print(f"left out: {r.stderr.strip()}")
        sys.stdout.flush()
        os._exit(77)
    assert not check or r.returncode == 0, f"{name} {words}: {r.stderr}"
    return r.stdout.strip()


class Real(kafka_case.Broker):
    def __init__(self, folder):
        self.folder = os.path.join(folder, "kafka")
        self.addresses = script("kafka", "up", self.folder).splitlines()[-1]

    def topic(self, name, partitions, *words):
        script("kafka", "topics", self.folder, "--", "--create", "--topic",
               name, "--partitions", partitions, *words)

    def restart(self):
        script("kafka", "kill", 1, self.folder)
        time.sleep(1)
        script("kafka", "up", self.folder)

    def close(self):
        script("kafka", "down", "--clear", self.folder, check=False)


class Postgres:
    def __init__(self, folder):
        self.folder = os.path.join(folder, "postgres")
        self.url = self.without_password(
            script("postgres", "up", self.folder).splitlines()[-1])

    def without_password(self, url):
        """It is in a file, as the hub wants it."""
        user, password = re.match(r"\w+://(\w+):([^@]*)@", url).groups()
        path = os.path.join(os.path.dirname(self.folder), "passfile")
        pathlib.Path(path).write_text(f"*:*:*:*:{password}\n")
        os.chmod(path, 0o600)
        return url.replace(f":{password}@", "@", 1) + f"&passfile={path}"

    def restart(self):
        script("postgres", "kill", self.folder)
        time.sleep(1)
        script("postgres", "start", self.folder)

    def ask(self, query):
        return subprocess.run(["psql", self.url, "-XAtc", query], check=True,
                              text=True, capture_output=True,
                              timeout=PATIENCE).stdout.strip()

    def close(self):
        script("postgres", "down", self.folder, check=False)


class Case(kafka_case.Case):
    def call(self, hub, path):
        c = http.client.HTTPConnection("127.0.0.1", hub.port, timeout=PATIENCE)
        try:
            c.request("GET", path)
            answer = c.getresponse()
            text = answer.read()
        finally:
            c.close()
        self.assertEqual(answer.status, 200, text)
        return json.loads(text)

    def settings(self, broker, topic, store, targets, more=""):
        """A file: session.timeout.ms is no option of the command."""
        path = os.path.join(self.folder, f"hub-{time.monotonic_ns()}.yaml")
        leaves = "\n".join(f'  - {{name: {name}, url: "{url}"}}'
                           for name, url in targets.items())
        pathlib.Path(path).write_text(f"""
source: "{broker.url(topic)}"
kafka:
  options: {{session.timeout.ms: {SESSION}, heartbeat.interval.ms: 1000}}
store: {{path: "{store}"}}
listen: {{address: 127.0.0.1:0}}
policies:
  quick: fixed base=200ms jitter=50% attempts=100 deadline=10m
    attempt-timeout=30s
defaults: {{policy: quick}}
{more}
targets:
{leaves}
""")
        return path

    def start(self, settings):
        hub = case.Hub(None, settings=settings)
        self.addCleanup(hub.end)
        return hub


class Chaos(Case):
    """Hubs share a group and PostgreSQL, and things go wrong at random."""
    PARTITIONS = 6

    def test_no_message_is_lost_whatever_dies(self):
        self.random = random.Random(SEED)
        case.note(self, f"STAGGER_CHAOS_SEED={SEED}")
        self.broker = self.kept(Real(self.folder))
        self.postgres = (self.kept(Postgres(self.folder))
                         if (SOURCE / "scripts/postgres").exists() else None)
        self.broker.topic("t", self.PARTITIONS)
        self.leaves = {"a": self.sinks(), "b": self.sinks(),
                       "c": self.sinks("--random", "200:97,503:3", "--seed",
                                       str(SEED))}
        urls = {name: sink.url("/" + name)
                for name, sink in self.leaves.items()}
        # A database, or a file each, which who comes next goes on with.
        self.files = [self.settings(self.broker, "t", self.postgres.url
                                    if self.postgres else f"hub-{i}.db", urls)
                      for i in range(3)]
        self.hubs, self.kills, self.moves = {}, 0, 0
        watcher = self.watch(self.broker, "t", self.PARTITIONS)
        for i in range(3):
            self.hubs[i] = self.start(self.files[i])
        producer = threading.Thread(target=self.produce)
        began = time.monotonic()
        producer.start()
        self.break_things(producer)
        producer.join()
        self.settle(watcher)
        case.note(self, f"{time.monotonic() - began:.0f} s")
        self.judge(watcher)

    # -- what happens

    def produce(self):
        """In pieces, each by a kcat of its own, which waits for the broker."""
        self.produced = 0
        while self.produced < MESSAGES:
            piece = min(500, MESSAGES - self.produced)
            lines = "".join(f"k{i % 100}:{{\"n\": {i}}}\n" for i in
                            range(self.produced, self.produced + piece))
            r = subprocess.run(
                ["kcat", "-P", "-b", self.broker.addresses, "-t", "t", "-K:",
                 "-E", "-X", "log_level=0", "-X", "enable.idempotence=true"],
                input=lines, text=True, stderr=subprocess.DEVNULL)
            self.assertEqual(r.returncode, 0, "kcat lost messages")
            self.produced += piece
            time.sleep(self.random.random() * 0.6)

    def kill_hub(self):
        i = self.random.randrange(3)
        self.kills += 1
        self.hubs[i].kill()
        self.hubs[i] = self.start(self.files[i])

    def stop_hub(self):
        i = self.random.randrange(3)
        self.assertEqual(self.hubs[i].stop(), 0)
        self.hubs[i] = self.start(self.files[i])

    def break_things(self, producer):
        """One after the other, each at least once."""
        deeds = [self.kill_hub, self.stop_hub, self.broker.restart,
                 self.kill_hub]
        if self.postgres:
            deeds.append(self.postgres.restart)
        self.random.shuffle(deeds)
        for deed in deeds:
            time.sleep(2 + 4 * self.random.random())
            self.moves += 1
            deed()
        while producer.is_alive():
            self.random.choice([self.kill_hub, self.stop_hub])()
            self.moves += 1
            producer.join(4 + 4 * self.random.random())

    def ends(self):
        """The next offset of each partition, as the broker says."""
        text = self.broker.kcat(
            "-Q", *[w for p in range(self.PARTITIONS)
                    for w in ("-t", f"t:{p}:-1")]).stdout.decode()
        return {int(line.split("[")[1].split("]")[0]):
                int(line.rsplit(" ", 1)[1]) for line in text.splitlines()}

    def settle(self, watcher):
        ends = self.ends_seen = self.ends()
        self.assertEqual(sum(ends.values()), MESSAGES)
        until = time.monotonic() + SLOW
        def behind():
            return {p: (watcher.committed[p], e) for p, e in ends.items()
                    if watcher.committed[p] < e}
        while behind() and time.monotonic() < until:
            time.sleep(0.2)
        self.assertEqual(behind(), {}, f"in {SLOW} s")
        if self.postgres: # one hub has everything in the end
            for i in 1, 2:
                self.assertEqual(self.hubs.pop(i).stop(), 0)
        def is_quiet():
            looks = [(self.call(hub, "/v1/status")["kafka"]["partitions"],
                      self.call(hub, "/v1/targets")["targets"])
                     for hub in self.hubs.values()]
            return (sum(len(places) for places, _ in looks) == self.PARTITIONS
                    and all(t["parked"] == t["waiting"] == t["in_flight"] == 0
                            for _, targets in looks for t in targets))
        until = time.monotonic() + SLOW
        while not is_quiet() and time.monotonic() < until:
            time.sleep(0.2)
        self.assertTrue(is_quiet())
        self.books = [{t["name"]: t for t in
                       self.call(hub, "/v1/targets")["targets"]}
                      for hub in self.hubs.values()]
        for hub in self.hubs.values():
            self.assertEqual(hub.stop(), 0)

    # -- what must hold

    def judge(self, watcher):
        receipts = {name: sink.receipts()
                    for name, sink in self.leaves.items()}
        copies = {}
        for name, rows in receipts.items():
            good = collections.Counter(r["id"] for r in rows
                                       if r["status"] == 200)
            missing = [i for i in self.ids() if i not in good]
            self.assertFalse(missing, f"I1: {len(missing)} of {name}; "
                             + self.explain(missing[0], rows) if missing
                             else "")
            # I16: each death and each move may cut what was in flight.
            self.assertLessEqual(max(good.values()),
                                 1 + self.kills + 2 * self.moves)
            copies[name] = sum(good.values()) - MESSAGES
            for book in (books[name] for books in self.books):
                self.assertEqual(book["routed"],
                                 book["delivered"] + book["dead"]
                                 + book["cancelled"] + book["parked"], name)
                self.assertEqual(book["dead"], 0, name)
                if self.postgres:
                    self.assertEqual(book["delivered"], MESSAGES,
                                     f"I17: the books of {name}")
        self.judge_commits(watcher, receipts)
        case.note(self, f"{self.kills} kills, {self.moves} things in all, "
                        f"{sum(copies.values())} of {3 * MESSAGES} twice")

    def ids(self):
        return (f"t.{p}.{i}" for p, end in self.ends_seen.items()
                for i in range(end))

    def explain(self, message, rows):
        """All that is known of one."""
        partition, position = map(int, message.split(".")[1:])
        known = [(r["time"], r["status"]) for r in rows if r["id"] == message]
        if self.postgres:
            known.append(self.postgres.ask(
                "SELECT * FROM parked WHERE position = %d" % position))
            known.append(self.postgres.ask(
                "SELECT * FROM failed_broadcast_logs WHERE position = %d"
                % position))
            known.append(self.postgres.ask("SELECT * FROM cursors"))
        return f"{message}: {known}"

    def judge_commits(self, watcher, receipts):
        """I2: what was committed had been at every leaf, once at least."""
        first = {name: {} for name in receipts}
        for name, rows in receipts.items():
            for r in rows:
                first[name].setdefault(r["id"], r["time"])
        shift = time.time() - time.monotonic()
        below = collections.Counter()
        last = collections.Counter()
        for at, partition, offset in watcher.history:
            self.assertGreaterEqual(offset, last[partition],
                                    f"partition {partition} went back")
            last[partition] = max(last[partition], offset)
            for position in range(below[partition], max(offset, 0)):
                for name, seen in first.items():
                    when = seen.get(f"t.{partition}.{position}")
                    self.assertIsNotNone(when)
                    self.assertLess(when, at + shift + 0.05,
                                    f"I2: {partition}.{position} was committed "
                                    f"before {name} saw it")
            below[partition] = max(below[partition], offset)


class Foreign(Case):
    """What kafkajs from npm sees: messages in, dead letters out, offsets."""

    def test_kafkajs_and_the_hub_understand_each_other(self):
        tools = SOURCE / "build/tools/kafkajs"
        if not shutil.which("npm"):
            self.skipTest("no npm")
        if not (tools / "node_modules/kafkajs").exists():
            tools.mkdir(parents=True, exist_ok=True)
            subprocess.run(["npm", "install", "--silent", "--no-audit",
                            "--no-fund", "--prefix", tools, "kafkajs@2.2.4"],
                           check=True, timeout=SLOW, capture_output=True)
        broker = self.kept(Real(self.folder))
        broker.topic("t", 2)
        broker.topic("t.dead", 1)
        a = self.leaf(lambda r: 404 if r.body == b'{"n":7}' else 200)
        hub = self.start(self.settings(broker, "t", "hub.db", {"a": a.url()},
                                       "dead-letters: kafka:t.dead"))
        r = subprocess.run(
            ["node", SOURCE / "tests/hub/kafka_foreign.mjs", tools,
             broker.addresses, "t", "t.dead", "hub", "50"],
            text=True, capture_output=True, timeout=SLOW)
        self.assertEqual(r.returncode, 0, r.stderr)
        found = json.loads(r.stdout)
        a.wait(50)
        self.assertEqual({(q.one("stagger-key"), q.one("x-kind"), q.body)
                          for q in a.receipts},
                         {(f"k{i}", "paid", f'{{"n":{i}}}'.encode())
                          for i in range(50)})
        letter = found["letter"]
        self.assertEqual(letter["value"], '{"n":7}')
        self.assertEqual(letter["key"], "k7")
        self.assertEqual(letter["headers"]["stagger-cause"], "HTTP_404")
        self.assertEqual(letter["headers"]["stagger-target"], "a")
        self.assertEqual(letter["headers"]["stagger-attempts"], "1")
        dead = [q for q in a.receipts if q.body == b'{"n":7}'][0]
        self.assertEqual(letter["headers"]["stagger-message"], dead.id)
        self.assertEqual(sum(map(int, found["offsets"].values())), 50)
        self.assertEqual(hub.stop(), 0)


if __name__ == "__main__":
    case.main(2)
