"""Leaves for the end-to-end tests of the hub: servers on raw sockets, which do
as they are told and note what they receive before they do it.

    a = leaf.Leaf(lambda r: 503 if r.attempt == 1 else 200)
    b = leaf.Leaf(lambda r: leaf.hang)

Nothing sleeps: what is waited for is a receipt.
"""
import collections
import contextlib
import itertools
import json
import os
import socket
import struct
import subprocess
import tempfile
import threading
import time

STAGGER = os.environ["STAGGER"]
PATIENCE = 60  # seconds; only a test that fails waits so long


class Request:
    """One that came. at and answered_at are monotonic, wall is since 1970; a
    leaf notes answered_at just before it does what it was told."""

    def __init__(self, connection, number, head):
        self.at, self.wall = time.monotonic(), time.time()
        self.answered_at = None
        self.connection, self.number = connection, number # on it, from 1
        self.head = head
        self.line, *lines = head.decode("latin-1").split("\r\n")
        self.path = self.line.split(" ")[1]
        self.headers = collections.defaultdict(list)
        for line in filter(None, lines):
            name, value = line.split(": ", 1)
            self.headers[name.lower()].append(value)
        self.id = self.one("stagger-message")
        self.attempt = int(self.one("stagger-attempt") or 0)
        self.body = None

    def one(self, name):
        return (self.headers.get(name) or [None])[0]

    @property
    def position(self):
        return int(self.id.split("-")[1])

    def __repr__(self):
        return f"{self.path} {self.id}/{self.attempt} at {self.at:.3f}"


class Connection:
    """What a script has in hand: the socket, and ways to end it."""

    def __init__(self, socket, number):
        self.socket, self.number = socket, number
        self.is_over = False

    def send(self, *parts):
        for part in parts:
            self.socket.sendall(part if isinstance(part, bytes)
                                else part.encode("latin-1"))

    def reset(self):
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER,
                               struct.pack("ii", 1, 0))
        self.close()

    def close(self):
        self.is_over = True
        self.socket.close()

    def hang(self):
        """Until the other side has had enough."""
        with contextlib.suppress(OSError):
            while self.socket.recv(1 << 16):
                pass
        self.is_over = True


def reset(connection, request):
    connection.reset()


def hang(connection, request):
    connection.hang()


def close(connection, request):
    connection.close()


def then_hang(*parts):
    def deed(connection, request):
        connection.send(*parts)
        connection.hang()
    return deed


def then_close(*parts):
    def deed(connection, request):
        connection.send(*parts)
        connection.close()
    return deed


def told(status, headers=(), body=b"", reason="Told"):
    """An answer in bytes."""
    lines = [f"HTTP/1.1 {status} {reason}"]
    lines += [f"{name}: {value}" for name, value in dict(headers).items()]
    if status != 204 and status != 304:
        lines.append(f"Content-Length: {len(body)}")
    return "\r\n".join([*lines, "", ""]).encode("latin-1") + body


class Leaf:
    """A server on a port of its own.

    answer(request) gives what to do: a status; (status, headers) or (status,
    headers, body); bytes, sent as they are; or a function of (connection,
    request). early(connection), if given, is called for each connection before
    anything is read from it. tls: an SSLContext."""

    def __init__(self, answer=lambda request: 200, early=None, tls=None,
                 reads_body=True):
        self.answer, self.early, self.tls = answer, early, tls
        self.reads_body = reads_body
        self.receipts, self.connections = [], 0
        self.changed = threading.Condition()
        self.sockets = set()
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=512)
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def open(self):
        """Again, on the same port, after close()."""
        self.listener = socket.create_server(("127.0.0.1", self.port),
                                             backlog=512)
        threading.Thread(target=self.accept, daemon=True).start()

    def url(self, path="/", scheme="http", host="127.0.0.1"):
        return f"{scheme}://{host}:{self.port}{path}"

    def accept(self):
        for number in itertools.count(1):
            try:
                s = self.listener.accept()[0]
            except OSError:
                return
            s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            with self.changed:
                self.sockets.add(s)
                self.connections += 1
                self.changed.notify_all()
            threading.Thread(target=self.serve, args=(s, number),
                             daemon=True).start()

    def serve(self, s, number):
        c = Connection(s, number)
        try:
            if self.tls is not None:
                c.socket = self.tls.wrap_socket(s, server_side=True)
            if self.early is not None:
                self.early(c)
            count = 0
            pending = b""
            while not c.is_over:
                count += 1
                pending = self.take(c, count, pending)
        except (OSError, EOFError, ValueError):
            pass  # the hub has had enough, or we have
        finally:
            with contextlib.suppress(OSError):
                c.socket.close()
            with self.changed:
                self.sockets.discard(s)

    def take(self, c, count, pending):
        """One request. Returns the bytes behind it."""
        while b"\r\n\r\n" not in pending:
            pending += self.more(c)
        head, pending = pending.split(b"\r\n\r\n", 1)
        request = Request(c.number, count, head)
        size = int(request.one("content-length") or 0)
        if self.reads_body:
            while len(pending) < size:
                pending += self.more(c)
            request.body, pending = pending[:size], pending[size:]
        with self.changed:
            self.receipts.append(request)
            self.changed.notify_all()
        self.carry_out(c, request, self.answer(request))
        return pending

    @staticmethod
    def more(c):
        piece = c.socket.recv(1 << 16)
        if not piece:
            raise EOFError
        return piece

    @staticmethod
    def carry_out(c, request, what):
        request.answered_at = time.monotonic()
        if callable(what):
            what(c, request)
        elif isinstance(what, bytes):
            c.send(what)
        elif isinstance(what, int):
            c.send(told(what))
        else:
            c.send(told(*what))

    def wait(self, count):
        """That many receipts, at least."""
        with self.changed:
            there = self.changed.wait_for(lambda: len(self.receipts) >= count,
                                          PATIENCE)
            assert there, (f"{len(self.receipts)} of {count} receipts in "
                           f"{PATIENCE} s: {self.receipts[-3:]}")
            return list(self.receipts)

    def of(self, path):
        with self.changed:
            return [r for r in self.receipts if r.path == path]

    def close(self):
        with contextlib.suppress(OSError):
            self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        with self.changed:
            for s in self.sockets:
                with contextlib.suppress(OSError):
                    s.shutdown(socket.SHUT_RDWR)


class BlackHole:
    """An address where no connection is ever made: it listens, and its queue
    is full."""

    def __init__(self):
        self.listener = socket.socket()
        self.listener.bind(("127.0.0.1", 0))
        self.listener.listen(0)
        self.port = self.listener.getsockname()[1]
        self.fillers = []
        for _ in range(8):
            s = socket.socket()
            s.setblocking(False)
            s.connect_ex(("127.0.0.1", self.port))
            self.fillers.append(s)

    def url(self, path="/"):
        return f"http://127.0.0.1:{self.port}{path}"

    def close(self):
        for s in (*self.fillers, self.listener):
            s.close()


class Sinks:
    """`stagger sink`, with a log: for many targets at once, by their paths."""

    def __init__(self, folder, *arguments):
        descriptor, self.path = tempfile.mkstemp(".log", "sink-", folder)
        os.close(descriptor)
        self.process = subprocess.Popen(
            [STAGGER, "sink", "--listen", "0", "--quiet", "--log", self.path,
             *arguments], stdout=subprocess.PIPE, text=True)
        self.port = int(self.process.stdout.readline().rsplit(":", 1)[1])

    def url(self, path="/"):
        return f"http://127.0.0.1:{self.port}{path}"

    def receipts(self):
        """What it has written; the last line may be on its way."""
        with open(self.path, "rb") as log:
            return [json.loads(line) for line in log if line.endswith(b"\n")]

    def close(self):
        self.process.terminate()
        self.process.wait(PATIENCE)
        self.process.stdout.close()
