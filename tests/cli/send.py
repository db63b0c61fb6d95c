"""stagger send, as its users see it: the real binary, and a server that stands
in for the hub and can fail as told."""
import base64
import http.server
import json
import os
import pty
import re
import signal
import socketserver
import subprocess
import tempfile
import threading
import time
import unittest

STAGGER = os.environ["STAGGER"]
QUICK = "fixed base=1ms jitter=none attempts=4 retry=5xx,429,timeout,reset,refused"


class Ingress(socketserver.ThreadingMixIn, http.server.HTTPServer):
    """Takes messages as the hub does: once for each idempotency key."""
    daemon_threads = True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.lock = threading.Lock()
        self.faults = []    # a status, callable or None for each next request
        self.requests = []  # path, headers, body; also of those that failed
        self.messages = []  # as accepted
        self.keys = {}
        self.refuse = None  # a function of a message: its problem, or None

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server_address[1]}"

    def accept(self, message):
        key = message["idempotency_key"]
        if key not in self.keys:
            self.messages.append(message)
            self.keys[key] = f"00c0ffee00c0ffee-{len(self.messages)}"
        return self.keys[key]

    def bodies(self):
        return [message["body"] for message in self.messages]


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def answer(self, status, value, headers=()):
        text = json.dumps(value).encode()
        self.send_response(status)
        for name, content in headers:
            self.send_header(name, content)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def fail(self, status, detail, line=None):
        problem = {"type": "about:blank", "title": f"Title {status}",
                   "status": status, "detail": detail}
        if line is not None:
            problem["line"] = line
        self.answer(status, problem)

    def take_one(self, body):
        if self.server.refuse and self.server.refuse(body):
            return self.fail(400, self.server.refuse(body))
        self.answer(202, {"id": self.server.accept({
            "body": body, "idempotency_key": self.headers["Idempotency-Key"],
            "headers": dict(self.headers)})})

    def take_batch(self, body):
        messages = [json.loads(line) for line in body.splitlines()]
        for number, message in enumerate(messages, 1):
            if self.server.refuse and self.server.refuse(message):
                return self.fail(400, self.server.refuse(message), number)
        self.answer(202, {"ids": [self.server.accept(m) for m in messages]})

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        server = self.server
        with server.lock:
            server.requests.append((self.path, dict(self.headers), body))
            fault = server.faults.pop(0) if server.faults else None
        if callable(fault):
            return fault(self, body)
        if fault is not None:
            return self.fail(fault, "as told")
        with server.lock:
            path = self.path.split("?")[0]
            if path == "/v1/messages":
                return self.take_one(body)
            if path == "/v1/messages/batch":
                return self.take_batch(body)
        self.fail(404, "no such path")


def lose(handler, body):
    """Accepts it, and breaks off before the answer."""
    with handler.server.lock:
        for line in body.splitlines():
            handler.server.accept(json.loads(line))
    handler.close_connection = True


def lose_one(handler, body):
    with handler.server.lock:
        handler.server.accept({
            "body": body,
            "idempotency_key": handler.headers["Idempotency-Key"]})
    handler.close_connection = True


class Send(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.hub = Ingress()
        thread = threading.Thread(target=self.hub.serve_forever,
                                  kwargs={"poll_interval": 0.01})
        thread.start()
        self.addCleanup(self.hub.server_close)
        self.addCleanup(thread.join)
        self.addCleanup(self.hub.shutdown)

    def write(self, content, name="input"):
        path = os.path.join(self.folder, name)
        with open(path, "wb") as file:
            file.write(content)
        return path

    def start(self, *arguments, hub=None, **more):
        env = {**os.environ, "STAGGER_HUB": hub or self.hub.url}
        return subprocess.Popen([STAGGER, "send", *arguments], env=env, **more)

    def send(self, *arguments, input=b"", hub=None):
        process = self.start(*arguments, hub=hub, stdin=subprocess.PIPE,
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        out, err = process.communicate(input, timeout=60)
        return process.returncode, out.decode(), err.decode()

    # -- one message

    def test_publishes_standard_input_as_one_message(self):
        body = b"some\nlines\0and bytes \xff"
        for words in ([], ["-"]):
            self.assertEqual(self.send(*words, input=body)[1:],
                             (f"00c0ffee00c0ffee-{len(self.hub.messages)}\n",
                              ""))
        self.assertEqual(self.hub.bodies(), [body, body])

    def test_publishes_a_file(self):
        body = os.urandom(3000000)
        code, out, err = self.send(self.write(body))
        self.assertEqual((code, err), (0, ""))
        self.assertEqual(self.hub.bodies(), [body])

    def test_publishes_an_empty_message(self):
        self.assertEqual(self.send(self.write(b""))[0], 0)
        self.assertEqual(self.hub.bodies(), [b""])

    def test_sends_its_headers(self):
        self.send("--key", "order-7", "--type", "text/csv", "--id", "a1",
                  "-H", "X-One:  1", "--header", "X-Two: 2:3", input=b"x")
        path, headers, _ = self.hub.requests[0]
        self.assertEqual(path, "/v1/messages")
        for name, value in (("Stagger-Key", "order-7"), ("X-One", "1"),
                            ("Content-Type", "text/csv"), ("X-Two", "2:3"),
                            ("Idempotency-Key", "a1")):
            self.assertEqual(headers[name], value)

    def test_says_the_topic(self):
        for options in [], ["--lines"]:
            self.send("--topic", "orders.eu", *options, input=b"x\n")
        self.assertEqual([path for path, _, _ in self.hub.requests],
                         ["/v1/messages?topic=orders.eu",
                          "/v1/messages/batch?topic=orders.eu"])

    def test_takes_the_hub_as_an_option(self):
        for url in (self.hub.url, self.hub.url + "/"):
            code, _, _ = self.send("--hub", url, input=b"x",
                                   hub="http://127.0.0.1:1")
            self.assertEqual(code, 0)
        self.assertEqual(self.hub.requests[1][0], "/v1/messages")

    def test_shows_a_token(self):
        token = self.write(b"# ours\n\n  secret-token-0123456 \nother\n")
        for form in ([], ["--lines"]):
            self.send(*form, "--token-file", token, input=b"x\n")
            self.assertEqual(self.hub.requests[-1][1]["Authorization"],
                             "Bearer secret-token-0123456")

    # -- retries

    def test_retries_with_the_same_key(self):
        self.hub.faults = [503, 429, lose_one]
        code, out, err = self.send("-p", QUICK, input=b"x")
        self.assertEqual((code, out, err), (0, "00c0ffee00c0ffee-1\n", ""))
        keys = {headers["Idempotency-Key"]
                for _, headers, _ in self.hub.requests}
        self.assertEqual((len(self.hub.requests), len(keys)), (4, 1))
        self.assertEqual(len(self.hub.messages), 1)

    def test_has_another_key_for_each_run(self):
        for _ in range(2):
            self.send(input=b"x")
        self.assertEqual(len(self.hub.messages), 2)

    def test_publishes_once_under_an_id(self):
        outs = {self.send("--id", "mine", input=b"x") for _ in range(3)}
        self.assertEqual(outs, {(0, "00c0ffee00c0ffee-1\n", "")})

    def test_waits_as_it_is_told(self):
        self.hub.faults = [lambda handler, _: handler.answer(
            503, {"detail": "later"}, [("Retry-After", "1")])]
        before = time.monotonic()
        self.assertEqual(self.send("-p", QUICK, input=b"x")[0], 0)
        self.assertGreaterEqual(time.monotonic() - before, 1)

    def test_gives_up_by_its_policy(self):
        self.hub.faults = [503] * 4
        code, out, err = self.send("-p", QUICK, "--id", "a", input=b"x")
        self.assertEqual((code, out), (1, ""))
        self.assertRegex(err, r"^stagger send: gave up after 4 attempts in .*: "
                              r"503 \(attempts\): Title 503: as told\n"
                              r"stagger send: to go on without duplicates, "
                              r"repeat it with --id a\n$")

    def test_gives_up_where_nobody_listens(self):
        code, out, err = self.send("-p", QUICK, hub="http://127.0.0.1:1")
        self.assertEqual((code, out), (1, ""))
        self.assertIn("gave up after 4 attempts", err)
        self.assertIn("refused (attempts): connect 127.0.0.1:1", err)

    def test_ends_an_attempt_that_takes_too_long(self):
        hung = threading.Event()
        self.addCleanup(hung.set)
        self.hub.faults = [lambda *_: hung.wait(60)]
        code, _, err = self.send("-p", QUICK + " attempt-timeout=50ms",
                                 input=b"x")
        self.assertEqual((code, err, len(self.hub.messages)), (0, "", 1))

    def test_shows_why_it_was_refused_and_what_to_do(self):
        token = self.write(b"secret\n", "token")
        for status, words, advice in (
                (413, [], "the same again is refused again: publish a smaller "
                          "message"),
                (401, [], "Name a file with a token of it: --token-file."),
                (401, ["--token-file", token],
                 "The hub does not know the token of --token-file. It knows "
                 "one that is new after a reload: SIGHUP, or stagger reload "),
                (403, ["--token-file", token],
                 "Another token may do this: its role is publish"),
                (400, [], "")):
            self.hub.requests.clear()
            self.hub.faults = [status]
            code, out, err = self.send("-p", QUICK, *words, input=b"x")
            self.assertEqual((code, out, len(self.hub.requests)), (1, "", 1))
            self.assertTrue(err.startswith(
                f"stagger send: refused with {status} Title {status}: as "
                f"told\n{'stagger send: ' if advice else ''}{advice}"), err)
            # Nothing was accepted: there is nothing to go on with.
            self.assertNotIn("--id", err)

    def test_says_how_to_go_on_behind_what_was_accepted(self):
        self.hub.faults = [None, 401]
        code, _, err = self.send("-p", QUICK, "--lines", "--in-flight=1",
                                 "--id", "a", input=b"x\n" * 501)
        self.assertEqual((code, len(self.hub.messages)), (1, 500))
        self.assertIn("then repeat it with --id a: what was accepted is not "
                      "published again\n", err)

    def test_names_the_headers_that_must_be_kept(self):
        self.send("-H", "Event-Type: x", "-H", "ce-id: 7", input=b"x")
        self.send(input=b"x")
        found = [each[1].get("Stagger-Keep") for each in self.hub.requests]
        self.assertEqual(found, ["Event-Type, ce-id", None])

    def test_refuses_headers_that_no_hub_keeps(self):
        for header, words in (
                ("content-type: x", "say --type"), ("Stagger-Key: x", "say --key"),
                ("Idempotency-Key: x", "say --id"),
                ("Authorization: Bearer x", "name a file with the token: "
                                            "--token-file"),
                ("Cookie: x", "no hub keeps this header: it belongs to the "
                              "connection, to the sender or to the hub")):
            self.assertEqual(
                self.send("-H", header, input=b"x"),
                (2, "", f"stagger send: --header={header.split(':')[0]}: "
                        f"{words}\n"))
        self.assertEqual(self.hub.requests, [])

    def test_notices_that_this_is_no_hub(self):
        self.hub.faults = [lambda handler, _: handler.answer(200, "hello")]
        code, out, err = self.send(input=b"x")
        self.assertEqual((code, out), (1, ""))
        self.assertIn("is this a hub?", err)

    def test_shows_no_control_characters(self):
        self.hub.faults = [lambda handler, _: handler.answer(
            400, {"detail": "\x1b[31mred\x07\u20ac"})]
        _, _, err = self.send(input=b"x")
        self.assertNotIn("\x1b", err)
        self.assertNotIn("\x07", err)

    # -- lines

    def test_publishes_each_line(self):
        code, out, err = self.send("--lines", input=b"one\r\ntwo\n\nthree")
        self.assertEqual((code, out, err), (0, (
            "3 messages accepted, 00c0ffee00c0ffee-1 .. "
            "00c0ffee00c0ffee-3\n"), ""))
        self.assertEqual(self.hub.bodies(), ["one", "two", "three"])
        path, headers, _ = self.hub.requests[0]
        self.assertEqual((path, headers["Content-Type"]),
                         ("/v1/messages/batch", "application/x-ndjson"))

    def test_publishes_lines_of_any_bytes(self):
        lines = [b'"\\/\x01\x1f\t\x7f', "ä€😀".encode(), b"\xff\x00x",
                 b"\xed\xa0\x80", b" ", b"x" * 3000000]
        self.send("--lines", self.write(b"\n".join(lines)))
        found = [base64.b64decode(m["body_base64"]) if "body_base64" in m
                 else m["body"].encode() for m in self.hub.messages]
        self.assertEqual(sorted(found), sorted(lines))

    def test_sends_the_same_fields_with_each_line(self):
        self.send("--lines", "--key", 'k"', "--type", "text/csv", "-H",
                  "X-One: 1", "-H", "X-Two: 2", "--id", "run",
                  input=b"a\nb\n")
        self.assertEqual(self.hub.messages[1], {
            "idempotency_key": "run-2", "body": "b", "key": 'k"',
            "content_type": "text/csv",
            "headers": {"X-One": "1", "X-Two": "2"}})

    def test_sends_many_in_batches(self):
        lines = [f"line {i}" for i in range(12345)]
        code, out, _ = self.send(
            "--lines", self.write("\n".join(lines).encode()))
        self.assertEqual(code, 0)
        self.assertTrue(out.startswith("12345 messages accepted, "))
        self.assertEqual(sorted(self.hub.bodies()), sorted(lines))
        self.assertEqual(len(self.hub.requests), 25)

    def test_keeps_batches_below_a_mebibyte(self):
        self.send("--lines", self.write(b"\n".join([b"x" * 300000] * 7)))
        self.assertEqual(len(self.hub.messages), 7)
        for _, _, body in self.hub.requests:
            self.assertLess(len(body), 1 << 20)
        self.assertEqual(len(self.hub.requests), 3)

    def test_keeps_the_order_one_at_a_time(self):
        lines = [str(i) for i in range(3000)]
        for options in (["--in-flight", "1"], ["--key", "k"]):
            self.hub.messages.clear()
            self.hub.faults = [503, None, 503]
            self.send("--lines", "-p", QUICK, *options,
                      input="\n".join(lines).encode())
            self.assertEqual(self.hub.bodies(), lines)

    def test_names_the_first_and_the_last_whatever_comes_first(self):
        first = threading.Event()

        def wait(handler, body):
            first.wait(60)
            with handler.server.lock:
                handler.take_batch(body)

        def release(handler, body):
            with handler.server.lock:
                handler.take_batch(body)
            first.set()

        self.hub.faults = [wait, release]
        _, out, _ = self.send("--lines", "--in-flight", "2", "--id", "r",
                              input=b"x\n" * 1000)
        keys = self.hub.keys
        self.assertEqual(out, f"1000 messages accepted, {keys['r-1']} .. "
                              f"{keys['r-1000']}\n")

    def test_never_doubles_a_line(self):
        lines = [str(i) for i in range(5000)]
        self.hub.faults = [503, lose, None, lose, 500, 429, lose]
        code, out, err = self.send("--lines", "-p", QUICK,
                                   input="\n".join(lines).encode())
        self.assertEqual((code, err), (0, ""))
        self.assertEqual(sorted(self.hub.bodies()), sorted(lines))

    def test_names_the_line_that_was_refused(self):
        self.hub.refuse = lambda m: m["body"] == "bad" and "line: bad"
        text = b"x\n" * 600 + b"\n\nbad\n" + b"x\n" * 10000
        code, out, err = self.send("--lines", "--in-flight", "1", "--id", "r",
                                   input=text)
        self.assertEqual(code, 1)
        self.assertTrue(out.startswith("500 messages accepted, "), out)
        self.assertTrue(err.startswith("stagger send: line 603: refused with "
                                       "400 Title 400: line: bad\n"), err)
        # The command stops at the refused line; a repeated one goes on there.
        self.assertEqual(len(self.hub.requests), 2)
        self.hub.refuse = None
        code, out, _ = self.send("--lines", "--id", "r", input=text)
        self.assertEqual((code, len(self.hub.messages)), (0, 10601))

    def test_names_the_lines_that_it_gave_up(self):
        self.hub.faults = [None] + [503] * 4
        code, out, err = self.send("--lines", "--in-flight", "1", "-p", QUICK,
                                   input=b"x\n" * 1000)
        self.assertEqual(code, 1)
        self.assertRegex(err, r"^stagger send: lines 501 to 1000: gave up "
                              r"after 4 attempts in .*: 503 \(attempts\): ")

    def test_says_that_it_waits_for_the_hub_and_goes_on(self):
        self.hub.faults = [None] + [503] * 9
        code, out, err = self.send(
            "--lines", "--in-flight=1", "-p",
            "fixed base=1ms attempts=unlimited deadline=none budget=none",
            input=b"x\n" * 1000)
        self.assertEqual((code, err), (
            0, "stagger send: waiting for the hub: 503\n"))
        self.assertEqual(len(self.hub.messages), 1000)

    def test_does_not_wait_for_a_batch_to_fill(self):
        p = self.start("--lines", stdin=subprocess.PIPE,
                       stdout=subprocess.PIPE, text=True)
        for count in range(1, 4):
            p.stdin.write(f"{count}\n")
            p.stdin.flush()
            while len(self.hub.messages) < count:
                self.assertIsNone(p.poll())
                time.sleep(0.001)
        out, _ = p.communicate(timeout=60)
        self.assertEqual(self.hub.bodies(), ["1", "2", "3"])
        self.assertEqual(out, "3 messages accepted, 00c0ffee00c0ffee-1 .. "
                              "00c0ffee00c0ffee-3\n")

    def test_sleeps_while_a_pipe_that_does_not_block_has_nothing(self):
        reading, writing = os.pipe()
        os.set_blocking(reading, False)
        p = self.start(stdin=reading, stdout=subprocess.DEVNULL)
        os.close(reading)
        with os.fdopen(writing, "w") as pipe:
            time.sleep(0.4)  # of which it uses none
            pipe.write("late")
        _, code, used = os.wait4(p.pid, 0)
        p.returncode = os.waitstatus_to_exitcode(code)
        self.assertEqual((p.returncode, self.hub.requests[0][2]), (0, b"late"))
        self.assertLess(used.ru_utime + used.ru_stime, 0.2)

    def test_publishes_nothing_of_nothing(self):
        for file in (self.write(b""), self.write(b"\n\r\n"), "/dev/null"):
            self.assertEqual(self.send("--lines", file),
                             (0, "0 messages accepted\n", ""))
        self.assertEqual(self.hub.requests, [])

    def test_ends_in_order_by_a_signal(self):
        for how in (signal.SIGINT, signal.SIGTERM):
            self.hub.messages.clear()
            self.hub.faults = [None] + [503] * 10
            p = self.start("--lines", "--id", "r", "-p",
                           "fixed base=60s attempts=9", stdin=subprocess.PIPE,
                           stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                           text=True)
            begun = len(self.hub.requests)
            for count in (1, 2):
                p.stdin.write(f"{how} {count}\n")
                p.stdin.flush()
                while len(self.hub.requests) < begun + count:
                    time.sleep(0.001)
            while not self.hub.messages:
                time.sleep(0.001)
            p.send_signal(how)
            out, err = p.communicate(timeout=60)
            self.assertEqual(p.returncode, 128 + how)
            self.assertIn("line 2: gave up after 1 attempt", err)
            self.assertIn("repeat it with --id r\n", err)
            self.hub.keys.clear()

    # -- ndjson

    def test_publishes_messages_as_they_are_written(self):
        lines = [b'{"json": {"n": 1.50}}', b'  {"body": "b", "key": "k"} ',
                 b'{ "idempotency_key" : "own", "body": "{"}', b""]
        code, out, err = self.send("--ndjson", "--id", "run",
                                   input=b"\r\n".join(lines))
        self.assertEqual((code, err), (0, ""))
        self.assertEqual(self.hub.messages, [
            {"idempotency_key": "run-1", "json": {"n": 1.5}},
            {"idempotency_key": "run-2", "body": "b", "key": "k"},
            {"idempotency_key": "own", "body": "{"}])
        self.assertIn(b'"json": {"n": 1.50}}', self.hub.requests[0][2])

    def test_names_a_line_that_is_no_message(self):
        for line in (b"[]", b"{", b'{"a":1}}', b'{"a" 1}', b'"x"'):
            code, out, err = self.send("--ndjson", "--id", "r",
                                       input=b'{"body":"x"}\n' + line + b"\n")
            self.assertEqual(code, 1)
            self.assertTrue(err.startswith("stagger send: line 2: "), err)

    # -- words

    def test_shows_its_progress_on_a_terminal(self):
        ours, theirs = pty.openpty()
        file = self.write(b"x\n" * 2000)
        gate = threading.Event()
        self.addCleanup(gate.set)

        def wait(handler, body):
            gate.wait(60)
            with handler.server.lock:
                handler.take_batch(body)

        self.hub.faults = [None, wait]
        p = self.start("--lines", "--in-flight", "1", file, stderr=theirs,
                       stdout=subprocess.PIPE)
        os.close(theirs)
        shown = b""
        while not re.search(rb" 500 messages, .*left\x1b\[K", shown):
            shown += os.read(ours, 65536)
        self.assertRegex(shown.decode(), r"\r\[######                  \]  "
                                         r"25 %  500 messages, \d+ a second, "
                                         r"\d\d:\d\d left\x1b\[K")
        gate.set()
        p.communicate(timeout=60)
        while not shown.endswith(b"\r\n"):
            shown += os.read(ours, 65536)
        os.close(ours)
        self.assertIn(b"100 %  2000 messages, ", shown)

    def test_is_quiet_when_it_is_told(self):
        for form in ([], ["--lines"]):
            self.assertEqual(self.send("-q", *form, input=b"x"), (0, "", ""))

    def test_has_a_help_that_fits_the_terminal(self):
        for words in (["--help"], ["-h"]):
            code, out, err = self.send(*words)
            self.assertEqual((code, err), (0, ""))
            self.assertTrue(out.startswith("usage: stagger send"))
            self.assertLessEqual(max(map(len, out.splitlines())), 79)

    def test_names_what_is_wrong(self):
        cases = [
            (["-p", "base=1s cap=1ms"],
             "policy:1:9: cap=1ms is below base=1s\n"
             "  base=1s cap=1ms\n          ^"),
            (["--header", "x"], "--header=x: expected 'Name: value'"),
            (["--header", "x y: z"],
             "--header=x y: z: expected 'Name: value', as HTTP has them"),
            (["--key", "a\nb"], "--key=a?b: expected 1 to 256 bytes that may "
                                "stand in a header"),
            (["--topic", "a/b"], "--topic=a/b: expected 1 to 249 of A-Z a-z 0-9 "
                                 ". _ -"),
            (["--id", "a\nb"], "--id=a?b: expected 1 to 200 bytes that may "
                               "stand in a header"),
            (["--in-flight", "0"], "--in-flight=0: expected 1 to 64"),
            (["--lines", "--ndjson"],
             "--lines and --ndjson: expected one of them"),
            (["--ndjson", "--key", "k"], "--key, --type, --header, --not-before and --expires: with "
                                         "--ndjson they stand in the lines"),
            (["/nowhere"], "/nowhere: No such file or directory"),
            (["/"], "/: Is a directory"),
            (["--token-file", "/nowhere"],
             "/nowhere: No such file or directory"),
            (["--token-file", "/dev/null"],
             "--token-file=/dev/null: expected a token in its first line"),
        ]
        for words, text in cases:
            code, _, err = self.send(*words)
            self.assertEqual((code, err), (2, f"stagger send: {text}\n"))
        for url in ("ftp://x", "nowhere", "http://a:b@127.0.0.1",
                    "http://127.0.0.1:1/?x"):
            code, _, err = self.send("--hub", url)
            self.assertEqual(code, 2, url)
            self.assertTrue(err.startswith("stagger send: --hub: "), err)
        for words, text in (
                (["--nonsense"], "unrecognized option '--nonsense'"),
                (["a", "b"], "unexpected argument b")):
            code, _, err = self.send(*words)
            self.assertEqual((code, err), (2, f"stagger send: {text}\n"
                                              "See stagger send --help.\n"))
        self.assertEqual(self.hub.requests, [])


if __name__ == "__main__":
    unittest.main()
