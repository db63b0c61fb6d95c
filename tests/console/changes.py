#!/usr/bin/env python3
"""What the console changes: it says first what of, and then what came of it.

usage: changes.py [TEST...]
"""
import collections
import contextlib
import json
import os
import pathlib
import sqlite3
import sys
import threading
import unittest
import urllib.request

SOURCE = pathlib.Path(os.environ["STAGGER_SOURCE"])
sys.path[:0] = [str(SOURCE / "tests/hub"), str(SOURCE / "tests/sim"), str(SOURCE / "tests/console")]

import browser
import case
import console_case


class Changes(console_case.Console):
    def dead(self, count=1):
        """A hub with so many dead letters of `ill`."""
        hub, _, _ = self.begin()
        producer = self.kept(hub.producer())
        for _ in range(count):
            producer.post(b"x")
        self.await_settled(2)
        return hub

    def are_disabled(self, page):
        return page.evaluate("[...document.querySelectorAll('main .row button')].map((b) => b.disabled)")

    def dialog(self, page):
        page.wait("document.querySelector('dialog[open]')")
        return page.evaluate("document.querySelector('dialog').textContent")

    def states(self, hub):
        with urllib.request.urlopen(f"http://127.0.0.1:{hub.port}/v1/dead-letters?limit=1000") as answer:
            return collections.Counter(l["state"] for l in json.load(answer)["dead_letters"])

    def tick(self, page, *ids):
        for id in ids:
            page.wait(f"document.querySelector('[aria-label=\"choose dead letter {id}\"]')")
            page.evaluate(f"document.querySelector('[aria-label=\"choose dead letter {id}\"]').click()")

    def change(self, hub, page, label, asked, said, states):
        """It is asked about first, and nothing is changed by a no."""
        before = self.states(hub)
        for answer in "Cancel", label:
            self.assertEqual(self.states(hub), before)
            self.press(page, label)
            self.assertIn(asked, self.dialog(page))
            self.press(page, answer, "dialog")
            page.wait("!document.querySelector('dialog')")
        self.said(page, said)
        self.assertEqual(self.states(hub), states)

    def test_one_some_or_all_that_a_filter_finds_are_replayed_or_dropped(self):
        self.answer = 404
        url = self.leaf(lambda r: self.answer).url()
        hub = self.hub("--to", f"ill={url}", "--to", f"sick={url}")
        self.kept(hub.producer()).post_lines([{"body": "x"}] * 5)
        self.await_settled(2)
        ill, sick = ([row["id"] for row in self.rows() if row["target"] == name] for name in ("ill", "sick"))
        self.answer = 200
        delivered = "all that could be sent are delivered."
        page = self.open(hub, f"dead-letters/{ill[0]}")
        self.change(hub, page, "Drop", "Drop 1 dead letter?Chosen: this dead letter.",
                    "Dropped: 1 dead letter, 1 message", {"dead": 9, "dropped": 1})
        page = self.open(hub, f"dead-letters/{ill[1]}")
        self.change(hub, page, "Replay", "Replay 1 dead letter?Chosen: this dead letter.",
                    f"Replay 1: 1 dead letter, 1 message; {delivered}", {"dead": 8, "dropped": 1, "replayed": 1})
        page = self.open(hub, "dead-letters")
        self.tick(page, ill[2], sick[0])
        self.change(hub, page, "Replay", "Replay 2 dead letters?Chosen: those that are ticked.",
                    f"Replay 2: 2 dead letters, 2 messages; {delivered}", {"dead": 6, "dropped": 1, "replayed": 3})
        self.tick(page, sick[1], sick[2])
        self.change(hub, page, "Drop", "Drop 2 dead letters?Chosen: those that are ticked.",
                    "Dropped: 2 dead letters, 2 messages", {"dead": 4, "dropped": 3, "replayed": 3})
        page = self.open(hub, "dead-letters?target=ill&cause=404")
        self.change(hub, page, "Replay", "Chosen: all in state dead with target ill, cause 404.",
                    f"Replay 3: 2 dead letters, 2 messages; {delivered}", {"dead": 2, "dropped": 3, "replayed": 5})
        page = self.open(hub, "dead-letters")
        self.change(hub, page, "Drop", "Chosen: all in state dead, of every target.",
                    "Dropped: 2 dead letters, 2 messages", {"dropped": 5, "replayed": 5})
        page = self.open(hub)
        page.wait("document.querySelector('.facts')?.textContent.includes('Backlog0')")
        facts = self.texts(page, ".facts div")
        for each in "Delivered in all5", "Dead in all5", "Booksbalance":
            self.assertIn(each, facts)

    def test_a_replay_says_how_far_it_is(self):
        """The count includes a target that none of the ten oldest letters is for."""
        gate = threading.Semaphore(0)
        self.is_well = False
        self.addCleanup(gate.release, 100)
        quick = self.leaf(lambda r: 200 if self.is_well else 404)
        slow = self.leaf(lambda r: gate.acquire() and 200 if self.is_well else 404)
        hub = self.hub("--to", f"quick={quick.url()}", "--to", f"slow={slow.url()}")
        self.call(hub, "POST", "/slow/pause")
        self.kept(hub.producer()).post_lines([{"body": "x"}] * 10)
        quick.wait(10)
        self.call(hub, "POST", "/slow/resume")
        self.await_settled(2)
        self.is_well = True
        page = self.open(hub, "dead-letters")
        self.listen(page)
        self.press(page, "Replay")
        self.press(page, "Replay", "dialog")
        what = "Replay 1: 20 dead letters, 20 messages; "
        self.said(page, f"{what}queued; 10 wait still.")
        for _ in range(9):
            gate.release()
        self.said(page, f"{what}queued; 1 waits still.")
        gate.release()
        self.said(page, f"{what}all that could be sent are delivered.")
        # A screen reader does not count.
        heard = page.evaluate("heard")
        self.assertEqual(heard[-2:], [f"{what}queued.", f"{what}all that could be sent are delivered."])
        self.assertLessEqual(len(heard), 3, heard)

    def test_a_replay_that_waits_for_room_says_how_much_it_has_sent(self):
        gate = threading.Event()
        self.addCleanup(gate.set)
        self.is_well = False
        slow = self.leaf(lambda r: 404 if not self.is_well else gate.wait() and 200)
        hub = self.hub("--to", f"slow={slow.url()}")
        self.kept(hub.producer()).post_lines([{"body": "x"}] * 600)
        self.await_settled(1)
        self.is_well = True
        page = self.open(hub, "dead-letters")
        self.press(page, "Replay")
        self.press(page, "Replay", "dialog")
        self.said(page, "Replay 1 is running: 500 of 600 dead letters.")
        self.look(page, "replaying")
        gate.set()
        self.said(page, "Replay 1: 600 dead letters, 600 messages; all that could be sent are delivered.")

    def test_only_what_is_dead_is_replayed_or_dropped(self):
        hub = self.dead()
        for state, is_disabled in ("", False), ("dead", False), ("replayed", True), ("dropped", True):
            page = self.open(hub, f"dead-letters?state={state}")
            page.wait("document.querySelector('main .row button')")
            self.assertEqual(self.are_disabled(page), [is_disabled] * 2, state)

    def test_what_is_typed_is_applied_before_anything_is_done(self):
        hub = self.dead()
        page = self.open(hub, "dead-letters?cause=404")
        page.wait("document.querySelectorAll('tbody tr').length === 1")
        page.evaluate("document.getElementById('target').value = 'well';"
                      "document.getElementById('target').dispatchEvent(new Event('input', {bubbles: true}))")
        self.assertEqual(self.are_disabled(page), [True, True])
        self.assertIn("press Filter first", page.evaluate("document.querySelector('main .row').textContent"))
        page.evaluate("document.getElementById('target').value = 'ill';"
                      "document.querySelector('main form').requestSubmit()")
        page.wait("location.hash.includes('target=ill') && document.querySelectorAll('tbody tr').length === 1")
        self.press(page, "Drop")
        self.assertIn("Chosen: all in state dead with target ill, cause 404.", self.dialog(page))
        self.assertIn("cannot be undone", self.dialog(page))
        self.assertEqual(page.evaluate("document.querySelector('dialog button').className"), "danger")
        self.look(page, "confirm-drop")
        self.press(page, "Drop", "dialog")
        self.said(page, "Dropped: 1 dead letter")
        page.wait("document.querySelector('tbody')?.textContent.includes('dropped')")

    def test_a_refusal_stays_until_something_else_is_said(self):
        hub, _, _ = self.begin()
        page = self.open(hub, "targets/well")
        page.wait("document.getElementById('from')")
        page.evaluate("document.getElementById('from').value = '0000000000000000.5';"
                      "document.getElementById('from').form.requestSubmit()")
        self.press(page, "Send again", "dialog")
        page.wait("document.getElementById('said').className === 'bad'")
        words = page.evaluate("document.getElementById('said').textContent")
        polls = "performance.getEntriesByType('resource').filter((r) => r.name.endsWith('/v1/targets/well')).length"
        page.evaluate(f"window.polls = {polls}; 0")
        page.wait(f"{polls} > window.polls + 2")
        self.assertEqual(page.evaluate("document.getElementById('said').textContent"), words)

    def test_a_replay_says_what_came_of_it(self):
        hub = self.dead(3)
        page = self.open(hub, "dead-letters?state=dead")
        self.press(page, "Replay")
        self.assertIn("ill does not work now. HTTP_404", self.dialog(page))
        self.look(page, "confirm-ill")
        self.press(page, "Replay", "dialog")
        self.said(page, "Replay 1: 3 dead letters, 3 messages; 3 of them failed again")
        page.wait("document.querySelectorAll('tbody tr').length === 3")
        self.answer = 200
        self.press(page, "Replay")
        self.press(page, "Replay", "dialog")
        self.said(page, "Replay 2: 3 dead letters, 3 messages; all that could be sent are delivered.")
        page.wait("document.querySelector('main').textContent.includes('There are none')")

    def test_a_replay_to_a_target_that_is_down_waits(self):
        self.answer = 503
        ill = self.leaf(lambda r: self.answer)
        hub = self.hub("--to", f"ill={ill.url()}", "--policy", "attempts=1 breaker=3:1h-1h")
        for _ in range(3):
            hub.post(b"x")
        self.await_settled(1)
        page = self.open(hub, "dead-letters?state=dead")
        self.press(page, "Replay")
        self.assertIn("ill does not work now. Its circuit is open", self.dialog(page))
        self.press(page, "Replay", "dialog")
        self.said(page, "queued; 3 wait still. ill does not work now.")

    def keeping(self, ill):
        """A hub that keeps messages and receipts."""
        return self.hub(settings=self.put("hub.yaml", json.dumps(
            {"store": {"path": self.store, "keep": "1h"}, "listen": {"address": "127.0.0.1:0"},
             "receipts": {"keep": "1h"}, "targets": [{"name": "ill", "url": ill.url()}]})))

    def test_a_message_whose_receipts_are_gone_says_when_the_oldest_came(self):
        hub = self.keeping(self.leaf())
        ids = [hub.post(b"x") for _ in range(2)]
        case.wait_for(lambda: len(self.rows("SELECT * FROM receipts")) == 2, "both receipts")
        with contextlib.closing(sqlite3.connect(self.store)) as db, db:
            db.execute("DELETE FROM receipts WHERE position = ?", (int(ids[0].split("-")[1]),))
        page = self.open(hub, f"messages/{ids[0]}")
        page.wait("document.querySelector('.quiet')")
        words = " ".join(self.texts(page, ".quiet"))
        self.assertIn("their receipts went with the oldest. The oldest receipt that is kept is of 20", words)
        self.look(page, "message-without-receipts")

    def test_a_message_is_sent_again_and_shows_what_came_of_it(self):
        self.answer = 404
        ill = self.leaf(lambda r: self.answer)
        hub = self.keeping(ill)
        id = self.kept(hub.producer()).post(b"hello")
        self.await_settled(1)
        page = self.open(hub, f"messages/{id}")
        page.wait("document.querySelector('tbody')?.textContent.includes('dead')")
        self.answer = 200
        self.press(page, "Send again")
        self.assertIn("Send again to ill?", self.dialog(page))
        self.press(page, "Cancel", "dialog")
        page.wait("!document.querySelector('dialog')")
        self.assertEqual(len(ill.wait(1)), 1)
        self.press(page, "Send again")
        self.press(page, "Send again", "dialog")
        self.said(page, "ill: it is sent again")
        page.wait("document.querySelector('tbody')?.textContent.includes('delivered (resent)')")
        self.assertEqual(self.texts(page, "tbody tr:first-child td")[:4], ["ill", "delivered (resent)", "2", ""])
        self.look(page, "message-resent")

    def test_the_content_is_skipped_to(self):
        hub, _, _ = self.begin()
        page = self.open(hub, "targets/well")
        page.wait("document.querySelector('.pairs')")
        page.evaluate("document.querySelector('.skip').click()")
        self.assertEqual(page.evaluate("location.hash"), "#/targets/well")
        self.assertEqual(page.evaluate("document.activeElement.id"), "view")


if __name__ == "__main__":
    browser.skip_without()
    unittest.main(verbosity=2)
