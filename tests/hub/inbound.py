#!/usr/bin/env python3
"""Webhooks that others send: what is signed becomes a message, once, and what is
not is refused."""
import base64
import contextlib
import hmac
import http.client
import json
import os
import re
import signal
import socket
import subprocess
import time
import urllib.request

import case
from case import STAGGER
from signatures import ONE, TWO, key

WORD = "It's a Secret to Everybody"
OTHER = "Another secret of 24 bytes"
OTHER_STANDARD = "whsec_" + base64.b64encode(bytes(32)).decode()


def github(body, secret=WORD, id="guid-1"):
    digest = hmac.new(secret.encode(), body, "sha256").hexdigest()
    return {"X-Hub-Signature-256": "sha256=" + digest,
            "X-GitHub-Delivery": id, "X-GitHub-Event": "push"}


def stripe(body, secret=WORD, age=0):
    at = int(time.time()) - age
    digest = hmac.new(secret.encode(), b"%d.%s" % (at, body),
                      "sha256").hexdigest()
    return {"Stripe-Signature": f"t={at},v1={'0' * 64},v1={digest},v0=00"}


def standard(body, secret=ONE, id="msg_1", age=0):
    at = str(int(time.time()) - age)
    digest = hmac.new(key(secret), f"{id}.{at}.".encode() + body,
                      "sha256").digest()
    return {"Webhook-Id": id, "Webhook-Timestamp": at,
            "Webhook-Signature": "v1," + base64.b64encode(digest).decode()}


HOOKS = [{"name": "github", "scheme": "github", "secrets": [WORD]},
         {"name": "stripe", "scheme": "stripe", "secrets": [WORD]},
         {"name": "other", "scheme": "standard-webhooks",
          "secrets": [ONE, TWO]}]


class Inbound(case.ByFile):
    def begin(self, hooks=HOOKS, **more):
        """A hub with these webhooks, and its one target."""
        self.target = self.leaf()
        return self.start([{"name": "a", "url": self.target.url()}],
                          inbound=hooks, **more)

    def send(self, hub, name, body, headers, host="hooks.example"):
        connection = http.client.HTTPConnection("127.0.0.1", hub.port,
                                                timeout=case.PATIENCE)
        with contextlib.closing(connection):
            connection.request("POST", f"/v1/in/{name}", body,
                               {"Host": host, **headers})
            answer = connection.getresponse()
            return answer.status, dict(answer.headers), json.loads(
                answer.read())

    def good(self, *arguments):
        status, headers, answer = self.send(*arguments)
        self.assertEqual(status, 202, answer)
        return answer["id"], headers.get("Stagger-Repeat") == "true"

    def refused_as(self, status, words, *arguments):
        found, headers, answer = self.send(*arguments)
        self.assertEqual((found, answer["status"]), (status, status), answer)
        self.assertIn(words, answer["detail"])
        self.assertNotIn("WWW-Authenticate", headers)

    def test_what_is_signed_goes_to_the_targets_as_it_came(self):
        hub = self.begin()
        body = b'{ "id": "evt_1",\r\n "name": "Gr\xc3\xbc\xc3\x9fe" }'
        id, is_repeat = self.good(hub, "github", body, {
            **github(body), "Content-Type": "application/json",
            "X-Hub-Signature": "sha1=00", "Cookie": "a=b"})
        self.assertFalse(is_repeat)
        receipt = self.target.wait(1)[0]
        self.assertEqual((receipt.body, receipt.id), (body, id))
        self.assertEqual(receipt.one("content-type"), "application/json")
        self.assertEqual(receipt.one("x-github-event"), "push")
        self.assertEqual(receipt.one("x-github-delivery"), "guid-1")
        for name in receipt.headers:
            self.assertNotIn("signature", name)
            self.assertNotEqual(name, "cookie")
        self.assertEqual(hub.stop(), 0)
        self.assertNotIn(WORD, json.dumps(hub.lines) + str(hub.noise))

    def test_what_nobody_signed_is_not_obeyed(self):
        hub = self.begin()
        self.good(hub, "github", b"x", {
            **github(b"x"), "Stagger-Key": "k",
            "Stagger-Not-Before": "1h", "Stagger-Expires": "1999-01-01T00:00:00Z"})
        receipt = self.target.wait(1)[0]
        for name in "stagger-key", "stagger-not-before", "stagger-expires":
            self.assertNotIn(name, receipt.headers)
        self.assertEqual(hub.stop(), 0)

    def test_a_redelivery_is_stored_once(self):
        hub = self.begin()
        for id in "guid-1", "msg_1", "evt_1":
            for name in "github", "other", "stripe":
                hub.post(b"mine", Idempotency_Key=f"in/{name}/{id}")
        event = b'{"object": "event", "id": "evt_\\u0031", "sent": %d}'
        for name, headers in (
                ("github", github), ("other", standard),
                ("stripe", lambda body: stripe(body))):
            first, again = event % 1, event % 2
            id, is_repeat = self.good(hub, name, first, headers(first))
            self.assertFalse(is_repeat)
            # A sender may write the event anew for each delivery of it.
            for body in first, again:
                self.assertEqual(self.good(hub, name, body, headers(body)),
                                 (id, True))
        # The same id of another webhook is another delivery, and so is another.
        body = event % 3
        self.assertFalse(self.good(hub, "github", body,
                                   github(body, id="guid-2"))[1])
        self.assertFalse(self.good(hub, "other", body,
                                   standard(body, id="guid-2"))[1])
        self.assertEqual(len(self.target.wait(14)), 14)
        self.assertEqual(hub.stop(), 0)

    def test_a_body_without_an_id_is_a_message_each_time(self):
        hub = self.begin()
        ids = set()
        for body in (b"no JSON", b"no JSON", b'{"a": {"id": "evt_1"}}',
                     b'{"id": 7}', b'{"id": "' + b"x" * 300 + b'"}', b""):
            id, is_repeat = self.good(hub, "stripe", body, stripe(body))
            self.assertFalse(is_repeat)
            ids.add(id)
        self.assertEqual(len(ids), 6)
        hub.stop()

    def test_what_is_not_signed_is_refused_and_says_what_is_wrong(self):
        hub = self.begin()
        body = b'{"id": "evt_1"}'
        for words, name, headers in (
                ("X-Hub-Signature-256 is not there", "github", {}),
                ("Webhook-Id is not there", "other", github(body)),
                ("no signature in X-Hub-Signature-256 is right", "github",
                 github(body, OTHER)),
                ("no signature in X-Hub-Signature-256 is right", "github",
                 github(body + b" ")),
                ("no signature in ", "github",
                 {"X-Hub-Signature-256": "sha256="}),
                ("has no signature for a secret of this kind", "github",
                 {"X-Hub-Signature-256": "sha1=" + "0" * 40}),
                ("no signature in ", "stripe", stripe(body, OTHER)),
                ("s old; expected 300 s at most", "stripe",
                 stripe(body, age=301)),
                ("ahead", "other", standard(body, age=-400)),
                ("old", "other", standard(body, OTHER_STANDARD, age=400)),
                ("not a number of seconds", "stripe",
                 {"Stripe-Signature": "v1=00"}),
                ("no signature in ", "other", standard(body, OTHER_STANDARD))):
            self.refused_as(401, words, hub, name, body, headers)
        self.refused_as(404, "no such webhook", hub, "nobody", body,
                        github(body))
        self.refused_as(400, "one X-GitHub-Delivery", hub, "github", body,
                        {**github(body), "X-GitHub-Delivery": "x" * 300})
        page = urllib.request.urlopen(
            f"http://127.0.0.1:{hub.port}/metrics").read().decode()
        self.assertEqual(
            {result: int(count) for result, count in re.findall(
                r'signatures_total{result="(.*)"} (\d+)', page)},
            {"right": 1, "missing": 3, "stale": 3, "wrong": 6})
        self.assertEqual(hub.post(b"x").split("-")[1], "1")
        self.assertEqual(len(self.target.wait(1)), 1)
        self.assertEqual(hub.stop(), 0)

    def test_a_body_is_not_waited_for_without_a_signature(self):
        hub = self.begin()
        connection = http.client.HTTPConnection("127.0.0.1", hub.port,
                                                timeout=case.PATIENCE)
        with contextlib.closing(connection):
            connection.putrequest("POST", "/v1/in/github")
            connection.putheader("Content-Length", str(1 << 20))
            connection.putheader("Expect", "100-continue")
            connection.endheaders()
            self.assertEqual(connection.getresponse().status, 401)
        hub.stop()

    def test_bodies_that_nobody_signed_leave_room_to_publishers(self):
        """A quarter of 16 MiB is for requests, and an eighth of that for these."""
        hub = self.begin(memory="16M")
        body, answers = b"x" * (400 << 10), []
        with contextlib.ExitStack() as stack:
            for _ in range(8):
                s = stack.enter_context(socket.create_connection(
                    ("127.0.0.1", hub.port), timeout=case.PATIENCE))
                s.sendall(b"POST /v1/in/github HTTP/1.1\r\nHost: a\r\n"
                          b"X-Hub-Signature-256: sha256=" + b"0" * 64 +
                          b"\r\nContent-Length: %d\r\n\r\n" % len(body) + body[1:])
                stack.callback(s.close)
                answers.append(s)
            self.assertTrue(hub.post(body))
            found = []
            for s in answers:
                s.sendall(b"x")
                found.append(s.recv(12)[-3:])
            self.assertEqual(set(found), {b"401", b"503"})
            self.assertTrue(self.good(hub, "github", body, github(body)))
        self.assertEqual(hub.stop(), 0)

    def test_bodies_of_all_sizes_and_in_chunks(self):
        hub = self.begin()
        for size in 0, 1, 5000, 1 << 20:
            body = os.urandom(size)
            self.good(hub, "github", body, github(body, id=f"guid-{size}"))
        pieces = [b"a" * 3000, b"b" * 70000]
        whole = b"".join(pieces)
        connection = http.client.HTTPConnection("127.0.0.1", hub.port,
                                                timeout=case.PATIENCE)
        with contextlib.closing(connection):
            connection.request(
                "POST", "/v1/in/github", iter(pieces),
                {**github(whole, id="chunks"), "Transfer-Encoding": "chunked"},
                encode_chunked=True)
            self.assertEqual(connection.getresponse().status, 202)
        self.assertIn(whole, [r.body for r in self.target.wait(5)])
        hub.stop()

    def test_it_needs_no_token_and_opens_nothing_else(self):
        self.put("tokens", "")
        token = subprocess.run(
            [STAGGER, "token", "new", os.path.join(self.folder, "tokens"),
             "--role", "publish"], check=True, capture_output=True, text=True)
        hub = self.begin(listen={"address": "127.0.0.1:0", "tokens": "tokens"})
        self.good(hub, "github", b"x", github(b"x"))
        with self.assertRaises(case.Refused) as refused:
            hub.post(b"x", **github(b"x"))
        self.assertEqual(refused.exception.status, 401)
        hub.post(b"x", Authorization="Bearer " + token.stdout.strip())
        self.refused_as(401, "is not there", hub, "github", b"x",
                        {"Authorization": "Bearer " + token.stdout.strip()})
        hub.stop()

    def test_secrets_change_with_a_reload(self):
        self.put("one", OTHER + "\n")
        hub = self.begin([{"name": "g", "scheme": "github",
                           "secrets": {"file": "one"}}])
        old, new = github(b"x", OTHER), github(b"x", WORD, "guid-2")
        self.good(hub, "g", b"x", old)
        self.refused_as(401, "no signature", hub, "g", b"x", new)
        self.put("two", WORD + "\n")
        url = self.target.url()

        def change(hooks):
            self.write([{"name": "a", "url": url}], inbound=hooks)
            self.reload(hub)
        change([{"name": "g", "scheme": "github",
                 "secrets": [{"file": "two"}, {"file": "one"}]}])
        self.good(hub, "g", b"x", old)
        self.good(hub, "g", b"x", new)
        self.put("one", "short")
        hub.process.send_signal(signal.SIGHUP)
        hub.event("reload-refused")
        self.good(hub, "g", b"x", old)
        change([{"name": "g", "scheme": "github", "secrets": {"file": "two"}},
                {"name": "h", "scheme": "github", "secrets": {"file": "two"}}])
        self.refused_as(401, "no signature", hub, "g", b"x", old)
        self.good(hub, "h", b"x", new)
        change([])
        self.refused_as(404, "no such webhook", hub, "g", b"x", new)
        self.assertEqual(hub.stop(), 0)

    def test_a_custom_scheme_and_what_is_kept(self):
        hub = self.begin([{
            "name": "shop", "scheme": "custom", "header": "Signature",
            "timestamp-header": "X-Time", "id-header": "Event-Id",
            "signs": "{id}|{timestamp}|{body}", "encoding": "base64",
            "algorithm": "sha512", "tolerance": "10s",
            "keep": ["Event-Type", "Event-Id", "Signature-Kind"],
            "secrets": [WORD]}])

        def headers(age=0, id="7"):
            at = str(int(time.time()) - age)
            digest = hmac.new(WORD.encode(), f"{id}|{at}|x".encode(),
                              "sha512").digest()
            return {"Signature": base64.b64encode(digest).decode(),
                    "X-Time": at, "Event-Id": id, "Event-Type": "paid",
                    "X-Other": "y", "X-Inbound": "forged", "Idempotency-Key": str(age)}
        id, _ = self.good(hub, "shop", b"x", headers())
        self.assertEqual(self.good(hub, "shop", b"x", headers(5)), (id, True))
        self.refused_as(401, "expected 10 s", hub, "shop", b"x", headers(20))
        self.refused_as(401, "Event-Id is not there", hub, "shop", b"x",
                        {"Signature": "x", "X-Time": "1"})
        receipt = self.target.wait(1)[0]
        self.assertEqual(receipt.one("event-type"), "paid")
        self.assertEqual(receipt.one("event-id"), "7")
        self.assertEqual(receipt.one("x-inbound"), "shop")
        for name in "x-other", "x-time", "signature":
            self.assertNotIn(name, receipt.headers)
        hub.stop()

    def test_messages_of_rfc_9421(self):
        """From a hub that signs as well."""
        key = {"scheme": "rfc9421", "secrets": [WORD]}
        inner = self.begin([
            {"name": "hub", **key, "covers": [
                "@method", "@target-uri", "content-digest",
                "idempotency-key"]},
            {"name": "more", **key, "covers": ["content-digest", "x-other"]}])
        outer = self.hub(settings=self.put("outer.yaml", json.dumps({
            "listen": {"address": "127.0.0.1:0"},
            "store": {"path": self.store + "2"},
            "targets": [{
                "name": name, "sign": key,
                "url": f"http://127.0.0.1:{inner.port}/v1/in/{name}"}
                for name in ("hub", "more")]})))
        id = outer.post(b"through both", Content_Type="text/plain")
        self.assertEqual(self.target.wait(1)[0].body, b"through both")
        case.wait_for(lambda: self.rows(store=self.store + "2"), "the refused")
        row = self.rows(store=self.store + "2")[0]
        self.assertEqual((row["target"], row["http_status"]), ("more", 401))
        self.assertIn("does not cover x-other", str(dict(row)))
        self.assertTrue(id)
        self.assertEqual(outer.stop(), 0)
        self.assertEqual(inner.stop(), 0)

    def test_targets_choose_by_the_webhook(self):
        b = self.leaf()
        self.target = self.leaf()
        hub = self.start(
            [{"name": "a", "url": self.target.url(),
              "match": {"X-Inbound": "stripe"}},
             {"name": "b", "url": b.url(),
              "match": {"X-Inbound": "github", "X-GitHub-Event": "push"}}],
            inbound=HOOKS)
        self.good(hub, "stripe", b"s", stripe(b"s"))
        self.good(hub, "github", b"g", github(b"g"))
        self.good(hub, "github", b"h", {**github(b"h", id="2"),
                                        "X-GitHub-Event": "ping"})
        self.good(hub, "github", b"i", github(b"i", id="3"))
        hub.post(b"forged", X_Inbound="stripe")
        self.good(hub, "stripe", b"t", stripe(b"t"))
        self.assertEqual({r.body for r in self.target.wait(2)}, {b"s", b"t"})
        self.assertEqual([r.body for r in b.wait(2)], [b"g", b"i"])
        hub.stop()

    def test_a_hub_that_signs_is_a_sender(self):
        """Ed25519 with the public key alone; and the hops are counted."""
        made = subprocess.run(
            [STAGGER, "secret", "new", "--ed25519",
             os.path.join(self.folder, "key")], check=True,
            capture_output=True, text=True)
        public = [word for word in made.stdout.split()
                  if word.startswith("whpk_")][0]
        inner = self.begin([{"name": "hub", "scheme": "standard-webhooks",
                             "secrets": [public]}])
        outer = self.hub(settings=self.put(
            "outer.yaml", json.dumps({
                "listen": {"address": "127.0.0.1:0"},
                "store": {"path": self.store + "2"},
                "targets": [{
                    "name": "b",
                    "url": f"http://127.0.0.1:{inner.port}/v1/in/hub",
                    "sign": {"scheme": "standard-webhooks",
                             "secrets": {"file": "key"}}}]})))
        outer.post(b"through both")
        receipt = self.target.wait(1)[0]
        self.assertEqual(receipt.body, b"through both")
        self.assertEqual(receipt.one("stagger-hops"), "2")
        self.assertEqual(outer.stop(), 0)
        self.assertEqual(inner.stop(), 0)


if __name__ == "__main__":
    case.main()
