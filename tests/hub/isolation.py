#!/usr/bin/env python3
"""Bad targets cost the others nothing (I8): the delay of fifty healthy ones,
with and without three bad ones beside them; the hub's memory; and one healthy
lane beside two hundred that hang."""
import contextlib
import statistics
import time
from concurrent import futures

import case
import leaf

HEALTHY = 50
RATE = 100         # messages a second
SECONDS = 2.5      # of a round
ROUNDS, MOST = 3, 6
QUIET = 0.025      # p99 of those alone where the machine does little else
FACTOR, SLACK = 1.5, 0.005
CPU = 2
GROWTH = 8 << 20
# Those that are bad go on being so.
POLICY = "broadcast-wide base=200ms attempt-timeout=1s breaker=none"


def quantile(delays, share):
    return sorted(delays)[int(len(delays) * share)]


def publish(hub, seconds, rate=RATE):
    """At a steady rate. Returns when each message was due to be published, by
    its id: a hub that is slow to take one delays those behind it, too."""
    sent = {}
    with contextlib.closing(hub.producer()) as producer:
        begun_at, wall_at = time.monotonic(), time.time()
        for i in range(int(seconds * rate)):
            time.sleep(max(0, begun_at + i / rate - time.monotonic()))
            sent[producer.post(b"x" * 200)] = wall_at + i / rate
    return sent


class Side:
    """One of a pair: a hub with healthy targets, and maybe bad ones."""

    def __init__(self, test, bad):
        self.sink = test.sinks()
        words = ["--policy", POLICY]
        for i in range(HEALTHY):
            words += ["--to", f"t{i}={self.sink.url(f'/t{i}')}"]
        for name, url in bad.items():
            words += ["--to", f"{name}={url}"]
        test.count += 1
        self.hub = test.hub(*words, store=f"{test.store}{test.count}")

    def firsts(self, expected):
        """When each message first came to each target, once all have. On a
        slow machine one may time out, and come again."""
        firsts = {}
        for r in self.sink.receipts():
            firsts.setdefault((r["path"], r["id"]), r["time"])
        return firsts if len(firsts) == expected else None

    def end(self, sent, others):
        """What the healthy ones saw, and what it took."""
        expected = HEALTHY * (len(sent) + others)
        firsts = case.wait_for(lambda: self.firsts(expected),
                               f"{expected} deliveries")
        self.cpu = self.hub.cpu()
        self.hub.kill()
        delays = [at - sent[id] for (_, id), at in firsts.items()
                  if id in sent]
        self.p50, self.p99 = (quantile(delays, n) for n in (0.5, 0.99))


class Isolation(case.Case):
    count = 0

    def round(self, bad):
        """Two hubs at the same time, so that what else the machine does is in
        both: one has the bad targets, too."""
        pair = [Side(self, {}), Side(self, bad)]
        hubs = [side.hub for side in pair]

        def publish_to_both(seconds):
            return list(pool.map(lambda hub: publish(hub, seconds), hubs))

        with futures.ThreadPoolExecutor(2) as pool:
            # Connections are made, and limits grow.
            first = publish_to_both(0.4)
            sent = publish_to_both(SECONDS / 2)
            half = hubs[1].resident()
            for some, more in zip(sent, publish_to_both(SECONDS / 2)):
                some.update(more)
            grown = hubs[1].resident() - half
        if not case.is_sanitized():
            self.assertLessEqual(grown, GROWTH,
                                 "bytes grown in the second half")
        for side, ids, others in zip(pair, sent, first):
            side.end(ids, len(others))
        return pair

    def bad(self):
        hanging = self.leaf(lambda r: leaf.hang)
        return {"hole": self.kept(leaf.BlackHole()).url(),
                "hang": hanging.url(), "refuse": self.refused()}

    def test_three_bad_targets_do_not_delay_fifty_healthy_ones(self):
        bad = self.bad()
        rounds, quiet = [], []

        def is_kept(pairs, what, factor, slack):
            alone, beside, cpu_alone, cpu_beside = (
                statistics.median(getattr(pair[i], of) for pair in pairs)
                for of in (what, "cpu") for i in range(2))
            return (beside <= factor * alone + slack
                    and cpu_beside <= CPU * cpu_alone + 0.1)

        while len(quiet) < ROUNDS and len(rounds) < MOST:
            rounds.append(self.round(bad))
            if rounds[-1][0].p99 <= QUIET:
                quiet.append(rounds[-1])
        words = "; ".join(
            f"{which} p99 {[f'{pair[i].p99 * 1e3:.1f}' for pair in rounds]} "
            f"ms, CPU {[f'{pair[i].cpu:.2f}' for pair in rounds]} s"
            for i, which in enumerate(("alone", "beside them")))
        if len(quiet) == ROUNDS:
            kept = is_kept(quiet, "p99", FACTOR, SLACK)
        else: # the tail is that of the machine
            kept = is_kept(rounds, "p50", 3, 0.05)
            words += "; p50 was judged roughly, for the machine is busy"
        self.assertTrue(kept, words)
        case.note(self, words)

    def test_a_healthy_lane_beside_two_hundred_that_hang(self):
        """The delay of each message is a fraction of what those wait for."""
        hanging = self.leaf(lambda r: leaf.hang)
        sink = self.sinks()
        words = ["--policy", "broadcast attempt-timeout=20s"]
        for i in range(200):
            words += ["--to", f"h{i}={hanging.url(f'/{i}')}"]
        hub = self.hub(*words, "--to", f"well={sink.url()}", "--in-flight",
                       "16", "--drain", "0")
        sent = publish(hub, 2.5, rate=40)
        case.wait_for(lambda: len(sink.receipts()) >= len(sent), "receipts")
        receipts = sink.receipts()
        self.assertEqual({r["id"] for r in receipts}, set(sent))
        self.assertEqual(len(receipts), len(sent))
        delays = [r["time"] - sent[r["id"]] for r in receipts]
        # Theirs are 20 s at least.
        self.assertLess(max(delays), 5, "the longest delay")
        self.assertEqual(len({r.path for r in hanging.receipts}), 200)
        case.note(self, f"p99 {quantile(delays, 0.99) * 1e3:.1f} ms")
        hub.kill()


if __name__ == "__main__":
    case.main(at_once=1)
