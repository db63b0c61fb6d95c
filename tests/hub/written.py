#!/usr/bin/env python3
"""Files that the hub writes beside its store, while others rename, remove, replace,
cut or fill them: copies of dead letters and of receipts, the audit log (I36). A
row counts as copied when its copy is in the file that the settings name, and the
hub deletes nothing."""
import contextlib
import glob
import json
import os
import signal
import urllib.error
import urllib.request

import case


def lines_of(path):
    """The objects in a file, line by line; every line is whole."""
    with contextlib.suppress(FileNotFoundError, IsADirectoryError):
        with open(path) as file:
            return [json.loads(line) for line in file]
    return []


class Written(case.ByFile):
    def setUp(self):
        super().setUp()
        for name in "letters", "receipts", "audit":
            os.mkdir(os.path.join(self.folder, name))
            setattr(self, name, os.path.join(self.folder, name, "lines"))

    def open(self, **more):
        """A hub that copies all it can, to a target that refuses."""
        target = {"name": "bad", "url": self.leaf(lambda r: 400).url()}
        return self.start([target], audit=self.audit,
                          receipts={"copy": f"file:{self.receipts}"}, **{
                              "dead-letters": {"copy": f"file:{self.letters}",
                                               **more}})

    def act(self, hub):
        """Makes a line in each of the three files. Returns the message's id."""
        id = hub.post(b"x")
        urllib.request.urlopen(urllib.request.Request(
            f"http://127.0.0.1:{hub.port}/v1/targets/bad/resume",
            method="POST")).read()
        return id

    def await_lines(self, id, letters=None):
        for path in letters or self.letters, self.receipts:
            case.wait_for(lambda: id in {line["message_id"]
                                         for line in lines_of(path)},
                          lambda: f"{id} in {path}: {lines_of(path)}")

    def each(self):
        return self.letters, self.receipts, self.audit

    # -- what others do with a file

    def rename(self, path):
        os.rename(path, path + ".1")

    def remove(self, path):
        os.unlink(path)

    def replace(self, path):
        with open(path + ".new", "w") as file:
            file.write('{"message_id": "theirs", "action": "theirs"}')
        os.rename(path + ".new", path)

    def cut(self, path):
        os.truncate(path, 0)

    def rotate(self, path):
        os.rename(path, path + ".2")
        os.close(os.open(path, os.O_CREAT, 0o600))

    def move_folder(self, path):
        os.rename(os.path.dirname(path), os.path.dirname(path) + ".old")
        os.mkdir(os.path.dirname(path))

    def follow(self, change):
        """Each of the three files is changed; the next lines are where the paths
        lead to then."""
        hub = self.open()
        self.await_lines(self.act(hub))
        for path in self.each():
            change(path)
        self.await_lines(self.act(hub))
        self.assertEqual(lines_of(self.audit)[-1]["action"], "resume")
        if change == self.replace:
            self.assertEqual([lines_of(path)[0]["action"]
                              for path in self.each()], ["theirs"] * 3)
        # Nothing holds a file between two batches: its room is free when it is
        # removed.
        held = [os.readlink(link) for link
                in glob.glob(f"/proc/{hub.process.pid}/fd/*")
                if os.path.lexists(link)]
        self.assertEqual([path for path in held
                          if "/letters" in path or "/audit" in path], [])
        self.assertEqual(hub.stop(), 0)

    def test_lines_follow_a_path_that_was_renamed(self):
        self.follow(self.rename)

    def test_lines_follow_a_path_that_was_removed(self):
        self.follow(self.remove)

    def test_lines_follow_a_path_that_was_replaced(self):
        self.follow(self.replace)

    def test_lines_follow_a_path_that_was_cut(self):
        self.follow(self.cut)

    def test_lines_follow_a_path_that_was_rotated(self):
        self.follow(self.rotate)

    def test_lines_follow_a_path_whose_folder_was_moved(self):
        self.follow(self.move_folder)

    def test_a_signal_and_a_reload_go_on_with_the_new_file(self):
        hub = self.open()
        self.await_lines(self.act(hub))
        for path in self.each():
            self.rename(path)
        hub.process.send_signal(signal.SIGHUP)
        hub.event("reloaded")
        id = self.act(hub)
        self.await_lines(id)
        self.assertEqual([line["message_id"] for line in lines_of(self.letters)],
                         [id])
        self.assertIn("SIGHUP", [line["who"] for line in lines_of(self.audit)])
        self.assertEqual(hub.stop(), 0)

    def test_no_row_is_evicted_whose_copy_is_nowhere(self):
        """Each row that the store no longer has is in one of the files, however
        often they are rotated; and none of these is removed."""
        hub = self.open(max=10)
        producer, ids = self.kept(hub.producer()), set()
        for i in range(8):
            ids |= {producer.post(b"%d" % i) for i in range(10)}
            if i == 4:  # the copy cannot be written for a while
                os.rename(self.letters, self.letters + ".4")
                os.mkdir(self.letters)
                hub.event("store-trouble")
                continue
            if os.path.isdir(self.letters):
                os.rmdir(self.letters)
            case.wait_for(lambda: os.path.exists(self.letters), "a copy")
            os.rename(self.letters, f"{self.letters}.{i}")
        hub.post(b"the last")
        case.wait_for(lambda: len(self.rows()) <= 12, "evicted")
        self.assertEqual(hub.stop(), 0)
        copied = {line["message_id"]
                  for path in glob.glob(self.letters + "*")
                  for line in lines_of(path)}
        stored = {row["message_id"] for row in self.rows()}
        self.assertEqual(ids - copied - stored, set())
        self.assertGreaterEqual(len(glob.glob(self.letters + ".*")), 8)

    def test_a_line_that_a_crash_has_cut_comes_again_whole(self):
        hub = self.open()
        self.await_lines(self.act(hub))
        hub.kill()
        for path in self.each():
            with open(path) as file:
                line = file.readline()
            os.truncate(path, os.path.getsize(path) - 5)
            with open(path, "a") as file:
                file.write("\n" + line + line[:40])
            with open(path) as file:
                text = file.read()
            with open(path, "w") as file:
                file.write(text[text.index("\n") + 1:])
        hub = self.open()
        id = self.act(hub)
        self.await_lines(id)
        self.assertEqual([len(lines_of(path)) for path in self.each()],
                         [2, 2, 2])
        self.assertEqual(hub.stop(), 0)


class OneFileOfTwo(case.ByFile):
    """A file that the hub writes is nobody else's: a mistake of the settings,
    wherever they come from, and nothing is touched."""

    def refused_with(self, words, *arguments, **more):
        hub = self.hub(*arguments, listen=None, **more)
        self.assertEqual(hub.wait(), 2)
        self.assertIn(words, b"".join(hub.noise).decode())

    def test_a_start_refuses_a_copy_in_the_store(self):
        to = "--to", "a=http://127.0.0.1:9/"
        hub = self.hub(*to)
        hub.post(b"x")
        self.assertEqual(hub.stop(), 0)
        link = os.path.join(self.folder, "link")
        os.symlink("hub.db", link)
        with open(self.store, "rb") as file:
            before = file.read()
        for name in self.store, link:
            self.refused_with("a file of the store", *to, "--dead-letters",
                              f"file:{name}")
        settings = self.write([], **{"dead-letters": {"copy": "file:copy"}})
        self.refused_with("a file of the store", "--store",
                          os.path.join(self.folder, "copy"),
                          settings=settings)
        with open(self.store, "rb") as file:
            self.assertEqual(file.read(), before)
        self.assertFalse(os.path.exists(os.path.join(self.folder, "copy")))

    def test_a_reload_and_a_call_refuse_to_read_what_is_written(self):
        audit = self.put("audit", "hush\n")
        target = {"name": "a", "url": "https://127.0.0.1:9/"}
        hub = self.start([target], audit=audit)
        self.write([{**target, "headers": {"X-A": {"file": "./audit"}}}],
                   audit=audit)
        hub.process.send_signal(signal.SIGHUP)
        self.assertIn("writes to", hub.event("reload-refused")["detail"])
        with self.assertRaises(urllib.error.HTTPError) as refused:
            urllib.request.urlopen(urllib.request.Request(
                f"http://127.0.0.1:{hub.port}/v1/targets/b", method="PUT",
                data=json.dumps({"url": "https://127.0.0.1:9/",
                                 "tls": {"ca": audit}}).encode(),
                headers={"Content-Type": "application/json"}))
        self.assertIn("writes to", refused.exception.read().decode())
        self.assertEqual(hub.stop(), 0)


case.main(at_once=11)
