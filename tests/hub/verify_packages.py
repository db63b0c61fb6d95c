#!/usr/bin/env python3
"""What a hub signs is verified by the packages that receivers have: those of
Standard Webhooks, Stripe and GitHub, from PyPI and npm; and what these sign is
taken as an inbound webhook. They are fetched into build/tools/verify once, with
the server of oauth_packages.py.

Each reads a body as text in UTF-8; tests/hub/verify.py has the other bodies."""
import base64
import json
import pathlib
import subprocess
import sys

import case
import verify
from verify import PUBLIC, SECRETS, SOURCE, TEXTS

HERE = pathlib.Path(__file__).parent
TOOLS = SOURCE / "build/tools/verify"
PYPI = ["standardwebhooks==1.1.0", "stripe==16.1.0", "cryptography==50.0.2",
        "cloudevents==2.2.0", "http-message-signatures==3.0.0"]
NPM = ["standardwebhooks@1.1.1", "stripe@23.1.0",
       "@octokit/webhooks-methods@6.0.0", "cloudevents@10.0.0",
       "oidc-provider@9.13.3"]
FETCH = 600  # seconds


def fetched():
    """The python that has the packages, beside those of node."""
    python = TOOLS / "venv/bin/python"
    done = TOOLS / "done"
    if done.exists() and done.read_text() == " ".join(PYPI + NPM):
        return python
    TOOLS.mkdir(parents=True, exist_ok=True)
    for command in (
            [sys.executable, "-m", "venv", "--clear", "--without-pip",
             TOOLS / "venv"],
            [sys.executable, "-m", "pip", "--python", python, "install",
             "--quiet", "--disable-pip-version-check", *PYPI],
            ["npm", "install", "--silent", "--no-audit", "--no-fund",
             "--prefix", TOOLS, *NPM]):
        subprocess.run(command, check=True, timeout=FETCH)
    done.write_text(" ".join(PYPI + NPM))
    return python


class Packages(verify.Receivers):
    def by_python(self, scheme, checks):
        self.judge(checks, PYTHON, HERE / "verify_packages_judge.py", scheme)

    def by_node(self, scheme, checks):
        self.judge(checks, "node", HERE / "verify_packages_judge.mjs", TOOLS,
                   scheme)

    def test_standard_webhooks(self):
        checks = list(self.checks("standard-webhooks", TEXTS))
        self.by_python("standard-webhooks", checks)
        self.by_node("standard-webhooks", checks)

    def test_stripe(self):
        """That of npm refuses an empty body unseen."""
        checks = list(self.checks("stripe", TEXTS))
        self.by_python("stripe", checks)
        self.by_node("stripe", [c for c in checks if c[2]])

    def test_github(self):
        """octokit does so, too, and GitHub has no package for Python."""
        self.by_node("github", [c for c in self.checks("github", TEXTS)
                                if c[2]])

    def test_messages_of_rfc_9421(self):
        word = "a secret of 24 characters"
        keys = {"word": (word, word)}
        for kind, words in (("ed", ["-algorithm", "ed25519"]),
                            ("ec", ["-algorithm", "EC", "-pkeyopt",
                                    "ec_paramgen_curve:P-256"]),
                            ("rsa", ["-algorithm", "RSA"]),
                            ("rsa-old", ["-algorithm", "RSA"])):
            private = subprocess.run(
                ["openssl", "genpkey", *words], check=True, text=True,
                capture_output=True).stdout
            keys[kind] = (private, subprocess.run(
                ["openssl", "pkey", "-pubout"], input=private, check=True,
                text=True, capture_output=True).stdout)
        leaves = {kind: self.leaf() for kind in keys}
        path = pathlib.Path(self.folder, "hub.yaml")
        path.write_text(json.dumps({
            "listen": {"address": "127.0.0.1:0"},
            "store": {"path": self.store},
            "targets": [{
                "name": kind, "url": leaves[kind].url("/a%20b?c=d&e"),
                "sign": {"scheme": "rfc9421", "key-id": kind,
                         "secrets": [keys[kind][0].strip()],
                         **({"algorithm": "rsa-v1_5-sha256"}
                            if kind == "rsa-old" else {})}}
                for kind in keys]}))
        hub = self.hub(settings=str(path))
        bodies = TEXTS + verify.BYTES
        for i, body in enumerate(bodies):
            hub.post(body, **({"Content-Type": "text/plain"} if i % 2 else {}))
        asked, expected = [], []
        for kind, leaf in leaves.items():
            for r in leaf.wait(len(bodies)):
                headers = {name.title(): values[0]
                           for name, values in r.headers.items()}
                for url, is_right in ((leaf.url("/a%20b?c=d&e"), True),
                                      (leaf.url("/a%20b?c=d"), False)):
                    asked.append({
                        "kind": kind, "key": keys[kind][1].strip(),
                        "method": "POST", "url": url, "headers": headers,
                        "body": base64.b64encode(r.body).decode()})
                    expected.append(is_right)
        self.assertEqual(hub.stop(), 0)
        told = subprocess.run(
            [PYTHON, HERE / "verify_packages_message.py"], text=True,
            capture_output=True, timeout=case.PATIENCE,
            input="".join(json.dumps(each) + "\n" for each in asked))
        self.assertEqual(told.returncode, 0, told.stderr)
        self.assertEqual([json.loads(line)
                          for line in told.stdout.splitlines()], expected)

    def test_what_they_sign_comes_in(self):
        """octokit and that of Stripe sign no empty body."""
        bodies = [text.decode() for text in TEXTS if text]
        given = [{"scheme": scheme, "secret": SECRETS[i % 2],
                  "id": f"{scheme}-{i}-{k}", "body": body}
                 for scheme in verify.SCHEMES
                 for i in range(2) for k, body in enumerate(bodies)]
        told = subprocess.run(
            ["node", HERE / "verify_packages_sign.mjs", TOOLS], text=True,
            capture_output=True, timeout=case.PATIENCE,
            input="".join(json.dumps(each) + "\n" for each in given))
        self.assertEqual(told.returncode, 0, told.stderr)
        leaf = self.leaf()
        path = pathlib.Path(self.folder, "hub.yaml")
        path.write_text(json.dumps({
            "listen": {"address": "127.0.0.1:0"},
            "store": {"path": self.store},
            "inbound": [{"name": scheme, "scheme": scheme, "secrets": SECRETS}
                        for scheme in verify.SCHEMES],
            "targets": [{"name": "a", "url": leaf.url()}]}))
        hub = self.hub(settings=str(path))
        for each, line in zip(given, told.stdout.splitlines()):
            call = "/v1/in/" + each["scheme"], json.loads(line)
            hub.post(each["body"].encode(), call[0], **call[1])
            with self.assertRaises(case.Refused) as refused:
                hub.post(each["body"].encode() + b" ", call[0], **call[1])
            self.assertEqual(refused.exception.status, 401)
        self.assertCountEqual([r.body.decode() for r in leaf.wait(len(given))],
                              [each["body"] for each in given])
        self.assertEqual(hub.stop(), 0)

    def test_ed25519_as_it_is_documented(self):
        for headers, body in self.requests("standard-webhooks",
                                           TEXTS + verify.BYTES):
            _, _, signature = headers["webhook-signature"].split(" ")
            signed = (f'{headers["webhook-id"]}.'
                      f'{headers["webhook-timestamp"]}.').encode() + body
            code = ("import base64\npublic, signature, signed = "
                    f"{PUBLIC!r}, {signature!r}, base64.b64decode(input())\n"
                    + verify.example("Ed25519"))
            for text, code_of in ((signed, 0), (signed + b"x", 1)):
                told = subprocess.run([PYTHON, "-c", code], text=True,
                                      capture_output=True,
                                      input=base64.b64encode(text).decode())
                self.assertEqual(told.returncode, code_of, told.stderr)
                self.assertEqual("InvalidSignature" in told.stderr,
                                 bool(code_of), told.stderr)


if __name__ == "__main__":
    PYTHON = fetched()
    case.main()
