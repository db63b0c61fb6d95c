"""Hubs on a real broker (scripts/kafka), with PostgreSQL (scripts/postgres).

usage: kafka_real.py [TEST...]      for example Chaos, or Foreign

Left out where Java, Maven or kcat is missing. STAGGER_CHAOS: how many messages
there are (20000); STAGGER_CHAOS_SEED: which things go wrong when;
STAGGER_CHAOS_LOGS: a folder for the logs of hubs and leaves, and the store.
"""
import collections
import contextlib
import http.client
import json
import os
import pathlib
import random
import shutil
import signal
import subprocess
import threading
import time
import unittest

import case
import kafka_case
import postgres
from leaf import PATIENCE

SOURCE = pathlib.Path(os.environ["STAGGER_SOURCE"])
MESSAGES = int(os.environ.get("STAGGER_CHAOS") or "20000")
SEED = int(os.environ.get("STAGGER_CHAOS_SEED", "0")) or random.randrange(1 << 30)
LOGS = os.environ.get("STAGGER_CHAOS_LOGS")
SLOW = 180 # seconds to wait for what a broker and a group take their time for
SESSION = "6000"


def kafka(*words, check=True):
    r = subprocess.run([SOURCE / "scripts/kafka", *map(str, words)],
                       stdin=subprocess.DEVNULL, capture_output=True, text=True,
                       timeout=3 * SLOW) # the first one fetches it
    if r.returncode == 77:
        leave_out(r.stderr.strip())
    assert not check or r.returncode == 0, f"kafka {words}: {r.stderr}"
    return r.stdout.strip()


def leave_out(why):
    if os.environ.get("CI") == "true":
        raise AssertionError(why)
    raise unittest.SkipTest(why)


class Real(kafka_case.Broker):
    def __init__(self, folder, nodes=1):
        self.folder = os.path.join(folder, "kafka")
        self.addresses = kafka("up", "--nodes", nodes,
                               self.folder).splitlines()[-1]

    def topic(self, name, partitions, *words):
        kafka("topics", self.folder, "--", "--create", "--topic", name,
              "--partitions", partitions, *words)

    @contextlib.contextmanager
    def without(self, node):
        kafka("kill", node, self.folder)
        yield
        kafka("start", node, self.folder)

    def close(self):
        kafka("down", "--clear", self.folder, check=False)


class Case(kafka_case.Case):
    def setUp(self):
        super().setUp()
        self.runs = [] # every hub that there was

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

    def settings(self, broker, topic, store, targets, more="", **of_targets):
        """A file: session.timeout.ms is no option of the command."""
        path = os.path.join(self.folder, f"hub-{time.monotonic_ns()}.yaml")
        leaves = "\n".join(
            f'  - {{name: {name}, url: "{url}"{of_targets.get(name, "")}}}'
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
        self.runs.append(hub)
        self.addCleanup(hub.end)
        return hub


class Chaos(Case):
    """Hubs share a group and PostgreSQL, and things go wrong at random."""
    PARTITIONS = 6
    HUBS_MAX = 4
    RATE = 350 # messages a second; in bursts
    CALM = 300 # messages at the end, when nothing goes wrong any more
    NODES = 1
    TOPIC = () # what else is said of it
    count = MESSAGES

    def test_no_message_is_lost_whatever_dies(self):
        self.random = random.Random(SEED)
        case.note(self, f"STAGGER_CHAOS_SEED={SEED}")
        self.leaves, self.postgres = {}, None
        try:
            self.run_chaos()
        except postgres.Missing as missing:
            leave_out(str(missing))
        finally:
            self.keep_evidence()

    def run_chaos(self):
        self.broker = self.kept(Real(self.folder, self.NODES))
        self.postgres = self.kept(postgres.Server(self.folder))
        self.broker.topic("t", self.PARTITIONS, *self.TOPIC)
        self.leaves = {
            "a": self.sinks(),
            "b": self.sinks("--delay", "0ms-200ms"),
            "c": self.sinks("--random", "200:97,503:3", "--seed", str(SEED))}
        self.file = self.settings(
            self.broker, "t", self.postgres.url,
            {name: sink.url("/" + name) for name, sink in self.leaves.items()},
            "memory: 8M", c=", order: key")
        self.hubs, self.deeds = [], collections.Counter()
        self.produced_at = []
        watcher = self.watch(self.broker, "t", self.PARTITIONS)
        for _ in range(3):
            self.start_hub()
        producer = threading.Thread(target=self.produce, args=(0, self.count))
        self.began = time.monotonic()
        producer.start()
        self.break_things(producer)
        producer.join()
        self.settle(watcher, self.count)
        self.took = time.monotonic() - self.began
        self.be_calm(watcher)
        self.end(watcher)
        self.judge(watcher)

    def keep_evidence(self):
        """Logs of all hubs and leaves, and what the store has."""
        if not LOGS:
            return
        folder = pathlib.Path(LOGS) / type(self).__name__
        folder.mkdir(parents=True, exist_ok=True)
        for i, hub in enumerate(self.runs):
            (folder / f"hub-{i}.log").write_text("".join(
                json.dumps(line) + "\n" for line in list(hub.lines)))
        for name, sink in self.leaves.items():
            shutil.copy(sink.path, folder / f"leaf-{name}.log")
        if self.postgres:
            (folder / "store.sql").write_text(subprocess.run(
                ["pg_dump", "--data-only", self.postgres.url], text=True,
                capture_output=True, timeout=PATIENCE).stdout)

    # -- what happens

    def produce(self, first, end):
        """By a kcat that waits for the broker, in bursts."""
        kcat = subprocess.Popen(
            ["kcat", "-P", "-b", self.broker.addresses, "-t", "t", "-K:", "-E",
             "-X", "log_level=0", "-X", "enable.idempotence=true"],
            stdin=subprocess.PIPE, text=True, stderr=subprocess.DEVNULL)
        chance = random.Random(SEED)
        while first < end:
            piece = min(chance.randrange(1, 200), end - first)
            rest = "x" * chance.choice((0, 0, 300, 5000))
            kcat.stdin.write("".join(f"k{i % 100}:{i}{rest}\n"
                                     for i in range(first, first + piece)))
            kcat.stdin.flush()
            first += piece
            time.sleep(piece / self.RATE)
        kcat.stdin.close()
        self.assertEqual(kcat.wait(SLOW), 0, "kcat lost messages")
        self.produced_at.append(time.time())

    def start_hub(self):
        self.hubs.append(self.start(self.file))

    def take_hub(self):
        return self.hubs.pop(self.random.randrange(len(self.hubs)))

    def kill_hub(self):
        self.take_hub().kill()
        self.start_hub()

    def stop_hub(self):
        self.assertEqual(self.take_hub().stop(), 0)
        self.start_hub()

    def change_number(self):
        """One more, or fewer."""
        if len(self.hubs) < self.HUBS_MAX and self.random.random() < 0.5:
            self.start_hub()
        elif len(self.hubs) > 2:
            self.assertEqual(self.take_hub().stop(), 0)
        else:
            self.start_hub()

    def restart_broker(self):
        """In half of the cases a hub dies while there is none."""
        with self.broker.without(1 + self.random.randrange(self.NODES)):
            time.sleep(2 * self.random.random())
            if self.random.random() < 0.5:
                self.kill_hub()
            time.sleep(2 * self.random.random())

    def restart_postgres(self):
        self.postgres.restart(2 * self.random.random())

    def stall_leaf(self):
        """So that a hub which dies then leaves somebody far behind."""
        leaf = self.random.choice(list(self.leaves.values())).process
        leaf.send_signal(signal.SIGSTOP)
        try:
            time.sleep(1 + 2 * self.random.random())
            if self.random.random() < 0.5:
                self.kill_hub()
        finally:
            leaf.send_signal(signal.SIGCONT)

    DEEDS = (kill_hub, kill_hub, stop_hub, change_number, restart_broker,
             restart_postgres, stall_leaf)

    def break_things(self, producer):
        """Each at least once; in rounds, with little time between."""
        deeds = []
        while deeds or producer.is_alive():
            if not deeds:
                deeds = list(self.DEEDS)
                self.random.shuffle(deeds)
            time.sleep(3 * self.random.random())
            deed = deeds.pop()
            self.deeds[deed.__name__] += 1
            deed(self)

    def ends(self):
        """The next offset of each partition, as the broker says."""
        text = self.broker.kcat(
            "-Q", *[w for p in range(self.PARTITIONS)
                    for w in ("-t", f"t:{p}:-1")]).stdout.decode()
        return {int(line.split("[")[1].split("]")[0]):
                int(line.rsplit(" ", 1)[1]) for line in text.splitlines()}

    def settle(self, watcher, count):
        """Until all of it is committed, and nothing waits."""
        ends = self.ends_seen = self.ends()
        self.assertEqual(sum(ends.values()), count)
        until = time.monotonic() + SLOW

        def behind():
            return {p: (watcher.committed[p], e) for p, e in ends.items()
                    if watcher.committed[p] < e}
        while behind() and time.monotonic() < until:
            time.sleep(0.2)
        self.assertEqual(behind(), {}, f"in {SLOW} s")

        def waiting():
            return {(t["name"], word): t[word] for hub in self.hubs for t in
                    self.call(hub, "/v1/targets")["targets"]
                    for word in ("parked", "waiting", "in_flight") if t[word]}
        while waiting() and time.monotonic() < until:
            time.sleep(0.2)
        self.assertEqual(waiting(), {}, f"in {SLOW} s")

    def be_calm(self, watcher):
        """I16: without faults, exactly one."""
        before = self.ends_seen
        moves = self.count_moves()
        self.produce(self.count, self.count + self.CALM)
        self.settle(watcher, self.count + self.CALM)
        self.calm = {f"t.{p}.{i}" for p, end in self.ends_seen.items()
                     for i in range(before[p], end)}
        self.has_been_calm = self.count_moves() == moves

    def count_moves(self):
        return sum(len(hub.events("partition-" + how)) for hub in self.runs
                   for how in ("taken", "revoked", "lost"))

    def end(self, watcher):
        """One hub has everything in the end, and then none."""
        while len(self.hubs) > 1:
            self.assertEqual(self.hubs.pop().stop(), 0)
        hub = self.hubs.pop()

        def has_all():
            return (len(self.call(hub, "/v1/status")["kafka"]["partitions"])
                    == self.PARTITIONS)
        until = time.monotonic() + SLOW
        while not has_all() and time.monotonic() < until:
            time.sleep(0.2)
        self.assertTrue(has_all())
        self.settle(watcher, self.count + self.CALM)
        self.books = {t["name"]: t for t in
                      self.call(hub, "/v1/targets")["targets"]}
        self.assertEqual(hub.stop(), 0)

    # -- what must hold

    def judge(self, watcher):
        receipts = {name: sink.receipts()
                    for name, sink in self.leaves.items()}
        # Each death and each move may cut what was in flight.
        most = 1 + 2 * self.deeds.total() + len(self.runs)
        count = self.count + self.CALM
        copies = {}
        for name, rows in receipts.items():
            good = collections.Counter(r["id"] for r in rows
                                       if r["status"] == 200)
            missing = [i for i in self.ids() if i not in good]
            self.assertEqual(len(missing), 0, f"I1: lost at {name}: "
                             + self.explain(missing[0], rows) if missing
                             else "")
            self.assertEqual(len(good), count, "ids that nobody sent")
            self.assertLessEqual(max(good.values()), most, f"I16: {name}")
            if self.has_been_calm:
                self.assertEqual([i for i in self.calm if good[i] > 1], [],
                                 f"I16: {name}, without a fault")
            copies[name] = sum(good.values()) - count
            book = self.books[name]
            self.assertEqual(book["routed"], book["delivered"] + book["dead"]
                             + book["cancelled"] + book["parked"], name)
            self.assertEqual((book["delivered"], book["dead"]), (count, 0),
                             f"I17: the books of {name}")
        self.judge_commits(watcher, receipts)
        self.judge_order(receipts["c"])
        self.tell(watcher, receipts, copies)

    def tell(self, watcher, receipts, copies):
        count = self.count + self.CALM
        times = {name: sorted(r["time"] for r in rows if r["status"] == 200)
                 for name, rows in receipts.items()}
        gap, name = max(((after - before, name) for name, all in times.items()
                         for before, after in zip(all, all[1:])
                         if after < self.produced_at[0]), default=(0, "none"))
        deeds = ", ".join(f"{word} {number}" for word, number in
                          sorted(self.deeds.items()))
        case.note(self, f"""
     {count} messages, {self.count} of them in {self.took:.0f} s
     {3 * count + sum(copies.values())} deliveries, {sum(copies.values())} of \
them again: {copies}
     {len(self.runs)} hubs: {deeds}
     {len(watcher.history)} commits seen
     {gap:.1f} s at {name} was the longest time without a delivery""")

    def judge_order(self, rows):
        """I18: of each key, the first good one of a message came behind those
        of the messages before it."""
        text = self.broker.kcat("-C", "-t", "t", "-o", "beginning", "-e", "-q",
                                "-f", "t.%p.%o %k\n").stdout.decode()
        keys = dict(line.split() for line in text.splitlines())
        last = collections.defaultdict(int)
        seen = set()
        for r in rows:
            if r["status"] != 200 or r["id"] in seen:
                continue
            seen.add(r["id"])
            key, position = keys[r["id"]], int(r["id"].rsplit(".", 1)[1])
            self.assertGreaterEqual(position, last[key], f"I18: {r}")
            last[key] = position

    def ids(self):
        return (f"t.{p}.{i}" for p, end in self.ends_seen.items()
                for i in range(end))

    def explain(self, message, rows):
        """All that is known of one."""
        partition, position = map(int, message.split(".")[1:])
        known = [(r["time"], r["status"]) for r in rows if r["id"] == message]
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


class Nodes(Chaos):
    """Three brokers, of which one at a time dies and comes again."""
    NODES = 3
    TOPIC = ("--replication-factor", 3, "--config", "min.insync.replicas=2")
    DEEDS = (Chaos.restart_broker, Chaos.restart_broker, Chaos.kill_hub,
             Chaos.stall_leaf)
    count = MESSAGES // 2


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
    case.main(1)
