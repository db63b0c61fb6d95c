#!/usr/bin/env python3
"""Other settings for a hub that runs (I7, I15, I17): by SIGHUP and by call,
all or nothing."""
import contextlib
import json
import os
import random
import signal
import threading
import time
import urllib.error
import urllib.request

import case
import leaf

QUICK = "broadcast base=50ms breaker=none"
ROUNDS = 100


class Reloading(case.Case):
    """A hub with a settings file that the test writes anew."""

    def setUp(self):
        super().setUp()
        self.path = os.path.join(self.folder, "stagger.yaml")

    def write(self, targets, policy=QUICK, more=""):
        """targets: name to a URL, or to a dictionary of settings."""
        lines = ["listen:", "  address: 127.0.0.1:0", "store:",
                 f"  path: {self.store}", "policies:", f"  quick: {policy}",
                 "defaults:", "  policy: quick", more, "targets:"]
        for name, settings in targets.items():
            if isinstance(settings, str):
                settings = {"url": settings}
            lines.append(f"  - name: {name}")
            lines += [f"    {key}: {json.dumps(value)}"
                      for key, value in settings.items()]
        if not targets:
            lines[-1] = "targets: []"
        self.put("\n".join(filter(None, lines)) + "\n")

    def put(self, text):
        """In one step, as an editor does."""
        with open(self.path + ".new", "w") as file:
            file.write(text)
        os.replace(self.path + ".new", self.path)

    def start(self):
        return self.hub(settings=self.path)

    def reload(self, hub):
        hub.process.send_signal(signal.SIGHUP)
        return hub.event("reloaded")

    def refuse(self, hub):
        hub.process.send_signal(signal.SIGHUP)
        return hub.event("reload-refused")

    def call(self, hub):
        """By the API: the status and the answer."""
        request = urllib.request.Request(
            f"http://127.0.0.1:{hub.port}/v1/reload", method="POST")
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:
                return answer.status, json.load(answer)
        except urllib.error.HTTPError as e:
            return e.code, json.load(e)


class Targets(Reloading):
    def test_a_new_target_gets_what_comes_from_now_on(self):
        a, b = self.leaf(), self.leaf()
        self.write({"a": a.url()})
        hub = self.start()
        hub.post(b"before")
        a.wait(1)
        self.write({"a": a.url(), "b": b.url()})
        self.assertEqual(self.reload(hub)["added"], 1)
        hub.post(b"after")
        a.wait(2)
        self.assertEqual([r.body for r in b.wait(1)], [b"after"])

    def test_a_new_target_gets_what_the_log_still_has(self):
        """Messages are kept for one that is paused."""
        a, b = self.leaf(), self.leaf()
        slow = {"url": self.leaf().url(), "paused": True}
        self.write({"a": a.url(), "slow": slow})
        hub = self.start()
        for i in range(50):
            hub.post(b"%d" % i)
        a.wait(50)
        self.write({"a": a.url(), "slow": slow,
                    "b": {"url": b.url(), "from": "oldest"}})
        self.reload(hub)
        hub.post(b"50")
        self.assertEqual({r.body for r in b.wait(51)},
                         {b"%d" % i for i in range(51)})
        self.assertEqual(hub.stop(), 0)
        self.books()

    def test_one_that_is_gone_keeps_what_it_has_until_it_comes_back(self):
        a, b = self.leaf(), self.leaf()
        self.write({"a": a.url(), "b": b.url()})
        hub = self.start()
        hub.post(b"0")
        a.wait(1), b.wait(1)
        self.write({"a": a.url()})
        self.assertEqual(self.reload(hub)["gone"], 1)
        for i in range(1, 20):
            hub.post(b"%d" % i)
        a.wait(20)
        self.assertEqual(len(b.receipts), 1, "I7")
        self.write({"a": a.url(), "b": b.url()})
        self.reload(hub)
        self.assertEqual({r.body for r in b.wait(20)},
                         {b"%d" % i for i in range(20)})

    def test_the_url_may_change(self):
        """The lane is its name."""
        a, b = self.leaf(lambda r: 503), self.leaf()
        self.write({"a": a.url()}, "broadcast attempts=50 base=20ms "
                                   "breaker=none")
        hub = self.start()
        hub.post(b"x")
        a.wait(3)
        self.write({"a": b.url()}, "broadcast attempts=50 base=20ms "
                                   "breaker=none")
        self.reload(hub)
        (r, *_) = b.wait(1)
        self.assertGreaterEqual(r.attempt, 3, "it goes on counting")
        count = len(a.receipts)
        hub.post(b"y")
        b.wait(2)
        self.assertEqual(len(a.receipts), count)

    def test_it_can_be_paused_and_go_on(self):
        a = self.leaf()
        self.write({"a": {"url": a.url(), "paused": True}})
        hub = self.start()
        hub.post(b"x")
        self.write({"a": a.url()})
        self.assertEqual(a.receipts, [])
        self.reload(hub)
        a.wait(1)
        self.write({"a": {"url": a.url(), "paused": True}})
        self.reload(hub)
        hub.post(b"y")
        self.write({"a": {"url": a.url()}})
        self.assertEqual(len(a.receipts), 1)
        self.reload(hub)
        a.wait(2)

    def test_a_policy_may_change(self):
        a = self.leaf(lambda r: 503)
        self.write({"a": a.url()}, "broadcast attempts=2 base=10ms "
                                   "breaker=none")
        hub = self.start()
        hub.post(b"x")
        hub.event("attempt-failed", decision="dead")
        self.write({"a": a.url()}, "broadcast attempts=4 base=10ms "
                                   "breaker=none")
        self.reload(hub)
        hub.post(b"y")
        a.wait(6)
        self.assertEqual(hub.stop(), 0)
        self.assertEqual([row["attempts"] for row in self.rows()], [2, 4])


    def test_the_level_of_the_log_and_the_drain_may_change(self):
        a = self.leaf(lambda r: leaf.hang)
        self.write({"a": a.url()}, more="drain: 1h")
        hub = self.start()
        hub.post(b"x")
        a.wait(1)
        self.write({"a": a.url()}, more="drain: 10ms\nlog: {level: debug}")
        self.reload(hub)
        b = self.leaf()
        self.write({"a": a.url(), "b": b.url()},
                   more="drain: 10ms\nlog: {level: debug}")
        self.reload(hub)
        hub.post(b"y")
        hub.event("delivered", target="b")
        self.assertEqual(hub.stop(), 3)


class Mistakes(Reloading):
    def test_a_broken_file_changes_nothing_and_says_where(self):
        a = self.leaf()
        self.write({"a": a.url()})
        hub = self.start()
        self.put("targets:\n  - name: b\n    ulr: http://127.0.0.1/\n")
        self.assertIn(f"{self.path}:2:11", self.refuse(hub)["detail"])
        line = hub.event("reload-refused")
        self.assertIn(f"{self.path}:3:5", line["detail"])
        self.assertIn("did you mean `url`", line["detail"])
        status, answer = self.call(hub)
        self.assertEqual(status, 422)
        self.assertIn(":3:5", answer["errors"][1])
        hub.post(b"x")
        a.wait(1)

    def test_what_needs_a_restart_is_refused(self):
        a = self.leaf()
        self.write({"a": a.url()})
        hub = self.start()
        self.store += "2"
        self.write({"a": a.url()})
        self.assertIn("restart", self.refuse(hub)["detail"])

    def test_no_file_is_refused(self):
        a = self.leaf()
        self.write({"a": a.url()})
        hub = self.start()
        os.remove(self.path)
        self.assertIn(self.path, self.refuse(hub)["detail"])
        hub.post(b"x")
        a.wait(1)


class UnderLoad(Reloading):
    """A hundred times, with broken files among them."""

    def publish(self, hub, ids, over):
        with contextlib.closing(hub.producer()) as producer:
            while not over.is_set():
                ids.append(producer.post(b"x" * 100))
                time.sleep(0.002)

    def broken(self, dice, targets):
        self.write(targets)
        with open(self.path) as file:
            text = file.read()
        return dice.choice([
            text.replace("name:", "nmae:", 1), text + "\ttargets: 3\n",
            text[:dice.randrange(20, len(text) - 20)] + "\n}", "", "[]",
            text.replace("quick: ", "quick: attempts=0 ", 1),
            text.replace("    url:", "    in-flight: 0\n    url:", 1)])

    def test_a_hundred_times(self):
        dice = random.Random(time.time_ns())
        flaky = self.leaf(lambda r: 503 if r.attempt == 1 and dice.random()
                          < 0.1 else 200)
        steady = self.leaf()
        names = [f"t{i}" for i in range(8)]
        base = {"steady": steady.url("/steady")}
        self.write(base)
        hub = self.start()
        ids, over, refused = [], threading.Event(), 0
        thread = threading.Thread(target=self.publish, args=(hub, ids, over))
        thread.start()
        self.addCleanup(over.set)
        known = set()
        for i in range(ROUNDS):
            if i % 3 == 2:
                self.put(self.broken(dice, base))
                self.refuse(hub)
                refused += 1
                continue
            chosen = dice.sample(names, dice.randrange(len(names) + 1))
            paused = set(dice.sample(chosen, len(chosen) // 3))
            known |= set(chosen)
            self.write(base | {name: {"url": flaky.url("/" + name),
                                      "paused": name in paused,
                                      "in-flight": dice.randrange(1, 64)}
                               for name in chosen})
            self.reload(hub)
            at = time.monotonic()
            still = [r for r in list(flaky.receipts)
                     if r.at > at and r.path[1:] not in set(chosen) - paused]
            self.assertEqual(still, [], "I7")
        over.set()
        thread.join()
        self.write(base | {name: flaky.url("/" + name) for name in known})
        self.reload(hub)
        self.await_settled(len(known) + 1)
        self.assertEqual(hub.stop(), 0)
        self.assertEqual(refused, ROUNDS // 3)
        self.assertEqual({r.id for r in steady.receipts}, set(ids))
        self.assertEqual(len(steady.receipts), len(ids), "I16")
        books = self.books()
        self.assertEqual(books["steady"]["delivered"], len(ids))
        for name in known:
            got = {r.id for r in flaky.of("/" + name)}
            self.assertEqual(len(got), books[name]["routed"], "I1")
            self.assertEqual(books[name]["delivered"], books[name]["routed"])


case.main()
