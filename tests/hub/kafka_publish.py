"""Messages that are posted to a hub whose source is Kafka, on librdkafka's mock
cluster: they are in the topic before the answer, and are delivered as others."""
import contextlib
import hmac
import json
import os
import signal
import subprocess
import threading
import time

import case
import kafka_case
from case import Refused, wait_for
from leaf import PATIENCE, STAGGER

PRODUCE = 0  # of Kafka's protocol
TOO_LARGE, NOT_ALLOWED, INVALID_RECORD = 10, 29, 87


class Publish(kafka_case.Case):
    def refused(self, status, words, call, *arguments, **more):
        with self.assertRaises(Refused) as caught:
            call(*arguments, **more)
        self.assertEqual(caught.exception.status, status, caught.exception)
        problem = json.loads(str(caught.exception.body, "utf-8"))
        self.assertIn(words, problem["detail"])
        return problem

    def counts(self, hub):
        """Of the metric, by result."""
        return {line.split('"')[1]: int(line.split()[1])
                for line in self.page(hub).splitlines()
                if line.startswith("stagger_kafka_published_total{")}

    # -- what is accepted

    def test_a_message_is_delivered_as_one_of_the_queue_is(self):
        broker = self.mock(t=4)
        a = self.leaf()
        hub = self.hub(broker, "t", f"a={a.url()}")
        message = hub.post(b"{\"n\": 1}", Content_Type="application/json",
                           Stagger_Key="order 7", X_Kind="paid",
                           Stagger_Hops="2", Secret="no")
        r = a.wait(1)[0]
        self.assertEqual((r.body, r.id), (b"{\"n\": 1}", message))
        self.assertEqual(message.rsplit(".", 2)[0], "t")
        self.assertEqual({name: r.one(name) for name in
                          ("content-type", "stagger-key", "x-kind", "secret",
                           "stagger-hops", "idempotency-key")},
                         {"content-type": "application/json",
                          "stagger-key": "order 7", "x-kind": "paid",
                          "secret": None, "stagger-hops": "3",
                          "idempotency-key": message})
        (_, key, value, headers), = broker.records("t")
        self.assertEqual((key, value), (b"order 7", b"{\"n\": 1}"))
        self.assertEqual(headers, [b"content-type=application/json",
                                   b"Stagger-Hops=2", b"X-Kind=paid"])
        found = wait_for(lambda: [m for m in [self.call(
            hub, f"/v1/messages/{message}")] if m["targets"][0]["state"]
            == "delivered"], "delivered")[0]
        self.assertEqual(found["id"], message)
        self.assertEqual(self.call(hub, "/v1/status")["accepted"], 1)
        self.assertEqual(self.counts(hub), {"ok": 1, "refused": 0,
                                            "failed": 0, "unknown": 0})
        self.assertEqual(hub.stop(), 0)

    def test_a_reload_keeps_the_topics(self):
        """Freed memory is overwritten."""
        broker = self.mock(t=1)
        a = self.leaf()
        hub = self.hub(broker, "t", f"a={a.url()}",
                       before=("env", "MALLOC_PERTURB_=165"))
        for i in range(3):
            self.assertEqual(hub.post(b"x"), f"t.0.{i}")
            self.reload(hub)
        self.assertEqual(hub.stop(), 0)

    def test_an_empty_message_is_no_tombstone(self):
        broker = self.mock(t=1)
        a = self.leaf()
        hub = self.hub(broker, "t", f"a={a.url()}")
        self.assertEqual(hub.post(b""), "t.0.0")
        self.assertEqual(a.wait(1)[0].body, b"")

    def test_a_key_keeps_its_partition_and_its_order(self):
        broker = self.mock(t=4)
        a = self.leaf()
        hub = self.hub(broker, "t", f"a={a.url()}", defaults="order: key")
        with_keys = [{"body": f"{i}", "key": f"k{i % 5}"} for i in range(200)]
        ids = hub.producer().post_lines(with_keys)
        self.assertEqual(len(set(ids)), 200)
        seen = {}
        for r in a.wait(200):
            self.assertEqual(ids[int(r.body)], r.id)
            seen.setdefault(r.one("stagger-key"), []).append(r)
        self.assertEqual(len(seen), 5)
        for receipts in seen.values():
            self.assertEqual(len({r.id.split(".")[1] for r in receipts}), 1)
            numbers = [int(r.body) for r in receipts]
            self.assertEqual(numbers, sorted(numbers))

    def test_nothing_of_a_producer_is_made_before_the_first_message(self):
        broker = self.mock(t=1)
        a = self.leaf()
        hub = self.hub(broker, "t", f"a={a.url()}")

        def threads():
            return len(os.listdir(f"/proc/{hub.process.pid}/task"))
        broker.produce("t", {0: [b"x"]})
        a.wait(1)
        before = threads()
        hub.post(b"y")
        self.assertGreater(threads(), before)
        self.assertEqual(hub.stop(), 0)

    def test_many_producers_at_once_lose_nothing(self):
        broker = self.mock(t=4)
        a = self.leaf()
        hub = self.hub(broker, "t", f"a={a.url()}")
        ids = []

        def produce(number):
            with_one = hub.producer()
            ids.extend(with_one.post(b"%d-%d" % (number, i))
                       for i in range(100))
            with_one.close()
        threads = [threading.Thread(target=produce, args=[n])
                   for n in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(PATIENCE)
        self.assertEqual(len(set(ids)), 800)
        self.assertEqual({r.id for r in a.wait(800)}, set(ids))
        self.assertEqual(hub.stop(), 0)

    # -- which topic

    def test_of_several_topics_one_has_to_be_said(self):
        broker = self.mock(orders=1, refunds=1, other=1, **{"eu.a": 1})
        a = self.leaf()
        hub = self.hub_of(f"""
source: kafka
kafka: {{brokers: [{broker.addresses.replace(',', ', ')}],
         topics: [orders, refunds, '^eu\\.'], group: hub, start: earliest,
         options: {{session.timeout.ms: 3000, heartbeat.interval.ms: 500}}}}
store: {{path: hub.db}}
listen: {{address: 127.0.0.1:0}}
targets: [{{name: a, url: "{a.url()}"}}]
""")
        self.refused(400, "expected one of them in ?topic=", hub.post, b"x")
        at = "/v1/messages?topic="
        self.assertEqual(hub.post(b"x", at + "refunds"), "refunds.0.0")
        self.assertEqual(hub.post(b"x", at + "eu%2ea"), "eu.a.0.0")
        for name in "other", "eu.%2F", "", "orders%20":
            self.refused(404, "no such topic", hub.post, b"x", at + name)
        self.refused(400, "twice", hub.post, b"x", at + "orders&topic=orders")
        self.refused(400, "no value", hub.post, b"x", "/v1/messages?topic")
        lines = b'{"body": "1"}\n{"body": "2"}'
        self.assertEqual(hub.post(lines, "/v1/messages/batch?topic=orders",
                                  Content_Type="application/x-ndjson"),
                         ["orders.0.0", "orders.0.1"])
        self.assertEqual({r.id for r in a.wait(4)},
                         {"refunds.0.0", "eu.a.0.0", "orders.0.0",
                          "orders.0.1"})

    def test_lines_are_sent_without_keys_to_a_hub_with_a_file(self):
        broker = self.mock(t=1)
        a = self.leaf()
        hub = self.hub(broker, "t", f"a={a.url()}")
        for form, line in (("--lines", "one"), ("--ndjson", '{"body": "one"}'),
                           ("--ndjson", '{"json": {}}'), ("-q", "one")):
            done = subprocess.run(
                [STAGGER, "send", form, "--no-id", "--hub",
                 f"http://127.0.0.1:{hub.port}"], input=line + "\n", text=True,
                capture_output=True, timeout=PATIENCE)
            self.assertEqual((done.returncode, done.stderr), (0, ""), form)
        self.assertEqual(sorted(r.body for r in a.wait(4)),
                         [b"one", b"one", b"one\n", b"{}"])
        done = subprocess.run([STAGGER, "send", "--no-id", "--id", "x"],
                              capture_output=True, text=True, timeout=PATIENCE)
        self.assertEqual(done.returncode, 2)
        self.assertIn("only one of them", done.stderr)
        self.assertEqual(hub.stop(), 0)

    def test_receipts_are_copied_to_a_topic(self):
        broker = self.mock(t=1, receipts=1)
        a = self.leaf(lambda r: 503 if r.attempt == 1 else 200)
        hub = self.hub(broker, "t", f"a={a.url()}",
                       defaults="policy: fixed base=20ms breaker=none",
                       more='receipts: {copy: "kafka:receipts"}')
        id = hub.post(b"x")
        wait_for(lambda: "\nstagger_receipts_copied_total 2\n"
                 in self.page(hub), "two receipts")
        found = [json.loads(value) for _, _, value, _ in
                 broker.records("receipts")]
        self.assertEqual([(r["message_id"], r["attempt"], r["http_status"])
                          for r in found], [(id, 1, 503), (id, 2, 200)])
        self.assertEqual(hub.stop(), 0)

    def test_the_only_topic_may_be_said_too(self):
        broker = self.mock(t=1)
        hub = self.hub(broker, "t", f"a={self.leaf().url()}")
        self.assertEqual(hub.post(b"x", "/v1/messages?topic=t&other=1"),
                         "t.0.0")
        self.refused(404, "no such topic", hub.post, b"x",
                     "/v1/messages?topic=u")

    # -- what is refused

    def test_a_webhook_goes_to_its_topic(self):
        """Without a key, which a hub with a file would refuse."""
        broker = self.mock(t=1, u=1)
        a = self.leaf()
        secret = "a secret of 24 characters"
        hub = self.hub(
            broker, ["t", "u"], f"a={a.url()}", more="inbound: [{name: g, "
            f"scheme: github, topic: u, secrets: [{secret}]}}]")
        digest = hmac.new(secret.encode(), b"x", "sha256").hexdigest()
        signed = {"X-Hub-Signature-256": "sha256=" + digest,
                  "X-GitHub-Delivery": "1"}
        for i in range(2):
            self.assertEqual(hub.post(b"x", "/v1/in/g?topic=t", **signed),
                             f"u.0.{i}")
        hub.post(b"y", "/v1/messages?topic=t", X_Inbound="g")
        broker.produce("u", {0: [b"z"]}, "-H", "X-Inbound=g")
        self.assertEqual({(r.body, r.one("x-inbound")) for r in a.wait(4)},
                         {(b"x", "g"), (b"y", None), (b"z", None)})
        self.assertEqual(hub.stop(), 0)

    def test_a_key_is_refused_and_nothing_is_written(self):
        broker = self.mock(t=1)
        a = self.leaf()
        hub = self.hub(broker, "t", f"a={a.url()}")
        self.refused(400, "keeps idempotency keys in PostgreSQL only", hub.post, b"x",
                     Idempotency_Key="k")
        problem = self.refused(400, "line 2: a hub whose source",
                               hub.producer().post_lines,
                               [{"body": "1"},
                                {"body": "2", "idempotency_key": "k"}])
        self.assertEqual(problem["line"], 2)
        self.assertEqual(hub.post(b"x"), "t.0.0")

    def test_what_is_too_large_for_the_topic_is_its_own_message_alone(self):
        """A broker refuses all of a batch: the others are sent again."""
        broker = self.mock(t=1)
        a = self.leaf()
        hub = self.hub(broker, "t", f"a={a.url()}")
        broker.tell("error", PRODUCE, TOO_LARGE, 1)
        ids = hub.producer().post_lines([{"body": f"{i}"} for i in range(3)])
        self.assertEqual(len(set(ids)), 3)
        self.assertEqual({r.body for r in a.wait(3)}, {b"0", b"1", b"2"})
        broker.tell("error", PRODUCE, TOO_LARGE, 2)
        self.refused(413, "max.message.bytes", hub.post, b"x")
        self.assertEqual(hub.post(b"y")[:4], "t.0.")
        self.assertEqual(self.counts(hub), {"ok": 4, "refused": 1,
                                            "failed": 0, "unknown": 0})
        self.assertEqual(hub.stop(), 0)

    def test_what_the_topic_refuses_is_the_producers_to_correct(self):
        broker = self.mock(t=1)
        hub = self.hub(broker, "t", f"a={self.leaf().url()}")
        broker.tell("error", PRODUCE, INVALID_RECORD, 1)
        self.refused(400, "its topic refuses it", hub.post, b"x")
        self.assertEqual(hub.post(b"x"), "t.0.0")

    def test_a_right_that_is_missing_is_told_to_both(self):
        broker = self.mock(t=1)
        hub = self.hub(broker, "t", f"a={self.leaf().url()}")
        broker.tell("error", PRODUCE, NOT_ALLOWED, 1)
        self.refused(503, "it is not there", hub.post, b"x")
        line = hub.event("kafka-trouble", topic="t")
        self.assertIn("posted", line["detail"])
        self.assertIn("Write", line["detail"])

        def post(): # librdkafka takes its time to ask again
            with contextlib.suppress(Refused):
                return hub.post(b"x")
        self.assertEqual(wait_for(post, "a message"), "t.0.0")

    def test_without_a_broker_it_is_unknown_or_not_there(self):
        broker = self.mock(t=1)
        a = self.leaf()
        hub = self.hub_of(f"""
source: "{broker.url('t')}"
kafka: {{options: {{message.timeout.ms: 2000}}}}
store: {{path: hub.db}}
listen: {{address: 127.0.0.1:0}}
targets: [{{name: a, url: "{a.url()}"}}]
""")
        hub.post(b"before")
        a.wait(1)
        for number in 1, 2, 3:
            broker.tell("down", number)
        began = time.monotonic()
        self.refused(503, "there", hub.post, b"x")
        self.assertLess(time.monotonic() - began, 20)
        hub.event("kafka-away")
        wait_for(lambda: self.is_ready(hub) == 503, "not ready")
        for number in 1, 2, 3:
            broker.tell("up", number)
        wait_for(lambda: self.is_ready(hub) == 200, "ready")

        def post():
            try:
                return hub.post(b"after")
            except Refused as e:
                self.assertEqual(e.status, 503)
        message = wait_for(post, "a message after it")
        wait_for(lambda: message in {r.id for r in a.receipts}, "it")
        self.assertEqual(hub.stop(), 0)

    def is_ready(self, hub):
        connection = hub.producer().http
        connection.request("GET", "/readyz")
        return connection.getresponse().status

    # -- the end

    def test_a_stop_answers_what_waits(self):
        """And takes no longer than `drain`."""
        broker = self.mock(t=1)
        hub = self.hub(broker, "t", f"a={self.leaf().url()}",
                       more="drain: 1s")
        hub.post(b"first")
        for number in 1, 2, 3:
            broker.tell("down", number)
        answers = []

        def post():
            try:
                answers.append(hub.post(b"x"))
            except Refused as e:
                answers.append(e)
        thread = threading.Thread(target=post)
        thread.start()
        wait_for(lambda: "\nstagger_ingress_waiting_messages 1"
                 in self.page(hub), "it waits")
        began = time.monotonic()
        hub.process.send_signal(signal.SIGTERM)
        thread.join(PATIENCE)
        self.assertEqual(answers[0].status, 503, answers)
        self.assertEqual(hub.wait(), 0)
        self.assertLess(time.monotonic() - began, 15)

    def test_a_stop_waits_for_what_is_acknowledged(self):
        broker = self.mock(t=1)
        a = self.leaf()
        hub = self.hub(broker, "t", f"a={a.url()}")
        hub.post(b"first")
        batches = []

        def post():
            batches.append(hub.producer().post_lines(
                [{"body": f"{i}"} for i in range(5000)]))
        thread = threading.Thread(target=post)
        thread.start()
        wait_for(lambda: "\nstagger_ingress_waiting_messages 5000"
                 in self.page(hub) or batches, "they wait")
        self.assertEqual(hub.stop(), 0)
        thread.join(PATIENCE)
        self.assertEqual(len(set(batches[0])), 5000)


if __name__ == "__main__":
    case.main(4)
