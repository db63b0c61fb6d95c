#!/usr/bin/env python3
"""Each exit code that a man page lists, provoked. A code of a page that has no
row here, or a row whose code no page lists, fails too."""
import os
import pathlib
import pwd
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import unittest

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "hub"))
import case
from fake_hub import FakeHub, target

STAGGER = os.environ["STAGGER"]
MAN = pathlib.Path(os.environ["STAGGER_SOURCE"]) / "docs/man"
NOWHERE = "http://127.0.0.1:1"  # nothing listens there
PATIENCE = 60
SETTINGS = """
store: {{path: {folder}/{store}}}
listen: {{address: "{listen}"{tokens}}}
targets: [{{name: a, url: "{url}/in"}}]
{more}
"""
# Pages in words, not in a list. A number that is not a code is not among them.
IN_WORDS = {"send": {"0", "1", "2", "128+N"}, "sim": {"0", "1", "2", "130"},
            "sink": {"0", "1", "2"}, "store": {"0", "1", "2"},
            "secret": {"0", "1", "2"}, "token": {"0", "1", "2"},
            "stagger": {"0", "2"}}
# Provoked where more is looked at than the code: demo.py, sim_advise.py, send.py;
# hub.py, ingress.py and alerts.py of tests/hub. Nothing provokes a demo that goes
# wrong.
ELSEWHERE = {("demo", "0"), ("demo", "1"), ("demo", "2"), ("demo", "128+N"),
             ("sim", "1"), ("sim", "130"), ("send", "0"), ("alert", "0"),
             ("hub", "0"), ("hub", "3"), ("hub", "128+N")}


def documented():
    """{command: its codes}"""
    all_codes = {}
    for page in MAN.glob("stagger*.1"):
        name = page.stem.removeprefix("stagger-")
        section = re.search(r"^\.Sh EXIT STATUS\n(.*?)^\.Sh", page.read_text(),
                            re.M | re.S)[1]
        if name in IN_WORDS:
            codes = IN_WORDS[name]
            for code in codes:
                assert code.replace("+", " + ") in section, (name, code)
        else:
            codes = set(re.findall(r"^\.It (\S+)", section, re.M))
        all_codes[name] = codes
    return all_codes


PAGE = 16384  # bytes of a page of the store


class ExitCodes(unittest.TestCase):
    rows = set()  # (command, code) that were provoked
    ran = set()   # tests

    @classmethod
    def tearDownClass(cls):
        if cls.ran != set(unittest.defaultTestLoader.getTestCaseNames(cls)):
            return
        expected = {(name, code) for name, codes in documented().items()
                  for code in codes} - ELSEWHERE
        assert cls.rows == expected, (expected - cls.rows, cls.rows - expected)

    def setUp(self):
        self.ran.add(self._testMethodName)
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.hub = FakeHub()
        self.addCleanup(self.hub.close)
        self.hub.targets = [target("a")]

    def check(self, name, code, *words, documented=None, text="", **more):
        """The command, run with the words, ends with the code."""
        self.rows.add((name, documented or str(code)))
        command = [] if name == "stagger" else [name]
        done = subprocess.run([STAGGER, *command, *map(str, words)], input=text,
                              capture_output=True, text=True, timeout=PATIENCE,
                              **more)
        self.assertEqual(done.returncode, code, (name, words, done.stdout,
                                                 done.stderr))
        return done

    def settings(self, store="hub.db", listen="127.0.0.1:0", tokens="",
                 more=""):
        path = self.folder / "hub.yaml"
        path.write_text(SETTINGS.format(folder=self.folder, store=store,
                                        listen=listen, tokens=tokens,
                                        url=self.hub.url,
                                        more=more))
        return path

    def test_the_command(self):
        self.check("stagger", 0, "--version")
        self.check("stagger", 2)
        self.check("stagger", 2, "no-such-command")
        self.check("stagger", 2, "--no-such-option")
        with open("/dev/full", "w", encoding="ascii") as full:
            done = subprocess.run([STAGGER, "--help"], stdout=full,
                                  stderr=subprocess.DEVNULL, check=False)
        self.assertEqual(done.returncode, 2)

    def test_commands_that_ask_a_hub(self):
        for name, words in {"pause": ["a"], "resume": ["a"], "reload": [],
                            "status": [], "targets": [],
                            "resend": ["-t", "a", "00c0ffee00c0ffee-1"],
                            "alert": ["test"]}.items():
            with self.subTest(name):
                if name != "alert":
                    self.check(name, 0, *words, "--hub", self.hub.url)
                self.check(name, 1, *words, "--hub", NOWHERE)
                self.check(name, 2, *words, "--no-such-option")
        self.check("pause", 1, "b", "--hub", self.hub.url)
        self.check("resume", 1, "b", "--hub", self.hub.url)

    def test_alert(self):
        self.check("alert", 2, "test", "-c", self.settings(), "no-such-one")

    def test_check(self):
        self.check("check", 0, "-c", self.settings())
        self.check("check", 1, "--strict", "-c",
                   self.settings(more="policies: {unused: attempts=1}"))
        self.check("check", 2, "-c", self.settings(more="no-such-key: 1"))
        self.check("check", 2, "-c", self.folder / "nothing.yaml")

    def test_plan(self):
        self.check("plan", 0, "backend")
        self.check("plan", 1, "--strict", "attempts=100 base=1ms jitter=none")
        self.check("plan", 2, "no-such-policy")

    def test_run(self):
        once = ["-p", "attempts=1", "--"]
        self.check("run", 0, *once, "true")
        self.check("run", 124, "-p", "attempts=1 attempt-timeout=50ms", "--", "sleep",
                   "60")
        self.check("run", 125, "--no-such-option")
        self.check("run", 126, *once, self.folder)
        self.check("run", 127, *once, self.folder / "nothing")
        self.check("run", 128 + 9, *once, "sh", "-c", "kill -9 $$",
                   documented="128+N")
        self.check("run", 7, *once, "sh", "-c", "exit 7", documented="other")

    def test_dead_and_store(self):
        self.hub.is_honest = False  # it answers 404 to a message
        store = self.folder / "hub.db"
        case.deliver(str(store), [b'{"n": 1}'], "--to", self.hub.url + "/in")
        self.check("dead", 0, "list", "--store", store)
        self.check("dead", 1, "show", "--store", store, "99")
        self.check("dead", 2, "list", "--store", self.folder / "nothing.db")
        (self.folder / "file").write_text("")
        for path, words in (("no/hub.db", "there is no such file"),
                            ("file/hub.db", "Not a directory"),
                            (".", "Is a directory")):
            for command in ("dead", "list"), ("store", "verify"):
                done = self.check(command[0], 2, command[1], "--store",
                                  self.folder / path)
                self.assertIn(f"{words}; name a store with --store",
                              done.stderr)
        self.check("store", 0, "verify", "--store", store)
        with store.open("r+b") as file:  # but not its first page
            file.seek(PAGE)
            file.write(b"\xff" * PAGE)
        self.check("store", 1, "verify", "--store", store)
        self.check("store", 2, "verify", "--store", self.folder / "nothing.db")

    def as_nobody(self):
        """Options of a process without root's rights, and its command: a copy,
        as what was built may be where nobody else looks."""
        if os.geteuid() != 0:
            return STAGGER, {}
        self.folder.chmod(0o755)
        copy = shutil.copy(STAGGER, self.folder / "stagger")
        return copy, {"user": 65534, "group": 65534, "extra_groups": []}

    def test_a_store_of_another_user(self):
        store = self.folder / "hub.db"
        case.deliver(str(store), [])
        store.chmod(0)
        command, rights = self.as_nobody()
        owner = pwd.getpwuid(os.geteuid()).pw_name
        for words in (["dead", "list"], ["store", "verify"],
                      ["store", "backup", self.folder / "copy.db"]):
            done = subprocess.run([command, *words, "--store", store],
                                  capture_output=True, text=True,
                                  timeout=PATIENCE, check=False, **rights)
            self.assertEqual(done.returncode, 2)
            self.assertIn("Permission denied; run this as the user of the hub, "
                          f"which the store belongs to: {owner}\n", done.stderr)

    def test_a_port_that_needs_a_right(self):
        first = pathlib.Path("/proc/sys/net/ipv4/ip_unprivileged_port_start")
        if first.exists() and int(first.read_text()) < 2:
            self.skipTest("here no port needs a right")
        command, rights = self.as_nobody()
        (self.folder / "own").mkdir()
        if rights:
            os.chown(self.folder / "own", 65534, 65534)
        done = subprocess.run(
            [command, "hub", "--listen", "127.0.0.1:1", "--store",
             self.folder / "own/hub.db"], capture_output=True, text=True,
            timeout=PATIENCE, check=False, **rights)
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertIn("listen=127.0.0.1:1: not permitted; ports below 1024 need "
                      "CAP_NET_BIND_SERVICE", done.stderr)

    def test_token(self):
        path = self.folder / "tokens"
        self.check("token", 0, "new", path, "--role", "publish")
        self.check("token", 1, "new", self.folder / "no/tokens", "--role",
                   "publish")
        self.check("token", 2, "new", path, "--role", "king")

    def test_secret(self):
        self.check("secret", 0, "new", self.folder / "secret")
        self.check("secret", 1, "new", self.folder / "no/secret")
        self.check("secret", 2, "new", "--scheme", "king")

    def test_send(self):
        with socket.create_server(("127.0.0.1", 0)) as mute:
            url = "http://127.0.0.1:%d" % mute.getsockname()[1]
            self.check("send", 2, "--no-such-option")
            self.check("send", 2, "--hub", url, self.folder / "nothing")
            self.check("send", 1, "--hub", NOWHERE, "--policy", "attempts=1",
                       text="a")
            with subprocess.Popen([STAGGER, "send", "--hub", url],
                                  stdin=subprocess.PIPE,
                                  stderr=subprocess.DEVNULL) as sending:
                self.addCleanup(sending.kill)
                sending.stdin.write(b"a")
                sending.stdin.close()
                with mute.accept()[0]:  # it is at work
                    sending.terminate()
                    self.assertEqual(sending.wait(PATIENCE), 128 + 15)
            self.rows.add(("send", "128+N"))

    def test_sim(self):
        self.check("sim", 0, "contention", "-n", "2")
        self.check("sim", 2, "contention", "--no-such-option")

    def test_sink(self):
        with socket.create_server(("127.0.0.1", 0)) as taken:
            self.check("sink", 1, "--listen",
                       "127.0.0.1:%d" % taken.getsockname()[1])
        self.check("sink", 2, "--no-such-option")
        with subprocess.Popen([STAGGER, "sink", "--listen", "127.0.0.1:0"],
                              stdout=subprocess.PIPE, text=True,
                              stderr=subprocess.STDOUT) as sink:
            self.addCleanup(sink.kill)
            self.assertIn("127.0.0.1:", sink.stdout.readline())
            sink.terminate()
            self.assertEqual(sink.wait(PATIENCE), 0)
        self.rows.add(("sink", "0"))

    def test_hub_that_cannot_start(self):
        self.check("hub", 2, "--no-such-option")
        # Only a person can mend these.
        path = self.settings(tokens=f", tokens: {self.folder}/nothing")
        done = self.check("hub", 2, "-c", path)
        self.assertIn("nothing cannot be read: No such file", done.stderr)
        self.check("hub", 2, "--to", NOWHERE, "--token-file",
                   self.folder / "nothing", "--store", self.folder / "hub.db")
        (self.folder / "text.db").write_text("no database, but a text" * 100)
        self.check("hub", 2, "-c", self.settings(store="text.db"))
        self.check("hub", 2, "-c", self.settings(store="no/hub.db"))
        tokens = self.folder / "tokens"
        self.check("token", 0, "new", tokens, "--role", "publish")
        lacking = self.settings(listen="192.0.2.1:80",
                                tokens=f", tokens: {tokens}")
        done = self.check("check", 0, "-c", lacking)  # it may be another's
        self.assertIn(":3:19: warning: `listen.address`: listen=192.0.2.1:80: "
                      "this machine has no such address",
                      done.stdout + done.stderr)
        # The options say the same as a file.
        done = self.check("hub", 2, "--to", "http://169.254.169.254/")
        self.assertIn("a metadata address", done.stderr)
        (self.folder / "file").write_text("")
        (self.folder / "link.db-lock").symlink_to("file")
        for words, why in (
                (["--store", "no/hub.db"], "no such directory"),
                (["--store", "file/hub.db"], "Not a directory"),
                (["--store", "."], "it is a directory"),
                (["--store", "link.db"], "-lock is a link"),
                (["--dead-letters", "file:no/letters"], "No such file"),
                (["--dead-letters", "file:file/letters"], "Not a directory")):
            store = [] if words[0] == "--store" else ["--store", "new.db"]
            done = self.check("hub", 2, "--to", NOWHERE, *words, *store,
                              cwd=self.folder)
            self.assertIn(why, done.stderr)
        (self.folder / "link.db-lock").unlink()
        # This may be well again at the next start: an address may come later.
        self.check("hub", 4, "-c", lacking)
        with socket.create_server(("127.0.0.1", 0)) as taken:
            listen = "127.0.0.1:%d" % taken.getsockname()[1]
            settings = self.settings(listen=listen)
            self.check("check", 0, "-c", settings)  # `check` does not listen
            self.check("hub", 4, "-c", settings)
        self.assertEqual([p.name for p in self.folder.glob("hub.db*")], [])


if __name__ == "__main__":
    unittest.main()
