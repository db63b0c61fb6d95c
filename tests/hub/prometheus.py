#!/usr/bin/env python3
"""The metrics, as a real Prometheus server sees them: they are its format, equal
the books of the store and what the admin API says, and everything that the
rules and the dashboard ask of them is there."""
import collections
import contextlib
import http.client
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
import unittest
import urllib.parse

import case

SOURCE = os.environ["STAGGER_SOURCE"]
RULES = os.path.join(SOURCE, "packaging/prometheus/stagger.rules.yml")
DASHBOARD = os.path.join(SOURCE, "packaging/grafana/stagger.json")
DOCS = os.path.join(SOURCE, "docs/metrics.md")
CAUSES = {"HTTP_503": "B", "HTTP_404": "C", "CONNECTION_REFUSED": "A"}


def fetch(port, path):
    connection = http.client.HTTPConnection("127.0.0.1", port,
                                            timeout=case.PATIENCE)
    with contextlib.closing(connection):
        connection.request("GET", path)
        answer = connection.getresponse()
        return answer.status, answer.headers, answer.read().decode()


def free_port():
    with contextlib.closing(socket.socket()) as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class Prometheus:
    """A server that scrapes the hub every second, and evaluates the rules."""

    def __init__(self, folder, hub_port):
        self.port = free_port()
        path = os.path.join(folder, "prometheus.yml")
        with open(path, "w") as file:
            json.dump({"global": {"scrape_interval": "1s",
                                  "evaluation_interval": "1s"},
                       "rule_files": [RULES],
                       "scrape_configs": [
                           {"job_name": "stagger",
                            "static_configs": [{"targets":
                                                [f"127.0.0.1:{hub_port}"]}]}]},
                      file)
        self.process = subprocess.Popen(
            ["prometheus", f"--config.file={path}",
             f"--storage.tsdb.path={folder}/tsdb",
             f"--web.listen-address=127.0.0.1:{self.port}"],
            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        self.lines = collections.deque(maxlen=20)
        threading.Thread(target=self.read, daemon=True).start()
        case.wait_for(self.is_ready, lambda: f"prometheus: {self.lines}")

    def read(self):
        for line in self.process.stderr:
            self.lines.append(line)

    def is_ready(self):
        assert self.process.poll() is None, self.lines
        with contextlib.suppress(OSError):
            return fetch(self.port, "/-/ready")[0] == 200

    def api(self, path, **query):
        text = fetch(self.port, f"/api/v1/{path}?"
                     + urllib.parse.urlencode(query))[2]
        answer = json.loads(text)
        assert answer["status"] == "success", (query, answer)
        return answer["data"]

    def query(self, expression):
        """The samples of a vector: labels without the hub's, and values."""
        found = {}
        for sample in self.api("query", query=expression)["result"]:
            labels = {name: value for name, value in sample["metric"].items()
                      if name not in ("__name__", "job", "instance")}
            found[tuple(sorted(labels.items()))] = float(sample["value"][1])
        return found

    def one(self, expression):
        """The value of a vector of one sample; None: it is empty."""
        return next(iter(self.query(expression).values()), None)

    def await_scrape(self):
        """Until a scrape that began later than now was taken in."""
        began = time.time()

        def is_there():
            # Of the selector itself: of an expression it would be now.
            times = self.api("query", query="timestamp(stagger_stopping)"
                             )["result"]
            return times and float(times[0]["value"][1]) > began + 0.1
        case.wait_for(is_there, "a scrape")

    def close(self):
        self.process.terminate()
        self.process.wait(case.PATIENCE)
        self.process.stderr.close()


def families(text):
    """Of a page: name to (type, labels); le is not a label of ours."""
    found, types = {}, {}
    for line in text.splitlines():
        if line.startswith("# TYPE "):
            _, _, name, kind = line.split(" ")
            types[name] = kind
            found[name] = (kind, set())
        elif not line.startswith("#"):
            name = re.match(r"[a-z_]+", line)[0]
            base = re.sub(r"_(bucket|sum|count)$", "", name)
            family = base if types.get(base) == "histogram" else name
            labels = set(re.findall(r'[{,]([a-z_]+)="', line))
            found[family][1].update(labels - {"le"})
    return found


class Metrics(case.Case):
    def scrape(self, hub):
        status, headers, text = fetch(hub.port, "/metrics")
        self.assertEqual(status, 200, text)
        self.assertEqual(headers["Content-Type"],
                         "text/plain; version=0.0.4; charset=utf-8")
        return text

    def busy_hub(self, policy=""):
        """A hub with targets that do what targets do."""
        self.leaves = {
            "fine": self.leaf(),
            "flaky": self.leaf(lambda r: 503 if r.position % 3 == r.attempt
                               or r.position % 11 == 0 else 200),
            "picky": self.leaf(lambda r: 404 if r.position % 5 == 0 else 200),
        }
        words = [word for name, leaf in self.leaves.items()
                 for word in ("--to", f"{name}={leaf.url()}")]
        return self.hub(*words, "--to", f"gone={self.refused()}", "--policy",
                        "fixed base=20ms attempts=3 retry=5xx breaker=20:30s "
                        + policy)

    def publish(self, hub, count):
        with contextlib.closing(hub.producer()) as producer:
            for i in range(count):
                producer.post(b"%d" % i)

    def await_quiet(self, hub, count):
        """Until all that can end of so many messages has ended, and is in the
        store."""
        def is_quiet():
            books = {t["name"]: t for t in json.loads(
                fetch(hub.port, "/v1/targets")[2])["targets"]}
            self.seen = books
            return all(t["waiting"] + t["in_flight"] + t["parked"] == 0
                       and t["base_position"] == t["next_position"]
                       and (t["routed"] == count or t["name"] == "gone")
                       for t in books.values())
        case.wait_for(is_quiet, lambda: f"quiet: {self.seen}")

    def settings(self, targets, **more):
        """A file of them: JSON is YAML."""
        path = os.path.join(self.folder, "stagger.yaml")
        more = {"listen": {"address": "127.0.0.1:0"},
                "store": {"path": self.store}, **more,
                "targets": [{"name": name, "url": url}
                            for name, url in targets.items()]}
        with open(path + ".new", "w") as file:
            json.dump(more, file)
        os.replace(path + ".new", path)
        return path

    # -- the server ------------------------------------------------------------

    def test_a_server_sees_what_the_store_and_the_api_say(self):
        hub = self.busy_hub()
        server = self.kept(Prometheus(self.folder, hub.port))
        server.await_scrape()
        self.publish(hub, 300)
        self.await_quiet(hub, 300)
        server.await_scrape()
        self.check_api(hub, server)
        self.check_leaves(server)
        deliveries = server.query("stagger_deliveries_total")
        letters = server.query("stagger_dead_letters_total")
        gauges = server.query("stagger_lane_deliveries")
        self.check_sums(server)
        self.check_rules(server)
        self.check_dashboard(server)
        self.assertEqual(hub.stop(), 0)
        self.check_store(deliveries, letters, gauges)

    def check_store(self, deliveries, letters, gauges):
        books = self.books()
        for name, book in books.items():
            for end in "delivered", "dead":
                self.assertEqual(
                    deliveries[("end", end), ("target", name)], book[end],
                    f"{name} {end}: {book}")
            for state in "routed", "delivered", "dead", "cancelled", "parked":
                self.assertEqual(
                    gauges[("state", state), ("target", name)], book[state],
                    f"{name} {state}: {book}")
        rows = {(("category", row["category"] or "none"),
                 ("cause", row["cause"]), ("target", row["target"])):
                row["count"] for row in self.rows(
                    "SELECT target, cause, category, sum(count) AS count "
                    "FROM failed_broadcast_logs GROUP BY 1, 2, 3")}
        self.assertEqual(letters, rows)
        self.assertEqual({cause for _, (_, cause), _ in rows}, set(CAUSES))

    def check_api(self, hub, server):
        """Each number that both have."""
        names = {"routed": 'stagger_lane_deliveries{%s,state="routed"}',
                 "delivered": 'stagger_lane_deliveries{%s,state="delivered"}',
                 "dead": 'stagger_lane_deliveries{%s,state="dead"}',
                 "parked": 'stagger_lane_deliveries{%s,state="parked"}',
                 "attempts": "sum(stagger_attempts_total{%s})",
                 "failures": 'sum(stagger_attempts_total{%s,cause!="OK"})'
                             " or vector(0)",
                 "retries": "stagger_retries_total{%s}",
                 "openings": "stagger_breaker_openings_total{%s}",
                 "budget_refused": "stagger_budget_refused_total{%s}",
                 "in_flight_limit": "stagger_lane_attempts_limit{%s}",
                 "lag_messages": "stagger_lag_messages{%s}"}
        for target in json.loads(fetch(hub.port, "/v1/targets")[2])["targets"]:
            label = f'target="{target["name"]}"'
            for field, expression in names.items():
                self.assertEqual(server.one(expression.replace("%s", label)),
                                 target[field], f"{target['name']} {field}")

    def check_leaves(self, server):
        """What was counted is what the leaves saw."""
        for name, leaf in self.leaves.items():
            self.assertEqual(
                server.one(f'sum(stagger_attempts_total{{target="{name}"}})'),
                len(leaf.receipts), name)
            self.assertEqual(
                server.one("stagger_attempt_duration_seconds_count"
                           f'{{target="{name}"}}'), len(leaf.receipts))
            first = sum(r.attempt == 1 for r in leaf.receipts)
            self.assertEqual(
                server.one(f'stagger_attempts_started_total{{target="{name}"}}'
                           f' - stagger_retries_total{{target="{name}"}}'),
                first, name)

    def check_sums(self, server):
        """What must be equal by itself."""
        for expected in (
                "stagger_attempts_started_total == on (target) sum by (target)"
                " (stagger_attempts_total)",
                'sum by (target) (stagger_decisions_total{decision="dead"})'
                " == on (target) sum by (target) (stagger_dead_letters_total)",
                'stagger_lane_deliveries{state="routed"} == on (target)'
                ' sum by (target) (stagger_lane_deliveries{state!="routed"})',
                'stagger_deliveries_total{end="delivered"} == on (target)'
                " stagger_delivery_latency_seconds_count"):
            targets = {dict(labels)["target"]
                       for labels in server.query(expected)}
            self.assertGreaterEqual(targets, {"flaky", "picky"}, expected)
        # I17, in each scrape while all of it was under way.
        worst = server.query(
            'max_over_time(abs(stagger_lane_deliveries{state="routed"}'
            ' - on (target) sum by (target)'
            ' (stagger_lane_deliveries{state!="routed"}))[2m:1s])')
        self.assertEqual(set(worst.values()), {0.0})
        self.assertEqual(server.one("stagger_messages_accepted_total"), 300)
        self.assertEqual(server.one("count(up == 1)"), 1)

    def check_rules(self, server):
        """Whatever they record or alert about can be evaluated here."""
        def are_evaluated():
            self.found = [rule for group in server.api("rules")["groups"]
                          for rule in group["rules"]]
            return self.found and all(rule["health"] != "unknown"
                                      for rule in self.found)
        case.wait_for(are_evaluated, "rules")
        wrong = [(rule["name"], rule.get("lastError")) for rule in self.found
                 if rule["health"] != "ok"]
        self.assertEqual(wrong, [])
        case.wait_for(lambda: are_evaluated() and "StaggerDeadLetters" in {
            rule["name"] for rule in self.found
            if rule.get("state") == "firing"}, "an alert of dead letters")
        known = set(server.api("label/__name__/values"))
        for rule in self.found:
            names = set(re.findall(r"\b(?:stagger|process)[a-z_]+\b",
                                   rule["query"])) - {"stagger"}
            self.assertLessEqual(
                names, known | {"stagger_alert_digests_given_up_total"},
                rule["name"])

    def check_dashboard(self, server):
        """Each of its expressions can be evaluated, of metrics that exist."""
        with open(DASHBOARD) as file:
            board = json.load(file)
        expressions = [target["expr"] for panel in board["panels"]
                       for target in panel.get("targets", [])]
        expressions += [a["expr"] for a in board["annotations"]["list"]]
        expressions += [
            re.fullmatch(r"label_values\((.*), \w+\)", v["definition"])[1]
            for v in board["templating"]["list"] if "definition" in v]
        documented = set(documented_families())
        known = set(server.api("label/__name__/values"))
        empty = []
        for expression in expressions:
            expression = (expression.replace("$__rate_interval", "1m")
                          .replace("$__all", ".*"))
            expression = re.sub(r"\$(job|instance|target)", ".*", expression)
            self.assertNotIn("$", expression)
            names = set(re.findall(r"\b(?:stagger|process)_[a-z_]+\b",
                                   expression))
            self.assertTrue(names, expression)
            for name in names:
                base = re.sub(r"_(bucket|sum|count)$", "", name)
                self.assertTrue({name, base} & documented, expression)
                if name not in known:
                    empty.append(name)
            server.query(expression)
        # A budget of all, and receivers: this hub has none.
        self.assertEqual(set(empty), {"stagger_shared_budget_left_retries",
                                      "stagger_alert_digests_given_up_total"})
        case.note(self, f"{len(expressions)} expressions of the dashboard")

    # -- the page --------------------------------------------------------------

    def test_a_page_is_what_promtool_accepts(self):
        hub = self.busy_hub()
        self.publish(hub, 60)
        self.await_quiet(hub, 60)
        text = self.scrape(hub)
        checked = subprocess.run(["promtool", "check", "metrics"], input=text,
                                 text=True, capture_output=True)
        self.assertEqual((checked.returncode, checked.stderr), (0, ""))

    def test_every_metric_is_documented_and_no_other(self):
        a = self.leaf(lambda r: 503 if r.attempt == 1 else 200)
        hub = self.hub(settings=self.settings(
            {"a": a.url()}, budget="100:10/s",
            policies={"quick": "fixed base=20ms retry=5xx budget=10:1/s"},
            defaults={"policy": "quick"},
            alerts={"receivers": [{"name": "page", "url": self.leaf().url(),
                               "type": "webhook"}]}))
        self.publish(hub, 5)
        a.wait(10)
        # Those of topics and of a certificate are looked at where there are
        # some: kafka_hub.py, tls.py.
        documented = {name: row for name, row in documented_families().items()
                      if not name.startswith(("stagger_kafka_",
                                              "stagger_ingress_certificate_"))}
        for name, (kind, labels) in families(self.scrape(hub)).items():
            self.assertIn(name, documented, "not in docs/metrics.md")
            self.assertEqual(documented[name][0], kind, name)
            self.assertLessEqual(labels, documented[name][1], name)
        self.assertEqual(set(documented),
                         set(families(self.scrape(hub))))

    def test_rules_do_what_their_own_tests_say(self):
        for words in (["check", "rules", RULES],
                      ["test", "rules",
                       RULES.replace(".rules.yml", ".rules.test.yml")]):
            done = subprocess.run(["promtool", *words], text=True,
                                  capture_output=True)
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_range_rows_and_their_replays_are_counted(self):
        answer = [503]
        a = self.leaf(lambda r: answer[0])
        hub = self.hub("--to", f"a={a.url()}", "--shed-after", "50ms", "--policy",
                       "fixed base=10ms attempts=1 breaker=1:300ms")
        hub.post(b"x")
        hub.event("shedding")
        with contextlib.closing(hub.producer()) as producer:
            for _ in range(20):
                producer.post(b"x")

        def count_rows(**expected):
            return sum(row["count"] for row in self.rows()
                       if expected.items() <= row.items())
        case.wait_for(lambda: count_rows() > 10, "a bulk row")
        answer[0] = 200
        case.wait_for(lambda: hub.post(b"z") and hub.events("breaker-closed"),
                      "a probe that succeeds")
        self.await_settled(1)
        found = samples(self.scrape(hub))
        shed = 'stagger_decisions_total{target="a",decision="dead",' \
               'reason="shed"}'
        cause = ('stagger_dead_letters_total{target="a",cause="HTTP_503",'
                 'category="B"}')
        dead = 'stagger_deliveries_total{target="a",end="dead"}'
        books = 'stagger_lane_deliveries{target="a",state="dead"}'
        self.assertEqual(found[shed], count_rows(why="shed"))
        self.assertEqual(found[cause], count_rows(cause="HTTP_503"))
        self.assertEqual(count_rows(cause="HTTP_503"), count_rows())
        self.assertEqual(found[dead], count_rows())
        self.assertEqual(found[books], count_rows())
        before = found[dead]
        self.assertLess(self.ask(hub, "/v1/dead-letters/replay",
                                 {"target": "a"}), 300)
        line = hub.event("replay-ended")
        self.await_settled(1)
        found = samples(self.scrape(hub))
        self.assertEqual(found['stagger_replayed_total{target="a"}'], before)
        self.assertEqual(line["messages"], before)
        self.assertEqual(found[dead], before, "a counter does not fall")
        self.assertEqual(found[books], count_rows(state="dead"))
        self.assertEqual(found[books], 0)

    def test_counters_begin_anew_and_books_go_on_after_a_restart(self):
        hub = self.busy_hub()
        self.publish(hub, 40)
        self.await_quiet(hub, 40)
        before = samples(self.scrape(hub))
        hub.kill()
        hub = self.busy_hub()
        self.await_quiet(hub, 40)
        after = samples(self.scrape(hub))
        for name in "fine", "flaky", "picky":
            for state in "routed", "delivered", "dead":
                key = (f'stagger_lane_deliveries{{target="{name}",'
                       f'state="{state}"}}')
                self.assertEqual(after[key], before[key])
            key = f'stagger_deliveries_total{{target="{name}",end="delivered"}}'
            self.assertGreater(before[key], 0)
            self.assertEqual(after[key], 0)

    def test_targets_beyond_the_number_are_summed(self):
        """Those with a label keep it; the sum of the others never falls, also
        when one of them is forgotten."""
        a = self.leaf()
        names = [f"t{i}" for i in range(5)]

        def write(names):
            return self.settings({name: a.url(f"/{name}") for name in names},
                                 metrics={"targets": 2})

        def started(hub):
            found = samples(self.scrape(hub))
            return {name: found.get("stagger_attempts_started_total"
                                    f'{{target="{name}"}}')
                    for name in (*names, "(other)", "new")}

        hub = self.hub(settings=write(names))
        self.scrape(hub) # gives the labels
        self.publish(hub, 10)
        a.wait(50)
        expected = {"t0": 10, "t1": 10, "(other)": 30}
        self.assertEqual(self.there(started(hub)), expected)
        for name in "t1", "t3":
            names.remove(name)
        write([*names, "new"])
        hub.process.send_signal(signal.SIGHUP)
        hub.event("reloaded")
        for name in "t1", "t3":
            self.assertEqual(self.ask(hub, f"/v1/targets/{name}/forget"), 200)
        self.publish(hub, 1)
        a.wait(54)
        names.append("t1")
        # The label of t1 is free, and `new` has it.
        expected = {"t0": 11, "new": 1, "(other)": 32}
        case.wait_for(lambda: self.there(started(hub)) == expected,
                      lambda: f"{started(hub)}")

    @staticmethod
    def there(numbers):
        return {name: number for name, number in numbers.items()
                if number is not None}

    def ask(self, hub, path, body=None):
        connection = http.client.HTTPConnection("127.0.0.1", hub.port,
                                                timeout=case.PATIENCE)
        with contextlib.closing(connection):
            connection.request("POST", path, body and json.dumps(body),
                               {"Content-Type": "application/json"}
                               if body else {})
            return connection.getresponse().status

    def test_pages_that_are_asked_for_at_once_are_all_whole(self):
        hub = self.busy_hub()
        self.publish(hub, 20)
        with case.futures.ThreadPoolExecutor(8) as pool:
            pages = list(pool.map(lambda _: self.scrape(hub), range(40)))
        for page in pages:
            self.assertIn("process_cpu_seconds_total ", page)
            self.assertTrue(page.endswith("\n"))
        self.assertEqual(hub.stop(), 0)

    def test_a_stop_in_the_middle_of_a_page_is_clean(self):
        hub = self.busy_hub()
        self.publish(hub, 20)
        asked = []
        for _ in range(10):
            s = socket.create_connection(("127.0.0.1", hub.port))
            s.sendall(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n")
            asked.append(s)
        self.assertEqual(hub.stop(), 0)
        for s in asked:
            s.close()

    def test_secrets_are_not_in_it(self):
        a = self.leaf()
        hub = self.hub("--to", f"a={a.url('/hook?token=s3cret')}")
        hub.post(b"payload-s3cret", X_Secret="s3cret")
        a.wait(1)
        self.assertNotIn("s3cret", self.scrape(hub))


def samples(text):
    return {line.rsplit(" ", 1)[0]: float(line.rsplit(" ", 1)[1])
            for line in text.splitlines() if not line.startswith("#")}


def documented_families():
    """Of docs/metrics.md: name to (type, labels), from the rows of its tables:
    | `name` | type | `label`, `label` | meaning |"""
    found = {}
    with open(DOCS) as file:
        for line in file:
            row = re.match(r"\| `([a-z_]+)` \| (counter|gauge|histogram) \|"
                           r"([^|]*)\| \S", line)
            if row:
                found[row[1]] = (row[2], set(re.findall(r"`([a-z_]+)`",
                                                        row[3])))
    return found


if __name__ == "__main__":
    if not shutil.which("prometheus") or not shutil.which("promtool"):
        print("prometheus is missing")
        sys.exit(77)
    case.main()
