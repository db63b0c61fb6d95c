#!/usr/bin/env python3
"""Access tokens of OAuth 2.0: how they are got, shared, replaced and refused.

The authorization server of these tests is strict: it takes what RFC 6749 and
RFC 7523 have, and nothing else."""
import base64
import collections
import contextlib
import http.client
import json
import os
import pathlib
import signal
import subprocess
import threading
import time
import unittest.mock
import urllib.parse
import urllib.request

import case
import leaf
import prometheus
import targets
from case import STAGGER
from endpoint import Certificates

HERE = pathlib.Path(__file__).parent
SECRET = "s3cret: 100% & more"
JWT_BEARER = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"


def unpadded(text):
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


class Server:
    """An authorization server. answer(number), of the questions from 1, may say
    otherwise: what a leaf does, or None. life: expires_in of its tokens."""

    def __init__(self, test, secret=SECRET, life=3600,
                 answer=lambda number: None, tls=None):
        self.secret, self.life, self.answer = secret, life, answer
        self.leaf = test.leaf(self.take, tls=tls)
        self.scheme = "http" if tls is None else "https"
        self.folder = test.folder
        self.lock = threading.Lock()
        self.valid = {}     # tokens, and when they end
        self.asked = []     # the parameters of each question
        self.mistakes = []
        self.seen = set()   # jti
        self.public = None  # a file with the client's key

    @property
    def url(self):
        return self.leaf.url("/token?key=hidden", self.scheme)

    def client(self, request, form):
        """Whether it is the client that it says; what is no request is a
        mistake."""
        basic = request.one("authorization")
        if basic is not None:
            if {"client_id", "client_secret", "client_assertion"} & set(form):
                self.mistakes.append("two ways to say who it is")
            name, _, secret = base64.b64decode(
                basic.removeprefix("Basic "), validate=True).decode().partition(":")
            return [urllib.parse.unquote_plus(part, errors="strict")
                    for part in (name, secret)] == ["hub", self.secret]
        if form.get("client_id") != "hub":
            return False
        if self.public is not None:
            return self.verify(form)
        return form.get("client_secret") == self.secret

    def verify(self, form):
        """RFC 7523, section 3. The signature is judged by OpenSSL alone."""
        if form.get("client_assertion_type") != JWT_BEARER:
            return False
        signed, _, signature = form["client_assertion"].rpartition(".")
        head, claims = (json.loads(unpadded(part)) for part in signed.split("."))
        files = {name: os.path.join(self.folder, name) for name in ("jwt", "sig")}
        signature = unpadded(signature)
        if head["alg"] == "ES256":
            signature = der(signature)
        for name, data in ("jwt", signed.encode()), ("sig", signature):
            pathlib.Path(files[name]).write_bytes(data)
        how = (["pkeyutl", "-verify", "-pubin", "-inkey", self.public, "-rawin",
                "-in", files["jwt"], "-sigfile", files["sig"]]
               if head["alg"] == "EdDSA" else
               ["dgst", "-sha256", "-verify", self.public,
                "-signature", files["sig"], files["jwt"]])
        done = subprocess.run(["openssl", *how], capture_output=True)
        fresh = claims["jti"] not in self.seen
        self.seen.add(claims["jti"])
        return (done.returncode == 0 and fresh and head["kid"] == "k1"
                and claims["iss"] == claims["sub"] == "hub"
                and claims["aud"] == self.url
                and claims["iat"] - 5 < time.time() < claims["exp"]
                and claims["exp"] - claims["iat"] <= 300)

    def take(self, request):
        with self.lock:
            form = urllib.parse.parse_qs(request.body.decode("ascii"),
                                         strict_parsing=True)
            if any(len(values) != 1 for values in form.values()):
                self.mistakes.append("a parameter twice")
            form = {name: values[0] for name, values in form.items()}
            self.asked.append(form)
            for name, value in (("content-type",
                                 "application/x-www-form-urlencoded"),
                                ("accept", "application/json")):
                if request.one(name) != value:
                    self.mistakes.append(f"{name}: {request.one(name)}")
            told = self.answer(len(self.asked))
            if told is not None:
                return told
            if form.get("grant_type") != "client_credentials":
                return self.error(400, "unsupported_grant_type")
            if not self.client(request, form):
                return self.error(401, "invalid_client")
            return self.grant()

    def grant(self):
        token = f"t{len(self.asked)}." + base64.b64encode(os.urandom(30)).decode()
        self.valid[token] = time.monotonic() + (self.life or 1e9)
        answer = {"access_token": token, "token_type": "Bearer"}
        if self.life is not None:
            answer["expires_in"] = self.life
        return 200, {"Content-Type": "application/json"}, json.dumps(answer).encode()

    @staticmethod
    def error(status, name):
        return (status, {"Content-Type": "application/json"},
                json.dumps({"error": name, "error_description": "no, \x1b[1m"})
                .encode())

    def revoke(self):
        with self.lock:
            self.valid.clear()

    def check(self, request):
        """What a target does with a token."""
        with self.lock:
            line = request.headers.get("authorization", [])
            token = line[0].removeprefix("Bearer ") if len(line) == 1 else None
            return self.valid.get(token, 0) > time.monotonic()


def der(signature):
    """Both numbers of ECDSA, as OpenSSL has them."""
    def number(part):
        part = part.lstrip(b"\0") or b"\0"
        part = b"\0" * (part[0] >> 7) + part
        return bytes([2, len(part)]) + part
    assert len(signature) == 64, len(signature)
    both = number(signature[:32]) + number(signature[32:])
    return bytes([48, len(both)]) + both


class Clients(case.ByFile):
    """What tests of a hub with tokens need."""

    def look(self, hub, name):
        with urllib.request.urlopen(
                f"http://127.0.0.1:{hub.port}/v1/targets/{name}") as answer:
            return json.load(answer)

    def metrics(self, hub):
        with urllib.request.urlopen(
                f"http://127.0.0.1:{hub.port}/metrics") as answer:
            return prometheus.samples(answer.read().decode())

    def target(self, server, at, name="a", **more):
        oauth2 = {"token-url": server.url, "client-id": "hub",
                  "client-secret": SECRET, **more.pop("oauth2", {})}
        oauth2 = {key: value for key, value in oauth2.items() if value is not None}
        return {"name": name, "url": at.url("/" + name), "policy":
                "broadcast base=50ms breaker=none", "oauth2": oauth2, **more}

    def guarded(self, server):
        return self.leaf(lambda r: 200 if server.check(r) else 401)

    def end(self, hub, server, delivered, at=None):
        """All of it is delivered, nothing is dead, and no secret was told."""
        for name, count in delivered.items():
            case.wait_for(lambda: self.look(hub, name)["delivered"] == count,
                          f"{count} deliveries to {name}")
        self.assertEqual(hub.stop(), 0)
        self.assertEqual(server.mistakes, [])
        self.assertEqual(self.rows(), [])
        told = json.dumps(hub.lines) + str(hub.noise)
        for secret in (SECRET, "hidden", *server.valid):
            self.assertNotIn(secret, told)


class OAuth(Clients):
    # -- how it is asked ---------------------------------------------------------

    def test_each_request_carries_a_token(self):
        server = Server(self)
        at = self.guarded(server)
        hub = self.start([self.target(server, at)])
        for i in range(5):
            hub.post(b"x")
        got = at.wait(5)
        self.assertEqual({len(r.headers["authorization"]) for r in got}, {1})
        self.assertEqual(len(server.asked), 1)
        self.assertEqual(server.asked[0], {"grant_type": "client_credentials"})
        token = self.look(hub, "a")["token"]
        self.assertTrue(token["is_usable"])
        self.assertIsNone(token["cause"])
        self.assertIsNotNone(token["until"])
        self.end(hub, server, {"a": 5})
        self.assertEqual({r.attempt for r in got}, {1})

    def test_a_token_url_shows_nothing_of_the_environment(self):
        server = Server(self, answer=lambda number: (500, {}, b"")
                        if number == 1 else None)
        at = self.guarded(server)
        target = self.target(server, at, oauth2={
            "token-url": server.leaf.url("/${TOKEN_PATH}")})
        with unittest.mock.patch.dict(os.environ, TOKEN_PATH="hidden"):
            hub = self.start([target])
        hub.post(b"x")
        shown = server.leaf.url("/${TOKEN_PATH}")
        self.assertIn(shown, hub.event("token-failed")["detail"])
        self.assertEqual(hub.event("token-fetched")["url"], shown)
        self.end(hub, server, {"a": 1})
        self.assertEqual({r.path for r in server.leaf.receipts}, {"/hidden"})

    def test_a_secret_in_the_body_scope_and_audience(self):
        server = Server(self)
        at = self.guarded(server)
        self.put("secret", SECRET + "\n")
        hub = self.start([self.target(server, at, oauth2={
            "auth": "body", "client-secret": {"file": "secret"},
            "scope": ["orders:write", "orders:read"],
            "audience": "https://shop.example/?a=b&c"})])
        hub.post(b"x")
        at.wait(1)
        self.assertEqual(server.asked, [{
            "grant_type": "client_credentials", "client_id": "hub",
            "client_secret": SECRET, "scope": "orders:write orders:read",
            "audience": "https://shop.example/?a=b&c"}])
        self.end(hub, server, {"a": 1})

    def by_key(self, *kind):
        server = Server(self)
        at = self.guarded(server)
        key, server.public = (os.path.join(self.folder, n) for n in ("k", "pub"))
        subprocess.run(["openssl", "genpkey", *kind, "-out", key], check=True,
                       capture_output=True)
        subprocess.run(["openssl", "pkey", "-in", key, "-pubout", "-out",
                        server.public], check=True)
        os.chmod(key, 0o600)
        hub = self.start([self.target(server, at, oauth2={
            "client-secret": None, "private-key": {"file": "k"},
            "key-id": "k1"})])
        hub.post(b"x")
        at.wait(1)
        self.end(hub, server, {"a": 1})

    def test_a_jwt_of_an_rsa_key(self):
        self.by_key("-algorithm", "RSA", "-pkeyopt", "rsa_keygen_bits:2048")

    def test_a_jwt_of_a_key_of_p256(self):
        self.by_key("-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256")

    def test_a_jwt_of_a_key_of_ed25519(self):
        self.by_key("-algorithm", "ed25519")

    # -- by which way ------------------------------------------------------------

    def test_the_server_is_checked_by_its_own_authority(self):
        """And the target by another, which wants a certificate of the hub's,
        too."""
        made = Certificates(self.folder)
        made.sign("server", "IP:127.0.0.1")
        server = Server(self, tls=made.context())
        at = self.leaf(lambda r: 200 if server.check(r) else 401,
                       tls=made.context(wants_client=True))
        tls = {"ca": "root.crt", "certificate": "client.crt",
               "key": "client.key"}
        target = self.target(server, at, tls=tls, oauth2={"ca": "root.crt"})
        target["url"] = at.url("/", "https")
        hub = self.start([{**target, "oauth2": {**target["oauth2"],
                                                "ca": "other.crt"}}])
        hub.post(b"x")
        self.assertRegex(hub.event("token-failed")["detail"], "certificate")
        self.assertEqual((server.asked, at.receipts), ([], []))
        self.write([target])
        hub.process.send_signal(signal.SIGHUP)
        self.assertEqual(hub.event("reloaded")["changed"], 1)
        at.wait(1)
        # An authority that is written anew is another one.
        asked = len(server.asked)
        os.utime(os.path.join(self.folder, "root.crt"), (1, 1))
        hub.process.send_signal(signal.SIGHUP)
        self.assertEqual(hub.event("reloaded")["changed"], 1)
        hub.post(b"x")
        at.wait(2)
        self.assertEqual(len(server.asked), asked + 1)
        self.end(hub, server, {"a": 2})

    def test_a_server_may_not_be_where_targets_may_not_be(self):
        server = Server(self)
        target = self.target(server, self.leaf())
        target["url"] = "http://127.0.0.2:1/"
        target["oauth2"]["token-url"] = server.leaf.url("/", host="localhost")
        hub = self.start([target], egress={"deny": ["127.0.0.1/32", "::1/128"]})
        self.assertRegex(hub.event("token-failed")["detail"],
                         r"localhost.*127\.0\.0\.1")
        self.assertEqual(server.leaf.connections, 0)
        self.assertEqual(hub.stop(), 0)

    # -- what is shared ----------------------------------------------------------

    def test_targets_with_equal_settings_share_a_token(self):
        server, other = Server(self), Server(self)
        at = self.leaf(lambda r: 200 if server.check(r) or other.check(r)
                       else 401)
        hub = self.start([self.target(server, at, "a"),
                          self.target(server, at, "b"),
                          self.target(server, at, "c",
                                      oauth2={"scope": "other"}),
                          self.target(other, at, "d"),
                          {"name": "e", "url": self.leaf().url()}])
        for _ in range(10):
            hub.post(b"x")
        self.end(hub, server, dict.fromkeys("abcde", 10))
        self.assertEqual({form.get("scope") for form in server.asked},
                         {None, "other"})
        self.assertEqual(len(server.asked), 2)
        self.assertEqual(len(other.asked), 1)

    def test_defaults_and_a_target_without_a_token(self):
        server = Server(self)
        at, plain = self.guarded(server), self.leaf()
        oauth2 = self.target(server, at)["oauth2"]
        hub = self.start(
            [{"name": "a", "url": at.url()}, {"name": "b", "url": at.url()},
             {"name": "c", "url": plain.url(), "oauth2": {"grant": "none"}}],
            defaults={"oauth2": oauth2})
        hub.post(b"x")
        [request] = plain.wait(1)
        self.assertNotIn("authorization", request.headers)
        self.assertIsNone(self.look(hub, "c")["token"])
        self.end(hub, server, dict.fromkeys("abc", 1))
        self.assertEqual(len(server.asked), 1)

    def test_a_publisher_cannot_say_who_sends(self):
        server = Server(self)
        at, plain = self.guarded(server), self.leaf()
        hub = self.start([self.target(server, at),
                          {"name": "b", "url": plain.url()}],
                         listen={"address": "127.0.0.1:0", "headers": ["*"]})
        hub.post(b"x", Authorization="Bearer forged")
        [request], [other] = at.wait(1), plain.wait(1)
        self.assertNotIn("authorization", other.headers)
        self.assertEqual(len(request.headers["authorization"]), 1)
        self.end(hub, server, {"a": 1, "b": 1})

    # -- how it is replaced ------------------------------------------------------

    def test_tokens_are_replaced_ahead_of_their_end(self):
        """Each lives for a second, and the target never sees one that is over."""
        server = Server(self, life=1)
        at = self.guarded(server)
        refused = []
        at.answer = lambda r: 200 if server.check(r) else refused.append(r) or 401
        hub = self.start([self.target(server, at)])
        until, count = time.monotonic() + 6, 0
        while time.monotonic() < until:
            hub.post(b"x")
            count += 1
            time.sleep(0.005)
        self.end(hub, server, {"a": count})
        self.assertEqual(refused, [])
        self.assertGreaterEqual(len(server.asked), 8)
        self.assertLessEqual(len(server.asked), 20)
        self.assertEqual({r.attempt for r in at.receipts}, {1})

    def test_a_revoked_token_is_replaced_at_once(self):
        server = Server(self)
        at = self.guarded(server)
        hub = self.start([self.target(server, at)])
        hub.post(b"1")
        at.wait(1)
        server.revoke()
        for _ in range(20):
            hub.post(b"2")
        line = hub.event("token-refused")
        self.assertEqual(line["target"], "a")
        case.wait_for(lambda: self.look(hub, "a")["delivered"] == 21, "all")
        seen = self.look(hub, "a")
        self.assertEqual((seen["retries"], seen["failures"]), (0, 0))
        self.assertEqual(self.metrics(hub)["stagger_tokens_refused_total"], 1)
        self.end(hub, server, {"a": 21})
        self.assertEqual(len(server.asked), 2)
        # The attempt that was made again has the number that it had.
        self.assertEqual({r.attempt for r in at.receipts}, {1})

    def test_a_target_that_refuses_each_token_is_judged(self):
        """The attempt is made again once, and then the policy says what a 401 is;
        others that share the token go on, and the server is not stormed."""
        server = Server(self)
        at, strict = self.guarded(server), self.leaf(lambda r: 401)
        hub = self.start([self.target(server, at, "a"),
                          self.target(server, strict, "b")])
        for _ in range(20):
            hub.post(b"x")
        case.wait_for(lambda: len(self.rows()) == 20, "20 dead letters")
        case.wait_for(lambda: self.look(hub, "a")["delivered"] == 20, "20")
        self.assertEqual(hub.stop(), 0)
        self.assertEqual({(row["target"], row["http_status"], row["attempts"])
                          for row in self.rows()}, {("b", 401, 1)})
        self.assertLessEqual(len(server.asked), 3)
        tries = collections.Counter(r.id for r in strict.receipts)
        self.assertLessEqual(max(tries.values()), 2)

    # -- batches -----------------------------------------------------------------

    def test_a_batch_is_made_again_with_another_token(self):
        """All of it, and not message by message, as after another 401."""
        server = Server(self)
        at = self.guarded(server)
        hub = self.start([self.target(server, at, batch={
            "max": 5, "linger": "1s"})])
        hub.post(b"1")
        at.wait(1)
        server.revoke()
        for _ in range(5):
            hub.post(b"2")
        hub.event("token-refused")
        case.wait_for(lambda: self.look(hub, "a")["delivered"] == 6, "all")
        seen = self.look(hub, "a")
        self.assertEqual((seen["retries"], seen["failures"]), (0, 0))
        self.end(hub, server, {"a": 6})
        self.assertEqual(len(server.asked), 2)
        self.assertEqual({len(r.headers["authorization"]) for r in at.receipts},
                         {1})
        self.assertEqual(at.receipts[1].body, at.receipts[2].body)

    def test_a_batch_that_lost_its_token_while_it_lingered_waits(self):
        is_away = threading.Event()
        server = Server(self, life=4, answer=lambda number: (503, {})
                        if is_away.is_set() else None)
        at = self.guarded(server)
        hub = self.start([self.target(server, at, batch={
            "max": 5, "linger": "4s"})])
        case.wait_for(lambda: self.look(hub, "a")["token"]["is_usable"],
                      "a token")
        is_away.set()
        hub.post(b"1")
        case.wait_for(lambda: self.look(hub, "a")["in_flight"] == 1, "a batch")
        case.wait_for(lambda: self.look(hub, "a")["in_flight"] == 0, "its end")
        seen = self.look(hub, "a")
        self.assertEqual((seen["state"], seen["attempts"], at.receipts),
                         ("throttled", 0, []))
        is_away.clear()
        self.end(hub, server, {"a": 1})

    # -- without one -------------------------------------------------------------

    def closed(self, answer, words):
        """Nothing is tried, and nothing dies; and when there is a token, all is
        delivered."""
        is_well = threading.Event()
        server = Server(self, answer=lambda number: None if is_well.is_set()
                        else answer)
        at = self.guarded(server)
        hub = self.start([self.target(server, at)])
        hub.post(b"x")
        line = hub.event("token-failed")
        shown = server.leaf.url("/token?key=***")
        self.assertRegex(line["detail"], f"^token: {shown}: ".replace("?", r"\?")
                         .replace("*", r"\*") + words + "$")
        self.assertFalse(line["is_usable"])
        seen = self.look(hub, "a")
        self.assertEqual(seen["state"], "throttled")
        self.assertEqual(seen["token"], {"is_usable": False, "until": None,
                                         "cause": line["detail"]})
        self.assertEqual((seen["attempts"], at.receipts), (0, []))
        self.assertEqual(self.metrics(hub)["stagger_targets_without_token"], 1)
        is_well.set()
        hub.event("token-fetched")
        self.end(hub, server, {"a": 1})
        self.assertEqual([r.attempt for r in at.receipts], [1])

    def test_a_client_that_is_not_known(self):
        self.closed(Server.error(401, "invalid_client"),
                    r"answered 401 invalid_client \(no, \?\[1m\)")

    def test_a_server_that_fails(self):
        self.closed((500, {}, b"oops"), "answered 500")

    def test_a_server_that_redirects(self):
        self.closed((302, {"Location": "http://127.0.0.1:1/"}), "answered 302")

    def test_a_server_that_answers_nonsense(self):
        self.closed((200, {}, b"<html>"), "answered 200 without an object of JSON")

    def test_a_server_that_answers_too_much(self):
        self.closed((200, {}, b" " * 200_000), "answered 200 with more than 64 KiB")

    def test_a_token_that_would_be_a_header(self):
        self.closed((200, {}, b'{"access_token":"a\\r\\nX-A: b",'
                              b'"token_type":"Bearer"}'),
                    "answered 200 with an access_token that no header may have")

    def test_a_server_that_does_not_answer(self):
        self.closed(leaf.hang, ".*(timeout|in time|10 s).*")

    def test_a_server_that_is_away_at_the_start(self):
        server = Server(self)
        server.leaf.close()
        at = self.guarded(server)
        hub = self.start([self.target(server, at)])
        for _ in range(10):
            hub.post(b"x")
        self.assertRegex(hub.event("token-failed")["detail"], "refused")
        hub.event("token-failed")
        self.assertEqual(at.receipts, [])
        server.leaf.open()
        self.end(hub, server, {"a": 10})

    def test_a_token_that_ends_while_the_server_is_away(self):
        """It is used to its end, and then the lane waits; nor can its open
        circuit be probed."""
        is_away = threading.Event()
        server = Server(self, life=4, answer=lambda number: (503, {})
                        if is_away.is_set() else None)
        at = self.leaf(lambda r: 503)
        target = self.target(server, at)
        target["policy"] = ("fixed base=50ms jitter=none attempts=100 "
                            "deadline=none breaker=3:1m-1m")
        hub = self.start([target])
        case.wait_for(lambda: self.look(hub, "a")["token"]["is_usable"],
                      "a token")
        is_away.set()
        hub.post(b"x")
        hub.event("breaker-opened")
        self.assertTrue(hub.event("token-failed")["is_usable"])
        case.wait_for(lambda: not self.look(hub, "a")["token"]["is_usable"],
                      "the end of the token")
        self.assertEqual(self.look(hub, "a")["state"], "circuit-open")
        with contextlib.closing(http.client.HTTPConnection(
                "127.0.0.1", hub.port)) as connection:
            connection.request("POST", "/v1/targets/a/probe")
            answer = connection.getresponse()
            self.assertEqual(answer.status, 409)
            self.assertIn(b"no access token", answer.read())
        tries = len(at.receipts)
        at.answer = lambda r: 200 if server.check(r) else 401
        is_away.clear()
        hub.event("token-fetched")
        self.assertEqual(len(at.receipts), tries)
        with contextlib.closing(http.client.HTTPConnection(
                "127.0.0.1", hub.port)) as connection:
            connection.request("POST", "/v1/targets/a/probe")
            self.assertEqual(connection.getresponse().status, 200)
        self.end(hub, server, {"a": 1})

    def test_a_server_that_asks_to_wait(self):
        first = []
        def answer(number):
            if number == 1:
                first.append(time.monotonic())
                return 503, {"Retry-After": "3"}
            self.assertGreaterEqual(time.monotonic() - first[0], 2.9)
            return None
        server = Server(self, answer=answer)
        at = self.guarded(server)
        hub = self.start([self.target(server, at)])
        hub.post(b"x")
        self.end(hub, server, {"a": 1})
        self.assertEqual(len(server.asked), 2)

    def test_a_stop_does_not_wait_for_a_server(self):
        server = Server(self, answer=lambda number: leaf.hang)
        hub = self.start([self.target(server, self.leaf())])
        server.leaf.wait(1)
        before = time.monotonic()
        self.assertEqual(hub.stop(), 0)
        self.assertLess(time.monotonic() - before, 5)

    def test_the_alert_says_what_the_server_says(self):
        """In words, once for each target; and when it is over."""
        is_well = threading.Event()
        server = Server(self, answer=lambda number: None if is_well.is_set()
                        else Server.error(401, "invalid_client"))
        at, told = self.guarded(server), self.leaf()
        hub = self.start(
            [self.target(server, at, "a"), self.target(server, at, "b")],
            alerts={"group-wait": "200ms", "min-interval": "0",
                    "resolve-after": "0", "send-resolved": True,
                    "receivers": [{"name": "ops", "type": "webhook",
                                   "url": told.url()}]})
        hub.post(b"x")
        began = json.loads(told.wait(1)[0].body)["alerts"]
        self.assertEqual({one["target"] for one in began}, {"a", "b"})
        for one in began:
            self.assertEqual((one["alert"], one["phase"], one["state"]),
                             ("token", "began", "throttled"))
            self.assertRegex(one["summary"],
                             r"nothing can be sent, for want of an access token: "
                             r"token: http://127\.0\.0\.1:\d+/token\?key=\*\*\*: "
                             r"answered 401 invalid_client")
            self.assertIn("no attempt is counted", one["hub_does"])
        with urllib.request.urlopen(
                f"http://127.0.0.1:{hub.port}/v1/status") as answer:
            self.assertEqual(json.load(answer)["alerts"]["firing"], {"token": 2})
        is_well.set()
        ended = json.loads(told.wait(2)[1].body)["alerts"]
        self.assertEqual({(one["target"], one["alert"], one["phase"])
                          for one in ended},
                         {("a", "token", "ended"), ("b", "token", "ended")})
        self.end(hub, server, {"a": 1, "b": 1})

    # -- other settings ----------------------------------------------------------

    def test_a_reload_takes_a_secret_that_has_changed(self):
        server = Server(self, secret="new")
        at = self.guarded(server)
        self.put("secret", "old")
        made = [self.target(server, at, oauth2={
            "client-secret": {"file": "secret"}})]
        hub = self.start(made)
        hub.post(b"x")
        self.assertRegex(hub.event("token-failed")["detail"], "invalid_client")
        self.put("secret", "new")
        hub.process.send_signal(signal.SIGHUP)
        self.assertEqual(hub.event("reloaded")["changed"], 1)
        case.wait_for(lambda: self.look(hub, "a")["delivered"] == 1, "a delivery")
        # What has not changed keeps its token.
        asked = len(server.asked)
        hub.process.send_signal(signal.SIGHUP)
        self.assertEqual(hub.event("reloaded")["same"], 1)
        hub.post(b"x")
        at.wait(2)
        self.assertEqual(len(server.asked), asked)
        # Without `oauth2` there is none, and with it there is one again.
        plain = {"name": "a", "url": at.url("/a"), "policy": made[0]["policy"]}
        self.write([plain])
        hub.process.send_signal(signal.SIGHUP)
        hub.event("reloaded")
        at.answer = lambda r: 200
        hub.post(b"x")
        self.assertNotIn("authorization", at.wait(3)[2].headers)
        at.answer = lambda r: 200 if server.check(r) else 401
        self.write([*made, self.target(server, at, "b", oauth2={
            "client-secret": {"file": "secret"}})])
        hub.process.send_signal(signal.SIGHUP)
        hub.event("reloaded")
        hub.post(b"x")
        self.end(hub, server, {"a": 4, "b": 1})
        self.assertEqual(len(server.asked), asked + 1)

    def test_secrets_are_not_shown(self):
        server = Server(self)
        path = self.write([self.target(server, self.leaf())])
        told = subprocess.run([STAGGER, "check", "-c", path], text=True,
                              capture_output=True, timeout=60)
        self.assertEqual(told.returncode, 0, told.stderr)
        self.assertNotIn(SECRET, told.stdout + told.stderr)


class ByCall(targets.Targets):
    """Targets by API: written, never read back."""

    def test_secrets_are_written_and_never_read(self):
        server = Server(self)
        a, b = self.leaf(), self.leaf(lambda r: 200 if server.check(r) else 401)
        hub = self.start({"a": a.url()})
        body = {"name": "b", "url": b.url(), "oauth2": {
            "token-url": server.url, "client-id": "hub", "client-secret": SECRET}}
        made = self.good(201, hub, "POST", body=body)
        self.assertEqual(made.json["settings"]["oauth2"]["client-secret"], "***")
        hub.post(b"1")
        b.wait(1)
        kept = self.good(200, hub, "GET", "/b").json["settings"]
        self.assertEqual(kept["oauth2"]["client-secret"], "***")
        kept["oauth2"]["scope"] = "more"
        self.good(200, hub, "PUT", "/b", body=kept)
        hub.post(b"2")
        b.wait(2)
        self.assertEqual(server.asked[-1]["scope"], "more")
        self.assertEqual(hub.stop(), 0)
        with open(self.store, "rb") as store:
            self.assertNotIn(SECRET.encode(), store.read())
        hub = self.start()
        hub.post(b"3")
        b.wait(3)
        self.good(200, hub, "PATCH", "/b", body={"oauth2": None})
        b.answer = lambda r: 200
        hub.post(b"4")
        self.assertNotIn("authorization", b.wait(4)[3].headers)
        self.assertEqual(hub.stop(), 0)
        self.assertEqual(server.mistakes, [])
        self.assertNotIn(SECRET, json.dumps(hub.lines) + str(hub.noise))

    def test_a_key_is_a_text_of_several_lines(self):
        server = Server(self)
        b = self.leaf(lambda r: 200 if server.check(r) else 401)
        server.public = os.path.join(self.folder, "pub")
        key = subprocess.run(["openssl", "genpkey", "-algorithm", "ed25519"],
                             capture_output=True, check=True).stdout
        subprocess.run(["openssl", "pkey", "-pubout", "-out", server.public],
                       input=key, check=True)
        hub = self.start({})
        body = {"name": "b", "url": b.url(), "oauth2": {
            "token-url": server.url, "client-id": "hub", "key-id": "k1",
            "private-key": key.decode()}}
        made = self.good(201, hub, "POST", body=body)
        self.assertEqual(made.json["settings"]["oauth2"]["private-key"], "***")
        hub.post(b"1")
        b.wait(1)
        body["oauth2"]["private-key"] = "no key"
        refused = self.call(hub, "PUT", "/b", body=body)
        self.assertEqual(refused.status, 422, refused)
        self.assertEqual(refused.json["errors"][0]["pointer"],
                         "/oauth2/private-key")
        self.assertEqual(hub.stop(), 0)


if __name__ == "__main__":
    case.main()
