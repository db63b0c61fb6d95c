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
import tempfile
import threading
import time
import unittest

import case
import kafka_case
import postgres
from leaf import PATIENCE, STAGGER

SOURCE = pathlib.Path(os.environ["STAGGER_SOURCE"])
MESSAGES = int(os.environ.get("STAGGER_CHAOS") or "20000")
SEED = int(os.environ.get("STAGGER_CHAOS_SEED", "0")) or random.randrange(1 << 30)
LONG = bool(os.environ.get("STAGGER_LONG")) # scripts/check --long
LOGS = os.environ.get("STAGGER_CHAOS_LOGS")
SLOW = 180 # seconds to wait for what a broker and a group take their time for


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
    SESSION = 6000   # milliseconds
    HEARTBEAT = 1000 # and these; a rebalance takes as long
    def setUp(self):
        super().setUp()
        self.runs = [] # every hub that there was

    def settings(self, broker, topic, store, targets, more="", group="hub",
                 **of_targets):
        """A file: session.timeout.ms is no option of the command."""
        path = os.path.join(self.folder, f"hub-{time.monotonic_ns()}.yaml")
        leaves = "\n".join(
            f'  - {{name: {name}, url: "{url}"{of_targets.get(name, "")}}}'
            for name, url in targets.items())
        pathlib.Path(path).write_text(f"""
source: "{broker.url(topic, group=group)}"
kafka:
  options: {{session.timeout.ms: {self.SESSION}, heartbeat.interval.ms: {self.HEARTBEAT}}}
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


class Group(Case):
    """Hubs share a group and PostgreSQL, until all messages are sent; then
    everything is counted. HUBS: that there are when the first messages come."""
    PARTITIONS = 6
    HUBS = 3
    RATE = 350 # messages a second; in bursts
    CALM = 300 # messages at the end, when nothing goes wrong any more
    KEYS = 100
    SLOWEST = 200 # milliseconds that a leaf takes
    NODES = 1
    TOPIC = () # what else is said of it
    count = MESSAGES

    def run_group(self):
        self.random = random.Random(SEED)
        case.note(self, f"STAGGER_CHAOS_SEED={SEED}")
        self.leaves, self.postgres = {}, None
        try:
            self.run_hubs()
        except postgres.Missing as missing:
            leave_out(str(missing))
        finally:
            self.keep_evidence()

    def store_url(self):
        """The URL of the store in self.postgres."""
        return self.postgres.url

    def act(self, producer):
        """While it produces."""
        raise NotImplementedError

    def run_hubs(self):
        self.broker = self.kept(Real(self.folder, self.NODES))
        self.postgres = self.kept(postgres.Server(self.folder))
        self.broker.topic("t", self.PARTITIONS, *self.TOPIC)
        self.leaves = {
            "a": self.sinks(),
            "b": self.sinks("--delay", f"0ms-{self.SLOWEST}ms"),
            "c": self.sinks("--random", "200:97,503:3", "--seed", str(SEED))}
        self.file = self.settings(
            self.broker, "t", self.store_url(),
            {name: sink.url("/" + name) for name, sink in self.leaves.items()},
            "memory: 8M", c=", order: key")
        self.hubs, self.deeds = [], collections.Counter()
        self.produced_at = []
        watcher = self.watch(self.broker, "t", self.PARTITIONS)
        for _ in range(self.HUBS):
            self.start_hub()
        producer = threading.Thread(target=self.produce, args=(0, self.count))
        self.began = time.monotonic()
        producer.start()
        self.act(producer)
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
            kcat.stdin.write("".join(f"k{i % self.KEYS}:{i}{rest}\n"
                                     for i in range(first, first + piece)))
            kcat.stdin.flush()
            first += piece
            time.sleep(piece / self.RATE)
        kcat.stdin.close()
        self.assertEqual(kcat.wait(SLOW), 0, "kcat lost messages")
        self.produced_at.append(time.time())

    def start_hub(self):
        self.hubs.append(self.start(self.file))

    def stop_hub(self, hub):
        self.assertEqual(hub.stop(), 0)

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
        self.check_ends(ends, count)
        until = time.monotonic() + SLOW

        def behind():
            return {p: (watcher.committed[p], e) for p, e in ends.items()
                    if watcher.committed[p] < e > 0}
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

    def check_ends(self, ends, count):
        self.assertEqual(sum(ends.values()), count)

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
            self.stop_hub(self.hubs.pop())
        hub = self.hubs.pop()

        def has_all():
            return (len(self.call(hub, "/v1/status")["source"]["partitions"])
                    == self.PARTITIONS)
        until = time.monotonic() + SLOW
        while not has_all() and time.monotonic() < until:
            time.sleep(0.2)
        self.assertTrue(has_all())
        self.settle(watcher, self.count + self.CALM)
        self.books = {t["name"]: t for t in
                      self.call(hub, "/v1/targets")["targets"]}
        self.stop_hub(hub)

    # -- what must hold

    def judge(self, watcher):
        receipts = {name: sink.receipts()
                    for name, sink in self.leaves.items()}
        # Each death and each move may cut what was in flight.
        most = 1 + 2 * self.deeds.total() + len(self.runs)
        count = self.count + self.CALM
        self.copies = copies = {}
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

    def is_message(self, partition, position):
        return True

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
                if not self.is_message(partition, position):
                    continue
                for name, seen in first.items():
                    when = seen.get(f"t.{partition}.{position}")
                    self.assertIsNotNone(when)
                    self.assertLess(when, at + shift + 0.05,
                                    f"I2: {partition}.{position} was committed "
                                    f"before {name} saw it")
            below[partition] = max(below[partition], offset)


class Recreated(Case):
    """I31: a topic that is deleted and made again begins anew, however many
    records it has."""

    def topics(self, *words):
        kafka("topics", self.broker.folder, "--", *words, "--topic", "t")

    def make_again(self, count):
        self.topics("--delete")
        self.topics("--create", "--partitions", 1)
        self.broker.produce("t", {0: [b"new%d" % i for i in range(count)]})

    def recreate(self, store, is_running):
        self.broker = self.kept(Real(self.folder))
        self.broker.topic("t", 1)
        a = self.leaf()
        settings = self.settings(self.broker, "t", store, {"a": a.url()})
        hub = self.start(settings)
        self.broker.produce("t", {0: [b"old%d" % i for i in range(50)]})
        a.wait(50)
        if not is_running:
            self.assertEqual(hub.stop(), 0)
        self.make_again(80)
        if not is_running:
            hub = self.start(settings)

        def anew(): # under ids of another epoch
            with a.changed:
                return [r.body for r in a.receipts if r.id.count(".") > 2]
        case.wait_for(lambda: len(anew()) >= 80, "all of the new topic")
        self.assertEqual(sorted(anew()),
                         sorted(b"new%d" % i for i in range(80)))
        self.assertEqual(len(hub.events("partition-recreated")), 1)
        self.assertEqual(hub.stop(), 0)

    def test_while_the_hub_is_stopped(self):
        self.recreate("hub.db", False)

    def test_while_the_hub_runs(self):
        self.recreate("hub.db", True)

    def test_while_the_hub_runs_with_postgres(self):
        try:
            server = self.kept(postgres.Server(self.folder))
        except postgres.Missing as missing:
            leave_out(str(missing))
        self.recreate(server.url, True)


class Chaos(Group):
    """Things go wrong at random."""
    HUBS_MAX = 4

    def test_no_message_is_lost_whatever_dies(self):
        self.run_group()

    def take_hub(self):
        return self.hubs.pop(self.random.randrange(len(self.hubs)))

    def restart_hub(self):
        self.stop_hub(self.take_hub())
        self.start_hub()

    def kill_hub(self):
        self.take_hub().kill()
        self.start_hub()

    def change_number(self):
        """One more, or fewer."""
        if len(self.hubs) < self.HUBS_MAX and self.random.random() < 0.5:
            self.start_hub()
        elif len(self.hubs) > 2:
            self.stop_hub(self.take_hub())
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

    def freeze_hub(self):
        """Past its session: others have what it had when it goes on."""
        frozen = self.random.choice(self.hubs).process
        frozen.send_signal(signal.SIGSTOP)
        try:
            time.sleep(self.SESSION / 1000 + 1 + 2 * self.random.random())
        finally:
            frozen.send_signal(signal.SIGCONT)

    DEEDS = (kill_hub, kill_hub, restart_hub, change_number, restart_broker,
             restart_postgres, stall_leaf, freeze_hub)

    def act(self, producer):
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


class Scale(Group):
    """I16: hubs come, and are started anew one after the other, without a fault.
    The database is some way off, so that each is still at work on what it got
    when the group gives it to another one."""
    PARTITIONS = 256 if LONG else 64
    HUBS = 1
    MORE = 2 if LONG else 1
    AWAY = 0.002 if LONG else 0.01 # seconds to the database and back
    SESSION = 30000 # each leaves in order
    HEARTBEAT = 200
    KEYS = 1000
    SLOWEST = 20
    CALM = 100
    count = MESSAGES if LONG else 1500

    def test_nothing_is_sent_twice_by_hubs_that_come_and_go(self):
        self.cut = 0
        self.run_group()

    def store_url(self):
        way = self.kept(postgres.Way(self.postgres, self.AWAY))
        return way.url

    def act(self, producer):
        for _ in range(self.MORE):
            time.sleep(0.3)
            self.start_hub()
        for _ in range(1 + self.MORE):
            case.wait_for(lambda: all(hub.events("partition-taken")
                                      for hub in self.hubs), "a share for each")
            self.stop_hub(self.hubs.pop(0))
            self.start_hub()

    def stop_hub(self, hub):
        """Attempts of its that it cut may have arrived."""
        self.cut += sum(
            int(line.rsplit(" ", 1)[1]) for line in self.page(hub).splitlines()
            if line.startswith("stagger_attempts_total{")
            and 'cause="TIMEOUT"' in line)
        super().stop_hub(hub)

    def judge(self, watcher):
        super().judge(watcher)
        fenced = sum(len(hub.events("partition-fenced")) for hub in self.runs)
        claims = self.postgres.ask("SELECT max(generation) FROM claims")
        case.note(self, f"{fenced} fenced, {self.cut} cut, generation {claims}")
        self.assertEqual(fenced, 0)
        self.assertLessEqual(sum(self.copies.values()), self.cut, "I16")


class Nodes(Chaos):
    """Three brokers, of which one at a time dies and comes again."""
    NODES = 3
    TOPIC = ("--replication-factor", 3, "--config", "min.insync.replicas=2")
    DEEDS = (Chaos.restart_broker, Chaos.restart_broker, Chaos.kill_hub,
             Chaos.stall_leaf)
    count = MESSAGES // 2


class Posts(Chaos):
    """The same, and what is sent comes by HTTP, as through a load balancer: who
    gets another answer than 202, or none, goes to the next hub with the same
    key. Each key has one id, whoever answers, and one message."""
    PRODUCERS = 8
    count = MESSAGES // 4

    def produce(self, first, end):
        self.lock = threading.Lock()
        self.accepted = getattr(self, "accepted", {})
        numbers = iter(range(first, end))
        threads = [threading.Thread(target=self.post_all, args=(numbers, n))
                   for n in range(self.PRODUCERS)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(len(self.accepted), end)
        self.produced_at.append(time.time())

    def post_all(self, numbers, seed):
        chance = random.Random(f"{SEED} {seed}")
        while True:
            with self.lock:
                n = next(numbers, None)
            if n is None:
                return
            # An answer may be lost on its way, and the message comes again.
            for _ in range(1 + (chance.random() < 0.1)):
                while not self.post(n, chance):
                    time.sleep(0.05 * chance.random())
            time.sleep(self.PRODUCERS / self.RATE)

    def post(self, n, chance):
        hubs = list(self.hubs)
        if not hubs:
            return False
        hub = chance.choice(hubs)
        c = http.client.HTTPConnection("127.0.0.1", hub.port, timeout=10)
        try:
            c.request("POST", "/v1/messages", str(n),
                      {"Idempotency-Key": f"post-{n}",
                       "Stagger-Key": f"k{n % self.KEYS}"})
            answer = c.getresponse()
            text = answer.read()
        except (OSError, http.client.HTTPException):
            return False
        finally:
            c.close()
        if answer.status != 202:
            self.assertIn(answer.status, (429, 503), text)
            return False
        id = json.loads(text)["id"]
        self.assertEqual(self.accepted.setdefault(n, id), id, f"I10: {n}")
        return True

    def check_ends(self, ends, count):
        """Some messages have a second record."""
        self.assertGreaterEqual(sum(ends.values()), count)

    def ids(self):
        return iter(self.accepted.values())

    def is_message(self, partition, position):
        return f"t.{partition}.{position}" in self.ids_seen

    def judge(self, watcher):
        self.ids_seen = set(self.accepted.values())
        super().judge(watcher)
        case.note(self, f"{sum(self.ends_seen.values()) - len(self.accepted)} "
                        "second records")


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
                                       "dead-letters: {copy: kafka:t.dead}"))
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


class Records(Case):
    """What the mock cluster does not do. One broker for all of them, each with
    topics and a group of its own."""
    broker = None

    def real(self):
        if Records.broker is None:
            Records.broker = Real(tempfile.mkdtemp(prefix="stagger-records-"))
        return Records.broker

    @classmethod
    def end(cls):
        if cls.broker:
            cls.broker.close()
            shutil.rmtree(os.path.dirname(cls.broker.folder), True)

    def test_the_offset_passes_gaps_and_none_of_them_is_lost(self):
        """Markers of transactions, aborted transactions, tombstones."""
        broker = self.real()
        broker.topic("t", 1)
        a, b = self.leaf(), self.leaf()
        settings = self.settings(broker, "t", "hub.db",
                                 {"a": a.url(), "b": b.url()})
        watcher = self.watch(broker, "t", 1)
        hub = self.start(settings)
        broker.tool("transact", "t", 0, 10, "commit")
        watcher.wait({0: 11})
        broker.tool("transact", "t", 0, 10, "abort")
        watcher.wait({0: 22})
        broker.produce("t", {0: [b"k:"] * 1000}, "-K:", "-Z")
        watcher.wait({0: 1022})
        status = self.call(hub, "/v1/status")
        self.assertEqual(hub.stop(), 0)
        partition, = status["source"]["partitions"]
        self.assertEqual((partition["committed_position"],
                          partition["lag_messages"]), (1022, 0))
        # The log drops all of it: none of that was a message.
        broker.tool("delete", "t", 0, 1022)
        hub = self.start(settings)
        broker.produce("t", {0: [b"last"]})
        for leaf in a, b:
            self.assertEqual({r.id for r in leaf.wait(11)},
                             {f"t.0.{i}" for i in (*range(10), 1022)})
        self.assertEqual(hub.events("messages-lost"), [])
        self.assertEqual(hub.stop(), 0)
        self.assertEqual(self.rows("SELECT * FROM failed_broadcast_logs"), [])


    def test_a_letter_that_is_too_large_is_copied_without_its_body(self):
        broker = self.real()
        broker.topic("l", 1)
        broker.topic("l.dead", 1, "--config", "max.message.bytes=20000")
        a = self.leaf(lambda r: 404)
        hub = self.start(self.settings(broker, "l", "l.db", {"a": a.url()},
                                       "dead-letters: {copy: kafka:l.dead}",
                                       group="l"))
        bodies = [b"first", os.urandom(20000).hex().encode(), b"last"]
        broker.produce("l", {0: bodies}, "-H", "x-kind=paid")
        cut = hub.event("letters-cut")["detail"]
        self.assertIn("(40000 bytes) was copied without its body", cut)
        text = broker.consume("l.dead", 3, "-f", "%S %h\n").decode()
        rows = {}
        for line in text.splitlines():
            size, headers = line.split(" ", 1)
            headers = dict(h.split("=", 1) for h in headers.split(","))
            rows.setdefault(headers["stagger-message"], []).append(
                (int(size), headers.get("stagger-payload-size"),
                 headers["x-kind"]))
        self.assertEqual(rows, {"l.0.0": [(5, None, "paid")],
                                "l.0.1": [(-1, "40000", "paid")],
                                "l.0.2": [(4, None, "paid")]})
        self.assertIn('stagger_kafka_letters_total{result="cut"} 1\n',
                      self.page(hub))
        self.assertEqual(hub.stop(), 0)

    def test_a_dead_letter_is_its_record_when_the_topic_has_lost_it(self):
        """After a restart, too, and in a topic with fewer partitions."""
        broker = self.real()
        broker.topic("r", 3)
        broker.topic("r.dead", 2)
        key, headers = b"\x00\xff\x80", ("-H", "X-Bad=a\x01b", "-H", "Other=1",
                                        "-H", "Other=2", "-H", "None")
        own = [b"X-Bad=a\x01b", b"Other=1", b"Other=2", b"None=NULL"]
        a = self.leaf(lambda r: 404)
        settings = self.settings(broker, "r", "r.db", {"a": a.url()},
                                 "dead-letters: {copy: kafka:r.dead}",
                                 group="r")
        hub = self.start(settings)
        broker.produce("r", {2: [key + b"::one"]}, "-K::", *headers)
        broker.produce("r", {1: [b"two"]})

        def copies(count):
            case.wait_for(lambda: len(broker.records("r.dead")) == count,
                          lambda: f"{count}, not {broker.records('r.dead')}")
            return [(partition, k, value, [h for h in given
                                           if not h.startswith(b"stagger-")])
                    for partition, k, value, given in broker.records("r.dead")]
        one, two = (0, key, b"one", own), (1, None, b"two", [])
        self.assertEqual(sorted(copies(2), key=lambda c: c[0]), [one, two])
        self.assertEqual(hub.stop(), 0)
        for partition in 1, 2:
            broker.tool("delete", "r", partition, 1)
        hub = self.start(settings)
        subprocess.run([STAGGER, "dead", "replay", "--hub",
                        f"http://127.0.0.1:{hub.port}", "--yes", "--all"],
                       check=True, timeout=PATIENCE, capture_output=True)
        # What was replayed is told without a value, then it is dead again.
        found = copies(6)
        self.assertEqual([c for c in found if c[0] == 0],
                         [one, (0, key, None, own), one])
        self.assertEqual([c for c in found if c[0] == 1],
                         [two, (1, None, None, []), two])
        self.assertEqual(hub.stop(), 0)


    # -- where a group begins

    def member(self, topic, leaf, store, start="latest", **options):
        """A hub of the group `topic`, with properties of librdkafka."""
        options = {"session.timeout.ms": 30000, "heartbeat.interval.ms": 1000,
                   **{k.replace("_", "."): v for k, v in options.items()}}
        path = os.path.join(self.folder, f"hub-{time.monotonic_ns()}.yaml")
        pathlib.Path(path).write_text(f"""
source: kafka
kafka:
  brokers: {json.dumps(self.real().addresses.split(","))}
  topics: ['{topic}']
  group: {topic}
  start: "{start}"
  options: {json.dumps(options)}
store: {{path: {store}}}
listen: {{address: 127.0.0.1:0}}
targets: [{{name: a, url: "{leaf.url()}"}}]
""")
        return self.start(path)

    def counted(self, leaf):
        with leaf.changed:
            return kafka_case.ids(leaf.receipts)

    def test_a_group_begins_at_a_time(self):
        broker = self.real()
        broker.topic("at", 2)
        for p in range(2):
            broker.produce("at", {p: [b"old"] * 5})
        broker.produce("at", {0: [b"new"] * 3})
        stamps = broker.consume("at", 8, "-p", "0", "-f", "%T\n").split()
        self.assertGreater(int(stamps[5]), int(stamps[4]))
        ms = int(stamps[5])
        start = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(ms // 1000))
        a = self.leaf()
        hub = self.member("at", a, "at.db", start=f"{start}.{ms % 1000:03d}Z")
        self.assertEqual(hub.event("topic-started")["older"], 10)
        a.wait(3)
        broker.produce("at", {1: [b"new"]})
        a.wait(4)
        self.assertEqual(hub.stop(), 0)
        self.assertEqual(set(self.counted(a)),
                         {"at.0.5", "at.0.6", "at.0.7", "at.1.5"})

    def test_members_that_start_together_begin_once(self):
        broker = self.real()
        broker.topic("together", 6)
        for p in range(6):
            broker.produce("together", {p: [b"old"] * 10})
        a = self.leaf()
        hubs = [self.member("together", a, f"together{i}.db")
                for i in range(3)]
        self.await_partitions(*hubs, count=6)
        for p in range(6):
            broker.produce("together", {p: [b"new"] * 5})
        case.wait_for(lambda: len(self.counted(a)) >= 30, "the new ones")
        for hub in hubs:
            self.assertEqual(hub.stop(), 0)
        self.assertEqual(set(self.counted(a)),
                         {f"together.{p}.{i}" for p in range(6)
                          for i in range(10, 15)})
        told = [line["older"] for hub in hubs
                for line in hub.events("topic-started")]
        self.assertEqual(told, [60])

    def test_what_may_be_another_topic_is_told(self):
        """Made again, with an aborted transaction where records were read."""
        broker = self.real()
        broker.topic("unsure", 1)
        a = self.leaf()
        hub = self.member("unsure", a, "unsure.db", start="earliest")
        broker.produce("unsure", {0: [b"old"] * 10})
        a.wait(10)
        self.assertEqual(hub.stop(), 0)
        for words in ["--delete"], ["--create", "--partitions", "1"]:
            kafka("topics", broker.folder, "--", *words, "--topic", "unsure")
        broker.tool("transact", "unsure", 0, 20, "abort")
        broker.produce("unsure", {0: [b"new"] * 3})
        hub = self.member("unsure", a, "unsure.db", start="earliest")
        self.assertIn("no record that was read of it is there any more",
                      hub.event("topic-uncertain", topic="unsure")["detail"])
        # It is read on from where it was, and what it has is sent.
        a.wait(13)
        self.assertEqual({r.body for r in a.receipts[10:]}, {b"new"})
        self.assertEqual(hub.stop(), 0)

    # -- how the group shares partitions out

    def moved(self, hub):
        return [line["event"] for line in hub.lines
                if line["event"].startswith("partition-")]

    def test_a_static_member_that_restarts_moves_no_partition(self):
        broker = self.real()
        broker.topic("static", 4)
        a = self.leaf()

        def start(i):
            return self.member("static", a, f"static{i}.db",
                               group_instance_id=f"hub-{i}")
        one, two = start(1), start(2)
        case.wait_for(lambda: len(two.events("partition-taken")) == 2,
                      "half of them")
        self.await_partitions(one, two, count=4)
        before = self.moved(one)
        for p in range(4):
            broker.produce("static", {p: [b"x"] * 10})
        a.wait(40)
        self.assertEqual(two.stop(), 0)
        for p in range(4):
            broker.produce("static", {p: [b"y"] * 10})
        two = start(2)
        a.wait(80)
        self.assertEqual(self.moved(one), before, "no rebalance")
        self.assertEqual(len(two.events("partition-taken")), 2)
        for hub in one, two:
            self.assertEqual(hub.stop(), 0)
        self.assertEqual(set(self.counted(a).values()), {1})

    def test_a_cooperative_group_keeps_what_need_not_move(self):
        broker = self.real()
        broker.topic("coop", 4)
        a = self.leaf()

        def start(i):
            return self.member("coop", a, f"coop{i}.db",
                               partition_assignment_strategy=
                               "cooperative-sticky")
        one = start(1)
        self.await_partitions(one, count=4)
        sent = 0

        def produce():
            for p in range(4):
                broker.produce("coop", {p: [b"x"] * 20})
            return sent + 80
        sent = produce()
        two = start(2)
        case.wait_for(lambda: len(two.events("partition-taken")) == 2,
                      "half of them")
        sent = produce()
        case.wait_for(lambda: len(self.counted(a)) == sent, "all of them")
        self.assertEqual(collections.Counter(self.moved(one)),
                         {"partition-taken": 4, "partition-revoked": 2})
        self.assertEqual(two.stop(), 0)
        self.await_partitions(one, count=4)
        sent = produce()
        case.wait_for(lambda: len(self.counted(a)) == sent, "all of them")
        self.assertEqual(one.stop(), 0)
        self.assertEqual(collections.Counter(self.moved(one)),
                         {"partition-taken": 6, "partition-revoked": 2})
        self.assertEqual(set(self.counted(a).values()), {1})


if __name__ == "__main__":
    case.main(1, behind=[Records.end])
