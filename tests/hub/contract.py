#!/usr/bin/env python3
"""docs/openapi.yaml: that it is right in itself, that it has every path of the
hub, and that the hub does what it says, operation by operation.

Needs python3-yaml and python3-jsonschema.
"""
import collections
import contextlib
import glob
import hmac
import http.client
import json
import os
import re
import signal
import stat
import subprocess
import threading
import time
import warnings
import xml.etree.ElementTree

import jsonschema
import yaml

import case
from case import PATIENCE, STAGGER

warnings.simplefilter("ignore", DeprecationWarning)

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(
    os.path.abspath(__file__))))
METHODS = ("get", "post", "put", "delete", "patch")
ROLES = {"publish": {"publish"}, "view": {"view"},
         "operate": {"operate", "view"}}
NEVER = "00c0ffee00c0ffee-1"  # no message of this hub


class Spec:
    """The document, and its operations by their ids."""

    def __init__(self):
        with open(os.path.join(ROOT, "docs", "openapi.yaml")) as file:
            self.text = yaml.safe_load(file)
        self.resolver = jsonschema.RefResolver("", self.text)
        self.operations = {}
        for path, item in self.text["paths"].items():
            for method in METHODS:
                if method in item:
                    operation = dict(item[method], path=path,
                                     method=method.upper())
                    self.operations[operation["operationId"]] = operation

    def resolve(self, thing):
        while "$ref" in thing:
            _, thing = self.resolver.resolve(thing["$ref"])
        return thing

    def response(self, operation, status):
        found = operation["responses"].get(str(status))
        return None if found is None else self.resolve(found)

    def check(self, schema, value):
        jsonschema.Draft202012Validator(
            schema, resolver=self.resolver,
            format_checker=jsonschema.FormatChecker()).validate(value)

    def roles(self, operation):
        """Those one of which is needed; none: everybody may."""
        return {role for way in operation["security"]
                for role in way["token"]}


SPEC = Spec()


def walk(thing, path=()):
    yield path, thing
    if isinstance(thing, dict):
        for key, value in thing.items():
            yield from walk(value, path + (key,))
    elif isinstance(thing, list):
        for i, value in enumerate(thing):
            yield from walk(value, path + (i,))


# -- in itself -----------------------------------------------------------------

class Document(case.Case):
    def test_is_openapi_3_1(self):
        text = SPEC.text
        self.assertRegex(text["openapi"], r"^3\.1\.\d+$")
        self.assertLessEqual({"title", "version"}, text["info"].keys())
        self.assertLessEqual(text.keys(), {
            "openapi", "info", "servers", "security", "tags", "paths",
            "components"})

    def test_has_no_dead_end_and_nothing_unused(self):
        used = set()
        for path, thing in walk(SPEC.text):
            if path and path[-1] == "$ref":
                used.add(thing)
                with self.subTest(ref=thing):
                    SPEC.resolver.resolve(thing)
        for kind, components in SPEC.text["components"].items():
            for name in components:
                ref = f"#/components/{kind}/{name}"
                if kind != "securitySchemes" and name != "BatchLine":
                    self.assertIn(ref, used)

    def test_has_schemas_that_are_schemas(self):
        for path, thing in walk(SPEC.text):
            if path and path[-1] == "schema" or path[:2] == (
                    "components", "schemas") and len(path) == 3:
                with self.subTest(path=path):
                    jsonschema.Draft202012Validator.check_schema(thing)
        for name, schema in SPEC.text["components"]["schemas"].items():
            with self.subTest(schema=name):
                known = set(schema.get("properties", ()))
                self.assertLessEqual(set(schema.get("required", ())), known)

    def test_has_operations_that_are_whole(self):
        tags = {tag["name"] for tag in SPEC.text["tags"]}
        count = sum(method in item for item in SPEC.text["paths"].values()
                    for method in METHODS)
        self.assertEqual(count, len(SPEC.operations), "an id is there twice")
        for name, operation in SPEC.operations.items():
            with self.subTest(operation=name):
                self.assertTrue(operation["summary"])
                self.assertLessEqual(set(operation["tags"]), tags)
                self.assertLessEqual(SPEC.roles(operation), ROLES.keys())
                parameters = [SPEC.resolve(p)
                              for p in operation.get("parameters", ())]
                self.assertEqual(
                    {p["name"] for p in parameters if p["in"] == "path"},
                    set(re.findall(r"{(\w+)}", operation["path"])))
                for p in parameters:
                    self.assertIn("schema", p)
                    self.assertEqual(p.get("required", False),
                                     p["in"] == "path")
                self.check_responses(operation)

    def check_responses(self, operation):
        expected = {"401"} if SPEC.roles(operation) else set()
        if operation["path"] not in ("/healthz", "/readyz"):
            expected |= {"403", "429", "503"}
        if "{" in operation["path"] and "message" not in operation["path"]:
            expected.add("404")
        self.assertLessEqual(expected, operation["responses"].keys())
        for status in operation["responses"]:
            response = SPEC.response(operation, status)
            self.assertTrue(response["description"])
            if status >= "400":
                self.assertEqual(list(response["content"]),
                                 ["application/problem+json"])

    def test_has_every_path_of_the_hub(self):
        found = set()
        for name in glob.glob(os.path.join(ROOT, "src/**/*.c"),
                              recursive=True):
            with open(name) as file:
                text = file.read()
            if "stg_route" in text:
                found |= set(re.findall(
                    r'"(?:GET|POST)",\s*"(/[^"]*)"', text))
                found |= set(re.findall(
                    r'(?:LOOK|CHANGE)\("(/[^"]*)"', text))
                found |= set(re.findall(
                    r'WRITE\("[A-Z]+", "(/[^"]*)"', text))
        self.assertEqual(found, set(SPEC.text["paths"]))


# -- and the hub ---------------------------------------------------------------

class Answer:
    def __init__(self, answer):
        self.status, self.headers = answer.status, answer.headers
        self.type = (self.headers["Content-Type"] or "").split(";")[0]
        self.body = answer.read()
        self.json = json.loads(self.body) if "json" in self.type else None


class Api(case.Case):
    """Calls are made by the document, and what comes back is held against it.
    """
    called = {}  # what was answered, by operation

    def token(self, role, name=None):
        made = subprocess.run(
            [STAGGER, "token", "new", self.tokens, "--role", role,
             *(["--name", name] if name else [])],
            stdout=subprocess.PIPE, text=True, check=True, timeout=PATIENCE)
        return made.stdout.strip()

    def setUp(self):
        super().setUp()
        self.tokens = os.path.join(self.folder, "tokens")

    def ask(self, hub, which, /, token=None, body=None, type=None, query="",
            headers=(), **words):
        """The answer to the operation, which is as the document says."""
        operation = SPEC.operations[which]
        path = operation["path"].format(**words)
        headers = dict(headers)
        if token is not None:
            headers["Authorization"] = f"Bearer {token}"
        if isinstance(body, (dict, list)):
            body, type = json.dumps(body), "application/json"
        if type is not None:
            headers["Content-Type"] = type
        connection = http.client.HTTPConnection("127.0.0.1", hub.port,
                                                timeout=PATIENCE)
        with contextlib.closing(connection):
            connection.request(operation["method"], path + query, body, headers)
            answer = Answer(connection.getresponse())
        Api.called.setdefault(which, set()).add(answer.status)
        self.check(operation, answer)
        return answer

    def check(self, operation, answer):
        words = (f"{operation['operationId']}: {answer.status} "
                 f"{answer.body[:300]}")
        response = SPEC.response(operation, answer.status)
        self.assertIsNotNone(response, words)
        content = response.get("content", {})
        self.assertIn(answer.type, content, words)
        value = answer.json if answer.json is not None else answer.body.decode()
        try:
            SPEC.check(content[answer.type]["schema"], value)
        except jsonschema.ValidationError as wrong:
            raise AssertionError(f"{words}\n{wrong}") from None
        if answer.status in (429, 503):
            self.assertRegex(answer.headers["Retry-After"], r"^\d+$")
        if answer.status == 401 and operation["security"]:
            self.assertEqual(answer.headers["WWW-Authenticate"], "Bearer")

    def good(self, *arguments, status=200, **more):
        answer = self.ask(*arguments, **more)
        self.assertEqual(answer.status, status, answer.body)
        return answer.json

    def problem(self, status, words, /, *arguments, **more):
        answer = self.ask(*arguments, **more)
        self.assertEqual(answer.status, status, answer.body)
        self.assertIn(words, answer.json["detail"])
        self.assertNotEqual(answer.json["title"], "Error")
        return answer.json

    def until(self, claim, what):
        return case.wait_for(claim, what)


class Looking(Api):
    def test_publishing(self):
        hub = self.hub("--to", self.leaf().url())
        key = {"Idempotency-Key": "k"}
        first = self.good(hub, "publishMessage", body=b"a", headers=key,
                          status=202)
        again = self.ask(hub, "publishMessage", body=b"a", headers=key)
        self.assertEqual(again.json, first)
        self.assertEqual(again.headers["Stagger-Repeat"], "true")
        self.problem(409, "another message", hub, "publishMessage", body=b"b",
                     headers=key)
        ids = self.good(hub, "publishBatch", type="application/x-ndjson",
                        body='{"body": "a"}\n{"json": 1}\n', status=202)
        self.assertEqual(len(ids["ids"]), 2)
        self.problem(400, "line 1", hub, "publishBatch",
                     type="application/x-ndjson", body="{}\n")
        self.problem(415, "x-ndjson", hub, "publishBatch", body="{}\n")
        for line in ({"body": "a"}, {"json": [1]}, {"body_base64": "AA=="}):
            SPEC.check({"$ref": "#/components/schemas/BatchLine"}, line)

    def test_webhooks(self):
        secret, body = "a secret of 24 characters", b"a"
        path = os.path.join(self.folder, "hub.yaml")
        with open(path, "w") as file:
            json.dump({"listen": {"address": "127.0.0.1:0"},
                       "store": {"path": self.store},
                       "inbound": [{"name": "in", "scheme": "github",
                                    "secrets": [secret]}],
                       "targets": [{"name": "a", "url": self.leaf().url()}]},
                      file)
        hub = self.hub(settings=path)
        digest = hmac.new(secret.encode(), body, "sha256").hexdigest()
        signed = {"X-Hub-Signature-256": "sha256=" + digest,
                  "X-GitHub-Delivery": "1"}
        first = self.good(hub, "publishWebhook", body=body, headers=signed,
                          webhook="in", status=202)
        again = self.ask(hub, "publishWebhook", body=body, headers=signed,
                         webhook="in")
        self.assertEqual(again.json, first)
        self.assertEqual(again.headers["Stagger-Repeat"], "true")
        self.problem(401, "is not there", hub, "publishWebhook", body=body,
                     webhook="in")
        self.problem(404, "no such webhook", hub, "publishWebhook", body=body,
                     headers=signed, webhook="out")

    def test_health_and_metrics(self):
        hub = self.hub("--to", self.leaf().url())
        self.ask(hub, "getHealth")
        self.ask(hub, "getReadiness")
        self.assertIn(b"stagger_", self.ask(hub, "getMetrics").body)
        for name in ("getHealth", "getReadiness", "getMetrics", "getStatus"):
            self.problem(403, "another origin", hub, name,
                         headers={"Origin": "http://evil.example"})
            self.problem(403, "Host", hub, name,
                         headers={"Host": "evil.example"})

    def test_the_console(self):
        token = self.token("view", "viewer")
        hub = self.hub("--to", self.leaf().url(), "--token-file", self.tokens)
        self.assertIn(b"<title>stagger hub", self.ask(hub, "getConsole").body)
        for name in "console.css", "console.js":
            self.assertEqual(
                self.ask(hub, "getConsoleFile", name=name).status, 200)
        self.problem(404, "no such file", hub, "getConsoleFile", name="none")
        # Of a page that comes from the very host it asks, as the console does.
        own = {"Host": "hub.example:8080", "Origin": "https://hub.example:8080"}
        answer = self.ask(hub, "getToken", token=token, headers=own)
        self.assertEqual(answer.json, {"name": "viewer", "roles": ["view"]})
        own["Origin"] = "https://hub.example"
        self.problem(403, "another origin", hub, "getToken", token=token,
                     headers=own)

    def test_the_hub_as_a_whole(self):
        leaf = self.leaf()
        hub = self.hub("--to", leaf.url())
        message = hub.post(b"x")
        leaf.wait(1)
        status = self.until(lambda: self.looked(hub), "the message in the store")
        self.assertEqual(status["epoch"], message.split("-")[0])
        self.assertEqual(status["accepted"], 1)
        self.assertEqual(status["targets"]["count"], 1)
        self.assertEqual(status["state"], "ready")

    def looked(self, hub):
        """The status, once it knows of the first message."""
        status = self.good(hub, "getStatus")
        return status["store"]["next_position"] == 2 and status

    def test_targets_in_pages(self):
        targets = [f"t{i}={self.refused()}" for i in range(5)]
        hub = self.hub(*(w for t in targets for w in ("--to", t)))
        names, query, pages = [], "?limit=2", 0
        while query is not None:
            page = self.good(hub, "listTargets", query=query)
            names += [t["name"] for t in page["targets"]]
            query = (None if page["next"] is None
                     else f"?limit=2&cursor={page['next']}")
            pages += 1
        self.assertEqual(names, [f"t{i}" for i in range(5)])
        self.assertEqual(pages, 3)
        live = self.good(hub, "listTargets", query="?state=live")
        self.assertEqual(len(live["targets"]), 5)
        paused = self.good(hub, "listTargets", query="?state=paused")
        self.assertEqual(paused, {"targets": [], "next": None})
        for query in ("?limit=0", "?limit=1001", "?limit=x", "?limit=1x",
                      "?state=dead", "?cursor=none", "?nothing=1",
                      "?limit=1&limit=2"):
            self.assertEqual(self.ask(hub, "listTargets", query=query).status,
                             400, query)
        self.assertEqual(self.good(hub, "getTarget", name="t3")["name"], "t3")
        self.problem(404, "no target", hub, "getTarget", name="t9")

    def test_no_secret_of_a_url(self):
        """I23."""
        hub = self.hub("--to", "a=" + self.refused() + "?token=s3cret",
                       "--policy", "attempts=1")
        hub.post(b"x")
        self.until(lambda: self.good(hub, "listDeadLetters")["dead_letters"],
                   "a dead letter")
        self.assertIn("?token=***", self.good(hub, "getTarget", name="a")["url"])
        for name in ("listTargets", "listDeadLetters", "getStatus",
                     "getMetrics"):
            self.assertNotIn(b"s3cret", self.ask(hub, name).body)
        self.assertNotIn(b"s3cret", self.ask(hub, "getDeadLetter", id=1).body)

    def test_a_target_whose_books_balance(self):
        hub = self.hub("--to", f"a={self.leaf().url()}",
                       "--to", f"b={self.refused()}",
                       "--policy", "attempts=1")
        for _ in range(5):
            hub.post(b"x")

        def balanced(name, **expected):
            t = self.good(hub, "getTarget", name=name)
            self.assertEqual(t["routed"], t["delivered"] + t["dead"]
                             + t["cancelled"] + t["parked"] + t["waiting"]
                             + t["in_flight"], t)
            return expected.items() <= t.items()
        self.until(lambda: balanced("a", delivered=5, last_cause=None),
                   "five delivered")
        self.until(lambda: balanced("b", dead=5,
                                    last_cause="CONNECTION_REFUSED"),
                   "five dead")


    def test_why_there_was_no_answer(self):
        url = self.refused()
        hub = self.hub("--to", f"a={url}", "--policy", "none")
        hub.post(b"x")
        self.await_settled(1)
        last, = self.good(hub, "listLastAttempts", name="a")["attempts"]
        self.assertEqual((last["http_status"], last["answer"]), (None, ""))
        self.assertRegex(last["detail"],
                         r"^connect 127\.0\.0\.1:\d+: connection refused$")

    def test_what_a_target_did(self):
        answers = iter([(200, (), b"thanks"), (503, (), b"no <b>room</b>"),
                        (400, (), b"\xff\0")])
        leaf = self.leaf(lambda r: next(answers))
        hub = self.hub("--to", f"a={leaf.url()}", "--to",
                       f"b={self.leaf().url()}", "--policy",
                       "attempts=1 breaker=none")
        ids = []
        for i in range(3):
            ids.append(hub.post(b"x"))
            leaf.wait(i + 1)
        last = self.until(lambda: len((found := self.good(
            hub, "listLastAttempts", name="a"))["attempts"]) == 3 and found,
            "three attempts")["attempts"]
        self.assertEqual([(r["message_id"], r["http_status"], r["cause"])
                          for r in last],
                         [(ids[2], 400, "HTTP_400"), (ids[1], 503, "HTTP_503"),
                          (ids[0], 200, None)])
        self.assertEqual([r.get("answer", r.get("answer_base64"))
                          for r in last], ["/wA=", "no <b>room</b>", "thanks"])
        self.assertEqual([r["detail"] for r in last], [None] * 3)
        self.assertIsNotNone(
            self.good(hub, "getTarget", name="a")["failing_since"])

        def looked():
            h = self.good(hub, "getTargetHistory", name="a")
            return sum(h["delivered"]) == 1 and sum(h["failed"]) == 2 and h
        hour = self.until(looked, "a bucket")
        for series in (hour["delivered"], hour["failed"], hour["p50_ms"],
                       hour["p99_ms"], *(c["failed"] for c in hour["causes"])):
            self.assertEqual(len(series), 360)
        self.assertEqual({(c["cause"], sum(c["failed"]))
                          for c in hour["causes"]},
                         {("HTTP_503", 1), ("HTTP_400", 1)})
        self.assertEqual(sum(t is not None for t in hour["p99_ms"]), 1)
        first = self.good(hub, "getHistory", query="?limit=1")
        second = self.good(hub, "getHistory",
                           query=f"?limit=1&cursor={first['next']}")
        self.assertEqual([(t["name"], sum(t["delivered"]), sum(t["failed"]))
                          for t in first["targets"] + second["targets"]],
                         [("a", 1, 2), ("b", 3, 0)])
        self.assertEqual(len(first["targets"][0]["delivered"]), 60)
        self.assertIsNone(second["next"])
        self.problem(400, "that target is gone", hub, "getHistory",
                     query="?cursor=none")
        plan = self.good(hub, "getTargetPlan", name="a")
        said = subprocess.run([STAGGER, "plan", "--json", plan["text"]],
                              check=True, capture_output=True).stdout
        [said] = json.loads(said)["policies"]
        # What a hub adds is said of targets alone.
        both = plan.keys() - {"name", "faults", "warnings"}
        self.assertEqual(plan.keys(), said.keys())
        self.assertEqual({k: plan[k] for k in both}, {k: said[k] for k in both})
        self.assertEqual((plan["attempts_max"], plan["waits"]), (1, []))
        self.assertIn("no retry", self.ask(
            hub, "getTargetPlanPicture", name="a").body.decode())
        hub.kill()
        hub = self.hub("--to", f"a={leaf.url()}", "--policy",
                       "exponential base=1s attempts=5 breaker=none")
        picture = xml.etree.ElementTree.fromstring(
            self.ask(hub, "getTargetPlanPicture", name="a").body)
        self.assertIn("wait (s)", list(picture.itertext()))
        for name in ("getTargetHistory", "listLastAttempts", "getTargetPlan",
                     "getTargetPlanPicture"):
            self.problem(404, "no target", hub, name, name="c")


class Following(Api):
    """A stream of events."""

    def follow(self, hub, query="", token=None, which="followEvents"):
        """The events as they come; asked for again when it has ended."""
        connection = http.client.HTTPConnection("127.0.0.1", hub.port,
                                                timeout=PATIENCE)
        self.addCleanup(connection.close)
        headers = {} if token is None else {"Authorization": f"Bearer {token}"}
        connection.request("GET", SPEC.operations[which]["path"] + query,
                           headers=headers)
        answer = connection.getresponse()
        self.assertEqual(answer.status, 200)
        self.assertEqual(answer.headers["Content-Type"], "text/event-stream")
        Api.called.setdefault(which, set()).add(200)
        self.assertRegex(answer.readline(), rb"^retry: [1-4]\d{3}\n$")
        self.assertEqual(answer.readline(), b"\n")
        return self.events(answer)

    def events(self, answer):
        while line := answer.readline():
            if line != b":\n":
                self.assertTrue(line.startswith(b"data: {"), line)
                yield json.loads(line[len("data: "):])
            self.assertEqual(answer.readline(), b"\n")

    def test_events_are_lines_of_the_log(self):
        hub = self.hub("--to", f"a={self.refused()}", "--to",
                       f"b={self.leaf().url()}", "--policy", "attempts=1")
        everything = self.follow(hub)
        failures = self.follow(hub, "?event=attempt-failed&target=a")
        warnings_of_b = self.follow(hub, "?level=warn&target=b")
        message = hub.post(b"x")
        failed = next(failures)
        self.assertEqual(
            (failed["event"], failed["target"], failed["message"]),
            ("attempt-failed", "a", message))
        self.assertEqual(hub.event("attempt-failed"), failed)
        self.assertIn(failed, everything)
        self.good(hub, "pauseTarget", name="a")
        self.assertEqual(next(e for e in everything
                              if e["event"] == "audit")["action"], "pause")
        self.assertEqual(hub.stop(), 0)
        self.assertEqual(list(everything)[-1]["event"], "stopping")
        self.assertEqual(list(failures), [])
        self.assertEqual(list(warnings_of_b), [])

    def test_live_is_what_changes(self):
        names = [f"t{i}" for i in range(250)]
        refused = self.refused()
        hub = self.hub(*(w for name in names for w in
                         ("--to", f"{name}={refused}/{name}")),
                       "--to", f"a={self.leaf().url()}",
                       "--policy", "attempts=1 breaker=none")
        live = self.follow(hub, which="followLive")
        schema = SPEC.text["components"]["schemas"]
        self.assertTrue(self.good(hub, "listTargets")["targets"])
        next(live)
        hub.post(b"x")
        seen, rounds = {}, 0
        while not (seen.get("a", {}).get("delivered") == 1 and all(
                seen.get(name, {}).get("dead") == 1 for name in names)):
            event = next(live)
            if "status" in event:
                SPEC.check(schema["Status"], event["status"])
                rounds += 1
                self.assertLess(rounds, 30)
            for t in event.get("targets", ()):
                fields = schema["Target"]["properties"]
                for field, value in t.items():
                    SPEC.check(fields[field], value)
                seen.setdefault(t["name"], {}).update(t)
        self.assertTrue(all(
            t["routed"] == t["delivered"] + t["dead"] + t["cancelled"]
            + t["parked"] + t["waiting"] + t["in_flight"]
            and t["lag_messages"] == 0 for t in seen.values()))
        self.assertEqual(seen["t7"]["last_cause"], "CONNECTION_REFUSED")
        self.assertIsNotNone(seen["t7"]["failing_since"])
        self.good(hub, "pauseTarget", name="a")
        while True:
            now = [t for t in next(live).get("targets", ()) if t["name"] == "a"]
            if now and now[0].get("state") == "paused":
                self.assertTrue(now[0]["is_paused_by_call"])
                break
        others = [self.follow(hub, which="followLive") for _ in range(15)]
        self.problem(429, "16 streams", hub, "followLive")
        for each in others:
            self.assertEqual(next(each)["status"]["state"], "ready")
        self.assertEqual(hub.stop(), 0)
        list(live)

    def test_what_is_wrong_is_refused(self):
        hub = self.hub("--to", f"a={self.leaf().url()}")
        self.problem(400, "debug, info, warn or error", hub, "followEvents",
                     query="?level=loud")
        self.problem(400, "so long a name", hub, "followEvents",
                     query="?event=" + "x" * 80)
        self.problem(404, "no target", hub, "followEvents", query="?target=b")
        self.problem(400, "no such option; did you mean target?", hub,
                     "followEvents",
                     query="?targets=a")
        streams = [self.follow(hub) for _ in range(16)]
        self.problem(429, "16 streams", hub, "followEvents")
        self.good(hub, "getStatus")
        self.assertEqual(hub.stop(), 0)
        for stream in streams:
            self.assertEqual(list(stream)[-1]["event"], "stopping")

    def test_a_reload_ends_it_for_a_token_that_is_gone(self):
        view, operate = self.token("view"), self.token("operate")
        publish = self.token("publish")
        settings = os.path.join(self.folder, "hub.yaml")
        with open(settings, "w") as file:
            json.dump({"store": {"path": self.store},
                       "listen": {"address": "127.0.0.1:0",
                                  "tokens": self.tokens},
                       "targets": [{"name": "a", "url": self.leaf().url()}]},
                      file)
        hub = self.hub(settings=settings)
        self.problem(401, "", hub, "followEvents")
        self.problem(403, "", hub, "followEvents", token=publish)
        stream = self.follow(hub, token=view)
        with open(self.tokens) as file:
            lines = file.readlines()
        with open(self.tokens, "w") as file:
            file.writelines(lines[1:])
        self.good(hub, "reload", token=operate)
        self.assertEqual(list(stream), [])
        self.problem(401, "", hub, "followEvents", token=view)
        self.follow(hub, token=operate)


class Letters(Api):
    def dead(self, count, name="a", answer=lambda r: 503, **more):
        """A hub with so many dead letters of a target."""
        leaf = self.leaf(answer)
        hub = self.hub("--to", f"{name}={leaf.url()}", "--policy",
                       "attempts=1 breaker=none", **more)
        ids = [hub.post(f"body {i}".encode()) for i in range(count)]
        self.until(lambda: self.good(hub, "getTarget", name=name)["dead"]
                   == count, f"{count} dead")
        return hub, leaf, ids

    def letters(self, hub, query=""):
        return self.good(hub, "listDeadLetters", query=query)["dead_letters"]

    def test_dead_letters_in_pages(self):
        hub, _, ids = self.dead(5)
        seen, query = [], "?limit=2"
        while query is not None:
            page = self.good(hub, "listDeadLetters", query=query)
            self.assertLessEqual(len(page["dead_letters"]), 2)
            seen += page["dead_letters"]
            query = (None if page["next"] is None
                     else f"?limit=2&cursor={page['next']}")
        self.assertEqual([l["message_id"] for l in seen], ids[::-1])
        self.assertEqual({(l["target"], l["state"], l["cause"], l["category"],
                           l["http_status"], l["payload_size"])
                          for l in seen},
                         {("a", "dead", "HTTP_503", "B", 503, 6)})
        for query, count in (
                ("?target=a", 5), ("?target=b", 0), ("?cause=HTTP_503", 5),
                ("?cause=HTTP_500", 0), ("?category=B", 5), ("?category=A", 0),
                ("?cause=503", 5), ("?cause=http-503", 5), ("?cause=5xx", 5),
                ("?cause=HTTP_4XX", 0), ("?cause=server", 5), ("?cause=b", 5),
                ("?cause=ECONNREFUSED", 0), ("?cause=UNAVAILABLE", 0),
                ("?cause=40001", 0), ("?cause=amqp:connection:forced", 0),
                ("?cause=paused", 0), ("?category=server", 5),
                ("?category=b&cause=503", 5), ("?category=B&cause=connect", 0),
                ("?state=dead", 5), ("?state=dropped", 0),
                ("?since=2020-01-01T00:00:00Z", 5),
                ("?until=2020-01-01T00:00:00.5Z", 0),
                (f"?since={seen[0]['created_at']}&until=2400-01-01T00:00:00Z",
                 sum(l["created_at"] >= seen[0]["created_at"] for l in seen)),
                (f"?message={ids[2]}", 1), (f"?message={NEVER}", 0),
                (f"?message={ids[2]}&state=dead&target=a", 1)):
            with self.subTest(query=query):
                self.assertEqual(len(self.letters(hub, query)), count)
        for query in ("?target=a%20b", "?cause=%2e", "?category=E",
                      "?cause=any", "?cause=database", "?category=503",
                      "?cause=HTPP_503", "?cause=HTTP_600",
                      "?state=parked", "?since=yesterday",
                      "?since=2026-02-30T00:00:00Z", "?until=2026-01-01",
                      "?message=7", "?cursor=0", "?cursor=x", "?limit=0",
                      "?none=1"):
            with self.subTest(query=query):
                self.assertEqual(
                    self.ask(hub, "listDeadLetters", query=query).status, 400)

    def test_one_whole(self):
        leaf = self.leaf(lambda r: (400, (), b"no \xff"))
        hub = self.hub("--to", f"a={leaf.url()}")
        first = hub.post(b"caf\xc3\xa9\n", Content_Type="text/plain",
                         X_Source="till", Stagger_Key="k")
        second = hub.post(b"\xff\0")
        self.until(lambda: len(self.letters(hub)) == 2, "two of them")
        two, one = (self.good(hub, "getDeadLetter", id=l["id"])
                    for l in self.letters(hub))
        self.assertEqual(
            (one["message_id"], one["payload"], one["content_type"],
             one["key"], one["cause"], one["attempts"]),
            (first, "caf\u00e9\n", "text/plain", "k", "HTTP_400", 1))
        self.assertIn("X-Source: till", one["headers"])
        self.assertEqual(one["answer_base64"], "bm8g/w==")
        self.assertEqual((two["message_id"], two["payload_base64"]),
                         (second, "/wA="))
        self.problem(404, "no dead letter", hub, "getDeadLetter", id=99)
        for id in ("0", "x", "-1", "1x", "9" * 30):
            self.problem(400, "the number", hub, "getDeadLetter", id=id)

    def test_what_became_of_a_message(self):
        hub = self.hub("--to", f"good={self.leaf().url()}",
                       "--to", f"bad={self.leaf(lambda r: 400).url()}",
                       "--to", f"late={self.leaf(lambda r: 503).url()}",
                       "--policy", "attempts=9 base=30s jitter=none")
        id = hub.post(b"four", Stagger_Key="k")

        def found_states():
            message = self.good(hub, "getMessage", id=id)
            return {f["target"]: f for f in message["targets"]}

        def states():
            return {name: f["state"] for name, f in found_states().items()}
        self.until(lambda: states() == {"good": "delivered", "bad": "dead",
                                        "late": "parked"},
                   lambda: f"settled: {states()}")
        found = found_states()
        self.assertEqual((found["bad"]["cause"], found["bad"]["attempts"]),
                         ("HTTP_400", 1))
        self.assertEqual(self.letters(hub)[0]["id"],
                         found["bad"]["dead_letter"])
        self.assertIsNotNone(found["late"]["due_at"])
        self.assertEqual(found["late"]["cause"], "HTTP_503")
        message = self.good(hub, "getMessage", id=id, query="?limit=2")
        self.assertEqual((message["id"], message["is_kept"], message["size"],
                          message["key"], len(message["targets"])),
                         (id, True, 4, "k", 2))
        rest = self.good(hub, "getMessage", id=id,
                         query=f"?limit=2&cursor={message['next']}")
        self.assertEqual((len(rest["targets"]), rest["next"]), (1, None))
        self.assertEqual(message["receipts"], {"state": "off", "since": None})
        self.problem(404, "no message", hub, "getMessage", id=NEVER)
        self.problem(404, "no message", hub, "getMessage",
                     id=id.split("-")[0] + "-999")
        for id in ("x", "7", "00c0ffee00c0ffee-"):
            self.problem(400, "the id", hub, "getMessage", id=id)

    def keep_receipts(self, share, good, bad):
        """A hub that keeps receipts of so many messages."""
        settings = os.path.join(self.folder, "receipts.yaml")
        with open(settings, "w") as file:
            json.dump({"store": {"path": self.store},
                       "listen": {"address": "127.0.0.1:0"},
                       "receipts": {"keep": "1h", "share": share},
                       "defaults": {"policy": "fixed base=10ms attempts=5"},
                       "targets": [{"name": "good", "url": good.url()},
                                   {"name": "bad", "url": bad.url()}]}, file)
        return self.hub(settings=settings)

    def test_the_receipts_of_a_message(self):
        good = self.leaf()
        bad = self.leaf(lambda r: 503 if r.attempt < 3 else 200)
        hub = self.keep_receipts("100%", good, bad)
        id = hub.post(b"x")
        bad.wait(3)
        good.wait(1)
        # What is gathered is written at the end, too.
        self.assertEqual(hub.stop(), 0)
        hub = self.keep_receipts("100%", good, bad)
        found = self.good(hub, "getMessage", id=id)
        self.assertEqual(found["receipts"]["state"], "kept")
        receipts = {t["target"]: t["receipts"] for t in found["targets"]}
        self.assertEqual({name: [(r["attempt"], r["http_status"], r["cause"])
                                 for r in all]
                          for name, all in receipts.items()},
                         {"good": [(1, 200, None)],
                          "bad": [(1, 503, "HTTP_503"), (2, 503, "HTTP_503"),
                                  (3, 200, None)]})
        for r in receipts["good"] + receipts["bad"]:
            self.assertGreater(r["took_ms"], 0)
            self.assertGreaterEqual(r["ended_at"], found["receipts"]["since"])
        self.assertEqual(hub.stop(), 0)
        # A message has some for all of its targets, or for none.
        hub = self.keep_receipts("50%", good, bad)
        ids = [hub.post(b"y") for _ in range(40)]
        bad.wait(3 + 3 * 40)
        good.wait(1 + 40)
        self.assertEqual(hub.stop(), 0)
        hub = self.keep_receipts("50%", good, bad)
        states = collections.Counter()
        for id in ids:
            found = self.good(hub, "getMessage", id=id)
            state = found["receipts"]["state"]
            states[state] += 1
            self.assertEqual([len(t["receipts"]) for t in found["targets"]],
                             [1, 3] if state == "kept" else [0, 0])
        self.assertEqual(states.keys(), {"kept", "not-sampled"})

    def test_replay(self):
        tries = {}

        def answer(r):
            tries[r.id] = tries.get(r.id, 0) + 1
            return 503 if tries[r.id] == 1 else 200
        hub, leaf, ids = self.dead(12, answer=answer)
        dry = self.good(hub, "replayDeadLetters",
                        body={"target": "a", "dry_run": True})
        self.assertEqual((dry["letters"], dry["messages"], len(dry["sample"])),
                         (12, 12, 10))
        self.assertEqual(dry["sample"][0]["message_id"], ids[0])
        self.assertEqual(len(self.letters(hub, "?state=dead")), 12)

        one = self.letters(hub, f"?message={ids[3]}")[0]["id"]
        first = self.good(hub, "replayDeadLetters", status=202,
                          body={"ids": [one]})
        rest = self.good(hub, "replayDeadLetters", status=202,
                         body={"cause": "HTTP_503", "category": "B",
                               "since": "2020-01-01T00:00:00Z"})

        def ended(replay):
            replay = self.good(hub, "getReplay", id=replay["id"])
            return replay["state"] != "running" and replay
        first = self.until(lambda: ended(first), "the first to end")
        rest = self.until(lambda: ended(rest), "the rest to end")
        self.assertEqual((first["state"], rest["state"]), ("done", "done"))
        self.assertEqual(first["messages"] + rest["messages"], 12)
        self.assertEqual([r["id"] for r in self.good(
            hub, "listReplays")["replays"]], [rest["id"], first["id"]])
        self.until(lambda: self.good(hub, "getTarget", name="a")["delivered"]
                   == 12, "all delivered")
        self.assertEqual({l["state"] for l in self.letters(hub)}, {"replayed"})
        self.assertEqual(sorted(r.id for r in leaf.receipts), sorted(ids * 2))
        self.assertEqual({r.attempt for r in leaf.receipts}, {1, 2})
        # A second call finds nothing to do.
        again = self.good(hub, "replayDeadLetters", status=202,
                          body={"all": True})
        again = self.until(lambda: ended(again), "the third to end")
        self.assertEqual((again["state"], again["letters"]), ("done", 0))
        self.problem(404, "no replay", hub, "getReplay", id=99)
        self.problem(400, "the number", hub, "getReplay", id="x")
        self.until(lambda: len(hub.events("audit")) == 3, "three lines")
        lines = hub.events("audit")
        self.assertEqual({(e["action"], e["outcome"]) for e in lines},
                         {("replay", "done")})
        self.assertEqual(lines[0]["detail"], f"ids={one}: 1 message")
        # The first may have been under way: then both were asked for its own.
        self.assertRegex(lines[1]["detail"],
                         "^cause=HTTP_503 category=B "
                         "since=2020-01-01T00:00:00Z: 1[12] messages$")
        self.assertEqual(lines[2]["detail"], "all: 0 messages")

    def test_a_replay_says_how_far_it_is(self):
        gate = threading.Event()
        self.addCleanup(gate.set)
        is_well = False
        hub, _, _ = self.dead(0, answer=lambda r: 503 if not is_well else gate.wait() and 200)
        with contextlib.closing(hub.producer()) as producer:
            producer.post_lines([{"body": "x"}] * 600)
        self.until(lambda: self.good(hub, "getTarget", name="a")["dead"] == 600, "600 dead")
        is_well = True
        begun = self.good(hub, "replayDeadLetters", status=202, body={"all": True})
        self.assertEqual((begun["state"], begun["found"], begun["letters"]), ("running", 600, 0))
        # So many of a replay wait for a target at once.
        self.until(lambda: self.good(hub, "getReplay", id=begun["id"])["letters"] >= 500, "some")
        so_far = self.good(hub, "getReplay", id=begun["id"])
        self.assertEqual((so_far["state"], so_far["letters"], so_far["messages"]), ("running", 500, 500))
        gate.set()
        ended = self.until(lambda: (r := self.good(hub, "getReplay", id=begun["id"]))["state"] != "running" and r, "its end")
        self.assertEqual((ended["state"], ended["found"], ended["letters"], ended["messages"]), ("done", 600, 600, 600))

    def test_drop(self):
        hub, leaf, ids = self.dead(5)
        choice = {"message": ids[1]}
        dry = self.good(hub, "dropDeadLetters", body={**choice,
                                                      "dry_run": True})
        self.assertEqual((dry["letters"], len(dry["sample"])), (1, 1))
        self.assertEqual(len(self.letters(hub, "?state=dead")), 5)
        self.assertEqual(self.good(hub, "dropDeadLetters",
                                   body=choice)["letters"], 1)
        self.assertEqual(self.good(hub, "dropDeadLetters",
                                   body=choice)["letters"], 0)
        dropped = self.letters(hub, "?state=dropped")
        self.assertEqual([l["message_id"] for l in dropped], [ids[1]])
        self.assertIsNotNone(dropped[0]["changed_at"])
        self.assertEqual(self.good(hub, "dropDeadLetters",
                                   body={"message": NEVER})["letters"], 0)
        self.assertEqual(self.good(hub, "dropDeadLetters",
                                   body={"all": True,
                                         "dry_run": False})["letters"], 4)
        self.assertEqual(len(leaf.receipts), 5)
        self.good(hub, "dropDeadLetters", body={"ids": list(range(50, 65))})
        self.until(lambda: [(e["action"], e["outcome"], e["detail"])
                            for e in hub.events("audit")] == [
            ("drop", "done", f"message={ids[1]}: 1 message"),
            ("drop", "done", f"message={ids[1]}: 0 messages"),
            ("drop", "done", f"message={NEVER}: 0 messages"),
            ("drop", "done", "all: 4 messages"),
            ("drop", "done", "ids=50,51,52,53,54,55,56,57,58,59 and 5 more: "
             "0 messages")], "five lines")

    def test_choices_that_are_none(self):
        hub = self.hub("--to", self.leaf().url())
        for name in ("replayDeadLetters", "dropDeadLetters"):
            for words, body in (
                    ("all of them", {}), ("all of them", []),
                    ("all of them", {"dry_run": True}),
                    ("expected true", {"all": False}),
                    ("expected true or false", {"all": True, "dry_run": 1}),
                    ("1 to 1000", {"ids": []}),
                    ("1 to 1000", {"ids": [1] * 1001}),
                    ("numbers from 1", {"ids": [0]}),
                    ("numbers from 1", {"ids": ["1"]}),
                    ("a text", {"target": 1}),
                    ("the name of a target", {"target": "a b"}),
                    ("a cause", {"cause": ""}),
                    ("did you mean HTTP_503?", {"cause": "HTPP_503"}),
                    ("did you mean CONNECTION_REFUSED?", {"cause": "refusd"}),
                    ("A, B, C or D", {"category": "E"}),
                    ("a time in UTC", {"since": "2026-01-01T00:00:00+01:00"}),
                    ("the id of a message", {"message": "1"}),
                    ("no such field", {"taget": "a"}),
                    ("no such field", {"target": "a", "state": "dead"})):
                with self.subTest(body=body):
                    self.problem(400, words, hub, name, body=body)
            for text in ("{", '{"all":true,"all":true}', '{"all":true} x', ""):
                self.problem(400, "", hub, name, body=text,
                             type="application/json")
            self.problem(415, "application/json", hub, name, body="{}")
            self.problem(413, "65536", hub, name, body=" " * 65537,
                         type="application/json")


class Changing(Api):
    def test_roles(self):
        tokens = {role: self.token(role, f"{role}-er") for role in ROLES}
        hub = self.hub("--to", f"a={self.leaf().url()}",
                       "--token-file", self.tokens)
        for name, operation in SPEC.operations.items():
            expected = SPEC.roles(operation)
            words = {"name": "zz", "id": 1, "webhook": "zz"}
            if "messages/{" in operation["path"]:
                words["id"] = NEVER
            more = {}
            if operation["method"] == "POST":
                # As much as will be refused, by whoever may ask.
                more = {"body": b"{}", "type": "application/json",
                        "headers": {"Idempotency-Key": "x" * 257}}
            if operation["path"].startswith("/v1/targets") or \
                    operation["path"] in ("/v1/reload", "/v1/alerts/test"):
                more = {}
            if operation["path"] in ("/v1/events", "/v1/live"):
                more = {"query": "?level=none"}  # and not a stream of them
            with self.subTest(operation=name):
                answers = {role: self.ask(hub, name, token=token, **more,
                                          **words).status
                           for role, token in tokens.items()}
                stranger = self.ask(hub, name, **more, **words).status
                self.assertEqual(stranger == 401, bool(expected))
                if expected:
                    self.assertEqual(
                        self.ask(hub, name, token="stagger_" + "0" * 64,
                                 **more, **words).status, 401)
                for role, status in answers.items():
                    self.assertEqual(
                        status != 403, not expected or bool(ROLES[role] & expected),
                        f"{role}: {status}")

    def test_targets_of_calls(self):
        url = self.leaf().url("/in?key=hush")
        key = os.path.join(self.folder, "secrets.key")
        with open(key, "w") as file:
            file.write("0f" * 32)
        os.chmod(key, 0o600)
        hub = self.hub("--to", f"a={self.leaf().url()}", "--secrets-key", key)
        dry = self.good(hub, "addTarget", body={"name": "b", "url": url},
                        query="?dry-run=true")
        self.assertEqual(dry["change"], "add")
        made = self.ask(hub, "addTarget", body={"name": "b", "url": url})
        self.assertEqual(made.status, 201)
        tag = made.headers["ETag"]
        self.assertNotIn("hush", json.dumps(made.json))
        got = self.ask(hub, "getTarget", name="b")
        self.assertEqual((got.headers["ETag"], got.json["added_by"]),
                         (tag, "call"))
        self.problem(409, "PUT replaces", hub, "addTarget",
                     body={"name": "b", "url": url})
        self.problem(415, "application/json", hub, "addTarget")
        patched = self.ask(hub, "patchTarget", name="b", body={"rate": "5/s"},
                           headers={"If-Match": tag})
        self.assertEqual(patched.status, 200)
        late = self.ask(hub, "patchTarget", name="b", body={"rate": "6/s"},
                        headers={"If-Match": tag})
        self.assertEqual((late.status, late.headers["ETag"]),
                         (412, patched.headers["ETag"]))
        wrong = self.ask(hub, "putTarget", name="b",
                         body={"url": url, "rate": "5"})
        self.assertEqual((wrong.status, wrong.json["errors"][0]["pointer"]),
                         (422, "/rate"))
        self.assertEqual(
            self.ask(hub, "putTarget", name="c", body={"url": url}).status, 201)
        self.problem(409, "an option of the hub has it", hub, "removeTarget",
                     name="a")
        self.problem(404, "no target", hub, "removeTarget", name="none")
        for query in ("?dry-run=true", "?waiting=cancel"):
            gone = self.good(hub, "removeTarget", name="b", query=query)
            self.assertEqual(gone["name"], "b")
        self.until(lambda: len(hub.events("audit", outcome="done")) >= 4,
                   "four lines")
        self.assertEqual(
            [line["action"] for line in hub.events("audit",
                                                   outcome="done")],
            ["target-add", "target-set", "target-set", "target-remove"])
        self.assertNotIn("hush", json.dumps(hub.lines))

    def test_pause_and_resume(self):
        leaf = self.leaf()
        token = self.token("operate", "anna")
        publish = self.token("publish")
        hub = self.hub("--to", f"a={leaf.url()}", "--token-file", self.tokens)
        for _ in range(2):
            paused = self.good(hub, "pauseTarget", token=token, name="a")
            self.assertEqual((paused["state"], paused["is_paused_by_call"]),
                             ("paused", True))
        self.good(hub, "publishMessage", token=publish, body=b"x", status=202)
        time.sleep(0.2)  # it would be there by now
        self.assertEqual(len(leaf.receipts), 0)
        resumed = self.good(hub, "resumeTarget", token=token, name="a")
        self.assertEqual((resumed["state"], resumed["is_paused_by_call"]),
                         ("live", False))
        leaf.wait(1)
        for name in ("pauseTarget", "resumeTarget", "forgetTarget"):
            self.problem(404, "no target", hub, name, token=token, name="b")
        self.problem(409, "the settings have", hub, "forgetTarget",
                     token=token, name="a")
        self.until(lambda: len(hub.events("audit")) >= 7, "seven lines")
        lines = hub.events("audit")
        self.assertEqual(
            [(line["action"], line["who"], line["target"], line["outcome"])
             for line in lines],
            [("pause", "anna", "a", "done"), ("pause", "anna", "a", "done"),
             ("resume", "anna", "a", "done"),
             ("pause", "anna", "b", "refused"),
             ("resume", "anna", "b", "refused"),
             ("forget", "anna", "b", "refused"),
             ("forget", "anna", "a", "refused")])
        self.assertNotIn(token, json.dumps(hub.lines), "I23")

    def test_messages_that_are_sent_again(self):
        leaf = self.leaf()
        hub = self.hub("--to", f"a={leaf.url()}", "--keep", "1h")
        id = self.good(hub, "publishMessage", body=b"x", status=202)["id"]
        leaf.wait(1)
        self.assertEqual(self.good(hub, "listRewinds", name="a"),
                         {"rewinds": []})
        self.problem(404, "no rewind", hub, "cancelRewind", name="a")
        self.good(hub, "pauseTarget", name="a")
        self.assertEqual(self.good(hub, "resendMessage", id=id, status=202,
                                   body={"target": "a"}), {"result": "due"})
        self.assertEqual(self.good(hub, "resendMessage", id=id, status=202,
                                   body={"target": "a"}), {"result": "waits"})
        self.good(hub, "resumeTarget", name="a")
        leaf.wait(2)
        self.problem(404, "no message", hub, "resendMessage", id=NEVER,
                     body={"target": "a"})
        self.problem(400, "a time in UTC", hub, "rewindTarget", name="a",
                     body={"to": "x"})
        self.good(hub, "rewindTarget", name="a", status=202,
                  body={"to": "earliest"})
        leaf.wait(3)
        self.until(lambda: self.good(hub, "listRewinds", name="a")["rewinds"][0]
                   ["state"] == "done", "the end of the rewind")
        # One that cannot end: it may park 500.
        self.good(hub, "pauseTarget", name="a")
        self.good(hub, "publishBatch", status=202, type="application/x-ndjson",
                  body=b'{"body": "x"}\n' * 600)
        self.good(hub, "resumeTarget", name="a")
        leaf.wait(603)
        self.good(hub, "pauseTarget", name="a")
        self.until(lambda: self.ask(hub, "rewindTarget", name="a",
                                    body={"to": "earliest"}).status == 202,
                   "a rewind")
        self.problem(409, "under way", hub, "rewindTarget", name="a",
                     body={"to": "earliest"})
        self.assertEqual(self.good(hub, "cancelRewind", name="a"),
                         {"is_cancelled": True})

    def test_a_replay_to_a_target_that_is_paused_or_not_in_the_settings(self):
        leaf = self.leaf(lambda r: 404 if r.attempt == 1 else 200)
        to_b = ("--to", f"b={leaf.url()}", "--policy", "none")
        first = self.hub("--to", f"a={leaf.url()}", *to_b)
        first.post(b"x")
        self.await_settled(2)
        self.assertEqual(first.stop(), 0)
        hub = self.hub(*to_b)
        self.good(hub, "pauseTarget", name="b")
        expected = {"letters": 1, "messages": 1, "orphaned": 1, "paused": 1}

        def counts(answer):
            return {name: answer[name] for name in expected}

        self.assertEqual(counts(self.good(
            hub, "replayDeadLetters", body={"all": True, "dry_run": True})),
            expected)
        self.good(hub, "replayDeadLetters", body={"all": True}, status=202)
        self.until(lambda: self.good(hub, "getReplay", id="1")["state"]
                   == "done", "its end")
        self.assertEqual(counts(self.good(hub, "getReplay", id="1")), expected)
        self.assertEqual({row["target"]: row["state"] for row in self.rows()},
                         {"a": "dead", "b": "replayed"})
        # Nothing of a waits that a forget would cancel.
        self.good(hub, "forgetTarget", name="a")
        self.assertEqual([row["state"] for row in self.rows()
                          if row["target"] == "a"], ["dead"])
        self.good(hub, "resumeTarget", name="b")
        leaf.wait(3)

    def test_a_probe_that_is_asked_for(self):
        answers = iter([503] * 3)
        leaf = self.leaf(lambda r: next(answers, 200))
        hub = self.hub("--to", f"a={leaf.url()}", "--policy",
                       "attempts=9 base=10m jitter=none breaker=3:1h-1h")
        self.problem(409, "not open", hub, "probeTarget", name="a")
        for _ in range(3):
            hub.post(b"x")
        self.until(lambda: self.good(hub, "getTarget", name="a")["state"]
                   == "circuit-open", "an open circuit")
        hub.post(b"x")  # the others are dead
        # It is accepted before it is read.
        self.until(lambda: self.ask(hub, "probeTarget", name="a").status == 200,
                   "a probe")
        leaf.wait(4)
        self.until(lambda: self.good(hub, "getTarget", name="a")["breaker"]
                   == "closed", "a closed one")
        self.problem(404, "no target", hub, "probeTarget", name="b")

    def test_no_probe_without_a_message(self):
        """A replay of a dead letter is one."""
        answers = iter([503] * 3)
        leaf = self.leaf(lambda r: next(answers, 200))
        hub = self.hub("--to", f"a={leaf.url()}", "--policy",
                       "attempts=1 breaker=3:1h-1h")
        for _ in range(3):
            hub.post(b"x")
        self.await_settled(1)
        self.assertEqual(self.good(hub, "getTarget", name="a")["state"],
                         "circuit-open")
        self.problem(409, "no message waits for it", hub, "probeTarget",
                     name="a")
        self.good(hub, "replayDeadLetters", body={"ids": [1]}, status=202)
        self.until(lambda: self.good(hub, "getTarget", name="a")["parked"] == 1,
                   "a replay that waits")
        self.good(hub, "probeTarget", name="a")
        leaf.wait(4)
        self.until(lambda: self.good(hub, "getTarget", name="a")["state"]
                   == "live", "a closed circuit")

    def test_a_pause_survives_a_restart(self):
        leaf = self.leaf()
        first = self.hub("--to", f"a={leaf.url()}")
        self.good(first, "pauseTarget", name="a")
        first.kill()
        hub = self.hub("--to", f"a={leaf.url()}")
        hub.post(b"x")
        a = self.good(hub, "getTarget", name="a")
        self.assertEqual((a["state"], a["is_paused_by_call"]),
                         ("paused", True))
        self.good(hub, "resumeTarget", name="a")
        leaf.wait(1)
        hub.kill()
        last = self.hub("--to", f"a={leaf.url()}")
        self.assertEqual(self.good(last, "getTarget", name="a")["state"],
                         "live")

    def test_the_audit_log(self):
        audit = os.path.join(self.folder, "audit.log")
        token = self.token("operate", "anna")
        bob = self.token("view", "bob")
        settings = os.path.join(self.folder, "hub.yaml")
        with open(settings, "w") as file:
            file.write(f"""
audit: {audit}
listen: {{tokens: {self.tokens}}}
targets:
  - {{name: a, url: "{self.refused()}"}}
""")
        hub = self.hub("-c", settings)
        self.good(hub, "pauseTarget", token=token, name="a")
        self.problem(404, "no target", hub, "resumeTarget", token=token,
                     name="b")
        with open(audit) as file:
            lines = [json.loads(line) for line in file]
        self.assertEqual(stat.S_IMODE(os.stat(audit).st_mode), 0o600)
        for line in lines:
            SPEC.check({"$ref": "#/components/schemas/Time"}, line.pop("time"))
        self.assertEqual(lines, [
            {"action": "pause", "who": "anna", "from": "127.0.0.1",
             "target": "a", "outcome": "done"},
            {"action": "resume", "who": "anna", "from": "127.0.0.1",
             "target": "b", "outcome": "refused",
             "detail": "there is no target of this name"}])
        which = {"target": "a", "until": "2026-03-01T12:00:00Z"}
        self.good(hub, "replayDeadLetters", token=token, status=202,
                  body=which)
        self.good(hub, "dropDeadLetters", token=token, body=which)
        with open(audit) as file:
            lines = [json.loads(line) for line in file][2:]
        self.assertEqual(
            [(line["action"], line["letters"], line["detail"])
             for line in lines],
            [(action, which,
              "target=a until=2026-03-01T12:00:00Z: 0 messages")
             for action in ("replay", "drop")])
        # Who was refused for the token, and what for.
        self.problem(401, "one of the tokens", hub, "pauseTarget",
                     token="wrong", name="a")
        self.problem(403, "the role operate", hub, "reload",
                     token=bob)
        self.problem(401, "Bearer", hub, "getStatus")

        def refused():
            with open(audit) as file:
                return [json.loads(line) for line in file][4:]
        self.until(lambda: len(refused()) == 3, "three lines")
        self.assertEqual(
            [[line.get(name) for name in ("action", "who", "from", "call",
                                          "status", "outcome", "detail")]
             for line in refused()],
            [["call", None, "127.0.0.1", "POST /v1/targets/a/pause", 401,
              "refused", "not one of the tokens"],
             ["call", "bob", "127.0.0.1", "POST /v1/reload", 403, "refused",
              "this token has not the role operate"],
             ["call", None, "127.0.0.1", "GET /v1/status", 401, "refused",
              "expected Authorization: Bearer TOKEN"]])
        hub.event("audit", action="call", who="bob", call="POST /v1/reload")
        # Guesses do not fill the disk.
        for _ in range(99):
            self.ask(hub, "getStatus", token="wrong")
        self.assertLessEqual(len(refused()), 65)
        os.rename(audit, audit + ".1")  # as logrotate does
        self.good(hub, "resumeTarget", token=token, name="a")
        with open(audit) as file: # a guess may be written as late as this
            actions = [json.loads(line)["action"] for line in file]
        self.assertEqual(actions[-1], "resume")
        self.assertLessEqual(set(actions), {"call", "resume"})
        hub.process.send_signal(signal.SIGHUP)
        hub.event("audit", action="reload", who="SIGHUP")

        def is_written():
            with open(audit) as file:
                return "SIGHUP" in file.read()
        self.until(is_written, "its line")
        # What was done stays done.
        os.unlink(audit)
        os.mkdir(audit)
        self.good(hub, "pauseTarget", token=token, name="a")
        hub.event("audit-failed")

    def test_reload(self):
        settings = os.path.join(self.folder, "hub.yaml")

        def write(*names, more=""):
            with open(settings, "w") as file:
                file.write(f"store: {{path: {self.store}}}\nlisten: {{address: "
                           f"\"127.0.0.1:0\", tokens: {self.tokens}}}\n"
                           f"{more}targets:\n"
                           + "".join(f'  - {{name: {name}, url: "{url}/{name}"}}\n'
                                     for name in names))
        url = self.refused()
        token = self.token("operate", "anna")
        write("a", "b")
        hub = self.hub(settings=settings)
        write("b", "c")
        self.assertEqual(self.good(hub, "reload", token=token),
                         {"added": 1, "changed": 0, "gone": 1,
                          "gone_targets": ["a"], "same": 1,
                          "warnings": []})
        names = [t["name"] for t in self.good(hub, "listTargets",
                                              token=token)["targets"]]
        self.assertEqual(names, ["b", "c", "a"])
        # All or nothing, and every mistake is told.
        write("d", more="nothing: 1\nmemory: 1\n")
        wrong = self.problem(422, "2 mistakes", hub, "reload", token=token)
        self.assertEqual(len(wrong["errors"]), 2)
        self.assertIn("hub.yaml:3:1", wrong["errors"][0])
        # A mistake that speaks like a warning is one, and the other way round.
        write("d", more="policies: {unused: backend}\n"
                        "trace: 'a: warning: b'\n")
        wrong = self.problem(422, "hub.yaml:4:8", hub, "reload", token=token)
        self.assertEqual(len(wrong["errors"]), 1)
        self.assertEqual([each.partition(": ")[2]
                          for each in wrong["warnings"]],
                         ["no target has the policy `unused`"])
        write("b", "c", more="policies: {unused: backend}\n")
        done = self.good(hub, "reload", token=token)
        self.assertEqual([each.partition(": ")[2]
                          for each in done["warnings"]],
                         ["no target has the policy `unused`"])
        write("d", more="nothing: 1\n")
        self.problem(422, "hub.yaml:3:1", hub, "reload", token=token)
        self.problem(404, "no target", hub, "getTarget", token=token, name="d")
        # A target that is gone can be forgotten, and a token taken back.
        self.good(hub, "forgetTarget", token=token, name="a")
        other = self.token("view")
        with open(self.tokens) as file:
            lines = [line for line in file if "anna" not in line]
        with open(self.tokens, "w") as file:
            file.writelines(lines)
        self.assertEqual(self.ask(hub, "getStatus", token=other).status, 401)
        write("c")
        self.good(hub, "reload", token=token)
        self.assertEqual(self.ask(hub, "getStatus", token=other).status, 200)
        self.assertEqual(self.ask(hub, "getStatus", token=token).status, 401)

    def test_alerts(self):
        settings = os.path.join(self.folder, "hub.yaml")
        good, bad = self.leaf(), self.leaf(lambda r: 400)
        with open(settings, "w") as file:
            file.write(f"""
store: {{path: {self.store}}}
listen: {{address: "127.0.0.1:0"}}
targets: [{{name: a, url: "{self.refused()}"}}]
alerts:
  receivers:
    - {{name: good, type: webhook, url: "{good.url()}"}}
    - {{name: bad, type: webhook, url: "{bad.url()}"}}
""")
        hub = self.hub(settings=settings)
        receivers = self.good(hub, "testAlerts")["receivers"]
        self.assertEqual([(s["name"], s["is_told"]) for s in receivers],
                         [("good", True), ("bad", False)])
        good.wait(1)
        one = self.good(hub, "testAlerts", query="?receiver=bad")["receivers"]
        self.assertEqual([s["name"] for s in one], ["bad"])
        self.problem(404, "no receiver", hub, "testAlerts",
                     query="?receiver=none")
        self.problem(409, "no receiver", self.hub(
            "--to", self.refused(), store=self.store + "2"), "testAlerts")

    def test_reload_without_a_file(self):
        """Its tokens and certificates are read again."""
        hub = self.hub("--to", self.leaf().url())
        self.assertEqual(self.good(hub, "reload")["same"], 1)

    def test_forgetting(self):
        first = self.hub("--to", "a=" + self.leaf(
                             lambda r: 404 if r.body == b"bad" else 503).url(),
                         "--to", f"b={self.leaf().url()}",
                         "--policy", "attempts=9 base=30s jitter=none")
        for body in b"x", b"bad", b"x":
            first.post(body)
        self.until(lambda: self.good(first, "getTarget", name="a")["parked"]
                   == 2, lambda: "two parked: "
                   f"{self.good(first, 'getTarget', name='a')}")
        self.assertEqual(first.stop(), 0)
        hub = self.hub("--to", f"b={self.leaf().url()}")
        a = self.good(hub, "getTarget", name="a")
        self.assertEqual((a["is_known"], a["state"]), (False, "orphaned"))
        self.assertEqual([t["name"] for t in self.good(
            hub, "listTargets", query="?state=orphaned")["targets"]], ["a"])
        self.assertEqual(self.good(hub, "getStatus")["targets"]["orphaned"], 1)
        self.problem(409, "settings", hub, "resumeTarget", name="a")
        self.assertEqual(
            self.good(hub, "forgetTarget", name="a", query="?dry-run=true"),
            {"is_dry_run": True, "name": "a", "waiting": 0, "parked": 2,
             "in_flight": 0, "dead_letters": 1})
        for name, status in ("b", 409), ("c", 404):
            self.problem(status, "", hub, "forgetTarget", name=name,
                         query="?dry-run=true")
        self.problem(400, "true or false", hub, "forgetTarget", name="a",
                     query="?dry-run=1")
        self.assertEqual(self.good(hub, "forgetTarget", name="a"),
                         {"name": "a"})
        self.problem(404, "no target", hub, "getTarget", name="a")
        self.problem(404, "no target", hub, "forgetTarget", name="a")
        self.assertEqual(hub.stop(), 0)
        self.assertEqual([row["state"] for row in self.rows()],
                         ["dead", "cancelled", "cancelled"])

    def test_forgetting_when_the_hub_stops(self):
        first = self.hub("--to", f"a={self.leaf(lambda r: 503).url()}",
                         "--policy", "attempts=9 base=30s jitter=none")
        first.post(b"x")
        self.until(lambda: self.good(first, "getTarget",
                                     name="a")["parked"] == 1, "one parked")
        self.assertEqual(first.stop(), 0)
        hub = self.hub("--to", f"b={self.leaf().url()}")
        connection = http.client.HTTPConnection("127.0.0.1", hub.port,
                                                timeout=PATIENCE)
        with contextlib.closing(connection):
            connection.request("GET", "/healthz")
            connection.getresponse().read()
            # Both come in one turn of its loop, and the signal is the second.
            hub.process.send_signal(signal.SIGSTOP)
            os.waitid(os.P_PID, hub.process.pid, os.WSTOPPED)
            connection.request("POST", "/v1/targets/a/forget")
            hub.process.send_signal(signal.SIGTERM)
            hub.process.send_signal(signal.SIGCONT)
            answer = connection.getresponse()
            self.assertEqual(answer.status, 503)
            self.assertIn("the hub is stopping", answer.read().decode())
        self.assertEqual(hub.wait(), 0)
        line, = hub.events("audit", action="forget", target="a")
        # The store may have been quicker than the signal.
        if line["outcome"] != "done":
            self.assertEqual(
                (line["outcome"], line["detail"]),
                ("refused", "the hub is stopping: the target may have been "
                 "forgotten, or a part of what waited for it be cancelled; "
                 "ask again when the hub is back"))
            hub = self.hub("--to", f"b={self.leaf().url()}")
            self.assertEqual(self.good(hub, "forgetTarget", name="a"),
                             {"name": "a"})


# -- at last -------------------------------------------------------------------

class Everything(Api):
    """Of all the above."""

    def missing(self):
        return sorted(name for name in SPEC.operations
                      if min(Api.called.get(name, {999})) >= 300)

    def test_every_operation_was_called(self):
        case.wait_for(lambda: not self.missing(), self.missing)


if __name__ == "__main__":
    case.main()
