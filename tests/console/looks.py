#!/usr/bin/env python3
"""What the console shows is so, and stays so: states, ages, times, lists.

usage: looks.py [TEST...]
"""
import json
import os
import pathlib
import sys
import unittest

SOURCE = pathlib.Path(os.environ["STAGGER_SOURCE"])
sys.path[:0] = [str(SOURCE / "tests/hub"), str(SOURCE / "tests/sim"), str(SOURCE / "tests/console")]

import browser
import case
import console_case


class Looks(console_case.Console):
    def dead(self, count=1):
        hub, _, _ = self.begin()
        producer = self.kept(hub.producer())
        ids = [producer.post(b"x") for _ in range(count)]
        self.await_settled(2)
        return hub, ids

    def names(self, page):
        return self.texts(page, "tbody td:first-child")

    def test_a_target_that_only_fails_is_worse_than_one_that_is_paused(self):
        url = self.leaf().url()
        ill = self.leaf(lambda r: 404)
        hub = self.hub("--to", f"resting={url}", "--to", f"well={url}", "--to", f"zzz={ill.url()}")
        self.call(hub, "POST", "/resting/pause")
        hub.post(b"x")
        page = self.open(hub)
        page.wait("document.querySelector('tbody tr')?.textContent.startsWith('zzzlive, failing')")
        self.assertEqual(self.names(page), ["zzz", "resting", "well"])
        self.assertEqual(page.evaluate("document.querySelector('tbody .state').className"), "state bad")
        self.look(page, "failing")

    def test_after_a_restart_old_troubles_are_told(self):
        url = self.leaf().url()
        ill = self.leaf(lambda r: 404)
        words = ("--to", f"a={url}", "--to", f"b={url}", "--to", f"ill={ill.url()}")
        first = self.hub(*words)
        first.post(b"x")
        self.await_settled(3)
        self.call(first, "POST", "/a/pause")
        self.assertEqual(first.stop(), 0)
        page = self.open(self.hub(*words))
        page.wait("document.querySelectorAll('tbody tr').length === 3")
        self.assertEqual(self.names(page), ["ill", "a", "b"])
        self.assertEqual(self.texts(page, "tbody td:nth-child(3)"), [
            "No attempt since the hub started; before that 1 message of it died.",
            "Paused by a call before the hub started.", ""])
        self.assertIn("Accepted since the start0", self.texts(page, ".facts")[0])

    def test_a_target_paused_in_the_settings_has_no_button_for_it(self):
        settings = os.path.join(self.folder, "hub.yaml")
        with open(settings, "w") as file:
            json.dump({"store": {"path": self.store}, "listen": {"address": "127.0.0.1:0"},
                       "targets": [{"name": "a", "url": self.leaf().url(), "paused": True,
                                    "policy": "none"}]}, file)
        page = self.open(self.hub(settings=settings), "targets/a")
        page.wait("document.querySelector('main .trouble')?.textContent.includes("
                  "'Paused in the settings since the hub started: change them to resume it.')")
        self.assertEqual(self.count_buttons(page, "Pause") + self.count_buttons(page, "Resume"), 0)
        page.wait("document.querySelector('.pairs')?.textContent.includes('Circuit breakernone')")

    def test_what_a_stopped_hub_said_is_marked_as_old(self):
        for view in "", "targets/well":
            hub, _, _ = self.begin()
            page = self.open(hub, view)
            page.wait("document.querySelector('.facts')")
            self.listen(page)
            hub.stop()
            page.wait("document.querySelector('main.stale')")
            self.said(page, "the hub does not answer; what is shown is ")
        words = page.evaluate("document.getElementById('said').textContent")
        page.wait(f"document.getElementById('said').textContent !== {json.dumps(words)}")
        heard = page.evaluate("heard")  # that it is stopping, perhaps, and then this, once
        self.assertEqual(heard.index("the hub does not answer"), len(heard) - 1, heard)
        self.assertLessEqual(len(heard), 2)

    def test_a_target_that_is_not_there_has_no_headings(self):
        hub, _, _ = self.begin()
        page = self.open(hub, "targets/nobody")
        page.wait("document.getElementById('said').className === 'bad'")
        self.assertEqual(self.texts(page, "main h1, main h2"), ["nobody"])

    def test_a_letter_says_when_it_was_given_up_and_each_thing_once(self):
        self.answer = 422
        hub = self.hub("--to", f"ill={self.leaf(lambda r: self.answer).url()}")
        hub.post(b"x")
        self.await_settled(1)
        page = self.open(hub, "dead-letters/1")
        page.wait("document.querySelector('.pairs')")
        self.assertIn("Given up", self.texts(page, ".pairs")[0])
        self.assertNotIn("Accepted", self.texts(page, ".pairs")[0])
        self.assertEqual(self.texts(page, "main .trouble"), ["permanent: HTTP_422"])
        page.wait("document.querySelector('button[aria-pressed=true]')")

    def test_ages_go_on(self):
        hub, _ = self.dead()
        page = self.open(hub, "dead-letters")
        page.wait("document.querySelector('tbody time')")
        before = self.texts(page, "tbody time")[0]
        page.wait(f"document.querySelector('tbody time').textContent !== {json.dumps(before)}")

    def test_times_are_taken_as_people_write_them(self):
        hub, _ = self.dead(3)
        page = self.open(hub, "dead-letters?state=dead")

        def filter_by(since):
            page.wait("document.querySelector('#names option')")
            page.evaluate(f"document.getElementById('since').value = {json.dumps(since)};"
                          "document.querySelector('main form').requestSubmit()")

        for since, count in ("5m", 3), ("2001-02-03", 3), ("2001-02-03 04:05", 3), ("2101-02-03 04:05:06Z", 0):
            filter_by(since)
            page.wait("location.hash.includes('since=2') && document.querySelector('#since') && "
                      f"document.querySelectorAll('tbody tr').length === {count}")
        self.assertIn("since=2101-02-03T04%3A05%3A06.000Z", page.evaluate("location.hash"))
        filter_by("yesterday")
        self.said(page, "since: expected a time in UTC like 5m, 19:50 or 2026-03-01 12:00, not “yesterday”")

    def test_a_rewind_is_asked_about_when_it_has_a_beginning(self):
        hub, _, _ = self.begin()
        page = self.open(hub, "targets/well")
        for text in "", "yesterday":
            page.wait("document.getElementById('from')")
            page.evaluate(f"document.getElementById('from').value = '{text}';"
                          "document.getElementById('from').form.requestSubmit()")
            self.said(page, "From where? Expected a time in UTC like 5m,")
            self.assertFalse(page.evaluate("document.querySelector('dialog') !== null"))

    def test_what_is_no_id_is_not_looked_for(self):
        hub, ids = self.dead()
        page = self.open(hub, "targets/well")
        page.wait("document.querySelector('.pairs')")

        def find(text):
            page.evaluate(f"document.getElementById('find-id').value = {json.dumps(text)};"
                          "document.getElementById('find').requestSubmit()")

        find("nonsense")
        self.said(page, "“nonsense” is not the id of a message: one looks like")
        self.assertEqual(page.evaluate("location.hash"), "#/targets/well")
        find(ids[0])
        page.wait("document.querySelector('h1')?.textContent.startsWith('Message')")
        self.assertEqual(page.evaluate("document.getElementById('find-id').value"), "")
        self.assertTrue(page.evaluate("document.title").startswith("message "))
        page.wait("document.querySelector('tbody a[href=\"#/targets/ill\"]')")
        self.assertEqual(page.evaluate("document.querySelector('tbody .state.bad').textContent"), "dead")

    def test_a_list_says_how_many_and_all_are_ticked_at_once(self):
        hub, _ = self.dead(3)
        page = self.open(hub, "dead-letters")
        page.wait("document.querySelectorAll('tbody tr').length === 3")
        self.assertIn("3 dead letters", self.texts(page, "main p.quiet"))
        page.evaluate("document.querySelector('thead input').click()")
        self.press(page, "Drop")
        page.wait("document.querySelector('dialog[open]')")
        self.assertIn("Drop 3 dead letters?Chosen: those that are ticked.", self.texts(page, "dialog")[0])

    def test_the_table_is_sorted_and_the_address_keeps_it(self):
        hub, _ = self.dead()
        page = self.open(hub)
        page.wait("document.querySelectorAll('tbody tr').length === 2")
        self.press(page, "Target")
        page.evaluate("document.getElementById('filter').value = 'l';"
                      "document.getElementById('filter').dispatchEvent(new Event('input'))")
        self.assertEqual(page.evaluate("location.hash"), "#/?filter=l&sort=Target")
        page.evaluate("location.reload()")
        page.wait("document.getElementById('filter')?.value === 'l' && "
                  "document.querySelector('[aria-sort]')?.textContent === 'Target'")
        page.wait("document.querySelectorAll('tbody tr').length === 2")
        self.look(page, "sorted")

    def test_what_a_replay_delivered_has_no_cause_any_more(self):
        hub, ids = self.dead()
        page = self.open(hub, "dead-letters/1")
        self.answer = 200
        self.press(page, "Replay")
        self.press(page, "Replay", "dialog")
        self.said(page, "delivered")
        page.evaluate(f"location.hash = '#/messages/{ids[0]}'")
        page.wait("document.querySelector('h1')?.textContent.startsWith('Message')")
        page.wait("document.querySelector('tbody')?.textContent.includes('illdelivered')")
        self.assertNotIn("HTTP_404", self.texts(page, "tbody")[0])

    def test_what_waits_for_its_turn_is_due(self):
        self.answer = 503
        hub = self.hub("--to", f"ill={self.leaf(lambda r: self.answer).url()}",
                       "--policy", "attempts=9 base=500ms jitter=none deadline=none")
        id = hub.post(b"x")
        case.wait_for(lambda: self.rows("SELECT * FROM parked"), "a parked one")
        self.call(hub, "POST", "/ill/pause")
        page = self.open(hub, f"messages/{id}")
        page.wait("document.querySelector('tbody time')?.textContent === 'due'")

    def test_a_link_that_is_drawn_anew_keeps_the_focus(self):
        hub, _ = self.dead()
        page = self.open(hub, "targets/ill")
        page.wait("document.querySelector('.facts a')")
        page.evaluate("window.kept = document.querySelector('.facts'); document.querySelector('.facts a').focus()")
        page.wait("!document.body.contains(window.kept)")
        self.assertTrue(page.evaluate("document.activeElement === document.querySelector('.facts a')"))

    def test_what_is_chosen_of_the_attempts_stays(self):
        hub, _ = self.dead()
        page = self.open(hub, "targets/ill")
        page.wait("document.querySelector('main td code')")
        page.evaluate("window.kept = document.querySelector('main td .trouble');"
                      "getSelection().selectAllChildren(window.kept); 0")
        hub.post(b"y")
        page.wait("document.querySelector('.facts a').textContent === '2'")
        polls = "performance.getEntriesByType('resource').filter((r) => r.name.endsWith('/attempts')).length"
        page.evaluate(f"window.polls = {polls}; 0")
        page.wait(f"{polls} > window.polls + 1")
        self.assertTrue(page.evaluate("document.body.contains(window.kept)"))
        page.evaluate("getSelection().removeAllRanges()")
        page.wait("!document.body.contains(window.kept)")


if __name__ == "__main__":
    browser.skip_without()
    unittest.main(verbosity=2)
