#!/usr/bin/env python3
"""Alerts to PagerDuty, Opsgenie and Teams, and by a template: each service is a
server that takes what its documentation takes, and nothing else."""
import json
import re
import signal
import subprocess
import threading
import urllib.parse

import case
import leaf
from leaf import PATIENCE, STAGGER

TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$")
FLAKY = "fixed base=10ms attempts=5 breaker=2:100ms"


def expect(claim, what):
    if not claim:
        raise ValueError(what)


def text(value, most, least=1):
    expect(isinstance(value, str) and least <= len(value) <= most,
           f"a text of {least} to {most}: {value!r}")


def known(value, *names, needed=()):
    expect(isinstance(value, dict), f"an object: {value!r}")
    expect(not set(value) - {*names, *needed}, f"unknown: {value}")
    expect(not set(needed) - set(value), f"missing: {value}")


class Service(leaf.Leaf):
    """Requests that are wrong are answered with 400, and remembered. before:
    answers to the first requests, in the place of its own."""

    def __init__(self, before=()):
        self.mistakes, self.happened, self.open_keys = [], [], {}
        self.before = list(before)
        super().__init__(self.judge)

    def judge(self, request):
        if self.before:
            return self.before.pop(0)
        try:
            expect(request.line.startswith("POST "), request.line)
            answer = self.receive(request, request.body.decode())
        except (ValueError, KeyError) as mistake:
            self.mistakes.append(mistake)
            return 400, {}, json.dumps({"message": str(mistake)}).encode()
        return 202, {"Content-Type": "application/json"}, json.dumps(
            answer).encode()

    def json(self, request, body):
        expect(request.headers["content-type"] == ["application/json"],
               request.headers)
        return json.loads(body)

    def opened(self, key, event):
        self.open_keys[key] = event
        self.happened.append(("open", key))

    def closed(self, key):
        expect(key in self.open_keys, f"{key} is not open")
        del self.open_keys[key]
        self.happened.append(("close", key))

    def wait_until(self, count):
        case.wait_for(lambda: len(self.happened) >= count or self.mistakes,
                      lambda: f"{count} events: {self.happened}")
        return list(self.happened)


class PagerDuty(Service):
    """Events API v2, "Send an Alert Event"."""

    KEY = "0123456789abcdef0123456789abcdef"

    def receive(self, request, body):
        expect(request.path == "/v2/enqueue", request.path)
        event = self.json(request, body)
        known(event, "payload", "client", "client_url", "links", "images",
              needed=("routing_key", "event_action", "dedup_key"))
        expect(event["routing_key"] == self.KEY, "the routing key")
        text(event["dedup_key"], 255)
        if event["event_action"] == "resolve":
            self.closed(event["dedup_key"])
        else:
            expect(event["event_action"] == "trigger", event["event_action"])
            self.look_at(event["payload"])
            self.opened(event["dedup_key"], event["payload"])
        return {"status": "success", "message": "Event processed",
                "dedup_key": event["dedup_key"]}

    def look_at(self, payload):
        known(payload, "timestamp", "component", "group", "class",
              "custom_details", needed=("summary", "source", "severity"))
        text(payload["summary"], 1024)
        text(payload["source"], 255)
        expect(payload["severity"] in ("critical", "error", "warning", "info"),
               payload["severity"])
        expect(TIME.match(payload["timestamp"]), payload["timestamp"])
        for name in "component", "class":
            text(payload.get(name, "x"), 255)
        expect(isinstance(payload.get("custom_details", {}), dict), "details")


class Opsgenie(Service):
    """The Alert API: "Create Alert" and "Close Alert"."""

    KEY = "11111111-2222-3333-4444-555555555555"

    def receive(self, request, body):
        expect(request.headers["authorization"] == [f"GenieKey {self.KEY}"],
               "the key")
        alert = self.json(request, body)
        path, _, query = request.path.partition("?")
        if path == "/v2/alerts":
            self.look_at(alert)
            self.opened(alert["alias"], alert)
        else:
            found = re.fullmatch(r"/v2/alerts/([^/]+)/close", path)
            expect(found and query == "identifierType=alias", request.path)
            known(alert, "user", "source", "note")
            text(alert["note"], 25000)
            self.closed(urllib.parse.unquote(found[1]))
        return {"result": "Request will be processed", "took": 0.1,
                "requestId": "x"}

    def look_at(self, alert):
        known(alert, "description", "responders", "visibleTo", "actions",
              "tags", "details", "entity", "source", "priority", "user",
              "note", needed=("message", "alias"))
        text(alert["message"], 130)
        text(alert["alias"], 512)
        text(alert["description"], 15000)
        text(alert.get("entity", "x"), 512)
        text(alert["source"], 100)
        expect(alert["priority"] in ("P1", "P2", "P3", "P4", "P5"), "priority")
        expect(len(alert["tags"]) <= 20, "tags")
        for tag in alert["tags"]:
            text(tag, 50)
        for name, value in alert.get("details", {}).items():
            text(value, 8000)
            text(name, 100)


class Teams(Service):
    """An incoming webhook of Workflows: a message with Adaptive Cards 1.4."""

    PATH = "/workflows/hush/triggers/manual/paths/invoke?sig=hush"

    def receive(self, request, body):
        expect(request.path == self.PATH, request.path)
        expect(len(body) < 28 << 10, "its size")
        message = self.json(request, body)
        known(message, needed=("type", "attachments"))
        expect(message["type"] == "message", message["type"])
        attachment, = message["attachments"]
        known(attachment, "contentUrl", needed=("contentType", "content"))
        expect(attachment["contentType"] ==
               "application/vnd.microsoft.card.adaptive", "its type")
        card = attachment["content"]
        known(card, "$schema", "msteams", needed=("type", "version", "body"))
        expect((card["type"], card["version"]) == ("AdaptiveCard", "1.4"),
               card)
        for block in card["body"]:
            known(block, "spacing", needed=("type", "inlines"))
            expect(block["type"] == "RichTextBlock", block)
            for run in block["inlines"]:
                known(run, "weight", needed=("type", "text"))
                expect(run["type"] == "TextRun", run)
                text(run["text"], 10000)
        self.happened.append([run["text"] for block in card["body"]
                              for run in block["inlines"]])
        return {}


class Note(Service):
    """Takes what a template makes."""

    def receive(self, request, body):
        self.happened.append((request, body))
        return {}


class Alerts(case.Case):
    def settings(self, targets, *receivers, **alerts):
        return self.put("hub.yaml", json.dumps({
            "targets": [{"name": name, "url": url, "policy": FLAKY}
                        for name, url in targets.items()],
            "alerts": {"group-wait": "200ms", "min-interval": "0",
                       "resolve-after": "0", "interval": "1m",
                       "hub-name": "box", "alerts": ["breaker"],
                       "receivers": receivers, **alerts}}))

    def pagerduty(self, service):
        self.put("pagerduty.key", service.KEY + "\n")
        return {"name": "pager", "type": "pagerduty",
                "key-file": "pagerduty.key", "url": service.url("/v2/enqueue")}

    def opsgenie(self, service):
        self.put("opsgenie.key", service.KEY + "\n")
        return {"name": "genie", "type": "opsgenie",
                "key-file": "opsgenie.key", "url": service.url("/")}

    def teams(self, service):
        self.put("teams.url", service.url(service.PATH) + "\n")
        return {"name": "room", "type": "teams", "url-file": "teams.url"}

    def template(self, service, body, **more):
        return {"name": "own", "type": "template", "url": service.url("/x"),
                "body": body, **more}

    def start(self, *receivers, targets=1, **alerts):
        """A hub, and what makes all targets well again."""
        is_well = threading.Event()

        def mend():
            is_well.set()
            hub.post(b"z")  # a probe, where all others are dead by now

        flaky = self.leaf(lambda r: 200 if is_well.is_set() else 503)
        hub = self.hub("-c", self.settings(
            {f"shop{i}": flaky.url() for i in range(targets)}, *receivers,
            **alerts))
        hub.post(b"x")
        hub.post(b"y")
        return hub, mend


class Services(Alerts):
    def check_life(self, service, receiver, key):
        """An alert begins and ends, and is one of the service's."""
        hub, mend = self.start(receiver)
        self.assertEqual(service.wait_until(1), [("open", key)])
        opened = service.open_keys[key]
        mend()
        self.assertEqual(service.wait_until(2), [("open", key),
                                                 ("close", key)])
        self.assertEqual(hub.stop(), 0)
        self.assertEqual((service.mistakes, service.open_keys), ([], {}))
        self.assertEqual(len(service.happened), 2)
        self.assertNotIn(service.KEY, json.dumps(hub.lines))
        return opened

    def test_pagerduty_gets_a_trigger_and_a_resolve(self):
        service = self.kept(PagerDuty())
        event = self.check_life(service, self.pagerduty(service),
                                "stagger/box/breaker/shop0")
        self.assertEqual(
            {k: event[k] for k in ("summary", "source", "severity",
                                   "component", "class")},
            {"summary": "[stagger box] shop0: the breaker opened",
             "source": "box", "severity": "error", "component": "shop0",
             "class": "breaker"})
        self.assertEqual(event["custom_details"]["cause"], "HTTP_503")

    def test_opsgenie_gets_an_alert_and_closes_it(self):
        service = self.kept(Opsgenie())
        alert = self.check_life(service, self.opsgenie(service),
                                "stagger/box/breaker/shop0")
        self.assertEqual((alert["message"], alert["priority"],
                          alert["entity"], alert["tags"]),
                         ("[stagger box] shop0: the breaker opened", "P2",
                          "shop0", ["stagger", "breaker"]))
        self.assertIn("last cause: HTTP_503", alert["description"])
        self.assertEqual(alert["details"]["cause"], "HTTP_503")

    def test_teams_gets_a_card(self):
        service = self.kept(Teams())
        hub, mend = self.start(self.teams(service))
        lines = service.wait_until(1)[0]
        self.assertEqual(lines[0], "[stagger box] shop0: the breaker opened")
        self.assertIn("    last cause: HTTP_503", lines)
        mend()
        lines = service.wait_until(2)[1]
        self.assertTrue(lines[0].startswith("[stagger box] shop0: over: "))
        self.assertEqual(hub.stop(), 0)
        self.assertEqual(service.mistakes, [])
        self.assertNotIn("hush", json.dumps(hub.lines))

    def test_a_template_makes_any_body(self):
        service = self.kept(Note())
        hub, mend = self.start(
            self.template(service, '{"id": "{key}", "is": "{status}", '
                          '"say": "{text}", "n": {count}, "none": {"a": {}}}'),
            self.template(service, "{status} {target}: {summary} ({severity})"
                          "\n{nothing-like-a-field} {cause}\n", name="plain",
                          headers={"content-type": "text/plain",
                                   "X-Token": "t"}))
        service.wait_until(2)
        mend()
        found = {"json": [], "plain": []}
        for request, body in service.wait_until(4):
            kind = request.headers["content-type"]
            found["json" if kind == ["application/json"] else "plain"].append(
                body)
            self.assertIn(kind, (["application/json"], ["text/plain"]))
        first, last = map(json.loads, found["json"])
        self.assertIn("\n    last cause: HTTP_503\n", first.pop("say"))
        self.assertGreaterEqual(first.pop("n"), 1)
        self.assertEqual(first, {"id": "stagger/box/breaker/shop0",
                                 "is": "firing", "none": {"a": {}}})
        self.assertEqual((last["id"], last["is"]),
                         (first["id"], "resolved"))
        self.assertEqual(found["plain"][0],
                         "firing shop0: the breaker opened (error)\n"
                         "{nothing-like-a-field} HTTP_503\n")
        self.assertEqual(hub.stop(), 0)

    def test_each_of_many_alerts_is_opened_and_closed(self):
        """More than a digest has room for."""
        service = self.kept(PagerDuty())
        hub, mend = self.start(self.pagerduty(service), targets=45)
        keys = {f"stagger/box/breaker/shop{i}" for i in range(45)}
        service.wait_until(45)
        self.assertEqual(set(service.open_keys), keys)
        mend()
        service.wait_until(90)
        self.assertEqual((service.open_keys, service.mistakes), ({}, []))
        self.assertEqual(hub.stop(), 0)


class Trouble(Alerts):
    def test_a_service_that_is_busy_is_asked_when_it_says(self):
        service = self.kept(PagerDuty(before=[(429, {"Retry-After": "1"}),
                                              503]))
        hub, mend = self.start(self.pagerduty(service))
        service.wait_until(1)
        first, second, third = service.receipts
        self.assertGreaterEqual(second.at - first.at, 1)
        self.assertEqual(len({r.body for r in service.receipts}), 1)
        self.assertEqual(len({r.one("idempotency-key")
                              for r in service.receipts}), 1)
        hub.stop()

    def test_what_ended_before_it_was_told_is_opened_and_closed(self):
        """In that order, though its end came while the service was away."""
        service = self.kept(Opsgenie(before=[503]))
        hub, mend = self.start(self.opsgenie(service))
        hub.event("alert-failed", decision="again")
        mend()
        key = "stagger/box/breaker/shop0"
        self.assertEqual(service.wait_until(2), [("open", key),
                                                 ("close", key)])
        self.assertEqual(hub.stop(), 0)
        self.assertEqual(service.mistakes, [])

    def test_what_is_refused_is_no_obstacle_and_no_secret_is_logged(self):
        """The first of two events; it is tried again as the hub ends."""
        service = self.kept(PagerDuty(before=[
            (400, {}, b"no such key: " + PagerDuty.KEY.encode())]))
        hub, mend = self.start(self.pagerduty(service), targets=2)
        line = hub.event("alert-failed", decision="put-off")
        self.assertIn("HTTP 400", line["cause"].replace("_", " "))
        self.assertEqual(len(service.wait_until(1)), 1)
        self.assertEqual(hub.stop(), 0)
        self.assertEqual(set(service.open_keys),
                         {f"stagger/box/breaker/shop{i}" for i in (0, 1)})
        self.assertNotIn(PagerDuty.KEY, json.dumps(hub.lines))

    def test_a_reload_keeps_what_waits(self):
        service = self.kept(PagerDuty(before=[503]))
        hub, mend = self.start(self.pagerduty(service), targets=3)
        hub.event("alert-failed", decision="again")
        hub.process.send_signal(signal.SIGHUP)
        hub.event("reloaded")
        service.wait_until(3)
        self.assertEqual(len(service.open_keys), 3)
        mend()
        service.wait_until(6)
        self.assertEqual((service.open_keys, service.mistakes), ({}, []))
        self.assertEqual(hub.stop(), 0)


class Trial(Alerts):
    def test_alert_test_opens_and_closes_with_each(self):
        pager, genie = self.kept(PagerDuty()), self.kept(Opsgenie())
        room, own = self.kept(Teams()), self.kept(Note())
        path = self.settings(
            {"shop": "http://127.0.0.1:1/"}, self.pagerduty(pager),
            self.opsgenie(genie), self.teams(room),
            self.template(own, '{"a": "{alert}", "s": "{status}"}'))
        done = subprocess.run([STAGGER, "alert", "test", "-c", path],
                              capture_output=True, text=True, timeout=PATIENCE)
        self.assertEqual(done.returncode, 0, done)
        self.assertEqual([line.split() for line in done.stdout.splitlines()],
                         [["pager", "pagerduty", "accepted:", "HTTP", "202"],
                          ["genie", "opsgenie", "accepted:", "HTTP", "202"],
                          ["room", "teams", "accepted:", "HTTP", "202"],
                          ["own", "template", "accepted:", "HTTP", "202"]])
        for service in pager, genie:
            self.assertEqual(service.happened,
                             [("open", "stagger/box/test"),
                              ("close", "stagger/box/test")])
        self.assertEqual(pager.mistakes + genie.mistakes + room.mistakes, [])
        self.assertEqual([json.loads(body) for _, body in own.happened],
                         [{"a": "test", "s": "firing"},
                          {"a": "test", "s": "resolved"}])

    def test_alert_test_says_what_the_service_says(self):
        pager = self.kept(PagerDuty())
        receiver = self.pagerduty(pager)
        self.put("pagerduty.key", "another\n")
        path = self.settings({"shop": "http://127.0.0.1:1/"}, receiver)
        done = subprocess.run([STAGGER, "alert", "test", "-c", path],
                              capture_output=True, text=True, timeout=PATIENCE)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("NOT ACCEPTED: HTTP 400: {\"message\": "
                      "\"the routing key\"}", done.stdout)


case.main()
