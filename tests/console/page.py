#!/usr/bin/env python3
"""The console of a real hub, in headless Chromium, as people use it.

usage: page.py [TEST...]

STAGGER_SHOTS is a folder that keeps the screenshots.
"""
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest
import urllib.error
import urllib.request

SOURCE = pathlib.Path(os.environ["STAGGER_SOURCE"])
sys.path[:0] = [str(SOURCE / "tests/hub"), str(SOURCE / "tests/sim")]

import browser
import case
import leaf

AXE = SOURCE / "build/tools/node_modules/axe-core/axe.min.js"
SHOTS = pathlib.Path(os.environ.get("STAGGER_SHOTS") or tempfile.mkdtemp())
# What must be read as text wherever it comes from.
NAUGHTY = ['<img src=x onerror="document.title=\'owned\'">', "</pre><script>document.title='owned'</script>",
           "javascript:alert(1)", "\u202egnp\u0000\x1b[31m", "{{7*7}}", "' or 1=1 --"]


class Console(case.Case):
    @classmethod
    def setUpClass(cls):
        cls.chromium = browser.Browser()
        SHOTS.mkdir(parents=True, exist_ok=True)

    @classmethod
    def tearDownClass(cls):
        cls.chromium.close()

    def begin(self, *more):
        """A hub with a target that works and one that refuses what it gets."""
        self.answer = 404
        well = self.leaf()
        ill = self.leaf(lambda r: self.answer)
        hub = self.hub("--to", f"well={well.url()}", "--to", f"ill={ill.url()}", *more)
        return hub, well, ill

    def open(self, hub, view="", **more):
        page = self.chromium.open(f"http://127.0.0.1:{hub.port}/#/{view}", **more)
        self.addCleanup(page.close)
        return page

    def count_buttons(self, page, label):
        return page.evaluate("[...document.querySelectorAll('main button')].filter("
                             f"(b) => b.textContent.startsWith({json.dumps(label)})).length")

    def press(self, page, label, where="main"):
        page.wait(f"[...document.querySelectorAll('{where} button')].some("
                  f"(b) => b.textContent.startsWith({json.dumps(label)}))")
        page.evaluate(f"[...document.querySelectorAll('{where} button')].find("
                      f"(b) => b.textContent.startsWith({json.dumps(label)})).click()")

    def look(self, page, name):
        """It is kept as a picture, has said nothing wrong, and asked only the hub."""
        page.screenshot(str(SHOTS / f"console-{name}.png"))
        self.assertEqual(page.complaints, [])
        own = page.url.split("#")[0]
        self.assertEqual([r for r in page.requests if not r.startswith((own, "data:"))], [])
        if AXE.exists():
            page.evaluate(AXE.read_text() + "; 0")
            found = page.evaluate("axe.run().then((run) => run.violations.map("
                                  "(it) => [it.id, it.impact, it.nodes[0].html]))")
            self.assertEqual([it for it in found if it[1] in ("serious", "critical")], [])
        elif os.environ.get("CI") == "true":
            self.fail("no axe-core: scripts/deps all")

    def test_a_failing_target_is_found_and_its_letters_are_replayed(self):
        hub, well, ill = self.begin()
        producer = self.kept(hub.producer())
        for i in range(3):
            producer.post(b'{"n": %d}' % i)
        well.wait(3)
        page = self.open(hub)
        page.wait("document.querySelectorAll('tbody tr').length === 2 && "
                  "document.querySelector('main a[href*=dead-letters]')?.textContent === '3'")
        self.assertEqual(page.evaluate("document.querySelector('tbody a').textContent"), "ill")
        self.assertIn("HTTP_404", page.evaluate("document.querySelector('tbody tr').textContent"))
        self.assertIn("balance", page.evaluate("document.querySelector('.facts').textContent"))
        self.look(page, "overview")

        page.evaluate("document.querySelector('main a[href*=dead-letters]').click()")
        page.wait("document.querySelectorAll('tbody tr').length === 3")
        self.look(page, "letters")
        self.answer = 200
        self.press(page, "Replay")
        page.wait("document.querySelector('dialog[open]')")
        self.assertIn("3 dead letters, 3 messages", page.evaluate(
            "document.querySelector('dialog').textContent"))
        self.look(page, "confirm")
        self.press(page, "Replay", "dialog")
        page.wait("document.getElementById('said').textContent.includes('is done')")
        ill.wait(6)
        page.wait("document.querySelector('main').textContent.includes('There are none')")

    def test_a_target_is_paused_and_resumed(self):
        hub, _, _ = self.begin()
        page = self.open(hub, "targets/well", width=390, dark=True)
        self.press(page, "Pause")
        page.wait("document.querySelector('.state')?.textContent === 'paused'")
        self.look(page, "target-phone-dark")
        self.press(page, "Resume")
        page.wait("document.querySelector('.state')?.textContent === 'live'")

    def test_a_message_is_found_by_its_id(self):
        hub, well, _ = self.begin()
        id = self.kept(hub.producer()).post(b"hello")
        well.wait(1)
        page = self.open(hub)
        page.wait("document.querySelector('tbody tr')")
        page.evaluate(f"document.getElementById('find-id').value = {json.dumps(id)};"
                      "document.getElementById('find').requestSubmit()")
        page.wait("document.querySelector('h1')?.textContent.startsWith('Message')"
                  " && document.querySelectorAll('tbody tr').length === 2")
        page.wait("document.querySelector('tbody')?.textContent.includes('dead')"
                  " || (location.reload(), false)")
        self.look(page, "message")

    def test_whatever_comes_from_outside_is_text(self):
        said = NAUGHTY[0].encode()
        ill = self.leaf(lambda r: (404, (), said))
        hub = self.hub("--to", f"ill={ill.url()}")
        producer = self.kept(hub.producer())
        for words in NAUGHTY:
            producer.post(words.encode())
        producer.post(b"\xff\xfe\x00 no text")
        ill.wait(len(NAUGHTY) + 1)
        for i, words in enumerate(NAUGHTY + ["ff fe 00"]):
            page = self.open(hub, f"dead-letters/{i + 1}")
            with self.subTest(words=words):
                page.wait("document.querySelector('main pre')")
                self.assertIn(words.split("\0")[0], page.evaluate(
                    "[...document.querySelectorAll('main pre')].map((p) => p.textContent).join('|')"))
                self.assertEqual(page.evaluate("document.querySelectorAll('main img, main script').length"), 0)
                self.assertNotEqual(page.evaluate("document.title"), "owned")
                self.assertEqual(page.complaints, [])
        self.look(page, "letter-hex")

    def test_the_token_decides_what_there_is_to_press(self):
        tokens = os.path.join(self.folder, "tokens")
        words = {}
        for role in "view", "operate":
            words[role] = subprocess.run(
                [leaf.STAGGER, "token", "new", tokens, "--role", role, "--name", role],
                check=True, capture_output=True, text=True).stdout.strip()
        hub, _, _ = self.begin("--token-file", tokens)
        page = self.open(hub, "targets/well")
        page.wait("document.getElementById('token')")
        page.screenshot(str(SHOTS / "console-sign-in.png"))

        def sign_in(token):
            page.wait("document.getElementById('token')")
            page.evaluate(f"document.getElementById('token').value = {json.dumps(token)};"
                          "document.querySelector('main form').requestSubmit()")

        sign_in("not-a-token-of-this-hub")
        page.wait("document.querySelector('.trouble')?.textContent.includes('not one of the tokens')")
        sign_in(words["view"])
        page.wait("document.querySelector('.pairs')")
        self.assertEqual(self.count_buttons(page, "Pause"), 0)
        self.assertIn("view", page.evaluate("document.getElementById('whoami').textContent"))
        self.press(page, "Sign out", "#whoami")
        sign_in(words["operate"])
        page.wait("document.querySelector('.pairs')")
        self.assertEqual(self.count_buttons(page, "Pause"), 1)

    def test_says_what_it_may_load(self):
        hub, _, _ = self.begin()
        with urllib.request.urlopen(f"http://127.0.0.1:{hub.port}/") as answer:
            policy = answer.headers["Content-Security-Policy"]
            self.assertEqual(answer.headers["Content-Type"], "text/html; charset=utf-8")
        self.assertIn("default-src 'none'", policy)
        self.assertIn("frame-ancestors 'none'", policy)
        self.assertNotIn("unsafe", policy)
        with self.assertRaises(urllib.error.HTTPError) as refused:
            urllib.request.urlopen(f"http://127.0.0.1:{hub.port}/console/../hub.db")
        self.assertEqual(refused.exception.code, 404)
        refused.exception.close()


if __name__ == "__main__":
    browser.skip_without()
    unittest.main(verbosity=2)
