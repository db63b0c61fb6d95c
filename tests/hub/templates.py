#!/usr/bin/env python3
"""A target's URL and headers that are made of each message."""
import json
import signal
import subprocess

import case
from case import wait_for
from leaf import PATIENCE, STAGGER

POLICY = "fixed base=10ms retry=any attempts=3"


class Templates(case.Case):
    def start(self, path, headers={}, **more):
        self.target = self.leaf()
        return self.hub("-c", self.write(path, headers, **more))

    def write(self, path, headers={}, url=None, **more):
        return self.put("hub.yaml", json.dumps({"targets": [{
            "name": "a", "policy": POLICY, "headers": headers,
            "url": (url or self.target.url("")) + path, **more}]}))

    def complaint(self, *settings, **more):
        path = self.write(*settings, url="http://127.0.0.1:1", **more)
        found = subprocess.run([STAGGER, "check", path], text=True,
                               capture_output=True, timeout=PATIENCE)
        self.assertNotEqual(found.returncode, 0, found)
        return found.stdout + found.stderr

    def test_url_and_headers_are_made_of_the_message(self):
        hub = self.start(
            "/users/{body.user.id}/in?k={key}&h={header.x-kind}&m={id}",
            {"X-User": "u-{body.user.id}", "X-Plain": "yes",
             "X-Brace": "{{1}"})
        body = b'{"user": {"id": 12345678901234567890}}'
        ids = [hub.post(body, Stagger_Key="a/b c", X_Kind="paid&x=1"),
               hub.post(body, Stagger_Key="..", X_Kind="-")]
        found = {r.id: r for r in self.target.wait(2)}
        self.assertEqual(
            found[ids[0]].line,
            "POST /users/12345678901234567890/in?k=a%2Fb%20c&h=paid%26x%3D1&m="
            f"{ids[0]} HTTP/1.1")
        self.assertIn("?k=..&h=-&", found[ids[1]].line)
        for r in found.values():
            self.assertEqual(r.headers["x-user"], ["u-12345678901234567890"])
            self.assertEqual((r.one("x-plain"), r.one("x-brace")),
                             ("yes", "{1}"))
            self.assertEqual(r.body, body)
            self.assertTrue(r.one("host") and r.one("stagger-attempt"))
        self.await_settled(1)
        self.assertEqual(hub.stop(), 0)
        self.assertEqual(self.books()["a"]["delivered"], 2)

    def test_a_header_alone_leaves_the_path_as_it_is(self):
        hub = self.start("/in?a=b", {"X-Id": "{id}"})
        id = hub.post(b"x")
        r, = self.target.wait(1)
        self.assertEqual((r.path, r.one("x-id")), ("/in?a=b", id))
        hub.stop()

    def test_what_it_cannot_be_made_of_is_a_dead_letter_at_once(self):
        hub = self.start("/u/{body.user.id}/{key}")
        why = {hub.post(body, **({"Stagger_Key": key} if key else {})): flaw
               for body, key, flaw in (
                   (b'{"user": {}}', "k", "body.user.id is missing"),
                   (b'{"user": {"id": [1]}}', "k", "body.user.id is a list"),
                   (b'{"user": {"id": ".."}}', "k",
                    "body.user.id makes a path segment of dots"),
                   (b'{"user": {"id": ""}}', "k",
                    "body.user.id makes an empty path segment"),
                   (b'{"user": {"id": 1, "id": 2}}', "k",
                    "body.user.id is there twice"),
                   (b'{"user": {"id": 1}}', None, "key is missing"))}
        last = hub.post(b'{"user": {"id": 1}}', Stagger_Key="k")
        self.assertEqual([r.id for r in self.target.wait(1)], [last])
        self.await_settled(1)
        self.assertEqual(hub.stop(), 0)
        self.assertEqual({r["message_id"]: r["detail"] for r in self.rows()}, why)
        for row in self.rows():
            self.assertEqual((row["cause"], row["attempts"], row["why"],
                              row["http_status"]),
                             ("TEMPLATE", 1, "permanent", None))

    def test_a_body_that_is_no_json_is_told(self):
        hub = self.start("/{body.a}")
        hub.post(b"a=1")
        self.await_settled(1)
        hub.stop()
        row, = self.rows()
        self.assertRegex(row["detail"], "^the body is not JSON: ")

    def test_a_reload_takes_them_or_leaves_them(self):
        hub = self.start("/in", {"X-Id": "fixed"})
        hub.post(b"1")
        self.target.wait(1)
        for n, (path, headers) in enumerate((
                ("/in", {"X-Id": "{id}"}), ("/{key}", {}), ("/in", {})), 1):
            self.write(path, headers)
            hub.process.send_signal(signal.SIGHUP)
            wait_for(lambda: len(hub.events("reloaded")) == n, "a reload")
            hub.post(b"x", Stagger_Key="k")
            self.target.wait(n + 1)
        found = self.target.receipts
        self.assertEqual([r.path for r in found], ["/in", "/in", "/k", "/in"])
        self.assertEqual([r.one("x-id") for r in found],
                         ["fixed", found[1].id, None, None])
        hub.stop()

    def test_mistakes_are_found_before_the_start(self):
        self.assertIn("`url`: {colour}; expected {id}, {key}",
                      self.complaint("/{colour}"))
        self.assertIn("`headers`: a brace without its end",
                      self.complaint("/", {"X-A": "{id"}))
        self.assertIn("`batch.max`: a batch is one request",
                      self.complaint("/{id}", batch={"max": 10}))
        path = self.write("", url="http://{key}.example/")
        found = subprocess.run([STAGGER, "check", path], text=True,
                               capture_output=True, timeout=PATIENCE)
        self.assertIn("a host has letters, digits", found.stdout + found.stderr)


if __name__ == "__main__":
    case.main()
