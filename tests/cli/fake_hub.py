"""A server that answers as the admin interface of a hub does (docs/openapi.yaml),
with what its test says: for the commands that call it."""
import contextlib
import datetime
import http.server
import json
import pathlib
import re
import socketserver
import threading
import urllib.parse

import jsonschema
import yaml

HERE = pathlib.Path(__file__).resolve().parent


class Contract:
    """docs/openapi.yaml."""

    def __init__(self):
        text = (HERE.parent.parent / "docs/openapi.yaml").read_text()
        self.all = yaml.load(text, Loader=getattr(yaml, "CSafeLoader",
                                                  yaml.SafeLoader))
        self.parts = self.all["components"]

    def schema_of(self, method, path, status):
        for pattern, calls in self.all["paths"].items():
            if (method.lower() in calls and
                    re.fullmatch(re.sub(r"{\w+}", "[^/]+", pattern), path)):
                answer = calls[method.lower()]["responses"][str(status)]
                return answer["content"]["application/json"]["schema"]
        raise KeyError(path)


CONTRACT = Contract()

TARGET = {
    "name": "billing", "url": "http://10.0.0.1:8080/in", "is_known": True,
    "added_by": "settings",
    "is_paused_by_call": False, "is_disabled": False, "policy": "attempts=3", "state": "live",
    "gate_until": None, "token": None,
    "is_catching_up": False, "is_slow_start": False, "in_flight": 0,
    "in_flight_limit": 64, "waiting": 0, "parked": 0, "replays": 0,
    "routed": 1000, "delivered": 1000, "dead": 0, "cancelled": 0,
    "base_position": 1001, "next_position": 1001, "lag_messages": 0,
    "is_lag_exact": True, "lag_ms": None, "attempts": 1000, "failures": 0,
    "retries": 0, "p50_ms": 1.25, "p99_ms": 9.5, "last_cause": None,
    "last_failure_at": None, "last_failure_ms_ago": None,
    "state_since": "2026-01-02T03:04:05.678Z", "failing_since": None,
    "breaker": "closed", "probe_at": None, "openings": 0, "budget_left": 100,
    "budget_refused": 0, "tags": {},
}

STATUS = {
    "version": "0.1.0", "epoch": "00c0ffee00c0ffee",
    "started_at": "2026-03-01T00:00:00.000Z", "state": "ready",
    "missing": None, "accepted": 123456, "in_flight": 17,
    "window_messages": 12, "memory": {"held_bytes": 4 << 20,
                                      "max_bytes": 128 << 20},
    "targets": {"count": 0, "live": 0, "throttled": 0, "circuit-open": 0,
                "shedding": 0, "paused": 0, "orphaned": 0, "removing": 0},
    "store": {"used_bytes": 300 << 20, "quota_bytes": 1 << 30, "wal_bytes": 0,
              "message_bytes": 0, "dead_letter_bytes": 0, "first_position": 1,
              "next_position": 1001, "keys": 0},
    "ingress": dict.fromkeys(
        ["connections", "requests", "accepted", "repeats", "refused_4xx",
         "refused_5xx", "cut", "waiting", "pending_bytes"], 0),
    "source": {"kind": "queue", "is_away": False, "partitions": None},
    "replays_running": 0,
    "alerts": {"receivers": 0, "firing": {}},
    "uplink": {"is_down": False, "down_since": None, "waiting_targets": 0},
    "proxies_down": [],
}

LETTER = {
    "id": 42, "message_id": "00c0ffee00c0ffee-7", "target": "billing",
    "target_url": "http://10.0.0.1:8080/in", "state": "dead",
    "why": "attempts", "category": "B", "cause": "HTTP_503",
    "http_status": 503, "detail": "HTTP 503", "attempts": 3,
    "first_attempt_at": "2026-03-01T11:59:58.000Z",
    "last_attempt_at": "2026-03-01T12:00:00.000Z",
    "created_at": "2026-03-01T12:00:00.250Z",
    "changed_at": "2026-03-01T12:00:00.250Z", "topic": None, "partition": None,
    "position": 7,
    "last_position": None, "count": 1, "replay": 0, "payload_size": 12,
}


def target(name, **more):
    return {**TARGET, "name": name, **more}


def failed(cause, ms_ago):
    """The last failure was so long before the hub's clock said three."""
    at = datetime.datetime(2026, 3, 1, 3) - datetime.timedelta(
        milliseconds=ms_ago)
    return {"last_cause": cause, "last_failure_ms_ago": ms_ago,
            "last_failure_at": at.isoformat(timespec="milliseconds") + "Z"}


def letter(number, **more):
    return {**LETTER, "id": number, **more}


class Problem(Exception):
    def __init__(self, status, detail, title="Refused", **more):
        super().__init__(detail)
        self.status = status
        self.body = {"type": "about:blank", "title": title, "status": status,
                     "detail": detail, **more}


class FakeHub(socketserver.ThreadingMixIn, http.server.HTTPServer):
    """requests: method, path with its query, body; what came. Its clock goes on
    by a second with each look at the status, and by `delivers` the deliveries
    of each target that it names."""
    daemon_threads = True
    request_queue_size = 64

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.lock = threading.Lock()
        self.requests = []
        self.targets, self.letters = [], []
        self.status = dict(STATUS)
        self.delivers = {}
        self.looks = 0
        self.is_honest = True   # what it answers is as the contract has it
        self.token = None       # that is expected
        self.problem = None     # of the next answers: a function of a request
        self.replay = []        # changes of a replay, one an answer
        self.expired = self.forgotten = self.orphaned = self.paused = 0
        self.warnings = []      # of a reload
        self.page = 1000        # targets of an answer, at most
        threading.Thread(target=self.serve_forever, daemon=True).start()

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server_address[1]}"

    def close(self):
        self.shutdown()
        self.server_close()

    def check(self, method, path, status, value):
        """That what is answered is what the contract has."""
        if not self.is_honest:
            return
        schema = CONTRACT.schema_of(method, path, status)
        jsonschema.validate(value, {**schema, "components": CONTRACT.parts})

    # -- what there is

    def get_status(self):
        self.looks += 1
        for each in self.targets:
            each["delivered"] += self.delivers.get(each["name"], 0)
        minutes, seconds = divmod(self.looks, 60)
        return 200, {**self.status,
                     "now": f"2026-03-01T03:{minutes:02}:{seconds:02}.000Z"}

    def get_targets(self, query):
        begin = int(query.get("cursor", ["0"])[0])
        end = begin + min(self.page, int(query.get("limit", ["100"])[0]))
        return 200, {"targets": self.targets[begin:end],
                     "next": str(end) if end < len(self.targets) else None}

    def find(self, name):
        for each in self.targets:
            if each["name"] == name:
                return each
        raise Problem(404, f"there is no target {name}", "Not found")

    def change_target(self, name, what, query=""):
        found = self.find(name)
        if what == "forget":
            if found["is_known"]:
                raise Problem(409, f"{name}: the settings have it", "Conflict")
            if query:
                return 200, {"is_dry_run": True, "name": name,
                             "waiting": found["lag_messages"],
                             "parked": found["parked"], "in_flight": 0,
                             "dead_letters": found["dead"]}
            self.targets.remove(found)
            return 200, {"name": name}
        found["state"] = "paused" if what == "pause" else "live"
        return 200, found

    def change_letters(self, what, choice):
        found = [each for each in self.letters
                 if all(each[key] == value for key, value in choice.items()
                        if key in ("target", "cause", "category"))
                 and each["id"] in choice.get("ids", [each["id"]])]
        counts = {"letters": len(found), "expired": self.expired,
                  "forgotten": self.forgotten, "orphaned": self.orphaned,
                  "paused": self.paused,
                  "messages": sum(each["count"] for each in found)}
        if choice.get("dry_run"):
            return 200, {"is_dry_run": True, **counts, "sample": found[:10]}
        for each in found:
            self.letters.remove(each)
        if what == "drop":
            return 200, {"is_dry_run": False, **counts}
        none = dict.fromkeys(counts, 0)
        self.counts = counts
        self.asked = {"id": 5, "state": "running", "held": None, "recovered": None,
                      "who": None,
                      "started_at": "2026-03-01T03:00:00.000Z",
                      "ended_at": None, "found": len(found), **none}
        return 202, self.asked

    def get_letters(self, query):
        found = [each for each in self.letters
                 if [each["target"]] == query.get("target", [each["target"]])]
        return 200, {"dead_letters": found, "next": None}

    def get_letter(self, number):
        for each in self.letters:
            if each["id"] == int(number):
                return 200, {**each, "headers": None, "key": None,
                             "content_type": None, "source_key": None,
                             "answer": None, "payload": "x"}
        raise Problem(404, "there is no such dead letter", "Not found")

    def get_replay(self):
        if self.replay:
            self.asked = {**self.asked, **self.replay.pop(0)}
        elif self.asked["state"] == "running":
            self.asked = {**self.asked, "state": "done", **self.counts}
        return 200, self.asked

    def answer(self, method, path, body, token):
        url = urllib.parse.urlsplit(path)
        if self.problem is not None:
            found = self.problem(method, path)
            if found is not None:
                raise found
        if self.token is not None and token != f"Bearer {self.token}":
            raise Problem(401, "a token is needed", "Unauthorized")
        found = self.call(method, url, body)
        self.check(method, url.path, *found)
        return found

    def call(self, method, url, body):
        names = (r"GET /v1/status", r"GET /v1/targets",
                 r"GET /v1/targets/([^/]+)",
                 r"POST /v1/targets/([^/]+)/(pause|resume|forget)",
                 r"POST /v1/dead-letters/(replay|drop)",
                 r"GET /v1/replays/5", r"GET /v1/dead-letters",
                 r"GET /v1/dead-letters/(\d+)",
                 r"POST /v1/reload",
                 r"POST /v1/messages/[^/]+/resend")
        calls = (lambda: self.get_status(),
                 lambda: self.get_targets(urllib.parse.parse_qs(url.query)),
                 lambda name: (200, self.find(name)),
                 lambda name, what: self.change_target(
                     name, what, *filter(None, [url.query])),
                 lambda what: self.change_letters(what, json.loads(body)),
                 lambda: self.get_replay(),
                 lambda: self.get_letters(urllib.parse.parse_qs(url.query)),
                 self.get_letter,
                 lambda: (200, {"added": 3, "changed": 1, "gone": 0, "gone_targets": [],
                               "same": len(self.targets),
                               "warnings": self.warnings}),
                 lambda: (202, {"result": "due"}))
        for name, call in zip(names, calls):
            match = re.fullmatch(name, f"{method} {url.path}")
            if match:
                return call(*map(urllib.parse.unquote, match.groups()))
        raise Problem(404, "there is nothing here", "Not found")


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def handle_one(self):
        hub = self.server
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        with hub.lock:
            hub.requests.append((self.command, self.path, body.decode()))
            kind = "application/json"
            try:
                status, value = hub.answer(self.command, self.path, body,
                                           self.headers.get("Authorization"))
            except Problem as problem:
                status, value = problem.status, problem.body
                kind = "application/problem+json"
        text = value if isinstance(value, bytes) else json.dumps(value).encode()
        with contextlib.suppress(OSError):
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)

    do_GET = do_POST = handle_one
