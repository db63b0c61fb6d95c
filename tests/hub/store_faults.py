#!/usr/bin/env python3
"""Stores and settings that cannot be used: a clear error that names what and
what to do, the right exit code, and nothing that was accepted is lost."""
import contextlib
import http.client
import json
import os
import shutil
import socket
import sqlite3
import subprocess
import sys
import time

import case
import leaf

PAGE = 16384  # of a store

ASK = """
import json, sqlite3, sys
db = sqlite3.connect(f"file:{sys.argv[1]}?mode=ro", uri=True, timeout=30)
db.row_factory = sqlite3.Row
print(json.dumps([dict(row) for row in db.execute(sys.argv[2])], default=repr))
"""


class Disk:
    """A small file system of its own, in a name space that goes with us."""

    def __init__(self, folder, options):
        self.there = os.path.join(folder, "disk")
        os.mkdir(self.there)
        self.process = subprocess.Popen(
            ["unshare", "-rm", "sh", "-c",
             'mount -t tmpfs -o "$1" none "$0" && echo mounted && cat',
             self.there, options],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL, text=True)
        self.is_there = self.process.stdout.readline() == "mounted\n"
        self.store = os.path.join(self.there, "hub.db")
        # As we see it.
        self.outside = f"/proc/{self.process.pid}/root{self.there}"
        self.before = ("nsenter", "-t", str(self.process.pid), "-U", "-m",
                       "--preserve-credentials")

    def ask(self, query):
        """SQLite takes no path through /proc: it has to look from within."""
        found = subprocess.run(
            [*self.before, sys.executable, "-c", ASK, self.store, query],
            capture_output=True, text=True, check=True)
        return json.loads(found.stdout)

    def remount(self, options):
        subprocess.run([*self.before, "mount", "-o", f"remount,{options}",
                        self.there], check=True)

    def close(self):
        self.process.stdin.close()
        self.process.wait(leaf.PATIENCE)
        self.process.stdout.close()


def ask(hub, path):
    """The status and the body."""
    with contextlib.closing(http.client.HTTPConnection(
            "127.0.0.1", hub.port, timeout=leaf.PATIENCE)) as connection:
        connection.request("GET", path)
        answer = connection.getresponse()
        return answer.status, answer.read()


def fill(path):
    """Takes all the room that the disk has."""
    with open(path, "wb", 0) as file, contextlib.suppress(OSError):
        while file.write(bytes(4096)):
            pass


class StoreFaults(case.Case):
    def disk(self, options):
        if not shutil.which("unshare") or not shutil.which("nsenter"):
            self.skipTest("no unshare and nsenter")
        disk = self.kept(Disk(self.folder, options))
        if not disk.is_there:
            self.skipTest("no file system can be mounted here (unshare -rm)")
        return disk

    def refuse(self, *words, arguments=None, code=4, before=(), store=None,
               listen="127.0.0.1:0"):
        """What a hub that does not start says; words: all of them are in it."""
        if arguments is None:
            arguments = ("--to", "http://127.0.0.1:9/")
        found = subprocess.run(
            [*before, leaf.STAGGER, "hub", "--store", store or self.store,
             "--listen", listen, *arguments], capture_output=True, text=True,
            timeout=leaf.PATIENCE, stdin=subprocess.DEVNULL)
        said = found.stderr.removesuffix("\nSee stagger hub --help.\n")
        self.assertEqual((found.returncode, found.stdout), (code, ""), said)
        self.assertTrue(said.startswith("stagger hub: "), said)
        self.assertEqual(said.rstrip("\n").count("\n"), 0, "one line: " + said)
        for word in words:
            self.assertIn(word, said)
        return said

    def refuse_settings(self, *words, **more):
        """As above; another start would not help."""
        return self.refuse(*words, code=2, **more)

    def fill(self, count=20):
        """A store with messages that wait, some parked; returns their ids."""
        server = self.leaf(lambda r: 503)
        hub = self.hub("--to", f"a={server.url()}", "--policy",
                       "fixed base=1h cap=1h jitter=none attempts=9 "
                       "deadline=none breaker=1:30s")
        with contextlib.closing(hub.producer()) as producer:
            ids = producer.post_lines([{"body": str(i)}
                                       for i in range(count)])
        case.wait_for(lambda: self.rows("SELECT * FROM parked"), "a row")
        self.assertEqual(hub.stop(), 0)
        # A row that waits for an hour is due now.
        with contextlib.closing(sqlite3.connect(self.store)) as db, db:
            db.execute("UPDATE parked SET due_at = 0")
        return ids

    def check_delivers(self, ids, store=None, before=()):
        """A good start sends it all."""
        server = self.leaf()
        hub = self.hub("--to", f"a={server.url()}", store=store,
                       before=before)
        server.wait(len(ids))
        self.assertEqual(hub.stop(), 0)
        self.assertEqual({r.id for r in server.receipts}, set(ids))
        self.assertEqual(len(server.receipts), len(ids))

    # -- files

    def test_a_directory_that_is_missing(self):
        path = os.path.join(self.folder, "nowhere", "hub.db")
        self.refuse_settings(path, "directory", "make it", store=path)
        self.assertFalse(os.path.exists(os.path.dirname(path)))

    def test_a_directory_in_its_place(self):
        self.refuse_settings(self.folder, "is a directory", store=self.folder)

    def test_a_path_through_a_file(self):
        path = os.path.join(self.folder, "file")
        open(path, "w").close()
        self.refuse_settings(path, store=path + "/hub.db")

    def test_a_file_system_that_is_read_only(self):
        disk = self.disk("size=40m")
        hub = self.hub("--to", f"a={self.refused()}", store=disk.store,
                       before=disk.before)
        hub.stop()
        disk.remount("ro")
        self.refuse(disk.store, "read-only", "name a file on another one",
                    store=disk.store, before=disk.before)
        disk.remount("rw")
        hub = self.hub("--to", f"a={self.refused()}", store=disk.store,
                       before=disk.before)
        self.assertEqual(hub.stop(), 0)

    def test_a_file_that_may_not_be_written(self):
        if os.geteuid() == 0:
            if subprocess.run(["setpriv", "--reuid=65534", "--clear-groups",
                               leaf.STAGGER, "--version"],
                              capture_output=True).returncode:
                self.skipTest("root may write all, and there is no setpriv")
            before = ("setpriv", "--reuid=65534", "--clear-groups")
        else:
            before = ()
        os.chmod(self.folder, 0o755)
        path = os.path.join(self.folder, "locked")
        os.mkdir(path, 0o555)
        self.refuse_settings(path, "writable", store=path + "/hub.db",
                             before=before)

    def test_no_database(self):
        for text in (b"this is a text, and no database\n" * 40, b"a short one",
                     b"SQLite format 3\0" + b"\xff" * 4080):
            with open(self.store, "wb") as file:
                file.write(text)
            os.chmod(self.store, 0o600)
            self.refuse_settings(self.store)
            with open(self.store, "rb") as file:
                self.assertEqual(file.read(), text, "it is as it was")

    def test_another_programs_database(self):
        with contextlib.closing(sqlite3.connect(self.store)) as db:
            db.execute("CREATE TABLE theirs (x)")
            db.commit()
        os.chmod(self.store, 0o600)
        self.refuse_settings(self.store, "no store of stagger", "another")
        with contextlib.closing(sqlite3.connect(self.store)) as db:
            self.assertEqual(db.execute("SELECT name FROM sqlite_master")
                             .fetchall(), [("theirs",)], "it is as it was")

    def test_a_store_of_another_version(self):
        ids = self.fill()
        with contextlib.closing(sqlite3.connect(self.store)) as db:
            version, = db.execute("PRAGMA user_version").fetchone()
            db.execute(f"PRAGMA user_version = {version + 1}")
            db.commit()
        self.refuse_settings(self.store, f"version {version + 1}", "that wrote it")
        with contextlib.closing(sqlite3.connect(self.store)) as db:
            db.execute(f"PRAGMA user_version = {version}")
            db.commit()
        self.check_delivers(ids)

    def test_a_store_of_another_build(self):
        """The version is ours, and the tables are not: nothing of it changes,
        also where a hub that was killed has left a log."""
        server = self.leaf()
        hub = self.hub("--to", f"a={server.url()}")
        ids = [hub.post(b"x")]
        server.wait(1)
        self.await_settled(1)
        hub.kill()
        with contextlib.closing(sqlite3.connect(self.store)) as db:
            db.execute("ALTER TABLE parked RENAME COLUMN wait TO waited")
            db.commit()
            # As a kill leaves it: the last to close would empty the log.
            for end in ("", "-wal", "-shm"):
                shutil.copy(self.store + end, f"{self.store}.old{end}")
        old = self.store + ".old"
        for ends in (("", "-wal", "-shm"), ("",)):
            before = {end: self.read(old + end) for end in ends}
            said = self.refuse_settings("nothing was changed", store=old)
            self.assertRegex(said, r"other tables \(1-[0-9a-f]{8}\), this "
                                   r"stagger reads 1-[0-9a-f]{8}")
            self.assertEqual({end: self.read(old + end) for end in ends
                              if end != "-shm"},
                             {end: text for end, text in before.items()
                              if end != "-shm"})
            found = subprocess.run([leaf.STAGGER, "store", "verify", old],
                                   capture_output=True, text=True)
            self.assertIn("other tables", found.stderr)
            # For the second time: without a log nothing is made beside it.
            with contextlib.closing(sqlite3.connect(old)) as db:
                db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        self.assertEqual([name for name in os.listdir(self.folder)
                          if name.startswith("hub.db.old")
                          and not name.endswith("-lock")], ["hub.db.old"])

    def read(self, path):
        with open(path, "rb") as file:
            return file.read()

    def test_a_store_and_its_backup_that_cannot_be_written(self):
        """Commands that only read want nothing but that."""
        disk = self.disk("size=40m")
        hub = self.hub("--to", f"a={self.refused()}", "-p", "none",
                       store=disk.store, before=disk.before)
        hub.post(b"x")
        case.wait_for(lambda: self.rows(store=disk), "a dead letter")
        hub.stop()
        there = disk.store + ".backup"
        subprocess.run([*disk.before, leaf.STAGGER, "store", "backup", "-q",
                        "-s", disk.store, there], check=True)
        disk.remount("ro")
        for path in (disk.store, there):
            for words in (("store", "verify", path),
                          ("dead", "list", "--store", path),
                          ("store", "backup", "-s", path, os.path.join(
                              self.folder, "copy.db"))):
                found = subprocess.run([*disk.before, leaf.STAGGER, *words],
                                       capture_output=True, text=True)
                self.assertEqual(found.returncode, 0, (words, found.stderr))

    def test_a_store_that_another_hub_has(self):
        server = self.leaf()
        hub = self.hub("--to", f"a={server.url()}")
        said = self.refuse(self.store, "another hub has it",
                           "end that one, or name another file")
        self.assertIn(str(hub.process.pid), said)
        id = hub.post(b"x")
        server.wait(1)
        hub.kill()
        # A lock does not outlive its process.
        hub = self.hub("--to", f"a={server.url()}")
        hub.post(b"y")
        server.wait(2)
        self.assertEqual(hub.stop(), 0)

    def test_a_store_that_another_program_writes(self):
        ids = self.fill()
        with contextlib.closing(sqlite3.connect(
                self.store, isolation_level=None)) as db:
            db.execute("BEGIN IMMEDIATE")
            self.refuse(self.store, "locked")
            db.execute("ROLLBACK")
        self.check_delivers(ids)

    def damage(self, ids, seed):
        """The store with pages of garbage; the schema's own is left."""
        with open(self.store, "r+b") as file:
            size = file.seek(0, os.SEEK_END)
            for page in range(1, size // PAGE):
                file.seek(page * PAGE)
                file.write(bytes((seed + i) % 256 for i in range(PAGE)))

    def test_a_damaged_store(self):
        """It may be found at the start, or when the page is read: with words
        and a code in both cases. A copy delivers."""
        ids = self.fill(200)
        copy = self.store + ".copy"
        shutil.copy(self.store, copy)
        self.damage(ids, 7)
        found = subprocess.run(
            [leaf.STAGGER, "hub", "--store", self.store, "--listen",
             "127.0.0.1:0", "--to", f"a={self.refused()}"],
            capture_output=True, text=True, timeout=leaf.PATIENCE,
            stdin=subprocess.DEVNULL)
        self.assertIn(found.returncode, (2, 4), found.stderr)
        self.assertIn(self.store, found.stderr)
        self.assertRegex(found.stderr, "malformed|damaged|corrupt")
        os.replace(copy, self.store)
        self.check_delivers(ids)

    def test_a_store_that_is_damaged_while_it_runs(self):
        """What the store cannot keep is not accepted, and the hub ends."""
        server = self.leaf(lambda r: 503)
        hub = self.hub("--to", f"a={server.url()}", "--policy",
                       "fixed base=50ms jitter=none attempts=unlimited "
                       "deadline=none")
        ids = [hub.post(b"x" * 2000) for _ in range(20)]
        server.wait(5)
        with contextlib.closing(sqlite3.connect(self.store)) as db:
            db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        self.damage(ids, 3)
        until = time.monotonic() + 20
        while hub.process.poll() is None and time.monotonic() < until:
            with contextlib.suppress(case.Refused, OSError,
                                     http.client.HTTPException):
                hub.post(b"y" * 2000)
            time.sleep(0.02)
        self.assertEqual(hub.wait(), 4, "exit code of a store that failed")
        line, = hub.events("store-broken")
        self.assertIn(self.store, line["detail"])

    # -- files that somebody moves

    def check_ends(self, hub):
        """Waits for the end of a hub whose store is gone; returns its words."""
        line = hub.event("store-broken")
        self.assertIn(self.store, line["detail"])
        self.assertEqual(hub.wait(), 4, "exit code of a store that failed")
        return line["detail"]

    def check_refuses(self, hub):
        """Posts until the hub has ended: no message is accepted."""
        with contextlib.suppress(OSError, http.client.HTTPException):
            while True:
                with self.assertRaises(case.Refused) as caught:
                    hub.post(b"after")
                self.assertEqual(caught.exception.status, 503)

    def test_files_that_somebody_moves_while_it_takes_messages(self):
        for end in ("", "-wal"):
            with self.subTest(end=end):
                # A test's name is its line, so the store's is the file's.
                self.store = os.path.join(self.folder, f"moved{end}.db")
                target = self.leaf()
                hub = self.hub("--to", f"a={target.url()}")
                kept = {hub.post(b"before %d" % i) for i in range(5)}
                os.rename(self.store + end, self.store + ".away")
                self.check_refuses(hub)
                self.assertIn(f"{self.store}{end}: is gone",
                              self.check_ends(hub))
                # Put back, it has all.
                if end == "":
                    os.rename(self.store + ".away", self.store)
                found = {f"{row['position']}" for row in self.rows(
                    "SELECT position FROM messages")}
                self.assertLessEqual({id.split("-")[1] for id in kept}, found)

    def test_a_folder_that_somebody_moves_while_nothing_comes(self):
        """An alert tells it, and the stop of a store that is gone has its
        code."""
        folder = os.path.join(self.folder, "data")
        for stops in (False, True):
            with self.subTest(stops=stops):
                os.mkdir(folder)
                self.store = os.path.join(folder, "hub.db")
                told = self.leaf()
                path = self.put("stagger.yaml", json.dumps({
                    "listen": {"address": "127.0.0.1:0"},
                    "store": {"path": self.store},
                    "alerts": {"group-wait": "0s", "receivers": [
                        {"name": "people", "type": "webhook",
                         "url": told.url()}]},
                    "targets": [{"name": "a", "url": self.refused()}]}))
                hub = self.hub(settings=path)
                hub.post(b"x")
                os.rename(folder, f"{folder}.{stops}")
                if stops:
                    hub.process.terminate()
                self.assertIn("is gone", self.check_ends(hub))
                if not stops:
                    self.assertIn(b"store", told.wait(1)[0].body)

    def test_a_lock_that_was_replaced_lets_no_second_hub_in(self):
        hub = self.hub("--to", f"a={self.refused()}")
        backup = self.store + ".backup"
        subprocess.run([leaf.STAGGER, "store", "backup", "-s", self.store,
                        backup], check=True, stdout=subprocess.DEVNULL)
        for how in (os.unlink, lambda path: os.replace(
                self.put("other", "4321\n"), path)):
            how(self.store + "-lock")
            self.refuse(self.store, "another hub has it")
            found = subprocess.run(
                [leaf.STAGGER, "store", "restore", "--force", "-s",
                 self.store, backup], capture_output=True, text=True)
            self.assertIn("another hub has it", found.stderr)
            self.assertNotEqual(found.returncode, 0)
        hub.post(b"x")
        self.assertEqual(hub.stop(), 0)

    # -- a disk that is full

    def test_a_disk_that_fills_up(self):
        """Messages are refused with 503 and none is lost; with room again it
        goes on, without a restart."""
        disk = self.disk("size=6m")
        is_well = []
        server = self.leaf(lambda r: 200 if is_well else 503)
        words = ("--to", f"a={server.url()}", "--policy",
                 "fixed base=200ms jitter=none attempts=unlimited "
                 "deadline=none breaker=none budget=none")
        hub = self.hub(*words, store=disk.store, before=disk.before)
        producer = self.kept(hub.producer())
        sent, refused = set(), None
        for i in range(2000):
            try:
                sent.add(producer.post(b"%05d" % i * 2000))
            except case.Refused as answer:
                refused = answer
                break
        self.assertIsNotNone(refused, f"{len(sent)} messages were accepted")
        self.assertEqual(refused.status, 503, refused)
        self.assertGreaterEqual(int(refused.headers["Retry-After"]), 1)
        # It lives, and waits for room.
        with contextlib.closing(http.client.HTTPConnection(
                "127.0.0.1", hub.port)) as probe:
            probe.request("GET", "/healthz")
            self.assertEqual(probe.getresponse().status, 200)
        disk.remount("size=60m")
        def ask():
            with contextlib.suppress(case.Refused):
                return producer.post(b"again")
        sent.add(case.wait_for(ask, "a message is accepted again"))
        is_well.append(True)
        self.await_settled(1, store=disk)
        self.assertEqual(hub.stop(), 0)
        taken = [r.id for r in server.receipts]
        self.assertEqual(set(taken), sent)
        self.assertEqual(self.rows(store=disk), [])
        case.note(self, f"full after {len(sent) - 1} messages")

    def test_a_stop_on_a_disk_that_is_full(self):
        """Not even cursors fit: it waits, says so once, and ends."""
        disk = self.disk("size=8m")
        server = self.leaf()
        hub = self.hub("--to", f"a={server.url()}", "--to",
                       f"b={self.refused()}", store=disk.store,
                       before=disk.before)
        sent = {hub.post(b"x")}
        fill(os.path.join(disk.outside, "other"))
        with self.assertRaises(case.Refused):
            for i in range(1000):
                sent.add(hub.post(b"%05d" % i * 2000))
        self.assertRegex(hub.event("store-full")["detail"], "disk")
        self.assertNotIn("quota", hub.events("store-full")[0]["detail"])
        before, lines = hub.cpu(), len(hub.lines)
        time.sleep(0.8)
        self.assertLess(hub.cpu() - before, 0.5)
        # Lines of attempts that failed before may still come, each once.
        self.assertLess(len(hub.lines) - lines, 100)
        began = time.monotonic()
        hub.stop()
        self.assertLess(time.monotonic() - began, 10)
        hub.event("stopped")
        self.assertEqual(hub.events("store-space-ok"), [])
        os.unlink(os.path.join(disk.outside, "other"))
        hub = self.hub("--to", f"a={server.url()}", "--to",
                       f"b={server.url()}", store=disk.store,
                       before=disk.before)
        self.await_settled(2, store=disk)
        self.assertEqual(hub.stop(), 0)
        self.assertEqual({r.id for r in server.receipts}, sent)

    def test_a_file_that_may_not_grow(self):
        """A limit of the process does not kill it, and is told."""
        server = self.leaf()
        hub = self.hub("--to", f"a={server.url()}",
                       before=("prlimit", "--fsize=3145728"))
        sent = []
        with self.assertRaises(case.Refused) as caught:
            for i in range(1000):
                sent.append(hub.post(b"%05d" % i * 4000))
        self.assertEqual(caught.exception.status, 503)
        self.assertIn("largest size that is allowed",
                      hub.event("store-full")["detail"])
        self.assertIn(b"largest size", ask(hub, "/readyz")[1])
        self.assertGreaterEqual(hub.stop(), 0)
        self.check_delivers_rest(server, sent)

    def check_delivers_rest(self, server, sent):
        hub = self.hub("--to", f"a={server.url()}")
        self.await_settled(1)
        self.assertEqual(hub.stop(), 0)
        self.assertEqual({r.id for r in server.receipts}, set(sent))

    def read_forever(self):
        """A read of another process: this one."""
        db = self.kept(sqlite3.connect(self.store, isolation_level=None))
        db.execute("BEGIN")
        db.execute("SELECT count(*) FROM messages_0").fetchall()
        return db

    def sizes(self):
        return sum(os.path.getsize(self.store + end) for end in ("", "-wal"))

    def test_a_read_of_another_program_that_does_not_end(self):
        """The log that it holds back counts, is told by name, and has an end."""
        quota, told = 16 << 20, self.leaf()
        server = self.leaf(lambda r: 503)
        path = self.put("stagger.yaml", json.dumps({
            "listen": {"address": "127.0.0.1:0"},
            "store": {"path": self.store, "quota": quota},
            "alerts": {"group-wait": "0s", "min-interval": "1s", "receivers": [
                {"name": "people", "type": "webhook", "url": told.url()}]},
            "targets": [{"name": "a", "url": server.url(), "policy":
                         "fixed base=100ms jitter=none attempts=unlimited "
                         "deadline=none breaker=none budget=none"}]}))
        hub = self.hub(settings=path)
        hub.post(b"x")
        db = self.read_forever()
        with self.assertRaises(case.Refused):
            for i in range(1000):
                hub.post(b"%05d" % i * 4000)
        line = hub.event("store-trouble")
        self.assertIn(f"process {os.getpid()} (", line["detail"])
        self.assertIn("write-ahead log", line["detail"])
        # Attempts go on, and fill no more than the quota.
        self.assertLess(self.sizes(), quota + (1 << 20))
        self.assertIn(b"write-ahead log", ask(hub, "/readyz")[1])
        store = json.loads(ask(hub, "/v1/status")[1])["store"]
        self.assertGreater(store["used_bytes"], quota * 3 // 4)
        self.assertGreater(store["wal_bytes"], quota // 4)
        case.wait_for(lambda: any(b"write-ahead log" in r.body
                                  for r in told.receipts), "an alert")
        db.execute("ROLLBACK")
        hub.event("store-trouble-over")
        hub.event("store-space-ok")
        hub.post(b"y")
        # A program that has it open, and reads nothing, keeps no log either.
        hub.stop()
        self.assertEqual(os.path.getsize(self.store + "-wal"), 0)

    def test_a_start_on_a_disk_that_is_full(self):
        disk = self.disk("size=8m")
        server = self.leaf(lambda r: 503)
        words = ("--to", f"a={server.url()}", "--policy",
                 "fixed base=200ms jitter=none attempts=unlimited "
                 "deadline=none breaker=none budget=none")
        hub = self.hub(*words, store=disk.store, before=disk.before)
        producer = self.kept(hub.producer())
        sent = {producer.post(b"%d" % i * 100) for i in range(10)}
        server.wait(10)
        hub.kill()
        # Its log of writes may have had room for the start.
        with contextlib.closing(sqlite3.connect(
                os.path.join(disk.outside, "hub.db"))) as db:
            db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        other = os.path.join(disk.outside, "other")
        fill(other)
        self.refuse(disk.store, "full", "make room", store=disk.store,
                    before=disk.before)
        os.unlink(other)
        well = self.leaf()
        hub = self.hub("--to", f"a={well.url()}", store=disk.store,
                       before=disk.before)
        well.wait(len(sent))
        self.await_settled(1, store=disk)
        self.assertEqual(hub.stop(), 0)
        self.assertEqual({r.id for r in well.receipts}, sent)

    # -- settings

    def test_a_port_in_use(self):
        with socket.create_server(("127.0.0.1", 0)) as other:
            port = other.getsockname()[1]
            self.refuse(f"127.0.0.1:{port}", "another program listens there",
                        "choose another port", listen=f"127.0.0.1:{port}")

    def test_an_address_that_is_none_of_ours(self):
        self.refuse("192.0.2.1", listen="192.0.2.1:0", arguments=(
            "--to", "http://127.0.0.1:9/", "--token-file", self.tokens()))

    def tokens(self):
        path = os.path.join(self.folder, "tokens")
        with open(path, "w", opener=lambda p, f: os.open(p, f, 0o600)) as file:
            file.write("publish sha256:" + "0" * 64 + "\n")
        return path

    def test_urls_that_are_none(self):
        for url, words in (
                ("127.0.0.1:9000", "http"),
                ("ftp://127.0.0.1/", "http"),
                ("http://", "host"),
                ("http://127.0.0.1:0/", "port"),
                ("http://127.0.0.1:65536/", "port"),
                ("http://127.0.0.1:9/a b", "url"),
                ("http://127.0.0.1/#part", "url"),
                ("http://u:secret@127.0.0.1/", "password"),
                ("http://127.0.0.1:9/\r\nX: y", "url"),
                ("", "url"),
        ):
            with self.subTest(url=url):
                said = self.refuse_settings("target 1", words,
                                            arguments=("--to", url))
                self.assertNotIn("secret", said)
        self.assertFalse(os.path.exists(self.store), "no store was made")

    def test_a_name_twice(self):
        self.refuse_settings("two targets have this name",
                             "give one of them another", arguments=(
                                 "--to", "a=http://127.0.0.1:1/",
                                 "--to", "a=http://127.0.0.1:2/"))
        self.refuse_settings("two targets have this name", arguments=(
                                 "--to", "http://127.0.0.1:1/x",
                                 "--to", "http://127.0.0.1:1/x"))

    def test_certificates_that_cannot_be_read(self):
        path = os.path.join(self.folder, "ca.pem")
        self.refuse_settings(path, arguments=("--to", "https://127.0.0.1/",
                                              "--ca", path))
        with open(path, "w") as file:
            file.write("no certificate\n")
        self.refuse_settings(path, arguments=("--to", "https://127.0.0.1/",
                                              "--ca", path))

    def test_letters_that_cannot_be_written(self):
        path = os.path.join(self.folder, "nowhere", "letters")
        self.refuse_settings(
            path, arguments=("--to", "http://127.0.0.1:9/", "--dead-letters",
                             f"file:{path}"))


if __name__ == "__main__":
    case.main()
