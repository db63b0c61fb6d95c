#!/usr/bin/env python3
"""stagger secret, as its users see it, and a sink that verifies with what it
made."""
import base64
import hmac
import http.client
import json
import os
import stat
import subprocess
import tempfile
import time
import unittest

STAGGER = os.environ["STAGGER"]


def run(*arguments):
    return subprocess.run([STAGGER, *map(str, arguments)], capture_output=True,
                          text=True, timeout=60)


def made(*arguments):
    ended = run("secret", "new", *arguments)
    assert (ended.returncode, ended.stderr) == (0, ""), ended
    return ended.stdout.splitlines()


class Secrets(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = os.path.join(folder.name, "secret")

    def put(self, text, mode=0o600):
        with open(self.path, "w") as file:
            file.write(text)
        os.chmod(self.path, mode)
        return self.path

    def test_prints_a_new_one_each_time(self):
        [one], [two] = made(), made("--scheme", "stripe")
        self.assertNotEqual(one, two)
        for secret in one, two:
            self.assertTrue(secret.startswith("whsec_"))
            self.assertEqual(len(base64.b64decode(secret[6:])), 32)
        for scheme in "github", "custom", "rfc9421":
            [text] = made("--scheme", scheme)
            self.assertRegex(text, "^[0-9a-f]{64}$")

    def test_prints_a_pair(self):
        private, public = made("--ed25519")
        self.assertTrue(private.startswith("whsk_"))
        self.assertTrue(public.startswith("whpk_"))
        self.assertEqual(base64.b64decode(private[5:])[32:],
                         base64.b64decode(public[5:]))

    def test_a_file_gets_the_hubs_part(self):
        [public] = made("--ed25519", self.path)
        with open(self.path) as file:
            [private] = file.read().splitlines()
        self.assertTrue(private.startswith("whsk_"))
        self.assertTrue(public.startswith("whpk_"))
        self.assertEqual(stat.S_IMODE(os.stat(self.path).st_mode), 0o600)
        again = run("secret", "new", self.path)
        self.assertEqual((again.returncode, again.stdout), (1, ""))
        self.assertIn("it is there already", again.stderr)
        with open(self.path) as file:
            self.assertEqual(file.read(), private + "\n")

    def test_a_file_and_the_receiver_have_the_same_secret(self):
        [secret] = made(self.path)
        with open(self.path) as file:
            self.assertEqual(file.read(), secret + "\n")

    def test_refuses_what_is_no_scheme(self):
        for words, said in ((("--scheme", "gitub"), "did you mean github?"),
                            (("--scheme", "github", "--ed25519"),
                             "is of the schemes standard-webhooks and rfc9421")):
            ended = run("secret", "new", *words)
            self.assertEqual((ended.returncode, ended.stdout), (2, ""))
            self.assertIn(said, ended.stderr)

    # -- a sink

    def sink(self, *arguments):
        sink = subprocess.Popen(
            [STAGGER, "sink", "--listen", "0", *arguments],
            stdout=subprocess.PIPE, text=True)
        self.addCleanup(sink.wait)
        self.addCleanup(sink.stdout.close)
        self.addCleanup(sink.terminate)
        self.port = int(sink.stdout.readline().rsplit(":", 1)[1])
        return sink

    def post(self, body, **headers):
        connection = http.client.HTTPConnection("127.0.0.1", self.port,
                                                timeout=60)
        connection.request("POST", "/", body, {
            name.replace("_", "-"): value for name, value in headers.items()})
        answer = connection.getresponse()
        text = answer.read()
        connection.close()
        return answer.status, json.loads(text)["detail"] if text else ""

    def signed(self, secret, body, at=None):
        at = str(int(time.time() if at is None else at))
        digest = hmac.new(base64.b64decode(secret[6:]),
                          b"7." + at.encode() + b"." + body, "sha256").digest()
        return {"Webhook_Id": "7", "Webhook_Timestamp": at,
                "Webhook_Signature":
                    "v1,AAAA v1," + base64.b64encode(digest).decode()}

    def test_a_sink_verifies(self):
        [secret], [other] = made(self.path), made()
        self.sink("--verify", self.path, "--reply", "503,200")
        body = os.urandom(1 << 20)
        good = self.signed(secret, body)
        now = time.time()
        self.assertEqual(self.post(body), (401, "it is not signed: neither "
                         "Webhook-Signature nor X-Hub-Signature-256 nor "
                         "Stripe-Signature nor Signature is there"))
        for sent, headers, why in (
                (body[:-1], good, "no signature in Webhook-Signature is right"),
                (body, self.signed(other, body), "another secret"),
                (body, self.signed(secret, body, now - 400), "s old"),
                (body, self.signed(secret, body, now + 400), "s ahead"),
                (body, {**good, "Webhook_Id": "8"}, "no signature in ")):
            status, detail = self.post(sent, **headers)
            self.assertEqual(status, 401)
            self.assertIn(why, detail)
        # What was refused was no attempt.
        self.assertEqual(self.post(body, **good, Stagger_Message="7"),
                         (503, ""))
        self.assertEqual(self.post(body, **good, Stagger_Message="7"),
                         (200, ""))

    def test_any_of_several_secrets_will_do(self):
        [one], [two] = made(), made()
        self.sink("--verify", one, "--verify", two)
        for secret in one, two:
            self.assertEqual(self.post(b"", **self.signed(secret, b""))[0], 200)

    def test_a_text_from_a_file(self):
        path = self.put("It's a Secret to Everybody\n")
        self.sink("--verify", path)
        self.assertEqual(self.post(b"Hello, World!", X_Hub_Signature_256=(
            "sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b"
            "043e17"))[0], 200)

    def test_a_sink_refuses_what_is_no_secret(self):
        self.put("It's a Secret to Everybody\n", 0o644)
        for secret, said in (("whsec_AAAA", "--verify: the secret has 3 bytes"),
                             ("whsk_AAAA", "--verify: a key of Ed25519 has"),
                             (self.path, "chmod 600"),
                             (self.path + ".old", "No such file")):
            ended = run("sink", "--listen", "0", "--verify", secret)
            self.assertEqual((ended.returncode, ended.stdout), (2, ""))
            self.assertIn(said, ended.stderr)
            self.assertNotIn("AAAA", ended.stderr)


if __name__ == "__main__":
    unittest.main()
