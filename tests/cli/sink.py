"""stagger sink, as its users see it: the real binary and real sockets."""
import email.utils
import hashlib
import http.client
import json
import os
import pty
import signal
import socket
import ssl
import subprocess
import tempfile
import time
import unittest

STAGGER = os.environ["STAGGER"]


def run(*arguments):
    return subprocess.run([STAGGER, "sink", *arguments], capture_output=True,
                          text=True, timeout=60)


class Sink(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.log = os.path.join(folder.name, "log")

    def start(self, *arguments, **more):
        """Starts one on any port, and waits until it listens."""
        sink = subprocess.Popen(
            [STAGGER, "sink", "--listen", "0", *arguments],
            stdout=subprocess.PIPE, text=True, **more)
        self.addCleanup(self.stop, sink)
        line = sink.stdout.readline()
        self.assertRegex(line, r"^stagger sink: listening on "
                               r"https?://127\.0\.0\.1:\d+\n$")
        self.url = line.split()[-1]
        self.port = int(line.rsplit(":", 1)[1])
        return sink

    def stop(self, sink, how=signal.SIGTERM):
        """Ends it: its exit code and its summary, as a dictionary."""
        if sink.stdout.closed:
            return None
        if sink.poll() is None:
            sink.send_signal(how)
        text, _ = sink.communicate(timeout=60)
        rows = [line.rsplit(None, 1) for line in text.splitlines()]
        self.text = text
        return sink.returncode, {" ".join(name.split()): value
                                 for name, value in rows}

    def connect(self):
        s = socket.create_connection(("127.0.0.1", self.port), timeout=60)
        self.addCleanup(s.close)
        return s

    def send(self, body=b"", id=None, path="/", headers=None, method="POST"):
        """One request on a connection of its own: the answer."""
        c = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        self.addCleanup(c.close)
        headers = dict(headers or {})
        if id is not None:
            headers["Stagger-Message"] = id
        c.request(method, path, body, headers)
        answer = c.getresponse()
        answer.read()
        return answer

    def statuses(self, count, **request):
        return [self.send(**request).status for _ in range(count)]

    def lines(self):
        with open(self.log) as log:
            return [json.loads(line) for line in log]

    # -- replies

    def test_answers_200(self):
        sink = self.start()
        answer = self.send(b"x")
        self.assertEqual((answer.status, answer.reason, answer.version),
                         (200, "OK", 11))
        self.assertEqual(self.send(method="GET").status, 200)
        code, sums = self.stop(sink)
        self.assertEqual(code, 0)
        self.assertEqual(sums["receipts"], "2")

    def test_answers_each_attempt_of_a_message_as_it_is_told(self):
        self.start("--reply", "503x2,404,200")
        self.assertEqual(self.statuses(3, id="a"), [503, 503, 404])
        self.assertEqual(self.statuses(5, id="b"), [503, 503, 404, 200, 200])
        self.assertEqual(self.statuses(2, id="a"), [200, 200])

    def test_tells_messages_by_id_or_idempotency_key_and_by_path(self):
        self.start("--reply", "503,200")
        self.assertEqual(self.statuses(2, id="a", path="/1"), [503, 200])
        self.assertEqual(self.statuses(2, id="a", path="/2"), [503, 200])
        key = {"idempotency-key": "k"}
        self.assertEqual(self.statuses(2, headers=key), [503, 200])
        self.assertEqual(self.statuses(2, headers=key, id="m"), [503, 200])
        # The id wins, wherever it stands.
        self.assertEqual([self.send(headers=headers).status for headers in (
            {"Stagger-Message": "n", "Idempotency-Key": "1"},
            {"Stagger-Message": "n", "Idempotency-Key": "2"},
            {"Idempotency-Key": "3", "Stagger-Message": "n"})],
            [503, 200, 200])

    def test_counts_requests_without_an_id_as_they_come(self):
        sink = self.start("--reply", "500,502,200")
        self.assertEqual(self.statuses(4), [500, 502, 200, 200])
        _, sums = self.stop(sink)
        self.assertEqual(sums["without an id"], "4")

    def test_resets_and_goes_on(self):
        self.start("--reply", "reset,200")
        with self.assertRaises(ConnectionResetError):
            self.send(b"x" * 100000, id="a")
        self.assertEqual(self.send(id="a").status, 200)

    def test_hangs(self):
        for options in (["--hang"], ["--reply", "hang"]):
            open(self.log, "w").close()
            sink = self.start("--log", self.log, *options)
            s = self.connect()
            s.sendall(b"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 1\r\n\r\nx")
            until = time.monotonic() + 60
            while not self.lines():
                self.assertLess(time.monotonic(), until)
            s.settimeout(0.05)
            with self.assertRaises(socket.timeout):
                s.recv(1)
            s.close()
            _, sums = self.stop(sink)
            self.assertEqual((sums["receipts"], sums["hang"]), ("1", "1"))

    def test_resets_whatever_comes(self):
        sink = self.start("--reset")
        for _ in range(3):
            with self.assertRaises(ConnectionResetError):
                self.send()
        _, sums = self.stop(sink)
        self.assertEqual((sums["receipts"], sums["reset"]), ("3", "3"))

    def test_draws_the_same_lots_from_the_same_seed(self):
        drawn = []
        for seed in ("7", "7", "8"):
            sink = self.start("--random", "200:50,503:30,404:20", "--seed",
                              seed)
            drawn.append(self.statuses(60))
            self.stop(sink)
        self.assertEqual(drawn[0], drawn[1])
        self.assertNotEqual(drawn[0], drawn[2])
        for status in (200, 503, 404):
            self.assertIn(status, drawn[0])

    def test_never_draws_what_has_no_weight(self):
        self.start("--random", "500:0,201:1,503:0")
        self.assertEqual(self.statuses(20), [201] * 20)

    def test_has_no_length_where_there_can_be_no_body(self):
        self.start("--reply", "204,304,277")
        for status in (204, 304):
            answer = self.send()
            self.assertEqual(answer.status, status)
            self.assertIsNone(answer.getheader("Content-Length"))
        self.assertEqual(self.send().reason, "Unassigned")

    # -- Retry-After

    def test_sends_retry_after_with_429_and_503_only(self):
        self.start("--reply", "429,503,500,200", "--retry-after", "3")
        self.assertEqual(
            [self.send().getheader("Retry-After") for _ in range(4)],
            ["3", "3", None, None])

    def test_sends_a_date_that_lies_ahead(self):
        self.start("--reply", "503", "--retry-after", "date:5")
        before = time.time()
        date = self.send().getheader("Retry-After")
        at = email.utils.parsedate_to_datetime(date).timestamp()
        self.assertEqual(email.utils.formatdate(at, usegmt=True), date)
        self.assertGreaterEqual(at, before + 5)
        self.assertLessEqual(at, time.time() + 6)

    def test_sends_a_text_as_it_is(self):
        text = "Sunday, 06-Nov-94 08:49:37 GMT"
        self.start("--reply", "503", "--retry-after", text)
        self.assertEqual(self.send().getheader("Retry-After"), text)

    # -- time

    def test_waits_before_it_answers(self):
        self.start("--delay", "30ms")
        before = time.monotonic()
        self.send()
        self.assertGreaterEqual(time.monotonic() - before, 0.03)

    def test_delays_many_at_once(self):
        sink = self.start("--delay", "50ms-100ms")
        sockets = [self.connect() for _ in range(100)]
        before = time.monotonic()
        for s in sockets:
            s.sendall(b"GET / HTTP/1.1\r\nHost: h\r\n\r\n")
        for s in sockets:
            self.assertIn(b"200 OK", s.recv(1000))
        # One after the other they would take at least 100 times 50 ms.
        self.assertLess(time.monotonic() - before, 5)
        self.assertEqual(self.stop(sink)[1]["receipts"], "100")

    # -- HTTP

    def exchange(self, *pieces):
        """Sends pieces and its end: all that comes back."""
        s = self.connect()
        for piece in pieces:
            s.sendall(piece)
        s.shutdown(socket.SHUT_WR)
        return self.receive(s)

    def receive(self, s):
        received = b""
        while True:
            piece = s.recv(65536)
            if not piece:
                return received
            received += piece

    def test_answers_pipelined_requests_in_their_order(self):
        requests = b"".join(
            b"POST /%d HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\n\r\nabc" % i
            for i in range(1000))
        for delay in ([], ["--delay", "1us"]):
            self.start("--reply", "201x500,202", "--log", self.log, *delay)
            received = self.exchange(requests)
            self.assertEqual(received.count(b"HTTP/1.1 201 "), 500)
            self.assertEqual(received.count(b"HTTP/1.1 202 "), 500)
            self.assertLess(received.rindex(b" 201 "),
                            received.index(b" 202 "))
            self.assertEqual([line["path"] for line in self.lines()],
                             [f"/{i}" for i in range(1000)])
            os.remove(self.log)

    def test_reads_a_request_in_any_pieces(self):
        self.start("--log", self.log)
        request = (b"POST /p/%C3%A9 HTTP/1.1\r\nHost: h\r\nStagger-Message: "
                   b"one-two\r\nStagger-Key: k\r\n"
                   b"Content-Length: 5\r\n\r\nhello")
        s = self.connect()
        s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for byte in request:
            s.sendall(bytes([byte]))
        self.assertIn(b"200 OK", s.recv(1000))
        line, = self.lines()
        self.assertEqual((line["path"], line["id"], line["key"], line["size"]),
                         ("/p/%C3%A9", "one-two", "k", 5))

    def test_reads_chunks(self):
        self.start("--log", self.log)
        self.exchange(b"POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n"
                      b"3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n")
        line, = self.lines()
        self.assertEqual((line["size"], line["sha256"]),
                         (5, hashlib.sha256(b"abcde").hexdigest()))

    def test_reads_large_bodies_without_keeping_them(self):
        sink = self.start("--log", self.log)
        body = os.urandom(1 << 20) * 64
        self.assertEqual(self.send(body).status, 200)
        line, = self.lines()
        self.assertEqual((line["size"], line["sha256"]),
                         (len(body), hashlib.sha256(body).hexdigest()))
        with open(f"/proc/{sink.pid}/status") as status:
            held = next(line for line in status if line.startswith("VmHWM"))
        self.assertLess(int(held.split()[1]), 48 * 1024)

    def test_encourages_a_client_that_asks(self):
        self.start()
        s = self.connect()
        s.sendall(b"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 1\r\n"
                  b"Expect: 100-continue\r\n\r\n")
        self.assertEqual(s.recv(1000), b"HTTP/1.1 100 Continue\r\n\r\n")
        s.sendall(b"x")
        self.assertTrue(s.recv(1000).startswith(b"HTTP/1.1 200 OK\r\n"))

    def test_closes_behind_each_answer(self):
        self.start("--close")
        s = self.connect()
        s.sendall(b"GET / HTTP/1.1\r\nHost: h\r\n\r\n"
                  b"GET / HTTP/1.1\r\nHost: h\r\n\r\n")
        received = self.receive(s)
        self.assertEqual(received.count(b"HTTP/1.1 200"), 1)
        self.assertIn(b"\r\nConnection: close\r\n", received)

    def test_closes_where_the_client_wants_it(self):
        self.start()
        for request in (b"GET / HTTP/1.0\r\n\r\n",
                        b"GET / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n"):
            s = self.connect()
            s.sendall(request)
            self.assertIn(b"\r\nConnection: close\r\n", self.receive(s))

    def test_keeps_a_connection(self):
        self.start()
        c = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        self.addCleanup(c.close)
        c.connect()
        port = c.sock.getsockname()
        for _ in range(10):
            c.request("POST", "/", b"x")
            c.getresponse().read()
        self.assertEqual(c.sock.getsockname(), port)

    def test_refuses_what_is_no_http(self):
        sink = self.start()
        s = self.connect()
        s.sendall(b"\x16\x03\x01 hello\r\n\r\n")
        head, _, body = self.receive(s).partition(b"\r\n\r\n")
        self.assertTrue(head.startswith(b"HTTP/1.1 400 "), head)
        self.assertIn(b"Content-Type: application/problem+json", head)
        self.assertIn("request line", json.loads(body)["detail"])
        self.assertEqual(self.send().status, 200)
        self.assertEqual(self.stop(sink)[1]["broken off"], "1")

    def test_does_not_count_a_request_that_breaks_off(self):
        sink = self.start()
        self.exchange(b"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 9\r\n\r\nabc")
        _, sums = self.stop(sink)
        self.assertEqual((sums["receipts"], sums["broken off"]), ("0", "1"))

    def test_outlives_a_client_that_does_not_read(self):
        sink = self.start()
        requests = b"GET / HTTP/1.1\r\nHost: h\r\n\r\n" * 1000
        s = self.connect()
        s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        s.settimeout(0.2)
        sent = 0
        try:
            for _ in range(2000):
                s.sendall(requests)
                sent += 1
        except socket.timeout:
            pass
        self.assertLess(sent, 2000)
        self.assertEqual(self.send().status, 200)
        s.close()
        self.assertEqual(self.send().status, 200)
        self.assertEqual(self.stop(sink)[0], 0)

    # -- what it counts and says

    def test_logs_each_receipt_before_it_answers(self):
        self.start("--reply", "503,reset,200", "--log", self.log)
        before = time.time()
        for attempt, status in enumerate((503, "reset", 200), 1):
            try:
                self.send(b"abc", id='q"\xe9', path="/t/1",
                          headers={"Stagger-Key": "k"})
            except ConnectionResetError:
                pass
            line = self.lines()[-1]
            self.assertLessEqual(before - 0.001, line.pop("time"))
            self.assertEqual(line, {
                "id": 'q"\xe9', "attempt": attempt, "key": "k",
                "method": "POST", "path": "/t/1", "status": status, "size": 3,
                "sha256": hashlib.sha256(b"abc").hexdigest()})
        self.assertEqual(len(self.lines()), 3)

    def test_appends_to_its_log(self):
        for count in (1, 2):
            sink = self.start("--log", self.log)
            self.send(id=None)
            self.stop(sink)
            self.assertEqual(len(self.lines()), count)
        self.assertIsNone(self.lines()[0]["id"])

    def test_cuts_long_texts_in_its_log_and_tells_them_apart(self):
        self.start("--reply", "503,200", "--log", self.log)
        self.assertEqual(self.statuses(2, id="i" * 300), [503, 200])
        self.assertEqual(self.statuses(2, id="i" * 301), [503, 200])
        self.assertEqual(self.lines()[0]["id"], "i" * 255)

    def test_sums_up(self):
        for how in (signal.SIGINT, signal.SIGTERM):
            sink = self.start("--reply", "503,200")
            self.statuses(5, id="a", body=b"123")
            self.statuses(1, id="b")
            code, sums = self.stop(sink, how)
            self.assertEqual(code, 0)
            self.assertEqual(sums, {
                "receipts": "6", "200": "4", "503": "2", "messages": "2",
                "duplicates": "3", "bytes": "15"})

    def test_ends_after_its_count(self):
        sink = self.start("--count", "3", "--delay", "1ms")
        s = self.connect()
        s.sendall(b"GET / HTTP/1.1\r\nHost: h\r\n\r\n" * 4)
        self.assertEqual(self.receive(s).count(b"HTTP/1.1 200"), 3)
        self.assertEqual(sink.wait(60), 0)
        self.assertEqual(self.stop(sink)[1]["receipts"], "3")

    def test_counts_on_a_terminal(self):
        ours, theirs = pty.openpty()
        sink = self.start("--count", "2", stderr=theirs)
        os.close(theirs)
        self.statuses(2)
        sink.wait(60)
        shown = os.read(ours, 65536).decode()
        os.close(ours)
        self.assertTrue(shown.startswith("\r0 receipts, 0 a second\x1b[K"))
        self.assertRegex(shown, r"\r2 receipts, [\d,]+ a second, 200: 2\x1b\[K")

    def test_is_quiet_when_it_is_told(self):
        ours, theirs = pty.openpty()
        sink = self.start("--quiet", "--count", "1", stderr=theirs)
        os.close(theirs)
        self.send()
        sink.wait(60)
        with self.assertRaises(OSError): # nothing, and no terminal any more
            os.read(ours, 100)
        os.close(ours)

    def test_listens_on_ipv6(self):
        try:
            with socket.socket(socket.AF_INET6) as s:
                s.bind(("::1", 0))
        except OSError:
            self.skipTest("no ::1 here")
        sink = subprocess.Popen(
            [STAGGER, "sink", "--listen", "[::1]:0", "--count", "1"],
            stdout=subprocess.PIPE, text=True)
        self.addCleanup(self.stop, sink)
        line = sink.stdout.readline()
        self.assertRegex(line, r"on http://\[::1\]:\d+\n$")
        c = http.client.HTTPConnection("::1", int(line.rsplit(":", 1)[1]))
        c.request("GET", "/")
        self.assertEqual(c.getresponse().status, 200)
        c.close()

    def test_listens_on_a_path(self):
        path = os.path.join(os.path.dirname(self.log), "socket")
        sink = subprocess.Popen(
            [STAGGER, "sink", "--listen", f"unix:{path}", "--count", "1"],
            stdout=subprocess.PIPE, text=True)
        self.addCleanup(self.stop, sink)
        self.assertEqual(sink.stdout.readline(),
                         f"stagger sink: listening on unix:{path}\n")
        with socket.socket(socket.AF_UNIX) as s:
            s.settimeout(60)
            s.connect(path)
            s.sendall(b"GET / HTTP/1.1\r\nHost: h\r\n\r\n")
            self.assertIn(b"200 OK", s.recv(1000))
        self.assertEqual(sink.wait(60), 0)
        self.assertFalse(os.path.exists(path))

    def certificate(self):
        """Of 127.0.0.1, by itself, and its key."""
        folder = os.path.dirname(self.log)
        paths = [os.path.join(folder, name) for name in ("crt", "key")]
        subprocess.run(
            ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt",
             "ec_paramgen_curve:P-256", "-nodes", "-subj", "/CN=sink",
             "-days", "2", "-addext", "subjectAltName=IP:127.0.0.1",
             "-keyout", paths[1], "-out", paths[0]], check=True,
            capture_output=True)
        os.chmod(paths[1], 0o600)
        return paths

    def test_speaks_https(self):
        certificate, key = self.certificate()
        sink = self.start("--tls-cert", certificate, "--tls-key", key,
                          "--reply", "503,200", "--log", self.log)
        self.assertTrue(self.url.startswith("https://"), self.url)
        trust = ssl.create_default_context(cafile=certificate)
        body = os.urandom(300000)
        c = http.client.HTTPSConnection("127.0.0.1", self.port, timeout=60,
                                        context=trust)
        self.addCleanup(c.close)
        statuses = []
        for _ in range(3): # on one connection
            c.request("POST", "/", body, {"Stagger-Message": "m"})
            answer = c.getresponse()
            answer.read()
            statuses.append(answer.status)
        self.assertEqual(statuses, [503, 200, 200])
        self.assertEqual(self.stop(sink)[1]["receipts"], "3")
        with open(self.log) as log:
            self.assertEqual(
                {json.loads(line)["sha256"] for line in log},
                {hashlib.sha256(body).hexdigest()})

    def test_names_the_option_whose_file_is_wrong(self):
        certificate, key = self.certificate()
        both = "--tls-cert and --tls-key need each other"
        for words, found in (
                (["--tls-cert", certificate], both),
                (["--tls-key", key], both),
                (["--tls-cert", "/nowhere", "--tls-key", key],
                 "--tls-cert /nowhere: "),
                (["--tls-cert", certificate, "--tls-key", "/nowhere"],
                 "--tls-key /nowhere: "),
                (["--tls-cert", certificate, "--tls-key", certificate],
                 f"--tls-key {certificate}: ")):
            if words[-1] == certificate:
                os.chmod(certificate, 0o600)
            r = run("--listen", "0", *words)
            self.assertEqual(r.returncode, 2, words)
            self.assertIn(found, r.stderr)
        os.chmod(key, 0o644)
        r = run("--listen", "0", "--tls-cert", certificate, "--tls-key", key)
        self.assertEqual(r.returncode, 2)
        self.assertIn(f"--tls-key {key}: others may use it (mode 0644)",
                      r.stderr)

    def test_forgets_a_connection_that_hangs_when_its_client_goes(self):
        sink = self.start("--hang")
        for _ in range(20):
            s = self.connect()
            s.sendall(b"GET / HTTP/1.1\r\nHost: h\r\n\r\n" * 2)
            s.close()
        until = time.monotonic() + 60
        while len(os.listdir(f"/proc/{sink.pid}/fd")) > 18:
            self.assertLess(time.monotonic(), until)
            time.sleep(0.01)

    # -- words

    def test_has_a_help_that_fits_the_terminal(self):
        for words in (["--help"], ["-h"]):
            r = run(*words)
            self.assertEqual((r.returncode, r.stderr), (0, ""))
            self.assertTrue(r.stdout.startswith("usage: stagger sink"))
            self.assertLessEqual(max(map(len, r.stdout.splitlines())), 79)

    def test_names_what_is_wrong(self):
        deed = "expected a status from 200 to 599, reset or hang"
        cases = [
            (["--reply", ""], f"--reply=: {deed}"),
            (["--reply", "199"], f"--reply=199: {deed}"),
            (["--reply", "600"], f"--reply=600: {deed}"),
            (["--reply", "200,"],
             "--reply=200,: nothing stands behind the last comma"),
            (["--reply", "503x0"], "--reply=503x0: expected a count after "
                                   "the x, such as 503x2,200"),
            (["--reply", "503-2"], "--reply=503-2: expected items such as "
                                   "503x2, with commas between them"),
            (["--random", "200"], "--random=200: expected a weight after "
                                  "each, such as 200:95,503:5"),
            (["--random", "200:0"], "--random=200:0: all the weights are 0"),
            (["--hang", "--reset"], "--reset=reset: --reply, --random, --hang "
                                    "and --reset exclude each other"),
            (["--delay", "soon"], "--delay=soon: expected a time, such as "
                                  "10ms, or a range, such as 5ms-50ms"),
            (["--delay", "9ms-5ms"], "--delay=9ms-5ms: expected a time, such "
                                     "as 10ms, or a range, such as 5ms-50ms"),
            (["--retry-after", "a\nb"],
             "--retry-after=a?b: expected seconds, date:SECONDS, or an HTTP "
             "date"),
            (["--retry-after", "date:x"],
             "--retry-after=date:x: expected seconds after date:, such as date:3"),
            (["--count", "0"], "--count=0: expected 1 to 4294967295"),
            (["--listen", "nowhere"],
             "--listen=nowhere: expected a port, or ADDRESS:PORT with a numeric "
             "address, like 127.0.0.1:9000 or [::1]:9000"),
            (["more"], "unexpected argument more\nSee stagger sink --help."),
        ]
        for words, text in cases:
            r = run(*words)
            self.assertEqual(r.stderr, f"stagger sink: {text}\n", words)
            self.assertEqual(r.returncode, 2, words)
        for text in ("5ms-", "-5ms", "5ms-6ms-7ms", "5"):
            self.assertEqual(run("--delay=" + text).returncode, 2, text)
        for text in ("65536", ":9000", "127.0.0.1:", "127.0.0.1:9x", "-1"):
            self.assertEqual(run("--listen=" + text).returncode, 2, text)
        r = run("--nonsense")
        self.assertEqual(r.returncode, 2)
        self.assertIn("See stagger sink --help.", r.stderr)

    def test_says_why_it_cannot_start(self):
        self.start()
        r = run("--listen", str(self.port))
        self.assertEqual((r.returncode, r.stderr), (1, (
            f"stagger sink: --listen=127.0.0.1:{self.port}: another program "
            "listens there; stop it, or choose another port (ss -ltnp shows "
            "who it is; ss -lxp of a path)\n")))
        r = run("--listen", "0", "--log", "/nowhere/log")
        self.assertEqual((r.returncode, r.stderr), (1, (
            "stagger sink: --log=/nowhere/log: No such file or directory\n")))


if __name__ == "__main__":
    unittest.main()
