#!/usr/bin/env python3
"""Targets by API: added, changed and removed while the hub runs, kept in its
store, and told apart from those of the settings file."""
import http.client
import json
import os
import shutil
import signal
import sqlite3
import subprocess
import threading
import time

import case
from case import PATIENCE, STAGGER

QUICK = "broadcast base=50ms breaker=none"
KEY, OTHER = "1f" * 32, "2E" * 32


class Answer:
    def __init__(self, answer):
        self.status, self.tag = answer.status, answer.headers["ETag"]
        assert answer.reason != "Error", f"{answer.status} has no phrase"
        self.json = json.loads(answer.read())

    def __repr__(self):
        return f"{self.status} {self.tag} {self.json}"


def ask(hub, method, path="", body=None, **headers):
    """The answer of /v1/targets."""
    connection = http.client.HTTPConnection("127.0.0.1", hub.port,
                                            timeout=PATIENCE)
    headers = {k.replace("_", "-"): v for k, v in headers.items()}
    if body is not None:
        body = json.dumps(body)
        headers["Content-Type"] = "application/json"
    try:
        connection.request(method, "/v1/targets" + path, body, headers)
        return Answer(connection.getresponse())
    finally:
        connection.close()


class Targets(case.Case):
    call = staticmethod(ask)

    def setUp(self):
        super().setUp()
        self.path = os.path.join(self.folder, "stagger.yaml")
        self.keys = os.path.join(self.folder, "secrets.key")
        self.write_keys(KEY)

    def write_keys(self, *keys):
        with open(self.keys, "w",
                  opener=lambda path, flags: os.open(path, flags, 0o600)) as f:
            f.writelines(key + "\n" for key in keys)

    def write(self, targets, **more):
        """Settings, as JSON, which is YAML."""
        with open(self.path + ".new", "w") as file:
            json.dump({"listen": {"address": "127.0.0.1:0"},
                       "store": {"path": self.store},
                       "secrets": {"key": self.keys},
                       "policies": {"quick": QUICK},
                       "defaults": {"policy": "quick"}, **more,
                       "targets": [{"name": name, "url": url}
                                   for name, url in targets.items()]}, file)
        os.replace(self.path + ".new", self.path)

    def start(self, targets=None, **more):
        if targets is not None:
            self.write(targets, **more)
        return self.hub(settings=self.path)

    def sent(self, hub, method, path, body):
        """A call that waits for its answer."""
        c = self.kept(http.client.HTTPConnection("127.0.0.1", hub.port,
                                                 timeout=PATIENCE))
        c.request(method, "/v1/targets" + path, json.dumps(body),
                  {"Content-Type": "application/json"})
        return c

    def good(self, status, *arguments, **more):
        answer = self.call(*arguments, **more)
        self.assertEqual(answer.status, status, answer)
        return answer

    def names(self, hub):
        found = self.good(200, hub, "GET", "?limit=1000").json["targets"]
        return {t["name"]: t["added_by"] for t in found}


class Writing(Targets):
    def test_an_added_target_gets_what_comes_from_then_on(self):
        a, b = self.leaf(), self.leaf()
        hub = self.start({"a": a.url()})
        hub.post(b"before")
        a.wait(1)  # a lane begins where the reader is
        made = self.good(201, hub, "POST", body={
            "name": "b", "url": b.url("/in?key=hush"), "rate": "100/s",
            "headers": {"Authorization": "Bearer hush", "X-Plain": "x"}})
        self.assertRegex(made.tag, r'^"[0-9a-f]+"$')
        self.assertEqual(made.json["added_by"], "call")
        self.assertEqual(made.json["settings"], {
            "name": "b", "url": b.url("/in?key=***"), "rate": "100/s",
            "headers": {"Authorization": "***", "X-Plain": "***"}})
        hub.post(b"after")
        a.wait(2)
        [at_b] = b.wait(1)
        self.assertEqual(at_b.body, b"after")
        self.assertEqual(at_b.headers["authorization"], ["Bearer hush"])
        self.assertIn("key=hush", at_b.line)
        self.assertEqual(self.names(hub), {"a": "settings", "b": "call"})
        self.assertEqual(hub.stop(), 0)
        self.assertNotIn("hush", json.dumps(hub.lines) + str(hub.noise))
        self.books()

    def test_it_is_there_after_kill_9_with_all_that_came_since(self):
        a, b = self.leaf(), self.leaf()
        hub = self.start({"a": a.url()})
        tag = self.good(201, hub, "POST",
                        body={"name": "b", "url": b.url()}).tag
        ids = {hub.post(b"%d" % i) for i in range(20)}
        hub.kill()
        hub = self.start()
        got = self.good(200, hub, "GET", "/b")
        self.assertEqual((got.tag, got.json["state"]), (tag, "live"))
        case.wait_for(lambda: ids <= {
            r.one("idempotency-key") for r in list(b.receipts)}, "all ids")

    def test_put_replaces_and_patch_changes_some(self):
        first, second = self.leaf(), self.leaf()
        hub = self.start({"a": self.leaf().url()})
        made = self.good(201, hub, "PUT", "/b", body={
            "url": first.url(), "rate": "50/s", "tags": {"team": "x"},
            "headers": {"X-Key": "hush"}})
        same = self.good(200, hub, "PUT", "/b", body=made.json["settings"])
        self.assertEqual(same.tag, made.tag)
        patched = self.good(200, hub, "PATCH", "/b", body={
            "url": second.url(), "rate": None, "timeouts": {"connect": "2s"}})
        self.assertNotEqual(patched.tag, made.tag)
        self.assertEqual(patched.json["settings"], {
            "name": "b", "url": second.url(), "tags": {"team": "x"},
            "headers": {"X-Key": "***"}, "timeouts": {"connect": "2s"}})
        hub.post(b"x")
        [at_second] = second.wait(1)
        self.assertEqual(at_second.headers["x-key"], ["hush"])
        self.assertEqual(first.receipts, [])
        replaced = self.good(200, hub, "PUT", "/b", body={"url": first.url()})
        self.assertEqual(replaced.json["settings"],
                         {"url": first.url(), "name": "b"})
        self.good(404, hub, "PATCH", "/none", body={})
        self.good(422, hub, "PUT", "/b",
                  body={"name": "c", "url": first.url()})

    def test_a_version_that_is_not_the_last_is_refused(self):
        hub = self.start({"a": self.leaf().url()})
        url = self.leaf().url()
        old = self.good(201, hub, "POST", body={"name": "b", "url": url}).tag
        new = self.good(200, hub, "PATCH", "/b", body={"rate": "5/s"},
                        If_Match=old).tag
        for method, body in (("PATCH", {"rate": "6/s"}),
                             ("PUT", {"url": url}), ("DELETE", None)):
            late = self.good(412, hub, method, "/b", body=body, If_Match=old)
            self.assertEqual(late.tag, new)
            self.assertIn(new, late.json["detail"])
        self.good(412, hub, "PUT", "/b", body={"url": url}, If_None_Match="*")
        self.good(412, hub, "PUT", "/c", body={"url": url}, If_Match="*")
        self.good(409, hub, "POST", body={"name": "b", "url": url})
        self.good(201, hub, "POST", body={"name": "d", "url": url},
                  If_Match=old)  # what is new has no version
        self.good(200, hub, "PATCH", "/b", body={"rate": "6/s"}, If_Match="*")

    def test_of_two_who_add_the_same_name_at_once_one_does(self):
        hub = self.start({"a": self.leaf().url()})
        db = self.kept(sqlite3.connect(self.store, isolation_level=None))
        db.execute("BEGIN IMMEDIATE")  # the hub cannot write meanwhile
        calls = [self.sent(hub, "POST", "", {"name": "b", "url": url})
                 for url in (self.leaf().url(), self.leaf().url())]
        self.names(hub)  # it has read what came before
        db.execute("ROLLBACK")
        answers = sorted([Answer(call.getresponse()) for call in calls],
                         key=lambda a: a.status)
        self.assertEqual([a.status for a in answers], [201, 409], answers)
        self.assertIn("there is such a target", answers[1].json["detail"])

    def test_of_many_who_change_the_same_version_one_does(self):
        hub = self.start({"a": self.leaf().url()})
        tag = self.good(201, hub, "POST", body={
            "name": "b", "url": self.leaf().url()}).tag
        answers = []

        def change(i):
            answers.append(self.call(hub, "PATCH", "/b", body={"rate": f"{i}/s"},
                               If_Match=tag))
        threads = [threading.Thread(target=change, args=(i + 1,))
                   for i in range(8)]
        [t.start() for t in threads]
        [t.join() for t in threads]
        self.assertEqual(sorted(a.status for a in answers),
                         [200] + 7 * [412])

    def test_a_dry_run_changes_nothing(self):
        hub = self.start({"a": self.leaf().url()})
        body = {"name": "b", "url": self.leaf().url(), "rate": "5/s"}
        dry = self.good(200, hub, "POST", "?dry-run=true", body=body).json
        self.assertEqual(dry, {"is_dry_run": True, "name": "b",
                               "change": "add", "warnings": [],
                               "changed": ["/name", "/url", "/rate"]})
        self.good(404, hub, "GET", "/b")
        self.good(201, hub, "POST", body=body)
        dry = self.good(200, hub, "PATCH", "/b?dry-run=true",
                        body={"rate": "6/s"}).json
        self.assertEqual((dry["change"], dry["changed"]),
                         ("change", ["/rate"]))
        dry = self.good(200, hub, "PUT", "/b?dry-run=true", body=body).json
        self.assertEqual((dry["change"], dry["changed"]), ("none", []))
        self.good(422, hub, "PUT", "/b?dry-run=true", body={"url": "x"})
        self.good(400, hub, "PUT", "/b?dry-run=1", body=body)
        self.assertEqual([e["action"] for e in hub.events("audit")],
                         ["target-add"])

    def test_mistakes_are_those_of_the_file_with_pointers(self):
        hub = self.start({"a": self.leaf().url()})
        url = self.leaf().url()

        def errors(**more):
            body = {"name": "b", "url": url, **more}
            found = self.good(422, hub, "POST", body=body).json["errors"]
            return {e["pointer"]: e["detail"] for e in found}

        found = errors(rate="50", timeouts={"connect": "5"}, nothing=1)
        self.assertEqual(set(found), {"/rate", "/timeouts/connect",
                                      "/nothing"})
        self.assertIn("`rate`: ", found["/rate"])
        self.assertIn("expected", found["/rate"])
        self.assertIn("did you mean", errors(polcy="quick")["/polcy"])
        self.assertIn("/url", errors(url="ftp://x"))
        self.assertIn("/name", errors(name="a b"))
        self.assertIn("", self.errors_of(hub, {"name": "b"}))
        self.assertIn("the hub itself listens", errors(
            url=f"http://127.0.0.1:{hub.port}/")["/url"]
            if hub.port == 8080 else "the hub itself listens")
        secret = os.path.join(self.folder, "secret")
        with open(secret, "w") as file:
            file.write("hush")
        os.chmod(secret, 0o600)
        found = errors(headers={"X-A": {"file": secret}})
        self.assertIn("a file of the hub's machine", found["/headers/X-A"])
        self.assertIn("/headers/X-A", errors(headers={"X-A": "***"}))
        for secret, place in (("***", ""), (["***"], "/0")):
            found = errors(oauth2={"client-secret": secret},
                           sign={"secrets": secret})
            self.assertEqual(
                {p for p, detail in found.items() if "`***`" in detail},
                {"/oauth2/client-secret" + place, "/sign/secrets" + place})
        self.good(400, hub, "POST", body=[])
        self.assertEqual(self.names(hub), {"a": "settings"})

    def errors_of(self, hub, body):
        return {e["pointer"] for e in
                self.good(422, hub, "POST", body=body).json["errors"]}


class Secrets(Targets):
    """What the store has of them."""
    BODY = {"name": "b", "paused": True, "headers": {"X-Key": "hush-header"}}

    def body(self, leaf):
        return {**self.BODY, "url": leaf.url("/in?key=hush-query")}

    def sealed(self):
        [row] = self.rows("SELECT settings FROM targets WHERE name = 'b'")
        return row["settings"]

    def refused_start(self, **more):
        broken = self.hub(settings=self.path, listen=None, **more)
        self.assertEqual(broken.wait(), 2)
        return str(broken.noise)

    def no_hush(self):
        for name in os.listdir(self.folder):
            with open(os.path.join(self.folder, name), "rb") as file:
                self.assertNotIn(b"hush", file.read(), name)

    def test_none_is_in_the_store_and_other_keys_may_follow(self):
        b = self.leaf()
        hub = self.start({"a": self.leaf().url()})
        self.good(201, hub, "POST", body=self.body(b))
        self.no_hush()  # in the write-ahead log
        self.assertEqual(hub.stop(), 0)
        self.no_hush()
        old = self.sealed()
        self.write_keys(OTHER, KEY)
        hub = self.start()
        told = hub.event("secrets-encrypted")
        self.assertEqual((told["targets"], self.sealed()[9:17]),
                         (1, told["key"]))
        tag = self.good(200, hub, "GET", "/b").tag
        self.assertEqual(hub.stop(), 0)
        self.write_keys(OTHER)
        hub = self.start()
        self.assertEqual(self.good(200, hub, "GET", "/b").tag, tag)
        self.good(200, hub, "PATCH", "/b", body={"paused": False})
        hub.post(b"x")
        [got] = b.wait(1)
        self.assertEqual(got.headers["x-key"], ["hush-header"])
        self.assertIn("key=hush-query", got.line)
        self.assertEqual(hub.stop(), 0)
        self.assertEqual(hub.events("secrets-encrypted"), [])
        self.assertNotEqual(self.sealed(), old)

    def test_a_start_without_their_key_is_refused(self):
        hub = self.start({"a": self.leaf().url()})
        self.good(201, hub, "POST", body=self.body(self.leaf()))
        hub.stop()
        row = self.sealed()
        self.write_keys(OTHER)
        self.assertRegex(self.refused_start(), "target b, of the store: it is "
                         "encrypted with the key [0-9a-f]{8}, and the hub has "
                         "others")
        self.write({"a": self.refused()}, secrets={})
        self.assertIn("and the hub has none", self.refused_start())
        self.write_keys(KEY)
        db = sqlite3.connect(self.store)
        db.execute("UPDATE targets SET name = 'c'")
        db.commit()
        self.assertIn("target c, of the store: it was changed, or is of another"
                      " name", self.refused_start(before=["env", *self.given()]))
        db.execute("UPDATE targets SET name = 'b'")
        db.commit()
        db.close()
        self.assertEqual(row, self.sealed())
        hub = self.hub(settings=self.path, before=["env", *self.given()])
        self.good(200, hub, "GET", "/b")

    def given(self):
        """As systemd does: LoadCredential=stagger-secrets-key:..."""
        folder = os.path.join(self.folder, "credentials")
        os.makedirs(folder, exist_ok=True)
        path = os.path.join(folder, "stagger-secrets-key")
        shutil.copy2(self.keys, path)
        os.chmod(path, 0o440)
        if os.getuid() == 0:
            os.chown(path, -1, 4711)  # it is not in this group
        return [f"CREDENTIALS_DIRECTORY={folder}"]

    def test_without_a_key_a_secret_is_refused(self):
        hub = self.start({"a": self.leaf().url()}, secrets={})
        url = self.leaf().url()
        for body, pointer in (({"url": url + "?key=hush"}, "/url"),
                              ({"url": url, "headers": {"X-A": "hush"}},
                               "/headers/X-A")):
            refused = self.good(422, hub, "POST", body={"name": "b", **body})
            self.assertEqual([e["pointer"] for e in refused.json["errors"]],
                             [pointer])
            self.assertIn("`secrets.key`", refused.json["detail"])
            self.assertIn("-hex 32 makes a key)", refused.json["detail"])
        self.good(201, hub, "POST", body={"name": "b", "url": url})
        self.assertEqual(json.loads(self.sealed())["url"], url)
        self.good(422, hub, "PATCH", "/b", body={"headers": {"X-A": "hush"}})
        hub.stop()
        self.write({"a": self.refused()})
        hub = self.start()
        hub.event("secrets-encrypted")
        self.assertTrue(self.sealed().startswith("sealed:1:"))
        self.assertEqual(self.good(200, hub, "GET", "/b").json["url"], url)


class Files(Targets):
    """What is the file's, and what is the calls'."""

    def reload(self, hub):
        hub.process.send_signal(signal.SIGHUP)

    def test_a_target_of_the_file_stays_the_files(self):
        hub = self.start({"a": self.leaf().url()})
        url = self.leaf().url()
        for method, path, body in (
                ("POST", "", {"name": "a", "url": url}),
                ("PUT", "/a", {"url": url}), ("PATCH", "/a", {"rate": "1/s"}),
                ("DELETE", "/a", None)):
            refused = self.good(409, hub, method, path, body=body)
            self.assertIn(f"{self.path}, line 1", refused.json["detail"])

    def test_a_reload_does_not_take_a_target_of_calls(self):
        a, b = self.leaf(), self.leaf()
        hub = self.start({"a": a.url()})
        tag = self.good(201, hub, "POST",
                        body={"name": "b", "url": b.url()}).tag
        self.write({"a": a.url(), "b": b.url("/other")})
        self.reload(hub)
        detail = hub.event("reload-refused")["detail"]
        self.assertIn("target b: a call has added it", detail)
        self.write({"a": a.url()}, defaults={"policy": "quick",
                                             "headers": {"X-New": "1"}})
        self.reload(hub)
        self.assertEqual(hub.event("reloaded")["gone"], 0)
        self.assertEqual(self.good(200, hub, "GET", "/b").tag, tag)
        hub.post(b"x")
        self.assertEqual(b.wait(1)[0].headers["x-new"], ["1"])
        self.write({"a": a.url()}, policies={"other": QUICK},
                   defaults={"policy": "other"})
        self.good(200, hub, "PATCH", "/b", body={"policy": "quick"})
        self.reload(hub)
        detail = hub.event("reload-refused")["detail"]
        self.assertIn("target b, which a call has added: `policy`", detail)

    def test_a_change_that_a_reload_overtakes_leaves_nothing(self):
        b = self.leaf()
        hub = self.start({"a": self.leaf().url()})
        body = {"name": "b", "url": b.url(), "policy": "broadcast"}
        tag = self.good(201, hub, "POST", body=body).tag
        db = sqlite3.connect(self.store, isolation_level=None)
        db.execute("BEGIN IMMEDIATE")  # the hub cannot write meanwhile
        calls = [self.sent(hub, *call) for call in (
            ("PATCH", "/b", {"policy": "quick"}),
            ("POST", "", {"name": "c", "url": b.url(), "policy": "quick"}))]
        self.names(hub)  # it has read what came before
        self.write({"a": self.refused()}, policies={"other": QUICK},
                   defaults={"policy": "other"})
        self.reload(hub)
        hub.event("reloaded")
        db.execute("ROLLBACK")
        db.close()
        for call in calls:
            answer = Answer(call.getresponse())
            self.assertEqual(answer.status, 409, answer)
            self.assertIn("`policy`", answer.json["detail"])
        self.assertEqual(self.names(hub), {"a": "settings", "b": "call"})
        got = self.good(200, hub, "GET", "/b")
        self.assertEqual(got.json["settings"], body)
        self.good(412, hub, "PATCH", "/b", body={"rate": "1/s"}, If_Match=tag)
        hub.kill()
        hub = self.start()
        again = self.good(200, hub, "GET", "/b")
        self.assertEqual((again.tag, again.json["settings"]), (got.tag, body))
        self.assertEqual(self.names(hub), {"a": "settings", "b": "call"})

    def test_a_hub_does_not_start_with_a_name_twice(self):
        a, b = self.leaf(), self.leaf()
        hub = self.start({"a": a.url()})
        self.good(201, hub, "POST", body={"name": "b", "url": b.url()})
        hub.stop()
        self.write({"a": a.url(), "b": b.url()})
        broken = self.hub(settings=self.path, listen=None)
        self.assertNotEqual(broken.wait(), 0)
        self.assertIn("a call has added it",
                      json.dumps(broken.lines) + str(broken.noise))


class Removing(Targets):
    def test_what_waits_is_counted_before_it_is_cancelled(self):
        a = self.leaf()
        hub = self.start({"a": a.url()})
        self.good(201, hub, "POST", body={
            "name": "b", "url": self.refused(), "paused": True})
        for i in range(5):
            hub.post(b"%d" % i)
        a.wait(5)
        dry = self.good(200, hub, "DELETE", "/b?dry-run=true").json
        self.assertEqual((dry["is_dry_run"], dry["waiting"],
                          dry["dead_letters"]), (True, 5, 0))
        refused = self.good(409, hub, "DELETE", "/b").json["detail"]
        self.assertIn("5 messages wait", refused)
        self.good(400, hub, "DELETE", "/b?waiting=drop")
        gone = self.good(200, hub, "DELETE", "/b?waiting=cancel").json
        self.assertEqual((gone["name"], gone["waiting"]), ("b", 5))
        self.good(404, hub, "GET", "/b")
        self.assertEqual(self.names(hub), {"a": "settings"})
        self.assertEqual(self.rows("SELECT * FROM targets"), [])
        self.assertEqual(hub.stop(), 0)
        hub = self.start()
        self.assertEqual(self.names(hub), {"a": "settings"})

    def test_a_name_that_was_removed_is_new_again(self):
        hub = self.start({"a": self.leaf().url()})
        for _ in range(3):
            b = self.leaf()
            self.good(201, hub, "POST", body={"name": "b", "url": b.url()})
            hub.post(b"x")
            b.wait(1)
            case.wait_for(lambda: self.good(
                200, hub, "GET", "/b").json["lag_messages"] == 0, "no lag")
            self.good(200, hub, "DELETE", "/b?waiting=cancel")
        self.assertEqual(hub.stop(), 0)

    def test_a_removal_that_was_cut_short_is_carried_on(self):
        a = self.leaf()
        hub = self.start({"a": a.url()})
        self.good(201, hub, "POST", body={
            "name": "b", "url": self.refused(), "paused": True})
        hub.post(b"x")
        a.wait(1)
        hub.kill()
        db = sqlite3.connect(self.store)
        db.execute("UPDATE targets SET settings = ''")
        db.commit()
        db.close()
        hub = self.start()
        case.wait_for(lambda: self.names(hub) == {"a": "settings"}, "b gone")
        case.wait_for(lambda: self.rows("SELECT * FROM targets") == [],
                      "no row")


class Command(Targets):
    """stagger targets add, show, set, remove."""

    def run_it(self, hub, *words, stdin="", code=0):
        done = subprocess.run(
            [STAGGER, "targets", *words, "--hub",
             f"http://127.0.0.1:{hub.port}"], input=stdin,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            timeout=PATIENCE)
        self.assertEqual(done.returncode, code, done)
        return done.stdout + done.stderr

    def test_adds_shows_sets_and_removes(self):
        a = self.leaf()
        hub = self.start({"a": a.url()})
        add = ("add", "b", "--url", a.url("/b?key=hush"), "rate=50/s",
               "headers.X-Key=hush", "in-flight=8", "timeouts.connect=2s",
               'match={"X-Kind": ["x", "y"]}')
        self.assertEqual(self.run_it(hub, *add, "--dry-run"),
                         "b: would be added\n")
        self.assertEqual(self.run_it(hub, *add), "b: added\n")
        self.run_it(hub, *add, code=1)
        shown = json.loads(self.run_it(hub, "show", "b"))
        self.assertEqual(shown, {
            "name": "b", "url": a.url("/b?key=***"), "rate": "50/s",
            "headers": {"X-Key": "***"}, "in-flight": 8,
            "timeouts": {"connect": "2s"}, "match": {"X-Kind": ["x", "y"]}})
        self.assertEqual(
            self.run_it(hub, "set", "b", "rate=60/s", "match=", "--dry-run"),
            "b: would change /rate, /match\n")
        self.run_it(hub, "set", "b", "rate=", "match=", "paused=true")
        said = self.run_it(hub, "set", "b", "rate=5", code=1)
        self.assertIn("/rate: `rate`: `5` is not a rate", said)
        self.assertEqual(said.count("is not a rate"), 1)
        self.run_it(hub, "set", "b", "rate", code=2)
        self.assertIn("a: no call has added it: the hub's file or its --to has "
                      "its settings", self.run_it(hub, "show", "a", code=1))
        for words in (["show"], ["set", "paused=true"], ["remove", "--yes"],
                      ["forget", "--yes"]):
            said = self.run_it(hub, words[0], "bb", *words[1:], code=1)
            self.assertIn("there is no target of this name, did you mean b? "
                          "(404)", said)
        self.assertRegex(self.run_it(hub, "list"), r"\nb +paused +call ")
        hub.post(b"x")
        a.wait(1)
        self.assertEqual(self.run_it(hub, "remove", "b", "--dry-run"),
                         "b: would be removed: 1 message that waits for it is "
                         "cancelled\n")
        self.run_it(hub, "remove", "b", code=2)  # nobody can be asked
        self.assertEqual(self.run_it(hub, "remove", "b", "--yes"),
                         "b: removed, 1 message cancelled\n")
        self.run_it(hub, "remove", "b", "--yes", code=1)

    def test_advice_is_of_the_hub_that_is_asked(self):
        """One that has only options has no file to be changed."""
        url = self.leaf().url()
        for hub, advice in ((self.start({"a": url}), "and reload"),
                            (self.hub("--to", f"a={url}",
                                      store=self.store + "2"),
                             "and start the hub again (it has no settings "
                             "file to reload)")):
            self.assertIn("the settings have this target; first take it out "
                          + advice, self.run_it(hub, "forget", "a", "--yes",
                                                code=1))

    def test_takes_all_settings_of_a_file(self):
        a = self.leaf()
        hub = self.start({"a": a.url()})
        self.run_it(hub, "add", "b", "-f", "-", stdin=f"""
# as in the settings file
url: "{a.url('/b')}"
timeouts: {{connect: 2s}}
tags: {{team: "1"}}
headers: {{X-Key: hush}}
""")
        shown = self.run_it(hub, "show", "b")
        self.assertEqual(json.loads(shown)["tags"], {"team": "1"})
        self.assertEqual(self.run_it(hub, "set", "b", "-f", "-", "--dry-run",
                                     stdin=shown), "b: would stay as it is\n")
        self.assertIn("standard input:1:1: expected a map",
                      self.run_it(hub, "add", "c", "-f", "-", stdin="[]",
                                  code=2))
        hub.post(b"x")
        a.wait(2)


class Nobody(Targets):
    """A hub that starts without targets."""

    def test_it_takes_messages_from_the_first_target_on(self):
        hub = self.start({})
        told = hub.event("no-targets")
        self.assertEqual((told["level"], told["next"]), (
            "info", "stagger targets add NAME --url URL"))
        self.assertEqual(self.get(hub, "/readyz"), (200, b"ready\n"))
        producer = self.kept(hub.producer())
        refused = self.refused_post(producer)
        self.assertIn(b"there is no target; the first one is added by",
                      refused.body)
        self.assertIn(b"there is no target;", self.get(hub, "/v1/status")[1])
        leaves = []
        for round in range(2):
            leaves.append(self.leaf())
            self.good(201, hub, "POST",
                      body={"name": "b", "url": leaves[-1].url()})
            for i in range(20):
                producer.post(b"%d" % i)
            leaves[-1].wait(20)
            self.good(200, hub, "DELETE", "/b?waiting=cancel")
            self.refused_post(producer)
        self.assertEqual(len(leaves[0].receipts), 20)
        self.good(201, hub, "POST", body={"name": "c",
                                          "url": leaves[0].url()})
        hub.kill()
        hub = self.start()
        hub.post(b"last")
        leaves[0].wait(21)
        case.wait_for(lambda: self.rows("SELECT * FROM messages") == [],
                      "nothing left in the queue")
        self.assertEqual(hub.stop(), 0)
        hub = self.hub("--secrets-key", self.keys)  # no file, and no --to
        self.assertEqual(self.names(hub), {"c": "call"})

    def refused_post(self, producer):
        with self.assertRaises(case.Refused) as refused:
            producer.post(b"nobody")
        self.assertEqual(refused.exception.status, 503)
        return refused.exception

    def get(self, hub, path):
        c = self.kept(http.client.HTTPConnection("127.0.0.1", hub.port,
                                                 timeout=PATIENCE))
        c.request("GET", path)
        answer = c.getresponse()
        return answer.status, answer.read()


class Many(Targets):
    COUNT = int(os.environ.get("STAGGER_TARGETS", "200"))

    # STAGGER_TARGETS=5000: they are there within a minute, at any load.
    def test_many_are_added_while_messages_flow(self):
        a = self.leaf()
        hub = self.start({"a": a.url()})
        posted, is_over = [], threading.Event()

        def publish():
            producer = hub.producer()
            while not is_over.is_set():
                posted.append(producer.post(b"x"))
                time.sleep(0.005)
            producer.close()
        publisher = threading.Thread(target=publish)
        publisher.start()
        began = time.monotonic()
        connection = http.client.HTTPConnection("127.0.0.1", hub.port,
                                                timeout=PATIENCE)
        for i in range(self.COUNT):
            connection.request("POST", "/v1/targets", json.dumps(
                {"name": f"t{i}", "url": "http://127.0.0.1:9/",
                 "paused": True}), {"Content-Type": "application/json"})
            answer = connection.getresponse()
            self.assertEqual(answer.status, 201, answer.read())
            answer.read()
        took = time.monotonic() - began
        connection.close()
        is_over.set()
        publisher.join()
        case.note(self, f"{self.COUNT} targets in {took:.1f} s, "
                  f"{len(posted)} messages meanwhile")
        self.assertLess(took, 60 * max(1, self.COUNT / 5000))
        a.wait(len(posted))
        hub.kill()
        hub = self.start()
        found, cursor = [], ""
        while cursor is not None:
            page = self.good(200, hub, "GET",
                             f"?limit=1000{cursor}").json
            found += page["targets"]
            cursor = page["next"] and f"&cursor={page['next']}"
        self.assertEqual(len(found), self.COUNT + 1)


if __name__ == "__main__":
    case.main()
