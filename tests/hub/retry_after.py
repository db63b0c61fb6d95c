#!/usr/bin/env python3
"""Retry-After in each of its forms: how long the delivery waits, and that the
whole lane waits with it, and no other."""
import collections
import email.utils
import time

import case

OWN, MOST = 0.1, 1.5
POLICY = ("fixed base=100ms jitter=none attempts=3 retry-after-max=1500ms "
          "deadline=none breaker=none")

# status and headers of the first answer; the wait, and why.
Hint = collections.namedtuple("Hint", "name status headers wait why")

DATE = 784111777  # Sun, 06 Nov 1994 08:49:37 GMT


def imf(at):
    return email.utils.formatdate(at, usegmt=True)


def rfc850(at):
    return time.strftime("%A, %d-%b-%y %H:%M:%S GMT", time.gmtime(at))


def asctime(at):
    day = time.gmtime(at)
    return time.strftime(f"%a %b {day.tm_mday:2} %H:%M:%S %Y", day)


def hints():
    def after(name, value, wait, why, status=429, **more):
        return Hint(name, status, {"Retry-After": value, **more}, wait, why)

    now = int(time.time())
    own, server = (OWN, "backoff"), (1, "server-delay")
    yield after("seconds", "1", *server)
    yield after("seconds-503", "1", *server, status=503)
    yield after("seconds-500", "1", *server, status=500)
    yield after("seconds-408", "1", *server, status=408)
    yield after("seconds-425", "1", *server, status=425)
    yield after("imf-fixdate", imf(DATE + 1), *server, Date=imf(DATE))
    # Two digits of a year are of the nearest fifty.
    yield after("rfc-850", rfc850(now + 1), *server, Date=imf(now))
    yield after("asctime", asctime(DATE + 1), *server, Date=imf(DATE))
    yield after("date-of-asctime", imf(DATE + 1), *server, Date=asctime(DATE))
    yield Hint("milliseconds", 429, {"retry-after-ms": "300"}, 0.3,
               "server-delay")
    used_up = {"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": "1"}
    yield Hint("rate-limit", 429, used_up, 1, "server-delay")
    yield Hint("rate-limit-left", 429, {**used_up, "X-RateLimit-Remaining": "1"},
               *own)
    yield Hint("rate-limit-field", 503, {"RateLimit": '"a";r=0;t=1'}, 1,
               "server-delay")
    yield after("zero", "0", *own)
    yield after("shorter", "0", *own, **{"retry-after-ms": "50"})
    yield after("negative", "-1", *own)
    yield after("fraction", "1.5", *own)
    yield after("words", "soon", *own)
    yield after("empty", "", *own)
    yield after("past", imf(DATE - 60), *own, Date=imf(DATE))
    yield after("now", imf(DATE), *own, Date=imf(DATE))
    yield after("no-day", "Sun, 99 Nov 1994 08:49:37 GMT", *own,
                Date=imf(DATE))
    yield after("long", "9" * 30, MOST, "server-delay")
    yield after("far", "999999", MOST, "server-delay")
    yield after("far-date", imf(DATE + 3 * 366 * 86400), MOST, "server-delay",
                Date=imf(DATE))
    yield after("year-9999", "Fri, 31 Dec 9999 23:59:59 GMT", MOST,
                "server-delay")


class RetryAfter(case.Case):
    def start(self, server, names, *more):
        return self.hub(*[word for name in names for word in (
            "--to", f"{name}={server.url('/' + name)}")], *more)

    def test_each_form_is_waited_for(self):
        told = {hint.name: hint for hint in hints()}

        def answer(request):
            hint = told[request.path[1:]]
            return 200 if request.attempt > 1 else (hint.status, hint.headers)

        server = self.leaf(answer)
        hub = self.start(server, told, "--policy", POLICY, "--verbose")
        hub.post(b"x")
        receipts = server.wait(2 * len(told))
        self.assertEqual(hub.stop(), 0)
        self.assertEqual(len(server.receipts), 2 * len(told))
        lines = {line["target"]: line for line in hub.events("attempt-failed")}
        wrong = []
        for name, hint in told.items():
            first, second = [r for r in receipts if r.path == "/" + name]
            seen = (round(lines[name]["wait_ms"]), lines[name]["why"])
            if seen != (hint.wait * 1e3, hint.why):
                wrong.append(f"{name}: {hint.headers}: expected "
                             f"{hint.wait * 1e3:.0f} ms, {hint.why}, saw "
                             f"{seen[0]} ms, {seen[1]}")
            if second.at - first.answered_at < hint.wait:
                wrong.append(f"{name}: expected a wait of {hint.wait} s at "
                             f"least, saw {second.at - first.answered_at:.3f}")
        self.assertEqual(wrong, [])
        case.note(self, f"{len(told)} forms")

    def test_a_date_without_another_is_the_clocks(self):
        def answer(request):
            if request.attempt > 1:
                return 200
            return 503, {"Retry-After": imf(int(time.time()) + 2)}

        server = self.leaf(answer)
        hub = self.hub("--to", server.url(), "--policy",
                       "fixed base=1ms jitter=none attempts=2")
        hub.post(b"x")
        first, second = server.wait(2)
        self.assertGreaterEqual(second.wall, int(first.wall) + 2,
                                "the moment that was told")
        self.assertEqual(hub.stop(), 0)

    def test_what_is_not_retried_does_not_wait(self):
        server = self.leaf(lambda r: (int(r.path[1:]), {"Retry-After": "60"}))
        names = ("404", "301", "501")
        hub = self.start(server, names, "--policy", "broadcast")
        for i in range(3):
            hub.post(b"%d" % i)
        receipts = server.wait(9)
        self.await_settled(3)
        self.assertEqual(hub.stop(), 0)
        self.assertEqual({r.attempt for r in receipts}, {1})
        self.assertEqual(len(self.rows()), 9)

    def test_jitter_goes_up_from_it(self):
        server = self.leaf(lambda r: 200 if r.attempt > 1
                           else (429, {"Retry-After": "1"}))
        names = [f"t{i}" for i in range(16)]
        hub = self.start(server, names, "--policy",
                         "fixed base=400ms jitter=full attempts=2", "--verbose")
        hub.post(b"x")
        receipts = server.wait(32)
        self.assertEqual(hub.stop(), 0)
        waits = [line["wait_ms"] for line in hub.events("attempt-failed")]
        self.assertEqual(len(waits), 16)
        self.assertTrue(1000 <= min(waits) and max(waits) <= 1400, waits)
        self.assertGreater(max(waits) - min(waits), 40, "it spreads")
        for name in names:
            first, second = [r for r in receipts if r.path == "/" + name]
            self.assertGreaterEqual(second.at - first.answered_at, 1, name)

    def check_gate(self, order):
        """What the closed lane got before and behind its gate, and that the
        other lane waited for none of it."""
        until = []

        def answer(request):
            if request.body == b"0" and request.attempt == 1:
                until.append(time.monotonic() + 2)
                return 429, {"Retry-After": "2"}
            return 200

        closed, other = self.leaf(answer), self.leaf()
        store = self.store + order
        hub = self.hub("--to", f"closed={closed.url()}", "--to",
                       f"other={other.url()}", "--policy",
                       POLICY.replace("1500ms", "5s"), "--order", order,
                       store=store)
        ids = [hub.post(b"0")]
        closed.wait(1)
        # The gate is in the hub when its decision is in the log.
        hub.event("attempt-failed", target="closed")
        producer = self.kept(hub.producer())
        ids += producer.post_lines([{"body": str(i)} for i in range(1, 30)])
        others = other.wait(30)
        receipts = closed.wait(31)
        self.assertEqual(hub.stop(), 0)
        self.assertGreaterEqual(min(r.at for r in receipts[1:]), until[0],
                                "the lane waits until the gate opens")
        self.assertLess(max(r.at for r in others),
                        min(r.at for r in receipts[1:]),
                        "the other lane does not")
        self.assertEqual({r.id for r in receipts[1:]}, set(ids))
        self.assertEqual(len(closed.receipts), 31)
        self.assertEqual(len(other.receipts), 30)

    def test_the_whole_lane_waits_and_no_other(self):
        self.check_gate("none")

    def test_an_ordered_lane_waits_too(self):
        self.check_gate("strict")

    def test_the_latest_of_several_gates_holds(self):
        """Several are under way when the target says no: the lane waits for
        the one that asks for most."""
        is_busy = []

        def answer(request):
            if not is_busy or request.attempt > 1 or request.body == b"late":
                return 200
            return 429, {"Retry-After": "2" if request.body == b"3" else "1"}

        server = self.leaf(answer)
        hub = self.hub("--to", server.url(), "--policy",
                       POLICY.replace("1500ms", "5s"))
        producer = self.kept(hub.producer())
        # So that it may have some under way at once.
        producer.post_lines([{"body": "warm"}] * 100)
        server.wait(100)
        is_busy.append(True)
        producer.post_lines([{"body": str(i)} for i in range(4)])
        receipts = server.wait(104)[100:]
        self.assertEqual({(r.body, r.attempt) for r in receipts},
                         {(b"%d" % i, 1) for i in range(4)},
                         "four under way at once")
        opens_at = max(r.answered_at + (2 if r.body == b"3" else 1)
                       for r in receipts)
        case.wait_for(lambda: self.rows("SELECT count(*) AS n FROM parked")
                      [0]["n"] == 4, "four parked rows")
        producer.post(b"late")
        server.wait(109)
        self.assertEqual(hub.stop(), 0)
        late, = [r for r in server.receipts if r.body == b"late"]
        self.assertGreaterEqual(late.at, opens_at)


if __name__ == "__main__":
    case.main()
