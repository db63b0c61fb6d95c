"""stagger check: what it says of settings files that are bad, or unwise.

bad.txt and unwise.txt have the files, `=== NAME` before each; $targets is a
target, $many are sixty, $lots 500, and \\xNN is a byte. bad.golden and unwise.golden have
what is said of each, without the file's name. STAGGER_GOLDEN=write writes them
anew, for a person to read.
"""
import datetime
import os
import pathlib
import re
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


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        FOLDER = pathlib.Path(folder)
        make_folder()
        unittest.main()
