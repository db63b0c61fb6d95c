#!/usr/bin/env python3
"""Spans are taken by OpenTelemetry's own collector: its receiver of OTLP/HTTP, built
of its modules for Go (tests/hub/collector) into build/tools once, reads each
request, and prints what it has understood."""
import contextlib
import json
import os
import pathlib
import queue
import socket
import subprocess
import threading

import case
import spans
from leaf import PATIENCE
from spans import attributes
from traces import PARENT, TRACE, parts

SOURCE = pathlib.Path(os.environ["STAGGER_SOURCE"])
FOLDER = SOURCE / "tests/hub/collector"
TOOL = SOURCE / "build/tools/collector"
BUILD = 1200  # seconds: its modules are fetched, too


def build():
    TOOL.parent.mkdir(parents=True, exist_ok=True)
    subprocess.run(["go", "build", "-o", TOOL, "."], cwd=FOLDER, check=True,
                   timeout=BUILD)


def free_port():
    with contextlib.closing(socket.socket()) as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


class Collector:
    def __init__(self):
        self.address = f"127.0.0.1:{free_port()}"
        self.process = subprocess.Popen([TOOL, self.address],
                                        stdout=subprocess.PIPE, text=True)
        self.lines = queue.Queue()
        threading.Thread(target=self.read, daemon=True).start()
        ready = self.lines.get(timeout=PATIENCE)
        assert ready == "ready", ready

    def read(self):
        for line in self.process.stdout:
            self.lines.put(line.strip())

    def url(self, path):
        return f"http://{self.address}{path}"

    def request(self):
        """The next: its resource and its spans."""
        found, = json.loads(self.lines.get(timeout=PATIENCE))["resourceSpans"]
        scope, = found["scopeSpans"]
        return attributes(found["resource"]), scope["spans"]

    def close(self):
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()


class OfOpenTelemetry(spans.Hubs):
    def test_it_understands_spans_as_they_are_meant(self):
        collector = self.kept(Collector())
        hub = self.start(lambda r: 503 if r.attempt == 1 else 200, collector)
        id = hub.post(b"x", traceparent=f"00-{TRACE}-{PARENT}-01")
        receipts = self.target.wait(2)
        self.await_settled(1)
        self.assertEqual(hub.stop(), 0)
        resource, found = collector.request()
        self.assertEqual(resource["service.name"], "stagger")
        self.assertEqual([s["spanId"] for s in found],
                         [parts(r)[1] for r in receipts])
        for span in found:
            self.assertEqual((span["traceId"], span["parentSpanId"],
                              span["name"], span["kind"]),
                             (TRACE, PARENT, "POST shop", 3))
            self.assertLess(int(span["startTimeUnixNano"]),
                            int(span["endTimeUnixNano"]))
            self.assertEqual(attributes(span)["messaging.message.id"], id)
        self.assertEqual(found[0]["status"]["code"], 2)
        self.assertEqual(attributes(found[0])["http.response.status_code"], 503)
        self.assertEqual(found[1].get("status", {}), {})

    def test_it_takes_batches(self):
        collector = self.kept(Collector())
        hub = self.start(collector=collector)
        with contextlib.closing(hub.producer()) as producer:
            producer.post_lines({"body": "\u00e9\"\\"} for i in range(1200))
        self.await_metric(hub, "stagger_spans_exported_total", 1024)
        hub.stop()
        counts = [len(collector.request()[1]) for _ in range(3)]
        self.assertEqual(counts, [512, 512, 176])

    def test_what_it_refuses_is_not_sent_again(self):
        collector = self.kept(Collector())
        hub = self.start(collector=collector, name="refused")
        with contextlib.closing(hub.producer()) as producer:
            producer.post_lines({"body": str(i)} for i in range(512))
        self.await_metric(hub, 'stagger_spans_dropped_total{reason="refused"}',
                          512)
        self.assertIn("not this one", hub.event("spans-unsent")["detail"])
        hub.stop()


if __name__ == "__main__":
    build()
    case.main()
