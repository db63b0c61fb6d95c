#!/usr/bin/env python3
"""Every line that the hub logs has the shape of docs/logs.md: hubs are run so
that they have something to tell, and what they told is compared. (Every other
test of the hub compares its lines, too: see case.py.)"""
import collections
import contextlib
import http.client
import json
import os
import re
import signal
import socket
import sqlite3
import subprocess
import time
import urllib.request

import case
import leaf
import log_shapes

# Told by the hubs of other scripts.
ELSEWHERE = {"store-broken": "store_faults.py", "audit-failed": "contract.py",
             "expiring": "quota.py", "dead-letters-filling": "quota.py",
             "dead-letters-room": "quota.py", "fd-limit": "ingress.py",
             "handshake-failed": "tls.py", "certificate-reloaded": "tls.py",
             "certificate-kept": "tls.py", "message-too-large": "kafka_hub.py",
             "letters-cut": "kafka_real.py",
             "headers-lost": "kafka_hub.py",
             "partition-taken": "kafka_hub.py",
             "uplink-down": "faults.py", "uplink-up": "faults.py",
             "proxy-down": "proxies.py", "proxy-up": "proxies.py",
             "target-changed": "kafka_rows.py",
             "target-refused": "kafka_rows.py",
             "secrets-encrypted": "targets.py",
             "rewind-ended": "rewind.py", "owner-not-told": "alerts.py",
             "spans-unsent": "spans.py", "spans-sent": "spans.py",
             "receipts-uncopied": "hub.py", "receipts-copied": "hub.py",
             "replayed-on-recovery": "hub.py", "target-disabled": "hub.py",
             "no-targets": "targets.py", "token-fetched": "oauth.py",
             "token-failed": "oauth.py", "token-refused": "oauth.py",
             "topic-check": "kafka_rows.py",
             "topic-uncertain": "kafka_rows.py",
             "partition-lost": "kafka_hub.py",
             "topic-started": "kafka_hub.py",
             "target-released": "kafka_hub.py",
             "kafka-away": "kafka_hub.py", "kafka-back": "kafka_hub.py"}
# A disk with no room even for rows, a commit that nobody knows of, and half a
# minute of patience: only check_logs.py compares these. And so it is with what
# only topics that are cut off, made again or gone have to tell.
NOWHERE = {"store-full", "store-space-ok", "request-cut",
           "messages-lost", "partition-revoked", "partition-fenced",
           "partition-recreated", "partition-refused", "log-expired",
           "topic-recreated", "kafka-trouble", "kafka-trouble-goes-on", "kafka-trouble-over", "kafka-reopened", "kafka-config-warning",
           "topic-gone", "topic-vanished", "topic-found",
           "partitions-added", "librdkafka",
           "offset-missing", "store-clock"}


def call(hub, method, path, body=None):
    connection = http.client.HTTPConnection("127.0.0.1", hub.port,
                                            timeout=case.PATIENCE)
    with contextlib.closing(connection):
        connection.request(method, path, body,
                           {"Content-Type": "application/json"})
        answer = connection.getresponse()
        return answer.status, json.loads(answer.read())


class Lines(case.Case):
    def settings(self, targets, **more):
        path = os.path.join(self.folder, "stagger.yaml")
        more = {"listen": {"address": "127.0.0.1:0"},
                "store": {"path": self.store}, **more, "targets": targets}
        with open(path + ".new", "w") as file:
            json.dump(more, file)
        os.replace(path + ".new", path)
        return path

    def told(self, hub, *events):
        """Each was told, in a shape that is right."""
        for event in events:
            case.wait_for(lambda: hub.events(event),
                          lambda: f"{event}; there is "
                          f"{ {l['event'] for l in hub.lines} }")
        self.assertEqual(hub.misshapen, [])

    def test_of_a_life(self):
        a = self.leaf(lambda r: 503 if r.attempt == 1 else 200)
        hub = self.hub("--to", f"a={a.url()}", "--to", f"gone={self.refused()}",
                       "--policy", "fixed base=10ms retry=5xx breaker=none",
                       "--verbose")
        for _ in range(5):
            hub.post(b"x")
        a.wait(10)
        self.told(hub, "ready", "attempt-failed", "delivered")
        self.assertEqual(hub.stop(), 0)
        self.told(hub, "stopping", "stopped")
        # What is alike is counted.
        self.assertTrue([line for line in hub.events("attempt-failed")
                         if "repeated" in line])
        hub = self.hub("--to", f"a={a.url()}")
        self.told(hub, "target-unknown")

    def test_of_a_breaker(self):
        answer = [503]
        a = self.leaf(lambda r: answer[0])
        hub = self.hub("--to", f"a={a.url()}", "--policy",
                       "fixed base=10ms attempts=1 breaker=1:400ms",
                       "--shed-after", "50ms")
        hub.post(b"x")
        self.told(hub, "breaker-opened", "shedding")
        hub.post(b"y")
        answer[0] = 200
        # Only what is not shed yet can be a probe.
        case.wait_for(lambda: hub.post(b"z") and hub.events("breaker-closed"),
                      "a probe")
        self.told(hub, "breaker-closed", "shedding-ended")

    def test_of_parked_rows(self):
        answer = [503]
        a = self.leaf(lambda r: answer[0])
        hub = self.hub(settings=self.settings(
            [{"name": "a", "url": a.url(), "parked-max": 2,
              "policy": "fixed base=200ms attempts=100 retry=5xx breaker=none"
              }]))
        for _ in range(5):
            hub.post(b"x")
        self.told(hub, "parked-max")
        answer[0] = 200
        self.told(hub, "parked-below-max")

    def test_of_one_that_catches_up(self):
        a = self.leaf()
        hub = self.hub("--to", f"a={a.url('/a')}", "--to", f"b={a.url('/b')}",
                       "--memory", "8MiB")
        self.assertEqual(call(hub, "POST", "/v1/targets/b/pause")[0], 200)
        with contextlib.closing(hub.producer()) as producer:
            for _ in range(60):
                producer.post(bytes(200 << 10))
        a.wait(60)
        self.assertEqual(call(hub, "POST", "/v1/targets/b/resume")[0], 200)
        self.told(hub, "catching-up", "audit", "caught-up")

    def test_of_a_replay(self):
        answer = [404]
        a = self.leaf(lambda r: answer[0])
        hub = self.hub("--to", f"a={a.url()}")
        hub.post(b"x")
        case.wait_for(self.rows, "a dead letter")
        answer[0] = 200
        status, text = call(hub, "POST", "/v1/dead-letters/replay",
                            json.dumps({"target": "a"}))
        self.assertLess(status, 300, text)
        self.told(hub, "replay-ended")

    def test_of_settings(self):
        a = self.leaf()
        target = {"name": "a", "url": a.url()}
        path = self.settings([{**target, "shed-after": "48h"}])
        hub = self.hub(settings=path, before=("prlimit", "--nofile=1000"))
        self.told(hub, "config-warning", "connections-capped")
        self.settings([target, {"name": "b", "url": a.url()}])
        hub.process.send_signal(signal.SIGHUP)
        self.told(hub, "reloaded")
        self.settings([{**target, "shed-after": "one", "colour": "red"}])
        hub.process.send_signal(signal.SIGHUP)
        self.told(hub, "reload-refused")

    def test_of_producers(self):
        a = self.leaf()
        hub = self.hub(settings=self.settings(
            [{"name": "a", "url": a.url()}],
            listen={"address": "127.0.0.1:0",
                    "connections": {"per-address": 1}}))
        call(hub, "POST", "/v1/messages/nowhere")
        self.told(hub, "request-refused")
        # One that has just come is not closed for another.
        with contextlib.ExitStack() as producers:
            for _ in range(8):
                producers.enter_context(socket.create_connection(
                    ("127.0.0.1", hub.port), timeout=case.PATIENCE))
        self.told(hub, "connections-refused")

    def test_of_alerts(self):
        a = self.leaf(lambda r: 404)
        leaf = self.leaf()
        hub = self.hub(settings=self.settings(
            [{"name": "a", "url": a.url()}],
            alerts={"threshold": "2 failures in 5m", "group-wait": "1s",
                    "receivers": [
                        {"name": "good", "type": "webhook", "url": leaf.url()},
                        {"name": "bad", "type": "webhook",
                         "url": self.refused()}]}))
        for _ in range(3):
            hub.post(b"x")
        self.told(hub, "alert", "alert-failed")

    def check_pace(self, lines):
        """No event comes more than ten times a second for one cause, wherever
        the second begins."""
        times = collections.defaultdict(list)
        for line in lines:
            if not log_shapes.SHAPES[line["event"]].is_always:
                times[line["event"], line.get("cause")].append(
                    case.seconds(line["time"]))
        for kind, at in times.items():
            for first, eleventh in zip(at, at[10:]):
                self.assertGreater(eleventh - first, 0.998, kind)

    def failures(self, hub):
        """How many attempts failed by now, as the metrics say."""
        with contextlib.closing(urllib.request.urlopen(
                f"http://127.0.0.1:{hub.port}/metrics")) as page:
            return sum(int(line.rsplit(b" ", 1)[1]) for line in page
                       if line.startswith(b"stagger_attempts_total{")
                       and b'cause="OK"' not in line)

    def test_of_an_outage_of_many_targets(self):
        told = self.leaf()
        refused = {"url": self.refused()}
        targets = [
            {"name": f"t{i:03}", **refused,
             "policy": "fixed base=200ms attempts=100 breaker="
             + ("none" if i < 250 else "2:1h")} for i in range(300)]
        hub = self.hub(settings=self.settings(
            targets, alerts={"threshold": "2 failures in 5m",
                             "group-wait": "1s", "receivers": [
                                 {"name": "on-call", "type": "webhook",
                                  "url": told.url()}]}))
        for _ in range(2):
            hub.post(b"x")
        self.told(hub, "attempt-failed", "breaker-opened")
        self.reload(hub)
        told.wait(1)
        case.wait_for(lambda: self.failures(hub) > 250 * 2 * 8, "failures")
        # The stop comes in the middle of a second, and the counts are told.
        self.assertEqual(hub.stop(), 0)
        self.assertEqual([line["event"] for line in hub.lines
                          if line["event"].startswith("stop")],
                         ["stopping", "stopped"])
        self.assertEqual(hub.lines[-1]["event"], "stopped")
        self.check_pace(hub.lines)
        self.check_folds(hub)

    def check_folds(self, hub):
        """A fold says how many, over how many targets, and names three; and
        each attempt of the store's rows is in a line."""
        lines = hub.events("attempt-failed")
        folds = [line for line in lines if "folded" in line]
        for line in folds:
            self.assertEqual((line["level"], line["cause"]),
                             ("warn", "CONNECTION_REFUSED"))
            self.assertEqual(len(set(line["names"].split(", "))),
                             min(3, line["targets"]))
        # Nine targets have lines of their own, and their repeats are counted.
        self.assertGreaterEqual(max(line["targets"] for line in folds), 291)
        attempts = self.rows("SELECT sum(attempts) AS n FROM parked")[0]["n"]
        self.assertEqual(sum(map(log_shapes.events_in, lines)), attempts)
        case.note(self, f"{attempts} failures in {len(lines)} lines")

    def test_of_an_outage_with_level_debug(self):
        refused = self.refused()
        hub = self.hub(*[word for i in range(40)
                         for word in ("--to", f"t{i}={refused}")],
                       "--policy", "fixed base=1h", "--verbose")
        hub.post(b"x")
        case.wait_for(lambda: len(hub.events("attempt-failed")) == 40,
                      lambda: hub.events("attempt-failed"))
        self.assertEqual({line["target"]
                          for line in hub.events("attempt-failed")},
                         {f"t{i}" for i in range(40)})

    def test_of_a_store_that_another_process_holds(self):
        a = self.leaf()
        hub = self.hub("--to", f"a={a.url()}")
        with contextlib.closing(sqlite3.connect(
                self.store, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            with case.futures.ThreadPoolExecutor(1) as pool:
                sent = pool.submit(hub.post, b"x")
                self.told(hub, "store-trouble")
                other.execute("ROLLBACK")
                sent.result()
        self.told(hub, "store-trouble-over")

    def test_of_a_log_that_nobody_reads(self):
        a = self.leaf()
        read, write = os.pipe()
        process = subprocess.Popen(
            [case.STAGGER, "hub", "--log", "json", "--verbose",
             "--store", self.store, "--listen", "127.0.0.1:0", "--to",
             f"a={a.url()}"], stderr=write)
        os.close(write)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        with os.fdopen(read) as log:
            port = int(json.loads(log.readline())["listen"].rsplit(":")[-1])
            with contextlib.closing(case.Producer(port)) as producer:
                for _ in range(40): # some 200 KiB of lines
                    producer.post_lines([{"body": "x"}] * 20)
            a.wait(800)
            for line in log:
                line = json.loads(line)
                self.assertEqual(log_shapes.mistakes(line), [])
                if line["event"] == "log-lines-dropped":
                    break
            self.assertEqual(line["event"], "log-lines-dropped")

    def test_in_logfmt_has_the_same_fields(self):
        a = self.leaf(lambda r: 503 if r.attempt == 1 else 200)
        process = subprocess.Popen(
            [case.STAGGER, "hub", "--store", self.store, "--listen",
             "127.0.0.1:0", "--to", f"a={a.url()}", "--policy",
             "fixed base=10ms retry=5xx"], stderr=subprocess.PIPE, text=True)
        self.addCleanup(process.kill)
        lines = [process.stderr.readline()]
        port = int(re.search(r"listen=\S*:(\d+) ", lines[0])[1])
        with contextlib.closing(case.Producer(port)) as producer:
            producer.post(b"x")
        a.wait(2)
        process.terminate()
        lines += process.communicate()[1].splitlines(keepends=True)
        value = r'(?:"(?:[^"\\]|\\.)*"|[^\s"=\\]+)'
        for text in lines:
            self.assertRegex(text, rf"^[a-z_]+={value}(?: [a-z_]+={value})*\n$")
            names = re.findall(rf"(?:^| )([a-z_]+)={value}", text)
            event = re.search(r" event=([a-z-]+)", text)[1]
            shape = log_shapes.SHAPES[event]
            self.assertEqual(names[:3], ["time", "level", "event"])
            self.assertEqual(
                names[3:], [name for name, _, _ in shape.fields
                            if name in names[3:]], text)
        self.assertEqual(len(lines), 5, lines)

    def test_of_every_event_is_here_or_elsewhere(self):
        with open(__file__) as file:
            here = file.read()
        self.assertEqual([event for event in log_shapes.SHAPES
                          if f'"{event}"' not in here], [])
        for event, script in ELSEWHERE.items():
            with open(os.path.join(os.path.dirname(__file__), script)) as file:
                self.assertIn(f'"{event}"', file.read(), script)


if __name__ == "__main__":
    case.main()
