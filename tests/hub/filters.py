#!/usr/bin/env python3
"""Filters by the body: what a target asks for is what it gets, whatever way a
message comes to it; and what `stagger check --try` says of it."""
import contextlib
import json
import os
import re
import subprocess
import unittest.mock
import urllib.request

import case
from case import PATIENCE, STAGGER

PAID = {"order": {"state": "paid", "total": 100}}
OPEN = {"order": {"state": "open", "total": 5, "items": [{"sku": "a"}]}}
WANTS_PAID = {"body": {"order": {"state": ["paid"]}}}
CHEAP = {"body": {"order": {"total": [{"numeric": ["<", 10]}]}}}


class ByFile(case.Case):
    def setUp(self):
        super().setUp()
        self.path = os.path.join(self.folder, "stagger.yaml")

    def write(self, matches, leaf, **more):
        """matches: by the names of targets; None: of all messages."""
        targets = [{"name": name, "url": leaf.url(f"/{name}"),
                    **({"match": match} if match else {})}
                   for name, match in matches.items()]
        with open(self.path, "w") as file:
            json.dump({"listen": {"address": "127.0.0.1:0"},
                       "store": {"path": self.store},
                       "defaults": {"policy": "broadcast base=20ms"}, **more,
                       "targets": targets}, file)

    def start(self, matches, **more):
        leaf = self.leaf()
        self.write(matches, leaf, **more)
        return self.hub(settings=self.path), leaf

    def routed(self):
        return {name: book["routed"] for name, book in self.books().items()}


class Filters(ByFile):
    def filtered(self, hub):
        url = f"http://127.0.0.1:{hub.port}/metrics"
        with urllib.request.urlopen(url, timeout=PATIENCE) as answer:
            text = answer.read().decode()
        return {body: int(count) for body, count in re.findall(
            r'^stagger_filtered_messages_total\{body="(.*)"\} (\d+)', text,
            re.M)}

    def test_a_target_gets_what_its_pattern_asks_for(self):
        hub, leaf = self.start({"paid": WANTS_PAID, "cheap": CHEAP, "all": None,
                                "both": {"X-Kind": "a", **CHEAP}})
        paid = hub.post(json.dumps(PAID))
        cheap = hub.post(json.dumps(OPEN))
        both = hub.post(json.dumps(OPEN), X_Kind="a")
        none = hub.post(b"not JSON", X_Kind="a")
        got = {(r.path.strip("/"), r.id) for r in leaf.wait(4 + 1 + 2 + 1)}
        self.assertEqual(got, {("paid", paid), ("cheap", cheap),
                               ("cheap", both), ("both", both),
                               *(("all", id) for id in
                                 (paid, cheap, both, none))})
        self.await_settled(4)
        self.assertEqual(self.filtered(hub), {"json": 3, "not-json": 1})
        hub.stop()
        self.assertEqual(self.routed(),
                         {"paid": 1, "cheap": 2, "all": 4, "both": 1})

    def test_headers_have_conditions_too(self):
        hub, leaf = self.start({
            "begins": {"X-Kind": ["a", {"prefix": "order."}]},
            "lacks": {"X-Kind": [{"exists": False}]},
            "but": {"X-Kind": [{"anything-but": ["a", "order.paid"]}],
                    "Content-Type": [{"wildcard": "text/*"}]},
            "large": {"X-Size": [{"numeric": [">=", 10]}]}})
        paid = hub.post(b"1", X_Kind="order.paid", X_Size="9")
        other = hub.post(b"2", X_Kind="x", X_Size="10",
                         Content_Type="text/plain")
        bare = hub.post(b"3", Content_Type="text/plain")
        got = {(r.path.strip("/"), r.id) for r in leaf.wait(4)}
        self.assertEqual(got, {("begins", paid), ("but", other),
                               ("large", other), ("lacks", bare)})
        self.await_settled(4)
        hub.stop()
        self.assertEqual(self.routed(), {"begins": 1, "lacks": 1, "but": 1,
                                         "large": 1})

    def test_no_body_is_read_where_no_target_asks(self):
        hub, leaf = self.start({"all": None, "kind": {"X-Kind": "a"}})
        hub.post(b"not JSON", X_Kind="a")
        leaf.wait(2)
        self.assertEqual(self.filtered(hub), {"json": 0, "not-json": 0})

    def test_many_messages_at_once_to_many_targets(self):
        """More than the window's reads, and patterns that some targets share:
        each gets its own."""
        count, targets = 3000, 30
        matches = {f"t{i}": {"body": {"n": [i % 10]}} for i in range(targets)}
        hub, leaf = self.start(matches)
        with contextlib.closing(hub.producer()) as producer:
            for i in range(0, count, 500):
                producer.post_lines([{"body": json.dumps({"n": n % 20})}
                                     for n in range(i, i + 500)])
        each = count // 20
        case.wait_for(lambda: len(leaf.receipts) >= each * targets,
                      "all of them")
        self.await_settled(targets)
        self.assertEqual(self.filtered(hub), {"json": count, "not-json": 0})
        hub.stop()
        self.assertEqual(self.routed(), {name: each for name in matches})

    def test_a_reload_changes_what_is_taken(self):
        hub, leaf = self.start({"a": WANTS_PAID, "b": CHEAP})
        first = hub.post(json.dumps(PAID))
        leaf.wait(1)
        self.write({"a": CHEAP, "b": CHEAP, "c": WANTS_PAID}, leaf)
        subprocess.run([STAGGER, "reload", "--hub",
                        f"http://127.0.0.1:{hub.port}"], check=True,
                       timeout=PATIENCE, stdout=subprocess.DEVNULL)
        second = hub.post(json.dumps(OPEN))
        third = hub.post(json.dumps(PAID))
        got = {(r.path, r.id) for r in leaf.wait(4)}
        self.assertEqual(got, {("/a", first), ("/a", second), ("/b", second),
                               ("/c", third)})

    def test_a_target_of_a_call_has_a_filter(self):
        hub, leaf = self.start({"a": None})
        url = f"http://127.0.0.1:{hub.port}/v1/targets"

        def call(method, path, body):
            request = urllib.request.Request(
                url + path, json.dumps(body).encode(), method=method,
                headers={"Content-Type": "application/json"})
            with contextlib.suppress(urllib.error.HTTPError), \
                    urllib.request.urlopen(request, timeout=PATIENCE) as r:
                return r.status, r.read()
            with self.assertRaises(urllib.error.HTTPError) as e:
                urllib.request.urlopen(request, timeout=PATIENCE)
            return e.exception.code, e.exception.read().decode()

        status, text = call("POST", "", {
            "name": "b", "url": leaf.url("/b"),
            "match": {"body": {"order": {"total": [{"numeric": ["<", "9"]}]}}}})
        self.assertEqual(status, 422, text)
        self.assertIn("`match.body.order.total[0].numeric[1]`: a text; "
                      "expected a number", text)
        self.assertIn("/match/body/order/total/0/numeric/1", text)
        self.assertEqual(call("POST", "", {"name": "b", "url": leaf.url("/b"),
                                           "match": CHEAP})[0], 201)
        first = hub.post(json.dumps(OPEN))
        hub.post(json.dumps(PAID))
        leaf.wait(3)
        # A patch goes into the pattern: RFC 7396.
        patch = {"match": {"body": {"order": {"total": None,
                                              "state": ["paid"]}}}}
        self.assertEqual(call("PATCH", "/b", patch)[0], 200)
        third = hub.post(json.dumps(PAID))
        leaf.wait(5)
        self.assertEqual([r.id for r in leaf.receipts if r.path == "/b"],
                         [first, third])

    def test_what_was_shed_is_replayed_through_the_filter(self):
        """A row of messages that were never tried: their bodies are read for
        the filter."""
        leaf = self.leaf(lambda request: 503)
        good = self.leaf()
        self.write({"a": CHEAP}, leaf,
                   defaults={"policy": "none breaker=2:30s",
                             "shed-after": "50ms"})
        hub = self.hub(settings=self.path)
        bodies = [PAID if i % 3 == 0 else {"order": {"total": 1, "n": i}}
                  for i in range(60)]
        with contextlib.closing(hub.producer()) as producer:
            producer.post_lines([{"body": json.dumps(body)} for body in bodies])
        case.wait_for(lambda: [row for row in self.rows()
                               if row["attempts"] == 0], "a bulk row")
        self.await_settled(1)
        hub.stop()
        # Now the target wants others, by a field that only bodies have.
        self.write({"a": {"body": {"order": {"n": [{"numeric": [">=", 30]}]}}}},
                   good, defaults={"policy": "broadcast"})
        hub = self.hub(settings=self.path)
        subprocess.run([STAGGER, "dead", "replay", "--all", "--yes", "--hub",
                        f"http://127.0.0.1:{hub.port}"], check=True,
                       timeout=PATIENCE, stdout=subprocess.DEVNULL)
        expected = [body["order"]["n"] for body in bodies
                    if body["order"].get("n", 0) >= 30]
        case.wait_for(lambda: len(good.receipts) >= len(expected), "a replay")
        self.await_settled(1)
        got = sorted(json.loads(r.body)["order"]["n"] for r in good.receipts)
        # Those that were tried go out as they are.
        self.assertEqual([n for n in got if n >= 30], expected)
        self.assertLessEqual(len(got) - len(expected), 4)


class Try(ByFile):
    def check(self, body, *arguments, code=0):
        r = subprocess.run([STAGGER, "check", self.path, "--try", "-",
                            *arguments], input=body, text=True,
                           capture_output=True, timeout=PATIENCE)
        self.assertEqual(r.returncode, code, r.stderr)
        return r.stdout, r.stderr

    def settings(self):
        self.write({"paid": WANTS_PAID, "kind": {"X-Kind": ["a", "b"]},
                    "typed": {"Content-Type": "text/plain"}, "all": None},
                   self.leaf())

    def test_says_who_gets_it_and_why_not(self):
        self.settings()
        self.assertEqual(self.check(json.dumps(OPEN)), (
            'paid   no: body.order.state: "open" is not "paid"\n'
            'kind   no: header X-Kind is not there; expected one of "a", "b"\n'
            'typed  no: header Content-Type is not there; expected '
            '"text/plain"\n'
            'all    gets it\n'
            '1 of 4 targets would get it\n', ""))
        out, _ = self.check(json.dumps(PAID), "-H", "X-Kind: b", "-t",
                            "text/plain")
        self.assertEqual(out.count("gets it"), 4, out)

    def test_says_what_a_header_lacks(self):
        self.write({"a": {"X-Kind": ["a", {"prefix": "b"}]}}, self.leaf())
        for words, expected in (
                ((), 'header.X-Kind is not there; expected one of "a", '
                     '{"prefix":"b"}'),
                (("-H", "X-Kind: c"),
                 'header.X-Kind: "c" is none of "a", {"prefix":"b"}')):
            self.assertIn(expected, self.check("{}", *words)[0])
        self.assertIn("a  gets it", self.check("{}", "-H", "X-Kind: bc")[0])

    def test_what_the_environment_has_is_shown_by_its_name(self):
        self.write({"a": {"X-Kind": ["${WORD}"]}, "b": {"X-Kind": [{"prefix": "${WORD}"}]},
                    "c": {"body": {"key": ["${WORD}"]}}}, self.leaf())
        with unittest.mock.patch.dict(os.environ, WORD="word-of-a-customer"):
            for more in (), ("--json",), ("-H", "X-Kind: x"):
                out = self.check('{"key": "x"}', *more)[0]
                self.assertEqual(out.count("${WORD}"), 3, out)
                self.assertNotIn("word-of", out)

    def test_a_webhook_is_said_as_the_hub_says_it(self):
        self.write({"a": {"X-Inbound": "stripe"}}, self.leaf())
        self.assertIn("a  gets it", self.check("{}", "-H", "X-Inbound: stripe")[0])
        self.assertIn("a  no: ", self.check("{}", "-H", "X-Inbound: github")[0])

    def test_says_where_it_is_not_json(self):
        self.settings()
        out, err = self.check('{"a",}')
        self.assertIn("paid   no: body is not JSON\n", out)
        self.assertIn("--try=-:1:5: the body is not JSON: ", err)

    def test_prints_json(self):
        self.settings()
        out, _ = self.check(json.dumps(OPEN), "--json")
        found = json.loads(out)
        self.assertTrue(found["json"])
        self.assertEqual(found["targets"][0], {
            "name": "paid", "gets": False,
            "why": 'body.order.state: "open" is not "paid"'})
        self.assertEqual(found["targets"][3],
                         {"name": "all", "gets": True, "why": None})

    def test_knows_the_kinds_of_values_in_yaml(self):
        """Quotes make a text; what is bare is what JSON has it to be."""
        leaf = self.leaf()
        with open(self.path, "w") as file:
            file.write(f"""
targets:
  - {{name: a, url: "{leaf.url()}", match: {{body: {{v: ["5", 6, 1e1, true, yes,
      'null', ~, 10.0.0.0/8, 2026-03-01, -x, {{prefix: "7"}}]}}}}}}
""")
        for value, gets in (("5", True), (5, False), (6, True), ("6", False),
                            (6.0, True), (10, True), (True, True),
                            ("true", False), ("yes", True), (None, True),
                            ("null", True), ("~", False), ("10.0.0.0/8", True),
                            ("2026-03-01", True), ("-x", True), ("77", True),
                            (77, False)):
            out, _ = self.check(json.dumps({"v": value}))
            self.assertEqual(out.startswith("a  gets it"), gets, (value, out))

    def test_refuses_what_a_hub_would_not_take(self):
        self.settings()
        for words, expected in (
                (("-H", "Event: a"), "a hub would drop it"),
                (("-H", "Content-Type: a"), "say --type"),
                (("-H", "none"), "expected 'Name: value'")):
            self.assertIn(expected, self.check("{}", *words, code=2)[1])
        r = subprocess.run([STAGGER, "check", self.path, "--json"], text=True,
                           capture_output=True, timeout=PATIENCE)
        self.assertEqual(r.returncode, 2)
        self.assertIn("expected --try", r.stderr)


if __name__ == "__main__":
    case.main()
