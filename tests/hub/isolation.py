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
ROUNDS, MORE = 3, 4
FACTOR, SLACK = 1.5, 0.005
CPU = 2
GROWTH = 8 << 20
# Those that are bad go on being so.
POLICY = "broadcast-wide base=200ms attempt-timeout=300ms breaker=none"


def p99(delays):
    return sorted(delays)[int(len(delays) * 0.99)]


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

    def end(self, test, sent, others):
        """What the healthy ones saw, as p99."""
        wanted = HEALTHY * (len(sent) + others)
        case.wait_for(lambda: len(self.sink.receipts()) >= wanted,
                      f"{wanted} receipts")
        self.cpu = self.hub.cpu()
        receipts = self.sink.receipts()
        self.hub.kill()
        test.assertEqual(len({(r["path"], r["id"]) for r in receipts}),
                         wanted, "each message to each of them")
        test.assertEqual(len(receipts), wanted, "once")
        self.p99 = p99([r["time"] - sent[r["id"]] for r in receipts
                        if r["id"] in sent])


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
        self.assertLessEqual(grown, GROWTH, "bytes grown in the second half")
        for side, ids, others in zip(pair, sent, first):
            side.end(self, ids, len(others))
        return pair

    def bad(self):
        hanging = self.leaf(lambda r: leaf.hang)
        return {"hole": self.kept(leaf.BlackHole()).url(),
                "hang": hanging.url(), "refuse": self.refused()}

    def test_three_bad_targets_do_not_delay_fifty_healthy_ones(self):
        bad = self.bad()
        rounds = []

        def medians():
            return [statistics.median(getattr(pair[i], what)
                                      for pair in rounds)
                    for what in ("p99", "cpu") for i in range(2)]

        def is_kept():
            alone, beside, cpu_alone, cpu_beside = medians()
            return (beside <= FACTOR * alone + SLACK
                    and cpu_beside <= CPU * cpu_alone + 0.1)

        # Where the machine has other things to do, more of them settle it.
        for count in (ROUNDS, MORE):
            rounds += [self.round(bad) for _ in range(count)]
            if is_kept():
                break
        words = "; ".join(
            f"{which} p99 {[f'{pair[i].p99 * 1e3:.1f}' for pair in rounds]} "
            f"ms, CPU {[f'{pair[i].cpu:.2f}' for pair in rounds]} s"
            for i, which in enumerate(("alone", "beside them")))
        self.assertTrue(is_kept(), words)
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
        case.note(self, f"p99 {p99(delays) * 1e3:.1f} ms")
        hub.kill()


if __name__ == "__main__":
    case.main(at_once=1)
