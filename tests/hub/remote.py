#!/usr/bin/env python3
"""stagger status, pause, resume, targets, reload, dead replay and drop, with a hub
that runs. What they print: tests/cli/status.py."""
import contextlib
import datetime
import json
import os
import re
import sqlite3
import subprocess

import case
import leaf


class Remote(case.Case):
    def write(self, *targets, **settings):
        self.path = os.path.join(self.folder, "hub.yaml")
        with open(self.path, "w") as file:
            json.dump({"store": {"path": self.store},
                       "listen": {"address": "127.0.0.1:0"},
                       "defaults": {"policy": "none"},
                       "targets": list(targets), **settings}, file)
        return self.path

    def ask(self, *words, code=0):
        done = subprocess.run(
            [leaf.STAGGER, *words, "--hub",
             f"http://127.0.0.1:{self.running.port}"],
            capture_output=True, text=True, timeout=leaf.PATIENCE,
            stdin=subprocess.DEVNULL, env={**os.environ, "COLUMNS": "120"})
        self.assertEqual(done.returncode, code, done.stderr + done.stdout)
        return done.stderr if code else done.stdout

    def lanes(self):
        return {each["name"]: each for each in json.loads(
            self.ask("status", "--json", "-n", "10ms"))["targets"]}

    def test_looks_pauses_and_resumes(self):
        a, b = self.leaf(), self.leaf(lambda request: 503)
        self.running = self.hub(settings=self.write(
            {"name": "well", "url": a.url()},
            {"name": "ill", "url": b.url()}))
        self.running.post(b"1")
        a.wait(1)
        b.wait(1)
        lanes = case.wait_for(lambda: (l := self.lanes())["ill"]["dead"]
                              and l["well"]["delivered"] and l, "both ended")
        self.assertEqual((lanes["ill"]["last_cause"], lanes["ill"]["dead"]),
                         ("HTTP_503", 1))
        table = self.ask("status", "--once", "-n", "10ms")
        self.assertRegex(table, r"(?m)^2 targets, 1 failing: 2 live$")
        self.assertRegex(table, r"(?m)^ill +live .* 1 .* HTTP_503 \d+s ago$")
        self.assertLess(lanes["ill"]["last_failure_ms_ago"], 60e3)
        at = datetime.datetime.fromisoformat(
            lanes["ill"]["last_failure_at"].replace("Z", "+00:00"))
        ago = datetime.datetime.now(datetime.timezone.utc) - at
        self.assertTrue(0 <= ago.total_seconds() < leaf.PATIENCE, ago)
        self.assertEqual((lanes["well"]["last_failure_at"],
                          lanes["well"]["last_failure_ms_ago"]), (None, None))
        self.assertRegex(table, r"(?m)^well +live .* -$")
        self.assertEqual(self.ask("pause", "well"), "well: paused\n")
        self.running.post(b"2")
        b.wait(2) # and the other one waits
        self.assertEqual(self.lanes()["well"]["state"], "paused")
        self.assertEqual(len(a.receipts), 1)
        self.assertEqual(self.ask("resume", "well"), "well: live\n")
        a.wait(2)
        self.assertIn("there is no target",
                      self.ask("pause", "nobody", code=1))

    def test_replays_and_drops(self):
        is_well = []
        server = self.leaf(lambda request: 200 if is_well else 500)
        self.running = self.hub(settings=self.write(
            {"name": "a", "url": server.url("/a")},
            {"name": "b", "url": server.url("/b")}))
        ids = [self.running.post(b"x%d" % i) for i in range(30)]
        self.await_settled(2)
        dry = self.ask("dead", "replay", "--target=a", "--dry-run")
        self.assertIn("30 dead letters, 30 messages: would be sent again", dry)
        self.assertIn("and 20 more", dry)
        self.assertEqual(len(server.of("/a")), 30)
        self.assertIn("add --yes to confirm, or --dry-run",
                      self.ask("dead", "replay", "--target=a", code=2))
        is_well.append(True)
        self.assertIn("30 messages are on the way again",
                      self.ask("dead", "replay", "--target=a", "--yes"))
        case.wait_for(lambda: len(server.of("/a")) == 60, "all again")
        self.assertEqual(sorted(r.id for r in server.of("/a")[30:]),
                         sorted(ids))
        # Again there is nothing left to send.
        for how in ("--dry-run", "--yes"):
            self.assertEqual(self.ask("dead", "replay", "--target=a", how),
                             "no dead letter fits: nothing was sent again\n")
        self.assertRegex(
            self.ask("dead", "drop", "--target=c", "--yes", code=1),
            "c: no dead letter has this target; .*: there is no target of this "
            "name .404.")
        one = self.rows("SELECT id FROM failed_broadcast_logs WHERE "
                        "target = 'b' ORDER BY id")[0]["id"]
        self.assertEqual(self.ask("dead", "drop", "--yes", "--id", str(one)),
                         "1 dead letter, 1 message: dropped\n")
        self.assertIn("29 dead letters",
                      self.ask("dead", "drop", "--all", "--yes"))
        states = {(row["target"], row["state"]): row["n"] for row in self.rows(
            "SELECT target, state, count(*) AS n FROM failed_broadcast_logs "
            "GROUP BY target, state")}
        self.assertEqual(states, {("a", "replayed"): 30, ("b", "dropped"): 30})
        case.wait_for(lambda: self.lanes()["a"]["delivered"] == 30,
                      "delivered")
        self.assertEqual(self.running.stop(), 0)
        self.books()

    def test_lists_dead_letters_of_the_hub_as_of_its_store(self):
        self.running = hub = self.hub(settings=self.write(
            {"name": "a", "url": self.refused()},
            {"name": "b", "url": self.leaf(lambda _: 404).url()}))
        for i in range(7):
            hub.post(b"x%d" % i)
        case.wait_for(lambda: sum(each["dead"] for each in
                                  self.lanes().values()) == 14, "14 dead")
        for words in ((), ("--json",), ("--csv",), ("--summary",),
                      ("--summary", "--json"), ("-t", "a"), ("-c", "C"),
                      ("-c", "HTTP_404", "-n", "3", "--json"),
                      ("--since", "1h"), ("--until", "2026-03-01"),
                      ("--state", "replayed"), ("-t", "b", "-c", "A")):
            own = subprocess.run(
                [leaf.STAGGER, "dead", "list", "--store", self.store, *words],
                capture_output=True, text=True, timeout=leaf.PATIENCE,
                env={**os.environ, "COLUMNS": "120"})
            self.assertEqual(own.returncode, 0, own.stderr)
            self.assertEqual(self.ask("dead", "list", *words), own.stdout)
        # What is no UTF-8 is one character each, and the rest stays.
        with contextlib.closing(sqlite3.connect(self.store)) as db, db:
            db.execute("UPDATE failed_broadcast_logs SET"
                       " detail = CAST(x'c3bcff78' AS TEXT) WHERE id = 3")
        letters = json.loads(self.ask("dead", "list", "--json"))
        own = json.loads(subprocess.run(
            [leaf.STAGGER, "dead", "list", "--json", "--store", self.store],
            capture_output=True, timeout=leaf.PATIENCE, check=True).stdout)
        self.assertEqual(letters, own)
        self.assertEqual(len(letters["dead_letters"]), 14)
        self.assertEqual(letters["dead_letters"][2]["detail"],
                         "\u00fc\ufffdx")
        self.shows_the_same()
        hub.stop()
        self.assertIn("no hub answers at",
                      self.ask("dead", "list", code=1))

    def shows_the_same(self):
        """Each of them whole, whether bytes are text or not; and bulk ones,
        of which the hub has no body."""
        with contextlib.closing(sqlite3.connect(self.store)) as db, db:
            db.execute("UPDATE failed_broadcast_logs SET detail = 'x'"
                       " WHERE id = 3")
            for number, payload in ((1, b"\xff\x00"), (2, b"a\x00b"), (4, b""),
                                    (5, b"\xffx" * 900_000)):
                db.execute("UPDATE failed_broadcast_logs SET payload = ?,"
                           " answer = ? WHERE id = ?",
                           (payload, payload[:9], number))
            for number, first in (6, "0"), (7, "position"):
                db.execute("UPDATE failed_broadcast_logs SET payload = NULL,"
                           f" position = {first}, last_position = 5000000,"
                           " count = 2 WHERE id = ?", (number,))
        for words in (*(("show", *how, str(number)) for number in range(1, 9)
                        for how in ((), ("--json",))),
                      ("show", "--raw", "2"), ("export",),
                      ("export", "-f", "csv", "-c", "C")):
            own = subprocess.run(
                [leaf.STAGGER, "dead", *words, "--store", self.store],
                capture_output=True, text=True, timeout=leaf.PATIENCE,
                env={**os.environ, "COLUMNS": "120"})
            self.assertEqual(own.returncode, 0, own.stderr)
            self.assertEqual(self.ask("dead", *words), own.stdout, words)
        self.assertEqual(self.ask("dead", "show", "99", code=1),
                         "stagger dead: there is no dead letter 99\n")

    def test_reloads_and_forgets(self):
        a, b = self.leaf(), self.leaf()
        old = {"name": "old", "url": a.url()}
        new = {"name": "new", "url": b.url()}
        self.running = self.hub(settings=self.write(old))
        self.write(old, new)
        self.assertEqual(self.ask("reload"),
                         "reloaded: 1 target is new, 0 changed, 0 are gone, "
                         "1 as before\n")
        self.running.post(b"x")
        b.wait(1)
        self.write({"name": "new", "url": "nonsense"}, {"name": "!"})
        said = self.ask("reload", code=1)
        self.assertIn("(422)", said)
        self.assertRegex(said, r"\n  .*hub\.yaml:1:\d+: .*url.*\n")
        self.assertEqual(sorted(self.lanes()), ["new", "old"])
        self.assertIn("the settings have", self.ask(
            "targets", "forget", "--yes", "old", code=1))
        self.write(new)
        self.assertEqual(self.ask("reload"),
                         "reloaded: 0 targets are new, 0 changed, 1 is gone "
                         "(old), 1 as before\n")
        told = self.running.event("reloaded", gone=1)
        self.assertEqual(told["gone_targets"], "old")
        self.assertRegex(self.ask("targets"), r"(?m)^old +orphaned +store ")
        self.assertRegex(self.ask("status", "--once", "-n", "10ms"),
                         r"(?m)^old .* not in settings$")
        self.assertEqual(self.ask("targets", "forget", "--yes", "old"),
                         "old: forgotten\n")
        self.assertEqual(sorted(self.lanes()), ["new"])

    def test_tokens_and_their_roles(self):
        path = os.path.join(self.folder, "tokens")
        tokens = {}
        for role in ("publish", "view", "operate"):
            made = subprocess.run(
                [leaf.STAGGER, "token", "new", path, "--role", role],
                capture_output=True, text=True, check=True)
            tokens[role] = os.path.join(self.folder, role)
            with open(tokens[role], "w") as file:
                file.write(re.search(r"\S{16,}", made.stdout)[0] + "\n")
        a = self.leaf()
        self.running = self.hub(settings=self.write(
            {"name": "a", "url": a.url()},
            listen={"address": "127.0.0.1:0", "tokens": path}))
        self.assertIn("--token-file", self.ask("targets", code=1))
        self.assertIn("(403)", self.ask("targets", "--token-file",
                                        tokens["publish"], code=1))
        self.assertIn("a ", self.ask("targets", "--token-file",
                                     tokens["view"]))
        self.assertIn("(403)", self.ask("pause", "a", "--token-file",
                                        tokens["view"], code=1))
        self.ask("pause", "a", "--token-file", tokens["operate"])
        self.ask("status", "--once", "-n", "10ms", "--token-file",
                 tokens["operate"])
        late = os.path.join(self.folder, "late")
        with open(late, "w") as file:
            subprocess.run([leaf.STAGGER, "token", "new", path, "--role",
                            "view"], stdout=file, check=True)
        self.assertIn("The hub does not know the token of --token-file. It "
                      "knows one that is new after a reload: SIGHUP",
                      self.ask("targets", "--token-file", late, code=1))
        self.ask("reload", "--token-file", tokens["operate"])
        self.ask("targets", "--token-file", late)


case.main()
