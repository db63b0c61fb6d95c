#!/usr/bin/env python3
"""A hub by its settings file: what is set of a target is so on the wire."""
import contextlib
import json
import os
import signal
import socket
import subprocess

import case
from leaf import PATIENCE, STAGGER, hang


class ByFile(case.Case):
    def by_file(self, settings, *arguments, **more):
        """settings: as JSON, which is YAML."""
        return self.hub("-c", self.put("hub.yaml", json.dumps(settings)),
                        *arguments, **more)

    def refused_to_run(self, *arguments):
        r = subprocess.run([STAGGER, "hub", *arguments], text=True,
                           stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                           stderr=subprocess.PIPE, timeout=PATIENCE)
        self.assertEqual((r.returncode, r.stdout), (2, ""), r.stderr)
        return r.stderr

    def test_headers_and_methods_are_the_targets_own(self):
        a, b = self.leaf(), self.leaf()
        self.put("token", "Bearer hush-hush\n")
        hub = self.by_file({
            "defaults": {"headers": {"X-Hub": "one", "X-Tier": "1"}},
            "targets": [
                {"name": "a", "url": a.url(), "method": "PUT",
                 "headers": {"Authorization": {"file": "token"},
                             "x-tier": "2"}},
                {"name": "b", "url": b.url()}]})
        hub.post(b"x", Content_Type="text/plain")
        [at_a], [at_b] = a.wait(1), b.wait(1)
        self.assertTrue(at_a.line.startswith("PUT "), at_a.line)
        self.assertTrue(at_b.line.startswith("POST "), at_b.line)
        self.assertEqual(at_a.headers["authorization"], ["Bearer hush-hush"])
        self.assertEqual(at_a.headers["x-tier"], ["2"])
        self.assertEqual(at_a.headers["x-hub"], ["one"])
        self.assertEqual(at_a.headers["content-type"], ["text/plain"])
        self.assertEqual(at_b.headers["x-tier"], ["1"])
        self.assertNotIn("authorization", at_b.headers)
        hub.stop()
        self.assertNotIn("hush", json.dumps(hub.lines) + str(hub.noise))

    def test_there_is_one_copy_of_each_header(self):
        """The hub's own, then the target's, then the message's: a publisher
        cannot forge what the settings say."""
        plain, own = self.leaf(), self.leaf()
        hub = self.by_file({
            "listen": {"headers": ["X-*", "x_*"]},
            "targets": [
                {"name": "plain", "url": plain.url()},
                {"name": "own", "url": own.url(),
                 "headers": {"X-Api-Key": "hush", "User-Agent": "till/2"}}]})
        with contextlib.closing(hub.producer()) as producer:
            producer.http.putrequest("POST", "/v1/messages")
            for line in ("Content-Length: 1", "X-Api-Key: forged",
                         "x_api_key: forged", "X-Many: 1", "x-many: 2",
                         "Stagger_Attempt: 9", "User-Agent: me"):
                producer.http.putheader(*line.split(": "))
            producer.http.endheaders(b"x")
            self.assertEqual(producer.http.getresponse().status, 202)
        [at_plain], [at_own] = plain.wait(1), own.wait(1)
        names = [name.replace("_", "-") for name in at_own.headers]
        self.assertEqual(len(names), len(set(names)), names)
        self.assertEqual(at_own.headers["x-api-key"], ["hush"])
        self.assertEqual(at_own.headers["user-agent"], ["till/2"])
        self.assertEqual(at_own.headers["stagger-attempt"], ["1"])
        self.assertEqual(at_own.headers["x-many"], ["1, 2"])
        self.assertEqual(at_plain.headers["x-api-key"], ["forged, forged"])
        self.assertRegex(at_plain.headers["user-agent"][0],
                         r"^stagger/\d+\.\d+\.\d+$")

    def test_each_target_has_a_policy_of_its_own(self):
        a = self.leaf(lambda r: 503)
        b = self.leaf(lambda r: 503)
        hub = self.by_file({
            "policies": {"twice": "fixed base=1ms attempts=2 retry=5xx"},
            "targets": [
                {"name": "a", "url": a.url(), "policy": "twice"},
                {"name": "b", "url": b.url(),
                 "policy": "fixed base=1ms attempts=4 retry=5xx"}]})
        hub.post(b"x")
        a.wait(2)
        b.wait(4)
        case.wait_for(lambda: len(self.rows()) == 2, "two dead letters")
        hub.stop()
        self.assertEqual({row["target"]: row["attempts"]
                          for row in self.rows()}, {"a": 2, "b": 4})

    def test_a_filter_sends_only_what_it_asks_for(self):
        a, b, c = self.leaf(), self.leaf(), self.leaf()
        hub = self.by_file({
            "targets": [
                {"name": "a", "url": a.url(),
                 "match": {"x-event": ["paid", "sent"]}},
                {"name": "b", "url": b.url(),
                 "match": {"X-Event": "paid", "Content-Type": "text/plain"}},
                {"name": "c", "url": c.url(), "match": {"Stagger-Key": "k"}}]})
        paid = hub.post(b"1", X_Event="paid")
        hub.post(b"2", X_Event="lost")
        plain = hub.post(b"3", X_Event="paid", Content_Type="text/plain")
        keyed = hub.post(b"4", Stagger_Key="k")
        sent = hub.post(b"5", X_EVENT="sent")
        self.assertEqual({r.id for r in a.wait(3)}, {paid, plain, sent})
        self.assertEqual({r.id for r in b.wait(1)}, {plain})
        self.assertEqual({r.id for r in c.wait(1)}, {keyed})
        self.await_settled(3)
        hub.stop()
        books = self.books()
        self.assertEqual([books[name]["delivered"] for name in "abc"],
                         [3, 1, 1])
        self.assertEqual([books[name]["routed"] for name in "abc"], [3, 1, 1])

    def test_a_new_target_begins_with_the_latest_or_the_earliest(self):
        a, b, c = self.leaf(), self.leaf(), self.leaf()
        gone = self.refused()
        # A lane that waits keeps the messages in the log.
        keeper = {"name": "keeper", "url": gone, "paused": True}
        hub = self.by_file({"targets": [keeper,
                                        {"name": "a", "url": a.url()}]})
        old = [hub.post(b"x") for _ in range(3)]
        a.wait(3)
        hub.stop()
        hub = self.by_file({"targets": [
            keeper, {"name": "a", "url": a.url()},
            {"name": "b", "url": b.url(), "start": "earliest"},
            {"name": "c", "url": c.url(), "start": "latest"}]})
        new = hub.post(b"y")
        self.assertEqual({r.id for r in b.wait(4)}, {*old, new})
        self.assertEqual([r.id for r in c.wait(1)], [new])
        hub.stop()
        # It is not new any more.
        hub = self.by_file({"targets": [
            keeper, {"name": "b", "url": b.url(), "start": "earliest"}]})
        last = hub.post(b"z")
        self.assertEqual([r.id for r in b.wait(5)][4:], [last])

    def test_a_target_that_is_paused_gets_nothing(self):
        a, b = self.leaf(), self.leaf()
        hub = self.by_file({"targets": [
            {"name": "a", "url": a.url(), "paused": True},
            {"name": "b", "url": b.url()}]})
        hub.post(b"x")
        b.wait(1)
        hub.stop()
        hub = self.by_file({"targets": [{"name": "a", "url": a.url()},
                                        {"name": "b", "url": b.url()}]})
        self.assertEqual(len(a.wait(1)), 1)

    def test_a_timeout_is_the_targets_own(self):
        a = self.leaf(lambda r: hang)
        hub = self.by_file({"targets": [
            {"name": "a", "url": a.url(), "timeouts": {"first-byte": "100ms"},
             "policy": "fixed attempts=1"}]})
        hub.post(b"x")
        line = hub.event("attempt-failed", target="a")
        self.assertIn("TIMEOUT", line["cause"])

    def test_headers_that_are_kept_are_set(self):
        a = self.leaf()
        hub = self.by_file({"listen": {"headers": ["Event-*"]},
                            "targets": [{"url": a.url()}]})
        hub.post(b"x", Event_Type="paid", X_Other="gone")
        [r] = a.wait(1)
        self.assertEqual(r.headers["event-type"], ["paid"])
        self.assertNotIn("x-other", r.headers)

    def test_options_of_the_hub_go_before_the_file(self):
        a = self.leaf()
        other = os.path.join(self.folder, "other.db")
        hub = self.by_file({"store": {"path": "file.db", "quota": "64MiB"},
                            "listen": {"address": "127.0.0.1:1"},
                            "targets": [{"url": a.url()}]}, store=other)
        hub.post(b"x")
        a.wait(1)
        hub.stop()
        self.assertTrue(os.path.exists(other))
        self.assertFalse(os.path.exists(os.path.join(self.folder, "file.db")))

    def test_files_are_beside_the_settings(self):
        a = self.leaf(lambda r: 404)
        path = self.put("hub.yaml", json.dumps({
            "store": {"path": "sub.db"}, "listen": {"address": "127.0.0.1:0"},
            "log": {"format": "json"}, "dead-letters": {"copy": "file:dead.jsonl"},
            "targets": [{"url": a.url()}]}))
        hub = subprocess.Popen([STAGGER, "hub", "-c", path],
                               stderr=subprocess.PIPE, text=True, cwd="/")
        self.addCleanup(hub.wait)
        self.addCleanup(hub.kill)
        self.addCleanup(hub.stderr.close)
        ready = next(json.loads(line) for line in hub.stderr
                     if '"ready"' in line)
        producer = case.Producer(int(ready["listen"].rsplit(":", 1)[1]))
        producer.post(b"x")
        producer.close()
        letters = os.path.join(self.folder, "dead.jsonl")
        case.wait_for(lambda: os.path.exists(letters)
                      and os.path.getsize(letters) > 0, "a dead letter")
        self.assertTrue(os.path.exists(os.path.join(self.folder, "sub.db")))

    def test_options_of_the_hub_stay_over_a_reload(self):
        a, b = self.leaf(), self.leaf()
        settings = {"store": {"path": "file.db"}, "drain": "9s",
                    "listen": {"address": "127.0.0.1:1"},
                    "targets": [{"name": "a", "url": a.url()}]}
        hub = self.by_file(settings, "--drain", "5s")
        settings["drain"] = "8s"
        settings["targets"].append({"name": "b", "url": b.url()})
        self.put("hub.yaml", json.dumps(settings))
        hub.process.send_signal(signal.SIGHUP)
        self.assertEqual(hub.event("reloaded")["added"], 1)
        hub.post(b"x")
        b.wait(1)

    def test_a_reload_of_what_needs_a_restart_names_the_place(self):
        a = self.leaf()
        settings = {"targets": [{"name": "a", "url": a.url()}]}
        hub = self.by_file(settings)
        self.put("hub.yaml",
                 json.dumps({"memory": "64MiB", **settings}, indent=1))
        hub.process.send_signal(signal.SIGHUP)
        detail = hub.event("reload-refused")["detail"]
        self.assertIn("hub.yaml:2:12: `memory` has changed", detail)
        hub.post(b"x")
        a.wait(1)

    def test_a_secret_that_has_changed_is_read_by_a_reload(self):
        a = self.leaf()
        self.put("token", "one")
        hub = self.by_file({"targets": [
            {"name": "a", "url": a.url(),
             "headers": {"Authorization": {"file": "token"}}}]})
        hub.post(b"x")
        a.wait(1)
        self.put("token", "two")
        hub.process.send_signal(signal.SIGHUP)
        self.assertEqual(hub.event("reloaded")["changed"], 1)
        hub.post(b"y")
        self.assertEqual([r.headers["authorization"] for r in a.wait(2)],
                         [["one"], ["two"]])

    def test_a_target_where_the_hub_itself_listens_is_refused(self):
        """By the address in force: an option's, or the system's choice."""
        a = self.leaf()
        with contextlib.closing(socket.create_server(("127.0.0.1", 0))) as s:
            port = s.getsockname()[1]
        path = self.put("self.yaml", json.dumps(
            {"listen": {"address": "127.0.0.1:1"},
             "store": {"path": self.store},
             "targets": [{"url": f"http://127.0.0.1:{port}/v1/messages"}]}))
        self.assertIn("the hub itself listens there",
                      self.refused_to_run("-c", path, "--listen",
                                          f"127.0.0.1:{port}"))
        hub = self.by_file({"targets": [{"name": "a", "url": a.url()}]})
        self.put("hub.yaml", json.dumps({"targets": [
            {"name": "a",
             "url": f"http://127.0.0.1:{hub.port}/v1/messages"}]}))
        hub.process.send_signal(signal.SIGHUP)
        self.assertIn("the hub itself listens there",
                      hub.event("reload-refused")["detail"])

    def test_options_of_targets_are_refused_beside_a_file(self):
        path = self.put("hub.yaml", json.dumps(
            {"targets": [{"url": "http://127.0.0.1:1/"}]}))
        for words in (["--to", "http://127.0.0.1:2/"], ["--order", "key"],
                      ["-p", "broadcast"], ["--shed-after", "1m"]):
            found = self.refused_to_run("-c", path, *words)
            self.assertIn("with -c this belongs into the file", found)
            self.assertEqual(found.count("\n"), 1)

    def test_a_bad_file_stops_it_with_every_mistake(self):
        path = self.put("hub.yaml", "store: {quota: 5}\ntargets: none\n")
        found = self.refused_to_run("-c", path).splitlines()
        self.assertEqual([line.split(": `")[0] for line in found],
                         [f"{path}:1:16", f"{path}:2:10"])
        self.assertIn("cannot be read",
                      self.refused_to_run("-c", path + ".not"))

    def test_what_is_unwise_is_logged(self):
        a = self.leaf()
        hub = self.by_file({"targets": [{"name": "a", "url": a.url(),
                                         "shed-after": "none"}]})
        [line] = [line for line in hub.events("config-warning")
                  if "shed-after" in line["detail"]]
        self.assertEqual((line["level"], line["line"]), ("warn", 1))
        self.assertTrue(line["file"].endswith("hub.yaml"))


case.main()
