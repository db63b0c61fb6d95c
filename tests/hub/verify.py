#!/usr/bin/env python3
"""The receivers of docs/verify.md take what a hub signs, and nothing else: each
of its languages that this machine has."""
import base64
import json
import os
import pathlib
import re
import shutil
import subprocess

import case

SOURCE = pathlib.Path(__file__).resolve().parents[2]
SECRETS = ["whsec_" + base64.b64encode(bytes([n]) * 32).decode()
           for n in (1, 2)]
OTHER = "whsec_" + base64.b64encode(bytes([3]) * 32).decode()
# Svix's example of a pair.
PRIVATE = ("whsk_6Xb/dCcHpPea21PS1N9VY/NZW723CEc77N4rJCubMbfVKIDij2HKpMKkioLlX0"
           "dRqSKJp4AJ6p9lMicMFs6Kvg==")
PUBLIC = "whpk_1SiA4o9hyqTCpIqC5V9HUakiiaeACeqfZTInDBbOir4="
# By scheme: secrets to sign with, and those that verify each by itself.
SCHEMES = {"standard-webhooks": ([*SECRETS, PRIVATE], SECRETS),
           "stripe": (SECRETS, SECRETS),
           "github": (SECRETS[:1], SECRETS[:1])}
HEADERS = re.compile("webhook-|x-hub-signature-256|stripe-signature")
TEXTS = [b"", b"{}", '{"name": "Grüße, 世界 \U0001f600"}'.encode(),
         json.dumps({"text": "x" * (1 << 20)}).encode()]
BYTES = [b"\0", b"\xff\xfe\r\n\r\n", os.urandom(10_000)]


class Receivers(case.Case):
    def requests(self, scheme, bodies):
        """What a hub sends of these bodies: headers and body each."""
        leaf = self.leaf()
        path = os.path.join(self.folder, "hub.yaml")
        with open(path, "w", opener=lambda p, f: os.open(p, f, 0o600)) as file:
            json.dump({"listen": {"address": "127.0.0.1:0"},
                       "store": {"path": self.store},
                       "targets": [{"name": "a", "url": leaf.url(), "sign": {
                           "scheme": scheme,
                           "secrets": SCHEMES[scheme][0]}}]}, file)
        hub = self.hub(settings=path)
        for body in bodies:
            hub.post(body)
        leaf.wait(len(bodies))
        self.assertEqual(hub.stop(), 0)
        for receipt in leaf.receipts:
            yield ({name: values[0] for name, values in receipt.headers.items()
                    if HEADERS.match(name)}, receipt.body)

    def checks(self, scheme, bodies):
        """(secret, headers, body, whether it holds) for receivers to judge."""
        for headers, body in self.requests(scheme, bodies):
            for secret in SCHEMES[scheme][1]:
                yield secret, headers, body, True
                changed = [body + b"x"]
                if body:
                    middle = len(body) // 2
                    changed += [body[:-1], body[:middle] + bytes(
                        [body[middle] ^ 1]) + body[middle + 1:]]
                for other in changed:
                    yield secret, headers, other, False
            yield OTHER, headers, body, False
            if "webhook-id" in headers:
                late = str(int(headers["webhook-timestamp"]) - 1)
                for name, value in (("webhook-id", "x"),
                                    ("webhook-timestamp", late),
                                    ("webhook-timestamp", ""),
                                    ("webhook-signature", "v1,AAAA")):
                    yield (SECRETS[0], {**headers, name: value}, body, False)

    def judge(self, checks, *command, **more):
        """Compares with what the command says of each: a line of JSON, true or
        false, for a line of JSON."""
        checks = list(checks)
        told = subprocess.run(
            command, text=True, capture_output=True, timeout=case.PATIENCE,
            input="".join(json.dumps({
                "secret": secret, "headers": headers,
                "body": base64.b64encode(body).decode()}) + "\n"
                for secret, headers, body, _ in checks), **more)
        self.assertEqual(told.returncode, 0, told.stderr)
        verdicts = [json.loads(line) for line in told.stdout.splitlines()]
        self.assertEqual(len(verdicts), len(checks), told.stderr)
        for verdict, (secret, headers, body, is_right) in zip(verdicts, checks):
            self.assertEqual(verdict, is_right, (secret, headers, body[:40]))
        self.assertIn(True, verdicts)
        self.assertIn(False, verdicts)


PYTHON = """
import json, sys
for line in sys.stdin:
    c = json.loads(line)
    print(json.dumps(verify(c["secret"], c["headers"],
                            base64.b64decode(c["body"]))))
"""
NODE = """
import {createInterface} from "node:readline";
for await (const line of createInterface({input: process.stdin})) {
  const c = JSON.parse(line);
  console.log(verify(c.secret, c.headers, Buffer.from(c.body, "base64")));
}
"""
GO = """package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
)

func main() {
	for in := bufio.NewReader(os.Stdin); ; {
		var c struct {
			Secret  string
			Headers map[string]string
			Body    []byte
		}
		line, err := in.ReadBytes('\\n')
		if err != nil {
			return
		}
		if err := json.Unmarshal(line, &c); err != nil {
			panic(err)
		}
		h := http.Header{}
		for name, value := range c.Headers {
			h.Set(name, value)
		}
		fmt.Println(Verify(c.Secret, h, c.Body))
	}
}
"""
C = r"""
int main(int argc, char **argv)
{
    static char body[4 << 20];
    unsigned char key[64];
    size_t size = fread(body, 1, sizeof body, stdin);
    int key_size = EVP_DecodeBlock(key, (unsigned char *)argv[1],
                                   (int)strlen(argv[1])) - 1; // for its =

    (void)argc;
    puts(verify(key, (size_t)key_size, argv[2], argv[3], argv[4], body, size)
         ? "true" : "false");
}
"""


def example(language):
    """The block of docs/verify.md below this heading."""
    text = (SOURCE / "docs/verify.md").read_text()
    section = text.split(f"\n### {language}\n")[1].split("\n### ")[0]
    return re.search(r"^```\n(.*?)^```$", section, re.M | re.S)[1]


class Documented(Receivers):
    def write(self, name, text):
        path = os.path.join(self.folder, name)
        with open(path, "w") as file:
            file.write(text)
        return path

    def want(self, *tools):
        for tool in tools:
            if not shutil.which(tool):
                self.skipTest(f"no {tool}")

    def all_checks(self):
        return self.checks("standard-webhooks", TEXTS + BYTES)

    def test_in_python(self):
        path = self.write("verify.py", example("Python") + PYTHON)
        self.judge(self.all_checks(), "python3", path)

    def test_in_node(self):
        self.want("node")
        path = self.write("verify.mjs", example("Node.js") + NODE)
        self.judge(self.all_checks(), "node", path)

    def test_in_go(self):
        self.want("go")
        self.write("go.mod", "module receiver\n")
        self.write("verify.go", example("Go").replace("package receiver",
                                                      "package main", 1))
        self.write("main.go", GO)
        built = subprocess.run(["go", "build", "-o", "verify", "."],
                               cwd=self.folder, capture_output=True, text=True)
        self.assertEqual(built.returncode, 0, built.stderr)
        self.judge(self.all_checks(), os.path.join(self.folder, "verify"))

    def test_in_c(self):
        self.want("cc")
        path = self.write("verify.c", example("C") + C)
        binary = os.path.join(self.folder, "verify")
        built = subprocess.run(["cc", "-Wall", "-Wextra", "-Werror", "-o",
                                binary, path, "-lcrypto"],
                               capture_output=True, text=True)
        self.assertEqual(built.returncode, 0, built.stderr)
        for secret, headers, body, is_right in self.all_checks():
            told = subprocess.run(
                [binary, secret[6:], headers["webhook-id"],
                 headers["webhook-timestamp"], headers["webhook-signature"]],
                input=body, capture_output=True, timeout=case.PATIENCE)
            self.assertEqual(told.stdout, b"true\n" if is_right else b"false\n",
                             (secret, headers, body[:40]))


if __name__ == "__main__":
    case.main()
