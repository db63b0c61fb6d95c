#!/usr/bin/env python3
"""Alerts of the real hub, to real receivers: an HTTP server in the place of
Slack and of webhooks, aiosmtpd and postfix's smtp-sink for mail. I19, I23.
"""
import contextlib
import email
import email.policy
import hmac
import http.client
import json
import os
import shutil
import signal
import socket
import sqlite3
import ssl
import statistics
import subprocess
import sys
import threading
import time

import case
import leaf
from leaf import PATIENCE, STAGGER

FULL = "STAGGER_FULL" in os.environ
HERE = os.path.dirname(os.path.abspath(__file__))


def interpreter_of_aiosmtpd():
    """It may be a package of the system's python3 alone."""
    for python in (sys.executable, "/usr/bin/python3"):
        if os.path.exists(python) and subprocess.run(
                [python, "-c", "import aiosmtpd"], check=False,
                stderr=subprocess.DEVNULL).returncode == 0:
            return python
    return None


PYTHON = interpreter_of_aiosmtpd()


class Receiver(leaf.Leaf):
    """An HTTP server, with the JSON that it was given."""

    def told(self, count):
        """That many, at least."""
        return [json.loads(r.body) for r in self.wait(count)]


class Mailbox:
    """aiosmtpd in a process of its own."""

    def __init__(self, *arguments):
        self.process = subprocess.Popen(
            [PYTHON, os.path.join(HERE, "mailbox.py"), *arguments],
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        self.port = int(self.process.stdout.readline())
        self.mails = []
        self.changed = threading.Condition()
        threading.Thread(target=self.read, daemon=True).start()

    def read(self):
        for line in self.process.stdout:
            with self.changed:
                self.mails.append(json.loads(line))
                self.changed.notify_all()

    def wait(self, count):
        with self.changed:
            assert self.changed.wait_for(lambda: len(self.mails) >= count,
                                         PATIENCE), self.mails
            return list(self.mails)

    def close(self):
        self.process.kill()
        self.process.wait()


class Alerts(case.Case):
    def settings(self, targets, alerts, **more):
        """A settings file (JSON is YAML). Its path."""
        return self.put("hub.yaml", json.dumps(
            {"targets": [{"name": name, "url": url, **rest}
                         for name, url, rest in targets],
             "alerts": {"group-wait": "200ms", "min-interval": "0", "resolve-after": "0",
                        "interval": "1m", "hub-name": "box", **alerts},
             **more}))

    def receiver(self, *arguments, **more):
        return self.kept(Receiver(*arguments, **more))

    def hook(self, receiver, **more):
        return {"name": "hook", "type": "webhook",
                "url": receiver.url("/alerts"), **more}

    def slack(self, receiver):
        self.put("slack.url", receiver.url("/services/T0/B0/hunter2") + "\n")
        return {"name": "slack", "type": "slack", "url-file": "slack.url"}

    def mail(self, port, scheme="smtp", **more):
        return {"name": "night", "type": "mail",
                "url": f"{scheme}://localhost:{port}",
                "from": "hub@example.org",
                "to": ["ops@example.org", "boss@example.org"], **more}

    def mailbox(self, *arguments):
        if PYTHON is None:
            self.skipTest("no python3-aiosmtpd")
        return self.kept(Mailbox(*arguments))

    def certificate(self):
        """For localhost, by itself."""
        key, pem = (os.path.join(self.folder, name)
                    for name in ("key.pem", "cert.pem"))
        subprocess.run(
            ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt",
             "ec_paramgen_curve:P-256", "-nodes", "-keyout", key, "-out", pem,
             "-days", "2", "-subj", "/CN=localhost", "-addext",
             "subjectAltName=DNS:localhost"], check=True, capture_output=True)
        return pem, key

    def test_alert(self, path, *arguments):
        """`stagger alert test`, and its lines by the receiver."""
        done = subprocess.run(
            [STAGGER, "alert", "test", "-c", path, *arguments],
            capture_output=True, text=True, timeout=PATIENCE)
        return done.returncode, done.stdout + done.stderr

    def phases(self, receiver):
        """The phases of all alerts so far: {(alert, target): [phase, ...]}."""
        told = {}
        for receipt in list(receiver.receipts):
            for a in json.loads(receipt.body)["alerts"]:
                told.setdefault((a["alert"], a.get("target")),
                                []).append(a["phase"])
        return told

    # unittest takes a name with test_ for a test.
    try_receivers = test_alert
    del test_alert


class WhatIsTold(Alerts):
    def test_dead_letters_of_a_target_are_told_and_that_it_is_over(self):
        receiver = self.receiver()
        bad = self.leaf(lambda r: 500)
        path = self.settings(
            [("bad", bad.url(), {"policy": "attempts=1"})],
            {"threshold": "10 failures in 1s", "threshold-all": "off",
             "receivers": [self.hook(receiver)]})
        hub = self.hub("-c", path)
        for i in range(10):
            hub.post(b"x")
        first = receiver.told(1)[0]
        alert = first["alerts"][0]
        self.assertEqual(first["subject"].split(" in ")[0],
                         "[stagger box] bad: 10 dead letters")
        self.assertEqual(alert["alert"], "dead-letters")
        self.assertEqual(alert["phase"], "began")
        self.assertEqual(alert["count"], 10)
        self.assertEqual(alert["causes"], {"HTTP_500": 10})
        self.assertEqual(alert["command"].split(" --since")[0],
                         "stagger dead list --target bad")
        over = receiver.told(2)[1]["alerts"][0]
        self.assertEqual((over["phase"], over["count"]), ("ended", 10))
        # The command that it names shows them.
        done = subprocess.run([STAGGER, *alert["command"].split()[1:],
                               "--store", self.store], capture_output=True,
                              text=True, timeout=PATIENCE)
        self.assertEqual(done.stdout.count("HTTP_500"), 11, done)
        self.assertEqual(hub.stop(), 0)

    def test_nothing_is_told_below_the_threshold(self):
        receiver = self.receiver()
        bad, good = self.leaf(lambda r: 500), self.leaf()
        path = self.settings(
            [("bad", bad.url(), {"policy": "attempts=1"}),
             ("good", good.url(), {})],
            {"threshold": "10 failures in 1h",
             "receivers": [self.hook(receiver)]})
        hub = self.hub("-c", path)
        for i in range(9):
            hub.post(b"x")
        self.await_settled(2)
        hub.stop()
        self.assertEqual(receiver.receipts, [])

    def test_a_breaker_is_told_and_that_it_closed(self):
        receiver = self.receiver()
        fails = [True]
        flaky = self.leaf(lambda r: 503 if fails[0] else 200)
        path = self.settings(
            [("flaky", flaky.url(),
              {"policy": "fixed base=10ms attempts=5 breaker=2:100ms"})],
            {"alerts": ["breaker"], "receivers": [self.hook(receiver)]})
        hub = self.hub("-c", path)
        hub.post(b"x")
        hub.post(b"y")
        first = receiver.told(1)[0]["alerts"][0]
        self.assertEqual((first["alert"], first["phase"], first["target"],
                          first["cause"]),
                         ("breaker", "began", "flaky", "HTTP_503"))
        fails[0] = False
        over = receiver.told(2)[1]["alerts"][0]
        self.assertEqual((over["alert"], over["phase"]), ("breaker", "ended"))
        hub.stop()

    def test_a_target_that_is_gone_is_told_and_that_it_is_back(self):
        receiver = self.receiver()
        gone = [True]
        target = self.leaf(lambda r: 410 if gone[0] else 200)
        path = self.settings([("old", target.url(), {})],
                             {"alerts": ["gone"],
                              "receivers": [self.hook(receiver)]})
        hub = self.hub("-c", path)
        hub.post(b"x")
        self.assertEqual(receiver.told(1)[0]["subject"],
                         "[stagger box] old: it answered 410 Gone")
        gone[0] = False
        hub.post(b"x")
        self.assertEqual(receiver.told(2)[1]["alerts"][0]["phase"], "ended")
        hub.stop()

    def test_lag_is_told_and_that_it_is_over(self):
        receiver = self.receiver()
        slow = threading.Event()

        def answer(connection, request):
            slow.wait(PATIENCE)
            connection.send(leaf.told(200))

        target = self.leaf(lambda r: answer)
        path = self.settings(
            [("slow", target.url(), {"policy": "attempts=1 "
                                     "attempt-timeout=50s", "in-flight": 1})],
            {"alerts": ["lag"], "lag": {"messages": 10},
             "receivers": [self.hook(receiver)]})
        hub = self.hub("-c", path)
        for i in range(20):
            hub.post(b"x")
        first = receiver.told(1)[0]["alerts"][0]
        self.assertEqual((first["alert"], first["target"]), ("lag", "slow"))
        self.assertGreaterEqual(first["lag_messages"], 10)
        slow.set()
        self.assertEqual(receiver.told(2)[1]["alerts"][0]["phase"], "ended")
        hub.stop()

    def test_a_certificate_about_to_expire_is_told(self):
        receiver = self.receiver()
        pem, key = self.certificate()
        tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        tls.load_cert_chain(pem, key)
        target = self.leaf(tls=tls)
        path = self.settings(
            [("tls", target.url(scheme="https", host="localhost"),
              {"tls": {"ca": pem}})],
            {"alerts": ["certificate"], "certificate": "3d",
             "receivers": [self.hook(receiver)]})
        hub = self.hub("-c", path)
        hub.post(b"x")
        target.wait(1)
        first = receiver.told(1)[0]["alerts"][0]
        self.assertEqual((first["alert"], first["target"]),
                         ("certificate", "tls"))
        self.assertRegex(first["valid_until"], r"^20\d\d-")
        hub.stop()

    def test_a_file_of_dead_letters_that_cannot_be_written_is_told(self):
        receiver = self.receiver()
        bad = self.leaf(lambda r: 500)
        path = self.settings(
            [("bad", bad.url(), {"policy": "attempts=1"})],
            {"alerts": ["store"], "receivers": [self.hook(receiver)]},
            **{"dead-letters": {"copy": "file:/dev/full"}})
        hub = self.hub("-c", path)
        hub.post(b"x")
        first = receiver.told(1)[0]["alerts"][0]
        self.assertEqual((first["alert"], first["phase"]), ("store", "began"))
        self.assertIn("the file of dead letters cannot be written",
                      first["summary"])
        hub.stop()

    def test_what_is_known_is_told_before_the_hub_ends(self):
        receiver = self.receiver()
        bad = self.leaf(lambda r: 500)
        path = self.settings([("bad", bad.url(), {"policy": "attempts=1"})],
                             {"group-wait": "10m",
                              "receivers": [self.hook(receiver)]})
        hub = self.hub("-c", path)
        for i in range(10):
            hub.post(b"x")
        self.await_settled(1)
        self.assertEqual(hub.stop(), 0)
        self.assertEqual(receiver.told(1)[0]["alerts"][0]["count"], 10)

    def test_receivers_choose_by_tag_and_by_alert(self):
        shop, store = self.receiver(), self.receiver()
        bad = self.leaf(lambda r: 500)
        path = self.settings(
            [("cart", bad.url(), {"policy": "attempts=1",
                                  "tags": {"team": "shop"}}),
             ("mill", bad.url(), {"policy": "attempts=1",
                                  "tags": {"team": "works"}})],
            {"threshold-all": "off", "receivers": [
                self.hook(shop, tags={"team": "shop"}),
                {**self.hook(store, alerts=["store"]), "name": "other"}]})
        hub = self.hub("-c", path)
        for i in range(10):
            hub.post(b"x")
        told = shop.told(1)[0]
        self.assertEqual([a["target"] for a in told["alerts"]], ["cart"])
        hub.stop()
        self.assertEqual(store.receipts, [])


class Reload(Alerts):
    def settings(self, *arguments):
        return super().settings(*arguments, store={"path": self.store},
                                listen={"address": "127.0.0.1:0"})

    def test_keeps_what_is_known(self):
        first, second = self.receiver(), self.receiver()
        fails = [True]
        flaky = self.leaf(lambda r: 503 if fails[0] else 200)
        target = ("flaky", flaky.url(), {
            "policy": "fixed base=10ms attempts=5 breaker=2:100ms"})
        path = self.settings([target], {"alerts": ["breaker"],
                                        "receivers": [self.hook(first)]})
        hub = self.hub(settings=path)
        hub.post(b"x")
        hub.post(b"y")
        self.assertEqual(first.told(1)[0]["alerts"][0]["phase"], "began")
        self.settings([target], {"alerts": ["breaker"],
                                 "receivers": [self.hook(second)]})
        hub.process.send_signal(signal.SIGHUP)
        hub.event("reloaded")
        fails[0] = False
        # The first was told of what ends; the second has its name.
        case.wait_for(lambda: "ended" in self.phases(second).get(
            ("breaker", "flaky"), []), "the end is told")
        hub.stop()
        self.assertEqual(len(first.receipts), 1)

    def test_with_a_secret_that_is_gone_changes_nothing(self):
        receiver = self.receiver()
        bad = self.leaf(lambda r: 500)
        target = ("bad", bad.url(), {"policy": "attempts=1"})
        path = self.settings([target], {"receivers": [self.hook(receiver)]})
        hub = self.hub(settings=path)
        self.settings([target], {"receivers": [
            {"name": "s", "type": "slack", "url-file": "none.url"}]})
        hub.process.send_signal(signal.SIGHUP)
        while "none.url" not in hub.event("reload-refused")["detail"]:
            pass  # a line for each thing that is wrong or unwise
        for i in range(10):
            hub.post(b"x")
        self.assertEqual(receiver.told(1)[0]["alerts"][0]["target"], "bad")
        hub.stop()


class Left(Alerts):
    """Alerts fire where something holds now, whatever was heard of it before."""

    BREAKER = {"policy": "fixed base=10ms attempts=50 breaker=2:1h"}

    def settings(self, *arguments, **more):
        return super().settings(*arguments, **{
            "store": {"path": self.store},
            "listen": {"address": "127.0.0.1:0"}, **more})

    def call(self, hub, method, path, body=None):
        """Status and JSON of a call."""
        with contextlib.closing(http.client.HTTPConnection(
                "127.0.0.1", hub.port, timeout=PATIENCE)) as connection:
            connection.request(method, path, body and json.dumps(body),
                               {"Content-Type": "application/json"})
            answer = connection.getresponse()
            return answer.status, json.loads(answer.read() or b"null")

    def firing(self, hub):
        return self.call(hub, "GET", "/v1/status")[1]["alerts"]["firing"]

    def await_phases(self, receiver, told):
        told = {key: phases.split() for key, phases in told.items()}
        case.wait_for(lambda: self.phases(receiver) == told,
                      lambda: f"{told}; told: {self.phases(receiver)}")

    def troubled(self):
        """Targets, one for each alert that a target may have, and what else
        it takes."""
        tokens = self.leaf(lambda r: (400, {}, b'{"error":"invalid_client"}'))
        slow = self.leaf(lambda r: leaf.hang)
        pem, key = self.certificate()
        tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        tls.load_cert_chain(pem, key)
        expiring = self.leaf(tls=tls)
        return [
            ("broken", self.leaf(lambda r: 503).url(), self.BREAKER),
            ("dead", self.leaf(lambda r: 500).url(), {"policy": "attempts=1"}),
            ("old", self.leaf(lambda r: 410).url(), {"policy": "attempts=1"}),
            ("slow", slow.url(), {"in-flight": 1,
                                  "policy": "attempts=1 attempt-timeout=50s"}),
            ("tokenless", self.leaf().url(),
             {"oauth2": {"token-url": tokens.url(), "client-id": "hub",
                         "client-secret": "hunter2-hunter2"}}),
            ("tls", expiring.url(scheme="https", host="localhost"),
             {"tls": {"ca": pem}})]

    ALERTS = {"threshold": "4 failures in 1h", "threshold-all": "off",
              "lag": {"messages": 5}, "certificate": "3d"}
    ALL = {("breaker", "broken"), ("dead-letters", "dead"),
           ("dead-letters", "old"), ("gone", "old"), ("lag", "slow"),
           ("lag", "broken"), ("lag", "tokenless"), ("token", "tokenless"),
           ("certificate", "tls")}

    def test_alerts_of_targets_that_a_reload_removes_are_over(self):
        receiver, good = self.receiver(), ("good", self.leaf().url(), {})
        targets = self.troubled()
        more = {**self.ALERTS, "receivers": [self.hook(receiver)]}
        hub = self.hub(settings=self.settings([good, *targets], more))
        for _ in range(8):
            hub.post(b"x")
        self.await_phases(receiver, {key: "began" for key in self.ALL})
        self.settings([good], more)
        self.assertEqual(self.reload(hub)["gone"], len(targets))
        for _ in range(8):  # an orphaned target has no alerts
            hub.post(b"x")
        self.await_phases(receiver, {key: "began ended" for key in self.ALL})
        self.assertEqual(self.firing(hub), {})
        # A target that comes back has what holds now, and nothing of before.
        self.settings([good, targets[0]], more)
        self.reload(hub)
        hub.post(b"x")
        hub.post(b"x")
        case.wait_for(lambda: "breaker" in self.firing(hub), "it opens again")
        self.assertNotIn("gone", self.firing(hub))
        hub.stop()

    def test_a_receiver_that_comes_hears_of_what_fires(self):
        """Also of what began before there was any, and nobody hears it twice."""
        first, second = self.receiver(), self.receiver()
        targets = self.troubled()
        path = self.settings(
            targets, self.ALERTS, **{"dead-letters": {"copy": "file:/dev/full"}})
        hub = self.hub(settings=path)
        for _ in range(8):
            hub.post(b"x")
        case.wait_for(lambda: sum(self.firing(hub).values()) ==
                      len(self.ALL) + 1, lambda: self.firing(hub))
        told = {("store", None): "began",
                **{key: "began" for key in self.ALL}}
        # The breaker is told to those only who come for it later.
        narrow = self.hook(first, alerts=[
            a for a in ("dead-letters", "gone", "lag", "certificate", "store",
                        "token")])

        def change(*receivers):
            self.settings(targets, {**self.ALERTS, "receivers": receivers},
                          **{"dead-letters": {"copy": "file:/dev/full"}})
            self.reload(hub)
        change(narrow)
        narrowed = {key: value for key, value in told.items()
                    if key[0] != "breaker"}
        self.await_phases(first, narrowed)
        change(self.hook(first), {**self.hook(second), "name": "second"})
        self.await_phases(first, told)
        self.await_phases(second, told)
        # Neither another name nor another order is news.
        change({**self.hook(second), "name": "renamed", "timeout": "20s"},
               {**self.hook(first), "headers": {"X-Other": "1"}})
        self.await_phases(first, told)
        self.settings(targets[1:], {
            **self.ALERTS, "receivers": [{**self.hook(second), "name": "n"}]},
            **{"dead-letters": {"copy": "file:/dev/full"}})
        self.reload(hub)
        told[("breaker", "broken")] = told[("lag", "broken")] = "began ended"
        self.await_phases(second, told)
        self.assertEqual(set(self.phases(first)[("breaker", "broken")]),
                         {"began"})
        hub.stop()

    def test_a_target_that_a_call_removes_has_no_alerts(self):
        shop, all_of_it = self.receiver(), self.receiver()
        keep = ("keep", self.leaf().url(), {"tags": {"team": "shop"}})
        hub = self.hub(settings=self.settings([keep], {
            **self.ALERTS, "receivers": [
                self.hook(shop, tags={"team": "shop"}),
                {**self.hook(all_of_it), "name": "all"}]}))
        bad = self.leaf(lambda r: 503)
        target = {"name": "called", "url": bad.url(), **self.BREAKER}
        for again in range(2):  # removed, and added again at once
            status, answer = self.call(hub, "POST", "/v1/targets", target)
            self.assertEqual(status, 201, answer)
            hub.post(b"x")
            hub.post(b"y")
            told = {("breaker", "called"): "began ended " * again + "began"}
            self.await_phases(all_of_it, told)
            if not again:  # the other receiver wants it by its tag
                self.assertEqual(shop.receipts, [])
                status, answer = self.call(hub, "PATCH", "/v1/targets/called",
                                           {"tags": {"team": "shop"}})
                self.assertEqual(status, 200, answer)
                target["tags"] = {"team": "shop"}
            self.await_phases(shop, told)
            status, answer = self.call(hub, "DELETE",
                                       "/v1/targets/called?waiting=cancel")
            self.assertIn(status, (200, 202, 204), answer)
            told = {("breaker", "called"): "began ended " * (again + 1)}
            self.await_phases(shop, told)
            self.await_phases(all_of_it, told)
            self.assertEqual(self.firing(hub), {})
        hub.stop()

    def test_a_target_that_is_forgotten_has_no_alerts(self):
        """The end is told with the name of a target that is gone."""
        receiver, good = self.receiver(), ("good", self.leaf().url(), {})
        bad = ("bad", self.leaf(lambda r: 503).url(), self.BREAKER)
        more = {"receivers": [self.hook(receiver, targets=["bad"])],
                "resolve-after": "10m"}
        hub = self.hub(settings=self.settings([good, bad], more))
        hub.post(b"x")
        hub.post(b"y")
        self.await_phases(receiver, {("breaker", "bad"): "began"})
        self.settings([good], {**more, "receivers": [self.hook(receiver)]})
        self.reload(hub)
        case.wait_for(lambda: self.firing(hub) == {}, "nothing fires")
        self.assertEqual(
            self.call(hub, "POST", "/v1/targets/bad/forget")[0], 200)
        self.await_phases(receiver, {("breaker", "bad"): "began ended"})
        hub.stop()

    def test_a_pause_ends_what_only_attempts_can_find_out(self):
        receiver = self.receiver()
        bad = self.leaf(lambda r: 503)
        more = {"alerts": ["breaker", "lag"], "lag": {"messages": 3},
                "receivers": [self.hook(receiver)]}
        target = ("bad", bad.url(), self.BREAKER)
        hub = self.hub(settings=self.settings([target], more))
        for _ in range(8):
            hub.post(b"x")
        told = {("breaker", "bad"): "began", ("lag", "bad"): "began"}
        self.await_phases(receiver, told)
        self.assertEqual(
            self.call(hub, "POST", "/v1/targets/bad/pause")[0], 200)
        told[("breaker", "bad")] = "began ended"
        self.await_phases(receiver, told)
        self.assertEqual(self.firing(hub), {"lag": 1})  # messages wait
        self.settings([("bad", bad.url(), {**self.BREAKER, "paused": True})],
                      more)
        self.reload(hub)
        self.settings([target], more)
        self.reload(hub)
        self.assertEqual(self.firing(hub), {"lag": 1})
        self.assertEqual(
            self.call(hub, "POST", "/v1/targets/bad/resume")[0], 200)
        self.assertEqual(self.firing(hub), {"lag": 1, "breaker": 1})
        hub.stop()

    def test_a_proxy_of_paused_targets_is_not_known_to_be_away(self):
        receiver = self.receiver()
        more = {"alerts": ["store"], "receivers": [self.hook(receiver)]}
        behind = ("behind", "http://127.0.0.1:1/",
                  {"proxy": self.refused().rstrip("/")})
        hub = self.hub(settings=self.settings([behind], more))
        hub.post(b"x")
        told = {("store", None): "began"}
        self.await_phases(receiver, told)
        self.assertEqual(
            self.call(hub, "POST", "/v1/targets/behind/pause")[0], 200)
        told[("store", None)] = "began ended"
        self.await_phases(receiver, told)
        self.assertEqual(
            self.call(hub, "POST", "/v1/targets/behind/resume")[0], 200)
        case.wait_for(lambda: self.firing(hub) == {"store": 1},
                      "it is away again")
        self.settings([("good", self.leaf().url(), {})], more)
        self.reload(hub)
        case.wait_for(lambda: self.firing(hub) == {}, "nobody needs it")
        hub.stop()

    def test_what_a_url_answered_says_nothing_of_another_one(self):
        receiver = self.receiver()
        more = {"alerts": ["gone"], "receivers": [self.hook(receiver)]}
        old, new = self.leaf(lambda r: 410), self.leaf()
        hub = self.hub(settings=self.settings([("a", old.url(), {})], more))
        hub.post(b"x")
        self.await_phases(receiver, {("gone", "a"): "began"})
        self.settings([("a", new.url(), {})], more)
        self.reload(hub)
        self.await_phases(receiver, {("gone", "a"): "began ended"})
        hub.stop()


class Receivers(Alerts):
    def broken(self, *receivers, **more):
        """A hub with a target that makes ten dead letters."""
        bad = self.leaf(lambda r: 500)
        path = self.settings([("bad", bad.url(), {"policy": "attempts=1"})],
                             {"alerts": ["dead-letters"],
                              "threshold-all": "off",
                              "receivers": list(receivers),
                              **more})
        hub = self.hub("-c", path)
        for i in range(10):
            hub.post(b"x")
        return hub

    def test_slack_gets_text(self):
        receiver = self.receiver()
        hub = self.broken(self.slack(receiver))
        told = receiver.told(1)[0]
        self.assertEqual(set(told), {"text", "mrkdwn"})
        self.assertIn("[stagger box] bad: 10 dead letters", told["text"])
        self.assertEqual(receiver.receipts[0].path, "/services/T0/B0/hunter2")
        hub.stop()

    def test_slack_that_fails_is_asked_again(self):
        answers = iter([500, (429, {"Retry-After": "1"}), 200])
        receiver = self.receiver(lambda r: next(answers))
        hub = self.broken(self.slack(receiver))
        one, two, three = receiver.wait(3)
        self.assertEqual(one.body, two.body)
        self.assertGreaterEqual(three.at - two.answered_at, 0.99)
        self.assertEqual({r.one("idempotency-key") for r in (one, two, three)},
                         {one.one("idempotency-key")})
        failed = hub.event("alert-failed")
        self.assertEqual((failed["receiver"], failed["cause"],
                          failed["decision"]), ("slack", "HTTP_500", "again"))
        hub.stop()

    def test_no_secret_is_in_the_log(self):
        receiver = self.receiver(lambda r: (403, {}, b"/services/T0/B0/hunter2"))
        self.put("token", "Bearer hunter2\n")
        hub = self.broken(
            self.slack(receiver),
            self.hook(receiver, headers={"Authorization": {"file": "token"}}))
        self.assertEqual(hub.event("alert-failed")["decision"], "put-off")
        receiver.wait(2)
        hub.stop()
        self.assertEqual({r.one("authorization") for r in receiver.receipts},
                         {None, "Bearer hunter2"})
        for line in hub.lines:
            if line.get("receiver") == "hook":
                line["detail"] = None  # its URL is no secret: it may be shown
            self.assertNotIn("hunter2", json.dumps(line))
        self.assertEqual(hub.noise, [])

    def test_a_receiver_that_hangs_delays_no_other_and_no_delivery(self):
        hanging, receiver = self.receiver(lambda r: leaf.hang), self.receiver()
        good = self.leaf()
        bad = self.leaf(lambda r: 500)
        path = self.settings(
            [("bad", bad.url(), {"policy": "attempts=1"}),
             ("good", good.url(), {})],
            {"receivers": [{**self.hook(hanging), "name": "hangs"},
                       self.hook(receiver)]})
        hub = self.hub("-c", path)
        for i in range(10):
            hub.post(b"x")
        hanging.wait(1)
        receiver.wait(1)
        for i in range(100):
            hub.post(b"x")
        self.assertEqual(len(good.wait(110)), 110)
        hub.stop()

    def test_a_mail_is_sent_by_starttls_with_a_login(self):
        pem, key = self.certificate()
        box = self.mailbox("--tls", pem, key, "--login", "hub:hunter2")
        self.put("password", "hunter2\n")
        hub = self.broken(self.mail(
            box.port, ca=pem, user="hub", **{"password-file": "password"}))
        mail = box.wait(1)[0]
        self.assertEqual(mail["from"], "hub@example.org")
        self.assertEqual(mail["to"], ["ops@example.org", "boss@example.org"])
        self.assertTrue(mail["tls"])
        self.assertEqual(mail["login"], "hub")
        text = email.message_from_string(mail["text"],
                                         policy=email.policy.default)
        self.assertIn("[stagger box] bad: 10 dead letters", text["subject"])
        self.assertEqual(text.defects, [])
        self.assertEqual(text.get_body()["content-transfer-encoding"],
                         "quoted-printable")
        self.assertIn("stagger dead list --target bad --since ",
                      text.get_body().get_content())
        hub.stop()
        self.assertNotIn("hunter2", json.dumps(hub.lines))

    def test_a_login_that_the_server_does_not_offer_is_an_error(self):
        """Not a mail that goes out without it."""
        pem, key = self.certificate()
        box = self.mailbox("--tls", pem, key, "--no-login")
        self.put("password", "hunter2\n")
        path = self.settings([("a", self.refused(), {})], {"receivers": [
            self.mail(box.port, ca=pem, user="hub", **{"password-file": "password"})]})
        code, said = self.try_receivers(path)
        self.assertEqual(code, 1, said)
        self.assertIn("the server offers no login", said)
        self.assertEqual(box.mails, [])

    def test_the_password_is_nowhere_to_be_seen(self):
        pem, key = self.certificate()
        box = self.mailbox("--tls", pem, key, "--login", "hub:hunter2")
        self.put("password", "wrong-hunter\n")
        hub = self.broken(self.mail(
            box.port, ca=pem, user="hub", **{"password-file": "password"}))
        failed = hub.event("alert-failed")
        self.assertEqual(failed["decision"], "put-off")
        self.assertIn("535", failed["detail"])
        with open(f"/proc/{hub.process.pid}/cmdline") as line:
            self.assertNotIn("hunter", line.read())
        hub.stop()
        self.assertNotIn("hunter", json.dumps(hub.lines))
        self.assertEqual(box.mails, [])

    def owned(self, mail):
        """A hub that is about to disable a target, which has an owner."""
        bad = self.leaf(lambda r: 404)
        path = self.settings(
            [("bad", bad.url(), {"disable-after": "5d",
                                 "owner": "shop@example.org"})],
            {"receivers": [mail]}, store={"path": self.store},
            listen={"address": "127.0.0.1:0"})
        hub = self.hub(settings=path)
        hub.post(b"x")
        self.await_settled(1)
        self.assertEqual(hub.stop(), 0)
        with contextlib.closing(sqlite3.connect(self.store)) as db, db:
            db.execute("UPDATE lanes SET failing_since = 1")
        hub = self.hub(settings=path)
        with contextlib.closing(hub.producer()) as producer:
            for _ in range(10):
                producer.post(b"x")
        return hub

    def test_an_owner_that_cannot_be_told_is_logged(self):
        password = self.put("password", "hunter2\n")
        hub = self.owned(self.mail(1, user="hub", alerts=["store"],
                                   **{"password-file": "password"}))
        os.unlink(password)
        told = hub.event("owner-not-told", target="bad")
        self.assertIn(password, told["detail"])
        self.assertEqual(hub.stop(), 0)

    def test_the_owner_of_a_target_that_is_disabled_gets_a_mail(self):
        """And nobody else: the receiver wants no such alert."""
        box = self.mailbox()
        hub = self.owned(self.mail(box.port, starttls="none",
                                   alerts=["store"]))
        mail = box.wait(1)[0]
        self.assertEqual((mail["from"], mail["to"]),
                         ("hub@example.org", ["shop@example.org"]))
        self.assertIn("Subject: [stagger box] bad: ", mail["text"])
        self.assertEqual(hub.stop(), 0)
        # Nor is it told again by a hub that finds it disabled.
        hub = self.hub(settings=os.path.join(self.folder, "hub.yaml"))
        with contextlib.closing(hub.producer()) as producer:
            producer.http.request("POST", "/v1/alerts/test")
            self.assertEqual(producer.http.getresponse().status, 200)
        box.wait(2)
        self.assertEqual(hub.stop(), 0)
        self.assertEqual([mail["to"] for mail in box.mails],
                         [["shop@example.org"],
                          ["ops@example.org", "boss@example.org"]])

    def test_a_mail_server_that_is_not_who_it_says_gets_nothing(self):
        pem, key = self.certificate()
        box = self.mailbox("--tls", pem, key)
        hub = self.broken(self.mail(box.port))
        self.assertIn("certificate", hub.event("alert-failed")["detail"])
        hub.stop()
        self.assertEqual(box.mails, [])

    def test_one_recipient_that_is_refused_does_not_keep_it_from_the_others(
            self):
        box = self.mailbox("--refuse", "boss@example.org")
        hub = self.broken(self.mail(box.port, starttls="none"))
        self.assertEqual(box.wait(1)[0]["to"], ["ops@example.org"])
        hub.stop()

    def test_smtp_sink_of_postfix_takes_it(self):
        program = (shutil.which("smtp-sink")
                   or shutil.which("smtp-sink", path="/usr/sbin"))
        if program is None:
            self.skipTest("no smtp-sink (postfix)")
        with socket.create_server(("127.0.0.1", 0)) as s:
            port = s.getsockname()[1]
        user = ["-u", "nobody"] if os.geteuid() == 0 else []
        capture = os.path.join(self.folder, "mail")
        os.chmod(self.folder, 0o777)
        sink = subprocess.Popen([program, *user, "-D", capture,
                                 f"inet:127.0.0.1:{port}", "10"])
        self.addCleanup(sink.wait)
        self.addCleanup(sink.kill)

        def listens():
            with socket.socket() as s:
                return s.connect_ex(("127.0.0.1", port)) == 0
        case.wait_for(listens, "smtp-sink listens")
        hub = self.broken(self.mail(port, starttls="none"))

        def mail():
            if os.path.exists(capture):
                with open(capture) as file:
                    text = file.read()
                return "Subject: [stagger box] bad: 10 dead letters" in text
        case.wait_for(mail, "a mail in smtp-sink")
        hub.stop()

    def test_a_mail_server_that_hangs_holds_nothing(self):
        """Neither the deliveries, nor the names that must be resolved, nor the
        end."""
        hanging = self.leaf(early=lambda c: c.hang())
        good, bad = self.leaf(), self.leaf(lambda r: 500)
        path = self.settings(
            [("bad", bad.url(), {"policy": "attempts=1"}),
             ("good", good.url(host="localhost"), {})],
            {"receivers": [{**self.mail(hanging.port, starttls="none",
                                    timeout="30s"), "name": f"m{i}"}
                       for i in range(8)]})
        hub = self.hub("-c", path)
        for i in range(100):
            hub.post(b"x")
        case.wait_for(lambda: hanging.connections == 1, "a mail")
        for i in range(100):
            hub.post(b"x")
        good.wait(200)
        self.assertEqual(hanging.connections, 1)  # one at a time
        began = time.monotonic()
        hub.stop()
        self.assertLess(time.monotonic() - began, 20)


class Trial(Alerts):
    def test_says_of_each_receiver_whether_it_was_accepted(self):
        pem, key = self.certificate()
        good = self.receiver()
        revoked = self.receiver(lambda r: (404, {}, b"no_service"))
        box = self.mailbox("--tls", pem, key, "--refuse", "boss@example.org")
        path = self.settings([("a", good.url(), {})], {"receivers": [
            self.hook(good), self.slack(revoked), self.mail(box.port, ca=pem)]})
        code, text = self.try_receivers(path)
        self.assertEqual(code, 1, text)
        lines = text.splitlines()
        self.assertRegex(lines[0], r"^hook +webhook +accepted: HTTP 200$")
        self.assertRegex(lines[1], r"^slack +slack +NOT ACCEPTED: HTTP 404: "
                                   r"no_service$")
        # One recipient that is refused is a failure of a test.
        self.assertRegex(lines[2], r"^night +mail +NOT ACCEPTED: .*550 5.1.1 "
                                   r"no such mailbox here$")
        self.assertTrue(good.told(1)[0]["test"])
        self.assertEqual(self.try_receivers(path, "--receiver", "hook")[0], 0)
        code, text = self.try_receivers(path, "--receiver", "other")
        self.assertEqual(code, 2)
        self.assertIn("other: the settings have no such receiver", text)

    def test_signs_what_a_webhook_gets(self):
        """As `stagger sink --verify` has it, with the alert's own id."""
        secret = "whsec_" + "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
        self.put("one", secret + "\n")
        sink = self.sinks("--verify", secret)
        receiver = self.receiver()

        def signing(name, url, **sign):
            return {"name": name, "type": "webhook", "url": url, "sign": sign}
        code, text = self.try_receivers(self.settings(
            [("a", "http://127.0.0.1:9/", {})], {"receivers": [
                signing("standard", sink.url(), scheme="standard-webhooks",
                        secrets={"file": "one"}),
                signing("stripe", sink.url(), scheme="stripe",
                        secrets=[secret, "another secret of 24 bytes"]),
                signing("other", sink.url(), scheme="github",
                        secrets=["another secret of 24 bytes"]),
                signing("custom", receiver.url(), scheme="custom",
                        header="X-S", signs="{id}/{timestamp}/{body}",
                        **{"timestamp-header": "X-T"}, secrets=[secret]),
                self.hook(sink)]}))
        self.assertEqual(code, 1, text)
        for name, words in (("standard", "accepted: HTTP 200"),
                            ("stripe", "accepted: HTTP 200"),
                            ("other", "NOT ACCEPTED: HTTP 401: .*no signature"),
                            ("hook", "NOT ACCEPTED: HTTP 401: .*not signed")):
            self.assertRegex(text, rf"(?m)^{name} +webhook +{words}")
        alert = receiver.wait(1)[0]
        signed = "/".join([alert.one("idempotency-key"), alert.one("x-t"),
                           alert.body.decode()])
        self.assertEqual(alert.one("x-s"), hmac.new(
            secret.encode(), signed.encode(), "sha256").hexdigest())

    def test_says_what_the_server_said_to_a_mail(self):
        pem, key = self.certificate()
        box = self.mailbox("--tls", pem, key, "--implicit")
        path = self.settings([("a", "http://127.0.0.1:9/", {})],
                             {"receivers": [
                                 self.mail(box.port, "smtps", ca=pem)]})
        code, text = self.try_receivers(path)
        self.assertEqual(code, 0, text)
        self.assertRegex(text, r"^night +mail +accepted: ")
        mail = email.message_from_string(box.wait(1)[0]["text"],
                                         policy=email.policy.default)
        self.assertEqual(mail["subject"],
                         "[stagger box] a test: nothing has happened")

    def test_a_mail_keeps_its_letters_in_short_lines(self):
        pem, key = self.certificate()
        box = self.mailbox("--tls", pem, key, "--implicit")
        name = "Gr\u00fc\u00dfe=?\u4e2d\u6587? " + "\u00e4" * 20
        path = self.settings(
            [("a", "http://127.0.0.1:9/", {})],
            {"hub-name": name,
             "receivers": [self.mail(box.port, "smtps", ca=pem)]})
        code, text = self.try_receivers(path)
        self.assertEqual(code, 0, text)
        text = box.wait(1)[0]["text"]
        # But for the line that libcurl makes for the boundary of the parts.
        for line in text.splitlines():
            if "boundary=" not in line:
                self.assertLessEqual(len(line), 76)
                self.assertTrue(line.isascii())
        mail = email.message_from_string(text, policy=email.policy.default)
        self.assertEqual(mail.defects, [])
        self.assertEqual(mail["subject"],
                         f"[stagger {name}] a test: nothing has happened")
        self.assertEqual([part.get_content_type() for part in mail.walk()],
                         ["multipart/mixed", "text/plain"])
        self.assertIn(f"{name}", mail.get_body().get_content())

    def test_is_sent_by_a_hub_too(self):
        good = self.receiver()
        path = self.settings([("a", good.url(), {})],
                             {"receivers": [self.hook(good)]})
        hub = self.hub("-c", path)
        done = subprocess.run(
            [STAGGER, "alert", "test", "--hub",
             f"http://127.0.0.1:{hub.port}"], capture_output=True, text=True,
            timeout=PATIENCE)
        self.assertEqual(done.returncode, 0, done)
        self.assertRegex(done.stdout, r"^hook +webhook +accepted: HTTP 200\n$")
        done = subprocess.run(
            [STAGGER, "alert", "test", "--receiver", "x y", "--hub",
             f"http://127.0.0.1:{hub.port}"], capture_output=True, text=True,
            timeout=PATIENCE)
        self.assertEqual(done.returncode, 1, done)
        self.assertIn("no receiver of the settings has this name", done.stderr)
        self.assertEqual(hub.event("audit")["action"], "alerts-test")
        hub.stop()

    def test_is_refused_where_there_is_no_receiver(self):
        path = self.settings([("a", "http://127.0.0.1:9/", {})], {})
        code, text = self.try_receivers(path)
        self.assertEqual(code, 2)
        self.assertIn("the settings have no receiver: alerts.receivers", text)
        hub = self.hub("-c", path)
        done = subprocess.run(
            [STAGGER, "alert", "test", "--hub",
             f"http://127.0.0.1:{hub.port}"], capture_output=True, text=True,
            timeout=PATIENCE)
        self.assertEqual(done.returncode, 1, done)
        self.assertIn("the settings have no receiver to try", done.stderr)
        hub.stop()

    def test_of_a_hub_that_stops_meanwhile_ends(self):
        hanging = self.receiver(lambda r: leaf.hang)
        path = self.settings([("a", "http://127.0.0.1:9/", {})], {
            "receivers": [self.hook(hanging, timeout="1m")]})
        hub = self.hub("-c", path)
        asking = subprocess.Popen(
            [STAGGER, "alert", "test", "--hub",
             f"http://127.0.0.1:{hub.port}"], stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL)
        hanging.wait(1)
        self.assertEqual(hub.stop(), 0)
        asking.wait(PATIENCE)

    def test_a_hub_does_not_start_without_its_secrets(self):
        path = self.settings([("a", "http://127.0.0.1:9/", {})], {
            "receivers": [
                {"name": "s", "type": "slack", "url-file": "none.url"}]})
        done = subprocess.run(
            [STAGGER, "hub", "-c", path, "--store", self.store],
            capture_output=True, text=True, timeout=PATIENCE)
        self.assertEqual(done.returncode, 2, done)
        self.assertIn("none.url", done.stderr)
        self.assertFalse(os.path.exists(self.store))


class Broken(Alerts):
    def test_a_trial_is_refused_while_the_last_alerts_are_told(self):
        told = self.receiver(lambda r: leaf.hang)
        path = self.settings([("good", self.leaf().url(), {})],
                             {"receivers": [self.hook(told)]},
                             store={"path": self.store},
                             listen={"address": "127.0.0.1:0"})
        hub = self.hub(settings=path)
        os.remove(self.store)
        with self.assertRaises((case.Refused, OSError,
                                http.client.HTTPException)):
            for _ in range(100):
                hub.post(b"x" * 50000)
        told.wait(1)  # that the store is broken; for 5 s at most
        with self.assertRaises(case.Refused) as refused:
            hub.post(b"", path="/v1/alerts/test")
        self.assertEqual(refused.exception.status, 503)
        self.assertEqual(hub.wait(), 4)


class Example(Alerts):
    def test_has_settings_that_are_right(self):
        source = os.path.join(os.environ["STAGGER_SOURCE"], "examples",
                              "alerts.yaml")
        with open(source) as file:
            text = file.read().replace("/var/lib/stagger", self.folder)
        path = self.put("alerts.yaml", text)
        self.put("slack.url", "https://hooks.slack.com/services/x\n")
        self.put("mail.password", "hunter2\n")
        self.put("pager.token", "Bearer hunter2\n")
        self.put("teams.url", "https://teams.example/workflows/x\n")
        for name in "pagerduty.key", "opsgenie.key":
            self.put(name, "hunter2\n")
        done = subprocess.run([STAGGER, "check", "--strict", "-c", path],
                              capture_output=True, text=True, timeout=PATIENCE)
        self.assertEqual(done.returncode, 0, done)
        self.assertIn("7 receivers", done.stdout)


class Storm(Alerts):
    """Ten thousand failures are a handful of messages, and in full, 100,000 are,
    too, and deliveries do not slow down."""

    def fresh(self, receiver):
        """The dead letters that it was told of, target by target."""
        return sum(a["fresh"] for r in list(receiver.receipts)
                   for a in json.loads(r.body)["alerts"]
                   if a["alert"] == "dead-letters" and "target" in a)

    def setUp(self):
        super().setUp()
        self.good = self.sinks("--reply", "200")
        self.bad = self.sinks("--reply", "500")
        self.hanging = self.receiver(lambda r: leaf.hang)
        self.runs = 0

    def run_one(self, failures, receiver):
        """Seconds until all is delivered or dead, and of the processor."""
        self.runs += 1
        store = os.path.join(self.folder, f"storm-{self.runs}.db")
        targets = [("good", self.good.url(), {})]
        targets += [(f"bad{i}", self.bad.url(), {"policy": "attempts=1"})
                    for i in range(10)]
        receivers = [] if receiver is None else [
            self.hook(receiver), {**self.hook(self.hanging), "name": "hangs"}]
        path = self.settings(targets, {"min-interval": "1s",
                                       "receivers": receivers,
                                       "threshold": "10 failures in 5s"})
        hub = self.hub("-c", path, store=store)
        producer = hub.producer()
        began = time.monotonic()
        for i in range(0, failures // 10, 1000):
            producer.post_lines([{"body": "x"}] * 1000)
        self.await_settled(11, store=store)
        took, used = time.monotonic() - began, hub.cpu()
        producer.close()
        if receiver is not None:
            case.wait_for(lambda: self.fresh(receiver) == failures,
                          lambda: f"all told; {self.fresh(receiver)} are")
        hub.stop()
        rows = self.rows("SELECT count(*) AS count FROM failed_broadcast_logs",
                         store=store)[0]["count"]
        self.assertEqual(rows, failures)
        os.remove(store)
        return took, used

    def test_makes_a_handful_of_messages(self):
        receiver = self.receiver()
        self.run_one(100_000 if FULL and not case.is_sanitized() else 10_000,
                     receiver)
        case.note(self, f"{len(receiver.receipts)} messages")
        self.assertLessEqual(len(receiver.receipts), 10)

    if FULL: # pairs are measured, and `make test` leaves that to `make check`
        def test_slows_nothing(self):
            failures = 2_000 if case.is_sanitized() else 20_000
            pairs = [(self.run_one(failures, self.receiver()),
                      self.run_one(failures, None)) for _ in range(3)]
            took = statistics.median(a[0] / b[0] for a, b in pairs)
            used = statistics.median(a[1] / b[1] for a, b in pairs)
            case.note(self, f"time {took:.2f}, processor {used:.2f} of that "
                            f"without")
            self.assertLess(took, 2.5)
            self.assertLess(used, 1.5)


if __name__ == "__main__":
    case.main(at_once=4)
