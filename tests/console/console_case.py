"""The console of a real hub in headless Chromium: what its tests share.

STAGGER_SHOTS is a folder that keeps the screenshots.
"""
import json
import os
import pathlib
import tempfile
import urllib.request

import browser
import case

SOURCE = pathlib.Path(os.environ["STAGGER_SOURCE"])
AXE = SOURCE / "build/tools/node_modules/axe-core/axe.min.js"
SHOTS = pathlib.Path(os.environ.get("STAGGER_SHOTS") or tempfile.mkdtemp())


class Console(case.Case):
    token = None  # of call()

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

    def find(self, page, label, where):
        """The script that finds a button or a link, when it is there."""
        found = (f"[...document.querySelectorAll('{where} :is(button, a)')].find((each) => "
                 f"(each.ariaLabel ?? each.textContent).startsWith({json.dumps(label)}))")
        page.wait(found)
        return found

    def press(self, page, label, where="main"):
        page.evaluate(self.find(page, label, where) + ".click()")

    def press_key(self, page, label, where="main"):
        """As somebody does who has no mouse."""
        page.evaluate(self.find(page, label, where) + ".focus()")
        page.key("Enter")

    def look(self, page, name, **rules):
        """It is kept as a picture, has said nothing wrong, and asked only the hub.
        rules: of axe-core, where not all are asked for."""
        page.screenshot(str(SHOTS / f"console-{name}.png"))
        self.assertEqual(page.complaints, [])
        own = page.url.split("#")[0]
        self.assertEqual([r for r in page.requests if not r.startswith((own, "data:"))], [])
        if AXE.exists():
            if page.evaluate("typeof axe") == "undefined":
                page.evaluate(AXE.read_text() + "; 0")
            found = page.evaluate(f"axe.run(document, {json.dumps(rules)}).then((run) => run.violations.map("
                                  "(it) => [it.id, it.impact, it.nodes[0].html]))")
            self.assertEqual([it for it in found if it[1] in ("serious", "critical")], [])
        elif os.environ.get("CI") == "true":
            self.fail("no axe-core: scripts/deps all")

    def said(self, page, words):
        page.wait(f"document.getElementById('said').textContent.includes({json.dumps(words)})")

    def listen(self, page):
        """From here on it is noted what a screen reader says of its own accord."""
        page.evaluate("window.heard = []; for (const each of document.querySelectorAll('[role=status], [role=alert], "
                      "[aria-live]')) new MutationObserver(() => each.textContent && heard.push(each.textContent))"
                      ".observe(each, {childList: true, characterData: true, subtree: true}); 0")

    def focused(self, page):
        return page.evaluate("document.activeElement.ariaLabel ?? document.activeElement.textContent")

    def texts(self, page, selector):
        return page.evaluate(f"[...document.querySelectorAll({json.dumps(selector)})].map((p) => p.textContent)")

    def call(self, hub, method, path, body=None):
        request = urllib.request.Request(
            f"http://127.0.0.1:{hub.port}/v1/targets{path}", method=method,
            data=None if body is None else json.dumps(body).encode(),
            headers={"Content-Type": "application/json",
                     **({"Authorization": f"Bearer {self.token}"} if self.token else {})})
        with urllib.request.urlopen(request) as answer:
            return json.load(answer)
