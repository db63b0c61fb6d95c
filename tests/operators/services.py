"""The other side of a hub: leaves, a proxy, a server of tokens, receivers of
alerts, a collector. One HTTP server plays all of them by the path, one does so
over TLS, and both keep the record that the hub is judged by.

A leaf's path is /BEHAVIOUR/TARGET. An act may give a target another behaviour,
and `calm` makes all of them well.
"""
import collections
import contextlib
import json
import os
import random
import threading
import time

import leaf
from endpoint import Certificates
from proxies import Proxy

OK = (200, {}, b"ok")
TOKEN = (200, {"Content-Type": "application/json"}, json.dumps(
    {"access_token": "t" * 40, "token_type": "Bearer",
     "expires_in": 30}).encode())
GARBAGE = [b"HTTP/9.9 what\r\n\r\n", b"\0\1\2\3" * 100,
           b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 7\r\n\r\nhello",
           b"HTTP/1.1 200 OK\r\n" + b"X-A: " + b"a" * 200000]


def after(seconds, status):
    def deed(connection, request):
        time.sleep(seconds)
        connection.send(leaf.told(status))
    return deed


class Receipt(collections.namedtuple(
        "Receipt", "at target ids status attempt")):
    """status: None where the answer was none."""


class Record:
    """Requests that came in, at all leaves."""

    def __init__(self):
        self.lock = threading.Lock()
        self.receipts = []
        self.alerts = []  # (time, body) of receivers of alerts
        self.seen = collections.Counter()  # requests by role

    def add(self, receipt):
        with self.lock:
            self.receipts.append(receipt)

    def delivered(self):
        """Target to the ids that were answered with a 2xx."""
        found = collections.defaultdict(set)
        with self.lock:
            for each in self.receipts:
                if each.status == 200:
                    found[each.target].update(each.ids)
        return found


class Services:
    def __init__(self, shared, seed):
        self.record = Record()
        self.is_calm = False
        self.turned = {}  # target to another behaviour
        self.rng = random.Random(seed)
        self.plain = leaf.Leaf(self.answer)
        self.secure = leaf.Leaf(self.answer, tls=shared.certificates.context())
        self.proxy = Proxy(user="hub:hush-7")
        self.hole = leaf.BlackHole()

    def words(self):
        """The texts that @NAME@ stands for."""
        refused = leaf.socket.socket()
        refused.bind(("127.0.0.1", 0))
        self.refused = refused
        return {"leaf": self.plain.url(""), "tls": self.secure.url("", "https"),
                "hole": self.hole.url(""),
                "refused": f"http://127.0.0.1:{refused.getsockname()[1]}",
                "proxy": self.proxy.proxy("hub:hush-7")}

    def close(self):
        for each in self.plain, self.secure, self.proxy, self.hole, self.refused:
            with contextlib.suppress(OSError):
                each.close()

    def answer(self, request):
        parts = request.path.split("?")[0].split("/")
        behaviour = parts[1] if len(parts) > 1 else ""
        role = getattr(self, "serve_" + behaviour, None)
        if role is not None:
            self.record.seen[behaviour] += 1
            return role(request)
        target = parts[2] if len(parts) > 2 else ""
        behaviour = self.turned.get(target, behaviour)
        return self.judge(request, target,
                          "ok" if self.is_calm else behaviour)

    def judge(self, request, target, behaviour):
        status, deed = self.deed(behaviour)
        ids = (request.one("stagger-messages") or request.id or "").split(", ")
        self.record.add(Receipt(request.at, target, ids, status,
                                request.attempt))
        return deed

    def deed(self, behaviour):
        """200 where the hub may take it for delivered, another status, or None
        where there is none; and what to do."""
        if behaviour == "flaky":
            behaviour = self.rng.choice(["ok", "ok", "ok", "500", "reset"])
        if behaviour == "any":
            behaviour = self.rng.choice(list(BEHAVIOURS))
        make = BEHAVIOURS.get(behaviour, BEHAVIOURS["ok"])
        return make(self.rng)

    # -- other roles

    def serve_token(self, _):
        if not self.is_calm and self.rng.random() < 0.2:
            return 500
        return TOKEN

    def serve_traces(self, _):
        return self.rng.choice([200, 200, 503]) if not self.is_calm else 200

    def serve_alerts(self, request):
        with contextlib.suppress(ValueError):
            self.record.alerts.append((request.at, json.loads(request.body)))
        return 202

    def serve_broken(self, _):
        """A receiver of alerts in trouble."""
        return self.deed(self.rng.choice(["500", "hang", "reset", "garbage"]))[1]


def status(code, headers=(), body=b""):
    return lambda rng: (code, (code, dict(headers), body))


BEHAVIOURS = {
    "ok": lambda rng: (200, OK),
    "created": lambda rng: (200, (201, {}, b"")),
    "large": lambda rng: (200, (200, {}, b"a" * 200000)),
    "500": status(500, body=b"sorry"),
    "404": status(404),
    "429": status(429, {"Retry-After": "1"}),
    "busy": status(503, {"Retry-After": "1"}),
    "moved": status(302, {"Location": "http://127.0.0.1:1/"}),
    "slow": lambda rng: (200, after(0.05 + rng.random() * 0.3, 200)),
    "late": lambda rng: (200, after(1.5, 200)),
    "hang": lambda rng: (None, leaf.hang),
    "reset": lambda rng: (None, leaf.reset),
    "close": lambda rng: (None, leaf.close),
    "half": lambda rng: (200, leaf.then_hang(
        b"HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\nhalf")),
    "garbage": lambda rng: (None, rng.choice(GARBAGE)),
}


class Shared:
    """Certificates and tokens, which take long to make: runs of one process
    share them."""

    def __init__(self, folder):
        self.folder = folder
        self.certificates = Certificates(folder)
        self.certificates.sign("server", "DNS:leaf.internal,DNS:localhost,"
                                         "IP:127.0.0.1")
        self.certificates.sign("renewed", "DNS:leaf.internal,DNS:localhost,"
                                          "IP:127.0.0.1")

    def names(self):
        return [name for name in os.listdir(self.folder)
                if name.endswith((".crt", ".key"))]
