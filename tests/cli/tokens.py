#!/usr/bin/env python3
"""stagger token, as its users see it."""
import hashlib
import os
import re
import stat
import subprocess
import tempfile
import unittest

STAGGER = os.environ["STAGGER"]


def run(*arguments):
    return subprocess.run([STAGGER, "token", *arguments], capture_output=True,
                          text=True, timeout=60)


class Token(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = os.path.join(folder.name, "tokens")

    def made(self, *arguments):
        ended = run("new", self.path, *arguments)
        self.assertEqual((ended.returncode, ended.stderr), (0, ""))
        self.assertRegex(ended.stdout, r"^stagger_[0-9a-f]{64}\n$")
        return ended.stdout.strip()

    def lines(self):
        with open(self.path) as file:
            return file.read().splitlines()

    def refused(self, code, words, *arguments):
        ended = run(*arguments)
        self.assertEqual((ended.returncode, ended.stdout), (code, ""))
        self.assertIn(words, ended.stderr)
        self.assertTrue(ended.stderr.startswith("stagger token: "),
                        ended.stderr)

    def test_prints_it_once_and_keeps_its_hash(self):
        token = self.made("--role", "publish", "--name", "till-3")
        hashed = hashlib.sha256(token.encode()).hexdigest()
        self.assertEqual(self.lines(), [f"publish sha256:{hashed} till-3"])
        self.assertEqual(stat.S_IMODE(os.stat(self.path).st_mode), 0o600)

    def test_appends_to_what_is_there(self):
        with open(self.path, "w", opener=lambda p, f: os.open(p, f, 0o600)) \
                as file:
            file.write("# of the shop")  # without an end of line
        first = self.made("--role", "view,publish")
        second = self.made("-r", "operate", "-n", "anna@example.org")
        self.assertNotEqual(first, second)
        lines = self.lines()
        self.assertEqual(lines[0], "# of the shop")
        self.assertTrue(re.fullmatch(r"publish,view sha256:[0-9a-f]{64}",
                                     lines[1]), lines)
        self.assertTrue(re.fullmatch(r"operate sha256:[0-9a-f]{64} "
                                     r"anna@example\.org", lines[2]), lines)

    def test_says_what_is_wrong(self):
        path = self.path
        for words, arguments in (
                ("expected new", ()),
                ("old: expected new", ("old", path)),
                ("expected the FILE", ("new", "--role", "view")),
                ("unexpected argument", ("new", path, path, "--role", "view")),
                ("expected --role", ("new", path)),
                ("expected publish, view or operate",
                 ("new", path, "--role", "admin")),
                ("expected publish, view or operate",
                 ("new", path, "--role", "view,")),
                ("expected up to 64 letters",
                 ("new", path, "--role", "view", "--name", "a b"))):
            with self.subTest(arguments=arguments):
                self.refused(2, words, *arguments)
        self.assertFalse(os.path.exists(path))

    def test_does_not_write_where_others_may_read(self):
        with open(self.path, "w"):
            pass
        os.chmod(self.path, 0o660)
        self.refused(1, "chmod 600", "new", self.path, "--role", "view")
        self.assertEqual(self.lines(), [])
        self.refused(1, "irectory", "new", os.path.dirname(self.path),
                     "--role", "view")


if __name__ == "__main__":
    unittest.main()
