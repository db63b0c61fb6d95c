"""Whatever producers, targets and hubs send: no command gives a terminal what
the terminal would obey or what shows a text in another order than it has, and
what is for programs keeps its meaning.

Each command is run on a terminal of its own and into a pipe.
"""
import base64
import contextlib
import csv
import io
import json
import os
import pathlib
import pty
import re
import sqlite3
import subprocess
import sys
import tempfile
import termios
import unittest

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "hub"))
import case
from fake_hub import FakeHub, Problem, failed, letter, target

STAGGER = os.environ["STAGGER"]
PATIENCE = 60
EVIL = ("\x1b]0;owned\x07 \x9b31m\x85 \u202egnp.exe\u202c \u2066x\u2069 "
        "\u200e\u200f\u061c\u2028 \rover \x7f \ufeff\U000e0041 gr\u00fc\u00df")
RAW = EVIL.encode() + b" \xff\x9b\xc2"
# What commands write of their own accord.
OURS = re.compile(rb"\x1b\[(?:\d+A|[KJ]|\?7[lh]|[0-4]?m|3[0-7]m)")
BAD = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u180e\u200b\u200e\u200f"
                 "\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
                 "\U000e0000-\U000e007f]")


def environment():
    return {name: value for name, value in os.environ.items()
            if name not in ("COLUMNS", "STAGGER_HUB", "STAGGER_STORE")}


def on_pipe(*words):
    """Exit code, stdout, stderr."""
    done = subprocess.run([STAGGER, *words], capture_output=True, input=b"x",
                          timeout=PATIENCE, env=environment())
    return done.returncode, done.stdout, done.stderr


def on_terminal(*words, until=None):
    """All that came, byte by byte: \\n stays \\n. until: then it is ended."""
    ours, theirs = pty.openpty()
    mode = termios.tcgetattr(theirs)
    mode[1] &= ~termios.OPOST
    termios.tcsetattr(theirs, termios.TCSANOW, mode)
    process = subprocess.Popen(
        [STAGGER, *words], stdin=subprocess.DEVNULL, stdout=theirs,
        stderr=theirs, env={**environment(), "TERM": "xterm"})
    os.close(theirs)
    text = b""
    with contextlib.suppress(OSError):
        while until is None or until not in text:
            text += os.read(ours, 65536)
    if until is not None:
        process.terminate()
    process.wait(PATIENCE)
    os.close(ours)
    return text


class Visible(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.hub = FakeHub()
        self.hub.is_honest = False
        self.addCleanup(self.hub.close)

    def check(self, text, *has):
        """Nothing in it is for the terminal but what the command writes."""
        shown = OURS.sub(b"", text).decode()
        self.assertIsNone(BAD.search(shown), ascii(shown))
        for each in has:
            self.assertIn(each, shown)

    def shows(self, *words, has=("owned",), until=None):
        """In a pipe and on a terminal."""
        _, out, err = on_pipe(*words)
        self.check(out + err, *has)
        self.check(on_terminal(*words, until=until), *has)

    def asks(self, *words, **more):
        self.shows(*words, "--hub", self.hub.url, **more)

    def json(self, *words):
        """Each of a program's: the same value, whoever reads it."""
        code, out, err = on_pipe(*words)
        self.assertEqual((code, err), (0, b""))
        self.check(out)
        self.check(on_terminal(*words))
        return json.loads(out)

    # -- what a hub answers

    def test_status_and_targets_show_names_and_causes(self):
        self.hub.targets = [
            target(EVIL, url="http://b/" + EVIL, state=EVIL,
                   **{**failed(EVIL, 9)}, breaker=EVIL)]
        self.hub.status.update(
            version=EVIL, state=EVIL, missing=EVIL,
            source={"kind": EVIL, "is_away": False, "partitions": [
                {"topic": EVIL, "lag_messages": 1}]})
        for words in (("status", "--once", "--interval=10ms"), ("targets",)):
            self.asks(*words)
        at = ("--hub", self.hub.url)
        self.check(on_terminal("status", "--interval=10ms", *at,
                               until=b"\x1b[J"), "owned")
        found = self.json("status", "--json", "--interval=10ms", *at)
        self.assertEqual(found["targets"][0]["name"], EVIL)
        found = self.json("targets", "--json", *at)
        self.assertEqual(found["targets"][0]["url"], "http://b/" + EVIL)

    def test_pause_and_resume_show_states(self):
        self.hub.change_target = lambda name, what: (200, {"state": EVIL})
        for command in ("pause", "resume"):
            self.asks(command, "billing")

    def test_replay_and_drop_show_samples(self):
        self.hub.letters = [letter(1, target=EVIL, cause=EVIL, detail=EVIL,
                                   created_at=EVIL)]
        for command in ("replay", "drop"):
            self.asks("dead", command, "--all", "--dry-run")
            found = self.json("dead", command, "--all", "--dry-run", "--json",
                              "--hub", self.hub.url)
            self.assertEqual(found["sample"][0]["detail"], EVIL)

    def test_dead_list_shows_what_a_hub_says(self):
        self.hub.letters = [letter(1, target=EVIL, cause=EVIL, detail=EVIL,
                                   created_at=EVIL, topic=EVIL, partition=3)]
        self.asks("dead", "list")
        self.asks("dead", "list", "--summary")
        found = self.json("dead", "list", "--json", "--hub", self.hub.url)
        row, = found["dead_letters"]
        self.assertEqual((row["detail"], row["topic"], row["partition"]),
                         (EVIL, EVIL, 3))

    def test_every_command_shows_what_was_refused(self):
        def refuse(method, path):
            raise Problem(400, EVIL, EVIL, errors=[EVIL], line=1)
        self.hub.problem = refuse
        for words in (("status",), ("targets",), ("pause", "a"), ("reload",),
                      ("resume", "a"), ("targets", "forget", "-y", "a"),
                      ("dead", "replay", "--all", "-y"),
                      ("dead", "drop", "--all", "-y"), ("dead", "list"),
                      ("alert", "test"),
                      ("send", "--policy", "none"),
                      ("send", "--policy", "none", "--lines")):
            self.asks(*words, has=("owned",) if words[0] != "send" else ())
        _, _, err = on_pipe("send", "-p", "none", "--hub", self.hub.url)
        self.check(err, "owned", "gr\u00fc\u00df")

    def test_a_long_answer_is_shown_to_its_end(self):
        """More than a screen of it: with nothing in it that a terminal would
        obey, and with that at its very end alone."""
        plain = [f"{i}: " + 60 * "gr\u00fc\u00df " for i in range(100)]
        for end, shown in (("", ""), ("\x1b", "?"), ("\u202e", "?")):
            errors = [*plain[:-1], plain[-1] + "end" + end]

            def refuse(method, path):
                raise Problem(400, "no", "wrong", errors=errors)
            self.hub.problem = refuse
            _, _, err = on_pipe("reload", "--hub", self.hub.url)
            self.check(err)
            lines = err.decode().splitlines()[1:]
            self.assertEqual([line.strip() for line in lines[:99]],
                             [line.strip() for line in plain[:99]])
            self.assertTrue(lines[99].endswith("end" + shown), lines[99][-9:])
            self.check(on_terminal("reload", "--hub", self.hub.url), "end")

    def test_send_shows_ids(self):
        self.hub.call = lambda *_: (202, {"id": "owned" + EVIL})
        self.hub.check = lambda *_: None
        code, out, err = on_pipe("send", "--hub", self.hub.url)
        self.assertEqual((code, err), (0, b""))
        self.check(out, "owned")

    def test_alert_test_shows_what_came_of_it(self):
        self.hub.call = lambda *_: (200, {"receivers": [
            {"name": EVIL, "type": EVIL, "is_told": False, "detail": EVIL}]})
        self.asks("alert", "test")

    # -- what is in a store

    def store(self):
        path = str(self.folder / "hub.db")
        case.deliver(path, [b"one"], "--policy", "none", "--to",
                     "billing=http://127.0.0.1:1/")
        with contextlib.closing(sqlite3.connect(path)) as db, db:
            texts = ("message_id", "target", "target_url", "state", "why",
                     "category", "cause", "detail", "first_attempt_at",
                     "last_attempt_at", "created_at", "changed_at",
                     "content_type", "key")
            db.execute("UPDATE failed_broadcast_logs SET headers = ?1, "
                       "answer = ?2, payload = ?3, " + ", ".join(
                           f"{each} = ?4" for each in texts),
                       (f"A: {EVIL}\r\n".encode(), EVIL.encode() + b"\r\n",
                        EVIL.encode() + b"\n", EVIL))
        return path

    def test_dead_shows_rows(self):
        store = self.store()
        for words in (("list",), ("list", "--summary"), ("show", "1")):
            self.shows("dead", *words, "--store", store)
        for words in (("list",), ("list", "--summary")):
            found = self.json("dead", *words, "--json", "--store", store)
            self.assertEqual(next(iter(found.values()))[0]["target"], EVIL)
        for words in (("show", "--json", "1"), ("export",)):
            found = self.json("dead", *words, "--store", store)
            self.assertEqual(found["payload"], EVIL + "\n")
            self.assertEqual(found["detail"], EVIL)

    def test_dead_shows_bytes_that_are_no_text(self):
        store = self.store()
        with contextlib.closing(sqlite3.connect(store)) as db, db:
            db.execute("UPDATE failed_broadcast_logs SET payload = ?, "
                       "detail = CAST(? AS TEXT)", (RAW, RAW))
        self.shows("dead", "show", "--store", store, "1")
        found = self.json("dead", "show", "--json", "1", "--store", store)
        self.assertEqual(base64.b64decode(found["payload_base64"]), RAW)

    def test_dead_keeps_the_bytes_where_no_terminal_is(self):
        store = self.store()
        raw = ("dead", "show", "--raw", "1", "--store", store)
        self.assertEqual(on_pipe(*raw)[1], EVIL.encode() + b"\n")
        self.check(on_terminal(*raw), "owned", "gr\u00fc\u00df")
        for words in (("list", "--csv"), ("list", "--summary", "--csv"),
                      ("export", "--format=csv")):
            words = ("dead", *words, "--store", store)
            text = on_pipe(*words)[1].decode()
            rows = list(csv.DictReader(io.StringIO(text, newline="")))
            self.assertEqual(rows[0]["target"], EVIL)
            self.check(on_terminal(*words).replace(b"\r\n", b"\n"), "owned")

    def test_store_shows_paths_and_flaws(self):
        store = self.store()
        moved = str(self.folder / "owned\x1b[2J\u202e.db")
        os.rename(store, moved)
        self.shows("store", "verify", "--store", moved)

    # -- what is in a file, and what a hub logs

    def test_check_shows_mistakes(self):
        path = self.folder / "hub.yaml"
        evil = "".join(each if each.isascii() and each.isprintable()
                       else f"\\U{ord(each):08x}" for each in EVIL)
        path.write_text(f'targets: [{{url: "{evil}"}}]\n"owned{evil}": 1\n')
        self.shows("check", "-c", str(path))

    def test_the_hub_logs_what_came_from_outside(self):
        path = str(self.folder / "owned\u202e\x9b31m.db")
        for form in ("logfmt", "json"):
            with subprocess.Popen(
                    [STAGGER, "hub", "--log", form, "--store", path, "--listen",
                     "127.0.0.1:0", "--to", "a=http://127.0.0.1:1/"],
                    stderr=subprocess.PIPE) as hub:
                ready = hub.stderr.readline()
                hub.terminate()
                text = ready + hub.stderr.read()
            self.check(text, "owned\\u202e\\u009b31m.db")


if __name__ == "__main__":
    unittest.main()
