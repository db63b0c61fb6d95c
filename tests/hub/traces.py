#!/usr/bin/env python3
"""W3C Trace Context: each attempt is a child of what the message came with, or
of a trace that the hub began."""
import re

import case

TRACE = "0af7651916cd43dd8448eb211c80319c"
PARENT = "b7ad6b7169203331"
SHAPE = re.compile("00-([0-9a-f]{32})-([0-9a-f]{16})-0([01])")


def parts(receipt):
    """Trace id, parent id and whether it is sampled; there is one header."""
    values = receipt.headers["traceparent"]
    assert len(values) == 1, values
    found = SHAPE.fullmatch(values[0])
    assert found, values
    return found[1], found[2], found[3] == "1"


class Traces(case.Case):
    def test_a_trace_goes_on_with_a_new_parent_for_each_attempt(self):
        a = self.leaf(lambda r: 503 if r.attempt == 1 else 200)
        b = self.leaf()
        hub = self.hub("--to", f"a={a.url()}", "--to", f"b={b.url()}",
                       "--policy", "fixed base=10ms retry=5xx")
        hub.post(b"x", traceparent=f"00-{TRACE}-{PARENT}-01",
                 tracestate="rojo=1,congo=2", X_Other="kept")
        receipts = a.wait(2) + b.wait(1)
        found = [parts(r) for r in receipts]
        self.assertEqual({(trace, sampled) for trace, _, sampled in found},
                         {(TRACE, True)})
        parents = {parent for _, parent, _ in found}
        self.assertEqual(len(parents | {PARENT, "0" * 16}), 5, parents)
        for r in receipts:
            self.assertEqual(r.headers["tracestate"], ["rojo=1,congo=2"])
            self.assertEqual(r.headers["x-other"], ["kept"])
        line = hub.event("attempt-failed", target="a")
        self.assertEqual(line["trace"], TRACE)

    def test_a_flag_that_is_not_set_stays_so(self):
        a = self.leaf()
        self.hub("--to", a.url()).post(
            b"x", traceparent=f"00-{TRACE}-{PARENT}-00")
        self.assertEqual(parts(a.wait(1)[0])[::2], (TRACE, False))

    def test_a_message_without_a_trace_begins_one_for_all_its_attempts(self):
        a = self.leaf(lambda r: 503 if r.attempt == 1 else 200)
        b = self.leaf()
        hub = self.hub("--to", f"a={a.url()}", "--to", f"b={b.url()}",
                       "--policy", "fixed base=10ms retry=5xx")
        first = hub.post(b"x")
        second = hub.post(b"y")
        seen = {}
        for r in a.wait(4) + b.wait(2):
            seen.setdefault(r.id, set()).add(parts(r)[0])
        self.assertEqual(len(seen[first]), 1, seen)
        self.assertEqual(len(seen[second]), 1, seen)
        self.assertNotEqual(seen[first], seen[second])
        line = hub.event("attempt-failed", message=first)
        self.assertEqual({line["trace"]}, seen[first])

    def test_a_trace_that_was_begun_goes_on_after_a_kill(self):
        answers = [503]
        a = self.leaf(lambda r: answers[0])
        words = ("--to", f"a={a.url()}", "--policy",
                 "fixed base=500ms retry=5xx attempts=5")
        hub = self.hub(*words)
        hub.post(b"x")
        first = a.wait(1)[0]
        case.wait_for(lambda: self.rows("SELECT * FROM parked"), "it is parked")
        hub.kill()
        answers[0] = 200
        self.hub(*words)
        last = a.wait(len(a.receipts) + 1)[-1]
        self.assertEqual(parts(first)[0], parts(last)[0])

    def test_what_is_malformed_is_replaced(self):
        bad = [f"00-{TRACE}-{PARENT}", f"00-{'0' * 32}-{PARENT}-01",
               f"00-{TRACE.upper()}-{PARENT}-01", "nonsense",
               f"ff-{TRACE}-{PARENT}-01"]
        a = self.leaf()
        hub = self.hub("--to", a.url())
        for value in bad:
            hub.post(b"x", traceparent=value, tracestate="rojo=1")
        for r in a.wait(len(bad)):
            self.assertNotEqual(parts(r)[0], TRACE)
            self.assertEqual(r.headers["tracestate"], [])

    def modes(self, mode):
        """What the leaf got of a message with a trace, without one, and with
        one that is malformed."""
        a = self.leaf()
        hub = self.hub("--to", a.url(), "--trace", mode)
        whole = f"00-{TRACE}-{PARENT}-01"
        hub.post(b"x", traceparent=whole, tracestate="rojo=1")
        hub.post(b"x")
        hub.post(b"x", traceparent="nonsense", tracestate="rojo=1")
        receipts = {r.position: r for r in a.wait(3)}
        return whole, [(r.one("traceparent"), r.one("tracestate"))
                       for _, r in sorted(receipts.items())]

    def test_traces_are_passed_on_and_none_is_begun(self):
        _, (there, none, bad) = self.modes("pass")
        self.assertEqual(there[0][:36], f"00-{TRACE}-")
        self.assertNotIn(PARENT, there[0])
        self.assertEqual(there[1], "rojo=1")
        self.assertEqual(none, (None, None))
        self.assertEqual(bad, (None, None))

    def test_traces_are_dropped_where_they_are_off(self):
        _, found = self.modes("off")
        self.assertEqual(found, 3 * [(None, None)])

    def test_a_message_of_a_batch_has_its_own(self):
        a = self.leaf()
        hub = self.hub("--to", a.url())
        traces = [TRACE, TRACE[::-1]]
        with case.contextlib.closing(hub.producer()) as producer:
            ids = producer.post_lines(
                [{"body": "x", "headers":
                  {"traceparent": f"00-{trace}-{PARENT}-01"}}
                 for trace in traces])
        found = {r.id: parts(r)[0] for r in a.wait(2)}
        self.assertEqual(found, dict(zip(ids, traces)))


if __name__ == "__main__":
    case.main()
