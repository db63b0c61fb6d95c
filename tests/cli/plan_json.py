"""stagger plan --json: every number, and exactly."""
import json
import math
import random
import sys
import unittest
from decimal import Decimal

sys.dont_write_bytecode = True  # the sources are to stay as they are
from plan_command import EXTREMES, PRESETS, read, shown

MS = 1000000

POLICY = {
    "name": str, "text": str, "attempts_max": (int, None),
    "deadline_ms": (int, str, None), "attempt_timeout_ms": (int, str, None),
    "retry_after_max_ms": (int, str), "retry_after": str,
    "reset_after_ms": (int, str, None),
    "base_for": list, "waits": list, "waits_truncated": bool,
    "wait_total_max_ms": (int, str, None),
    "time_total_max_ms": (int, str, None), "amplification_max": (int, None),
    "amplification_sustained": (int, str, None),
    "retries_per_second_max": (int, str, None), "budget": dict,
    "rate_per_second": (int, str, None),
    "bulkhead_max": (int, None),
    "throttle": str, "throttle_k": (int, str, None),
    "bulkhead_wait_ms": (int, str, None),
    "hedges_max": int, "hedge_delay_ms": (int, str, None),
    "hedge_percentile": (int, None),
    "breaker": dict, "faults": list, "warnings": list,
}
WAIT = {"retry", "window_ms", "wait_min_ms", "wait_mean_ms", "wait_max_ms",
        "total_min_ms", "total_mean_ms", "total_max_ms", "past_deadline"}


def ns(ms):
    """A time as it stands in the text, in ns; None is never."""
    if ms is None:
        return 2 ** 64 - 1
    exact = Decimal(ms) * MS
    assert exact == int(exact), ms
    return int(exact)


def waits(text, field):
    return [ns(w[field]) / 1e9 for w in read(text)[0]["waits"]]


def faults(text):
    return {f["fault"]: f["retries_max"] for f in read(text)[0]["faults"]}


class Fields(unittest.TestCase):
    def test_are_all_there_and_of_their_types(self):
        for policy in read(*PRESETS):
            self.assertEqual(policy.keys(), POLICY.keys())
            for name, types in POLICY.items():
                types = types if isinstance(types, tuple) else (types,)
                if policy[name] is None:
                    self.assertIn(None, types, name)
                else:
                    self.assertIsInstance(
                        policy[name], tuple(t for t in types if t), name)
            for wait in policy["waits"]:
                self.assertEqual(wait.keys(), WAIT)
            for fault in policy["faults"]:
                self.assertEqual(fault.keys(), {"fault", "category", "cause",
                                                "retries_max"})
            for warning in policy["warnings"]:
                self.assertEqual(warning.keys(), {"code", "text", "fix"})

    def test_are_valid_json_for_every_text(self):
        for text in PRESETS + EXTREMES:
            with self.subTest(text):
                policy, = json.loads(shown("--json", text))["policies"]
                self.assertEqual(policy["name"], text)
                self.assertLessEqual(len(policy["waits"]), 32)

    def test_hold_a_text_that_means_the_same(self):
        for text in PRESETS + EXTREMES:
            with self.subTest(text):
                first, = read(text)
                again, = read(first["text"])
                self.assertEqual(again.pop("name"), first["text"])
                first.pop("name")
                self.assertEqual(again, first)

    def test_have_the_bases_of_categories(self):
        policy, = read("base-for=1s:overload base-for=50ms:connect")
        self.assertEqual(policy["base_for"],
                         [{"category": "connect", "base_ms": 50},
                          {"category": "overload", "base_ms": 1000}])

    def test_are_null_where_there_is_no_limit(self):
        policy, = read("attempts=unlimited deadline=none")
        for name in ["attempts_max", "deadline_ms", "attempt_timeout_ms",
                     "reset_after_ms", "wait_total_max_ms",
                     "time_total_max_ms", "amplification_max",
                     "amplification_sustained", "retries_per_second_max"]:
            self.assertIsNone(policy[name], name)
        self.assertTrue(policy["waits_truncated"])

    def test_are_exact_to_the_nanosecond(self):
        policy, = read("fixed base=1ns jitter=none deadline=365d")
        self.assertEqual(policy["waits"][0]["window_ms"], "0.000001")
        self.assertEqual(policy["waits"][1]["total_max_ms"], "0.000002")
        self.assertEqual(policy["deadline_ms"], 31536000000)
        text = "list=31535999.999s jitter=none deadline=none"
        self.assertEqual(read(text)[0]["waits"][0]["window_ms"], 31535999999)
        text = "fixed base=1.001us jitter=none attempt-timeout=12345.678us"
        policy, = read(text)
        self.assertEqual(policy["attempt_timeout_ms"], "12.345678")
        self.assertEqual(policy["waits"][0]["wait_mean_ms"], "0.001001")
        self.assertEqual(policy["time_total_max_ms"], "37.039036")

    def test_escape_what_a_string_cannot_hold(self):
        policy, = json.loads(shown("--json", "fixed\tbase=1s"))["policies"]
        self.assertEqual(policy["name"], "fixed\tbase=1s")


class Waits(unittest.TestCase):
    def test_follow_the_formulas(self):
        for text, window in [
                ("exponential base=1s cap=40s attempts=9",
                 [1, 2, 4, 8, 16, 32, 40, 40]),
                ("aws attempts=5", [1, 2, 4, 8]),
                ("linear base=100ms attempts=6", [.1, .2, .3, .4, .5]),
                ("base=100ms attempts=6", [.1, .2, .4, .8, 1.6]),
                ("base=1s factor=1.5 attempts=4", [1, 1.5, 2.25]),
                ("webhook", [5, 300, 1800, 7200, 18000, 36000, 36000]),
                ("none", [])]:
            self.assertEqual(waits(text, "window_ms"), window, text)

    def test_fall_where_their_jitter_says(self):
        for jitter, least, mean, most in [
                ("none", 4, 4, 4), ("full", 0, 2, 4), ("equal", 2, 3, 4),
                ("10%", 3.6, 4, 4.4)]:
            text = f"base=1s jitter={jitter} attempts=4"
            self.assertEqual(waits(text, "wait_min_ms")[2], least)
            self.assertEqual(waits(text, "wait_mean_ms")[2], mean)
            self.assertEqual(waits(text, "wait_max_ms")[2], most)

    def test_add_up(self):
        for text in PRESETS + EXTREMES:
            policy, = read(text)
            for part in ("min", "mean", "max"):
                total = 0
                for wait in policy["waits"]:
                    total += ns(wait[f"wait_{part}_ms"])
                    self.assertEqual(ns(wait[f"total_{part}_ms"]),
                                     min(total, 2 ** 64 - 1), text)

    def test_mark_means_that_are_estimates(self):
        policy, = read("base=1s cap=5s jitter=decorrelated attempts=4")
        marks = [w.get("wait_mean_estimated") for w in policy["waits"]]
        self.assertEqual(marks, [None, True, True])
        self.assertEqual(policy["waits"][0]["wait_mean_ms"], 2000)
        # The second is min(5, U[1, 3 s]) over s in U[1, 3].
        steps = [1 + 2 * (i + .5) / 2000 for i in range(2000)]
        mean = sum(self.cut_mean(s) for s in steps) / len(steps)
        found = ns(policy["waits"][1]["wait_mean_ms"]) / 1e9
        self.assertLess(abs(found - mean), mean / 100)

    @staticmethod
    def cut_mean(s):
        """Of min(5, U[1, 3 s])."""
        top = 3 * s
        if top <= 5:
            return (1 + top) / 2
        return (12 + 5 * (top - 5)) / (top - 1)

    def test_of_pollys_jitter_are_those_of_its_formula(self):
        policy, = read("base=1s cap=5s jitter=polly attempts=8")
        count, r = 40000, random.Random(1)
        drawn = [[] for _ in range(7)]
        for _ in range(count):
            before = 0
            for n, waits in enumerate(drawn):
                t = n + r.random()
                after = 2 ** t * math.tanh(math.sqrt(4 * t)) / 1.4
                waits.append(min(5, after - before))
                before = after
        totals = [sorted(map(sum, zip(*drawn[:n + 1]))) for n in range(7)]
        for wait, waits, total in zip(policy["waits"], drawn, totals):
            found = {k: ns(v) / 1e9 for k, v in wait.items() if "_m" in k}
            mean = sum(waits) / count
            self.assertLess(abs(found["wait_mean_ms"] - mean), mean / 50)
            self.assertLess(found["wait_min_ms"], 1e-6)
            self.assertLessEqual(max(waits), found["wait_max_ms"])
            self.assertGreater(max(waits), found["wait_max_ms"] * .95)
            self.assertLessEqual(found["total_min_ms"], total[0])
            self.assertLessEqual(total[-1], found["total_max_ms"])
            self.assertGreater(total[-1], found["total_max_ms"] * .9)
            self.assertTrue(wait["wait_mean_estimated"])

    def test_say_what_the_deadline_forbids(self):
        policy, = read("base=1s cap=40s attempts=9 jitter=none")
        self.assertEqual([w["past_deadline"] for w in policy["waits"]],
                         7 * [False] + [True])
        self.assertEqual(policy["amplification_max"], 8)
        self.assertEqual(policy["wait_total_max_ms"], 143000)
        self.assertEqual(policy["time_total_max_ms"], 120000)

    def test_are_the_same_bytes_each_time(self):
        text = "jitter=decorrelated attempts=40 cap=2s"
        self.assertEqual(shown("--json", text), shown("--json", text))


class Totals(unittest.TestCase):
    def test_of_presets(self):
        for name, time, load in [
                ("broadcast", 32000, 3), ("backend", 120000, 5),
                ("client", 120000, 4), ("none", 120000, 1), ("aws", 120000, 3),
                ("webhook", 119406000, 8)]:
            policy, = read(name)
            self.assertEqual(policy["time_total_max_ms"], time, name)
            self.assertEqual(policy["amplification_max"], load, name)
            self.assertEqual(policy["amplification_sustained"], load, name)

    def test_of_budgets(self):
        for text, kind, sustained, rate in [
                ("", "none", 3, None), ("budget=50:2.5/s", "tokens", 3, "2.5"),
                ("budget=ratio:0.2+10/s", "ratio", "1.2", None),
                ("budget=ratio:0+10/s", "ratio", 1, 10),
                ("budget=aws", "aws", 3, None),
                ("budget=share:20%+3", "share", 3, None),
                ("budget=grpc:10:0.1", "grpc", 3, None)]:
            policy, = read(f"attempts=3 {text}")
            self.assertEqual(policy["budget"]["kind"], kind)
            self.assertEqual(policy["amplification_sustained"], sustained)
            self.assertEqual(policy["retries_per_second_max"], rate)

    def test_of_rates(self):
        for text, rate, retries, time in [
                ("", None, None, 37400), ("rate=50/s", 50, 50, None),
                ("rate=0.5/s budget=50:2.5/s", "0.5", "0.5", None),
                ("rate=9/s budget=50:2.5/s deadline=1m", 9, "2.5", 60000)]:
            policy, = read("attempts=4 attempt-timeout=9s deadline=none "
                           f"{text}" if "deadline" not in text else
                           f"attempts=4 attempt-timeout=9s {text}")
            self.assertEqual(policy["rate_per_second"], rate)
            self.assertEqual(policy["retries_per_second_max"], retries)
            self.assertEqual(policy["time_total_max_ms"], time)

    def test_of_throttles(self):
        for text, kind, k in [("", "none", None), ("throttle=aws", "aws", None),
                              ("throttle=sre:1.5", "sre", "1.5")]:
            policy, = read(f"attempts=4 attempt-timeout=1s {text}")
            self.assertEqual(policy["throttle"], kind)
            self.assertEqual(policy["throttle_k"], k)

    def test_of_hedges(self):
        for text, most, delay, percentile, load in [
                ("", 0, None, None, 3), ("hedge=1500us", 1, "1.5", None, 6),
                ("hedge=p95:3", 3, None, 95, 12)]:
            policy, = read(f"attempts=3 {text}")
            self.assertEqual(policy["hedges_max"], most)
            self.assertEqual(policy["hedge_delay_ms"], delay)
            self.assertEqual(policy["hedge_percentile"], percentile)
            self.assertEqual(policy["amplification_max"], load)
            self.assertEqual(policy["amplification_sustained"], load)

    def test_of_bulkheads(self):
        for text, most, wait in [
                ("", None, 0), ("bulkhead=20", 20, 0),
                ("bulkhead=20:1500us", 20, "1.5")]:
            policy, = read(f"attempts=4 {text}")
            self.assertEqual(policy["bulkhead_max"], most)
            self.assertEqual(policy["bulkhead_wait_ms"], wait)

    def test_say_how_budget_and_breaker_are_set(self):
        self.assertEqual(read("backend")[0]["budget"], {
            "kind": "tokens", "capacity": 100, "per_second": 10,
            "when_empty": "give-up"})
        text = "budget=grpc:10:0.1 budget-empty=wait"
        self.assertEqual(read(text)[0]["budget"], {
            "kind": "grpc", "capacity": 10, "ratio": "0.1",
            "when_empty": "wait"})
        text = "budget=share:20%+3"
        self.assertEqual(read(text)[0]["budget"], {
            "kind": "share", "floor": 3, "ratio": "0.2",
            "when_empty": "give-up"})
        text = "budget=aws:500:14:15:5"
        self.assertEqual(read(text)[0]["budget"], {
            "kind": "aws", "capacity": 500, "retry_cost": 14,
            "timeout_cost": 15, "throttle_cost": 5, "when_empty": "give-up"})
        self.assertEqual(read("client")[0]["breaker"], {"kind": "none"})
        self.assertEqual(read("broadcast")[0]["breaker"], {
            "kind": "row", "failures": 20, "connects": 3, "probes": 1,
            "probes_good": 1, "open_ms": 200,
            "open_max_ms": 30000, "scope": "attempts"})
        self.assertEqual(read("breaker=50%/20/10s:1s")[0]["breaker"], {
            "kind": "share", "percent": 50, "calls": 20, "window_ms": 10000,
            "slow_percent": None, "slow_after_ms": None,
            "connects": None, "probes": 1, "probes_good": 1, "open_ms": 1000, "open_max_ms": 1000,
            "scope": "attempts"})
        breaker = read("breaker=5 breaker-probes=6/10")[0]["breaker"]
        self.assertEqual((breaker["probes"], breaker["probes_good"]), (10, 6))
        breaker = read("breaker=50%/20/10s breaker-slow=80%/2s")[0]["breaker"]
        self.assertEqual((breaker["slow_percent"], breaker["slow_after_ms"]),
                         (80, 2000))
        text = "breaker=5 breaker-scope=retries"
        self.assertEqual(read(text)[0]["breaker"]["scope"], "retries")

    def test_say_how_many_clients_come_back_together(self):
        field = "arrivals_mean_100ms"
        self.assertNotIn(field, read("client")[0])
        self.assertEqual(read("--clients=500", "client")[0][field], 50)
        self.assertEqual(read("--clients=500", "unjittered")[0][field], 500)


class Faults(unittest.TestCase):
    YES = ["refused", "unreachable", "dns-temporary", "connect-timeout",
           "tls-timeout", "timeout", "reset", "protocol", "500", "502", "503", "504",
           "other 5xx", "429", "408", "425", "deadlock", "serialization",
           "lock-timeout", "too-many-connections", "connection-lost",
           "pushback", "grpc:4", "grpc:10", "grpc:14", "no-files", "no-ports",
           "no-buffers", "interrupted", "tls-handshake", "outcome-unknown",
           "transient", "proxy"]
    NO = ["dns", "tls", "3xx", "4xx", "cancelled", "invalid", "circuit-open",
          "nested", "loop", "sql", "rejected", "grpc:8", "other grpc", "exit", "error",
          "egress", "too-large", "message-expired",
          "template"]

    def test_of_the_default_are_as_written(self):
        for text in ("backend", "retry=default"):
            found = faults(text)
            self.assertEqual(sorted(found), sorted(self.YES + self.NO))
            for name in found:
                self.assertEqual(found[name], None if name in self.YES else 0,
                                 name)

    def test_of_broadcast_are_as_written(self):
        found = faults("broadcast")
        self.assertEqual(found.pop("connect-timeout"), 1)
        self.assertEqual(found.pop("tls-timeout"), 1)
        for name in ["timeout", "reset", "protocol", "500", "502", "503",
                     "504", "408", "425", "429", "pushback", "grpc:4",
                     "grpc:10", "grpc:14", "transient"]:
            self.assertIsNone(found.pop(name), name)
        self.assertEqual(set(found.values()), {0})

    def test_have_a_row_for_each_code_that_the_policy_names(self):
        found = faults("at-most=7:599,sqlstate:23505,mysql:1062,grpc:1,curl:28"
                       " never=503")
        for code in ["599", "sqlstate:23505", "mysql:1062", "grpc:1",
                     "curl:28"]:
            self.assertEqual(found[code], 7, code)
        self.assertEqual(found["503"], 0)
        self.assertIsNone(found["other 5xx"])
        self.assertIsNone(found["timeout"])

        found = faults("at-most=7:LOADING,amqp:320,amqp:link:stolen,kafka:-195")
        for code in ["redis:LOADING", "amqp:320", "amqp:link:stolen",
                     "kafka:-195"]:
            self.assertEqual(found[code], 7, code)

    def test_are_told_by_cause_and_category(self):
        rows = {f["fault"]: f
                for f in read("once=40P01,kafka:7")[0]["faults"]}
        self.assertEqual(rows["kafka:7"]["cause"], "KAFKA_REQUEST_TIMED_OUT")
        self.assertEqual(rows["kafka:7"]["category"], "server")
        self.assertEqual(rows["503"]["cause"], "HTTP_503")
        self.assertEqual(rows["503"]["category"], "server")
        self.assertEqual(rows["429"]["category"], "overload")
        self.assertEqual(rows["3xx"]["cause"], "HTTP_3XX")
        self.assertEqual(rows["sqlstate:40P01"]["cause"], "DEADLOCK")
        self.assertEqual(rows["grpc:14"]["cause"], "GRPC_UNAVAILABLE")
        self.assertEqual(rows["no-ports"]["cause"], "NO_PORTS")
        self.assertEqual(rows["no-ports"]["category"], "local")
        self.assertEqual(rows["exit"]["cause"], "EXIT")

    def test_cancelled_is_never_retried(self):
        self.assertEqual(faults("retry=any")["cancelled"], 0)
        self.assertEqual(faults("retry=any")["invalid"], 0)
        self.assertIsNone(faults("retry=any,invalid")["invalid"])


if __name__ == "__main__":
    unittest.main()
