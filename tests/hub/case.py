"""The hub as a process, its store and its log, and a runner of tests.

    class Some(case.Case):
        def test_a_thing_is_so(self):
            a = self.leaf(lambda r: 503 if r.attempt == 1 else 200)
            hub = self.hub("--to", a.url())
            hub.post(b"x")
            a.wait(2)

    case.main()     # runs the tests side by side, and prints a line for each

What is waited for is a receipt, a line of the log, a row, or the end of a
process.
"""
import collections
import contextlib
import datetime
import http.client
import json
import os
import queue
import re
import signal
import socket
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
import unittest
from concurrent import futures

import log_shapes
from leaf import PATIENCE, STAGGER, Leaf, Sinks


def is_sanitized():
    """Then freed memory is kept for a while, and bounds of memory mean
    nothing."""
    with open(STAGGER, "rb") as command:
        return b"__asan_init" in command.read()


def wait_for(claim, what):
    """Until claim() is true, which it returns; what: for people."""
    until = time.monotonic() + PATIENCE
    while not (found := claim()):
        if time.monotonic() > until:
            raise AssertionError(f"not in {PATIENCE} s: "
                                 f"{what() if callable(what) else what}")
        time.sleep(0.01)
    return found


# -- the hub -------------------------------------------------------------------

class Refused(Exception):
    """An answer of the ingress that is no 202."""

    def __init__(self, status, headers, body):
        super().__init__(f"{status}: {body!r}")
        self.status, self.headers, self.body = status, headers, body


class PathConnection(http.client.HTTPConnection):
    """To a hub that listens on unix:/path."""

    def __init__(self, path):
        super().__init__("localhost")
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(PATIENCE)
        self.sock.connect(self.path)


class Producer:
    """A connection to the ingress, kept alive. port: a number, or the path of
    a socket."""

    def __init__(self, port):
        self.http = (PathConnection(port) if isinstance(port, str) else
                     http.client.HTTPConnection("127.0.0.1", port,
                                                timeout=PATIENCE))

    def post(self, body, path="/v1/messages", **headers):
        """The id, or the ids of a batch."""
        headers = {name.replace("_", "-"): value
                   for name, value in headers.items()}
        self.http.request("POST", path, body, headers)
        answer = self.http.getresponse()
        text = answer.read()
        if answer.status != 202:
            raise Refused(answer.status, answer.headers, text)
        found = json.loads(text)
        return found.get("id") or found["ids"]

    def post_lines(self, messages):
        """A batch of dictionaries."""
        return self.post("\n".join(map(json.dumps, messages)).encode(),
                         "/v1/messages/batch",
                         Content_Type="application/x-ndjson")

    def close(self):
        self.http.close()


class Hub:
    """One run of it, with its log as JSON."""

    def __init__(self, store, *arguments, listen="127.0.0.1:0", before=(),
                 settings=None):
        """before: words in front of the command. settings: a file that says
        where it listens and what the store is. listen=None: it does not become
        ready."""
        if settings is not None:
            arguments = ["-c", settings, *arguments]
        else:
            arguments = ["--store", store, *arguments]
        if listen is not None and settings is None:
            arguments = ["--listen", listen, *arguments]
        self.process = subprocess.Popen(
            [*before, STAGGER, "hub", "--log", "json", *arguments],
            stderr=subprocess.PIPE, stdin=subprocess.DEVNULL)
        self.lines, self.noise, self.misshapen = [], [], []
        self.fresh = queue.Queue()
        self.reader = threading.Thread(target=self.read, daemon=True)
        self.reader.start()
        self.port = None
        if listen is not None:
            address = self.event("ready")["listen"]
            self.port = (address.removeprefix("unix:")
                         if address.startswith("unix:")
                         else int(address.rsplit(":", 1)[1]))

    def read(self):
        for text in self.process.stderr:
            try:
                line = json.loads(text)
                self.lines.append(line)
                self.misshapen += log_shapes.mistakes(line)
                self.fresh.put(line)
            except ValueError:
                self.noise.append(text)
        self.fresh.put(None)

    def event(self, name, **fields):
        """The next line with this event and these fields."""
        until = time.monotonic() + PATIENCE
        while True:
            try:
                line = self.fresh.get(timeout=until - time.monotonic())
            except (queue.Empty, ValueError):
                raise AssertionError(
                    f"no line {name} {fields} in {PATIENCE} s; the last are "
                    f"{self.lines[-3:]}") from None
            assert line is not None, (f"it ended without a line {name} "
                                      f"{fields}: {self.lines[-3:]} "
                                      f"{self.noise}")
            if line["event"] == name and fields.items() <= line.items():
                return line

    def events(self, name, **fields):
        return [line for line in self.lines
                if line["event"] == name and fields.items() <= line.items()]

    def producer(self):
        return Producer(self.port)

    def post(self, body, path="/v1/messages", **headers):
        with contextlib.closing(self.producer()) as producer:
            return producer.post(body, path, **headers)

    def resident(self, field="VmRSS"):
        """Bytes; VmHWM: the most there ever were."""
        with open(f"/proc/{self.process.pid}/status") as status:
            return int(re.search(field + r":\s+(\d+)", status.read())[1]) << 10

    def cpu(self):
        """Seconds of it that were used."""
        with open(f"/proc/{self.process.pid}/stat") as stat:
            user, system = stat.read().rsplit(")", 1)[1].split()[11:13]
        return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")

    def wait(self):
        code = self.process.wait(PATIENCE)
        self.reader.join(PATIENCE)
        self.process.stderr.close()
        assert not self.misshapen, self.misshapen[:5]
        return code

    def stop(self, how=signal.SIGTERM):
        self.process.send_signal(how)
        return self.wait()

    def kill(self):
        self.stop(signal.SIGKILL)

    def end(self):
        if self.process.poll() is None:
            self.kill()


@contextlib.contextmanager
def opened(path):
    db = sqlite3.connect(f"file:{path}?mode=ro", uri=True, timeout=PATIENCE)
    db.row_factory = sqlite3.Row
    try:
        yield db
    finally:
        db.close()


def await_settled(targets, look):
    """Until nothing waits and nothing is parked: all is in the store. look: asks
    the store for rows."""
    seen = None

    def is_settled():
        nonlocal seen
        seen = look(
            "SELECT (SELECT count(*) FROM parked) AS parked, "
            "(SELECT value FROM meta WHERE name = 'next_position') AS next,"
            " (SELECT json_group_array(value ->> 'base') FROM cursors, "
            "json_each(lanes)) AS bases")[0]
        bases = json.loads(seen["bases"])
        return (seen["parked"] == 0 and len(bases) >= targets
                and all(base == seen["next"] for base in bases))
    wait_for(is_settled, lambda: f"all settled; there is {seen}")


def deliver(store, bodies, *words, targets=1, **more):
    """A hub that takes the bodies, delivers or buries them all, and ends."""
    def look(query):
        with opened(store) as db:
            return [dict(row) for row in db.execute(query)]

    hub = Hub(store, *words, **more)
    try:
        for body in bodies:
            hub.post(body)
        if bodies:
            await_settled(targets, look)
        assert hub.stop() == 0, hub.noise
    finally:
        hub.end()
    return hub


def seconds(text):
    """A time of the log or of the store, since 1970."""
    return datetime.datetime.fromisoformat(
        text.replace("Z", "+00:00")).timestamp()


# -- tests ---------------------------------------------------------------------

class Case(unittest.TestCase):
    longMessage = True
    maxDiff = None

    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="stagger-",
                                             ignore_cleanup_errors=True)
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.store = os.path.join(folder.name, "hub.db")

    def kept(self, thing):
        """Closed behind the test."""
        self.addCleanup(thing.close)
        return thing

    def leaf(self, *arguments, **more):
        return self.kept(Leaf(*arguments, **more))

    def sinks(self, *arguments):
        return self.kept(Sinks(self.folder, *arguments))

    def hub(self, *arguments, store=None, **more):
        hub = Hub(store or self.store, *arguments, **more)
        self.addCleanup(hub.end)
        return hub

    def put(self, name, text, mode=0o600):
        """The path of a file of the test's folder."""
        path = os.path.join(self.folder, name)
        with open(path, "w") as file:
            file.write(text)
        os.chmod(path, mode)
        return path

    def reload(self, hub):
        hub.process.send_signal(signal.SIGHUP)
        return hub.event("reloaded")

    def refused(self):
        """A URL that nothing listens on, as long as the test runs."""
        s = self.kept(socket.socket())
        s.bind(("127.0.0.1", 0))
        return f"http://127.0.0.1:{s.getsockname()[1]}/"

    def rows(self, query="SELECT * FROM failed_broadcast_logs ORDER BY id",
             *values, store=None):
        if hasattr(store, "ask"):
            return store.ask(query)
        with opened(store or self.store) as db:
            return [dict(row) for row in db.execute(query, values)]

    def books(self, store=None):
        """Of each lane, by name; they balance (I17). Of a hub that ended."""
        books = {}
        for row in self.rows(
                "SELECT name, value AS cursor, (SELECT count(*) FROM parked "
                "WHERE lane = number) AS parked FROM cursors, json_each(lanes),"
                " lanes WHERE number = json_each.key", store=store):
            book = json.loads(row["cursor"])
            book.pop("settled", None)
            book = collections.Counter(book)
            book["parked"] = row["parked"]
            self.assertEqual(book["routed"],
                             book["delivered"] + book["dead"]
                             + book["cancelled"] + book["parked"],
                             f"I17: the books of {row['name']}: {book}")
            books[row["name"]] = book
        return books

    def await_settled(self, targets, store=None):
        """Until nothing waits and nothing is parked: all is in the store."""
        await_settled(targets, lambda query: self.rows(query, store=store))


class ByFile(Case):
    """Settings in a file, as JSON, which is YAML."""

    def write(self, targets, **more):
        return self.put("hub.yaml", json.dumps(
            {"listen": {"address": "127.0.0.1:0"},
             "store": {"path": self.store}, **more, "targets": targets}))

    def start(self, targets, **more):
        return self.hub(settings=self.write(targets, **more))


notes = {}


def note(test, text):
    """A word to the line of the test: a number that it saw, or what it had to
    leave out."""
    notes.setdefault(test.id(), []).append(text)


def run(test):
    result = unittest.TestResult()
    started_at = time.monotonic()
    test.run(result)
    return test, result, time.monotonic() - started_at


def main(at_once=8, behind=()):
    """The tests of the script, `at_once` side by side. behind: what is called
    when they are through."""
    module = sys.modules["__main__"]
    suite = (unittest.defaultTestLoader.loadTestsFromNames(sys.argv[1:], module)
             if len(sys.argv) > 1
             else unittest.defaultTestLoader.loadTestsFromModule(module))
    tests = list(flatten(suite))
    failed = 0
    with futures.ThreadPoolExecutor(at_once) as pool:
        for done in futures.as_completed([pool.submit(run, t) for t in tests]):
            test, result, took = done.result()
            name = test.id().split(".", 1)[-1].split(".test_")[-1]
            words = "; ".join(notes.get(test.id(), []))
            wrong = [text for _, text in result.failures + result.errors]
            failed += bool(wrong)
            state = ("FAIL" if wrong else "left out" if result.skipped
                     else "ok")
            reason = result.skipped[0][1] if result.skipped else ""
            print(f"{state:4} {name.replace('_', ' ')} ({took:.1f} s)"
                  + "".join(f": {w}" for w in (reason, words) if w),
                  *wrong, sep="\n", flush=True)
    for call in behind:
        call()
    print(f"{len(tests) - failed} of {len(tests)} hold")
    sys.stdout.flush()
    os._exit(1 if failed or not tests else 0)


def flatten(suite):
    for test in suite:
        if isinstance(test, unittest.TestSuite):
            yield from flatten(test)
        else:
            yield test
