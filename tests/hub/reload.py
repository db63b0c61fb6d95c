#!/usr/bin/env python3
"""Other settings for a hub that runs (I7, I15, I17): by SIGHUP and by call,
all or nothing."""
import contextlib
import hashlib
import hmac
import json
import os
import random
import re
import signal
import subprocess
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

    def write(self, targets, policy=QUICK, more="", tokens=None):
        """targets: name to a URL, or to a dictionary of settings. tokens: a
        file of them."""
        lines = ["listen:", "  address: 127.0.0.1:0",
                 tokens and f"  tokens: {tokens}", "store:",
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

    def put_file(self, name, text):
        """A file beside the settings."""
        return super().put(name, text + "\n")

    def put(self, text):
        """In one step, as an editor does."""
        with open(self.path + ".new", "w") as file:
            file.write(text)
        os.replace(self.path + ".new", self.path)

    def start(self):
        return self.hub(settings=self.path)

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
                    "b": {"url": b.url(), "start": "earliest"}})
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

    def test_a_pause_by_call_holds_while_it_is_gone(self):
        """Over a restart of the hub in that time, until it is resumed."""
        a, b = self.leaf(), self.leaf()
        self.write({"a": a.url(), "b": b.url()})
        first = self.start()
        pause = f"http://127.0.0.1:{first.port}/v1/targets/b/pause"
        urllib.request.urlopen(urllib.request.Request(pause, method="POST"))
        self.write({"a": a.url()})
        self.assertEqual(self.reload(first)["gone"], 1)
        self.assertEqual(first.stop(), 0)
        hub = self.start()
        hub.post(b"0")
        a.wait(1)
        self.write({"a": a.url(), "b": b.url()})
        self.reload(hub)
        target = f"http://127.0.0.1:{hub.port}/v1/targets/b"
        with urllib.request.urlopen(target) as answer:
            view = json.load(answer)
        self.assertEqual((view["state"], view["is_paused_by_call"]),
                         ("paused", True))
        self.assertEqual(b.receipts, [], "I7")
        urllib.request.urlopen(
            urllib.request.Request(target + "/resume", method="POST"))
        self.assertEqual([r.body for r in b.wait(1)], [b"0"])

    def test_a_pause_may_be_older_than_the_hub(self):
        a = self.leaf()
        self.write({"a": a.url()})
        first = self.start()
        pause = f"http://127.0.0.1:{first.port}/v1/targets/a/pause"
        urllib.request.urlopen(urllib.request.Request(pause, method="POST"))
        self.assertEqual(first.stop(), 0)
        hub = self.start()
        with urllib.request.urlopen(
                f"http://127.0.0.1:{hub.port}/v1/targets/a") as answer:
            view = json.load(answer)
        self.assertEqual((view["state"], view["state_since"]),
                         ("paused", None))

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


    def test_names_the_first_of_those_that_are_gone(self):
        url = self.leaf().url()
        self.write({name: url for name in "abcdefgh"})
        hub = self.start()
        self.write({name: url for name in "bcdefgh"})
        told = self.reload(hub)
        self.assertEqual((told["gone"], told["gone_targets"]), (1, "a"))
        self.write({"h": url})
        told = self.reload(hub)
        self.assertEqual((told["gone"], told["gone_targets"]),
                         (6, "b, c, d, e, f and 1 more"))
        self.assertNotIn("gone_targets", self.reload(hub))

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


class Policies(Reloading):
    """I28: who prints a target's policy prints the one that is applied."""
    BUDGET = "budget=ratio:0.2+10/s budget-empty=wait"

    def run_for(self, *words):
        ran = subprocess.run([os.environ["STAGGER"], *words], text=True,
                             capture_output=True, timeout=60)
        self.assertEqual((ran.returncode, ran.stderr), (0, ""), words)
        return ran.stdout

    def checked(self):
        """Of `check`: the first target that has a policy, and its text."""
        found = re.findall(r"^policy of (\S+)(?: and \d+ more)?:\n  (.*)$",
                           self.run_for("check", "-c", self.path), re.M)
        return dict(found)

    def planned(self, name):
        words = ["plan", "-c", self.path, "--target", name]
        policy, = json.loads(self.run_for(*words, "--json"))["policies"]
        self.assertEqual(policy["name"], name)
        whole = " ".join(self.run_for(*words).split())
        head = self.run_for(*words).split("\n\n")[0]
        self.assertEqual("".join(head.split()),
                         name + ":" + policy["text"].replace(" ", ""))
        if "breaker" in policy["text"]:
            self.assertIn("messages wait", whole)
        return policy["text"]

    def listed(self, hub):
        """Of the API, and of `status`."""
        url = f"http://127.0.0.1:{hub.port}"
        with urllib.request.urlopen(url + "/v1/targets?limit=100") as answer:
            rows = json.load(answer)["targets"]
        shown = json.loads(self.run_for("status", "--json", "--hub", url))
        policies = {row["name"]: row["policy"] for row in rows}
        self.assertEqual(policies, {row["name"]: row["policy"]
                                    for row in shown["targets"]})
        return policies

    def look(self, hub, names):
        """What all of them say, which is the same."""
        listed, checked = self.listed(hub), self.checked()
        for name in names:
            self.assertEqual(self.planned(name), listed[name])
            self.assertEqual(checked.get(name, listed[name]), listed[name])
        self.assertEqual(set(checked.values()), set(listed.values()))
        logged = {line["first"]: line["policy"] for line in hub.events("policy")}
        self.assertEqual({name: logged[name] for name in checked}, checked)
        return listed

    def test_are_said_in_the_same_words_everywhere(self):
        gone = self.leaf().url()
        targets = {"usual": gone,
                   "slow": {"url": gone + "/slow", "policy": "client"},
                   "own": {"url": gone + "/own", "policy": "quick"},
                   "bare": {"url": gone + "/bare",
                            "policy": "attempts=2 budget=none"},
                   "paced": {"url": gone + "/paced",
                             "policy": "broadcast rate=50/s"},
                   "faster": {"url": gone + "/faster", "rate": "70/s",
                              "policy": "broadcast rate=50/s"}}
        self.write(targets)
        self.put(open(self.path).read().replace(
            "defaults:\n  policy: quick\n", ""))
        hub = self.start()
        said = self.look(hub, targets)
        for name in ("usual", "slow", "own"):
            self.assertIn(self.BUDGET, said[name])
        self.assertNotIn("budget", said["bare"])
        self.assertIn(" rate=50/s ", said["paced"])
        self.assertIn(" rate=70/s ", said["faster"])
        self.assertNotIn("rate=", said["usual"])
        self.assertIn("jitter=none", said["usual"])
        self.assertIn("breaker=20:200ms-30s breaker-connect=3", said["usual"])
        # From fifty targets on waits are spread; a reload judges anew.
        targets.update({f"t{i}": f"{gone}/{i}" for i in range(44)})
        targets["paced"]["rate"] = "9/s"
        self.write(targets)
        self.put(open(self.path).read().replace(
            "defaults:\n  policy: quick\n", ""))
        self.reload(hub)
        said = self.look(hub, ["usual", "own", "paced", "t43"])
        self.assertEqual(len(said), 50)
        self.assertIn(" rate=9/s ", said["paced"])
        self.assertIn("jitter=50%", said["usual"])
        self.assertEqual(said["t43"], said["usual"])
        self.assertEqual(hub.stop(), 0)

    def test_that_draw_a_fixed_wait_say_so(self):
        self.write({"plain": "http://127.0.0.1:1/",
                    "exact": {"url": "http://127.0.0.1:1/exact",
                              "policy": "fixed base=2s jitter=none"},
                    "drawn": {"url": "http://127.0.0.1:1/drawn",
                              "policy": "fixed base=1s"}})
        said = self.run_for("check", "-c", self.path)
        self.assertRegex(said, r"policy of drawn:\n  fixed base=1s .*\n"
                               r"  waits: each is drawn between 0 and 1 s \(full "
                               r"jitter\); with jitter=none it is exactly 1 s\n")
        self.assertEqual(said.count("  waits: "), 1, said)


class Owners(Reloading):
    """Nothing points into settings that a reload has freed (I35). What is
    freed is overwritten, so that builds without sanitizers see it, too."""

    def start(self):
        return self.hub(settings=self.path,
                        before=("env", "MALLOC_PERTURB_=165"))

    def receive(self, hub, name, secret):
        """The status of a webhook that is signed with the secret."""
        body = b"hook"
        digest = hmac.new(secret.encode(), body, "sha256").hexdigest()
        request = urllib.request.Request(
            f"http://127.0.0.1:{hub.port}/v1/in/{name}", body,
            {"X-Hub-Signature-256": f"sha256={digest}"})
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:
                return answer.status
        except urllib.error.HTTPError as e:
            return e.code

    def test_receipts_are_copied_to_the_same_file(self):
        a = self.leaf()
        path = os.path.join(self.folder, "receipts.jsonl")
        self.write({"a": a.url()}, more=f"receipts: {{copy: 'file:{path}'}}")
        hub = self.start()
        for i in range(4):
            hub.post(b"x")
            a.wait(i + 1)
            self.reload(hub)
        self.assertEqual(hub.stop(), 0)
        with open(path) as file:
            self.assertEqual(len(file.readlines()), 4)

    def test_a_reload_refused_by_its_last_part_leaves_the_ingress(self):
        """The file of a receiver's URL is read last."""
        a = self.leaf()
        old, new = "first secret of 24 bytes", "other secret of 24 bytes"
        tokens = self.put_file("tokens", "publish sha256:" + hashlib.sha256(
            b"token-of-the-first-file").hexdigest())
        hook = ("inbound: [{{name: {}, scheme: github, secrets: ['{}']}}]")
        self.write({"a": a.url()}, tokens=tokens, more=hook.format("old", old))
        hub = self.start()
        self.assertEqual(self.receive(hub, "old", old), 202)
        os.rename(tokens, tokens + ".before")
        url = self.put_file("url", "nonsense")
        self.write(
            {"a": a.url()},
            tokens=self.put_file("tokens.new", "publish sha256:" + "0" * 64),
            more=hook.format("new", new) + "\nalerts: {receivers: "
            f"[{{name: chat, type: slack, url-file: {url}}}]}}")
        for _ in range(2):
            self.refuse(hub)
            self.assertEqual(self.receive(hub, "new", new), 404)
            self.assertEqual(self.receive(hub, "old", old), 202)
            hub.post(b"x", Authorization="Bearer token-of-the-first-file")
        self.assertEqual(hub.stop(), 0)


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

    def test_a_secret_of_what_needs_a_restart_may_be_rotated(self):
        """The rest of the file is reloaded, and each reload says so."""
        a, b = self.leaf(), self.leaf()
        path = self.put_file("collector", "Bearer one")
        more = ("traces: {endpoint: 'http://127.0.0.1:1/v1/traces', headers: "
                "{Authorization: {file: collector}, X-Kind: a}}")
        self.write({"a": a.url()}, more=more)
        hub = self.start()
        self.put_file("collector", "Bearer two")
        self.write({"a": a.url(), "b": b.url()}, more=more)
        for added in (1, 0):
            self.assertEqual(self.reload(hub)["added"], added)
            warned = [line["detail"] for line in hub.events("config-warning")
                      if "traces.headers" in line["detail"]]
            self.assertEqual(warned[-1],
                             f"`traces.headers`: the content of {path} has "
                             "changed, and takes effect at a restart")
            self.assertEqual(len(warned), 2 - added)
        status, answer = self.call(hub)
        self.assertEqual(status, 200)
        self.assertIn("takes effect at a restart", str(answer["warnings"]))
        hub.post(b"x")
        b.wait(1)
        self.write({"a": a.url()}, more=more.replace("X-Kind: a", "X-Kind: b"))
        self.assertIn("`traces.headers` has changed",
                      self.refuse(hub)["detail"])

    def test_keys_of_the_store_may_be_rotated(self):
        a = self.leaf()
        path = self.put_file("secrets.key", "0" * 64)
        self.write({"a": a.url()}, more=f"secrets: {{key: {path}}}")
        hub = self.start()
        self.reload(hub)
        self.put_file("secrets.key", "0" * 64 + "\n" + "1" * 64)
        self.reload(hub)
        self.reload(hub)
        self.assertEqual([line["detail"] for line in
                          hub.events("config-warning")
                          if "secrets.key" in line["detail"]],
                         [f"`secrets.key`: the content of {path} has changed, "
                          "and takes effect at a restart"] * 2)

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
