#!/usr/bin/env python3
"""Who can use the console, and with what: each role, the keyboard, a screen
reader, a phone.

usage: access.py [TEST...]
"""
import json
import os
import pathlib
import subprocess
import sys
import unittest

SOURCE = pathlib.Path(os.environ["STAGGER_SOURCE"])
sys.path[:0] = [str(SOURCE / "tests/hub"), str(SOURCE / "tests/sim"), str(SOURCE / "tests/console")]

import browser
import case
import console_case
import leaf

PHONE = 375

# Of each view: what shows that it is there, and the buttons of those who may look,
# and of those who may change something besides. Find and Sign out are in each.
SORTS = ["Target", "Delivered", "Errors", "Backlog", "p99", "Dead"]
TARGET = ("document.querySelectorAll('figure.chart').length === 3 && "
          "document.querySelector('main').textContent.includes('Nothing was sent again')")
VIEWS = {
    "": ("document.querySelectorAll('tbody tr').length === 6", SORTS, ["Add a target ..."]),
    "targets/well": (TARGET, [], ["Pause", "Send again ..."]),
    "targets/down": (TARGET, [], ["Pause", "Probe now", "Send again ..."]),
    "targets/resting": (TARGET, [], ["Resume", "Send again ..."]),
    "targets/gone": (TARGET, [], ["Forget"]),
    "targets/added": (TARGET, [], ["Pause", "Edit", "Remove", "Send again ..."]),
    "dead-letters": ("document.querySelectorAll('tbody tr').length === 3", ["Filter"],
                     ["Replay ...", "Drop ...", "choose all of this table", "choose dead letter 1",
                      "choose dead letter 2", "choose dead letter 3"]),
    "dead-letters/1": ("document.querySelectorAll('main pre').length === 3", ["Text", "Hex", "JSON", "Text", "Hex"],
                       ["Replay ...", "Drop ..."]),
    "messages/MESSAGE": ("document.querySelectorAll('main tbody').length === 2", [], ["Send again to added", "Send again to ill", "Send again to well"]),
}

# Whatever the keyboard must reach.
STOPS = ("[...document.querySelectorAll('a[href], button, input, select, textarea, [tabindex=\"0\"]')]"
         ".filter((each) => each.checkVisibility() && !each.disabled && each.closest('dialog') === "
         "document.querySelector('dialog[open]'))")


class Access(console_case.Console):
    def ward(self):
        """A hub with a target in each state, and three dead letters; with tokens."""
        self.well = self.leaf()
        ill = self.leaf(lambda r: (404, (), b"gone <b>away</b>"))
        down = self.leaf(lambda r: 503)
        targets = [{"name": "well", "url": self.well.url()}, {"name": "ill", "url": ill.url()},
                   {"name": "down", "url": down.url(), "policy": "attempts=9 base=1h deadline=none breaker=1:1h-1h"},
                   {"name": "resting", "url": self.well.url(), "policy": "none"}]
        gone = {"name": "gone", "url": down.url(), "policy": "attempts=9 base=1h deadline=none"}
        self.tokens = {role: subprocess.run(
            [leaf.STAGGER, "token", "new", os.path.join(self.folder, "tokens"), "--role", role, "--name", role],
            check=True, capture_output=True, text=True).stdout.strip() for role in ("publish", "view", "operate")}
        self.token = self.tokens["operate"]

        def write(targets):
            return self.put("hub.yaml", json.dumps({
                "listen": {"address": "127.0.0.1:0", "tokens": os.path.join(self.folder, "tokens")},
                "store": {"path": self.store, "keep": "1h"}, "receipts": {"keep": "1h"}, "targets": targets}))

        hub = self.hub(settings=write([*targets, gone]))
        self.call(hub, "POST", "/resting/pause")
        self.call(hub, "POST", "", {"name": "added", "url": self.well.url()})
        producer = self.kept(hub.producer())
        for i in range(3):
            self.id = producer.post(b'{"n": %d}' % i, X_Kind="test", Authorization=f"Bearer {self.tokens['publish']}")
        case.wait_for(lambda: self.call(hub, "GET", "/ill")["dead"] == 3 and
                      self.call(hub, "GET", "/down")["state"] == "circuit-open" and
                      self.call(hub, "GET", "/gone")["parked"] > 0, "dead letters")
        write(targets)
        self.reload(hub)
        return hub

    def sign_in(self, hub, role, **more):
        page = self.open(hub, **more)
        page.wait("document.getElementById('token')")
        page.complaints.clear()  # Chromium's own, of the 401
        page.evaluate(f"document.getElementById('token').value = {json.dumps(self.tokens[role])};"
                      "document.querySelector('main form').requestSubmit()")
        return page

    def show(self, page, view):
        page.evaluate(f"location.hash = '#/{view.replace('MESSAGE', self.id)}'")
        page.wait(VIEWS.get(view, [TARGET])[0])

    def names(self, page, selector):
        """As a screen reader says them."""
        return page.evaluate(f"[...document.querySelectorAll({json.dumps(selector)})].filter((each) => "
                             "each.checkVisibility()).map((each) => each.ariaLabel ?? each.textContent)")

    def tab_through(self, page):
        """What the keyboard reaches from the beginning on, in its order."""
        page.evaluate(f"window.stops = {STOPS}; stops[0].focus({{focusVisible: true}})")
        reached = []
        for i in range(page.evaluate("stops.length")):
            if i > 0:
                page.key("Tab")
            at, outline = page.evaluate("[stops.indexOf(document.activeElement), "
                                        "getComputedStyle(document.activeElement).outlineStyle]")
            self.assertNotEqual(outline, "none", page.evaluate("document.activeElement.outerHTML"))
            reached.append(at)
        return reached

    def test_each_role_finds_what_it_may_press_and_the_keyboard_reaches_it(self):
        hub = self.ward()
        for role in "view", "operate":
            page = self.sign_in(hub, role)
            page.wait("document.getElementById('whoami').textContent.includes('Sign out')")
            for view, (_, looks, changes) in VIEWS.items():
                self.show(page, view)
                with self.subTest(role=role, view=view):
                    self.assertEqual(sorted(self.names(page, "main :is(button, input[type=checkbox])")),
                                     sorted(looks + changes * (role == "operate")))
                    self.assertEqual(self.names(page, "header button"), ["Find", "Sign out"])
                    self.assertEqual(self.tab_through(page), list(range(page.evaluate("stops.length"))))
        page = self.sign_in(hub, "publish")
        page.wait("document.querySelector('main .trouble').textContent === 'this token has not the role view'")
        self.assertEqual(self.names(page, "button"), ["Find", "Sign in"])

    def fits(self, page, name, dark):
        """Nothing is cut, or wider than the phone; and it is kept as a picture."""
        self.assertLessEqual(page.evaluate("document.documentElement.scrollWidth"), PHONE)
        self.assertEqual(page.evaluate(
            "[...document.querySelectorAll('body *')].filter((each) => each.checkVisibility() && "
            "!each.closest('.skip, .unseen, svg') && (each.scrollWidth > each.clientWidth + 1 && each.clientWidth > 0 && "
            f"getComputedStyle(each).overflowX !== 'visible' || each.getBoundingClientRect().right > {PHONE})"
            ").map((each) => each.outerHTML.slice(0, 99)).slice(0, 2)"), [])
        self.look(page, f"phone{'-dark' * dark}-{name}", **({"runOnly": ["color-contrast"]} if dark else {}))

    def test_each_view_fits_a_phone_by_day_and_by_night(self):
        hub = self.ward()
        page = self.sign_in(hub, "operate", width=PHONE)
        for view in VIEWS:
            if view in ("targets/well", "targets/resting", "targets/gone"):
                continue  # as the others, but for a button
            self.show(page, view)
            for dark in False, True:
                page.prefer(dark)
                with self.subTest(view=view, dark=dark):
                    self.fits(page, view.replace("/", "-") or "overview", dark)
        for view, button in (("dead-letters", "Drop"), ("targets/added", "Edit"), ("targets/gone", "Forget"),
                             ("", "Add a target")):
            self.show(page, view)
            self.press(page, button)
            page.wait("document.querySelector('dialog[open]')")
            for dark in False, True:
                page.prefer(dark)
                with self.subTest(dialog=button, dark=dark):
                    self.fits(page, f"dialog-{button}", dark)
            self.press(page, "Cancel", "dialog")
            page.wait("!document.querySelector('dialog')")

    def test_the_focus_stays_when_rows_change_and_move(self):
        hub, _, _ = self.begin()
        producer = self.kept(hub.producer())
        page = self.open(hub, "?filter=l")
        page.wait("document.querySelectorAll('tbody tr').length === 2")
        page.evaluate("document.querySelector('a[href=\"#/targets/well\"]').focus()")
        self.call(hub, "POST", "/ill/pause")
        self.call(hub, "POST", "/well/pause")
        self.call(hub, "POST", "/ill/resume")
        page.wait("document.querySelector('tbody tr a').textContent === 'well'")
        self.assertEqual(self.focused(page), "well")
        for i in range(1, 3):
            producer.post(b"x")
            page.wait(f"document.querySelector('tbody a[href*=dead]')?.textContent === '{i}'")
            if i == 1:
                page.evaluate("document.querySelector('tbody a[href*=dead]').focus()")
        self.assertEqual(self.focused(page), "2 dead letters of ill")

    def answer_yes(self, page):
        """The focus is on Cancel, for a key that was pressed too long."""
        page.wait("document.querySelector('dialog[open]')")
        self.assertEqual(self.focused(page), "Cancel")
        page.key("Tab", modifiers=browser.SHIFT)
        page.key("Enter")
        page.wait("!document.querySelector('dialog')")

    def test_the_focus_stays_when_what_is_shown_changes(self):
        hub = self.ward()
        page = self.sign_in(hub, "operate")
        self.show(page, "targets/ill")
        page.evaluate("document.querySelector('td a').focus()")
        self.kept(hub.producer()).post(b"x", Authorization=f"Bearer {self.tokens['publish']}")
        page.wait("document.querySelectorAll('td a').length === 4")
        self.assertEqual(self.focused(page), self.id)
        self.show(page, "messages/MESSAGE")
        self.press_key(page, "Send again to ill")
        self.answer_yes(page)
        self.said(page, "ill: it is sent again")
        page.wait("document.querySelectorAll('main tbody')[1].textContent.match(/HTTP_404/g).length === 2")
        self.assertEqual(self.focused(page), "Send again to ill")
        self.show(page, "dead-letters/1")
        self.press_key(page, "Replay")
        page.wait("document.querySelector('dialog[open]')")
        page.key("Escape")
        page.wait("!document.querySelector('dialog')")
        self.assertEqual(self.focused(page), "Replay ...")
        page.key("Enter")
        self.answer_yes(page)
        page.wait("document.querySelector('.pairs').textContent.includes('Statereplayed')")
        self.assertEqual(page.evaluate("document.activeElement.id"), "view")
        page.key("Tab")
        self.assertEqual(self.focused(page), "ill")

    def test_a_pause_by_keyboard_leaves_the_focus_on_resume(self):
        hub, _, _ = self.begin()
        page = self.open(hub, "targets/well")
        self.listen(page)
        for label, state, other in ("Pause", "paused", "Resume"), ("Resume", "live", "Pause"):
            self.press_key(page, label)
            page.wait(f"document.querySelector('.state').textContent === '{state}'")
            self.assertEqual(self.focused(page), other)
        self.assertEqual(page.evaluate("heard"), ["well: paused", "well: resumed", "well: live"])

    def test_more_letters_take_the_focus(self):
        hub, _, _ = self.begin()
        self.kept(hub.producer()).post_lines([{"body": "x"}] * 101)
        self.await_settled(2)
        page = self.open(hub, "dead-letters")
        self.listen(page)
        self.press_key(page, "More")
        page.wait("document.querySelectorAll('tbody tr').length === 101")
        page.wait("document.activeElement === document.querySelectorAll('[role=region]')[1]")
        self.assertEqual(page.evaluate("heard"), ["101 dead letters"])


if __name__ == "__main__":
    browser.skip_without()
    unittest.main(verbosity=2)
