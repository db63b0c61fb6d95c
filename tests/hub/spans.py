#!/usr/bin/env python3
"""Spans of attempts, by OTLP/HTTP in JSON, to a leaf that stands in for the
collector; tests/hub/spans_collector.py has OpenTelemetry's own."""
import contextlib
import json
import os
import time
import unittest.mock
import urllib.request

import case
import leaf
from case import wait_for
from traces import PARENT, TRACE, parts

POLICY = "fixed base=10ms retry=5xx attempts=3"


class Hubs(case.Case):
    """A hub with a collector, and a target that answers as it is told."""

    def start(self, answer=lambda r: 200, collector=lambda r: 200,
              share="100%", traces={}, name="shop", **more):
        self.target = self.leaf(answer)
        self.collector = (self.leaf(collector) if callable(collector)
                          else collector)
        settings = {
            "traces": {"endpoint": self.collector.url("/v1/traces"),
                       "share": share, **traces},
            "targets": [{"name": name, "policy": POLICY,
                         "url": self.target.url("/in?token=secret")}], **more}
        return self.hub("-c", self.put("hub.yaml", json.dumps(settings)))

    def page(self, hub):
        with urllib.request.urlopen(f"http://127.0.0.1:{hub.port}/metrics",
                                    timeout=leaf.PATIENCE) as answer:
            return answer.read().decode()

    def await_metric(self, hub, name, value):
        wait_for(lambda: f"\n{name} {value}\n" in self.page(hub),
                 lambda: f"{name} {value}: " + "".join(
                     line for line in self.page(hub).splitlines(True)
                     if line.startswith("stagger_spans")))


class Spans(Hubs):
    def spans(self):
        """Of the requests that the collector has got."""
        return [span for r in self.collector.receipts
                for found in json.loads(r.body)["resourceSpans"]
                for scope in found["scopeSpans"] for span in scope["spans"]]

    def test_a_span_shows_nothing_of_the_environment(self):
        self.target, self.collector = self.leaf(), self.leaf()
        path = os.path.join(self.folder, "hub.yaml")
        with open(path, "w") as file:
            json.dump({"traces": {"endpoint": self.collector.url("/v1/traces"),
                                  "share": "100%"},
                       "targets": [{"name": "shop", "url": self.target.url(
                           "/in/${SPAN_SECRET}?token=secret")}]}, file)
        with unittest.mock.patch.dict(os.environ, SPAN_SECRET="hidden"):
            hub = self.hub("-c", path)
        hub.post(b"x", traceparent=f"00-{TRACE}-{PARENT}-01")
        self.target.wait(1)
        self.await_settled(1)
        self.assertEqual(hub.stop(), 0)
        self.assertEqual(self.target.receipts[0].path,
                         "/in/hidden?token=secret")
        self.assertEqual([attributes(s)["url.full"] for s in self.spans()],
                         [self.target.url("/in/${SPAN_SECRET}?token=***")])

    def test_an_attempt_is_a_span_below_the_messages(self):
        hub = self.start(lambda r: 503 if r.attempt == 1 else 200)
        id = hub.post(b"x", traceparent=f"00-{TRACE}-{PARENT}-01")
        before = time.time_ns()
        receipts = self.target.wait(2)
        self.await_settled(1)
        self.assertEqual(hub.stop(), 0)
        first, second = self.spans()
        body = json.loads(self.collector.receipts[0].body)
        self.assertEqual(self.collector.receipts[0].one("content-type"),
                         "application/json")
        resource = attributes(body["resourceSpans"][0]["resource"])
        self.assertEqual(resource["service.name"], "stagger")
        self.assertRegex(resource["service.version"], r"^\d+\.\d+\.\d+$")
        self.assertTrue(resource["host.name"])
        for span, receipt, number in ((first, receipts[0], 1),
                                      (second, receipts[1], 2)):
            trace, parent, is_sampled = parts(receipt)
            self.assertEqual((span["traceId"], span["spanId"],
                              span["parentSpanId"]), (TRACE, parent, PARENT))
            self.assertTrue(is_sampled)
            self.assertEqual((span["name"], span["kind"], span["flags"]),
                             ("POST shop", 3, 0x301))
            began, ended = (int(span[f"{end}TimeUnixNano"])
                            for end in ("start", "end"))
            self.assertLess(began, ended)
            self.assertLess(abs(ended - before), 60e9)
            found = attributes(span)
            self.assertEqual(found["http.request.method"], "POST")
            self.assertEqual(found["url.full"],
                             self.target.url("/in?token=***"))
            self.assertEqual(found["server.address"], "127.0.0.1")
            self.assertEqual(found["server.port"], self.target.port)
            self.assertEqual(found["messaging.message.id"], id)
            self.assertEqual(found["stagger.target"], "shop")
            self.assertEqual(found["stagger.attempt"], number)
        found = attributes(first)
        self.assertEqual(found["http.response.status_code"], 503)
        self.assertEqual((found["error.type"], found["stagger.cause"],
                          found["stagger.decision"], found["stagger.why"]),
                         ("503", "HTTP_503", "retry", "backoff"))
        self.assertNotIn("http.request.resend_count", found)
        self.assertEqual(first["status"]["code"], 2)
        self.assertIn("503", first["status"]["message"])
        found = attributes(second)
        self.assertEqual((found["http.response.status_code"],
                          found["http.request.resend_count"],
                          second["status"]), (200, 1, {}))
        self.assertNotIn("error.type", found)

    def test_each_message_of_a_batch_has_one(self):
        hub = self.start()
        path = os.path.join(self.folder, "hub.yaml")
        settings = json.load(open(path))
        hub.stop()
        settings["targets"][0]["batch"] = {"max": 3, "linger": "1m"}
        with open(path, "w") as file:
            json.dump(settings, file)
        hub = self.hub("-c", path)
        traces = [f"{n:032x}" for n in (1, 2, 3)]
        for trace in traces:
            hub.post(b"1", traceparent=f"00-{trace}-{PARENT}-01")
        self.target.wait(1)
        self.await_settled(1)
        self.assertEqual(hub.stop(), 0)
        self.assertEqual(sorted((s["traceId"], s["parentSpanId"])
                                for s in self.spans()),
                         [(trace, PARENT) for trace in traces])
        self.assertEqual(len({s["spanId"] for s in self.spans()}), 3)
        self.assertIsNone(self.target.receipts[0].one("traceparent"))

    def test_sampled_traces_and_failures_are_exported_whatever_the_share(self):
        hub = self.start(lambda r: 404 if r.body == b"bad" else 200, share="0%")
        hub.post(b"good")
        hub.post(b"bad")
        hub.post(b"off", traceparent=f"00-{TRACE}-{PARENT}-00")
        hub.post(b"on", traceparent=f"00-{TRACE}-{PARENT}-01")
        found = {r.body: parts(r) for r in self.target.wait(4)}
        self.await_settled(1)
        hub.stop()
        self.assertEqual({s["spanId"] for s in self.spans()},
                         {found[body][1] for body in (b"bad", b"on")})
        # Whoever gets it is told what the hub has decided.
        self.assertEqual({body: trace[2] for body, trace in found.items()},
                         {b"good": False, b"bad": False, b"off": False,
                          b"on": True})

    def test_a_share_of_traces_is_sampled_for_all_of_their_attempts(self):
        hub = self.start(share="50%")
        with contextlib.closing(hub.producer()) as producer:
            producer.post_lines({"body": str(i)} for i in range(400))
        found = [parts(r) for r in self.target.wait(400)]
        self.await_settled(1)
        hub.stop()
        sampled = {span for _, span, is_sampled in found if is_sampled}
        self.assertEqual({s["spanId"] for s in self.spans()}, sampled)
        self.assertTrue(100 < len(sampled) < 300, len(sampled))

    def test_a_batch_goes_when_it_is_full_and_the_rest_at_the_stop(self):
        hub = self.start()
        with contextlib.closing(hub.producer()) as producer:
            producer.post_lines({"body": str(i)} for i in range(700))
        self.collector.wait(1)
        self.await_metric(hub, "stagger_spans_waiting", 188)
        self.await_metric(hub, "stagger_spans_exported_total", 512)
        hub.stop()
        self.assertEqual([len(json.loads(r.body)["resourceSpans"][0]
                              ["scopeSpans"][0]["spans"])
                          for r in self.collector.receipts], [512, 188])
        self.assertEqual(len({s["spanId"] for s in self.spans()}), 700)

    def test_a_collector_that_fails_holds_up_nothing(self):
        """What there is no room for is counted, and no delivery waits."""
        answers = iter([503])
        hub = self.start(collector=lambda r: next(answers, 400))
        with contextlib.closing(hub.producer()) as producer:
            producer.post_lines({"body": str(i)} for i in range(600))
            self.target.wait(600)
            # 503 is tried again, and 400 is not.
            self.await_metric(hub, 'stagger_spans_dropped_total{reason="refused"}',
                              512)
        first, second = self.collector.receipts[:2]
        self.assertEqual(first.body, second.body)
        line = hub.event("spans-unsent")
        self.assertIn("503", line["detail"])
        self.assertEqual(hub.stop(), 0)

    def test_what_waits_is_bounded(self):
        hub = self.start(collector=lambda r: 429)
        with contextlib.closing(hub.producer()) as producer:
            for _ in range(3):
                producer.post_lines({"body": str(i)} for i in range(1000))
        self.target.wait(3000)
        self.await_metric(hub, "stagger_spans_waiting", 2560)
        self.await_metric(hub, 'stagger_spans_dropped_total{reason="full"}', 440)
        self.assertEqual(hub.stop(), 0)
        self.assertEqual(hub.events("stopped")[0]["clean"], True)

    def test_a_collector_may_reject_some(self):
        hub = self.start(collector=lambda r: (
            200, {"Content-Type": "application/json"},
            b'{"partialSuccess":{"rejectedSpans":"12","errorMessage":"old"}}'))
        with contextlib.closing(hub.producer()) as producer:
            producer.post_lines({"body": str(i)} for i in range(512))
        self.await_metric(hub, "stagger_spans_exported_total", 500)
        self.await_metric(hub, 'stagger_spans_dropped_total{reason="refused"}', 12)
        hub.event("spans-unsent")
        hub.stop()

    def test_a_collector_that_comes_back_is_told(self):
        answers = iter([503])
        hub = self.start(collector=lambda r: next(answers, 200))
        with contextlib.closing(hub.producer()) as producer:
            producer.post_lines({"body": str(i)} for i in range(512))
        hub.event("spans-sent")
        self.await_metric(hub, "stagger_spans_exported_total", 512)
        hub.stop()

    def test_the_stop_waits_no_longer_than_the_drain_time(self):
        hub = self.start(collector=lambda r: leaf.hang, drain="200ms")
        hub.post(b"x")
        self.target.wait(1)
        self.await_settled(1)
        self.assertEqual(hub.stop(), 0)

    def test_the_collector_gets_the_headers_of_the_settings(self):
        hub = self.start(traces={"headers": {"Authorization": "Bearer abc",
                                             "X-Tenant": "t"}})
        hub.post(b"x")
        self.target.wait(1)
        self.await_settled(1)
        hub.stop()
        r, = self.collector.receipts
        self.assertEqual((r.one("authorization"), r.one("x-tenant")),
                         ("Bearer abc", "t"))
        self.assertIsNone(r.one("stagger-message"))


def attributes(of):
    """By name; each has one value, of one type."""
    found = {}
    for a in of["attributes"]:
        (kind, value), = a["value"].items()
        found[a["key"]] = int(value) if kind == "intValue" else value
        assert kind in ("stringValue", "intValue"), kind
    assert len(found) == len(of["attributes"]), "a name is there twice"
    return found


if __name__ == "__main__":
    case.main()
