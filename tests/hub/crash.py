#!/usr/bin/env python3
"""What a crash, and a clean restart, leave as it was: the attempts and the wait
of what is parked, what was delivered, and the positions of the log."""
import contextlib
import time

import case


class Crash(case.Case):
    def parked(self):
        return self.rows("SELECT * FROM parked ORDER BY lane, position")

    def test_attempts_and_the_wait_go_on_after_a_kill_at_a_gate(self):
        server = self.leaf(lambda r: 200 if r.attempt == 4 else
                           (429, {"Retry-After": "1"}))
        words = ("--to", server.url(), "--policy",
                 "fixed base=100ms jitter=none attempts=5 deadline=none")
        hub = self.hub(*words)
        id = hub.post(b"x")
        for attempt in range(1, 4):
            server.wait(attempt)
            row, = case.wait_for(
                lambda: [row for row in self.parked()
                         if row["attempts"] == attempt], "the row")
            hub.kill()
            # It neither begins anew nor is it forgotten.
            left = row["due_at"] / 1e9 - time.time()
            self.assertLess(left, 1, "the wait that is left")
            hub = self.hub(*words)
        receipts = server.wait(4)
        self.await_settled(1)
        self.assertEqual(hub.stop(), 0)
        self.assertEqual([(r.id, r.attempt) for r in server.receipts],
                         [(id, n) for n in (1, 2, 3, 4)])
        for one, next in zip(receipts, receipts[1:]):
            self.assertGreaterEqual(next.at - one.answered_at, 1)
        self.assertEqual(self.rows(), [])

    def test_the_last_attempt_is_the_last_after_a_kill(self):
        """I3: a crash gives no attempt that the policy does not."""
        server = self.leaf(lambda r: 503)
        words = ("--to", server.url(), "--policy",
                 "fixed base=400ms jitter=none attempts=3")
        hub = self.hub(*words)
        hub.post(b"x")
        for attempt in (1, 2):
            server.wait(attempt)
            case.wait_for(lambda: [row for row in self.parked()
                                   if row["attempts"] == attempt], "the row")
            hub.kill()
            hub = self.hub(*words)
        hub.event("attempt-failed", decision="dead", attempt=3)
        self.await_settled(1)
        self.assertEqual(hub.stop(), 0)
        self.assertEqual([r.attempt for r in server.receipts], [1, 2, 3])
        row, = self.rows()
        first, last = (case.seconds(row[f"{which}_attempt_at"])
                       for which in ("first", "last"))
        self.assertGreaterEqual(last - first, 0.8, "over all incarnations")
        self.assertEqual(row["attempts"], 3)

    def test_a_wait_is_not_longer_for_a_stop(self):
        """The due time is the wall clock's: what passes while the hub is down
        counts."""
        server = self.leaf(lambda r: 503 if r.attempt == 1 else 200)
        words = ("--to", server.url(), "--policy",
                 "fixed base=2s jitter=none attempts=2")
        hub = self.hub(*words)
        hub.post(b"x")
        first, = server.wait(1)
        self.assertEqual(hub.stop(), 0)
        row, = self.parked()
        time.sleep(max(0, row["due_at"] / 1e9 - time.time()))
        hub = self.hub(*words)
        ready_at = case.seconds(hub.lines[0]["time"])
        second = server.wait(2)[1]
        self.assertEqual(hub.stop(), 0)
        self.assertGreaterEqual(second.at - first.answered_at, 2)
        line, = hub.events("ready")
        self.assertLess(second.wall - ready_at, 1.9, "it was due already")

    def test_a_clean_restart_sends_nothing_twice(self):
        server = self.leaf(lambda r: 404 if r.position % 10 == 0 else
                           503 if r.position % 7 == 0 and r.attempt == 1
                           else 200)
        words = ["--policy", "fixed base=20ms jitter=none attempts=3"]
        for name in "abc":
            words += ["--to", f"{name}={server.url('/' + name)}"]
        sent = set()
        for _ in range(4):
            hub = self.hub(*words)
            with contextlib.closing(hub.producer()) as producer:
                sent |= set(producer.post_lines([{"body": "x"}] * 50))
                sent |= {producer.post(b"y") for _ in range(10)}
            self.assertEqual(hub.stop(), 0)  # in the middle of it
        hub = self.hub(*words)
        self.await_settled(3)
        self.assertEqual(hub.stop(), 0)
        seen = {}
        for r in server.receipts:
            key = (r.path, r.id, r.attempt)
            self.assertNotIn(key, seen, f"twice: {r} and {seen.get(key)}")
            seen[key] = r
        self.assertEqual({id for _, id, _ in seen}, sent)
        self.assertEqual(len({(path, id) for path, id, _ in seen}),
                         3 * len(sent))
        for name, book in self.books().items():
            self.assertEqual((book["routed"], book["parked"]),
                             (len(sent), 0), name)

    def trimmed(self):
        return case.wait_for(
            lambda: self.rows("SELECT count(*) AS n FROM messages")[0]["n"]
            == 0, "nothing left in the log")

    def check_positions(self, end):
        server = self.leaf()
        words = ("--to", server.url())
        ids = []
        for _ in range(3):
            hub = self.hub(*words)
            with contextlib.closing(hub.producer()) as producer:
                ids += producer.post_lines([{"body": "x"}] * 20)
                ids.append(producer.post(b"y"))
            server.wait(len(ids))
            self.await_settled(1)
            self.trimmed()
            end(hub)
        self.assertEqual(len(set(ids)), len(ids), "each id once")
        positions = [int(id.split("-")[1]) for id in ids]
        self.assertEqual(positions, sorted(positions), "they rise")
        self.assertEqual(len({id.split("-")[0] for id in ids}), 3,
                         "an epoch for each start")
        self.assertEqual(sorted(r.id for r in server.receipts), sorted(ids))

    def test_positions_are_not_used_twice_after_a_trim_and_a_kill(self):
        self.check_positions(lambda hub: hub.kill())

    def test_positions_are_not_used_twice_after_a_trim_and_a_stop(self):
        self.check_positions(lambda hub: self.assertEqual(hub.stop(), 0))

    def test_a_key_holds_after_a_trim_and_a_kill(self):
        """I10: the same message, one broadcast, though it is long gone."""
        server = self.leaf()
        words = ("--to", server.url())
        hub = self.hub(*words)
        id = hub.post(b"x", Idempotency_Key="k")
        server.wait(1)
        self.await_settled(1)
        self.trimmed()
        hub.kill()
        hub = self.hub(*words)
        self.assertEqual(hub.post(b"x", Idempotency_Key="k"), id)
        with self.assertRaises(case.Refused) as refused:
            hub.post(b"other", Idempotency_Key="k")
        self.assertEqual(refused.exception.status, 409)
        last = hub.post(b"last")
        server.wait(2)
        self.assertEqual(hub.stop(), 0)
        self.assertEqual([r.id for r in server.receipts], [id, last])

    def test_a_dead_letter_is_one_row_whatever_crashes(self):
        server = self.leaf(lambda r: 404)
        words = ["--to", f"a={server.url('/a')}", "--to",
                 f"b={server.url('/b')}", "--policy", "broadcast breaker=none"]
        sent = set()
        for i in range(5):
            hub = self.hub(*words)
            before = len(server.receipts)
            with contextlib.closing(hub.producer()) as producer:
                sent |= set(producer.post_lines([{"body": "x"}] * 40))
            server.wait(before + 10)
            hub.kill()
        hub = self.hub(*words)
        self.await_settled(2)
        self.assertEqual(hub.stop(), 0)
        rows = sorted((row["target"], row["message_id"])
                      for row in self.rows())
        self.assertEqual(rows, sorted((t, id) for t in "ab" for id in sent))
        for name, book in self.books().items():
            self.assertEqual((book["routed"], book["dead"]),
                             (len(sent), len(sent)), name)


if __name__ == "__main__":
    case.main()
