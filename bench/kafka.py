#!/usr/bin/env python3
"""How fast a hub on Kafka is, and what it costs, beside what one writes without
it: `make bench-kafka`.

usage: kafka.py [--pairs N] [--quick] [--who hub,curl,kafkajs] STAGGER [PART...]

A real broker (scripts/kafka) with topics of 8 partitions, bodies of 1 KB. Who
sends has core 0, everything else core 1: the broker, and `stagger sink`, which is
all of the targets. Who sends is in turn, pair by pair

  hub      stagger hub, a store in a file
  curl     bench/peers/kafka_curl.c: librdkafka and libcurl's multi interface
  kafkajs  bench/peers/kafkajs: kafkajs and undici

  rate      Deliveries a second and CPU us for each, with 1, 3 and 50 targets, up
            to 64 at once for each. The sink is stopped (SIGSTOP) until who sends
            has connected to it, so that nothing but reading and delivery is
            measured; to 50 targets it is much of it that 3200 connections are
            made. Medians.
  black     Latency at 100 messages a second to 3 targets, and to 3 and a fourth
            that is a black hole: from when it was sent until the sink has read
            the request, at the three. And how many of them came within 5 s of
            the last one; of kafkajs none may, which waits for the black hole.
  pair      The rate with 3 targets of two hubs of one group, in one database.
  times     Seconds: from the start of a hub to its first delivery; from the start
            of a second one until it reads; from the SIGKILL of that one until the
            first reads its partitions again (session.timeout.ms 6000).
  memory    Of a hub with 64 partitions and 50 targets that has delivered messages
            of 8 KB, more than what it has room for; and the most that it had.

--quick: fewer of all, and two pairs unless --pairs says otherwise; about 8 minutes.
"""
import argparse
import contextlib
import ctypes
import ctypes.util
import hashlib
import json
import os
import pathlib
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time

import hub as base
from hub import cpu_seconds, on_core, quantile, resident_kb

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent
PARTITIONS = 8
BODY = 1024


def script(name, *words):
    r = subprocess.run([ROOT / "scripts" / name, *map(str, words)], text=True,
                       capture_output=True)
    if r.returncode:
        sys.exit(f"kafka.py: scripts/{name} {words[0]}: {r.stderr.strip()}")
    return r.stdout.strip().splitlines()[-1] if r.stdout.strip() else ""


class Producer:
    """One that sends each message at once, by librdkafka: kcat waits for 4 KB of
    its input."""

    def __init__(self, addresses, topic):
        name = ctypes.util.find_library("rdkafka")
        if name is None:
            sys.exit("kafka.py: there is no librdkafka: scripts/deps all")
        self.lib = lib = ctypes.CDLL(name)
        for call in "conf_new", "new", "topic_new":
            getattr(lib, f"rd_kafka_{call}").restype = ctypes.c_void_p
        conf = ctypes.c_void_p(lib.rd_kafka_conf_new())
        for key, value in (("bootstrap.servers", addresses), ("linger.ms", "0"),
                           ("log_level", "0"),
                           ("sticky.partitioning.linger.ms", "0")):
            lib.rd_kafka_conf_set(conf, key.encode(), value.encode(), None,
                                  ctypes.c_size_t(0))
        words = ctypes.create_string_buffer(256)
        self.kafka = ctypes.c_void_p(lib.rd_kafka_new(
            0, conf, words, ctypes.c_size_t(len(words))))
        if not self.kafka:
            sys.exit(f"kafka.py: no producer: {words.value.decode()}")
        self.topic = ctypes.c_void_p(lib.rd_kafka_topic_new(
            self.kafka, topic.encode(), None))

    def send(self, line):
        copied = 2
        if self.lib.rd_kafka_produce(
                self.topic, ctypes.c_int32(-1), copied, line,
                ctypes.c_size_t(len(line)), None, ctypes.c_size_t(0), None):
            sys.exit("kafka.py: a message was not sent")
        self.lib.rd_kafka_poll(self.kafka, 0)

    def close(self):
        self.lib.rd_kafka_flush(self.kafka, 10000)
        self.lib.rd_kafka_topic_destroy(self.topic)
        self.lib.rd_kafka_destroy(self.kafka)


class Bench(base.Bench):
    def __init__(self, *arguments):
        super().__init__(*arguments)
        self.topics = 0

    def __enter__(self):
        self.place = self.stack.enter_context(tempfile.TemporaryDirectory())
        self.broker = os.path.join(self.place, "kafka")
        self.addresses = script("kafka", "up", self.broker)
        self.stack.callback(script, "kafka", "down", "--clear", self.broker)
        return self

    # -- messages

    def topic(self, partitions=PARTITIONS):
        self.topics += 1
        name = f"t{self.topics}"
        script("kafka", "topics", self.broker, "--", "--create", "--topic",
               name, "--partitions", partitions)
        return name

    def kcat(self, topic, *words, **more):
        return on_core(1, "kcat", "-P", "-b", self.addresses, "-t", topic,
                       "-X", "log_level=0", "-X", "partitioner=random",
                       "-X", "sticky.partitioning.linger.ms=0", *words)

    def publish(self, topic, count, body=BODY):
        text = ("x" * body + "\n") * count
        subprocess.run(self.kcat(topic), input=text.encode(), check=True)

    # -- who sends

    def start_hub(self, topic, urls, *options, group=None, core=0, quiet=True):
        path = os.path.join(self.folder, f"{time.monotonic_ns()}.yaml")
        targets = "\n".join(f'  - {{name: t{i}, url: "{url}"}}'
                            for i, url in enumerate(urls))
        store = dict(options).get("store", f"{path}.db")
        pathlib.Path(path).write_text(
            f'source: "kafka://{self.addresses}/{topic}?start=earliest&group='
            f'{group or topic}"\n'
            "kafka: {options: {session.timeout.ms: 6000, "
            "heartbeat.interval.ms: 1000}}\n"
            f'store: {{path: "{store}"}}\n'
            "listen: {address: 127.0.0.1:0}\n"
            f"log: {{format: json, level: {'warn' if quiet else 'info'}}}\n"
            f"targets:\n{targets}\n")
        log = open(path + ".log", "wb+")
        self.stack.callback(log.close)
        hub = self.start(core, self.stagger, "hub", "-c", path, stderr=log,
                         stdout=subprocess.DEVNULL)
        hub.log = path + ".log"
        return hub

    def start_curl(self, topic, urls):
        program = os.path.join(os.path.dirname(self.stagger), "bench",
                               "kafka_curl")
        return self.start(0, program, self.addresses, topic, topic, *urls)

    def start_kafkajs(self, topic, urls):
        folder = ROOT / "build/tools/bench-kafkajs"
        if not (folder / "node_modules").exists():
            folder.mkdir(parents=True, exist_ok=True)
            shutil.copy(HERE / "peers/kafkajs/package.json", folder)
            subprocess.run(["npm", "install", "--silent", "--no-audit",
                            "--no-fund"], cwd=folder, check=True)
        shutil.copy(HERE / "peers/kafkajs/index.mjs", folder)
        return self.start(0, "node", folder / "index.mjs", self.addresses,
                          topic, topic, *urls)

    def senders(self):
        all = {"hub": self.start_hub, "curl": self.start_curl,
               "kafkajs": self.start_kafkajs}
        if not shutil.which("npm"):
            del all["kafkajs"]
        return [(name, all[name]) for name in self.who if name in all]

    # -- rate

    def await_connections(self, port, seconds=60):
        """Until somebody has connected to the sink's port, and a second more."""
        expected = f":{port:04X}"
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            with open("/proc/net/tcp") as rows:
                if any(row.split()[2].endswith(expected) for row in
                       list(rows)[1:]):
                    time.sleep(1)
                    return
            time.sleep(0.05)
        sys.exit("kafka.py: nobody has connected to the sink")

    def drain(self, start, targets, messages, more=None):
        """Deliveries a second, and CPU us each."""
        with self.world():
            topic, total = self.topic(), targets * messages
            self.publish(topic, messages)
            sink, url = self.sink("--count", total)
            sink.send_signal(signal.SIGSTOP)
            urls = [f"{url}/t/{i}" for i in range(targets)]
            senders = [start(topic, urls)]
            if more is not None:
                senders.append(more(topic, urls))
            self.await_connections(int(url.rsplit(":", 1)[1]))
            began = time.monotonic()
            cpu = sum(cpu_seconds(s.pid) for s in senders)
            sink.send_signal(signal.SIGCONT)
            sink.wait(600)
            took = time.monotonic() - began
            cpu = sum(cpu_seconds(s.pid) for s in senders) - cpu
            return total / took, cpu / total * 1e6, resident_kb(senders[0].pid)

    def rate(self):
        print("rate      targets  who      deliveries/s  us CPU each  RSS MB")
        total = 30000 if self.is_quick else 240000
        for targets in (1, 3, 50):
            rows = {}
            for _ in range(self.pairs):
                for name, start in self.senders():
                    rows.setdefault(name, []).append(
                        self.drain(start, targets, total // targets))
            for name, found in rows.items():
                rate, cpu, kb = (statistics.median(c) for c in zip(*found))
                print(f"          {targets:7}  {name:8} {rate:12,.0f}  "
                      f"{cpu:11.1f}  {kb / 1024:6.1f}", flush=True)

    # -- a black hole

    def measure(self, start, rate, seconds, odd):
        with self.world():
            topic = self.topic()
            log = os.path.join(self.folder, "receipts")
            _, url = self.sink("--log", log)
            urls = [f"{url}/t/{i}" for i in range(3)] + odd
            start(topic, urls)
            producer = Producer(self.addresses, topic)
            # A first one, so that all have joined and connected.
            producer.send(b"first")
            self.await_lines(log, 3, 60)
            sent, began = {}, time.monotonic()
            for i in range(int(rate * seconds)):
                pause = began + i / rate - time.monotonic()
                if pause > 0:
                    time.sleep(pause)
                line = f"{i:<1023}".encode()
                sent[hashlib.sha256(line).hexdigest()] = time.time()
                producer.send(line)
            producer.close()
            self.await_lines(log, 3 + 3 * len(sent), 5)
            waits = []
            with open(log) as rows:
                for row in map(json.loads, rows):
                    if row["sha256"] in sent:
                        waits.append(row["time"] - sent[row["sha256"]])
            came = len(waits) / (3 * len(sent)) * 100
            # Of one that the black hole has stopped nothing may have come.
            waits = waits or [float("nan")]
            return (quantile(waits, .5) * 1e3, quantile(waits, .99) * 1e3,
                    came)

    def black(self):
        print("black     the 4th target    who           p50 ms      p99 ms  "
              "came, %")
        seconds = 5 if self.is_quick else 20
        for odd in "none", "a black hole":
            rows = {}
            for _ in range(self.pairs):
                for name, start in self.senders():
                    with contextlib.ExitStack() as held:
                        urls = []
                        if odd != "none":
                            outer, self.stack = self.stack, held
                            urls = [self.black_hole() + "/"]
                            self.stack = outer
                        rows.setdefault(name, []).append(
                            self.measure(start, 100, seconds, urls))
            for name, found in rows.items():
                p50, p99, came = (statistics.median(c) for c in zip(*found))
                print(f"          {odd:16}  {name:8}  {p50:10.2f}  {p99:10.2f}"
                      f"  {came:7.1f}", flush=True)

    # -- several hubs

    def pair(self):
        """The second one has the sink's core: what it adds is less than a
        machine of its own would."""
        database = os.path.join(self.place, "postgres")
        url = script("postgres", "up", database)
        self.stack.callback(script, "postgres", "down", database)
        messages = 10000 if self.is_quick else 40000
        print("pair         hubs  deliveries/s  us CPU each")
        for hubs in 1, 2:
            rows = []
            for _ in range(self.pairs):
                def start(topic, urls, core=0):
                    return self.start_hub(topic, urls, ("store", url),
                                          core=core)
                def more(topic, urls):
                    hub = start(topic, urls, core=1)
                    time.sleep(5)
                    return hub
                rows.append(self.drain(start, 3, messages,
                                       more if hubs == 2 else None))
            rate, cpu, _ = (statistics.median(c) for c in zip(*rows))
            print(f"          {hubs:7}  {rate:12,.0f}  {cpu:11.1f}", flush=True)

    def await_taken(self, hub, count, seconds=60):
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            with open(hub.log) as rows:
                if sum('"partition-taken"' in row for row in rows) >= count:
                    return time.monotonic()
            time.sleep(0.01)
        sys.exit("kafka.py: a hub has not got its partitions")

    def times(self):
        print("times     start s  join s  take over s")
        rows = []
        for _ in range(self.pairs):
            with self.world():
                topic = self.topic()
                self.publish(topic, 100)
                sink, url = self.sink("--count", 1)
                at = time.monotonic()
                one = self.start_hub(topic, [url + "/"], quiet=False)
                sink.wait(60)
                start = time.monotonic() - at
                self.await_taken(one, PARTITIONS)
                at = time.monotonic()
                two = self.start_hub(topic, [url + "/"], quiet=False)
                join = self.await_taken(two, 1) - at
                time.sleep(3)
                at = time.monotonic()
                two.kill()
                over = self.await_taken(one, 2 * PARTITIONS + PARTITIONS // 2)
                rows.append((start, join, over - at))
        start, join, over = (statistics.median(c) for c in zip(*rows))
        print(f"          {start:7.2f}  {join:6.2f}  {over:11.2f}", flush=True)

    def memory(self):
        with self.world():
            topic = self.topic(64)
            messages = 5000 if self.is_quick else 20000
            self.publish(topic, messages, 8 * BODY)
            sink, url = self.sink("--count", 50 * messages)
            hub = self.start_hub(topic, [f"{url}/t/{i}" for i in range(50)])
            sink.wait(600)
            print(f"memory    64 partitions, 50 targets: "
                  f"{resident_kb(hub.pid) / 1024:.1f} MB, at most "
                  f"{resident_kb(hub.pid, 'VmHWM') / 1024:.1f} MB", flush=True)


def main():
    parts = ["rate", "black", "pair", "times", "memory"]
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("--pairs", type=int)
    p.add_argument("--quick", action="store_true")
    p.add_argument("--who", default="hub,curl,kafkajs")
    p.add_argument("stagger")
    p.add_argument("parts", nargs="*", default=parts)
    o = p.parse_args()
    load = os.getloadavg()[0]
    if load > 0.5:
        print(f"kafka.py: the load average is {load:.1f}: other work slows all "
              "of it")
    pairs = o.pairs or (2 if o.quick else 3)
    with Bench(os.path.abspath(o.stagger), pairs, o.quick) as bench:
        bench.who = o.who.split(",")
        for part in o.parts:
            getattr(bench, part)()


if __name__ == "__main__":
    main()
