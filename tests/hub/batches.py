#!/usr/bin/env python3
"""Batches: many messages in one request, each with an end of its own."""
import base64
import hmac
import json
import os
import signal
import threading

import case

SECRET = "whsec_" + base64.b64encode(bytes(range(32))).decode()
# Svix's example of a pair.
PRIVATE = ("whsk_6Xb/dCcHpPea21PS1N9VY/NZW723CEc77N4rJCubMbfVKIDij2HKpMKkioLlX0"
           "dRqSKJp4AJ6p9lMicMFs6Kvg==")
PUBLIC = "whpk_1SiA4o9hyqTCpIqC5V9HUakiiaeACeqfZTInDBbOir4="
AGAIN = ("attempts=5 exponential base=20ms factor=1 jitter=none breaker=none "
         "budget=none")


def items(request):
    """The messages of a request, in either format."""
    if request.one("content-type") == "application/x-ndjson":
        return [json.loads(line) for line in request.body.splitlines()]
    return json.loads(request.body)


class Batches(case.Case):
    def settings(self, targets):
        path = os.path.join(self.folder, "hub.yaml")
        with open(path, "w", opener=lambda p, f: os.open(p, f, 0o600)) as file:
            json.dump({"listen": {"address": "127.0.0.1:0"},
                       "store": {"path": self.store},
                       "targets": targets}, file)
        return path

    def start(self, leaf, batch, **target):
        return self.hub(settings=self.settings(
            [{"name": "a", "url": leaf.url(), "batch": batch, **target}]))

    def post(self, hub, bodies, **fields):
        return hub.producer().post_lines([{"body": json.dumps(b), **fields}
                                          for b in bodies])

    def await_items(self, leaf, count, good=lambda r: True):
        """The messages of requests that were good, when there are so many."""
        def all_items():
            with leaf.changed:
                return [i for r in leaf.receipts if good(r) for i in items(r)]
        case.wait_for(lambda: len(all_items()) >= count,
                      lambda: f"{count} messages; there are "
                      f"{len(all_items())}")
        return all_items()

    def check_head(self, request):
        count = len(items(request))
        ids = request.one("stagger-messages").split(", ")
        self.assertEqual(request.one("stagger-batch"), str(count))
        self.assertEqual(len(set(ids)), count)
        self.assertRegex(request.one("idempotency-key"),
                         r"^batch-[0-9a-f]{32}$")
        self.assertIsNone(request.id)
        self.assertEqual(request.one("stagger-hops"), "1")
        return ids

    def test_many_messages_are_one_request(self):
        leaf = self.leaf()
        hub = self.start(leaf, {"max": 100})
        ids = self.post(hub, range(1000))
        self.assertEqual(sorted(self.await_items(leaf, 1000)),
                         list(range(1000)))
        told = [i for r in leaf.receipts for i in self.check_head(r)]
        self.assertEqual(sorted(told), sorted(ids))
        self.assertLess(len(leaf.receipts), 40)
        self.assertEqual({r.one("content-type") for r in leaf.receipts},
                         {"application/json"})
        self.assertLessEqual(max(len(items(r)) for r in leaf.receipts), 100)
        self.assertEqual(hub.stop(), 0)
        self.assertEqual(self.rows(), [])

    def test_lines_have_no_end_of_line_within(self):
        leaf = self.leaf()
        hub = self.start(leaf, {"max": 10, "format": "ndjson"})
        bodies = [b'{\n  "a":\r\n [1,\n2]\n}', b'"x\\ny"', b" 12.50 "]
        for body in bodies:
            hub.post(body)
        self.assertEqual(self.await_items(leaf, 3),
                         [json.loads(b) for b in bodies])
        self.assertTrue(all(r.body.endswith(b"\n") for r in leaf.receipts))
        self.assertIn(b"12.50", b"".join(r.body for r in leaf.receipts))

    def test_a_batch_has_no_more_bytes_than_it_may(self):
        leaf = self.leaf()
        hub = self.start(leaf, {"max": 100, "bytes": "4KiB"})
        bodies = ["x" * 1000] * 20 + ["y" * 9000]
        self.post(hub, bodies)
        self.assertEqual(len(self.await_items(leaf, 21)), 21)
        for request in leaf.receipts:
            self.assertTrue(len(request.body) <= 4097
                            or len(items(request)) == 1, request)

    def test_a_single_message_goes_after_its_linger(self):
        leaf = self.leaf()
        hub = self.start(leaf, {"max": 100, "linger": "200ms"})
        hub.post(b'{"a": 1}')
        request = leaf.wait(1)[0]
        self.assertEqual(request.body, b'[{"a": 1}]')

    def test_what_is_no_json_is_a_dead_letter_and_spoils_no_batch(self):
        leaf = self.leaf()
        hub = self.start(leaf, {"max": 10})
        for body in (b"1", b"1,2", b"", b"{", b"\xff", b"2"):
            hub.post(body)
        self.assertEqual(sorted(self.await_items(leaf, 2)), [1, 2])
        self.await_settled(1)
        self.assertEqual(hub.stop(), 0)
        rows = self.rows()
        self.assertEqual(len(rows), 4)
        for row in rows:
            self.assertEqual(row["attempts"], 1)
            self.assertEqual(row["cause"], "INVALID")
            self.assertIn("not JSON", row["detail"])

    def test_the_end_counts_for_each(self):
        failures = iter([503, 429, 503])
        leaf = self.leaf(lambda r: next(failures, 200))
        hub = self.start(leaf, {"max": 50}, policy=AGAIN)
        self.post(hub, range(200))
        good = self.await_items(leaf, 200, lambda r: r not in leaf.receipts[:3])
        self.assertEqual(sorted(good), list(range(200)))
        self.await_settled(1)
        self.assertEqual(hub.stop(), 0)
        self.assertEqual(self.rows(), [])

    def test_the_id_is_the_same_while_the_messages_are(self):
        leaf = self.leaf(lambda r: 503 if r.number < 3 else 200)
        hub = self.start(leaf, {"max": 4, "linger": "1s"}, policy=AGAIN,
                         **{"sign": {"scheme": "standard-webhooks",
                                     "secrets": [SECRET]}})
        self.post(hub, range(4))
        # The limit of requests begins with one: all go over one connection.
        requests = leaf.wait(3)
        self.assertEqual([sorted(items(r)) for r in requests],
                         [[0, 1, 2, 3]] * 3)
        self.assertEqual(len({r.one("webhook-id") for r in requests}), 1)
        for r in requests:
            self.assertEqual(r.one("webhook-id"), r.one("idempotency-key"))
            signed = b".".join((r.one("webhook-id").encode(),
                                r.one("webhook-timestamp").encode(), r.body))
            key = base64.b64decode(SECRET.removeprefix("whsec_"))
            self.assertEqual(
                r.one("webhook-signature"), "v1," + base64.b64encode(
                    hmac.new(key, signed, "sha256").digest()).decode())

    def test_batches_are_signed_by_pairs_of_keys(self):
        sink = self.sinks("--verify", PUBLIC)
        hub = self.hub(settings=self.settings([
            {"name": "a", "url": sink.url(), "batch": {"max": 10},
             "sign": {"scheme": "standard-webhooks", "secrets": [PRIVATE]}}]))
        self.post(hub, range(500))
        self.await_settled(1)
        self.assertEqual(hub.stop(), 0)
        self.assertEqual(self.rows(), [])
        # What is being signed when the hub stops, or is killed, is not lost.
        for end in (hub.stop, hub.kill) * 2:
            leaf = self.leaf()
            hub = self.hub(settings=self.settings([
                {"name": "a", "url": leaf.url(), "start": "earliest",
                 "batch": {"max": 2, "linger": 0},
                 "sign": {"scheme": "standard-webhooks",
                          "secrets": [PRIVATE]}}]))
            end = getattr(hub, end.__name__)
            self.post(hub, ["x" * 100_000] * 20)
            end()
        hub = self.hub(settings=self.settings([
            {"name": "a", "url": self.leaf().url(), "batch": {"max": 2},
             "sign": {"scheme": "standard-webhooks", "secrets": [PRIVATE]}}]))
        self.await_settled(1)
        self.assertEqual(hub.stop(), 0)
        self.assertEqual(self.rows(), [])

    def test_a_request_at_fault_is_not_judged_but_each_message_is(self):
        leaf = self.leaf(lambda r: 400 if 13 in items(r) else 200)
        hub = self.start(leaf, {"max": 25}, policy=AGAIN)
        self.post(hub, range(25))
        self.await_settled(1)
        self.assertEqual(hub.stop(), 0)
        good = [i for r in leaf.receipts if 13 not in items(r)
                for i in items(r)]
        self.assertEqual(sorted(good), [i for i in range(25) if i != 13])
        rows = self.rows()
        self.assertEqual(len(rows), 1)
        self.assertEqual((rows[0]["cause"], rows[0]["attempts"],
                          json.loads(rows[0]["payload"])), ("HTTP_400", 1, 13))

    def test_those_of_a_request_at_fault_go_before_all_others(self):
        leaf = self.leaf(lambda r: 200 if len(items(r)) == 1 else 400)
        hub = self.start(leaf, {"max": 3, "linger": "1s"}, order="key",
                         policy=AGAIN)
        hub.producer().post_lines([{"body": str(i), "key": str(i)}
                                   for i in range(6)])
        self.await_settled(1)
        self.assertEqual(hub.stop(), 0)
        self.assertEqual([items(r) for r in leaf.receipts],
                         [[0, 1, 2], [0], [1], [2], [3, 4, 5], [3], [4], [5]])
        self.assertEqual(self.rows(), [])

    def test_an_answer_may_have_a_result_for_each(self):
        tried = []

        def answer(request):
            results = []
            for i in items(request):
                status = 404 if i % 10 == 3 else 200
                if i % 10 == 5 and i not in tried:
                    status = 429
                tried.append(i)
                results.append({"status": status, "retry-after": 0}
                               if status == 429 else {"status": status})
            return 207, {}, json.dumps({"results": results}).encode()
        leaf = self.leaf(answer)
        hub = self.start(leaf, {"max": 40, "results": True}, policy=AGAIN)
        self.post(hub, range(200))
        self.await_settled(1)
        self.assertEqual(hub.stop(), 0)
        self.assertEqual(sorted(json.loads(r["payload"]) for r in self.rows()),
                         list(range(3, 200, 10)))
        self.assertEqual({r["cause"] for r in self.rows()},
                         {"HTTP_404"})
        self.assertEqual(sorted(i for i in set(tried)
                                if tried.count(i) == 2),
                         list(range(5, 200, 10)))

    def test_results_that_are_none_are_the_status(self):
        texts = iter([b"", b"[]", b'{"results": [{"status": 200}]}', b"{",
                      b'{"results": [{"status": 99}, {"status": 200}]}',
                      b'{"results": [{"status": "200"}, {"status": 200}]}'])
        leaf = self.leaf(lambda r: (200, {}, next(texts, b"")))
        hub = self.start(leaf, {"max": 2, "results": True})
        self.post(hub, range(20))
        self.assertEqual(sorted(self.await_items(leaf, 20)), list(range(20)))
        self.await_settled(1)
        self.assertEqual(hub.stop(), 0)
        self.assertEqual(self.rows(), [])

    def test_with_an_order_there_is_one_request_at_a_time(self):
        lock, most = threading.Lock(), [0, 0]
        seen = {}

        def answer(request):
            with lock:
                most[0] += 1
                most[1] = max(most)
                for key, number in items(request):
                    seen.setdefault(key, []).append(number)
            with lock:
                most[0] -= 1
            return 200
        leaf = self.leaf(answer)
        hub = self.start(leaf, {"max": 20, "linger": "5ms"}, order="key")
        hub.producer().post_lines(
            [{"body": json.dumps([key, number]), "key": str(key)}
             for number in range(20) for key in range(10)])
        self.await_items(leaf, 200)
        self.assertEqual(seen, {k: list(range(20)) for k in range(10)})
        self.assertEqual(most[1], 1)
        # Each has one message of a key at most.
        for request in leaf.receipts:
            keys = [key for key, _ in items(request)]
            self.assertEqual(len(keys), len(set(keys)))

    def test_a_stop_sends_what_lingers(self):
        leaf = self.leaf()
        hub = self.start(leaf, {"max": 100, "linger": "2s"})
        self.post(hub, range(10))
        case.wait_for(lambda: self.in_flight(hub) == 10, "10 in flight")
        self.assertEqual(hub.stop(), 0)
        self.assertEqual(sorted(self.await_items(leaf, 10)), list(range(10)))

    def in_flight(self, hub):
        connection = hub.producer().http
        connection.request("GET", "/v1/targets/a")
        status = json.loads(connection.getresponse().read())
        return status["in_flight"]

    def test_what_lingers_or_is_under_way_survives_a_kill(self):
        held = threading.Event()

        def answer(request):
            held.wait(case.PATIENCE)
            return 200
        leaf = self.leaf(answer)
        hub = self.start(leaf, {"max": 10, "linger": "1m"})
        self.post(hub, range(15))
        leaf.wait(1)
        hub.kill()
        held.set()
        before = len(leaf.receipts)
        hub = self.start(leaf, {"max": 10, "linger": "10ms"})
        good = self.await_items(leaf, 15,
                                lambda r: r not in leaf.receipts[:before])
        self.assertEqual(sorted(set(good)), list(range(15)))

    def test_a_target_that_goes_takes_what_lingers_along(self):
        leaf = self.leaf()
        hub = self.start(leaf, {"max": 10, "linger": "1m"})
        self.post(hub, range(5))
        case.wait_for(lambda: self.in_flight(hub) == 5, "5 in flight")
        other = self.leaf()
        self.settings([{"name": "b", "url": other.url()}])
        hub.process.send_signal(signal.SIGHUP)
        hub.event("reloaded")
        # It keeps what it has: as if they had not been started.
        self.settings([{"name": "b", "url": other.url()},
                       {"name": "a", "url": leaf.url(),
                        "batch": {"max": 10, "linger": "20ms"}}])
        hub.process.send_signal(signal.SIGHUP)
        hub.event("reloaded")
        self.post(hub, range(5, 10))
        self.assertEqual(len(other.wait(5)), 5)
        self.assertEqual(hub.stop(), 0)

    def test_a_target_that_is_forgotten_cancels_what_lingers(self):
        leaf = self.leaf()
        hub = self.start(leaf, {"max": 10, "linger": "1m"})
        self.post(hub, range(5))
        case.wait_for(lambda: self.in_flight(hub) == 5, "5 in flight")
        self.settings([{"name": "b", "url": self.leaf().url()}])
        hub.process.send_signal(signal.SIGHUP)
        hub.event("reloaded")
        connection = hub.producer().http
        connection.request("POST", "/v1/targets/a/forget", b"")
        self.assertIn(connection.getresponse().status, (200, 202))
        case.wait_for(lambda: sum(r["count"] for r in self.rows()) == 5,
                      lambda: f"5 dead letters: {self.rows()}")
        self.assertEqual(hub.stop(), 0)
        self.assertEqual(leaf.receipts, [])


case.main()
