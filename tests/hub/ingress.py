#!/usr/bin/env python3
"""The ingress of stagger hub, as its producers see it: docs/ingress.md."""
import http.client
import json
import os
import resource
import signal
import socket
import subprocess
import time

import case
from leaf import PATIENCE, STAGGER

NDJSON = {"Content-Type": "application/x-ndjson"}


class Hub(case.Hub):
    """What counts is what comes in, and what is answered."""

    def ask(self, method, path, body=None, headers=()):
        """status, headers, the JSON or text of the body."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port,
                                                timeout=PATIENCE)
        connection.request(method, path, body, dict(headers))
        answer = connection.getresponse()
        text = answer.read().decode()
        connection.close()
        if "json" in answer.headers.get("Content-Type", ""):
            text = json.loads(text)
        return answer.status, answer.headers, text

    def post(self, body, **headers):
        return self.ask("POST", "/v1/messages", body,
                        {name.replace("_", "-"): value
                         for name, value in headers.items()})

    def batch(self, *lines):
        body = "".join(json.dumps(line) + "\n" for line in lines)
        return self.ask("POST", "/v1/messages/batch", body, NDJSON)


def new_token(path, role, name=""):
    made = subprocess.run(
        [STAGGER, "token", "new", path, "--role", role,
         *(["--name", name] if name else [])],
        stdout=subprocess.PIPE, text=True, check=True, timeout=PATIENCE)
    return made.stdout.strip()


class Ingress(case.Case):
    def hub(self, *options, **more):
        """A hub whose target nobody listens at."""
        hub = Hub(self.store, "--to", self.refused(), *options, **more)
        self.addCleanup(hub.end)
        return hub

    def refusal(self, *options):
        """What a hub that does not start says."""
        ended = subprocess.run(
            [STAGGER, "hub", "--to", "http://127.0.0.1:1/", "--store",
             os.path.join(self.folder, "other.db"), *options],
            stderr=subprocess.PIPE, text=True, timeout=PATIENCE)
        return ended.returncode, ended.stderr

    def problem(self, answer, status, *words):
        self.assertEqual(answer[0], status)
        self.assertEqual(answer[1]["Content-Type"], "application/problem+json")
        self.assertEqual(answer[2]["status"], status)
        self.assertEqual(answer[2]["type"], "about:blank")
        for word in words:
            self.assertIn(word, answer[2]["detail"])

    def test_answers_202_and_an_id(self):
        hub = self.hub()
        status, headers, answer = hub.post(b"\0\xff\r\n")
        self.assertEqual(status, 202)
        self.assertRegex(answer["id"], r"^[0-9a-f]{16}-\d+$")
        self.assertNotIn("Stagger-Repeat", headers)
        self.assertNotEqual(hub.post("hi")[2]["id"], hub.post("hi")[2]["id"])

    def test_answers_a_repeat_with_the_same_id_after_a_restart_too(self):
        hub = self.hub()
        first = hub.post("hi", Idempotency_Key="a")
        again = hub.post("hi", Idempotency_Key='"a"')
        self.assertEqual((again[0], again[2]), (202, first[2]))
        self.assertEqual(again[1]["Stagger-Repeat"], "true")
        hub.kill()
        hub = self.hub()
        again = hub.post("hi", Idempotency_Key="a")
        self.assertEqual((again[0], again[2]), (202, first[2]))

    def test_refuses_what_it_would_drop_where_it_is_asked(self):
        hub = self.hub()
        self.assertEqual(hub.post("x", Event_Type="a")[0], 202)
        self.assertEqual(
            hub.post("x", X_A="1", ce_id="7", traceparent="-",
                     Stagger_Keep="X-A, ce-id,traceparent")[0], 202)
        for names in ("Event-Type", "X-A, event-type", "Cookie"):
            self.problem(hub.post("x", Event_Type="a", Stagger_Keep=names),
                         400, f"header {names.split(', ')[-1]} is not kept: "
                              "the setting listen.headers names those that "
                              "are")
        self.problem(hub.post("x", X_A="1", Connection="x-a",
                              Stagger_Keep="X-A"), 400, "header X-A")
        self.problem(hub.batch({"body": "x", "headers": {"Event-Type": "a"}}),
                     400, "header Event-Type is not kept: the setting")

    def test_refuses_a_key_with_another_message(self):
        hub = self.hub()
        self.assertEqual(hub.post("hi", Idempotency_Key="a")[0], 202)
        self.problem(hub.post("ho", Idempotency_Key="a"), 409,
                     "another message")
        answer = hub.batch({"body": "new"},
                           {"body": "ho", "idempotency_key": "a"})
        self.problem(answer, 409, "line 2")
        self.assertEqual(answer[2]["line"], 2)

    def test_a_key_stands_for_all_of_the_message(self):
        """I10: headers and ordering key belong to it, in any order and case;
        traces and proxies do not."""
        hub = self.hub()

        def post(**headers):
            return hub.post("hi", Idempotency_Key="a", **headers)
        status, _, first = post(X_A="1", X_B="2", Stagger_Key="k",
                                X_Request_Id="r1", traceparent="-")
        self.assertEqual(status, 202)
        status, headers, again = post(x_b="2", X_a="1", Stagger_Key="k",
                                      X_Request_Id="r2", X_Forwarded_For="::1")
        self.assertEqual((status, again), (202, first))
        self.assertEqual(headers["Stagger-Repeat"], "true")
        for other in ({"X_A": "1", "X_B": "3", "Stagger_Key": "k"},
                      {"X_A": "1", "Stagger_Key": "k"},
                      {"X_A": "1", "X_B": "2", "Stagger_Key": "l"},
                      {"X_A": "1", "X_B": "2"}):
            self.problem(post(**other), 409, "another message")

    def test_takes_a_batch_whole_or_not_at_all(self):
        hub = self.hub()
        status, _, answer = hub.batch(
            {"body": "a", "key": "k"}, {"body_base64": "AP8="},
            {"json": {"n": 1.5}, "idempotency_key": "b"})
        self.assertEqual(status, 202)
        self.assertEqual(len(set(answer["ids"])), 3)
        wrong = hub.batch({"body": "c", "idempotency_key": "c"}, {"body": 1})
        self.problem(wrong, 400, "line 2", "is no string")
        self.assertEqual(wrong[2]["line"], 2)
        # Its first line was not kept: the key is free.
        self.assertNotIn("Stagger-Repeat",
                         hub.post("c", Idempotency_Key="c")[1])

    def test_says_what_is_wrong(self):
        hub = self.hub("--memory", "16M")
        self.problem(hub.ask("GET", "/v1"), 404, "/v1/messages")
        answer = hub.ask("GET", "/v1/messages")
        self.problem(answer, 405, "POST")
        self.assertEqual(answer[1]["Allow"], "POST")
        self.problem(hub.post(b"x" * (1 << 20)), 413, "the most is")
        self.problem(hub.ask("POST", "/v1/messages/batch", "{}"), 415,
                     "application/x-ndjson")
        self.problem(hub.post("hi", Origin="http://example.org"), 403,
                     "origin")
        self.problem(hub.post("hi", Host="example.org"), 403, "Host")

    def test_tells_its_health(self):
        hub = self.hub()
        self.assertEqual(hub.ask("GET", "/healthz")[::2], (200, "ok\n"))
        self.assertEqual(hub.ask("GET", "/readyz")[::2], (200, "ready\n"))

    def test_answers_those_who_close_their_half(self):
        hub = self.hub()
        request = (b"POST /v1/messages HTTP/1.1\r\nHost: localhost\r\n"
                   b"Content-Length: 2\r\n\r\nhi")
        for _ in range(5):
            sockets = [socket.create_connection(("127.0.0.1", hub.port),
                                                timeout=PATIENCE)
                       for _ in range(8)]
            for s in sockets:
                s.sendall(request)
                s.shutdown(socket.SHUT_WR)
            for s in sockets:
                with s, s.makefile("rb") as answer:
                    self.assertEqual(answer.read()[:12], b"HTTP/1.1 202")

    def test_listens_on_a_path(self):
        path = os.path.join(self.folder, "hub.sock")
        request = (b"POST /v1/messages HTTP/1.1\r\nHost: localhost\r\n"
                   b"Content-Length: 2\r\n\r\nhi")

        def ask():
            with socket.socket(socket.AF_UNIX) as s:
                s.settimeout(PATIENCE)
                s.connect(path)
                s.sendall(request)
                return s.recv(1 << 16)
        for ends in ("kill", "stop"):
            hub = self.hub(listen=f"unix:{path}")
            self.assertEqual(ask()[:12], b"HTTP/1.1 202")
            self.assertEqual(hub.events("ready")[0]["listen"],
                             f"unix:{path}")
            self.assertEqual(os.stat(path).st_mode & 0o022, 0)
            getattr(hub, ends)()
            self.assertEqual(os.path.exists(path), ends == "kill")
        # Another file of that name stays.
        hub = self.hub(listen=f"unix:{path}")
        os.unlink(path)
        self.put("hub.sock", "mine")
        self.assertEqual(hub.stop(), 0)
        refused = self.hub("--listen", f"unix:{path}", listen=None)
        self.assertEqual(refused.wait(), 2)
        self.assertIn(b"not a socket", b"".join(refused.noise))
        with open(path) as file:
            self.assertEqual(file.read(), "mine")

    def test_idle_connections_are_cheap(self):
        """2 KB each: 10,000 are 20 MB."""
        hub = self.hub()
        count = 900

        def connect(i):
            s = socket.socket()
            self.addCleanup(s.close)
            s.settimeout(PATIENCE)
            s.bind((f"127.0.1.{1 + i % 3}", 0))
            s.connect(("127.0.0.1", hub.port))
            s.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
            self.assertEqual(s.recv(1 << 16)[:12], b"HTTP/1.1 200")
        for i in range(100):
            connect(i)
        before = hub.resident()
        for i in range(count):
            connect(i)
        each = (hub.resident() - before) / count
        if not case.is_sanitized():
            self.assertLess(each, 2 << 10)
        case.note(self, f"an idle connection: {each:.0f} bytes")

    def test_makes_room_when_no_file_is_left(self):
        hub = self.hub()
        self.assertEqual(hub.ask("GET", "/healthz")[0], 200)
        highest = max(map(int, os.listdir(f"/proc/{hub.process.pid}/fd")))
        resource.prlimit(hub.process.pid, resource.RLIMIT_NOFILE,
                         (highest + 4, highest + 4))
        began_at = time.monotonic()
        for _ in range(30):
            idle = http.client.HTTPConnection("127.0.0.1", hub.port,
                                              timeout=PATIENCE)
            self.addCleanup(idle.close)
            idle.request("GET", "/healthz")
            self.assertEqual(idle.getresponse().read(), b"ok\n")
        self.assertLess(time.monotonic() - began_at, 20)
        self.assertTrue(hub.event("fd-limit")["has_evicted"])

    def test_ends_in_order_with_a_connection_open(self):
        hub = self.hub()
        connection = http.client.HTTPConnection("127.0.0.1", hub.port)
        connection.request("POST", "/v1/messages", "hi")
        self.assertEqual(connection.getresponse().read()[:6], b'{"id":')
        self.assertEqual(hub.stop(), 0)
        connection.close()

    def test_tells_that_a_port_is_in_use(self):
        hub = self.hub()
        code, words = self.refusal("--listen", f"127.0.0.1:{hub.port}")
        self.assertEqual(code, 4)
        self.assertIn("another program listens there", words)

    def test_wants_a_token_from_others(self):
        code, words = self.refusal("--listen", "0.0.0.0:0")
        self.assertEqual(code, 2)
        self.assertIn("it has no token file", words)

    def test_a_refused_start_leaves_no_store(self):
        new = os.path.join(self.folder, "new.db")
        with socket.socket() as other:
            other.bind(("127.0.0.1", 0))
            other.listen()
            taken = f"127.0.0.1:{other.getsockname()[1]}"
            before = sorted(os.listdir(self.folder))
            for store in (new, self.store):
                for words in (("--listen", taken),
                              ("--listen", "127.0.0.1:0", "--token-file",
                               "/nowhere")):
                    done = subprocess.run(
                        [STAGGER, "hub", "--store", store, "--to",
                         "http://127.0.0.1:1/", *words], timeout=PATIENCE,
                        stderr=subprocess.PIPE, text=True)
                    self.assertIn(done.returncode, (2, 4), done.stderr)
                    self.assertEqual(sorted(os.listdir(self.folder)), before)
                # One that was there stays, with what it has.
                hub = Hub(store, "--to", self.refused())
                self.addCleanup(hub.end)
                posted = hub.post("x")[2]["id"]
                hub.stop()
                done = subprocess.run(
                    [STAGGER, "hub", "--store", store, "--listen", taken,
                     "--to", "http://127.0.0.1:1/"], timeout=PATIENCE,
                    stderr=subprocess.PIPE)
                self.assertIn(done.returncode, (2, 4))
                hub = Hub(store, "--to", self.refused())
                self.addCleanup(hub.end)
                self.assertEqual(hub.ask("GET", f"/v1/messages/{posted}")[0],
                                 200)
                hub.stop()
                before = sorted(os.listdir(self.folder))

    def test_tells_what_a_person_must_mend_from_what_may_pass(self):
        """By the exit code, for a service manager: docs/operations.md."""
        none = os.path.join(self.folder, "none.db")
        with open(none, "w") as file:
            file.write("no database\n")
        with socket.socket() as other:
            other.bind(("127.0.0.1", 0))
            other.listen()
            taken = f"127.0.0.1:{other.getsockname()[1]}"
            for expected, words in (
                    (2, ("--nonsense",)), (2, ("--policy", "nonsense")),
                    (2, ("-c", "/nowhere.yaml")),
                    (2, ("--listen", "0.0.0.0:0")),
                    (2, ("--listen", "127.0.0.1:0", "--store", none)),
                    (4, ("--listen", taken)),
                    (2, ("--listen", "127.0.0.1:0", "--store",
                         "/nowhere/x.db"))):
                self.assertEqual(self.refusal(*words)[0], expected, words)

    def test_warns_of_a_store_that_others_may_read(self):
        self.hub().stop()
        os.chmod(self.store, 0o644)
        hub = self.hub()
        line, = hub.events("config-warning")
        self.assertIn("others may use the store", line["detail"])
        self.assertIn(f"chmod 600 {self.store}", line["detail"])

    def test_a_token_is_revoked_without_a_settings_file(self):
        path = os.path.join(self.folder, "tokens")
        token = new_token(path, "publish")
        hub = self.hub("--token-file", path)
        self.assertEqual(
            hub.post("hi", Authorization=f"Bearer {token}")[0], 202)
        with open(path, "w") as file:
            file.write("# none\n")
        newer = new_token(path, "publish")
        hub.process.send_signal(signal.SIGHUP)
        hub.event("reloaded", same=1)
        self.problem(hub.post("hi", Authorization=f"Bearer {token}"), 401,
                     "token")
        self.assertEqual(
            hub.post("hi", Authorization=f"Bearer {newer}")[0], 202)
        with open(path, "w") as file:
            file.write("nonsense\n")
        hub.process.send_signal(signal.SIGHUP)
        self.assertIn("tokens", hub.event("reload-refused")["detail"])
        self.assertEqual(
            hub.post("hi", Authorization=f"Bearer {newer}")[0], 202)

    def test_checks_tokens(self):
        path = os.path.join(self.folder, "tokens")
        token = new_token(path, "publish", "till-3")
        hub = self.hub("--token-file", path)
        answer = hub.post("hi")
        self.problem(answer, 401, "Bearer")
        self.assertEqual(answer[1]["WWW-Authenticate"], "Bearer")
        answer = hub.post("hi", Authorization=f"Bearer {token}")
        self.assertEqual(answer[0], 202)
        os.chmod(path, 0o644)
        code, words = self.refusal("--listen", "127.0.0.1:0", "--token-file",
                                   path)
        self.assertIn(code, (2, 4))
        self.assertIn("chmod 600", words)


if __name__ == "__main__":
    case.main()
