#!/usr/bin/env python3
"""A connection that is kept alive and dies: one attempt is at most one request
on the wire, and what happened is told, never papered over (I3)."""
import collections
import random
import socket
import time

import case
import leaf
from leaf import told

POLICY = ("fixed base=20ms jitter=none attempts=9 breaker=none budget=none "
          "attempt-timeout=5s")


def seen_once(test, receipts):
    """Each attempt number of each message came at most once."""
    counts = collections.Counter((r.id, r.attempt) for r in receipts)
    twice = {key: count for key, count in counts.items() if count > 1}
    test.assertEqual(twice, {}, "attempts that came more than once")


class Stale(case.Case):
    def check(self, deed):
        """Every second request of a connection ends as the deed says."""
        def answer(request):
            return deed if request.number == 2 else 200

        server = self.leaf(answer)
        hub = self.hub("--to", server.url(), "--policy", POLICY)
        ids = []
        for i in range(12):
            ids.append(hub.post(b"%d" % i))
            case.wait_for(lambda: any(
                r.id == ids[-1] and r.number != 2 for r in server.receipts),
                "its delivery")
        self.await_settled(1)
        self.assertEqual(hub.stop(), 0)
        seen_once(self, server.receipts)
        failed = [r for r in server.receipts if r.number == 2]
        self.assertGreaterEqual(len(failed), 5, "deaths of a connection")
        for r in failed:
            again = [s.attempt for s in server.receipts if s.id == r.id]
            self.assertEqual(again, list(range(1, len(again) + 1)))
            self.assertGreater(len(again), 1, "it is tried again")
        self.assertEqual(len(server.receipts), len(ids) + len(failed),
                         "receipts: one an attempt")
        line = hub.events("attempt-failed")[0]
        self.assertEqual((line["cause"], line["decision"], line["attempt"]),
                         ("CONNECTION_RESET", "parked", 1))
        self.assertIn("on a reused connection", line["detail"])
        self.assertEqual(self.rows(), [])

    def test_it_closes_when_the_next_request_has_come(self):
        self.check(leaf.close)

    def test_it_resets_when_the_next_request_has_come(self):
        self.check(leaf.reset)

    def test_it_closes_behind_an_answer_without_saying_so(self):
        """An idle connection that was closed is not used again, or the request
        on it is told as an attempt."""
        def answer(request):
            def deed(connection, request):
                connection.send(told(200))
                # From at once to a while later, when the next may be coming.
                time.sleep(random.random() * 0.004)
                connection.close()
            return deed

        server = self.leaf(answer)
        # A connection that was used just now dies more often than not.
        hub = self.hub("--to", server.url(), "--policy",
                       POLICY.replace("attempts=9", "attempts=unlimited"))
        producer = self.kept(hub.producer())
        ids = set()
        for i in range(150):
            ids.add(producer.post(b"%d" % i))
        self.await_settled(1)
        self.assertEqual(hub.stop(), 0)
        seen_once(self, server.receipts)
        self.assertEqual(self.rows(), [])
        self.assertEqual({r.id for r in server.receipts}, ids)
        case.note(self, f"{server.connections} connections, "
                        f"{len(server.receipts) - len(ids)} repeats")

    def test_an_idle_connection_that_was_closed_costs_no_attempt(self):
        """Once the end has come, and before the next message has."""
        server = self.leaf()
        hub = self.hub("--to", server.url(), "--policy", POLICY, "--verbose")
        hub.post(b"0")
        hub.event("delivered")
        for i in range(1, 6):
            with server.changed:
                for s in server.sockets:
                    s.shutdown(socket.SHUT_RDWR)
            case.wait_for(lambda: not server.sockets, "the end of it")
            hub.post(b"%d" % i)
            hub.event("delivered")
        self.assertEqual(hub.stop(), 0)
        self.assertEqual([r.attempt for r in server.receipts], [1] * 6)
        self.assertEqual(server.connections, 6)
        self.assertEqual(hub.events("attempt-failed"), [])

    def test_connections_are_used_again(self):
        server = self.leaf()
        hub = self.hub("--to", server.url(), "--verbose")
        for i in range(20):
            hub.post(b"%d" % i)
            hub.event("delivered")
        self.assertEqual(hub.stop(), 0)
        self.assertEqual(server.connections, 1)

    def test_one_that_says_close_is_not_used_again(self):
        server = self.leaf(lambda r: (200, {"Connection": "close"}))
        hub = self.hub("--to", server.url())
        for i in range(5):
            hub.post(b"%d" % i)
            server.wait(i + 1)
        self.assertEqual(hub.stop(), 0)
        self.assertEqual([r.number for r in server.receipts], [1] * 5)
        self.assertEqual([r.attempt for r in server.receipts], [1] * 5)


if __name__ == "__main__":
    case.main()
