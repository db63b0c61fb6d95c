#!/usr/bin/env python3
"""--order key and strict: per target what comes next starts when the one before
has ended, with heads that fail in between, and over a kill -9 (I18)."""
import collections
import random

import case
import leaf

ATTEMPTS = 3
POLICY = f"fixed base=15ms jitter=none attempts={ATTEMPTS} breaker=none " \
         "budget=none"


class Ends:
    """What a message gets, by its target, position and attempt: most are taken
    at once, some fail first, some for good, some three times."""

    table = (["200"] * 14 + ["503 200", "503 503 200", "503 503 503", "404",
                             "503 404", "reset 200"])

    def __init__(self, seed):
        self.seed = seed

    def of(self, request):
        chance = random.Random(f"{self.seed} {request.path} {request.position}")
        # An attempt over the policy's comes after a crash.
        deeds = chance.choice(self.table).split()
        return deeds[min(request.attempt, len(deeds)) - 1]

    def answer(self, request):
        deed = request.deed = self.of(request)
        return leaf.reset if deed == "reset" else int(deed)

    @staticmethod
    def is_end(request):
        return (request.deed in ("200", "404")
                or request.attempt >= ATTEMPTS)


def find_flaw(receipts, lines):
    """lines: the positions in the order of the log, of each thing that is
    ordered. What started before the one ahead of it had ended, or None."""
    ended = set()
    by_position = {p: line for line in lines for p in line}
    ahead = {p: before for line in lines
             for before, p in zip([None, *line], line)}
    for request in receipts:
        before = ahead[request.position]
        if before is not None and before not in ended:
            return (f"{request!r} started before {before} had ended, of "
                    f"{by_position[request.position][:8]}...")
        if Ends.is_end(request):
            ended.add(request.position)
    missing = set(ahead) - ended
    return f"{len(missing)} did not end: {sorted(missing)[:5]}" if missing \
        else None


class Order(case.Case):
    def publish(self, producer, seed, count):
        """Returns the positions of each key, in the order of the log."""
        keys = collections.defaultdict(list)
        chance = random.Random(seed)
        messages = [{"body": str(i), "key": f"k{chance.randrange(5)}"}
                    for i in range(count)]
        ids = producer.post_lines(messages)
        for message, id in zip(messages, ids):
            keys[message["key"]].append(int(id.split("-")[1]))
        return keys

    def check(self, order, crashes, count):
        seed = random.randrange(10 ** 9)
        case.note(self, f"seed {seed}")
        ends = Ends(seed)
        server = self.leaf(ends.answer)
        targets = ["a", "b", "c"]
        words = ["--order", order, "--policy", POLICY]
        for name in targets:
            words += ["--to", f"{name}={server.url('/' + name)}"]
        hub = self.hub(*words)
        producer = self.kept(hub.producer())
        keys = collections.defaultdict(list)
        for i in range(crashes + 1):
            for key, positions in self.publish(producer, seed + i,
                                               count).items():
                keys[key] += positions
            if i == crashes:
                break
            # Somewhere in the middle of it.
            server.wait(len(server.receipts) + count)
            hub.kill()
            hub = self.hub(*words)
            producer = self.kept(hub.producer())
        self.await_settled(len(targets))
        self.assertEqual(hub.stop(), 0)
        every = sorted(p for line in keys.values() for p in line)
        lines = list(keys.values()) if order == "key" else [every]
        failed = 0
        for name in targets:
            receipts = server.of("/" + name)
            failed += sum(r.deed != "200" for r in receipts)
            flaw = find_flaw(receipts, lines)
            self.assertIsNone(flaw, f"{name}, seed {seed}")
            if not crashes:
                seen = collections.Counter((r.id, r.attempt) for r in receipts)
                self.assertEqual(set(seen.values()), {1}, "I16: once each")
            if order == "key":
                self.check_overtaking(receipts, keys)
        books = self.books()
        for name in targets:
            self.assertEqual(books[name]["routed"], len(every))
        case.note(self, f"{failed} of {len(server.receipts)} attempts failed")
        return server.receipts

    def check_overtaking(self, receipts, keys):
        """A key waits for itself and not for others: some message started
        before one of another key with a lower position."""
        firsts = [r.position for r in receipts if r.attempt == 1]
        self.assertNotEqual(firsts, sorted(firsts), "keys do not overtake")

    def test_strict_starts_each_when_the_one_before_has_ended(self):
        receipts = self.check("strict", crashes=0, count=120)
        self.assertTrue(any(r.deed != "200" for r in receipts))

    def test_strict_holds_over_kills(self):
        self.check("strict", crashes=4, count=60)

    def test_key_starts_each_when_the_one_before_of_its_key_has_ended(self):
        self.check("key", crashes=0, count=200)

    def test_key_holds_over_kills(self):
        self.check("key", crashes=4, count=80)

    def test_without_a_key_there_is_no_order(self):
        """What has no key waits for nothing, though the lane is by key."""
        server = self.leaf(lambda r: 503 if r.body == b"head" and r.attempt < 3
                           else 200)
        hub = self.hub("--to", server.url(), "--order", "key", "--policy",
                       "fixed base=1s jitter=none attempts=3")
        hub.post(b"head")
        server.wait(1)
        producer = self.kept(hub.producer())
        producer.post_lines([{"body": str(i)} for i in range(10)])
        receipts = server.wait(13)
        self.assertEqual(hub.stop(), 0)
        self.assertEqual(receipts[-1].body, b"head")
        self.assertEqual(receipts[-1].attempt, 3)

    def test_an_ordered_head_keeps_its_attempts_over_a_kill(self):
        server = self.leaf(lambda r: 503 if r.body == b"0" and r.attempt < 3
                           else 200)
        words = ("--to", server.url(), "--order", "strict", "--policy",
                 "fixed base=1s jitter=none attempts=5")
        hub = self.hub(*words)
        producer = self.kept(hub.producer())
        producer.post_lines([{"body": str(i)} for i in range(5)])
        first, = server.wait(1)
        case.wait_for(lambda: self.rows("SELECT * FROM parked"), "a row")
        hub.kill()
        hub = self.hub(*words)
        receipts = server.wait(7)
        self.await_settled(1)
        self.assertEqual(hub.stop(), 0)
        self.assertEqual([(r.body, r.attempt) for r in server.receipts],
                         [(b"0", 1), (b"0", 2), (b"0", 3), (b"1", 1),
                          (b"2", 1), (b"3", 1), (b"4", 1)])
        self.assertGreaterEqual(receipts[1].at - first.answered_at, 1)


if __name__ == "__main__":
    case.main()
