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
import threading
import unittest
import urllib.error
import urllib.request

SOURCE = pathlib.Path(os.environ["STAGGER_SOURCE"])
sys.path[:0] = [str(SOURCE / "tests/hub"), str(SOURCE / "tests/sim"), str(SOURCE / "tests/console")]

import browser
import case
import console_case
import leaf

# What must be read as text wherever it comes from: each way into markup, a script,
# a style, an address or a terminal, in each of some wrappings.
CORES = ['<img src=x onerror="document.title=\'owned\'">', "<script>document.title='owned'</script>",
         "<svg onload=document.title='owned'>", "<svg><script>document.title='owned'</script></svg>",
         "<iframe srcdoc=\"<script>parent.document.title='owned'</script>\"></iframe>",
         "<body onload=document.title='owned'>", "<details open ontoggle=document.title='owned'>x</details>",
         "<a href=javascript:document.title='owned'>x</a>", "<style>*{display:none}</style>",
         "<base href=//evil.example/>", "<meta http-equiv=refresh content=0;url=//evil.example/>",
         "<form action=//evil.example/><button>x</button></form>", "<math><mi xlink:href=javascript:alert(1)>x",
         "<template><img src=x onerror=document.title='owned'></template>", "<input autofocus onfocus=alert(1)>",
         "javascript:alert(1)", "{{7*7}}", "${document.title='owned'}", "' or 1=1 --", "%3Cscript%3E",
         "&lt;script&gt;", "\\u003cscript\\u003e", "__proto__", "constructor", "\u202egnp.exe",
         "a\u0300\u0301\u0302\u0303\u0304", "\U0001f469\u200d\U0001f4bb", "\ufeffbom", "\u2028line\u2029", "A" * 200]
NAUGHTY = [before + core + after for core in CORES for before, after in
           (("", ""), ('">', "<!--"), ("</pre></code></td>", ""), ("]]>", "\x1b[31m"))]


class Page(console_case.Console):
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
        asked = page.evaluate("document.querySelector('dialog').textContent")
        self.assertIn("3 dead letters, 3 messages. The oldest: no. 1 (ill, HTTP_404), no. 2", asked)
        self.look(page, "confirm")
        self.press(page, "Replay", "dialog")
        self.said(page, "Replay 1: 3 dead letters, 3 messages; all that could be sent are delivered.")
        ill.wait(6)
        page.wait("document.querySelector('main').textContent.includes('There are none')")

    def test_a_replay_to_a_paused_target_says_so(self):
        hub, well, _ = self.begin()
        hub.post(b"x")
        self.await_settled(2)
        self.call(hub, "POST", "/ill/pause")
        page = self.open(hub, "dead-letters")
        self.press(page, "Replay")
        page.wait("document.querySelector('dialog[open]')")
        self.assertIn("1 dead letter, 1 message; 1 message waits until the target is resumed: it is paused",
                      page.evaluate("document.querySelector('dialog').textContent"))
        self.look(page, "confirm-paused")

    def test_a_forget_says_what_is_lost(self):
        ill = self.leaf(lambda r: 404 if r.body == b"bad" else 503)
        first = self.hub("--to", f"ill={ill.url()}", "--policy", "attempts=9 base=30s jitter=none")
        first.post(b"bad")
        for _ in range(2):
            first.post(b"x")
        case.wait_for(lambda: len(self.rows("SELECT * FROM parked")) == 2, "two parked")
        self.assertEqual(first.stop(), 0)
        hub = self.hub("--to", f"other={self.leaf().url()}")
        page = self.open(hub, "targets/ill")
        self.press(page, "Forget")
        page.wait("document.querySelector('dialog[open]')")
        self.assertIn("2 messages wait for it: they are cancelled. Its 1 dead letter cannot be sent again.",
                      page.evaluate("document.querySelector('dialog').textContent"))
        self.look(page, "confirm-forget")
        self.press(page, "Forget", "dialog")
        page.wait("location.hash === '#/'")
        self.assertEqual(self.rows("SELECT state, count(*) AS n FROM failed_broadcast_logs GROUP BY 1 ORDER BY 1"),
                         [{"state": "cancelled", "n": 2}, {"state": "dead", "n": 1}])

    def test_a_target_is_paused_and_resumed(self):
        hub, _, _ = self.begin()
        page = self.open(hub, "targets/well", width=390, dark=True)
        self.press(page, "Pause")
        page.wait("document.querySelector('.state')?.textContent === 'paused'")
        self.look(page, "target-phone-dark")
        self.press(page, "Resume")
        page.wait("document.querySelector('.state')?.textContent === 'live'")

    def test_an_open_circuit_is_probed(self):
        self.answer = 503
        ill = self.leaf(lambda r: self.answer)
        hub = self.hub("--to", f"ill={ill.url()}", "--policy", "base=10m jitter=none breaker=3:1h-1h")
        producer = self.kept(hub.producer())
        for _ in range(3):
            producer.post(b"x")
        page = self.open(hub, "targets/ill", dark=True)
        page.wait("document.querySelector('.state')?.textContent === 'circuit-open'")
        self.assertIn("Its circuit is open for", page.evaluate("document.querySelector('main .trouble').textContent"))
        self.look(page, "target-open-dark")
        self.answer = 200
        producer.post(b"x")  # the others are dead: their next attempt is past the deadline
        page.wait("[...document.querySelectorAll('.facts div')].some((d) => d.textContent === 'Backlog1')")
        self.press(page, "Probe now")
        page.wait("document.getElementById('said').textContent.includes('the next message that is due')")
        page.wait("document.querySelector('.state')?.textContent === 'live'")
        self.assertEqual(self.count_buttons(page, "Probe"), 0)

    def test_a_probe_that_has_no_message_is_refused(self):
        ill = self.leaf(lambda r: 503)
        hub = self.hub("--to", f"ill={ill.url()}", "--policy", "attempts=1 breaker=3:1h-1h")
        for _ in range(3):
            hub.post(b"x")
        self.await_settled(1)
        page = self.open(hub, "targets/ill")
        self.press(page, "Probe now")
        page.wait("document.getElementById('said').textContent.includes('no message waits for it')")
        self.assertIn("409", page.complaints.pop())  # Chromium's own
        self.assertIn("the next message is the probe", self.texts(page, "main .trouble")[0])
        self.look(page, "target-no-probe")

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

    def test_messages_of_the_log_are_sent_again(self):
        hub, well, _ = self.begin("--keep", "1h")
        producer = self.kept(hub.producer())
        ids = [producer.post(b"hello") for _ in range(3)]
        well.wait(3)
        self.await_settled(2)
        page = self.open(hub, "targets/well")
        page.wait("document.getElementById('from')")
        page.evaluate(f"document.getElementById('from').value = {json.dumps(ids[1])};"
                      "document.getElementById('from').form.requestSubmit()")
        page.wait("document.querySelector('dialog[open]')")
        self.press(page, "Send again", "dialog")
        well.wait(5)
        page.wait("[...document.querySelectorAll('main td')].some((c) => c.textContent === '2 of 2')")
        self.look(page, "rewind")
        page.evaluate(f"location.hash = '#/messages/{ids[0]}'")
        self.press(page, "Send again")
        self.press(page, "Send again", "dialog")
        page.wait("document.getElementById('said').textContent === 'well: it is sent again'"
                  " || document.getElementById('said').textContent === 'ill: it is sent again'")
        self.look(page, "message-again")

    def test_a_message_that_only_a_dead_letter_has_is_found_there(self):
        hub, _, _ = self.begin()
        id = hub.post(b"hello")
        self.await_settled(2)
        case.wait_for(lambda: not self.rows("SELECT * FROM messages"), "a trim")
        page = self.open(hub, f"messages/{id}")
        page.wait("document.querySelector('.pairs a')?.textContent === 'dead letter 1'")
        page.evaluate("document.querySelector('.pairs a').click()")
        page.wait("[...document.querySelectorAll('pre')].some((p) => p.textContent === 'hello')")

    def test_a_target_says_what_failed_last_in_words(self):
        url = self.refused()
        hub = self.hub("--to", f"ill={url}", "--policy", "none")
        hub.post(b"x")
        page = self.open(hub, "targets/ill")
        page.wait("document.querySelectorAll('main .trouble')[1]?.textContent.includes(': connection refused')")
        page.wait(f"document.querySelector('h1 + p')?.textContent.startsWith({json.dumps(url)})")
        self.look(page, "target-refused")

    def clean(self, page):
        """Nothing of what came from outside was taken for more than text."""
        self.assertEqual(page.evaluate("document.querySelectorAll('main :is(img, script, style, iframe, base, meta, "
                                       "template, math, details, input[autofocus])').length"), 0)
        self.assertEqual(page.evaluate("document.querySelectorAll('[onload], [onerror], [onfocus], [ontoggle], "
                                       "a[href^=\"javascript:\"], form[action]').length"), 0)
        self.assertNotEqual(page.evaluate("document.title"), "owned")
        self.assertEqual(page.complaints, [])

    def test_whatever_comes_from_outside_is_text(self):
        """A hundred and more naughty strings, as body, header, answer and tag."""
        self.assertGreater(len(NAUGHTY), 100)
        said = iter(NAUGHTY + ["end"])
        ill = self.leaf(lambda r: (404, (), next(said).encode()))
        settings = os.path.join(self.folder, "hub.yaml")
        with open(settings, "w") as file:
            json.dump({"store": {"path": self.store}, "listen": {"address": "127.0.0.1:0"},
                       "targets": [{"name": "ill", "url": ill.url(), "in-flight": 1,
                                    "tags": {"naughty": NAUGHTY[0]}}]}, file)
        hub = self.hub(settings=settings)
        producer = self.kept(hub.producer())
        for i, words in enumerate(NAUGHTY):
            producer.post(words.encode(), Stagger_Key=f"k{i}", X_Naughty=words.encode("ascii", "replace").decode()
                          .replace("\x1b", "?"))
        producer.post(b"\xff\xfe\x00 no text")
        ill.wait(len(NAUGHTY) + 1)
        page = self.open(hub, "targets/ill")
        page.wait("document.querySelectorAll('main td code').length === 10")
        self.assertEqual(self.texts(page, "main td code")[1:], NAUGHTY[:-10:-1])
        self.assertIn(NAUGHTY[0], page.evaluate("document.querySelector('main').textContent"))
        self.clean(page)
        for i in range(0, len(NAUGHTY)):
            page.evaluate(f"location.hash = '#/dead-letters/{i + 1}'")
            page.wait(f"document.querySelector('h1')?.textContent === 'Dead letter {i + 1}' && "
                      "document.querySelectorAll('main pre').length === 3")
            with self.subTest(i=i):
                answer, headers, body = self.texts(page, "main pre")
                self.assertEqual((answer, body), (NAUGHTY[i], NAUGHTY[i]))
                self.assertIn("X-Naughty: ", headers)
                self.clean(page)
        page = self.open(hub, f"dead-letters/{len(NAUGHTY) + 1}")
        page.wait("document.querySelector('main pre')")
        self.assertIn("ff fe 00", "|".join(self.texts(page, "main pre")))
        self.look(page, "letter-hex")

    def test_a_body_is_laid_out_as_json_as_text_and_as_bytes(self):
        hub, _, _ = self.begin()
        producer = self.kept(hub.producer())
        sent = b'{"id":12345678901234567890,"a":1,"a":0.10,"of":["<b>\\"x\\"</b>",[],{},null]} '
        for body in sent, b"<b>x</b>\n", b"\xff<i>0123456789abcdefg", b"[" * 99 + b"]" * 99, b"":
            producer.post(body)
        self.await_settled(2)
        page = self.open(hub, "dead-letters")

        def looks(id):
            """Returns the views of a body, by the names of their buttons."""
            page.evaluate(f"location.hash = '#/dead-letters/{id}'")
            page.wait(f"document.querySelector('h1')?.textContent === 'Dead letter {id}'")
            found = {}
            for label in self.texts(page, "main .row:has(+ pre) button"):
                self.press(page, label)
                self.assertEqual(self.texts(page, "main [aria-pressed=true]"), [label])
                found[label] = self.texts(page, "main pre")[0]
                self.assertEqual(page.evaluate("document.querySelectorAll('main pre *').length"), 0)
            return found

        found = looks(1)
        self.assertEqual(list(found), ["JSON", "Text", "Hex"])
        self.assertEqual(found["JSON"], """{
  "id": 12345678901234567890,
  "a": 1,
  "a": 0.10,
  "of": [
    "<b>\\"x\\"</b>",
    [],
    {},
    null
  ]
}""")
        self.assertEqual(found["Text"], sent.decode())
        self.assertTrue(found["Hex"].startswith("00000000  7b 22 69 64 22 3a 31 32 33 34 35 36 37 38 39 30  "
                                                '{"id":1234567890\n00000010  '), found["Hex"])
        self.look(page, "letter-json")
        self.assertEqual(looks(2), {"Text": "<b>x</b>\n", "Hex": "00000000  3c 62 3e 78 3c 2f 62 3e 0a" + " " * 23 + "<b>x</b>."})
        self.assertEqual(looks(3), {"Hex": "00000000  ff 3c 69 3e 30 31 32 33 34 35 36 37 38 39 61 62  .<i>0123456789ab\n"
                                          "00000010  63 64 65 66 67" + " " * 35 + "cdefg"})
        self.assertEqual(len(looks(4)["JSON"].split("\n")), 197)
        self.assertEqual(looks(5), {"Text": "", "Hex": ""})
        self.assertEqual(page.complaints, [])

    def test_the_overview_says_which_alerts_hold(self):
        owner = self.leaf()
        down = self.leaf(lambda r: 503)
        settings = os.path.join(self.folder, "hub.yaml")
        with open(settings, "w") as file:
            json.dump({"store": {"path": self.store}, "listen": {"address": "127.0.0.1:0"},
                       "alerts": {"threshold": "2 failures in 5m", "receivers": [
                           {"name": "ops", "type": "webhook", "url": owner.url()}]},
                       "targets": [{"name": "down", "url": down.url(), "policy": "none breaker=2:1h-1h"}]}, file)
        hub = self.hub(settings=settings)
        page = self.open(hub)
        page.wait("document.querySelector('.facts')?.textContent.includes('Alertsnone')")
        self.listen(page)
        page.wait("heard.length === 0 && window.facts !== document.querySelector('.facts')"
                  " && (window.seen = (window.seen ?? 0) + 1, window.facts = document.querySelector('.facts'), seen > 1)")
        for _ in range(2):
            hub.post(b"x")
        page.wait("document.querySelector('.facts').textContent.includes('breaker 1')")
        page.wait("document.querySelector('.facts a[href=\"#/dead-letters?state=dead\"]')")
        self.look(page, "alerts")
        # A screen reader says each once, and no number of a snapshot.
        heard = page.evaluate("heard")
        self.assertTrue(heard and all(each.startswith("Alerts: ") for each in heard), heard)
        self.assertEqual(len(set(heard)), len(heard))
        self.assertIn("breaker 1", heard[-1])

    def test_the_overview_is_live(self):
        hub, well, _ = self.begin()
        producer = self.kept(hub.producer())
        page = self.open(hub)
        page.wait("document.querySelectorAll('tbody tr').length === 2")
        page.evaluate("document.querySelector('tbody a').focus();"
                      "window.kept = document.activeElement; window.asked = performance.getEntriesByType('resource')"
                      ".filter((r) => r.name.endsWith('/v1/targets?limit=1000')).length; 0")
        for i in range(50):
            producer.post(b"x")
        well.wait(50)
        page.wait("[...document.querySelectorAll('tbody tr')].some((r) => r.children[0].textContent === 'well' && "
                  "r.children[3].textContent !== '0.0/s') && [...document.querySelectorAll('.facts dd')].some("
                  "(d) => d.textContent === '100' || d.textContent === '50')")
        self.look(page, "overview-live")
        # The stream brings it: the list was not asked for again, and the focus stays.
        self.assertEqual(page.evaluate("performance.getEntriesByType('resource').filter("
                                       "(r) => r.name.endsWith('/v1/targets?limit=1000')).length - window.asked"), 0)
        self.assertTrue(page.evaluate("document.activeElement === window.kept"))

    def test_without_a_place_for_a_stream_it_polls(self):
        hub, well, _ = self.begin()
        streams = [urllib.request.urlopen(f"http://127.0.0.1:{hub.port}/v1/events") for _ in range(16)]
        page = self.open(hub)
        page.wait("document.querySelectorAll('tbody tr').length === 2")
        self.kept(hub.producer()).post(b"x")
        well.wait(1)
        page.wait("document.querySelector('tbody tr').textContent.includes('HTTP_404')")
        for stream in streams:
            stream.close()

    def test_many_targets_come_in_pages(self):
        url = self.leaf().url()
        hub = self.hub(*(w for i in range(120) for w in ("--to", f"t{i:03}={url}")))
        page = self.open(hub)
        page.wait("document.querySelectorAll('tbody tr').length === 50")
        self.assertEqual(page.evaluate("document.querySelector('tbody a').textContent"), "t000")
        self.look(page, "overview-many")
        self.press(page, "Next")
        page.wait("document.querySelector('tbody a').textContent === 't050'")
        page.evaluate("[...document.querySelectorAll('main button')].find((b) => b.textContent === 'Next').focus()")
        self.listen(page)
        page.key("Enter")
        page.wait("document.querySelectorAll('tbody tr').length === 20")
        self.assertEqual(self.focused(page), "Previous")  # there is no next one
        self.assertEqual(page.evaluate("heard"), ["101 to 120 of 120"])
        self.assertIn("101 to 120 of 120", page.evaluate("document.querySelector('nav.row').textContent"))
        page.evaluate("document.getElementById('filter').value = 't07';"
                      "document.getElementById('filter').dispatchEvent(new Event('input'))")
        page.wait("document.querySelectorAll('tbody tr').length === 10")

    def test_5000_targets_do_not_stutter(self):
        """All of them change each second. What is bounded is the CPU time of the
        page's thread, which a busy machine does not lengthen by much: it is 5 to 25
        ms. A stutter is a task of 50; twice that is for slow machines."""
        url, ill = self.sinks().url(), self.leaf(lambda r: 503).url()
        hub = self.hub(settings=self.put("hub.yaml", json.dumps({
            "store": {"path": self.store}, "listen": {"address": "127.0.0.1:0"},
            "targets": [{"name": f"t{i:04}", "url": url if i % 500 else ill} for i in range(5000)]})))
        producer = self.kept(hub.producer())
        page = self.open(hub)
        page.wait("document.querySelectorAll('tbody tr').length === 50")
        page.command("Performance.enable", timeDomain="threadTicks")

        def cost(script):
            """Milliseconds of all that the page's thread does meanwhile."""
            spent = []
            for each in "0", script:
                page.evaluate(each)
                metrics = page.command("Performance.getMetrics")["metrics"]
                spent.append(sum(m["value"] for m in metrics if m["name"] == "TaskDuration"))
            return 1000 * (spent[1] - spent[0])

        over = threading.Event()
        def publish():
            while not over.wait(0.7):
                producer.post(b"x")

        publisher = threading.Thread(target=publish)
        publisher.start()
        try:
            snapshots = ("new Promise((go) => { let n = COUNT; new MutationObserver((_, it) => --n || (it.disconnect(), go(0)))"
                         ".observe(document.querySelector('.facts').parentElement, {childList: true}) })")
            page.evaluate(snapshots.replace("COUNT", "1"))
            page.wait("document.querySelector('tbody tr').textContent.includes('HTTP_503')")
            nodes = page.evaluate("document.querySelectorAll('*').length")
            costs = {"snapshot": cost(snapshots.replace("COUNT", "2")) / 2}
            for words in "t1", "t12", "live", "zzz", "":
                costs[f"filter {words}"] = cost(
                    f"document.getElementById('filter').value = '{words}';"
                    "document.getElementById('filter').dispatchEvent(new Event('input')), document.body.offsetHeight")
            costs["scroll"] = cost("new Promise((go) => { let n = 20; const step = () => { scrollBy(0, 40); "
                                   "--n ? requestAnimationFrame(step) : go(0) }; step() })") / 20
            costs["sort"] = cost("document.querySelector('button.sort').click(), document.body.offsetHeight")
            self.look(page, "overview-5000")
        finally:
            over.set()
            publisher.join()
        self.assertLess(max(costs.values()), 100, costs)
        self.assertIn("of 5,000", page.evaluate("document.querySelector('nav.row').textContent"))
        self.assertLess(abs(page.evaluate("document.querySelectorAll('*').length") - nodes), 200)

    def test_a_target_shows_its_hour_and_its_last_attempts(self):
        self.answer = 503
        ill = self.leaf(lambda r: (self.answer, (), b"no room <b>here</b>"))
        hub = self.hub("--to", f"ill={ill.url()}", "--policy", "exponential base=400ms attempts=4 retry=timeout "
                       "breaker=none")
        producer = self.kept(hub.producer())
        for i in range(12):
            self.answer = 200 if i % 3 == 0 else 503
            producer.post(b"x")
            ill.wait(i + 1)
        for name, more in ("target", {}), ("target-dark-phone", {"dark": True, "width": 390}):
            page = self.open(hub, "targets/ill", **more)
            page.wait("document.querySelectorAll('figure.chart').length === 3")
            page.wait("document.querySelectorAll('figure.chart')[2].textContent.includes('HTTP_503')")
            page.wait("document.querySelectorAll('main td code').length === 10")
            self.assertEqual(set(self.texts(page, "main td code")), {"no room <b>here</b>"})
            self.assertIn("HTTP_503", self.texts(page, "main tbody")[0])
            self.assertIn("at most", page.evaluate("document.querySelector('figure svg[role]').ariaLabel"))
            page.wait("document.querySelectorAll('svg.wait').length === 3")
            self.assertIn("30 to 1.6s0 to 2.8s", self.texts(page, "tbody:has(.wait)")[0])
            self.look(page, name)
        page = self.open(hub)
        page.wait("document.querySelectorAll('svg.spark').length === 1")

    def test_the_settings_of_a_target_by_api_are_edited(self):
        hub, well, _ = self.begin("--secrets-key", self.key())
        self.call(hub, "POST", "", {"name": "new", "url": well.url("/in?key=hush"), "rate": "5/s",
                                    "headers": {"X-Key": "hush"}})
        page = self.open(hub, "targets/well")
        page.wait("document.querySelector('.pairs')")
        self.assertEqual(self.count_buttons(page, "Edit"), 0)
        page = self.open(hub, "targets/new")

        def write(**more):
            page.wait("document.getElementById('settings')")
            page.evaluate("{const text = document.getElementById('settings'); text.value = JSON.stringify("
                          f"{{...JSON.parse(text.value), ...{json.dumps(more)}}}, null, 2)}}; 0")

        def said(words):
            page.wait(f"document.querySelector('dialog [role=status]').textContent.includes({json.dumps(words)})")

        self.press(page, "Edit")
        write(rate="5", tags={"<b>": "x"})
        self.press(page, "Save", "dialog")
        said("/rate `rate`: `5` is not a rate")
        self.assertIn("422", page.complaints.pop())  # Chromium's own
        self.look(page, "edit")
        write(rate="6/s", tags={})
        self.press(page, "Check", "dialog")
        said("Would change: /rate")
        self.call(hub, "PATCH", "/new", {"in-flight": 3})
        self.press(page, "Save", "dialog")
        said("it has changed since")
        self.press(page, "Cancel", "dialog")
        page.wait("!document.querySelector('dialog')")
        self.press(page, "Edit")
        write(rate="7/s")
        self.press(page, "Save", "dialog")
        page.wait("document.getElementById('said').textContent === 'new: saved'")
        self.assertEqual(self.call(hub, "PATCH", "/new", {})["settings"], {
            "name": "new", "url": well.url("/in?key=***"), "rate": "7/s", "in-flight": 3,
            "headers": {"X-Key": "***"}})
        hub.post(b"x")
        self.assertEqual({r.headers.get("x-key", [None])[0] for r in well.wait(2)}, {None, "hush"})

    def test_a_target_is_added_and_removed(self):
        hub, well, _ = self.begin()
        page = self.open(hub)
        self.press(page, "Add a target")

        def write(text):
            page.wait("document.getElementById('settings')")
            page.evaluate(f"document.getElementById('settings').value = {json.dumps(text)}")

        def said(words):
            page.wait(f"document.querySelector('dialog [role=status]').textContent.includes({json.dumps(words)})")

        self.press(page, "Save", "dialog")
        said("/name")
        write("{name")
        self.press(page, "Check", "dialog")
        said("the body is no JSON object")
        self.look_away(page, 2)
        settings = json.dumps({"name": "new.1", "url": well.url("/new")})
        write(settings)
        self.press(page, "Check", "dialog")
        said("It would be added.")
        self.look(page, "add")
        self.press(page, "Save", "dialog")
        page.wait("location.hash === '#/targets/new.1' && document.querySelector('.state')")
        hub.post(b"x")
        self.assertIn("/new", [r.path for r in well.wait(2)])
        page.evaluate("location.hash = '#/'")
        self.press(page, "Add a target")
        write(settings)
        self.press(page, "Save", "dialog")
        said("there is such a target")
        self.look_away(page, 1)
        self.press(page, "Cancel", "dialog")
        self.call(hub, "POST", "/new.1/pause")
        hub.post(b"y")
        page.evaluate("location.hash = '#/targets/new.1'")
        page.wait("document.querySelector('.facts')?.textContent.includes('Backlog1')")
        self.press(page, "Remove")
        page.wait("document.querySelector('dialog[open]')")
        self.assertEqual(self.texts(page, "dialog :is(h2, p)"), ["Remove new.1?", "1 message waits for it: it is cancelled."])
        self.press(page, "Remove", "dialog")
        page.wait("location.hash === '#/' && document.querySelectorAll('tbody tr').length === 2")

    def look_away(self, page, count):
        """From what Chromium says itself of answers that are refusals."""
        page.drain()
        self.assertEqual(len(page.complaints), count)
        page.complaints.clear()

    def key(self):
        path = os.path.join(self.folder, "secrets.key")
        with open(path, "w") as file:
            file.write("0f" * 32)
        os.chmod(path, 0o600)
        return path

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
        page.screenshot(str(console_case.SHOTS / "console-sign-in.png"))

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
