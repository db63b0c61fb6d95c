"""Kafka for the end-to-end tests: brokers, producers, and a watcher of what a
group has committed.

    class Some(kafka_case.Case):
        def test_a_thing_is_so(self):
            broker = self.mock(t=4)              # a topic t of 4 partitions
            a = self.leaf()
            hub = self.hub(broker, "t", f"a={a.url()}")
            broker.produce("t", {0: [b"one", b"two"]})

The cluster is librdkafka's mock, in a process of its own; or a real one
(kafka_real.py).
"""
import collections
import contextlib
import http.client
import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time

import case
from case import wait_for
from leaf import PATIENCE

TOOL = os.environ.get("STAGGER_KAFKA_TOOL", "")

if not TOOL or not shutil.which("kcat"):
    print("left out: no librdkafka or no kcat")
    sys.exit(77)


class Broker:
    """What mock and real clusters have in common."""
    addresses = ""

    def url(self, *topics, group="hub", start="earliest"):
        return (f"kafka://{self.addresses}/{','.join(topics)}?group={group}"
                f"&start={start}")

    def kcat(self, *words, **more):
        return subprocess.run(
            ["kcat", "-b", self.addresses, "-X", "log_level=0", *words],
            check=True, timeout=PATIENCE, capture_output=True, **more)

    def produce(self, topic, partitions, *words):
        """Lines of each partition: bytes without an end of line."""
        for number, lines in partitions.items():
            self.kcat("-P", "-t", topic, "-p", str(number), *words,
                      input=b"".join(line + b"\n" for line in lines))

    def tool(self, what, *words):
        """kafka_tool on this cluster."""
        subprocess.run([TOOL, what, self.addresses, *map(str, words)],
                       check=True, timeout=PATIENCE, capture_output=True)

    def consume(self, topic, count, *words):
        """The values of so many records, from the beginning."""
        r = self.kcat("-C", "-t", topic, "-o", "beginning", "-c", str(count),
                      *words)
        return r.stdout

    def records(self, topic):
        """All that is there, as [(partition, key, value, headers)]: bytes, of
        a key and a value None for null; headers as ["name=value"]."""
        end = b"<end>"
        found = self.kcat("-C", "-t", topic, "-o", "beginning", "-e", "-f",
                          "%p|%K|%k|%S|%s|%h<end>").stdout.split(end)[:-1]
        return [self.record(at) for at in found]

    def record(self, text):
        partition, text = text.split(b"|", 1)
        bytes_of = []
        for _ in range(2):
            size, text = text.split(b"|", 1)
            size = int(size)
            bytes_of.append(text[:size] if size >= 0 else None)
            text = text[max(size, 0) + 1:]
        return int(partition), *bytes_of, text.split(b",")

    def watch(self, topic, partitions, group="hub"):
        return Watcher(self.addresses, group, topic, partitions)


class Mock(Broker):
    def __init__(self, **topics):
        self.process = subprocess.Popen(
            [TOOL, "mock"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL, text=True)
        self.addresses = self.process.stdout.readline().strip()
        for name, partitions in topics.items():
            self.tell("topic", name, partitions)

    def tell(self, *words):
        self.process.stdin.write(" ".join(map(str, words)) + "\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline().strip()
        assert answer == "ok", f"{words}: {answer}"

    def close(self):
        with contextlib.suppress(OSError):
            self.process.stdin.close()
        self.process.wait(PATIENCE)
        self.process.stdout.close()


class Watcher:
    """Asks all the time what the group has committed. bounds(partition) gives
    what no commit may pass, read after it; each is judged as it is seen."""

    def __init__(self, addresses, group, topic, partitions):
        self.committed = collections.defaultdict(lambda: -1001)
        self.history, self.changed = [], threading.Condition()
        self.judge = None
        self.mistakes = []
        self.process = subprocess.Popen(
            [TOOL, "offsets", addresses, group, topic, str(partitions), "20"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        threading.Thread(target=self.read, daemon=True).start()

    def read(self):
        for line in self.process.stdout:
            if line == "-\n":
                continue
            partition, offset = map(int, line.split())
            if self.judge is not None:
                wrong = self.judge(partition, offset)
                if wrong:
                    self.mistakes.append(wrong)
            with self.changed:
                self.committed[partition] = offset
                self.history.append((time.monotonic(), partition, offset))
                self.changed.notify_all()

    def wait(self, expected):
        """Until the group has committed {partition: offset}."""
        with self.changed:
            there = self.changed.wait_for(
                lambda: all(self.committed[p] >= offset
                            for p, offset in expected.items()), PATIENCE)
            assert there, (f"committed {dict(self.committed)} in {PATIENCE} s, "
                           f"not {expected}")

    def close(self):
        with contextlib.suppress(OSError):
            self.process.stdin.close()
        self.process.wait(PATIENCE)
        self.process.stdout.close()


class Case(case.Case):
    def mock(self, **topics):
        return self.kept(Mock(**topics))

    def watch(self, broker, *arguments, **more):
        return self.kept(broker.watch(*arguments, **more))

    def hub(self, broker, topics, *targets, options=(), group="hub",
            store="hub.db", defaults="", more="", **given):
        """targets: NAME=URL. The mock cluster lets a member in when the session
        of the one that left is over, so that is short."""
        topics = [topics] if isinstance(topics, str) else topics
        leaves = "\n".join('  - {{name: {}, url: "{}"}}'.format(
            *target.split("=", 1)) for target in targets)
        return self.hub_of(f"""
source: "{broker.url(*topics, group=group)}"
kafka: {{options: {{session.timeout.ms: 3000, heartbeat.interval.ms: 500}}}}
store: {{path: "{store}"}}
listen: {{address: 127.0.0.1:0}}
defaults: {{{defaults}}}
{more}
targets:
{leaves}
""", *options, **given)

    def hub_of(self, text, *options, **given):
        """From a settings file."""
        handle, path = tempfile.mkstemp(".yaml", dir=self.folder)
        os.write(handle, text.encode())
        os.close(handle)
        return super().hub(*options, settings=path, **given)

    def page(self, hub):
        c = http.client.HTTPConnection("127.0.0.1", hub.port, timeout=PATIENCE)
        c.request("GET", "/metrics")
        text = c.getresponse().read().decode()
        c.close()
        return text

    def call(self, hub, path):
        c = http.client.HTTPConnection("127.0.0.1", hub.port, timeout=PATIENCE)
        c.request("GET", path)
        answer = c.getresponse()
        text = answer.read()
        c.close()
        self.assertEqual(answer.status, 200, text)
        return json.loads(text)

    def await_partitions(self, *hubs, count):
        """Until so many are read, by all of them together."""
        def ours():
            return sum(len(h.events("partition-taken"))
                       - len(h.events("partition-revoked"))
                       - len(h.events("partition-lost")) for h in hubs)
        wait_for(lambda: ours() == count,
                 lambda: f"{count} partitions; there are {ours()}")


def ids(receipts):
    return collections.Counter(r.id for r in receipts)
