#!/usr/bin/env python3
"""`stagger store`: a backup while the hub runs, what a restore keeps and makes
anew, and what verify finds."""
import contextlib
import ctypes
import json
import os
import shutil
import sqlite3
import stat
import struct
import subprocess
import unittest
import urllib.error
import urllib.request

import case
import leaf


class Names:
    """What becomes of the names in a folder, in order."""
    KINDS = {0x40: "from", 0x80: "to", 0x100: "made", 0x200: "gone"}

    def __init__(self, folder):
        libc = ctypes.CDLL(None, use_errno=True)
        self.fd = libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
        libc.inotify_add_watch(self.fd, folder.encode(), sum(self.KINDS))

    def read(self):
        data, at = os.read(self.fd, 1 << 16), 0
        os.close(self.fd)
        while at < len(data):
            _, mask, _, size = struct.unpack_from("iIII", data, at)
            name = data[at + 16:at + 16 + size].rstrip(b"\0").decode()
            yield self.KINDS[mask & sum(self.KINDS)], name
            at += 16 + size


class StoreCopy(case.Case):
    def setUp(self):
        super().setUp()
        self.copy = os.path.join(self.folder, "copy.db")

    def run_store(self, *arguments, code=0, said=""):
        done = subprocess.run([leaf.STAGGER, "store", *arguments],
                              capture_output=True, text=True,
                              timeout=leaf.PATIENCE)
        self.assertEqual((done.returncode, done.stderr if code == 0 else ""),
                         (code, ""), done.stdout + done.stderr)
        words = done.stdout + done.stderr
        if said:
            self.assertIn(said, words)
        return words

    def backup(self, **more):
        return self.run_store("backup", "-s", self.store, self.copy, **more)

    def restore(self, *arguments, **more):
        return self.run_store("restore", "-s", self.store, *arguments,
                              self.copy, **more)

    def verify(self, path=None, **more):
        return self.run_store("verify", path or self.store, **more)

    def change(self, text, path=None):
        with contextlib.closing(sqlite3.connect(path or self.store)) as db, db:
            db.executescript(text)

    def fill(self):
        """A stopped hub's store: ten delivered, ten that are dead letters."""
        good, server = self.refused(), self.leaf()
        hub = self.hub("--to", f"a={server.url()}", "--to", f"b={good}", "-p",
                       "none breaker=none")
        with contextlib.closing(hub.producer()) as producer:
            ids = producer.post_lines([{"body": str(i)} for i in range(10)])
        self.await_settled(2)
        self.assertIn(hub.stop(), (0, 1))
        return ids

    # -- backup

    def test_a_backup_of_a_running_hub_is_of_one_moment(self):
        server = self.leaf()
        hub = self.hub("--to", f"a={server.url()}")
        with contextlib.closing(hub.producer()) as producer:
            for turn in range(5):
                for i in range(100):
                    producer.post(str(i).encode())
                self.backup()
                self.assertIn("is intact", self.verify(self.copy))
                self.verify()
                kept = self.rows("SELECT value FROM meta WHERE name ="
                                 " 'next_position'", store=self.copy)[0]
                self.assertGreater(kept["value"], 100 * (turn + 1))
        mode = os.stat(self.copy).st_mode
        self.assertEqual(stat.S_IMODE(mode), 0o600)
        self.assertEqual([name for name in os.listdir(self.folder)
                          if name.startswith("copy")], ["copy.db"])
        hub.stop()

    def test_a_backup_refuses_what_it_cannot_do(self):
        self.run_store("backup", "-s", self.store, self.copy, code=2,
                       said="there is no such file; name a store with --store")
        self.fill()
        self.run_store("backup", "-s", self.store, self.store, code=2,
                       said="is the store itself")
        self.run_store("backup", "-s", self.store, self.folder, code=2,
                       said="is no file")
        self.run_store("backup", "-s", self.store, "/nowhere/x", code=2,
                       said="cannot be made")
        self.run_store("backup", "-s", __file__, self.copy, code=2,
                       said="no SQLite database")
        self.assertFalse(os.path.exists(self.copy))

    # -- a copy that was put back by hand

    def call(self, hub, path, body=None):
        """Status and answer; with a body it is a POST."""
        request = urllib.request.Request(
            f"http://127.0.0.1:{hub.port}/v1/{path}",
            None if body is None else json.dumps(body).encode(),
            {"Content-Type": "application/json"})
        try:
            with urllib.request.urlopen(request, timeout=leaf.PATIENCE) as got:
                return got.status, json.load(got)
        except urllib.error.HTTPError as refused:
            return refused.code, json.load(refused)

    def start(self):
        """The leaf `bad` refuses for good, and `late` for now, until is_well."""
        targets = [{"name": name, "url": leaf.url()}
                   for name, leaf in self.leaves.items()]
        return self.hub(settings=self.put("hub.yaml", json.dumps(
            {"store": {"path": self.store, "keep": "1h"},
             "receipts": {"keep": "1h",
                          "copy": f"file:{self.folder}/receipts.jsonl"},
             "listen": {"address": "127.0.0.1:0"}, "targets": targets,
             "defaults": {"policy": "fixed base=1h cap=1h jitter=none "
                                    "attempts=9 deadline=none retry=5xx "
                                    "breaker=none"}})))

    def live(self, body, key):
        """A life of the store that accepts a message. Returns its id."""
        before = {name: len(leaf.receipts)
                  for name, leaf in self.leaves.items()}
        hub = self.start()
        id = hub.post(body, Idempotency_Key=key)
        for name, leaf in self.leaves.items():
            leaf.wait(before[name] + 1)
        case.wait_for(lambda: self.rows(
            "SELECT 1 FROM failed_broadcast_logs, parked"
            " WHERE message_id = ?", id), "a dead letter and a parked row")
        self.assertEqual(hub.stop(), 0)
        return id

    def lives(self):
        """The ids of a message that is in the copy, and of one that is lost."""
        self.is_well = False
        self.leaves = {"good": self.leaf(),
                       "bad": self.leaf(lambda r: 200 if self.is_well else 400),
                       "late": self.leaf(lambda r: 200 if self.is_well else 503)}
        old = self.live(b"old", "k")
        shutil.copy(self.store, self.copy)
        lost = self.live(b"lost", "l")
        shutil.copy(self.copy, self.store)
        self.change("UPDATE parked SET due_at = 0")
        self.is_well = True
        return old, lost

    def letters_of(self, hub, id):
        status, found = self.call(hub, f"dead-letters?message={id}")
        self.assertEqual(status, 200, found)
        return found["dead_letters"]

    def test_a_store_that_came_back_gives_no_id_twice(self):
        """I11, I36: by a cold copy, a snapshot or a clone. What was accepted
        before keeps its id and its trace in all that is sent and shown."""
        old, lost = self.lives()
        hub = self.start()
        self.leaves["late"].wait(3)
        self.assertEqual(hub.post(b"old", Idempotency_Key="k"), old)
        # The key of a message that was lost makes a new one.
        new = hub.post(b"new", Idempotency_Key="l")
        self.assertEqual(new.split("-")[1], lost.split("-")[1])
        self.assertNotEqual(new, lost)
        self.leaves["bad"].wait(3)
        self.assertEqual(self.call(hub, f"messages/{lost}")[0], 404)
        self.assertEqual(self.call(hub, f"messages/{lost}/resend",
                                   {"target": "good"})[0], 404)
        self.assertEqual(self.call(hub, "targets/good/rewind",
                                   {"to": lost})[0], 400)
        self.assertEqual(self.letters_of(hub, lost), [])
        letter, = self.letters_of(hub, old)
        self.assertEqual(letter["message_id"], old)
        status, shown = self.call(hub, f"messages/{old}")
        self.assertEqual((status, shown["id"]), (200, old))
        self.call(hub, "dead-letters/replay", {"all": True})
        self.leaves["bad"].wait(4)
        self.call(hub, f"messages/{old}/resend", {"target": "late"})
        self.leaves["late"].wait(5)
        self.call(hub, "targets/good/rewind", {"to": old})
        self.leaves["good"].wait(5)
        self.await_settled(3)
        self.assertEqual(hub.stop(), 0)
        seen = {}
        for leaf in self.leaves.values():
            for r in leaf.receipts:
                self.assertEqual(r.one("idempotency-key"), r.id)
                seen.setdefault((r.body, r.id), set()).add(
                    r.one("traceparent")[3:35])
        self.assertEqual(set(seen), {(b"old", old), (b"lost", lost),
                                     (b"new", new)})
        self.assertEqual([len(traces) for traces in seen.values()], [1, 1, 1])
        with open(os.path.join(self.folder, "receipts.jsonl")) as file:
            kept = [json.loads(line)["message_id"] for line in file]
        self.assertEqual({id: kept.count(id) for id in kept},
                         {old: 7, lost: 3, new: 4})
        self.verify(said="is intact: ")

    # -- restore

    @unittest.skipIf(os.geteuid() != 0, "only root may give files away")
    def test_a_restore_by_root_gives_the_store_to_its_user(self):
        """The file that it replaces says who that is, or else the folder."""
        def owner(path):
            found = os.stat(path)
            return found.st_uid, found.st_gid, stat.S_IMODE(found.st_mode)

        self.fill()
        self.backup()
        lock = self.store + "-lock"
        os.chown(self.store, 54321, 54322)
        os.chmod(self.store, 0o640)
        os.remove(lock)
        self.restore("--force")
        self.assertEqual(owner(self.store), (54321, 54322, 0o640))
        self.assertEqual(owner(lock), (54321, 54322, 0o600))
        os.remove(self.store)
        os.remove(lock)
        os.chown(self.folder, 54323, 54324)
        self.restore()
        self.assertEqual(owner(self.store), (54323, 54324, 0o600))
        self.assertEqual(owner(lock), (54323, 54324, 0o600))

    def test_a_restore_goes_on_where_the_backup_was(self):
        ids = self.fill()
        self.backup()
        os.remove(self.store)
        self.restore(said="is " + self.copy + " now; new messages have ids "
                     "with another first half")
        self.verify(said="is intact: ")
        self.assertEqual(len(self.rows()), 10)
        # Older messages keep their ids, new ones have others.
        server = self.leaf()
        hub = self.hub("--to", f"a={server.url()}", "--to",
                       f"b={self.refused()}", "-p", "none breaker=none")
        after = hub.post(b"new")
        self.assertNotEqual(after.split("-")[0], ids[0].split("-")[0])
        self.assertEqual(int(after.split("-")[1]),
                         int(ids[-1].split("-")[1]) + 1)
        self.await_settled(2)
        hub.stop()
        rows = self.rows()
        self.assertEqual([row["message_id"] for row in rows], [*ids, after])
        self.assertGreater(rows[-1]["id"], rows[-2]["id"] + 1000)
        self.assertEqual([r.id for r in server.receipts], [after])
        self.verify(said="is intact: ")

    def test_what_was_delivered_since_is_delivered_again_under_its_id(self):
        server = self.leaf(lambda r: 503)
        hub = self.hub("--to", f"a={server.url()}", "-p",
                       "fixed base=1h cap=1h jitter=none attempts=9 "
                       "deadline=none breaker=none")
        ids = [hub.post(b"x", idempotency_key=f"k{i}") for i in range(3)]
        case.wait_for(lambda: len(self.rows("SELECT * FROM parked")) == 3,
                      "parked rows")
        self.backup()
        hub.kill()
        self.restore("--force", said="the store that was there")
        self.change("UPDATE parked SET due_at = 0")
        good = self.leaf()
        hub = self.hub("--to", f"a={good.url()}")
        good.wait(3)
        self.assertEqual({r.id for r in good.receipts}, set(ids))
        # Keys are there, with the ids of then.
        self.assertEqual(hub.post(b"x", idempotency_key="k1"), ids[1])
        hub.stop()

    def test_a_restore_refuses_what_would_lose_something(self):
        self.fill()
        self.backup()
        self.restore(code=2, said="--force")
        hub = self.hub("--to", f"a={self.refused()}", "--to",
                       f"b={self.refused()}")
        self.restore("--force", code=2, said="another hub has it")
        hub.stop()
        self.run_store("restore", "-s", self.store, "--force", self.store,
                       code=2, said="is the store itself")
        self.run_store("restore", "-s", self.store, "--force",
                       self.copy + "x", code=2, said="cannot be read")
        # One that is not sound stays where it is.
        self.change("UPDATE meta SET value = 1 WHERE name = 'next_position'",
                    self.copy)
        self.restore("--force", code=2, said="is not sound")
        self.verify(said="is intact")

    def test_a_restore_that_fails_leaves_no_store(self):
        self.fill()
        self.backup()
        new = os.path.join(self.folder, "new.db")
        os.mkdir(new + ".restore")
        self.run_store("restore", "-s", new, self.copy, code=2,
                       said="new.db.restore")
        self.assertEqual([name for name in os.listdir(self.folder)
                          if name.startswith("new.db")], ["new.db.restore"])

    def test_a_forced_restore_keeps_what_was_there(self):
        self.fill()
        self.backup()
        hub = self.hub("--to", f"a={self.refused()}", "--to",
                       f"b={self.refused()}", "-p", "none breaker=none")
        hub.post(b"since")
        hub.kill()
        self.restore("--force")
        kept, = [name for name in os.listdir(self.folder)
                 if ".replaced-" in name and not name.endswith("-shm")]
        path = os.path.join(self.folder, kept)
        # With what was in its write-ahead log.
        self.assertEqual(len(self.rows("SELECT * FROM idempotency_keys UNION"
                                       " ALL SELECT 1, 2, 3, 4 FROM meta"
                                       " WHERE name = 'next_position' AND"
                                       " value = 12", store=path)), 1)
        self.assertEqual(len(self.rows("SELECT * FROM meta WHERE name ="
                                       " 'next_position' AND value = 11")), 1)

    def test_a_forced_restore_leaves_no_moment_without_a_store(self):
        self.fill()
        self.backup()
        before = os.stat(self.store).st_ino
        names = Names(self.folder)
        self.restore("--force")
        seen = list(names.read())
        own = os.path.basename(self.store)
        self.assertEqual([kind for kind, name in seen if name == own], ["to"])
        kept, = [name for kind, name in seen if kind == "made"
                 and ".replaced-" in name]
        self.assertLess(seen.index(("made", kept)), seen.index(("to", own)))
        kept = os.stat(os.path.join(self.folder, kept))
        self.assertEqual((kept.st_ino, kept.st_nlink), (before, 1))

    def test_a_restore_that_did_not_end_is_taken_back(self):
        self.fill()
        self.backup()
        other = self.store + ".replaced-20260301T120000Z"
        with contextlib.closing(sqlite3.connect(self.store)) as db:
            db.execute("UPDATE failed_broadcast_logs SET cause = 'late'")
            db.commit()
            shutil.copy(self.store + "-wal", other + "-wal")
            shutil.copy(self.store, self.folder + "/old")
        # As a power cut leaves it: linked, its log moved, nothing renamed.
        os.replace(self.folder + "/old", self.store)
        os.link(self.store, other)
        hub = self.hub("--to", f"a={self.refused()}", "--to",
                       f"b={self.refused()}")
        hub.stop()
        self.assertFalse(os.path.exists(other))
        self.assertFalse(os.path.exists(other + "-wal"))
        self.assertEqual({row["cause"] for row in self.rows()}, {"late"})
        os.link(self.store, other)
        self.restore("--force")
        self.assertFalse(os.path.exists(other))
        self.verify(said="is intact: ")

    def test_a_restore_puts_aside_a_log_that_has_lost_its_store(self):
        """SQLite would read it into what was restored."""
        self.fill()
        self.backup()
        with contextlib.closing(sqlite3.connect(self.store)) as db:
            db.execute("DELETE FROM failed_broadcast_logs")
            db.commit()
            shutil.copy(self.store + "-wal", self.folder + "/wal")
        # Somebody took the store away, and left what was beside it.
        os.rename(self.store, self.store + ".gone")
        os.rename(self.folder + "/wal", self.store + "-wal")
        self.restore()
        self.verify()
        self.assertEqual(len(self.rows()), 10)
        kept, = [name for name in os.listdir(self.folder)
                 if ".replaced-" in name]
        self.assertTrue(kept.endswith("-wal"))

    # -- verify

    def test_counts_dead_letters_by_what_became_of_them(self):
        self.fill()
        letters = self.rows("SELECT * FROM failed_broadcast_logs")
        self.assertGreater(len(letters), 1)
        self.change("UPDATE failed_broadcast_logs SET state = 'dropped',"
                    " payload = NULL WHERE last_position IS NULL"
                    " AND id > (SELECT min(id) FROM failed_broadcast_logs)",
                    self.store)
        self.verify(said=f"{len(letters)} rows of dead letters: 1 dead, "
                    f"{len(letters) - 1} dropped\n")

    def check_flaw(self, text, said):
        copy = os.path.join(self.folder, "flawed.db")
        with contextlib.suppress(FileNotFoundError):
            os.remove(copy)
        self.run_store("backup", "-s", self.store, copy)
        self.change(text, copy)
        self.verify(copy, code=1, said=said)

    def test_verify_finds_what_contradicts_itself(self):
        self.fill()
        self.verify(said="is intact: ")
        self.check_flaw("UPDATE meta SET value = 3 WHERE name ="
                        " 'next_position'", "was not given yet")
        self.check_flaw("DELETE FROM meta WHERE name = 'incarnations'",
                        "meta has no incarnations")
        self.check_flaw("UPDATE messages_0 SET filled_before = 0",
                        "do not say what those before them fill")
        self.check_flaw("UPDATE epochs SET epoch = 'x'",
                        "are not 16 hexadecimal digits")
        self.check_flaw("DELETE FROM failed_broadcast_logs WHERE id = 1",
                        "its books have 10 dead, its letters are 9")
        self.check_flaw("UPDATE failed_broadcast_logs SET state = 'dead?'",
                        "no such state")
        self.check_flaw("UPDATE failed_broadcast_logs SET payload = NULL",
                        "have no payload")
        self.check_flaw("UPDATE lanes SET name = 'a'", "name of another")
        self.check_flaw("DELETE FROM lanes WHERE name = 'a'",
                        "no such target")
        self.check_flaw("UPDATE cursors SET lanes = '{'", "cannot be read")
        self.check_flaw("UPDATE cursors SET lanes ="
                        " replace(lanes, '\"base\": 11', '\"base\": 99')",
                        "beyond the log")
        self.check_flaw("UPDATE cursors SET lanes ="
                        " replace(lanes, '\"routed\": 10', '\"routed\": 9')",
                        "9 were routed")

    def test_verify_finds_damage(self):
        self.fill()
        with contextlib.closing(sqlite3.connect(self.store)) as db:
            size, = db.execute("PRAGMA page_size").fetchone()
            root, = db.execute("SELECT rootpage FROM sqlite_master"
                               " WHERE name = 'messages_0'").fetchone()
        with open(self.store, "r+b") as f:
            f.seek((root - 1) * size)
            f.write(b"\xff" * 8192)
        self.verify(code=1, said="the file is damaged")

    def test_verify_refuses_what_is_no_store(self):
        self.verify(code=2, said="there is no such file")
        self.verify(__file__, code=2, said="no SQLite database")

    # -- words

    def test_bad_words_are_refused(self):
        for words, said in (((), "expected backup, restore or verify"),
                            (("bakup",), "did you mean backup?"),
                            (("backup",), "expected the file of the backup"),
                            (("restore",), "expected the file of the backup"),
                            (("backup", "a", "b"), "unexpected argument"),
                            (("verify", "--force"), "no option --force, only restore"),
                            (("--what",), "--what")):
            self.run_store(*words, code=2, said=said)


if __name__ == "__main__":
    case.main()
