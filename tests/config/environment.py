"""`${NAME}` in a settings file: what it becomes, where it stands for itself, and
that no value of the environment is ever shown.
"""
import os
import pathlib
import subprocess
import tempfile
import unittest

STAGGER = os.environ["STAGGER"]
TARGET = 'targets: [{name: a, url: "http://127.0.0.1:1/"}]\n'


def check(text, **environment):
    path = FOLDER / "hub.yaml"
    path.write_text(text)
    r = subprocess.run([STAGGER, "check", "-c", "hub.yaml"], cwd=FOLDER,
                       env={"PATH": os.environ["PATH"], **environment},
                       stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                       text=True, timeout=60)
    return r.returncode, r.stdout


class Environment(unittest.TestCase):
    def assertSays(self, text, words, **environment):
        code, out = check(text, **environment)
        self.assertEqual(code, 2, out)
        self.assertIn(words, out)
        for value in environment.values():
            self.assertNotIn(value, out)

    def test_is_put_into_values_of_any_kind(self):
        code, out = check(
            'store: {path: "${WHERE}/hub.db", quota: "${QUOTA}"}\n'
            "listen: {address: '127.0.0.1:${PORT:-8123}'}\n"
            "defaults:\n  in-flight: ${N}\n  paused: ${PAUSED}\n"
            "targets:\n"
            "  - name: ${NAME}\n"
            "    url: >-\n"
            "      http://${ADDRESS}/${PATH_OF:-a/b}?key=${KEY}\n",
            WHERE=".", QUOTA="64MiB", N="7", PAUSED="true", NAME="shop",
            ADDRESS="127.0.0.2", KEY="hush-hush")
        self.assertEqual(code, 0, out)
        self.assertIn("listens  on 127.0.0.1:8123,", out)
        self.assertIn("up to 64 MiB", out)
        row = [line.split() for line in out.splitlines() if "http:" in line][0]
        self.assertEqual([row[0], row[2]], ["${NAME}", "7"])
        self.assertIn("http://${ADDRESS}/${PATH_OF:-a/b}?...  paused", out)
        self.assertNotIn("hush", out)

    def test_is_refused_if_it_is_missing(self):
        code, out = check('store:\n  path: "${WHERE}/${WHAT}"\n' + TARGET)
        self.assertEqual((code, out), (
            2, "hub.yaml:2:9: `${WHERE}`: there is no such variable in the "
               "environment; set it, or write ${WHERE:-default}\n"))
        code, out = check(TARGET + "store: {path: $HOME}\n"
                          "log:\n  level: ${LEVEL}\n  format: ${FORMAT}\n")
        self.assertEqual(out.count("there is no such variable"), 2, out)

    def test_has_a_default_where_it_is_missing_or_empty(self):
        text = 'listen: {address: "${A:-127.0.0.1:}${B:-8124}${C:-}"}\n'
        for environment in {}, {"A": "", "B": "", "C": ""}:
            code, out = check(text + TARGET, **environment)
            self.assertEqual(code, 0, out)
            self.assertIn("127.0.0.1:8124", out)
        code, out = check("store:\n  path: ${A}\n" + TARGET, A="")
        self.assertIn("hub.yaml:2:9: `store.path`: nothing; expected", out)

    def test_is_itself_behind_another_dollar(self):
        code, out = check("store: {path: 'a$${HOME}$$x$'} # ${NO}\n" + TARGET,
                          HOME="hush-hush")
        self.assertEqual(code, 0, out)
        self.assertIn("keeps    a${HOME}$$x$,", out)

    def test_is_no_part_of_a_key(self):
        code, out = check('"${A}": 1\n' + TARGET, A="store")
        self.assertEqual(code, 2, out)
        self.assertIn("hub.yaml:1:1: `...`: no such setting", out)

    def test_is_replaced_once_where_an_alias_repeats_it(self):
        code, out = check(
            "policies:\n  p: &p broadcast attempts=${N}\n  q: *p\n"
            "targets:\n"
            "  - {name: a, url: 'http://127.0.0.1:1/', policy: q, headers: &h"
            " {X-A: '$${{N}'}}\n"
            "  - {name: b, url: 'http://127.0.0.1:2/', policy: p, headers: *h}"
            "\n",
            N="3")
        self.assertEqual(code, 0, out)
        self.assertIn("attempts=3", out)

    def test_is_refused_where_it_has_no_form(self):
        for text in "${", "${}", "${1A}", "${A B}", "${A:x}", "${A:-x", \
                "${A:-${B}}", "${A-x}":
            with self.subTest(text):
                code, out = check(f"store: {{path: '{text}'}}\n" + TARGET,
                                  A="a", B="b")
                self.assertEqual(code, 2, out)
                self.assertIn("hub.yaml:1:15: `${` without a name; expected "
                              "${NAME} or ${NAME:-default}", out)

    def test_makes_no_structure(self):
        """A value stays one text, whatever it has in it."""
        self.assertSays(TARGET.replace("name: a", "name: '${EVIL}'"),
                        "`name`: `${EVIL}` is not a valid name",
                        EVIL="x, url: 'http://127.0.0.1:2/'")
        self.assertSays("targets: ${EVIL}\n", "`targets`: a text; expected",
                        EVIL="[{name: a, url: 'http://127.0.0.1:1/'}]")

    def test_is_never_shown_by_a_mistake(self):
        for text, words in (
            ("defaults: {in-flight: '${SECRET}'}", "${SECRET}"),
            ("defaults: {rate: '${SECRET}'}", "${SECRET}"),
            ("defaults: {paused: '${SECRET}'}", "${SECRET}"),
            ("defaults: {policy: '${SECRET}'}", "${SECRET}"),
            ("policies: {p: '${SECRET} attempts=3'}", ""),
            ("source: '${SECRET}'", ""),
            ("listen: {address: '${SECRET}'}", "${SECRET}"),
            ("listen: {tokens: '/nowhere/${SECRET}'}", "/nowhere/${SECRET}"),
            ("log: {format: '${SECRET}'}", "${SECRET}"),
            ("egress: {allow: ['${SECRET}']}", ""),
            ("kafka: {topics: ['${SECRET} ']}", ""),
            ("alerts: {receivers: [{alerts: ['${SECRET}']}]}", "${SECRET}"),
            ("defaults: {headers: {A: {file: '${SECRET}'}}}", "${SECRET}"),
            ("defaults: {headers: {A: \"${SECRET}\\n\"}}", ""),
        ):
            for secret in "hush-hush-hush", "hush hush: " + "hush" * 60:
                with self.subTest(text, secret=secret):
                    code, out = check(text + "\n" + TARGET, SECRET=secret)
                    self.assertEqual(code, 2, out)
                    self.assertIn(words, out)
                    self.assertNotIn("hush", out)
        for url in "ftp://hush-hush/", "http://hush hush/", "hush-hush:99999":
            with self.subTest(url):
                code, out = check("targets: [{url: '${URL}'}]\n", URL=url)
                self.assertEqual(code, 2, out)
                self.assertNotIn("hush", out)

    def test_shows_a_short_value_by_its_name_where_it_is_quoted(self):
        code, out = check("defaults:\n  rate: ${RATE}\n" + TARGET, RATE="50")
        self.assertEqual(code, 2, out)
        self.assertIn("`${RATE}`", out)
        self.assertNotIn("`50`", out)

    def test_takes_quotes_inside_of_brackets(self):
        code, out = check("defaults: {in-flight: ${N}}\n" + TARGET, N="3")
        self.assertEqual((code, out), (
            2, "hub.yaml:1:24: ${NAME} without quotes inside of { } or [ ]; "
               "expected \"${NAME}\"\n"))
        code, out = check("defaults: {in-flight: \"${N}\"}\n" + TARGET, N="3")
        self.assertEqual(code, 0, out)

    def test_may_be_the_password_of_a_store(self):
        text = ("source: kafka\nkafka: {brokers: 'k:9092', topics: a}\n"
                "store: {path: 'postgres://hub:%s@db/hub'}\n" + TARGET)
        for password in "hush-hush", "abc":
            code, out = check(text % "${PW}", PW=password)
            self.assertEqual(code, 0, out)
            self.assertRegex(out, r"keeps    postgres://.*@db/hub")
            self.assertNotIn(password, out)
        code, out = check(text % "hush")
        self.assertEqual(code, 2, out)
        self.assertNotIn("hush", out)

    def test_must_be_utf8(self):
        path = FOLDER / "hub.yaml"
        path.write_text("store:\n  path: ${A}\n" + TARGET)
        r = subprocess.run([STAGGER, "check", "-c", path],
                           env={b"A": b"\xff"}, stdout=subprocess.PIPE)
        self.assertEqual(r.returncode, 2)
        self.assertIn(b"`${A}`: its value is not UTF-8", r.stdout)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        FOLDER = pathlib.Path(folder)
        unittest.main()
