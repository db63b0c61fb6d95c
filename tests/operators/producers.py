"""Producers of every kind of message that the ingress takes, and of some that it
refuses. `accepted` has all that was answered with a 202, which is never lost."""
import base64
import contextlib
import hashlib
import hmac
import http.client
import json
import random
import socket
import threading
import time

from house import Failure

THREADS = 3
SECRET = "whsec_" + base64.b64encode(bytes(range(32))).decode()
WORD = "0123456789abcdef0123456789abcdef"
TYPES = ["order.paid", "order.sent", "order.lost"]


class Accepted:
    """begun: when its request began (monotonic)."""

    def __init__(self, id, begun):
        self.id, self.begun = id, begun


def plain(rng, number):
    return b"x" * rng.choice([0, 1, 100, 1000, 50000]), {}


def huge(rng, number):
    return bytes([65 + number % 26]) * rng.choice(
        [1000] * 8 + [300000, 1100000]), {}


def keyed(rng, number):
    return b"{}", {"Stagger-Key": f"k{rng.randrange(4)}",
                   "Content-Type": "application/json"}


def event(rng, number):
    body = json.dumps({"type": rng.choice(TYPES), "n": number, "user":
                       {"id": f"u{rng.randrange(5)}"}}).encode()
    return body, {"Content-Type": "application/json",
                  "X-Event": rng.choice(TYPES)}


def repeated(rng, number):
    n = rng.randrange(10)
    return b"r%d" % n, {"Idempotency-Key": f"r{n}"}


def binary(rng, number):
    return b'{"a": 1}', {
        "ce-specversion": "1.0", "ce-id": str(number), "ce-source": "/shop",
        "ce-type": rng.choice(TYPES), "Content-Type": "application/json"}


def structured(rng, number):
    return json.dumps({
        "specversion": "1.0", "id": str(number), "source": "/shop",
        "type": rng.choice(TYPES), "data": {"n": number}}).encode(), {
            "Content-Type": "application/cloudevents+json"}


def expiring(rng, number):
    return b"e", {"Stagger-Expires": rng.choice(["50ms", "1s", "1h"])}


def scheduled(rng, number):
    return b"s", {"Stagger-Not-Before": rng.choice(["50ms", "500ms", "1s"])}


def traced(rng, number):
    return b"t", {"traceparent": "00-" + "%032x" % rng.getrandbits(120)
                  + "-" + "%016x" % (rng.getrandbits(60) | 1) + "-01"}


def wrong(rng, number):
    return b"w", rng.choice([{"Stagger-Expires": "soon"},
                             {"Stagger-Key": "k" * 300},
                             {"Stagger-Hops": "9"},
                             {"Stagger-Keep": "Event-Type", "Event-Type": "x"}])


KINDS = {kind.__name__: kind for kind in (
    plain, huge, keyed, event, repeated, binary, structured, expiring, scheduled,
    traced, wrong)}


def line(rng, number):
    """Draws a line of a batch."""
    return rng.choice([
        {"body": "x" * rng.choice([0, 10, 2000])},
        {"json": {"type": rng.choice(TYPES), "n": number}},
        {"body_base64": "AAEC/w==", "key": f"k{rng.randrange(4)}"},
        {"body": "r", "idempotency_key": f"b{rng.randrange(20)}"},
        {"body": "h", "headers": {"X-Event": rng.choice(TYPES)}}])


def signed(scheme, body, rng):
    """Headers of a sender of webhooks."""
    id, at = f"msg_{rng.randrange(50)}", str(int(time.time()))
    if scheme == "github":
        digest = hmac.new(WORD.encode(), body, "sha256").hexdigest()
        return {"X-Hub-Signature-256": "sha256=" + digest,
                "X-GitHub-Delivery": id}
    if scheme == "stripe":
        digest = hmac.new(WORD.encode(), f"{at}.".encode() + body,
                          "sha256").hexdigest()
        return {"Stripe-Signature": f"t={at},v1={digest}"}
    if scheme == "custom":
        return {"X-At": at, "X-Delivery": id, "X-Signature": "sha256=" + hmac.new(
            WORD.encode(), f"{at}.".encode() + body, "sha256").hexdigest()}
    if scheme == "rfc9421":
        return {}  # refused, for nobody signs
    digest = hmac.new(base64.b64decode(SECRET[6:]),
                      f"{id}.{at}.".encode() + body, hashlib.sha256).digest()
    return {"Webhook-Id": id, "Webhook-Timestamp": at,
            "Webhook-Signature": "v1," + base64.b64encode(digest).decode()}


class Producers:
    """Publishing by calls, and in the background (`begin`)."""

    def __init__(self, house, seed):
        self.house, self.rng = house, random.Random(seed)
        self.accepted, self.statuses = [], {}
        self.bodies = {}  # ids to what was published under them
        self.lock = threading.Lock()
        self.number = 0
        self.threads, self.over = [], threading.Event()
        self.wrong = None

    def note(self, status, text, begun, bodies=()):
        with self.lock:
            self.statuses[status] = self.statuses.get(status, 0) + 1
            if status == 202:
                found = json.loads(text)
                ids = found.get("ids") or [found.get("id")]
                self.accepted += [Accepted(id, begun) for id in ids]
                self.name(ids, bodies)
            elif status >= 500 and status not in (503, 508):
                self.wrong = Failure("status", f"{status} to a publisher: "
                                     f"{text[:300]!r}")
        return status

    def name(self, ids, bodies):
        """Holds I11: an id never names two messages."""
        for id, body in zip(ids, bodies):
            body = str(body).encode()
            mark = hashlib.sha256(body).digest(), body[:60]
            if self.bodies.setdefault(id, mark) != mark:
                self.wrong = Failure("ids", f"I11: {id} is {self.bodies[id][1]!r} "
                                     f"and {body[:60]!r}")

    def send(self, path, body, headers, bodies=()):
        begun = time.monotonic()
        try:
            status, text = self.house.client.ask("POST", path, body, headers)
        except (OSError, http.client.HTTPException):
            return None  # the hub ended meanwhile, or was too slow for a client
        return self.note(status, text, begun, bodies)

    def publish(self, kind, hooks=()):
        """Sends one request; its status."""
        self.number += 1
        rng, number = self.rng, self.number
        if kind == "batch":
            lines = [line(rng, number) for _ in range(rng.choice([1, 5, 50]))]
            return self.send("/v1/messages/batch",
                             "\n".join(map(json.dumps, lines)).encode(),
                             {"Content-Type": "application/x-ndjson"},
                             list(map(str, lines)))
        if kind == "inbound":
            if not hooks:
                return None
            hook = rng.choice(list(hooks))
            body = json.dumps({"id": f"e{number}"}).encode()
            return self.send(f"/v1/in/{hook['name']}", body,
                             signed(hook["scheme"], body, rng))
        if kind == "cut":
            return self.cut()
        body, headers = KINDS[kind](rng, number)
        return self.send("/v1/messages", body, headers, [body])

    def cut(self):
        """A client that goes in the middle of its body."""
        with contextlib.suppress(OSError, http.client.HTTPException):
            connection = self.house.client.connect(5)
            connection.putrequest("POST", "/v1/messages")
            connection.putheader("Content-Length", "1000")
            connection.endheaders()
            connection.send(b"half")
            connection.sock.shutdown(socket.SHUT_WR)
            connection.close()

    def begin(self, kinds, rate, hooks):
        """Publishes in threads until end()."""
        def work():
            while not self.over.wait(THREADS / rate):
                if self.house.is_up:
                    with self.lock:
                        kind = self.rng.choice(kinds)
                    self.publish(kind, hooks())
        for _ in range(THREADS):
            thread = threading.Thread(target=work, daemon=True)
            thread.start()
            self.threads.append(thread)

    def end(self):
        self.over.set()
        for thread in self.threads:
            thread.join(30)
