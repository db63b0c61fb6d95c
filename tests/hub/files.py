#!/usr/bin/env python3
"""Short of files (I29): many targets, many producers and few open files. No
loop spins, no attempt is counted, all is delivered, and a caller still gets an
answer."""
import contextlib
import http.client
import threading
import time

import case
import leaf
import log_shapes

FILES = 128       # of which 64 are for connections
TARGETS = 150
MESSAGES = 10
PRODUCERS = 40    # that keep their connections open
HANGING = 20
CPU = 8           # seconds: a loop that spins takes all that there are


def health(hub):
    """The status of /healthz, by a connection of its own."""
    with contextlib.closing(http.client.HTTPConnection(
            "127.0.0.1", hub.port, timeout=leaf.PATIENCE)) as connection:
        connection.request("GET", "/healthz")
        return connection.getresponse().status


class Files(case.Case):
    def few_files(self, *words):
        return self.hub(*words, "--policy",
                        "broadcast attempt-timeout=1s breaker=none",
                        before=("prlimit", f"--nofile={FILES}"))

    def keep_connections(self, hub):
        """Idle ones, which the hub may close."""
        for _ in range(PRODUCERS):
            kept = http.client.HTTPConnection("127.0.0.1", hub.port,
                                              timeout=leaf.PATIENCE)
            self.addCleanup(kept.close)
            kept.request("GET", "/healthz")
            self.assertEqual(kept.getresponse().read(), b"ok\n")

    def watch_health(self, hub):
        """Asks again and again, each time by a new connection. Returns what
        ends it, and says how long each answer took."""
        ended, took = threading.Event(), []

        def watch():
            while not ended.wait(0.02):
                began_at = time.monotonic()
                took.append((health(hub), time.monotonic() - began_at))

        thread = threading.Thread(target=watch)
        thread.start()
        self.addCleanup(lambda: (ended.set(), thread.join()))

        def end():
            ended.set()
            thread.join()
            return took
        return end

    def test_nothing_is_missed_and_nothing_spins(self):
        sink = self.sinks()
        hanging = self.leaf(lambda request: leaf.hang)
        words = [word for i in range(TARGETS)
                 for word in ("--to", f"t{i}={sink.url(f'/t{i}')}")]
        words += [word for i in range(HANGING)
                  for word in ("--to", f"h{i}={hanging.url(f'/h{i}')}")]
        hub = self.few_files(*words)
        self.keep_connections(hub)
        end = self.watch_health(hub)
        ids = [hub.post(b"x" * 100) for _ in range(MESSAGES)]
        expected = TARGETS * MESSAGES
        case.wait_for(lambda: len(sink.receipts()) >= expected,
                      lambda: f"{expected} deliveries: {len(sink.receipts())}")
        answers = end()
        receipts = sink.receipts()
        self.assertEqual({(r["path"], r["id"]) for r in receipts},
                         {(f"/t{i}", id) for i in range(TARGETS)
                          for id in ids})
        self.assertEqual(len(receipts), expected)
        self.assertEqual({r["attempt"] for r in receipts}, {1})
        self.assertEqual({status for status, _ in answers}, {200})
        self.assertLess(max(took for _, took in answers), 5)
        self.assertLess(hub.cpu(), CPU)
        self.assertEqual({log_shapes.names_in(line)[0]
                          for line in hub.events("attempt-failed")}
                         | {"h"}, {"h"})
        self.assertTrue(hub.events("fd-limit"))
        hub.kill()

    def test_what_waits_for_a_file_costs_nothing(self):
        """All files of the targets hang: the others wait, and the loop too."""
        hanging = self.leaf(lambda request: leaf.hang)
        hub = self.hub(*[word for i in range(TARGETS) for word in
                         ("--to", f"h{i}={hanging.url(f'/h{i}')}")],
                       "--policy", "broadcast attempt-timeout=30s",
                       before=("prlimit", f"--nofile={FILES}"))
        hub.post(b"x")
        case.wait_for(lambda: len(hanging.receipts) >= 40, "its share of them")
        before = hub.cpu()
        time.sleep(1)
        self.assertLess(hub.cpu() - before, 0.3)
        self.assertEqual(health(hub), 200)
        self.assertLessEqual(len(hanging.receipts), 48)
        hub.kill()

    def test_what_waited_in_vain_is_put_back_uncounted(self):
        """Each waits for longer than an attempt may take, but for the first."""
        hanging = self.leaf(lambda request: leaf.hang)
        hub = self.hub(*[word for i in range(TARGETS) for word in
                         ("--to", f"h{i}={hanging.url(f'/h{i}')}")],
                       "--policy", "broadcast attempts=1 attempt-timeout=400ms",
                       before=("prlimit", f"--nofile={FILES}"))
        hub.post(b"x")
        case.wait_for(lambda: len(self.rows()) == TARGETS, "all of them dead")
        self.assertEqual(hub.stop(), 0)
        self.assertEqual({(row["cause"], row["attempts"])
                          for row in self.rows()}, {("TIMEOUT", 1)})
        self.assertEqual((len(hanging.receipts),
                          {r.attempt for r in hanging.receipts}),
                         (TARGETS, {1}))


case.main()
