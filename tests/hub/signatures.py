#!/usr/bin/env python3
"""Signed requests, as receivers verify them: what is signed, with which secrets,
and what nobody else can say."""
import base64
import contextlib
import hashlib
import hmac
import json
import os
import signal
import subprocess

import case
import targets
from case import STAGGER

RAW = bytes(range(32))
ONE = "whsec_" + base64.b64encode(RAW).decode()
TWO = "whsec_" + base64.b64encode(RAW[::-1]).decode()
WORD = "It's a Secret to Everybody"
STANDARD = "standard-webhooks"


def key(secret):
    return base64.b64decode(secret.removeprefix("whsec_"))


def standard(secret, request):
    """The signature that Webhook-Signature is to have for this secret."""
    signed = b".".join((request.one("webhook-id").encode(),
                        request.one("webhook-timestamp").encode(),
                        request.body))
    digest = hmac.new(key(secret), signed, "sha256").digest()
    return "v1," + base64.b64encode(digest).decode()


class Signatures(case.ByFile):
    def check(self, request, *secrets):
        self.assertEqual(request.headers["webhook-id"], [request.id])
        self.assertEqual(request.headers["webhook-signature"],
                         [" ".join(standard(s, request) for s in secrets)])
        self.assertAlmostEqual(int(request.one("webhook-timestamp")),
                               request.wall, delta=5)

    def test_each_attempt_is_signed_anew_under_one_id(self):
        leaf = self.leaf(lambda r: 503 if r.attempt == 1 else 200)
        self.put("one", ONE + "\n")
        hub = self.start([{
            "name": "a", "url": leaf.url(),
            "policy": "fixed base=1100ms jitter=none attempts=3",
            "sign": {"scheme": STANDARD, "secrets": {"file": "one"}}}])
        hub.post(b'{"test": 2432232314}')
        first, second = leaf.wait(2)
        self.check(first, ONE)
        self.check(second, ONE)
        self.assertEqual(first.id, second.id)
        self.assertLess(int(first.one("webhook-timestamp")),
                        int(second.one("webhook-timestamp")))
        self.assertEqual(hub.stop(), 0)
        self.assertNotIn(ONE[6:], json.dumps(hub.lines) + str(hub.noise))

    def test_a_replay_has_the_id_of_the_first_time(self):
        leaf = self.leaf(lambda r: 400 if len(leaf.receipts) == 1 else 200)
        hub = self.start([{"name": "a", "url": leaf.url(), "sign": {
            "scheme": STANDARD, "secrets": [ONE]}}])
        hub.post(b"x")
        case.wait_for(self.rows, "the dead letter")
        with contextlib.closing(hub.producer()) as producer:
            producer.http.request("POST", "/v1/dead-letters/replay",
                                  json.dumps({"all": True}),
                                  {"Content-Type": "application/json"})
            self.assertEqual(producer.http.getresponse().status, 202)
        first, again = leaf.wait(2)
        self.check(again, ONE)
        self.assertEqual(again.one("webhook-id"), first.one("webhook-id"))
        hub.stop()

    def pem(self, name, *kind):
        """A private key in a file, and the file of its public one."""
        paths = [os.path.join(self.folder, f"{name}{part}.pem")
                 for part in ("", "-public")]
        for words in (["genpkey", *kind, "-out", paths[0]],
                      ["pkey", "-in", paths[0], "-pubout", "-out", paths[1]]):
            subprocess.run(["openssl", *words], check=True,
                           capture_output=True)
            os.chmod(words[words.index("-out") + 1], 0o600)
        return paths

    def test_messages_are_signed_as_rfc_9421_has_it(self):
        ed = self.pem("ed", "-algorithm", "ed25519")
        ec = self.pem("ec", "-algorithm", "EC", "-pkeyopt",
                      "ec_paramgen_curve:P-256")
        rsa = self.pem("rsa", "-algorithm", "RSA")
        self.put("word", WORD + "\n")
        keys = {"ed": ed, "ec": ec, "rsa": rsa, "rsa-old": rsa,
                "word": [os.path.join(self.folder, "word")] * 2}
        sinks = {name: self.sinks("--verify", public)
                 for name, (_, public) in keys.items()}
        sinks["wrong"], keys["wrong"] = self.sinks("--verify", ed[1]), ec
        leaf = self.leaf()
        hub = self.start([
            {"name": name, "url": sinks[name].url("/a%20b?c=d"),
             "method": "PUT", "sign": {
                 "scheme": "rfc9421", "secrets": [{"file": keys[name][0]}],
                 "key-id": name, **more}}
            for name, more in (("ed", {}), ("wrong", {}), ("rsa", {}), (
                "rsa-old", {"algorithm": "rsa-v1_5-sha256"}), ("ec", {"covers": [
                "@scheme", "@authority", "@path", "@query", "@request-target",
                "content-digest"]}), ("word", {}))] + [
            {"name": "leaf", "url": leaf.url(), "sign": {
                "scheme": "rfc9421", "secrets": {"file": "word"},
                "covers": ["content-digest", "content-type"]}}],
            listen={"address": "127.0.0.1:0",
                    "headers": ["X-*", "Content-Digest"]})
        for body in b"", os.urandom(100_000):
            hub.post(body, Content_Digest="sha-256=:forged:")
        case.wait_for(lambda: len(self.rows()) == 2, "two dead letters")
        for name in "ed", "ec", "rsa", "rsa-old", "word":
            case.wait_for(lambda: len(sinks[name].receipts()) == 2, name)
        self.assertEqual({row["target"]: row["http_status"]
                          for row in self.rows()}, {"wrong": 401})
        for receipt in leaf.wait(2):
            digest = hashlib.sha256(receipt.body).digest()
            self.assertEqual(receipt.headers["content-digest"], [
                f"sha-256=:{base64.b64encode(digest).decode()}:"])
            self.assertRegex(receipt.one("signature-input"),
                             r'^sig=\("content-digest"\);created=\d+;alg=')
        self.assertEqual(hub.stop(), 0)

    def pair(self, name):
        made = subprocess.run(
            [STAGGER, "secret", "new", "--ed25519",
             os.path.join(self.folder, name)], check=True, text=True,
            capture_output=True)
        return next(word for word in made.stdout.split()
                    if word.startswith("whpk_"))

    def test_signatures_that_take_long_outlive_their_target(self):
        """Eight of Ed25519 over 1 MB take 25 ms, on another thread: meanwhile
        their target gets other secrets, is paused, or goes."""
        publics = [self.pair(f"key{i}") for i in range(2)]
        sinks = self.sinks("--verify", publics[0], "--verify", publics[1])
        other = self.leaf()

        def settings(turn, names=("a", "b")):
            secrets = [{"file": f"key{turn % 2}"}] * 8
            return self.write([{
                "name": name, "in-flight": 8,
                "url": sinks.url() if name == "a" else other.url(),
                "policy": "fixed base=10ms attempts=unlimited",
                "sign": {"scheme": STANDARD, "secrets": secrets}}
                for name in names])
        hub = self.hub(settings=settings(0))
        bodies = [bytes([i]) + os.urandom(1 << 20) for i in range(16)]
        for turn, body in enumerate(bodies):
            hub.post(body)
            if turn % 4 == 3:
                settings(turn // 4, ("a",) if turn == 11 else ("a", "b"))
                self.reload(hub)
        case.wait_for(
            lambda: len({r["id"] for r in sinks.receipts()}) == len(bodies),
            "all of them")
        self.assertEqual(hub.stop(), 0)
        self.assertEqual(self.rows(), [])

    def test_a_hub_that_stops_or_dies_while_it_signs_loses_nothing(self):
        sinks = self.sinks("--verify", self.pair("key"))
        path = self.write([{"name": "a", "url": sinks.url(), "in-flight": 64,
                            "sign": {"scheme": STANDARD,
                                     "secrets": [{"file": "key"}] * 8}}])
        ids = set()
        for how in ([signal.SIGTERM], [signal.SIGTERM, signal.SIGTERM],
                    [signal.SIGKILL]):
            hub = self.hub(settings=path)
            ids |= {hub.post(os.urandom(1 << 20)) for _ in range(8)}
            for each in how:
                hub.process.send_signal(each)
            hub.wait()
        hub = self.hub(settings=path)
        case.wait_for(
            lambda: ids <= {r["id"] for r in sinks.receipts()}, "all")
        self.assertEqual(hub.stop(), 0)
        self.assertEqual(self.rows(), [])

    def test_bodies_of_all_kinds_are_signed_as_they_are(self):
        leaf = self.leaf()
        hub = self.start([{"name": "a", "url": leaf.url(), "sign": {
            "scheme": STANDARD, "secrets": [ONE, TWO]}}])
        bodies = [b"", b"\0\xff\r\n", "Grüße, 世界".encode(),
                  os.urandom(1 << 20)]
        for body in bodies:
            hub.post(body)
        receipts = leaf.wait(len(bodies))
        self.assertCountEqual([r.body for r in receipts], bodies)
        for receipt in receipts:
            self.check(receipt, ONE, TWO)
        hub.stop()

    def test_each_scheme_has_its_headers(self):
        leaves = {name: self.leaf() for name in
                  ("github", "stripe", "slack", "plain")}
        signs = {
            "github": {"scheme": "github", "secrets": [WORD]},
            "stripe": {"scheme": "stripe", "secrets": [ONE, TWO]},
            "slack": {"scheme": "custom", "header": "X-Slack-Signature",
                      "timestamp-header": "X-Slack-Request-Timestamp",
                      "signs": "v0:{timestamp}:{body}", "prefix": "v0=",
                      "secrets": [WORD]},
            "plain": {"scheme": "none"}}
        hub = self.start([{"name": name, "url": leaf.url(),
                           "sign": signs[name]}
                          for name, leaf in leaves.items()],
                         defaults={"sign": {"scheme": STANDARD,
                                            "secrets": [ONE]}})
        hub.post(b"Hello, World!")
        at = {name: leaf.wait(1)[0] for name, leaf in leaves.items()}

        self.assertEqual(
            at["github"].headers["x-hub-signature-256"],
            ["sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c"
             "8b043e17"])
        t, *found = at["stripe"].one("stripe-signature").split(",")
        self.assertEqual(found, [
            "v1=" + hmac.new(s.encode(), t[2:].encode() + b".Hello, World!",
                             "sha256").hexdigest() for s in (ONE, TWO)])
        t = at["slack"].one("x-slack-request-timestamp")
        self.assertEqual(at["slack"].one("x-slack-signature"), "v0=" + hmac.new(
            WORD.encode(), f"v0:{t}:Hello, World!".encode(),
            "sha256").hexdigest())
        for name, request in at.items():
            self.assertNotIn("webhook-signature", request.headers, name)
        hub.stop()

    def test_a_sink_verifies_what_a_hub_signs(self):
        public, private = (
            "whpk_1SiA4o9hyqTCpIqC5V9HUakiiaeACeqfZTInDBbOir4=",
            "whsk_6Xb/dCcHpPea21PS1N9VY/NZW723CEc77N4rJCubMbc=")
        schemes = {"one": (STANDARD, ONE, ONE), "github": ("github", ONE, ONE),
                   "stripe": ("stripe", ONE, ONE),
                   "pair": (STANDARD, private, public),
                   "wrong": (STANDARD, ONE, TWO)}
        sinks = {name: self.sinks("--verify", verified)
                 for name, (_, _, verified) in schemes.items()}
        hub = self.start([
            {"name": name, "url": sinks[name].url(),
             "sign": {"scheme": scheme, "secrets": [secret]}}
            for name, (scheme, secret, _) in schemes.items()])
        for body in b"", os.urandom(100_000):
            hub.post(body)
        case.wait_for(lambda: len(self.rows()) == 2, "two dead letters")
        self.await_settled(len(schemes))
        self.assertEqual(hub.stop(), 0)
        self.assertEqual({row["target"]: row["http_status"]
                          for row in self.rows()}, {"wrong": 401})
        for name, books in self.books().items():
            self.assertEqual(books["delivered"], 0 if name == "wrong" else 2)

    def test_a_publisher_cannot_say_a_header_of_the_signature(self):
        """Nor say it twice; a target without signatures gets what came."""
        signed, custom, plain = self.leaf(), self.leaf(), self.leaf()
        hub = self.start(
            [{"name": "signed", "url": signed.url(),
              "sign": {"scheme": "github", "secrets": [WORD]}},
             {"name": "custom", "url": custom.url(),
              "sign": {"scheme": "custom", "header": "X-Sig",
                       "timestamp-header": "X-Time", "secrets": [WORD]}},
             {"name": "plain", "url": plain.url()}],
            listen={"address": "127.0.0.1:0", "headers": ["X-*", "x_*"]})
        with contextlib.closing(hub.producer()) as producer:
            producer.http.putrequest("POST", "/v1/messages")
            for line in ("Content-Length: 1", "X-Hub-Signature-256: forged",
                         "x_sig: forged", "X_Time: forged",
                         "Webhook-Signature: forged"):
                producer.http.putheader(*line.split(": "))
            producer.http.endheaders(b"x")
            self.assertEqual(producer.http.getresponse().status, 202)
        [signed], [custom], [plain] = (leaf.wait(1) for leaf in
                                       (signed, custom, plain))
        digest = hmac.new(WORD.encode(), b"x", "sha256").hexdigest()
        self.assertEqual(signed.headers["x-hub-signature-256"],
                         ["sha256=" + digest])
        self.assertEqual(custom.headers["x-sig"], [digest])
        self.assertEqual(len(custom.headers["x-time"]), 1)
        self.assertNotIn(b"forged", b"\n".join(
            line for line in custom.head.split(b"\r\n")
            if not line.lower().startswith(b"x-hub")))
        self.assertEqual(plain.headers["x-hub-signature-256"], ["forged"])
        self.assertNotIn("webhook-signature", plain.headers)
        hub.stop()

    def test_a_reload_takes_the_files_as_they_are_then(self):
        leaf = self.leaf()
        self.put("one", ONE)
        target = {"name": "a", "url": leaf.url(), "sign": {
            "scheme": STANDARD, "secrets": [{"file": "one"}]}}
        hub = self.start([target])
        hub.post(b"1")
        self.check(leaf.wait(1)[0], ONE)
        self.put("one", TWO)
        self.assertEqual(self.reload(hub)["changed"], 1)
        hub.post(b"2")
        self.check(leaf.wait(2)[1], TWO)
        self.put("two", ONE)
        target["sign"]["secrets"].insert(0, {"file": "two"})
        self.write([target])
        self.reload(hub)
        hub.post(b"3")
        self.check(leaf.wait(3)[2], ONE, TWO)
        self.put("one", "whsec_AAAA")
        hub.process.send_signal(signal.SIGHUP)
        refused = hub.event("reload-refused")
        self.assertRegex(refused["detail"], r"`sign\.secrets`, the file .*one: "
                         "the secret has 3 bytes; expected 24 at least")
        hub.post(b"4")
        self.check(leaf.wait(4)[3], ONE, TWO)
        hub.stop()

    def test_secrets_are_not_shown_and_not_for_others(self):
        path = self.write([{"name": "a", "url": "http://127.0.0.1:1/",
                            "sign": {"scheme": STANDARD,
                                     "secrets": [{"file": "one"}, ONE]}}])
        self.put("one", TWO)
        told = subprocess.run([STAGGER, "check", "-c", path], text=True,
                              capture_output=True, timeout=60)
        self.assertEqual(told.returncode, 0, told.stderr)
        self.assertNotIn(ONE[6:], told.stdout + told.stderr)
        self.assertNotIn(TWO[6:], told.stdout + told.stderr)
        self.put("one", TWO, 0o644)
        told = subprocess.run([STAGGER, "check", "-c", path], text=True,
                              capture_output=True, timeout=60)
        self.assertEqual(told.returncode, 2)
        self.assertRegex(told.stdout + told.stderr,
                         r"`sign\.secrets`: others may use the file .*one "
                         r"\(mode 0644\).*chmod 600")


class ByCall(targets.Targets):
    """Targets by API: written, never read back."""

    def body(self, leaf, *secrets):
        return {"name": "b", "url": leaf.url(),
                "sign": {"scheme": STANDARD, "secrets": list(secrets)}}

    def test_secrets_are_written_and_never_read(self):
        a, b = self.leaf(), self.leaf()
        hub = self.start({"a": a.url()})
        made = self.good(201, hub, "POST", body=self.body(b, ONE))
        shown = {"scheme": STANDARD, "secrets": ["***"]}
        self.assertEqual(made.json["settings"]["sign"], shown)
        hub.post(b"1")
        self.check(b.wait(1)[0], ONE)

        # What was read is put back, with a new secret before the old one.
        kept = self.good(200, hub, "GET", "/b").json["settings"]
        self.assertEqual(kept["sign"], shown)
        kept["sign"]["secrets"].insert(0, TWO)
        self.good(200, hub, "PUT", "/b", body=kept)
        hub.post(b"2")
        self.check(b.wait(2)[1], TWO, ONE)
        self.good(200, hub, "PATCH", "/b", body={
            "sign": {"secrets": ["***"]}})
        hub.post(b"3")
        self.check(b.wait(3)[2], TWO)
        self.assertEqual(hub.stop(), 0)
        with open(self.store, "rb") as store:
            self.assertNotIn(TWO[6:].encode(), store.read())

        hub = self.start()
        hub.post(b"4")
        self.check(b.wait(4)[3], TWO)
        self.good(200, hub, "PATCH", "/b", body={"sign": None})
        hub.post(b"5")
        self.assertNotIn("webhook-id", b.wait(5)[4].headers)
        hub.stop()
        self.assertNotIn(ONE[6:], json.dumps(hub.lines) + str(hub.noise))

    def test_defaults_hold_for_targets_of_calls(self):
        """Also when a reload has changed them, or was refused."""
        b = self.leaf()

        def defaults(*secrets):
            return {"policy": "quick", "sign": {"scheme": STANDARD,
                                                "secrets": list(secrets)}}

        hub = self.start({}, defaults=defaults(ONE))
        self.good(201, hub, "POST", body={"name": "b", "url": b.url()})
        hub.post(b"1")
        self.check(b.wait(1)[0], ONE)
        for count, secrets, event in ((2, [TWO, ONE], "reloaded"),
                                      (3, ["hush!"], "reload-refused")):
            self.write({"a": self.leaf().url()}, defaults=defaults(*secrets))
            hub.process.send_signal(signal.SIGHUP)
            hub.event(event)
            hub.post(b"x")
            self.check(b.wait(count)[-1], TWO, ONE)
        hub.stop()

    def test_one_secret_may_be_alone(self):
        b = self.leaf()
        hub = self.start({"a": self.leaf().url()})
        body = {**self.body(b), "sign": {"scheme": STANDARD, "secrets": ONE}}
        made = self.good(201, hub, "POST", body=body).json["settings"]
        self.assertEqual(made["sign"]["secrets"], "***")
        self.good(200, hub, "PUT", "/b", body={**made, "rate": "9/s"})
        hub.post(b"1")
        self.check(b.wait(1)[0], ONE)
        hub.stop()

    def test_what_is_wrong_is_told_by_its_place(self):
        b = self.leaf()
        hub = self.start({"a": b.url()})

        def errors(*secrets):
            answer = self.good(422, hub, "POST", body=self.body(b, *secrets))
            return {e["pointer"]: e["detail"] for e in answer.json["errors"]}

        self.assertIn("is not Base64", errors("hush!")["/sign/secrets"])
        self.assertIn("there already", errors(ONE, "***")["/sign/secrets/1"])
        found = errors({"file": "/etc/passwd"})
        self.assertIn("a call cannot read files", found["/sign/secrets/0"])
        hub.stop()

    def test_without_a_key_a_secret_is_refused(self):
        b = self.leaf()
        hub = self.start({"a": b.url()}, secrets={})
        refused = self.good(422, hub, "POST", body=self.body(b, ONE))
        self.assertIn("`secrets.key`", refused.json["detail"])
        self.assertEqual(refused.json["errors"][0]["pointer"],
                         "/sign/secrets")
        hub.stop()

    check = Signatures.check


if __name__ == "__main__":
    case.main()
