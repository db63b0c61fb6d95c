#!/usr/bin/env python3
"""A thousand targets in one process, and every message to each of them once."""
import collections
import contextlib

import case

TARGETS, SINKS, MESSAGES = 1000, 4, 30
MEMORY = 64 << 20
IDLE, IDLE_MEMORY = 10_000, 44 << 20


class Many(case.Case):
    def test_a_thousand_targets_get_every_message_once(self):
        sinks = [self.sinks() for _ in range(SINKS)]
        words = []
        for i in range(TARGETS):
            words += ["--to", f"t{i}={sinks[i % SINKS].url(f'/t{i}')}"]
        hub = self.hub(*words)
        with contextlib.closing(hub.producer()) as producer:
            ids = [producer.post(b"%d" % i) for i in range(MESSAGES // 2)]
            ids += producer.post_lines([{"body": str(i)} for i in
                                        range(MESSAGES - len(ids))])
        self.await_settled(TARGETS)
        resident = hub.resident("VmHWM")
        self.assertEqual(hub.stop(), 0)
        seen = collections.Counter(
            (r["path"], r["id"]) for sink in sinks for r in sink.receipts())
        expected = {(f"/t{i}", id): 1 for i in range(TARGETS) for id in ids}
        if seen != expected:
            wrong = [(key, count, seen[key]) for key, count in expected.items()
                     if seen[key] != count]
            strange = [key for key in seen if key not in expected]
            self.fail(f"{len(wrong)} of {len(expected)} did not come once: "
                      f"{wrong[:5]}; strange: {strange[:5]}")
        self.assertEqual(self.rows(), [])
        books = self.books()
        self.assertEqual({book["delivered"] for book in books.values()},
                         {MESSAGES})
        self.assertEqual(len(books), TARGETS)
        if not case.is_sanitized():
            self.assertLess(resident, MEMORY, "bytes resident, at most")
        case.note(self, f"{len(expected)} deliveries, {resident >> 20} MiB")

    def test_ten_thousand_that_are_idle_take_little(self):
        hub = self.hub(*[word for i in range(IDLE) for word in
                         ("--to", f"t{i}=http://127.0.0.1:1/t/{i}")])
        if not case.is_sanitized():
            case.wait_for(lambda: hub.resident() < IDLE_MEMORY,
                          "less memory")
        case.note(self, f"{hub.resident() >> 20} MiB")
        self.assertEqual(hub.stop(), 0)

    def test_half_of_many_are_down_and_the_others_get_everything(self):
        """What is held for those that are down goes out when they are back,
        once, and after a kill too."""
        count = 200
        sink = self.sinks()
        gone = self.refused()

        def words(is_back):
            return [word for i in range(count) for word in
                    ("--to", f"t{i}=" + (sink.url(f"/t{i}")
                                         if i % 2 or is_back else gone))]

        policy = ("--policy", "broadcast-wide breaker=1:30s")
        hub = self.hub(*words(False), *policy)
        with contextlib.closing(hub.producer()) as producer:
            first = producer.post(b"0")
            case.wait_for(lambda: len(self.rows()) == count / 2,
                          "a dead letter of each that is down")
            ids = producer.post_lines([{"body": str(i)} for i in range(20)])
        case.wait_for(lambda: len(sink.receipts()) == 21 * count / 2,
                      lambda: f"{len(sink.receipts())} receipts")
        hub.kill()
        hub = self.hub(*words(True), *policy)
        self.await_settled(count)
        self.assertEqual(hub.stop(), 0)
        seen = collections.Counter((r["path"], r["id"])
                                   for r in sink.receipts())
        for i in range(count):
            for id in ids:
                # What was delivered just before the kill may come again.
                most = 2 if i % 2 else 1
                self.assertTrue(1 <= seen[f"/t{i}", id] <= most,
                                f"t{i} got {id} {seen[f'/t{i}', id]} times")
            self.assertEqual(min(seen[f"/t{i}", first], 1), i % 2)


if __name__ == "__main__":
    case.main()
