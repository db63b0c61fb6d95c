#!/usr/bin/env python3
"""The hub's own HTTPS: what it shows, whom it lets in, certificates that change
while it runs, and clients of TLS that do anything at all."""
import contextlib
import http.client
import json
import os
import random
import shutil
import signal
import socket
import ssl
import struct
import subprocess
import sys
import time
import warnings

import case
import leaf
from endpoint import Certificates

REQUEST = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"
LARGE = 3 << 20


def read_answer(stream):
    """Status and body, of an answer with a length."""
    answer = http.client.HTTPResponse(stream)
    answer.begin()
    return answer.status, answer.read()


class Secured(case.Case):
    def setUp(self):
        super().setUp()
        self.certificates = Certificates(self.folder)
        self.certificates.sign("server", "DNS:hub.internal,IP:127.0.0.1")
        self.target = self.leaf()

    def path(self, name):
        return self.certificates.path(name)

    def write(self, tls=None, **settings):
        path = os.path.join(self.folder, "hub.yaml")
        with open(path, "w") as file:
            json.dump({"store": {"path": self.store},
                       "listen": {"address": "127.0.0.1:0", "tls": {
                           "certificate": self.path("server.crt"),
                           "key": self.path("server.key"), **(tls or {})}},
                       "log": {"level": "debug"},
                       "targets": [{"name": "a", "url": self.target.url()}],
                       **settings}, file)
        return path

    def secured(self, tls=None, **settings):
        return self.hub(settings=self.write(tls, **settings))

    def client(self, client=None, version=None, **more):
        context = ssl.create_default_context(cafile=self.path("root.crt"))
        context.set_alpn_protocols(more.get("alpn", ["h2", "http/1.1"]))
        if client is not None:
            context.load_cert_chain(self.path(f"{client}.crt"),
                                    self.path(f"{client}.key"))
        if version is not None:
            context.minimum_version = context.maximum_version = version
        return context

    @contextlib.contextmanager
    def raw(self, hub):
        with socket.create_connection(("127.0.0.1", hub.port),
                                      timeout=leaf.PATIENCE) as s:
            yield s

    @contextlib.contextmanager
    def connected(self, hub, *arguments, **more):
        context = self.client(*arguments, **more)
        with self.raw(hub) as s:
            with context.wrap_socket(s, server_hostname="hub.internal") as t:
                yield t

    @contextlib.contextmanager
    def small(self, hub):
        """Connected, with little room for what it does not read."""
        with socket.socket() as s:
            s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            s.settimeout(leaf.PATIENCE)
            s.connect(("127.0.0.1", hub.port))
            with self.client().wrap_socket(
                    s, server_hostname="hub.internal") as t:
                yield t

    def ask(self, t, request=REQUEST):
        t.sendall(request)
        return read_answer(t)

    def assert_well(self, hub, *arguments):
        with self.connected(hub, *arguments) as t:
            self.assertEqual(self.ask(t), (200, b"ok\n"))

    def post(self, t, body, pieces=None):
        head = (b"POST /v1/messages HTTP/1.1\r\nHost: localhost\r\n"
                b"Content-Length: %d\r\n\r\n" % len(body))
        for piece in pieces or [head + body]:
            t.sendall(piece)
        return read_answer(t)

    def failed(self, hub):
        with self.connected(hub) as t:
            _, text = self.ask(t, REQUEST.replace(b"healthz", b"metrics"))
        return self.number(text, b"stagger_ingress_handshakes_failed_total ")

    def number(self, metrics, name):
        return int(next(line for line in metrics.splitlines()
                        if line.startswith(name))[len(name):])

    # -- what it does

    def test_takes_messages_by_both_versions(self):
        hub = self.secured()
        large = os.urandom(LARGE)
        for version in (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3):
            with self.connected(hub, None, version) as t:
                self.assertEqual(t.selected_alpn_protocol(), "http/1.1")
                for body in (b"small", large, b"x" * 16384):
                    self.assertEqual(self.post(t, body)[0], 202)
        # Nothing is said of their order.
        self.assertTrue(sorted(r.body for r in self.target.wait(6)) ==
                        sorted(2 * [b"small", large, b"x" * 16384]))
        self.assertEqual(hub.stop(), 0)

    def test_reads_requests_in_pieces_and_many_in_one_record(self):
        hub = self.secured()
        with self.connected(hub) as t:
            for byte in REQUEST:
                t.sendall(bytes([byte]))
            self.assertEqual(read_answer(t), (200, b"ok\n"))
            t.sendall(b"".join(
                b"POST /v1/messages HTTP/1.1\r\nHost: localhost\r\n"
                b"Content-Length: 1\r\n\r\n%d" % i for i in range(9)))
            stream = t.makefile("rb")
            for _ in range(9):
                line = stream.readline()
                self.assertEqual(line, b"HTTP/1.1 202 Accepted\r\n")
                while (line := stream.readline()) != b"\r\n":
                    if line.lower().startswith(b"content-length:"):
                        size = int(line.split(b":")[1])
                stream.read(size)
        self.assertEqual(sorted(r.body for r in self.target.wait(9)),
                         [b"%d" % i for i in range(9)])
        self.assertEqual(hub.stop(), 0)

    def test_says_go_on_before_a_body(self):
        hub = self.secured()
        with self.connected(hub) as t:
            t.sendall(b"POST /v1/messages HTTP/1.1\r\nHost: localhost\r\nExpect: "
                      b"100-continue\r\nContent-Length: 2\r\n\r\n")
            self.assertEqual(t.recv(100), b"HTTP/1.1 100 Continue\r\n\r\n")
            t.sendall(b"ok")
            self.assertEqual(read_answer(t)[0], 202)
        self.assertEqual(hub.stop(), 0)

    def test_a_large_answer_is_whole_for_a_slow_reader(self):
        targets = [{"name": f"target-{i:05}", "url": self.target.url(f"/{i}")}
                   for i in range(1000)]
        hub = self.secured(targets=targets)
        with self.small(hub) as t:
            t.sendall(REQUEST.replace(b"healthz", b"v1/targets?limit=1000"))
            self.assert_well(hub)  # while that one does not read
            status, text = read_answer(t)
            self.assertEqual(status, 200)
            self.assertEqual(len(json.loads(text)["targets"]), 1000)
            self.assertEqual(self.ask(t), (200, b"ok\n"))
        self.assertEqual(hub.stop(), 0)

    FOLLOW = REQUEST.replace(b"healthz", b"v1/events?level=debug")

    def post_many(self, t, count):
        """In one batch; returns the ids."""
        body = b'{"body":"x"}\n' * count
        status, text = self.ask(
            t, b"POST /v1/messages/batch HTTP/1.1\r\nHost: localhost\r\n"
            b"Content-Type: application/x-ndjson\r\n"
            b"Content-Length: %d\r\n\r\n%b" % (len(body), body))
        self.assertEqual(status, 202)
        return set(json.loads(text)["ids"])

    def test_a_stream_is_pushed_to_who_follows(self):
        hub = self.secured()
        with self.connected(hub) as t, self.connected(hub) as producer:
            t.sendall(self.FOLLOW)
            answer = http.client.HTTPResponse(t)
            answer.begin()
            self.assertEqual(answer.headers["Transfer-Encoding"], "chunked")
            self.assertTrue(answer.readline().startswith(b"retry: "))
            ids = self.post_many(producer, 200)
            while ids:
                line = answer.readline()
                if line.startswith(b"data: "):
                    ids.discard(json.loads(line[6:]).get("message"))
            self.assertEqual(hub.stop(), 0)
            self.assertTrue(answer.read().endswith(b"\n\n"))

    def test_a_stream_is_cut_for_who_does_not_read(self):
        hub = self.secured()
        with self.small(hub) as t, self.connected(hub) as producer:
            t.sendall(self.FOLLOW)
            self.assertEqual(t.recv(1), b"H")

            def is_cut():
                self.post_many(producer, 1000)
                _, text = self.ask(producer,
                                   REQUEST.replace(b"healthz", b"metrics"))
                return self.number(text, b"stagger_ingress_cut_total ")
            case.wait_for(is_cut, "a reader who was cut")
        self.assertEqual(hub.stop(), 0)

    def test_ends_in_order(self):
        hub = self.secured()
        with self.connected(hub) as t:
            t.sendall(REQUEST.replace(b"\r\n\r\n",
                                      b"\r\nConnection: close\r\n\r\n"))
            text = b""
            while piece := t.recv(4096):  # without close_notify it raises
                text += piece
        self.assertTrue(text.endswith(b"ok\n"), text)
        with self.connected(hub) as t:
            self.ask(t)
            t.unwrap()
        self.assertEqual(hub.stop(), 0)

    def test_commands_reach_it(self):
        hub = self.secured({"client-ca": self.path("root.crt")})
        where = ["--hub", f"https://127.0.0.1:{hub.port}"]
        trust = ["--ca", self.path("root.crt")]
        shown = ["--client-cert", self.path("client.crt"),
                 "--client-key", self.path("client.key")]

        def run(*words):
            return subprocess.run([leaf.STAGGER, *words], capture_output=True,
                                  text=True, timeout=leaf.PATIENCE,
                                  stdin=subprocess.DEVNULL)
        file = os.path.join(self.folder, "message")
        with open(file, "w") as to:
            to.write("hello")
        for words in (["send", file], ["status", "--once", "-n", "10ms"],
                      ["targets"], ["pause", "a"], ["resume", "a"],
                      ["dead", "list"], ["reload"]):
            found = run(*words, *where, *trust, *shown)
            self.assertEqual(found.returncode, 0, (words, found.stderr))
        self.assertEqual(self.target.wait(1)[0].body, b"hello")
        found = run("targets", *where, *shown)
        self.assertEqual(found.returncode, 1)
        self.assertIn("certificate verify failed", found.stderr)
        found = run("targets", *where, *trust)
        self.assertEqual(found.returncode, 1)
        self.assertIn("certificate required", found.stderr)
        found = run("targets", *where, "--ca", "/nowhere")
        self.assertIn("/nowhere", found.stderr)
        self.assertEqual(hub.stop(), 0)

    def test_says_until_when_its_certificate_is_valid(self):
        hub = self.secured()
        with self.connected(hub) as t:
            until = ssl.cert_time_to_seconds(t.getpeercert()["notAfter"])
            _, text = self.ask(t, REQUEST.replace(b"healthz", b"metrics"))
        self.assertEqual(
            self.number(text, b"stagger_ingress_certificate_expiry_"
                        b"timestamp_seconds "), until)
        self.assertEqual(hub.stop(), 0)

    def test_two_options_are_enough(self):
        hub = self.hub("--tls-cert", self.path("server.crt"), "--tls-key",
                       self.path("server.key"), "--to", self.target.url())
        self.assert_well(hub)
        self.assertEqual(hub.stop(), 0)

    # -- who is let in

    def test_lets_in_who_shows_a_certificate(self):
        hub = self.secured({"client-ca": self.path("root.crt")})
        self.assert_well(hub, "client")
        for version in (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3):
            with self.assertRaises((ssl.SSLError, ConnectionError)):
                with self.connected(hub, None, version) as t:
                    self.ask(t)
            with self.assertRaises((ssl.SSLError, ConnectionError)):
                with self.connected(hub, "other", version) as t:
                    self.ask(t)
        case.wait_for(lambda: len(hub.events("handshake-failed")) == 4,
                      "a line of each")
        self.assertEqual(hub.stop(), 0)

    def test_lets_in_who_shows_none_where_that_is_optional(self):
        hub = self.secured({"client-ca": self.path("root.crt"),
                            "client-auth": "optional"})
        self.assert_well(hub, "client")
        self.assert_well(hub)
        with self.assertRaises((ssl.SSLError, ConnectionError)):
            with self.connected(hub, "other") as t:
                self.ask(t)
        self.assertEqual(hub.stop(), 0)

    # -- certificates that change

    def shown(self, hub):
        with self.connected(hub) as t:
            return t.getpeercert()["serialNumber"]

    def test_a_reload_changes_the_certificate_and_no_connection(self):
        hub = self.secured()
        before = self.shown(hub)
        with self.connected(hub) as t:
            self.ask(t)
            self.certificates.sign("server", "DNS:hub.internal")
            hub.process.send_signal(signal.SIGHUP)
            hub.event("reloaded")
            self.assertNotEqual(self.shown(hub), before)
            self.assertEqual(self.ask(t), (200, b"ok\n"))
        self.assertEqual(hub.stop(), 0)

    def test_files_that_change_are_noticed(self):
        hub = self.secured()
        before = self.shown(hub)
        self.certificates.sign("server", "DNS:hub.internal")
        case.wait_for(lambda: self.shown(hub) != before, "another certificate")
        self.assertEqual(hub.event("certificate-reloaded")["file"],
                         self.path("server.crt"))
        # Half of the change: the certificate from before is shown on.
        before = self.shown(hub)
        with open(self.path("server.key")) as file:
            key = file.read()
        os.replace(self.path("client.key"), self.path("server.key"))
        self.shown(hub)
        case.wait_for(lambda: self.shown(hub) == before and
                      hub.events("certificate-kept"), "a line about it")
        line = hub.events("certificate-kept")[0]
        self.assertTrue(line["detail"].startswith(
            f"listen.tls.key {self.path('server.key')}: "), line)
        self.assertIn("stagger check", line["next"])
        with open(self.path("server.key"), "w") as file:
            file.write(key)
        self.assertEqual(self.shown(hub), before)
        self.assertEqual(hub.stop(), 0)

    def test_names_the_setting_whose_file_is_wrong(self):
        def broken(name, text=None, mode=0o600):
            path = self.path(f"server.{name}")
            if text is not None:
                with open(path, "w") as file:
                    file.write(text)
            os.chmod(path, mode)

        shutil.copy(self.path("root.crt"), self.path("server.ca"))
        hub = self.secured({"client-ca": self.path("server.ca")})
        good = {name: open(self.path(f"server.{name}")).read()
                for name in ("crt", "key", "ca")}
        for setting, name, text, mode in (
                ("certificate", "crt", "none", 0o600),
                ("key", "key", "none", 0o600),
                ("client-ca", "ca", "none", 0o600),
                ("key", "key", good["key"], 0o644)):
            before = len(hub.events("certificate-kept"))
            broken(name, text, mode)
            found = f"listen.tls.{setting} {self.path('server.' + name)}: "

            def told():
                self.assert_well(hub, "client")
                return [line for line in hub.events("certificate-kept")[before:]
                        if line["detail"].startswith(found)]

            case.wait_for(told, found)
            broken(name, good[name])
        self.certificates.sign("server", "DNS:hub.internal", days=-1)
        found = f"listen.tls.certificate {self.path('server.crt')}: it has exp"
        case.wait_for(lambda: self.assert_well(hub, "client") or [
            line for line in hub.events("certificate-kept")
            if line["detail"].startswith(found)], found)
        self.assertEqual(hub.stop(), 0)

    def test_a_reload_with_a_bad_one_changes_nothing(self):
        hub = self.secured()
        before = self.shown(hub)
        bad = {
            "is not that of": {"key": self.path("client.key")},
            "has no certificate": {"certificate": self.path("server.key")},
            "cannot be read": {"certificate": self.path("nowhere.crt")},
            "has no key": {"key": self.path("loose")},
            "others may use": {"key": self.path("open.key")},
        }
        shutil.copy(self.path("server.key"), self.path("open.key"))
        os.chmod(self.path("open.key"), 0o644)
        with open(self.path("loose"), "w") as file:
            file.write("nothing")
        os.chmod(self.path("loose"), 0o600)
        self.certificates.sign("old", "DNS:hub.internal", days=-1)
        bad["has expired"] = {"certificate": self.path("old.crt"),
                              "key": self.path("old.key")}
        for words, tls in bad.items():
            path = self.write(tls)
            hub.process.send_signal(signal.SIGHUP)
            self.assertIn(words, hub.event("reload-refused")["detail"])
            found = subprocess.run([leaf.STAGGER, "check", "-c", path],
                                   capture_output=True, text=True,
                                   timeout=leaf.PATIENCE)
            self.assertEqual(found.returncode, 2, found.stderr)
            self.assertIn(words, found.stderr + found.stdout)
            self.assertEqual(self.shown(hub), before)
        self.assertEqual(hub.stop(), 0)

    def test_a_reload_may_begin_and_end_it(self):
        hub = self.secured()
        with open(self.write()) as file:
            settings = json.load(file)
        del settings["listen"]["tls"]
        with self.connected(hub) as t:
            self.ask(t)
            with open(os.path.join(self.folder, "hub.yaml"), "w") as file:
                json.dump(settings, file)
            hub.process.send_signal(signal.SIGHUP)
            hub.event("reloaded")
            with self.raw(hub) as plain:
                self.assertEqual(self.ask(plain), (200, b"ok\n"))
                self.write()
                hub.process.send_signal(signal.SIGHUP)
                hub.event("reloaded")
                self.assert_well(hub)
                self.assertEqual(self.ask(plain), (200, b"ok\n"))
            self.assertEqual(self.ask(t), (200, b"ok\n"))
        self.assertEqual(hub.stop(), 0)

    def test_does_not_start_without_a_good_one(self):
        self.certificates.sign("old", "DNS:hub.internal", days=-1)
        for words, code in (
                (["--tls-cert", self.path("server.crt")], 2),
                (["--tls-cert", self.path("server.crt"),
                  "--tls-key", self.path("client.key")], 2),
                (["--tls-cert", self.path("nowhere"),
                  "--tls-key", self.path("server.key")], 2),
                (["--tls-cert", self.path("old.crt"),
                  "--tls-key", self.path("old.key")], 2)):
            found = subprocess.run(
                [leaf.STAGGER, "hub", "--listen", "127.0.0.1:0", "--store",
                 self.store, "--to", self.target.url(), *words],
                capture_output=True, text=True, timeout=leaf.PATIENCE)
            self.assertEqual(found.returncode, code, found.stderr)
            self.assertRegex(found.stderr, r"--tls-cert|listen\.tls\.(certificate|key)\b")

    # -- clients that do anything

    def test_plain_http_is_told_what_is_expected(self):
        hub = self.secured()
        for request in (REQUEST, b"POST / HTTP/1.1\r\n", b"PRI * HTTP/2.0\r\n"):
            with self.raw(hub) as s:
                status, text = self.ask(s, request)
                self.assertEqual(status, 400)
                self.assertIn("https://", json.loads(text)["detail"])
                self.assertEqual(s.recv(1), b"")
        self.assert_well(hub)
        self.assertEqual(hub.stop(), 0)

    def test_garbage_is_a_quiet_end(self):
        hub = self.secured()
        chance = random.Random(7)
        before = self.failed(hub)
        pieces = [b"\x16\x03\x01" + chance.randbytes(size)
                  for size in (1, 40, 600, 20000)]
        pieces += [b"\x00" * 10, b"\x80\x2e\x01\x00\x02", b"\x15\x03\x01\x00"
                   b"\x02\x02\x28", b"\x17\x03\x03\x00\x05hello"]
        for piece in pieces:
            with self.raw(hub) as s:
                with contextlib.suppress(ConnectionError):
                    s.sendall(piece)
                    s.shutdown(socket.SHUT_WR)
                    while s.recv(4096):
                        pass
        case.wait_for(lambda: self.failed(hub) == before + len(pieces),
                      "a count of each")
        self.assertEqual({line["level"] for line in
                          hub.events("handshake-failed")}, {"debug"})
        self.assertEqual(hub.events("request-refused"), [])
        self.assertEqual(hub.stop(), 0)

    def test_a_protocol_that_it_has_not_is_refused(self):
        hub = self.secured()
        with self.assertRaises(ssl.SSLError):
            with self.connected(hub, alpn=["h2"]):
                pass
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            with self.assertRaises((ssl.SSLError, ConnectionError)):
                with self.connected(hub, None, ssl.TLSVersion.TLSv1_1):
                    pass
        self.assert_well(hub)
        self.assertEqual(hub.stop(), 0)

    def test_renegotiation_is_refused(self):
        hub = self.secured()
        found = subprocess.run(
            ["openssl", "s_client", "-connect", f"127.0.0.1:{hub.port}",
             "-tls1_2", "-legacy_renegotiation", "-CAfile",
             self.path("root.crt")], input="R\n", capture_output=True,
            text=True, timeout=leaf.PATIENCE)
        self.assertIn("RENEGOTIATING", found.stdout + found.stderr)
        self.assertIn("no renegotiation", found.stderr)
        self.assert_well(hub)
        self.assertEqual(hub.stop(), 0)

    def test_a_body_that_is_cut_is_no_message(self):
        """Without close_notify, with a reset, and within a record."""
        hub = self.secured()
        head = (b"POST /v1/messages HTTP/1.1\r\nHost: localhost\r\n"
                b"Content-Length: 20\r\n\r\nhalf")
        for how in ("end", "reset", "alert", "corrupt"):
            with self.raw(hub) as s:
                t = self.client().wrap_socket(s, server_hostname="hub.internal")
                t.sendall(head)
                if how == "alert":
                    with contextlib.suppress(OSError):
                        t.settimeout(0.2)
                        t.unwrap()
                elif how == "reset":
                    t.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER,
                                 struct.pack("ii", 1, 0))
                elif how == "corrupt":
                    os.write(t.fileno(), b"\x17\x03\x03\x00\x20" + b"x" * 32)
                t.close()
        self.assert_well(hub)
        with self.connected(hub) as t:
            self.assertEqual(self.post(t, b"whole")[0], 202)
        self.assertEqual([r.body for r in self.target.wait(1)], [b"whole"])
        self.assertEqual(hub.stop(), 0)

    def test_half_a_handshake_has_the_time_of_a_header(self):
        hub = self.secured()
        begun_at = time.monotonic()
        with self.raw(hub) as silent, self.raw(hub) as half:
            half.sendall(b"\x16\x03\x01\x02\x00\x01")
            self.assertEqual((half.recv(1), silent.recv(1)), (b"", b""))
        self.assertTrue(9 < time.monotonic() - begun_at < 20)
        self.assertEqual(hub.stop(), 0)

    def test_1024_half_handshakes_delay_nobody(self):
        """I29, I32. They are of one address, and the first to go for others."""
        hub = self.secured()
        with contextlib.ExitStack() as all:
            for i in range(1024):
                s = all.enter_context(self.raw(hub))
                with contextlib.suppress(ConnectionError):
                    if i % 2 == 0:
                        s.sendall(b"\x16\x03\x01\x02\x00\x01")
            # The last of them is left alone for 100 ms.
            case.wait_for(lambda: self.is_let_in(hub), "one that is let in")
            begun_at = time.monotonic()
            for _ in range(20):
                self.assert_well(hub)
            with self.connected(hub) as t:
                self.assertEqual(self.post(t, b"x")[0], 202)
            self.target.wait(1)
            self.assertLess(time.monotonic() - begun_at, 5)
        self.assertEqual(hub.stop(), 0)

    def is_let_in(self, hub):
        with contextlib.suppress(ConnectionError):
            self.assert_well(hub)
            return True
        return False

    def test_idle_connections_are_cheap(self):
        hub = self.secured()
        count = 400
        with contextlib.ExitStack() as all:
            for i in range(20):
                self.ask(all.enter_context(self.connected(hub)))
            before = hub.resident()
            for i in range(count):
                self.ask(all.enter_context(self.connected(hub)))
            each = (hub.resident() - before) / count
            if not case.is_sanitized():
                self.assertLess(each, 24 << 10)
            print(f"an idle connection: {each:.0f} bytes", file=sys.stderr)
        self.assertEqual(hub.stop(), 0)


if __name__ == "__main__":
    case.main()
