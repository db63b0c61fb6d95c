#!/usr/bin/env python3
"""Targets behind a forward proxy: each request goes through it by CONNECT, a proxy
that is away or refuses the hub holds its targets and costs no attempt, and what it
says about a target is the target's fault. And the address that connections come
from."""
import base64
import contextlib
import json
import os
import socket
import sqlite3
import ssl
import subprocess
import threading
import time
import urllib.request

import case
from case import PATIENCE, STAGGER
from endpoint import Certificates
from leaf import Leaf, then_close, then_hang, told
from targets import Targets

ONCE = "attempts=1 attempt-timeout=30s breaker=none"


class Proxy(Leaf):
    """A strict one: what is no CONNECT with a Host is a mistake of the hub, and so
    are bytes behind it before the answer. Whatever host is asked for, it connects
    to 127.0.0.1. say(request) may give another answer than a connection."""

    def __init__(self, user=None, say=lambda request: None):
        self.user, self.say, self.mistakes = user, say, []
        super().__init__(self.connect)

    def proxy(self, user=None):
        at = f"{user}@" if user is not None else ""
        return f"http://{at}127.0.0.1:{self.port}"

    def asked(self):
        with self.changed:
            return [r.path for r in self.receipts]

    def check(self, r):
        if r.line != f"CONNECT {r.path} HTTP/1.1" or \
                r.headers["host"] != [r.path] or \
                set(r.headers) - {"proxy-authorization"} != \
                {"host", "user-agent"}:
            self.mistakes.append(r.head)

    def is_known(self, r):
        given = "Basic " + base64.b64encode((self.user or "").encode()).decode()
        return self.user is None or r.headers["proxy-authorization"] == [given]

    def connect(self, r):
        self.check(r)
        if not self.is_known(r):
            return 407, {"Proxy-Authenticate": 'Basic realm="x"'}, b"who?"
        return self.say(r) or self.join

    def join(self, c, r):
        host, port = r.path.rsplit(":", 1)
        if peeked(c.socket):
            self.mistakes.append(b"bytes before the answer")
        try:
            up = socket.create_connection(("127.0.0.1", int(port)))
        except OSError:
            c.send(told(503))
            return
        c.send(b"HTTP/1.1 200 Connection established\r\n\r\n")
        threading.Thread(target=pump, args=(up, c.socket), daemon=True).start()
        pump(c.socket, up)
        c.is_over = True


def peeked(s):
    s.setblocking(False)
    try:
        return s.recv(1, socket.MSG_PEEK)
    except BlockingIOError:
        return b""
    finally:
        s.setblocking(True)


def pump(a, b):
    with contextlib.suppress(OSError):
        while piece := a.recv(1 << 16):
            b.sendall(piece)
    for s in (a, b):
        with contextlib.suppress(OSError):
            s.shutdown(socket.SHUT_RDWR)


class Base(Targets):
    def proxy(self, *arguments, **more):
        return self.kept(Proxy(*arguments, **more))

    def write(self, targets, **more):
        defaults = {"policy": ONCE, "timeouts": {"connect": "20s"},
                    **more.pop("defaults", {})}
        return self.put("hub.yaml", json.dumps(
            {"listen": {"address": "127.0.0.1:0"}, "log": {"level": "debug"},
             "secrets": {"key": self.keys}, "store": {"path": self.store},
             **more, "defaults": defaults, "targets": targets}))

    def begin(self, targets, before=(), **more):
        return self.hub(settings=self.write(targets, **more), before=before)

    def end_well(self, hub, *secrets):
        self.assertEqual(hub.stop(), 0, hub.noise)
        for secret in secrets:
            self.assertNotIn(secret, json.dumps(hub.lines) + str(hub.noise))
        self.books()

    def get(self, hub, path):
        with urllib.request.urlopen(f"http://127.0.0.1:{hub.port}{path}",
                                    timeout=PATIENCE) as answer:
            return answer.read().decode()

    def status(self, hub):
        return json.loads(self.get(hub, "/v1/status"))

    def seen(self, hub, name, **fields):
        """The first such line, whatever came before and behind it."""
        case.wait_for(lambda: hub.events(name, **fields), name)
        return hub.events(name, **fields)[0]

    def run_cli(self, *words, code=0):
        done = subprocess.run([STAGGER, *words], capture_output=True, text=True,
                              timeout=PATIENCE)
        self.assertEqual(done.returncode, code, done)
        return done.stdout + done.stderr


class Proxies(Base):
    # -- through it

    def test_http_and_https_pass_by_connect_and_keep_their_tunnels(self):
        certificates = Certificates(self.folder)
        certificates.sign("hooks", "DNS:hooks.invalid")
        tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        tls.load_cert_chain(certificates.path("hooks.crt"),
                            certificates.path("hooks.key"))
        plain, secure, proxy = self.leaf(), self.leaf(tls=tls), self.proxy()
        hub = self.begin([
            {"name": "plain", "url": plain.url("/a?b=c", host="hooks.invalid")},
            {"name": "secure", "url": secure.url(scheme="https",
                                                 host="hooks.invalid"),
             "tls": {"ca": certificates.path("root.crt")}}],
            defaults={"in-flight": 1, "proxy": proxy.proxy()})
        for i in range(5):
            hub.post(b"%d" % i)
            plain.wait(i + 1)
            secure.wait(i + 1)
        for leaf in (plain, secure):
            self.assertEqual([r.body for r in leaf.wait(5)],
                             [b"%d" % i for i in range(5)])
            self.assertEqual({r.attempt for r in leaf.receipts}, {1})
            self.assertEqual(leaf.connections, 1)
        self.assertEqual(plain.receipts[0].line, "POST /a?b=c HTTP/1.1")
        self.assertEqual(plain.receipts[0].one("host"),
                         f"hooks.invalid:{plain.port}")
        self.assertNotIn("proxy-authorization", plain.receipts[0].headers)
        self.assertEqual(sorted(proxy.asked()),
                         sorted([f"hooks.invalid:{plain.port}",
                                 f"hooks.invalid:{secure.port}"]))
        self.assertEqual(proxy.mistakes, [])
        self.end_well(hub)

    def test_a_target_may_have_none_and_the_environment_has_no_word(self):
        direct, through = self.leaf(), self.leaf()
        proxy, other = self.proxy(), self.proxy()
        names = ("http_proxy", "https_proxy", "HTTP_PROXY", "ALL_PROXY")
        hub = self.begin(
            [{"name": "direct", "url": direct.url(), "proxy": "none"},
             {"name": "through", "url": through.url()}],
            before=["env", *(f"{name}={other.proxy()}" for name in names)],
            defaults={"proxy": proxy.proxy()})
        hub.post(b"x")
        direct.wait(1)
        through.wait(1)
        self.assertEqual(proxy.asked(), [f"127.0.0.1:{through.port}"])
        self.assertEqual(other.connections, 0)
        self.end_well(hub)

    # -- the password

    def test_a_password_of_a_file_is_shown_nowhere_and_read_again(self):
        leaf, proxy = self.leaf(), self.proxy(user="hub:hush%3a")
        proxy.user = "hub:hush:"
        self.put("proxy.url", proxy.proxy("hub:wrong1") + "\n")
        hub = self.begin([{"name": "a", "url": leaf.url(),
                           "proxy": {"file": "proxy.url"}}])
        hub.post(b"x")
        down = self.seen(hub, "proxy-down")
        self.assertEqual(down["proxy"], f"127.0.0.1:{proxy.port}")
        self.assertEqual(down["detail"], f"proxy 127.0.0.1:{proxy.port} asks "
                                         "for authorisation (407)")
        self.assertEqual(self.rows(), [])
        self.put("proxy.url", proxy.proxy("hub:hush%3a"))
        self.reload(hub)
        request, = leaf.wait(1)
        self.assertEqual(request.attempt, 1)
        self.seen(hub, "proxy-up")
        self.end_well(hub, "hush", "wrong1", base64.b64encode(
            b"hub:hush:").decode())
        self.assertEqual(self.rows(), [])
        self.assertEqual(proxy.mistakes, [])

    def test_a_call_gives_a_password_that_is_masked_and_encrypted(self):
        leaf, proxy = self.leaf(), self.proxy(user="hub:hush")
        hub = self.begin([])
        tag = self.good(201, hub, "POST", body={
            "name": "a", "url": leaf.url(), "proxy": proxy.proxy("hub:hush"),
            "policy": ONCE}).tag
        masked = proxy.proxy("***")
        self.assertEqual(
            self.good(200, hub, "GET", "/a").json["settings"]["proxy"], masked)
        # What was read can be put back.
        tag = self.good(200, hub, "PUT", "/a", {
            "url": leaf.url(), "proxy": masked, "policy": ONCE},
            if_match=tag).tag
        refused = self.call(hub, "PUT", "/a", {
            "url": leaf.url(), "proxy": "http://***@127.0.0.1:1"}, if_match=tag)
        self.assertEqual(refused.status, 422, refused)
        self.assertEqual(refused.json["errors"][0]["pointer"], "/proxy")
        refused = self.call(hub, "PATCH", "/a", {
            "proxy": "http://hub:hush@[fe80::1]:1"}, if_match=tag)
        self.assertEqual(refused.status, 422, refused)
        self.assertNotIn("hush", str(refused))
        hub.kill()
        with open(self.store, "rb") as file:
            self.assertNotIn(b"hush", file.read())
        hub = self.hub(settings=self.path_of_settings())
        hub.post(b"x")
        leaf.wait(1)
        self.end_well(hub, "hush")

    def path_of_settings(self):
        return os.path.join(self.folder, "hub.yaml")

    # -- it is away

    def test_that_is_away_holds_its_targets_and_no_attempt_is_counted(self):
        leaves, direct = [self.leaf() for _ in "abcd"], self.leaf()
        proxy = self.proxy()
        proxy.close()
        hub = self.begin(
            [{"name": f"t{i}", "url": leaf.url()}
             for i, leaf in enumerate(leaves)] +
            [{"name": "direct", "url": direct.url(), "proxy": "none"}],
            defaults={"proxy": proxy.proxy()})
        for i in range(20):
            hub.post(b"%d" % i)
        direct.wait(20)
        down = self.seen(hub, "proxy-down")
        self.assertEqual(down["detail"], f"connect proxy 127.0.0.1:{proxy.port}"
                                         ": connection refused")
        failed = self.seen(hub, "attempt-failed", cause="PROXY_UNAVAILABLE")
        self.assertEqual((failed["decision"], failed["why"]),
                         ("put-back", "gate"))
        case.wait_for(lambda: self.status(hub)["proxies_down"][0]
                      ["waiting_targets"] == 4, "four targets that wait")
        seen = self.status(hub)["proxies_down"][0]
        self.assertEqual((seen["proxy"], seen["detail"]),
                         (f"127.0.0.1:{proxy.port}", down["detail"]))
        self.assertFalse(self.status(hub)["uplink"]["is_down"])
        self.assertIn("\nstagger_proxies_down 1\n", self.get(hub, "/metrics"))
        shown = self.run_cli("status", "--hub",
                             f"http://127.0.0.1:{hub.port}")
        self.assertIn(f"proxy 127.0.0.1:{proxy.port} is away: 4 targets wait, "
                      "uncounted", shown)
        proxy.open()
        for leaf in leaves:
            got = leaf.wait(20)
            self.assertEqual(sorted(int(r.body) for r in got), list(range(20)))
            self.assertEqual({r.attempt for r in got}, {1})
        self.assertEqual(len(hub.events("proxy-down")), 1)
        up = self.seen(hub, "proxy-up")
        self.assertEqual(up["proxy"], down["proxy"])
        self.assertEqual(self.status(hub)["proxies_down"], [])
        self.end_well(hub)
        self.assertEqual(self.rows(), [])

    def test_that_is_away_is_an_alert_with_its_cause(self):
        receiver, leaf, proxy = self.leaf(), self.leaf(), self.proxy(user="a:b")
        other = self.proxy()
        hub = self.begin(
            [{"name": "a", "url": leaf.url(), "proxy": proxy.proxy("a:x")}],
            alerts={"group-wait": "100ms", "min-interval": "0",
                    "resolve-after": "0",
                    "receivers": [{"name": "ops", "type": "webhook",
                                   "url": receiver.url(host="ops.invalid"),
                                   "proxy": other.proxy()}]})
        hub.post(b"x")
        alert, = json.loads(receiver.wait(1)[0].body)["alerts"]
        self.assertEqual((alert["alert"], alert["phase"]), ("store", "began"))
        self.assertIn("a proxy of the hub is away, or refuses it: proxy "
                      f"127.0.0.1:{proxy.port} asks for authorisation (407)",
                      alert["summary"])
        proxy.user = "a:x"
        leaf.wait(1)
        alert, = json.loads(receiver.wait(2)[1].body)["alerts"]
        self.assertEqual(alert["phase"], "ended")
        self.assertEqual(set(other.asked()), {f"ops.invalid:{receiver.port}"})
        self.assertEqual(other.mistakes, [])
        self.end_well(hub)

    def test_that_is_away_disables_no_target(self):
        leaf = self.leaf(lambda r: 404)
        proxy = self.proxy()
        targets = [{"name": "a", "url": leaf.url(), "disable-after": "5d",
                    "proxy": proxy.proxy()}]
        hub = self.begin(targets)
        hub.post(b"x")
        self.await_settled(1)
        self.end_well(hub)
        proxy.close()
        # Its first failure was long ago.
        with contextlib.closing(sqlite3.connect(self.store)) as db:
            db.execute("UPDATE lanes SET failing_since = ? WHERE name = 'a'",
                       (int((time.time() - 6 * 86400) * 1000),))
            db.commit()
        hub = self.begin(targets)
        for _ in range(4):
            hub.post(b"y")
        self.seen(hub, "proxy-down")
        # A probe a second: more than ten, and a look behind them.
        time.sleep(22)
        self.assertEqual(hub.events("target-disabled"), [])
        self.assertGreater(self.failures(hub), 10)
        proxy.open()
        leaf.wait(5)
        self.end_well(hub)

    def failures(self, hub):
        target, = json.loads(self.get(hub, "/v1/targets"))["targets"]
        return target["failures"]

    def test_that_breaks_off_is_no_fault_of_the_target(self):
        says = [then_close(), then_close(b"HTTP/1.1 200 O"),
                lambda c, r: c.reset(), b"SSH-2.0-OpenSSH_9\r\n",
                b"HTTP/1.1 200 OK\r\n\r\n+OK hello\r\n",
                b"HTTP/1.1 200 OK\r\nA: " + b"a" * (80 << 10), 407, 429]
        left = list(says)
        leaf = self.leaf()
        proxy = self.proxy(say=lambda r: left.pop(0) if left else None)
        hub = self.begin([{"name": "a", "url": leaf.url(),
                           "proxy": proxy.proxy()}])
        hub.post(b"x")
        request, = leaf.wait(1)
        self.assertEqual(request.attempt, 1)
        self.assertEqual(len(proxy.asked()), len(says) + 1)
        self.end_well(hub)
        self.assertEqual(self.rows(), [])

    def test_that_hangs_is_judged_by_its_other_targets(self):
        leaf = self.leaf()
        proxy = self.proxy(say=lambda r: then_hang() if r.path.startswith("far")
                           else None)
        hub = self.begin([
            {"name": "near", "url": leaf.url(), "connections": {"idle-max": 0}},
            {"name": "far", "url": "http://far.invalid:1/",
             "timeouts": {"connect": "500ms"}}],
            defaults={"proxy": proxy.proxy()})
        for i in range(4):
            hub.post(b"%d" % i)
            leaf.wait(i + 1)
            time.sleep(0.4)
        dead = self.seen(hub, "attempt-failed", decision="dead", target="far")
        self.assertEqual(dead["cause"], "CONNECT_TIMEOUT")
        self.assertEqual(dead["detail"],
                         "CONNECT far.invalid:1 by proxy 127.0.0.1:"
                         f"{proxy.port}: no answer within 500 ms")
        self.assertEqual(hub.stop(), 0)

    # -- what it says of the target

    def test_its_status_is_the_targets_fault(self):
        causes = {500: "HOST_UNREACHABLE", 502: "HOST_UNREACHABLE",
                  503: "HOST_UNREACHABLE", 504: "HOST_UNREACHABLE",
                  403: "EGRESS_FORBIDDEN", 404: "PROTOCOL_ERROR",
                  302: "PROTOCOL_ERROR"}
        proxy = self.proxy(say=lambda r: int(r.path.split(".")[0][1:]))
        hub = self.begin([{"name": f"t{status}",
                           "url": f"http://t{status}.invalid/",
                           "policy": "attempts=3 fixed base=1ms jitter=none "
                                     "retry=any breaker=none"}
                          for status in causes],
                         defaults={"proxy": proxy.proxy()})
        hub.post(b"x")
        self.await_settled(len(causes))
        rows = {row["target"]: row for row in self.rows()}
        for status, cause in causes.items():
            row = rows[f"t{status}"]
            self.assertEqual(row["cause"], cause)
            self.assertEqual(row["attempts"], 1 if status == 403 else 3)
            self.assertIsNone(row["http_status"])
            self.assertIn(f"to t{status}.invalid:80 ({status})", row["detail"])
            self.assertIn(f"proxy 127.0.0.1:{proxy.port} ", row["detail"])
        self.assertEqual(hub.events("proxy-down"), [])
        self.end_well(hub)

    # -- addresses

    def test_an_address_is_checked_here_and_a_name_there(self):
        leaf, proxy = self.leaf(), self.proxy()
        targets = [{"name": "name", "url": leaf.url(host="meta.invalid")}]
        bad = {"name": "bad", "url": "http://169.254.169.254/"}
        path = self.write(targets + [bad], defaults={"proxy": proxy.proxy()})
        words = self.run_cli("check", path, code=2)
        self.assertIn("metadata address", words)
        path = self.write(targets,
                          defaults={"proxy": "http://169.254.1.1:3128"})
        words = self.run_cli("check", path, code=2)
        self.assertIn("`proxy`: the hub may not connect to its address", words)
        hub = self.begin(targets, defaults={"proxy": proxy.proxy()})
        hub.post(b"x")
        leaf.wait(1)
        self.assertEqual(proxy.asked(), [f"meta.invalid:{leaf.port}"])
        self.end_well(hub)

    def test_connections_come_from_the_source_address(self):
        came = []
        leaf, proxy = self.leaf(early=lambda c: came.append(
            c.socket.getpeername()[0])), self.proxy()
        proxy.early = lambda c: came.append(c.socket.getpeername()[0])
        hub = self.begin([
            {"name": "a", "url": leaf.url(), "source-address": "127.0.0.2"},
            {"name": "b", "url": "http://b.invalid:1/",
             "source-address": "127.0.0.3", "proxy": proxy.proxy()},
            {"name": "c", "url": leaf.url("/c"), "source-address": "none"}],
            defaults={"source-address": "127.0.0.4"})
        hub.post(b"x")
        leaf.wait(2)
        proxy.wait(1)
        self.assertEqual(sorted(came), ["127.0.0.1", "127.0.0.2", "127.0.0.3"])
        self.assertEqual(hub.stop(), 0)

    def test_a_source_address_that_is_not_here_is_refused(self):
        path = self.write([{"name": "a", "url": "http://127.0.0.1:1/",
                            "source-address": "192.0.2.1"}])
        words = self.run_cli("check", path, code=2)
        self.assertIn("`source-address`: this machine has no address "
                      "192.0.2.1; expected one that it has", words)
        hub = self.begin([])
        refused = self.call(hub, "POST", body={
            "name": "a", "url": "http://127.0.0.1:1/",
            "source-address": "192.0.2.1"})
        self.assertEqual(refused.status, 422, refused)
        self.assertEqual(refused.json["errors"][0]["pointer"],
                         "/source-address")
        self.assertEqual(hub.stop(), 0)


if __name__ == "__main__":
    case.main()
