#!/usr/bin/env python3
"""stagger hub from end to end: the real binary, real sockets, a real store.

Leaves are HTTP servers in threads, which note what they receive before they
answer. Nothing sleeps: what is waited for is a receipt, a line of the log or
the end of the process.
"""
import collections
import http.client
import http.server
import json
import os
import queue
import resource
import signal
import socket
import sqlite3
import subprocess
import tempfile
import threading
import time
import unittest

STAGGER = os.environ["STAGGER"]
PATIENCE = 60  # seconds; only a test that fails waits so long

Receipt = collections.namedtuple("Receipt", "at id attempt headers body")


class Leaf:
    """A target. answer(receipt) gives a status, or one with headers."""

    def __init__(self, answer=lambda receipt: 200):
        self.receipts = []
        self.changed = threading.Condition()
        leaf = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True

            def do_POST(self):
                size = int(self.headers["Content-Length"])
                receipt = Receipt(time.monotonic(),
                                  self.headers["Stagger-Message"],
                                  int(self.headers["Stagger-Attempt"]),
                                  self.headers, self.rfile.read(size))
                with leaf.changed:
                    leaf.receipts.append(receipt)
                    leaf.changed.notify_all()
                status = answer(receipt)
                status, headers = (status if isinstance(status, tuple)
                                   else (status, {}))
                self.send_response(status)
                for name, value in headers.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *words):
                pass

        class Server(http.server.ThreadingHTTPServer):
            daemon_threads = True
            request_queue_size = 128

            def handle_error(self, *connection):
                pass

        self.server = Server(("127.0.0.1", 0), Handler)
        self.port = self.server.server_port
        threading.Thread(target=self.server.serve_forever, args=(0.01,),
                         daemon=True).start()

    def url(self, path="/"):
        return f"http://127.0.0.1:{self.port}{path}"

    def wait(self, count):
        with self.changed:
            there = self.changed.wait_for(lambda: len(self.receipts) >= count,
                                          PATIENCE)
            assert there, f"{len(self.receipts)} of {count} receipts"
            return list(self.receipts)

    def close(self):
        self.server.shutdown()
        self.server.server_close()


class Hub:
    """One run of the hub; its log is JSON."""

    def __init__(self, test, *arguments, listen=True, stdin=None, **more):
        if listen:
            arguments = ["--listen", "127.0.0.1:0", *arguments]
        self.process = subprocess.Popen(
            [STAGGER, "hub", "--log", "json", "--store", test.store,
             *arguments], stdin=stdin or subprocess.DEVNULL,
            stderr=subprocess.PIPE, text=True, **more)
        self.lines = []
        self.fresh = queue.Queue()
        self.reader = threading.Thread(target=self.read, daemon=True)
        self.reader.start()
        test.addCleanup(self.end)
        if listen:
            address = self.event("ready")["listen"]
            self.port = int(address.rsplit(":", 1)[1])

    def read(self):
        for text in self.process.stderr:
            line = json.loads(text)
            self.lines.append(line)
            self.fresh.put(line)
        self.fresh.put(None)

    def event(self, name, **fields):
        """The next line with this event and these fields."""
        while True:
            line = self.fresh.get(timeout=PATIENCE)
            assert line is not None, (name, fields, self.lines)
            if line["event"] == name and fields.items() <= line.items():
                return line

    def events(self, name):
        return [line for line in self.lines if line["event"] == name]

    def post(self, body, path="/v1/messages", **headers):
        c = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE)
        headers = {name.replace("_", "-"): value
                   for name, value in headers.items()}
        try:
            c.request("POST", path, body, headers)
            answer = c.getresponse()
            answer = json.loads(answer.read())
        finally:
            c.close()
        assert "id" in answer or "ids" in answer, answer
        return answer.get("id") or answer["ids"]

    def wait(self):
        code = self.process.wait(PATIENCE)
        self.reader.join(PATIENCE)
        self.process.stderr.close()
        return code

    def stop(self, how=signal.SIGTERM):
        self.process.send_signal(how)
        return self.wait()

    def end(self):
        if self.process.poll() is None:
            self.process.kill()
            self.wait()


class HubTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.store = os.path.join(folder.name, "hub.db")

    def leaf(self, *arguments):
        leaf = Leaf(*arguments)
        self.addCleanup(leaf.close)
        return leaf

    def hub(self, *arguments, **more):
        return Hub(self, *arguments, **more)

    def refused(self):
        """A URL that nothing listens on, as long as the test runs."""
        s = socket.socket()
        self.addCleanup(s.close)
        s.bind(("127.0.0.1", 0))
        return f"http://127.0.0.1:{s.getsockname()[1]}/"

    def rows(self, query="SELECT * FROM failed_broadcast_logs ORDER BY id"):
        """Of the store, after the hub has ended."""
        db = sqlite3.connect(f"file:{self.store}?mode=ro", uri=True)
        db.row_factory = sqlite3.Row
        try:
            return [dict(row) for row in db.execute(query)]
        finally:
            db.close()

    def books(self):
        """Of each lane, by name, from the store; they balance (I17)."""
        books = {}
        for row in self.rows("SELECT name, json_each.value AS cursor FROM "
                             "cursors, json_each(cursors.lanes), lanes WHERE "
                             "lanes.number = json_each.key"):
            cursor = collections.Counter(
                {name: value for name, value in
                 json.loads(row["cursor"]).items() if name != "settled"})
            parked = self.rows("SELECT count(*) AS n FROM parked JOIN lanes ON "
                               "lane = number WHERE name = "
                               f"'{row['name']}'")[0]["n"]
            self.assertEqual(cursor["routed"], cursor["delivered"]
                             + cursor["dead"] + cursor["cancelled"] + parked)
            books[row["name"]] = cursor
        return books

    def refuse(self, *arguments):
        found = subprocess.run([STAGGER, "hub", *arguments],
                               capture_output=True, text=True, timeout=PATIENCE,
                               cwd=self.folder, stdin=subprocess.DEVNULL)
        self.assertEqual((found.returncode, found.stdout), (2, ""),
                         found.stderr)
        self.assertTrue(found.stderr.startswith("stagger hub: "), found.stderr)
        return found.stderr

    # -- delivery

    def test_every_target_gets_every_message_once(self):
        leaves = [self.leaf() for _ in range(3)]
        hub = self.hub(*[word for i, leaf in enumerate(leaves)
                         for word in ("--to", f"leaf{i}={leaf.url()}")])
        sent = {hub.post(f"message {i}".encode()): f"message {i}".encode()
                for i in range(20)}
        lines = [json.dumps({"body": f"line {i}", "key": "k"})
                 for i in range(80)]
        ids = hub.post("\n".join(lines).encode(), "/v1/messages/batch",
                       Content_Type="application/x-ndjson")
        sent.update((id, f"line {i}".encode()) for i, id in enumerate(ids))
        for leaf in leaves:
            leaf.wait(100)
        self.assertEqual(hub.stop(), 0)
        for leaf in leaves:
            self.assertEqual(len(leaf.receipts), 100)
            self.assertEqual({r.id: r.body for r in leaf.receipts}, sent)
            self.assertEqual({r.attempt for r in leaf.receipts}, {1})
        for name, books in self.books().items():
            self.assertEqual((name, books["routed"], books["delivered"]),
                             (name, 100, 100))
        self.assertEqual(self.rows(), [])
        self.assertTrue(hub.events("stopped")[0]["clean"])

    def test_a_request_says_which_message_and_attempt_it_is(self):
        leaf = self.leaf()
        hub = self.hub("--to", leaf.url("/in?a=b"), "--policy",
                       "broadcast attempts=7")
        id = hub.post(b"\0\xff\r\n", Content_Type="application/x-thing",
                      Stagger_Key="order-7", X_Source="till")
        receipt = leaf.wait(1)[0]
        self.assertEqual(receipt.body, b"\0\xff\r\n")
        for name, value in {"Stagger-Message": id, "Idempotency-Key": id,
                            "Stagger-Attempt": "1",
                            "Stagger-Attempts-Max": "7",
                            "Stagger-Key": "order-7", "X-Source": "till",
                            "Content-Type": "application/x-thing"}.items():
            self.assertEqual(receipt.headers.get_all(name), [value], name)
        self.assertRegex(id, r"^[0-9a-f]{16}-\d+$")
        hub.stop()

    def test_large_headers_and_bodies_arrive_whole(self):
        leaf = self.leaf()
        hub = self.hub("--to", leaf.url())
        body = os.urandom(3_000_000)
        value = "v" * 5000
        hub.post(body, X_Large=value)
        receipt = leaf.wait(1)[0]
        self.assertEqual(receipt.body, body)
        self.assertEqual(receipt.headers["X-Large"], value)
        self.assertIsNone(receipt.headers["Content-Type"])
        self.assertEqual(hub.stop(), 0)

    # -- retries

    def test_a_failure_is_tried_again_after_the_policys_wait(self):
        leaf = self.leaf(lambda r: 503 if r.attempt == 1 else 200)
        hub = self.hub("--to", f"a={leaf.url()}", "--policy",
                       "fixed base=150ms jitter=none attempts=3")
        id = hub.post(b"x")
        first, second = leaf.wait(2)
        self.assertEqual((first.id, second.id), (id, id))
        self.assertEqual((first.attempt, second.attempt), (1, 2))
        self.assertGreaterEqual(second.at - first.at, 0.150)
        self.assertEqual(hub.stop(), 0)
        self.assertEqual(len(leaf.receipts), 2)
        self.assertEqual(self.rows(), [])
        self.assertEqual(self.books()["a"]["delivered"], 1)
        line = hub.events("attempt-failed")[0]
        self.assertEqual((line["target"], line["cause"], line["decision"],
                          line["message"], line["attempt"],
                          line["attempts_max"], line["why"]),
                         ("a", "HTTP_503", "parked", id, 1, 3, "backoff"))
        self.assertAlmostEqual(line["wait_ms"], 150, delta=1)

    def test_it_waits_as_long_as_the_target_asks(self):
        leaf = self.leaf(lambda r: (429, {"Retry-After": "1"})
                         if r.attempt == 1 else 200)
        hub = self.hub("--to", leaf.url(), "--policy",
                       "fixed base=1ms jitter=none attempts=3")
        hub.post(b"x")
        first, second = leaf.wait(2)
        self.assertGreaterEqual(second.at - first.at, 1)
        self.assertEqual(hub.stop(), 0)
        self.assertEqual(hub.events("attempt-failed")[0]["why"],
                         "server-delay")

    def test_attempts_end_in_a_dead_letter(self):
        leaf = self.leaf(lambda r: 500)
        hub = self.hub("--to", leaf.url(), "--policy",
                       "fixed base=1ms jitter=none attempts=3")
        id = hub.post(b"x")
        hub.event("attempt-failed", decision="dead")
        self.assertEqual(hub.stop(), 0)
        self.assertEqual([r.attempt for r in leaf.receipts], [1, 2, 3])
        row, = self.rows()
        self.assertEqual((row["message_id"], row["payload"], row["attempts"],
                          row["cause"], row["category"], row["why"],
                          row["state"], row["http_status"]),
                         (id, b"x", 3, "HTTP_500", "B", "attempts", "dead",
                          500))

    def test_a_refused_connection_is_a_dead_letter_at_once(self):
        url = self.refused()
        hub = self.hub("--to", f"gone={url}")
        id = hub.post(b"x")
        line = hub.event("attempt-failed", decision="dead")
        self.assertEqual((line["target"], line["cause"], line["message"]),
                         ("gone", "CONNECTION_REFUSED", id))
        self.assertEqual(hub.stop(), 0)
        row, = self.rows()
        self.assertEqual((row["target"], row["target_url"], row["message_id"],
                          row["attempts"], row["cause"], row["category"]),
                         ("gone", url, id, 1, "CONNECTION_REFUSED", "A"))
        self.assertEqual(self.books()["gone"]["dead"], 1)

    def test_a_404_is_a_dead_letter_at_once(self):
        leaf = self.leaf(lambda r: 404)
        hub = self.hub("--to", leaf.url())
        hub.post(b"x")
        hub.event("attempt-failed", decision="dead", cause="HTTP_404")
        self.assertEqual(hub.stop(), 0)
        self.assertEqual(len(leaf.receipts), 1)
        self.assertEqual([(row["cause"], row["category"], row["attempts"])
                          for row in self.rows()], [("HTTP_404", "C", 1)])

    def test_a_dead_target_costs_the_others_nothing(self):
        leaf = self.leaf()
        hub = self.hub("--to", f"gone={self.refused()}", "--to",
                       f"well={leaf.url()}")
        for i in range(50):
            hub.post(b"%d" % i)
        leaf.wait(50)
        line = hub.event("breaker-opened")
        self.assertEqual((line["target"], line["cause"]),
                         ("gone", "CONNECTION_REFUSED"))
        self.assertEqual(hub.stop(), 0)
        books = self.books()
        self.assertEqual(books["well"]["delivered"], 50)
        # What was not tried is held in the log; what was, is a dead letter.
        self.assertEqual((books["gone"]["routed"], books["gone"]["dead"]),
                         (20, 20))
        self.assertEqual(len(self.rows()), 20)

    def test_what_is_held_for_too_long_is_a_range_row(self):
        hub = self.hub("--from", "-", "--to", f"gone={self.refused()}",
                       "--hold", "10ms", "--policy", "broadcast breaker=2:30s",
                       listen=False, stdin=subprocess.PIPE)
        hub.process.stdin.write("".join(f"{i}\n" for i in range(10)))
        hub.process.stdin.close()
        self.assertEqual(hub.wait(), 1)
        self.assertEqual(hub.events("shedding")[0]["target"], "gone")
        *tried, left = self.rows()
        self.assertEqual([row["payload"] for row in tried], [b"0", b"1"])
        self.assertEqual((left["count"], left["payload"],
                          left["last_position"] - left["position"]),
                         (8, None, 7))
        self.assertEqual(self.books()["gone"]["dead"], 10)

    # -- the end and the next start

    def test_a_restart_goes_on_where_it_was(self):
        is_well = threading.Event()
        leaf = self.leaf(lambda r: 200 if is_well.is_set() else 503)
        arguments = ("--to", f"a={leaf.url()}", "--policy",
                     "fixed base=300ms jitter=none attempts=9 breaker=none")
        hub = self.hub(*arguments)
        ids = [hub.post(b"%d" % i) for i in range(5)]
        leaf.wait(5)
        self.assertEqual(hub.stop(), 0)
        self.assertEqual(self.books()["a"]["delivered"], 0)
        is_well.set()
        before = len(leaf.receipts)
        hub = self.hub(*arguments)
        ids.append(hub.post(b"5"))
        receipts = leaf.wait(before + 6)[before:]
        self.assertEqual(hub.stop(), 0)
        self.assertEqual({r.id for r in receipts}, set(ids))
        for receipt in receipts:
            self.assertEqual(receipt.body, b"%d" % ids.index(receipt.id))
            if receipt.id != ids[5]:
                self.assertGreaterEqual(receipt.attempt, 2)
        self.assertEqual(len(leaf.receipts), before + 6)
        self.assertEqual(self.books()["a"]["delivered"], 6)

    def test_a_kill_loses_nothing(self):
        is_well = threading.Event()
        self.addCleanup(is_well.set)
        leaf = self.leaf(lambda r: is_well.wait(PATIENCE) and 200)
        hub = self.hub("--to", f"a={leaf.url()}")
        ids = {hub.post(b"%d" % i) for i in range(5)}
        leaf.wait(1)  # a new target is tried by one at first
        hub.process.kill()
        hub.wait()
        is_well.set()
        hub = self.hub("--to", f"a={leaf.url()}")
        first, *others = leaf.wait(6)
        self.assertEqual({r.id for r in others}, ids)
        self.assertEqual(hub.stop(), 0)
        self.assertEqual(len(leaf.receipts), 6)
        self.assertEqual(self.books()["a"]["delivered"], 5)

    def test_an_attempt_that_outlasts_the_drain_is_cut(self):
        is_over = threading.Event()
        self.addCleanup(is_over.set)
        leaf = self.leaf(lambda r: is_over.wait(PATIENCE) and 200)
        hub = self.hub("--to", f"a={leaf.url()}", "--drain", "50ms")
        id = hub.post(b"x")
        leaf.wait(1)
        self.assertEqual(hub.stop(signal.SIGINT), 3)
        self.assertFalse(hub.events("stopped")[0]["clean"])
        is_over.set()
        hub = self.hub("--to", f"a={leaf.url()}")
        self.assertEqual([r.id for r in leaf.wait(2)], [id, id])
        self.assertEqual(hub.stop(), 0)

    def test_an_attempt_within_the_drain_time_ends_well(self):
        is_over = threading.Event()
        self.addCleanup(is_over.set)
        leaf = self.leaf(lambda r: is_over.wait(PATIENCE) and 200)
        hub = self.hub("--to", f"a={leaf.url()}")
        hub.post(b"x")
        leaf.wait(1)
        hub.process.send_signal(signal.SIGTERM)
        hub.event("stopping")
        is_over.set()
        self.assertEqual(hub.wait(), 0)
        self.assertEqual(self.books()["a"]["delivered"], 1)

    def test_a_second_signal_ends_it_at_once(self):
        is_over = threading.Event()
        self.addCleanup(is_over.set)
        leaf = self.leaf(lambda r: is_over.wait(PATIENCE) and 200)
        hub = self.hub("--to", leaf.url())
        hub.post(b"x")
        leaf.wait(1)
        hub.process.send_signal(signal.SIGTERM)
        hub.event("stopping")
        self.assertEqual(hub.stop(signal.SIGINT), 130)

    def test_a_target_that_is_not_named_any_more_is_kept(self):
        one, other = self.leaf(), self.leaf()
        hub = self.hub("--to", f"one={one.url()}", "--to",
                       f"other={other.url()}")
        hub.post(b"0")
        one.wait(1), other.wait(1)
        self.assertEqual(hub.stop(), 0)
        hub = self.hub("--to", f"one={one.url()}")
        self.assertEqual(hub.events("target-unknown")[0]["target"], "other")
        id = hub.post(b"1")
        one.wait(2)
        self.assertEqual(hub.stop(), 0)
        self.assertEqual(len(other.receipts), 1)
        hub = self.hub("--to", f"one={one.url()}", "--to",
                       f"other={other.url('/moved')}")
        self.assertEqual(other.wait(2)[1].id, id)
        self.assertEqual(hub.stop(), 0)
        self.assertEqual(len(one.receipts), 2)

    def test_a_store_that_fails_ends_it_and_a_restart_recovers(self):
        is_over = threading.Event()
        self.addCleanup(is_over.set)
        leaf = self.leaf(lambda r: is_over.wait(2 * PATIENCE) and 200)
        megabyte = (1 << 20, 1 << 20)
        hub = self.hub("--to", f"a={leaf.url()}", "--policy",
                       "broadcast attempt-timeout=none", restore_signals=False,
                       preexec_fn=lambda: resource.setrlimit(
                           resource.RLIMIT_FSIZE, megabyte))
        ids = set()
        with self.assertRaises((AssertionError, OSError,
                                http.client.HTTPException)):
            for _ in range(100):
                ids.add(hub.post(b"x" * 50000))
        self.assertEqual(hub.wait(), 4)
        self.assertIn(self.store, hub.events("store-broken")[0]["detail"])
        before = len(leaf.receipts)
        is_over.set()
        hub = self.hub("--to", f"a={leaf.url()}")
        with leaf.changed:
            self.assertTrue(leaf.changed.wait_for(
                lambda: ids <= {r.id for r in leaf.receipts[before:]},
                PATIENCE))
        self.assertEqual(hub.stop(), 0)

    # -- standard input

    def test_lines_are_sent_and_then_it_ends(self):
        leaf = self.leaf(lambda r: 503 if r.attempt == 1 else 200)
        hub = self.hub("--from", "-", "--to", f"a={leaf.url()}", "--policy",
                       "fixed base=1ms jitter=none attempts=3",
                       listen=False, stdin=subprocess.PIPE)
        hub.process.stdin.write("one\ntwo\n\nthree")
        hub.process.stdin.close()
        self.assertEqual(hub.wait(), 0)
        self.assertEqual(sorted(r.body for r in leaf.receipts
                                if r.attempt == 2),
                         [b"one", b"three", b"two"])
        self.assertEqual(self.books()["a"]["delivered"], 3)

    def test_dead_letters_of_lines_are_told_by_the_exit_code(self):
        leaf = self.leaf(lambda r: 404 if r.body == b"two" else 200)
        hub = self.hub("--from", "-", "--to", leaf.url(), listen=False,
                       stdin=subprocess.PIPE)
        hub.process.stdin.write("one\ntwo\n")
        hub.process.stdin.close()
        self.assertEqual(hub.wait(), 1)
        self.assertEqual([row["payload"] for row in self.rows()], [b"two"])
        # Those of an earlier run are not told again.
        hub = self.hub("--from", "-", "--to", leaf.url(), listen=False)
        self.assertEqual(hub.wait(), 0)

    def test_no_line_is_no_message(self):
        hub = self.hub("--from", "-", "--to", self.refused(), listen=False)
        self.assertEqual(hub.wait(), 0)

    def test_lines_and_an_ingress_go_together(self):
        leaf = self.leaf()
        hub = self.hub("--from", "-", "--to", leaf.url(),
                       stdin=subprocess.PIPE)
        hub.process.stdin.write("line\n")
        hub.process.stdin.close()
        leaf.wait(1)
        hub.post(b"posted")
        self.assertEqual({r.body for r in leaf.wait(2)}, {b"line", b"posted"})
        self.assertEqual(hub.stop(), 0)

    # -- what it refuses

    def test_options_that_cannot_be_used_are_told(self):
        to = ("--to", "http://127.0.0.1:9/")
        for arguments, words in (
                ((), "--to URL"),
                (("--to", "ftp://x/"), "target 1: url: it does not begin"),
                ((*to, "--to", "x=nothing"), "target 2 (x): url"),
                (("--to", "http://u:secret@x/"), "password"),
                (("--to", "bad name=http://127.0.0.1/"), "bad name"),
                ((*to, *to), "two targets have this name"),
                (("--to", "a=http://x/", "--to", "a=http://y/"),
                 "two targets have this name"),
                ((*to, "--policy", "attempts=0"), "attempts=0"),
                ((*to, "--memory", "1M"), "8M"),
                ((*to, "--memory", "12Q"), "12Q"),
                ((*to, "--quota", "1"), "16M"),
                ((*to, "--drain", "1"), "like 10s"),
                ((*to, "--retention", "1s"), "1m"),
                ((*to, "--hold", "long"), "10m"),
                ((*to, "--rate", "5"), "100/s"),
                ((*to, "--order", "any"), "strict"),
                ((*to, "--in-flight", "0"), "10000"),
                ((*to, "--from", "file"), "standard input"),
                ((*to, "--dead-letters", "x"), "file:"),
                ((*to, "--log", "xml"), "logfmt"),
                ((*to, "--listen", "somewhere"), "somewhere"),
                ((*to, "--listen", "0.0.0.0:0"), "token"),
                ((*to, "--from", "-", "--token-file", "x"), "--listen"),
                ((*to, "word"), "word"),
                ((*to, "--store", "/nowhere/x.db"), "/nowhere"),
        ):
            with self.subTest(arguments=arguments):
                found = self.refuse(*arguments)
                self.assertIn(words, found)
                self.assertNotIn("secret", found)

    def test_a_port_or_a_store_in_use_is_told(self):
        leaf = self.leaf()
        hub = self.hub("--to", leaf.url())
        words = self.refuse("--to", leaf.url(), "--listen", "127.0.0.1:0",
                            "--store", self.store)
        self.assertIn(self.store, words)
        words = self.refuse("--to", leaf.url(), "--listen",
                            f"127.0.0.1:{hub.port}", "--store", "other.db")
        self.assertIn(str(hub.port), words)
        self.assertEqual(hub.stop(), 0)


if __name__ == "__main__":
    unittest.main()
