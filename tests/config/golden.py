"""stagger check: what it says of settings files that are bad, or unwise.

bad.txt and unwise.txt have the files, `=== NAME` before each; $targets is a
target, $many are sixty, $lots 500, and \\xNN is a byte. bad.golden and unwise.golden have
what is said of each, without the file's name. STAGGER_GOLDEN=write writes them
anew, for a person to read.
"""
import datetime
import json
import os
import pathlib
import re
import socket
import subprocess
import tempfile
import unittest

STAGGER = os.environ["STAGGER"]
HERE = pathlib.Path(__file__).parent


def targets(count):
    return "\n".join(f'  - {{name: t{i}, url: "http://127.0.0.1:1/{i}"}}'
                     for i in range(count))


PARTS = {"$targets": 'targets: [{name: a, url: "http://127.0.0.1:1/"}]',
         "$many": targets(60), "$lots": targets(500)}
# Warnings that depend on the machine: the goldens omit them, or their number.
MACHINE = re.compile(r"^(.*the disk has left, |.*the machine's, which has )"
                     r"\d+MiB")


def cases(name):
    text = (HERE / name).read_text()
    for part in re.split(r"^=== ", text, flags=re.M)[1:]:
        title, _, body = part.partition("\n")
        for mark, meant in PARTS.items():
            body = body.replace(mark, meant)
        yield title, re.sub(rb"\\x([0-9a-f]{2})",
                            lambda m: bytes([int(m[1], 16)]), body.encode())


def golden(name):
    text = (HERE / name).read_text() if (HERE / name).exists() else ""
    parts = [part.partition("\n") for part in
             re.split(r"^=== ", text, flags=re.M)[1:]]
    return {title: body for title, _, body in parts}


def openssl(*words):
    subprocess.run(["openssl", *words], check=True, cwd=FOLDER,
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def certificate(name, key, first, last):
    """Valid from and to: days from now."""
    def day(number):
        when = (datetime.datetime.now(datetime.timezone.utc)
                + datetime.timedelta(days=number, hours=1))
        return when.strftime("%Y%m%d%H%M%SZ")
    openssl("req", "-new", "-key", key, "-subj", "/CN=hub", "-out", "csr")
    (FOLDER / "index").write_text("")
    (FOLDER / "ca.conf").write_text(
        "[ca]\ndefault_ca=x\n[x]\ndatabase=index\nnew_certs_dir=.\n"
        "rand_serial=yes\ndefault_md=sha256\npolicy=p\n[p]\ncommonName="
        "supplied\n")
    openssl("ca", "-batch", "-selfsign", "-config", "ca.conf", "-keyfile", key,
            "-in", "csr", "-startdate", day(first), "-enddate", day(last),
            "-notext", "-out", name)


def put(name, content, mode):
    path = FOLDER / name
    path.write_bytes(content)
    path.chmod(mode)


def make_folder():
    put("secret", b"hush\n", 0o600)
    put("long", b"hush" * 8 + b"\n", 0o600)
    put("public", b"hush\n", 0o644)
    put("group", b"hush\n", 0o660)
    put("slack", b"https://127.0.0.1/hush\n", 0o440)
    put("public.db", b"", 0o644)
    put("empty", b"", 0o600)
    put("line", b"\n", 0o600)
    put("lines", b"hush\nmore\n", 0o600)
    (FOLDER / "directory").mkdir()
    for name in ("good.key", "other.key"):
        openssl("genpkey", "-algorithm", "EC", "-pkeyopt",
                "ec_paramgen_curve:P-256", "-out", name)
        (FOLDER / name).chmod(0o600)
    os.link(FOLDER / "good.key", FOLDER / "hard.key")
    (FOLDER / "link").symlink_to("directory/../not-there-yet.db")
    put("public.key", (FOLDER / "good.key").read_bytes(), 0o644)
    openssl("pkey", "-in", "good.key", "-aes128", "-passout", "pass:x", "-out",
            "locked.key")
    (FOLDER / "locked.key").chmod(0o600)
    certificate("good.pem", "good.key", -1, 400)
    certificate("old.pem", "good.key", -10, -2)
    certificate("soon.pem", "good.key", -10, 3)
    subprocess.run([STAGGER, "token", "new", "tokens", "--role", "publish"],
                   check=True, cwd=FOLDER, stdout=subprocess.DEVNULL,
                   stdin=subprocess.DEVNULL)


def check(text, *words):
    path = FOLDER / "hub.yaml"
    path.write_bytes(text)
    return subprocess.run([STAGGER, "check", "-c", "hub.yaml", *words],
                          cwd=FOLDER, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, timeout=60)


def said(text, name):
    """Its lines of complaint, without the file's name."""
    keeps = "over-the" in name
    for line in text.splitlines():
        if line.startswith("hub.yaml") and (keeps or not MACHINE.match(line)):
            line = line.removeprefix("hub.yaml").lstrip(":")
            yield MACHINE.sub(r"\1...MiB", line) + "\n"


class Golden(unittest.TestCase):
    maxDiff = None

    def look(self, name, code, least):
        expected = golden(f"{name}.golden")
        found = {}
        for title, text in cases(f"{name}.txt"):
            with self.subTest(title):
                r = check(text)
                self.assertEqual(r.returncode, code, r.stdout)
                found[title] = "".join(said(r.stdout, title))
                self.assertNotEqual(found[title], "")
                self.assertNotIn("hush", r.stdout)
                if not os.environ.get("STAGGER_GOLDEN"):
                    self.assertEqual(found[title], expected.get(title))
        if os.environ.get("STAGGER_GOLDEN") == "write":
            (HERE / f"{name}.golden").write_text(
                "".join(f"=== {k}\n{v}" for k, v in found.items()))
        self.assertGreaterEqual(len(found), least)
        self.assertEqual(set(expected) - set(found), set())

    def test_says_what_is_bad(self):
        self.look("bad", 2, 100)

    def test_takes_retries_that_outlast_the_retention(self):
        r = check(b'targets: [{name: a, url: "http://127.0.0.1:1/", '
                  b'policy: webhook}]', "--strict")
        self.assertEqual((r.returncode, list(said(r.stdout, ""))), (0, []),
                         r.stdout)

    def test_says_of_policies_what_plan_says(self):
        """But of the default one."""
        r = check(b'policies: {short: "list=1s,5s,30s attempts=3 '
                  b'deadline=none attempt-timeout=1s"}\n'
                  b'targets:\n'
                  b'  - {name: a, url: "http://127.0.0.1:1/a", policy: short}\n'
                  b'  - {name: b, url: "http://127.0.0.1:1/b", policy: short}\n'
                  b'  - {name: c, url: "http://127.0.0.1:1/c"}\n', "--strict")
        self.assertEqual(r.returncode, 1, r.stdout)
        self.assertEqual(r.stdout.count("  warning: "), 1, r.stdout)
        planned = subprocess.run(
            [STAGGER, "plan", "-c", "hub.yaml", "--target", "b"], cwd=FOLDER,
            stdout=subprocess.PIPE, text=True, check=True).stdout
        _, _, found = " ".join(r.stdout.split()).partition(" warning: ")
        warning = " ".join(planned.partition("Warning\n")[2].split())
        self.assertTrue(warning.startswith("no-effect: the list has 3 waits"))
        self.assertTrue(found.startswith(warning + " policy of c: "), found)

    def test_says_what_is_unwise(self):
        self.look("unwise", 0, 20)
        for title, text in cases("unwise.txt"):
            with self.subTest(title):
                self.assertEqual(check(text, "--strict").returncode, 1)


TARGET = {"name": "a", "url": "http://127.0.0.1:1/"}


def receiver(kind, **more):
    return {"alerts": {"receivers": [{"name": "r", "type": kind, **more}]}}


HOOK = {"url": "http://127.0.0.1:1/"}
TLS_HOOK = {"url": "https://127.0.0.1:1/"}
KAFKA = {"source": "kafka", "kafka": {"brokers": ["127.0.0.1:1"],
                                      "topics": ["t"], "group": "g"}}

# Files and values that only the parts of a hub read: a start refuses them.
REFUSED = {
    "a receiver's URL that is none": receiver("slack", **{"url-file": "secret"}),
    "a receiver's URL of two lines": receiver("slack", **{"url-file": "lines"}),
    "a receiver's header of two lines": receiver(
        "webhook", **HOOK, headers={"X-A": {"file": "lines"}}),
    "a receiver's empty header": receiver(
        "webhook", **HOOK, headers={"X-A": {"file": "line"}}),
    "a receiver's key of two lines": receiver(
        "pagerduty", **{"key-file": "lines"}),
    "a mail's password of two lines": receiver(
        "mail", url="smtp://127.0.0.1:1", user="u", to=["a@b.example"],
        **{"from": "c@d.example", "password-file": "lines"}),
    "a receiver's ca that has none": receiver("webhook", **TLS_HOOK,
                                              ca="secret"),
    "a receiver's secret that is none": receiver(
        "webhook", **HOOK, sign={"scheme": "standard-webhooks",
                                 "secrets": ["whsec_?"]}),
    "a target's ca that breaks off": {"targets": [
        {**TARGET, "url": "https://127.0.0.1:1/", "tls": {"ca": "cut.pem"}}]},
    "an OAuth key that is none": {"targets": [
        {**TARGET, "oauth2": {"token-url": HOOK["url"], "client-id": "c",
                              "private-key": {"file": "secret"}}}]},
    "a ca of OAuth that breaks off": {"targets": [
        {**TARGET, "oauth2": {"token-url": TLS_HOOK["url"], "client-id": "c",
                              "client-secret": "hush-hush",
                              "ca": "cut.pem"}}]},
    "a ca of traces that has none": {"traces": {
        "endpoint": TLS_HOOK["url"], "ca": "secret"}},
    "a ca of clients that breaks off": {"listen": {
        "address": "127.0.0.1:0", "tls": {
            "certificate": "good.pem", "key": "good.key",
            "client-ca": "cut.pem"}}},
    "a chain that breaks off": {"listen": {
        "address": "127.0.0.1:0", "tls": {"certificate": "cut.pem",
                                          "key": "good.key"}}},
    "a copy of receipts where no file can be": {
        "receipts": {"copy": "file:directory"}},
    "a copy of receipts in no folder": {
        "receipts": {"copy": "file:none/receipts"}},
    "files of Kafka's options": {**KAFKA, "kafka": {**KAFKA["kafka"], "options": {
        "security.protocol": "ssl", "ssl.ca.location": "/none/ca"}}},
}


class Start(unittest.TestCase):
    """check refuses what a start refuses, since it prepares the same."""

    def start(self):
        return subprocess.run(
            [STAGGER, "hub", "-c", "hub.yaml", "--store", "start.db"],
            cwd=FOLDER, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            text=True, timeout=20, check=False)

    def test_is_refused_by_check_where_a_hub_refuses_it(self):
        put("cut.pem", (FOLDER / "good.pem").read_bytes() +
            b"-----BEGIN CERTIFICATE-----\nMIIB\n", 0o644)
        for title, more in REFUSED.items():
            with self.subTest(title):
                text = json.dumps({
                    "targets": [TARGET], "listen": {"address": "127.0.0.1:0"},
                    **more})
                checked = check(text.encode())
                self.assertEqual(checked.returncode, 2, checked.stdout)
                self.assertIn("hub.yaml:", checked.stdout)
                self.assertNotIn("hush", checked.stdout)
                try:
                    started = self.start()
                except subprocess.TimeoutExpired:
                    self.fail("it starts")
                self.assertEqual(started.returncode, 2, started.stdout)

    def test_writes_and_reaches_nothing(self):
        """The folder stays as it was, and nothing of it is in the way."""
        with (socket.create_server(("127.0.0.1", 0)) as server,
              socket.create_server(("127.0.0.1", 0)) as hub):
            port = server.getsockname()[1]
            before = sorted(os.listdir(FOLDER))
            checked = check(json.dumps({
                "targets": [{**TARGET, "oauth2": {
                    "token-url": f"http://127.0.0.1:{port}/",
                    "client-id": "c", "client-secret": "hush-hush"}}],
                "listen": {"address": f"127.0.0.1:{hub.getsockname()[1]}"},
                "store": {"path": "checked.db"}, "audit": "audit.log",
                "receipts": {"copy": "file:receipts"},
                "traces": {"endpoint": f"http://127.0.0.1:{port}/"},
                **receiver("webhook", url=f"http://127.0.0.1:{port}/"),
            }).encode())
            self.assertEqual(checked.returncode, 0, checked.stdout)
            self.assertEqual(sorted(os.listdir(FOLDER)),
                             sorted({*before, "hub.yaml"}))
            server.settimeout(0.1)
            with self.assertRaises(TimeoutError):
                server.accept()

    @unittest.skipUnless(os.geteuid() == 0, "only root is another user")
    def test_is_checked_as_the_user_of_the_hub(self):
        text = json.dumps({"targets": [TARGET], "listen": {
            "address": "127.0.0.1:0", "tls": {"certificate": "good.pem",
                                              "key": "good.key"}},
            **receiver("slack", **{"url-file": "slack"})}).encode()
        FOLDER.chmod(0o755)
        checked = check(text)
        self.assertEqual(checked.returncode, 0, checked.stdout)
        self.assertRegex(checked.stdout, r"(?m)^note +only root can read "
                                         r"\S*(good\.key|slack) and others: ")
        (FOLDER / "hub.yaml").chmod(0o644)
        checked = check(text, "--user", "nobody")
        self.assertEqual(checked.returncode, 2, checked.stdout)
        self.assertIn("good.key", checked.stdout)
        self.assertIn("slack cannot be read: Permission denied",
                      checked.stdout)
        checked = check(text, "--user", "no-such-user")
        self.assertEqual(checked.returncode, 2)
        self.assertIn("there is no such user", checked.stdout)

    def test_says_for_how_long_each_is_kept(self):
        for store, more, words in (
                ({}, {}, ", for 1d\n"),
                ({"retention": "3d"}, {}, ", for 3d\n"),
                ({"keep": "2d"}, {},
                 ": what waits for 1d, what is delivered for 2d\n"),
                ({"keep": "2d", "retention": "3d"}, {"receipts": {"keep": "7d"}},
                 ": what waits for 3d, what is delivered for 2d, receipts for "
                 "7d\n")):
            checked = check(json.dumps({"targets": [TARGET], "store": {
                "path": "kept.db", **store}, **more}).encode())
            self.assertEqual(checked.returncode, 0, checked.stdout)
            self.assertRegex(checked.stdout,
                             rf"keeps    kept\.db, up to \d+ MiB{words}")

    def test_warns_where_no_socket_can_be_made(self):
        checked = check(json.dumps({"targets": [TARGET], "listen": {
            "address": "unix:/none/hub.socket"}}).encode(), "--strict")
        self.assertEqual(checked.returncode, 1, checked.stdout)
        self.assertIn("no socket can be made in /none", checked.stdout)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        FOLDER = pathlib.Path(folder)
        make_folder()
        unittest.main()
