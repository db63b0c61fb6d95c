#!/usr/bin/env python3
"""Leaves and producers that do anything at all: every other target gets
everything, each attempt ends with its cause, the memory is bounded, and the hub
goes on serving (I12)."""
import contextlib
import http.client
import json
import os
import random
import selectors
import socket
import time

import case
import leaf
from leaf import then_close, then_hang, told

POLICY = ("fixed base=50ms jitter=none attempts=2 attempt-timeout=1s "
          "deadline=none breaker=none budget=none")
MESSAGES = 4
GROWTH = 32 << 20  # bytes; a hub with nothing to do has 10 to 20 MiB

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
CAUSES = {"reset": "CONNECTION_RESET", "protocol": "PROTOCOL_ERROR",
          "timeout": "TIMEOUT", "500": "HTTP_500", "200": None}


# -- deeds ---------------------------------------------------------------------

def endlessly(head, piece, pause=0):
    """Until the hub has had enough."""
    def deed(connection, request):
        connection.send(head)
        with contextlib.suppress(OSError):
            for _ in range(100_000):
                connection.send(piece)
                time.sleep(pause)
        connection.close()
    return deed


def byte_by_byte(text, pause):
    def deed(connection, request):
        for i in range(len(text)):
            connection.send(text[i:i + 1])
            time.sleep(pause)
    return deed


def garbage(connection, request):
    """Other bytes for each attempt, the same for each run."""
    chance = random.Random(f"{request.position} {request.attempt}")
    connection.send(b"\xff" + chance.randbytes(chance.randrange(20_000)))
    connection.close()


def cut_at(text):
    """Each request gets one byte less of the answer."""
    def deed(connection, request):
        connection.send(text[:request.position % len(text)])
        connection.close()
    return deed


def smuggle(connection, request):
    """An answer, and one for a request that was not made: what was asked next
    must not get it."""
    connection.send(told(500), OK)


def smuggle_later(connection, request):
    """The other one comes when the connection is idle."""
    connection.send(told(500))
    time.sleep(0.02)
    connection.send(OK)


def head(text):
    return b"HTTP/1.1 200 OK\r\n" + text + b"\r\n\r\n"


# name: deed, how an attempt ends. None: told by other means.
DEEDS = {
    "endless-header": (endlessly(b"HTTP/1.1 200 OK\r\n",
                                 b"X: " + b"y" * 4093 + b"\r\n"), "protocol"),
    "endless-line": (endlessly(b"HTTP/1.1 200 OK\r\nX: ", b"y" * 4096),
                     "protocol"),
    "endless-status": (endlessly(b"HTTP/1.1 200 ", b"y" * 4096), "protocol"),
    # The status is there: what follows is cut.
    "endless-body": (endlessly(b"HTTP/1.1 200 OK\r\n\r\n", b"y" * 4096),
                     "200"),
    "endless-500": (endlessly(b"HTTP/1.1 500 No\r\n\r\n", b"y" * 4096), "500"),
    "endless-chunks": (endlessly(CHUNKED, b"1\r\ny\r\n" * 512), "200"),
    "endless-extension": (endlessly(CHUNKED + b"1;", b"y" * 4096), None),
    "endless-chunk-size": (endlessly(CHUNKED, b"0" * 4096), None),
    "endless-trailer": (endlessly(CHUNKED + b"0\r\n", b"X: y\r\n" * 512),
                        None),
    "huge-length": (endlessly(head(b"Content-Length: 9999999999"),
                              b"y" * 4096), "200"),
    "slow-header": (endlessly(b"HTTP/1.1 200 OK\r\n", b"X: y\r\n", 0.03),
                    "timeout"),
    "slow-body": (endlessly(b"HTTP/1.1 200 OK\r\n\r\n", b"y", 0.03),
                  "timeout"),
    "slow-but-whole": (byte_by_byte(OK, 0.001), "200"),
    "garbage": (garbage, "protocol"),
    "zeros": (then_close(bytes(5000)), "protocol"),
    "html": (then_close(b"<html>not found</html>\n"), "protocol"),
    "http-0.9": (then_close(b"ok"), "protocol"),
    "http-2": (then_close(b"\0\0\x12\4\0\0\0\0\0" + bytes(18)), "protocol"),
    "status-999": (told(999), None),
    "status-000": (told("000"), "protocol"),
    "status-20": (told("20"), "protocol"),
    "status-2000": (told("2000"), "protocol"),
    "status-minus": (told("-200"), "protocol"),
    "interims": (b"HTTP/1.1 102 Processing\r\n\r\n" * 10 + OK, "200"),
    "interim-flood": (endlessly(b"", b"HTTP/1.1 102 Go on\r\n\r\n"),
                      "protocol"),
    "interim-hang": (then_hang(b"HTTP/1.1 100 Continue\r\n\r\n"), "timeout"),
    "switching": (told(101), "protocol"),
    "two-lengths": (head(b"Content-Length: 2\r\nContent-Length: 3") + b"okk",
                    "protocol"),
    "length-and-chunks": (head(b"Content-Length: 2\r\nTransfer-Encoding: "
                               b"chunked") + b"2\r\nok\r\n0\r\n\r\n",
                          "protocol"),
    "length-minus": (head(b"Content-Length: -1"), "protocol"),
    "length-words": (head(b"Content-Length: two") + b"ok", "protocol"),
    "length-overflow": (head(b"Content-Length: 99999999999999999999999"),
                        "protocol"),
    "length-short": (then_close(head(b"Content-Length: 5") + b"ok"),
                     "protocol"),
    "chunk-overflow": (CHUNKED + b"ffffffffffffffffff\r\nok", "protocol"),
    "chunk-negative": (CHUNKED + b"-1\r\nok", "protocol"),
    "chunk-words": (CHUNKED + b"size\r\nok", "protocol"),
    "chunk-no-end": (CHUNKED + b"2\r\nokXX", "protocol"),
    "bare-lf": (b"HTTP/1.1 200 OK\nContent-Length: 2\n\nok", "protocol"),
    "folded": (head(b"X: y\r\n z\r\nContent-Length: 0"), "protocol"),
    "no-colon": (head(b"a header without one"), "protocol"),
    "nul-in-head": (head(b"X: \0\r\nContent-Length: 0"), "protocol"),
    "smuggle": (smuggle, "500"),
    "smuggle-later": (smuggle_later, "500"),
    "two-answers": (told(500) + told(500), "500"),
    "cut-anywhere": (cut_at(OK[:-1]), None),
    "204-with-a-body": (b"HTTP/1.1 204 No\r\nContent-Length: 2\r\n\r\nok",
                        None),
}


def impatient(connection):
    """Answers before there is a request."""
    connection.send(told(500))
    connection.hang()


class Leaves(case.Case):
    def start(self, targets):
        words = [word for name, url in targets.items()
                 for word in ("--to", f"{name}={url}")]
        return self.hub(*words, "--policy", POLICY, "--memory", "16M",
                        "--in-flight", "8")

    def causes(self):
        causes = {}
        for row in self.rows():
            causes.setdefault(row["target"], set()).add(row["cause"])
        return causes

    def test_leaves_that_do_anything_at_all(self):
        servers = {name: self.leaf(lambda r, deed=deed: deed)
                   for name, (deed, _) in DEEDS.items()}
        servers["early"] = self.leaf(early=impatient)
        wells = [self.leaf(), self.leaf()]
        targets = {name: s.url() for name, s in servers.items()}
        targets = {"first": wells[0].url(), **targets, "last": wells[1].url()}
        hub = self.start(targets)
        before = hub.resident()
        producer = self.kept(hub.producer())
        ids = [producer.post(b"%d" % i) for i in range(MESSAGES)]
        for well in wells:
            well.wait(MESSAGES)
        self.await_settled(len(targets))
        grown = hub.resident("VmHWM") - before
        self.assertEqual(hub.stop(), 0)
        for well in wells:
            self.assertEqual([r.id for r in well.receipts].count(ids[0]), 1)
            self.assertEqual({(r.id, r.attempt) for r in well.receipts},
                             {(id, 1) for id in ids})
        causes = self.causes()
        wrong = []
        for name, (_, how) in DEEDS.items():
            if how is None:
                continue
            expected = {CAUSES[how]} - {None}
            if causes.get(name, set()) != expected:
                wrong.append(f"{name}: expected {expected or 'delivered'}, saw "
                             f"{causes.get(name, 'delivered')}")
        self.assertEqual(wrong, [])
        if not case.is_sanitized():
            self.assertLess(grown, GROWTH, "bytes grown")
        self.assertIn("early", causes)
        for name, book in self.books().items():
            self.assertEqual(book["routed"], MESSAGES, name)
            self.assertEqual(book["delivered"] + book["dead"], MESSAGES,
                             name)
        for name, server in servers.items():
            counts = {}
            for r in server.receipts:
                counts[r.id, r.attempt] = counts.get((r.id, r.attempt), 0) + 1
            self.assertLessEqual(set(counts.values()), {1}, name)
        case.note(self, f"{len(servers)} kinds, grown by {grown >> 20} MiB; " +
                  ", ".join(f"{name}: {causes.get(name, 'delivered')}"
                            for name, (_, how) in DEEDS.items()
                            if how is None))

    def test_an_answer_never_goes_to_another_delivery(self):
        """What is left over on a connection is for nobody: each delivery has
        the answer of its own request."""
        def answer(request):
            mine = 200 if request.position % 2 else 404
            other = 404 if request.position % 2 else 200
            return told(mine) + told(other) * (1 + request.position % 3)

        server = self.leaf(answer)
        hub = self.hub("--to", server.url(), "--policy", POLICY)
        producer = self.kept(hub.producer())
        ids = producer.post_lines([{"body": "x"}] * 100)
        self.await_settled(1)
        self.assertEqual(hub.stop(), 0)
        dead = {row["message_id"] for row in self.rows()}
        self.assertEqual(dead, {id for id in ids
                                if int(id.split("-")[1]) % 2 == 0})
        self.assertEqual([r.number for r in server.receipts], [1] * 100,
                         "a connection with something left over is closed")

    def test_a_leaf_that_reads_slowly_or_not_at_all(self):
        def never(connection):
            connection.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF,
                                         4096)
            connection.socket.settimeout(leaf.PATIENCE)
            time.sleep(10) # the hub has had enough long before
            connection.close()

        def answer_at_once(connection):
            connection.send(told(200, {"Connection": "close"}))
            connection.hang()

        server, well = self.leaf(early=never), self.leaf()
        hasty = self.leaf(early=answer_at_once)
        hub = self.hub("--to", f"never={server.url()}", "--to",
                       f"well={well.url()}", "--to", f"hasty={hasty.url()}",
                       "--policy", POLICY.replace("=1s", "=6s"), "--memory",
                       "512M")
        body = os.urandom(8 << 20)
        hub.post(body)
        receipt, = well.wait(1)
        self.assertEqual(receipt.body, body)
        self.await_settled(3)
        self.assertEqual(hub.stop(), 0)
        causes = {row["target"]: row["cause"] for row in self.rows()}
        self.assertEqual(causes.get("never"), "TIMEOUT")
        self.assertNotIn("well", causes)

    def test_an_answer_cut_at_each_byte(self):
        """Up to the last one it is cut short; whole it is taken."""
        text = told(200, {"X": "y"}, b"body")

        def answer(request):
            size = request.position
            if size >= len(text):
                return text
            return then_close(text[:size])

        server = self.leaf(answer)
        hub = self.hub("--to", server.url(), "--policy", POLICY)
        producer = self.kept(hub.producer())
        producer.post_lines([{"body": "x"}] * (len(text) + 1))
        self.await_settled(1)
        self.assertEqual(hub.stop(), 0)
        dead = {row["position"]: (row["cause"], row["attempts"])
                for row in self.rows()}
        self.assertEqual(dead, {size: ("PROTOCOL_ERROR", 2)
                                for size in range(1, len(text))})


class Producers(case.Case):
    def setUp(self):
        super().setUp()
        self.server = self.leaf()
        self.running = self.hub("--to", self.server.url(), "--memory", "32M")

    def connect(self):
        return self.kept(socket.create_connection(
            ("127.0.0.1", self.running.port), timeout=leaf.PATIENCE))

    def ask_all(self, texts, ends=True):
        """What each of them gets, on a connection of its own: until all have
        ended, or the hub has nothing to say. ends: it says no more."""
        found = {}
        for i, text in enumerate(texts):
            s = self.connect()
            found[s] = b""
            with contextlib.suppress(OSError):
                s.sendall(text)
                if ends:
                    s.shutdown(socket.SHUT_WR)
        with selectors.DefaultSelector() as open_ones:
            for s in found:
                open_ones.register(s, selectors.EVENT_READ)
            while open_ones.get_map() and (ready := open_ones.select(1)):
                for key, _ in ready:
                    piece = b""
                    with contextlib.suppress(OSError):
                        piece = key.fileobj.recv(1 << 16)
                    found[key.fileobj] += piece
                    if not piece:
                        open_ones.unregister(key.fileobj)
        return list(found.values())

    def check_serves(self):
        """It takes a message and delivers it."""
        count = len(self.server.receipts)
        id = self.running.post(b"still there")
        case.wait_for(lambda: any(r.id == id for r in self.server.receipts),
                      "a delivery")
        self.assertIsNone(self.running.process.poll())
        return count

    def post(self, *lines, body=b""):
        return "\r\n".join(["POST /v1/messages HTTP/1.1", "Host: localhost",
                            *lines, "", ""]).encode("latin-1") + body

    def test_requests_that_are_none(self):
        chance = random.Random(1)
        whole = self.post("Content-Length: 5", body=b"hello")
        texts = [
            b"", b"\r\n" * 1000, b"\0" * 5000, b"GET",
            b"GET / HTTP/9.9\r\n\r\n",
            b"\x16\x03\x01\x02\0\x01\0\x01\xfc\x03\x03" + bytes(500),
            b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
            b"POST /v1/messages HTTP/1.1\r\n\r\n",
            b"POST " + b"/" * 60_000 + b" HTTP/1.1\r\n\r\n",
            b"\xff" * 100_000,
            self.post("X: " + "y" * 100_000, "Content-Length: 0"),
            self.post(*[f"X{i}: y" for i in range(20_000)]),
            self.post("Content-Length: 5", "Content-Length: 6", body=b"hello!"),
            self.post("Content-Length: -5"),
            self.post("Content-Length: five"),
            self.post("Content-Length: 99999999999999999999999999"),
            self.post("Content-Length: 18446744073709551615", body=b"x"),
            self.post("Content-Length: 5", "Transfer-Encoding: chunked",
                      body=b"0\r\n\r\n"),
            self.post("Transfer-Encoding: chunked", body=b"zz\r\n"),
            self.post("Transfer-Encoding: chunked",
                      body=b"ffffffffffffffffff\r\nx"),
            self.post("Transfer-Encoding: gzip", body=b"x"),
            self.post("Content-Length: 5", "X\0: y", body=b"hello"),
            self.post("Content-Length: 5", body=b"he"),
            self.post("Transfer-Encoding: chunked", body=b"5\r\nhe"),
        ]
        texts += [whole[:n] for n in range(0, len(whole), 7)]
        texts += [chance.randbytes(chance.randrange(2000)) for _ in range(50)]
        for i in range(50): # a good request with a byte changed in its head
            broken = bytearray(whole)
            broken[chance.randrange(len(whole) - 7)] = chance.randrange(256)
            texts.append(bytes(broken))
        accepted = 0
        for text, found in zip(texts, self.ask_all(texts)):
            if found:
                self.assertTrue(found.startswith(b"HTTP/1.1 "), found[:80])
                self.assertNotIn(found[9:12], (b"500", b"200"), text[:80])
            accepted += found[9:12] == b"202"
        count = self.check_serves()
        self.running.stop()
        # Half a request is no message: what was not acknowledged whole is not
        # sent. (The last one is check_serves's.)
        self.assertEqual(len(self.server.receipts), accepted + 1)
        case.note(self, f"{len(texts)} requests, {accepted} of them good")

    def test_a_good_request_and_garbage_behind_it(self):
        good = self.post("Content-Length: 5", body=b"hello")
        tails = (b"\0" * 100, b"GARBAGE\r\n\r\n", b"hello" * 1000,
                 self.post("Content-Length: x"))
        for found in self.ask_all([good + good + tail for tail in tails],
                                  ends=False):
            self.assertEqual(found.count(b"HTTP/1.1 202"), 2, found)
        self.server.wait(2 * len(tails))
        self.check_serves()
        self.assertEqual(len(self.server.receipts), 2 * len(tails) + 1)
        self.assertEqual({r.body for r in self.server.receipts},
                         {b"hello", b"still there"})

    def test_a_thousand_connections_that_say_nothing(self):
        before = self.running.resident()
        idle = []
        for i in range(1000):
            # Those of one address are limited: the others have room.
            s = socket.socket()
            s.bind((f"127.0.{1 + i // 200}.1", 0))
            with contextlib.suppress(OSError):
                s.connect(("127.0.0.1", self.running.port))
                if i % 3 == 1:
                    s.sendall(b"POST /v1/mess")
                if i % 3 == 2:
                    s.sendall(self.post("Content-Length: 1000", body=b"x"))
            idle.append(self.kept(s))
        for _ in range(5):
            self.check_serves()
        grown = self.running.resident() - before
        if not case.is_sanitized():
            self.assertLess(grown, 64 << 20, "bytes grown")
        for s in idle:
            s.close()
        self.check_serves()
        case.note(self, f"grown by {grown >> 20} MiB")

    def quick_health(self, most=2):
        """Seconds of the slowest of some looks at /healthz."""
        slowest = 0
        for _ in range(20):
            began_at = time.monotonic()
            with contextlib.closing(http.client.HTTPConnection(
                    "127.0.0.1", self.running.port,
                    timeout=leaf.PATIENCE)) as asking:
                asking.request("GET", "/healthz")
                self.assertEqual(asking.getresponse().status, 200)
            slowest = max(slowest, time.monotonic() - began_at)
        if not case.is_sanitized():
            self.assertLess(slowest, most)
        return slowest

    def crowd(self, count, each, said):
        """So many connections, `each` of an address, that have said this."""
        for i in range(count):
            s = self.kept(socket.socket())
            s.bind((f"127.0.{1 + i // each}.1", 0))
            s.connect(("127.0.0.1", self.running.port))
            with contextlib.suppress(OSError):
                s.sendall(said)

    def check_delays_nobody(self):
        slowest = self.quick_health()
        for _ in range(5):
            self.check_serves()
        case.note(self, f"/healthz within {slowest * 1000:.0f} ms")

    def test_a_thousand_half_open_connections_delay_nobody(self):
        """I32: all that there may be, none of which ever says all."""
        self.crowd(1024, 200, b"POST /v1/messages HTTP/1.1\r\nHost: loc")
        self.check_delays_nobody()

    def test_more_bodies_than_places_delay_nobody(self):
        """I32: all places are taken by bodies that do not end, from eight
        addresses, and more of them wait for a place before anybody else."""
        self.crowd(1200, 150, self.post("Content-Length: 1000", body=b"x"))
        self.check_delays_nobody()

    def test_bodies_that_trickle_delay_nobody(self):
        """I32: eight of 4 MiB, of which some comes and then a little more."""
        slow = []
        for i in range(8):
            s = self.connect()
            with contextlib.suppress(OSError):
                s.sendall(b"POST /v1/messages/batch HTTP/1.1\r\n"
                          b"Host: localhost\r\n"
                          b"Content-Type: application/x-ndjson\r\n"
                          b"Content-Length: 4194304\r\n\r\n" +
                          bytes(700_000))
            slow.append(s)
        for _ in range(5):
            for s in slow:
                with contextlib.suppress(OSError):
                    s.sendall(b"x")
            self.quick_health()
            self.check_serves() # a small one is taken all the time
        for s in slow:
            s.close()

    def test_one_address_cannot_take_all_connections(self):
        idle = []
        for i in range(1100):
            s = socket.socket()
            s.bind(("127.0.9.9", 0))
            with contextlib.suppress(OSError):
                s.connect(("127.0.0.1", self.running.port))
            idle.append(self.kept(s))
        for _ in range(5):
            self.check_serves() # from 127.0.0.1

    def test_bodies_that_do_not_come_whole(self):
        before = self.running.resident()
        slow = []
        for i in range(100):
            s = self.connect()
            with contextlib.suppress(OSError):
                s.sendall(self.post("Content-Length: 1000000",
                                    body=bytes(300_000)))
            slow.append(s)
        id = None
        with contextlib.suppress(case.Refused): # 429 or 503: there is no room
            id = self.running.post(b"small")
        grown = self.running.resident() - before
        if not case.is_sanitized():
            self.assertLess(grown, 20 << 20, "bytes grown, of 30 MB sent")
        for s in slow:
            s.close()
        def ask():
            with contextlib.suppress(case.Refused):
                return self.running.post(b"x" * 900_000)
        case.wait_for(ask, "a large message is accepted again")
        self.check_serves()
        case.note(self, f"grown by {grown >> 20} MiB, the small one was "
                        + ("accepted" if id else "refused"))

    def test_batches_of_garbage(self):
        chance = random.Random(2)
        good = json.dumps({"body": "good"}).encode()
        lines = [b"", b"null", b"[]", b"{}", b"{", b'{"body": 1}',
                 b'{"body": "x", "body_base64": "eA=="}', b'"x"',
                 b'{"body": "\\ud800"}', b'{"body_base64": "***"}',
                 b"[" * 10_000, b'{"a":' * 5_000, b"\xff\xfe", b"1e999999",
                 b'{"body": "x", "key": "\\u0000\\r\\n"}',
                 b'{"body": "x", "headers": {"Host": "evil"}}',
                 b'{"body": "x", "headers": {"X-A": "a\\r\\nX-B: b"}}']
        lines += [chance.randbytes(60) for _ in range(20)]
        refused = 0
        for line in lines:
            try:
                self.running.post(b"\n".join([good, line, good]),
                                  "/v1/messages/batch",
                                  Content_Type="application/x-ndjson")
            except case.Refused as answer:
                self.assertTrue(400 <= answer.status < 500,
                                f"{line[:60]}: {answer}")
                refused += 1
        accepted = 2 * (len(lines) - refused)
        self.check_serves()
        self.await_settled(1)
        bodies = [r.body for r in self.server.receipts]
        # All of a batch, or nothing of it.
        self.assertGreaterEqual(bodies.count(b"good"), accepted)
        self.assertEqual(bodies.count(b"good") % 2, 0)
        for r in self.server.receipts:
            self.assertEqual(r.headers["x-b"], [])
            self.assertEqual(len(r.headers["host"]), 1)
        case.note(self, f"{refused} of {len(lines)} refused")


if __name__ == "__main__":
    case.main(at_once=4)
