#!/usr/bin/env python3
"""What the settings of a target say of its requests, over real sockets: method,
headers, a timeout for each phase, TLS with a name and a certificate, egress."""
import json
import os
import socket
import ssl
import subprocess

import case
import leaf

BIG = 3 << 20 # no socket takes so much at once
POLICY = "fixed base=10ms jitter=none attempts=2 retry=any attempt-timeout=30s"


def command(*words, **more):
    subprocess.run(words, check=True, capture_output=True, **more)


class Certificates:
    """A root, and what it signs: for a server by two names, and for a client."""

    def __init__(self, folder):
        self.folder = folder
        for name, subject in (("root", "/CN=root"), ("other", "/CN=other")):
            command("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt",
                    "ec_paramgen_curve:P-256", "-nodes", "-subj", subject,
                    "-days", "2", "-addext", "basicConstraints=critical,CA:TRUE",
                    "-keyout", self.path(f"{name}.key"),
                    "-out", self.path(f"{name}.crt"))
        self.sign("server", "DNS:leaf.internal")
        self.sign("client", "DNS:the-hub")

    def path(self, name):
        return os.path.join(self.folder, name)

    def sign(self, name, names, days=2):
        command("openssl", "req", "-newkey", "ec", "-pkeyopt",
                "ec_paramgen_curve:P-256", "-nodes", "-subj", f"/CN={name}",
                "-keyout", self.path(f"{name}.key"),
                "-out", self.path(f"{name}.csr"))
        with open(self.path(f"{name}.ext"), "w") as file:
            file.write(f"subjectAltName={names}\n")
        command("openssl", "x509", "-req", "-in", self.path(f"{name}.csr"),
                "-CA", self.path("root.crt"), "-CAkey", self.path("root.key"),
                "-CAcreateserial", "-days", str(days),
                "-extfile", self.path(f"{name}.ext"),
                "-out", self.path(f"{name}.crt"))
        os.chmod(self.path(f"{name}.key"), 0o600)

    def context(self, wants_client=False):
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self.path("server.crt"),
                                self.path("server.key"))
        if wants_client:
            context.verify_mode = ssl.CERT_REQUIRED
            context.load_verify_locations(self.path("root.crt"))
        return context


class Case(case.ByFile):
    def write(self, targets, **settings):
        return super().write(targets, **{"defaults": {"policy": POLICY},
                                         **settings})

    def configured(self, targets, **settings):
        return self.hub(settings=self.write(targets, **settings))

    def letters(self):
        return {row["target"]: row for row in self.rows()}


class Requests(Case):
    def deaf(self):
        """The URL of one that takes connections, and next to no bytes."""
        s = self.kept(socket.socket())
        s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        s.bind(("127.0.0.1", 0))
        s.listen(64)
        return f"http://127.0.0.1:{s.getsockname()[1]}/"

    def test_method_headers_and_path_are_as_set(self):
        secret = os.path.join(self.folder, "secret")
        with open(secret, "w") as file:
            file.write("Bearer the-secret\n")
        os.chmod(secret, 0o600)
        a, b = self.leaf(), self.leaf()
        hub = self.configured([
            {"name": "a", "url": a.url("/in/box?x=1"), "method": "PUT",
             "headers": {"X-Source": "hub", "Authorization": {"file": secret}}},
            {"name": "b", "url": b.url()}])
        hub.post(b"x", Content_Type="text/x-thing")
        [got], [plain] = a.wait(1), b.wait(1)
        self.assertEqual(got.line, "PUT /in/box?x=1 HTTP/1.1")
        self.assertEqual((got.one("x-source"), got.one("authorization"),
                          got.one("content-type"), got.body),
                         ("hub", "Bearer the-secret", "text/x-thing", b"x"))
        self.assertEqual(plain.line, "POST / HTTP/1.1")
        self.assertEqual((plain.one("x-source"), plain.one("authorization")),
                         (None, None))
        self.assertEqual(hub.stop(), 0)
        log = json.dumps(hub.lines)
        self.assertNotIn("the-secret", log) # I23

    def test_each_phase_has_its_time(self):
        hole = self.kept(leaf.BlackHole())
        mute = self.leaf(early=lambda connection: connection.hang())
        deaf = self.deaf()
        slow = self.leaf(lambda request: leaf.hang)
        begun = self.leaf(lambda request: leaf.then_hang("HTTP/1.1 200 OK\r\n"))
        phases = {
            "connect": (hole.url(), {"connect": "300ms"}, "CONNECT_TIMEOUT",
                        "A", "no connection within"),
            "tls": (mute.url(scheme="https"), {"tls": "300ms"},
                    "TLS_TIMEOUT", "A", "the handshake was not over"),
            "write": (deaf, {"write": "300ms"}, "TIMEOUT", "B",
                      "the request was not taken"),
            "first-byte": (slow.url(), {"first-byte": "300ms"}, "TIMEOUT", "B",
                           "nothing came"),
            "attempt": (begun.url(), {"attempt": "300ms"}, "TIMEOUT", "B",
                        "it was not whole"),
        }
        well = self.leaf()
        # None of these times is the healthy one's, however long it takes.
        hub = self.configured(
            [{"name": name, "url": url, "timeouts": timeouts}
             for name, (url, timeouts, *_) in phases.items()]
            + [{"name": "well", "url": well.url(),
                "timeouts": {phase: "20s" for phase in (
                    "resolve", "connect", "tls", "write", "first-byte",
                    "attempt")}}])
        hub.post(b"x" * BIG)
        well.wait(1)
        self.await_settled(len(phases) + 1)
        self.assertEqual(hub.stop(), 0)
        letters = self.letters()
        self.assertEqual(sorted(letters), sorted(phases))
        for name, (_, _, cause, category, words) in phases.items():
            with self.subTest(phase=name):
                row = letters[name]
                self.assertEqual((row["cause"], row["category"],
                                  row["attempts"]), (cause, category, 2))
                self.assertIn(words, row["detail"])
                took = (case.seconds(row["last_attempt_at"])
                        - case.seconds(row["first_attempt_at"]))
                self.assertGreaterEqual(took, 0.3)
                self.assertLess(took, 15) # and not the 30 s of the policy

    def test_a_redirect_is_not_followed(self):
        other = self.leaf()
        moved = self.leaf(lambda request: (307, {"Location": other.url()}))
        hub = self.configured([{"name": "moved", "url": moved.url(),
                                "policy": "broadcast"}])
        hub.post(b"x")
        self.await_settled(1)
        self.assertEqual(hub.stop(), 0)
        self.assertEqual(other.connections, 0)
        self.assertEqual(self.letters()["moved"]["cause"], "HTTP_307")


class Tls(Case):
    def setUp(self):
        super().setUp()
        self.certificates = Certificates(self.folder)

    def test_name_authority_and_certificate_are_as_set(self):
        certificates = self.certificates
        names = []
        strict = certificates.context(wants_client=True)
        # In 1.3 the alert comes behind the handshake, where a reset may
        # overtake it.
        strict.maximum_version = ssl.TLSVersion.TLSv1_2
        strict.sni_callback = lambda s, name, context: names.append(name)
        server = self.leaf(tls=strict)
        lax = self.leaf(tls=certificates.context())
        ours = {"ca": certificates.path("root.crt"),
                "server-name": "leaf.internal"}
        shown = {"certificate": certificates.path("client.crt"),
                 "key": certificates.path("client.key")}
        url = server.url(scheme="https", host="localhost")
        hub = self.configured([
            {"name": "good", "url": url, "tls": {**ours, **shown}},
            {"name": "nothing-shown", "url": url, "tls": ours},
            {"name": "other-name", "url": url,
             "tls": {**ours, **shown, "server-name": "other.internal"}},
            {"name": "other-ca", "url": url,
             "tls": {**ours, **shown, "ca": certificates.path("other.crt")}},
            {"name": "url-name", "url": lax.url(scheme="https"),
             "tls": {"ca": ours["ca"]}},
            {"name": "unchecked", "url": lax.url(scheme="https"),
             "tls": {"verify": False}},
        ])
        hub.post(b"x")
        self.await_settled(6)
        self.assertEqual(hub.stop(), 0)
        self.assertEqual(len(server.receipts), 1)
        self.assertEqual(len(lax.receipts), 1)
        self.assertIn("leaf.internal", names)
        self.assertIn("other.internal", names)
        self.assertNotIn("localhost", names)
        letters = self.letters()
        expected = {"nothing-shown": "alert",
                  "other-name": "hostname mismatch",
                  "other-ca": "self-signed|unable to get",
                  "url-name": "IP address mismatch"}
        self.assertEqual(sorted(letters), sorted(expected))
        for name, words in expected.items():
            row = letters[name]
            self.assertEqual((row["cause"], row["category"]),
                             ("TLS_FAILURE", "A"), name)
            self.assertRegex(row["detail"].lower(), words.lower(), name)


class Egress(Case):
    """The address is judged, by whatever name: I24."""

    def test_what_is_denied_is_not_connected_to(self):
        server = self.leaf()
        targets = [
            {"name": "name", "url": server.url(host="localhost")},
            {"name": "number", "url": server.url(host="2130706433")},
            {"name": "short", "url": server.url(host="127.1")},
            {"name": "octal", "url": server.url(host="0177.0.0.1")},
        ]
        hub = self.configured(targets, egress={
            "deny": ["127.0.0.0/8", "::1/128"]})
        hub.post(b"x")
        self.await_settled(4)
        self.assertEqual(hub.stop(), 0)
        self.assertEqual(server.connections, 0)
        for name, row in self.letters().items():
            self.assertEqual((row["cause"], row["category"], row["attempts"],
                              row["why"]),
                             ("EGRESS_FORBIDDEN", "A", 1, "permanent"), name)
            self.assertRegex(row["detail"], "may not be connected to: denied "
                                            "by (127.0.0.0/8|::1/128)")

    def test_an_address_that_is_denied_is_no_setting(self):
        for host in ("127.0.0.1", "[::ffff:127.0.0.1]", "169.254.169.254"):
            path = self.write(
                [{"name": "a", "url": f"http://{host}/"}],
                egress={"deny": ["127.0.0.0/8"]})
            done = subprocess.run([leaf.STAGGER, "hub", "-c", path],
                                  capture_output=True, text=True,
                                  timeout=leaf.PATIENCE)
            self.assertEqual(done.returncode, 2, done.stderr)
            self.assertIn("the hub may not connect to its address",
                          done.stderr)

    def test_what_is_allowed_by_a_smaller_network_is(self):
        server = self.leaf()
        hub = self.configured(
            [{"name": "a", "url": server.url()}],
            egress={"deny": ["0.0.0.0/0", "::/0"], "allow": ["127.0.0.1/32"]})
        hub.post(b"x")
        server.wait(1)
        self.assertEqual(hub.stop(), 0)
        self.assertEqual(self.rows(), [])


if __name__ == "__main__":
    case.main()
