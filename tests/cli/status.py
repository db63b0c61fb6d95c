"""stagger status, pause, resume, targets, reload and dead replay|drop, against a
server that answers as a hub does. What status and dead print is compared with
tests/cli/golden/; STAGGER_GOLDEN=write writes it anew."""
import contextlib
import fcntl
import json
import os
import pathlib
import pty
import re
import select
import signal
import socket
import sqlite3
import struct
import subprocess
import sys
import tempfile
import termios
import time
import unittest

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "hub"))
import case
from fake_hub import FakeHub, Problem, failed, letter, target

STAGGER = os.environ["STAGGER"]
GOLDEN = pathlib.Path(__file__).resolve().parent / "golden"
PATIENCE = 60


def run(*words, columns=80, text="", **environment):
    known = {name: value for name, value in os.environ.items()
             if not name.startswith("STAGGER_HUB")}
    return subprocess.run(
        [STAGGER, *words], input=text, capture_output=True, text=True,
        timeout=PATIENCE, env={**known, "COLUMNS": str(columns),
                               **environment})


class Terminal:
    """The command on a terminal of its own, of so many lines and columns."""

    def __init__(self, *words, lines=24, columns=80):
        self.pid, self.file = pty.fork()
        if self.pid == 0:
            fcntl.ioctl(0, termios.TIOCSWINSZ,
                        struct.pack("HHHH", lines, columns, 0, 0))
            os.environ.pop("COLUMNS", None)
            os.environ["TERM"] = "xterm"
            os.execv(STAGGER, [STAGGER, *words])
        self.text = ""

    def read(self, expected):
        """Until the pattern is in what came; returns all of it."""
        until = time.monotonic() + PATIENCE
        while not re.search(expected, self.text, re.S):
            assert time.monotonic() < until, f"no {expected!r}: {self.text[-2000:]!r}"
            if select.select([self.file], [], [], 0.1)[0]:
                try:
                    self.text += os.read(self.file, 65536).decode()
                except OSError:
                    break
        assert re.search(expected, self.text, re.S), self.text[-2000:]
        return self.text

    def type(self, text):
        os.write(self.file, text.encode())

    def end(self, how=None):
        if how is not None:
            os.kill(self.pid, how)
        with contextlib.suppress(OSError):
            while os.read(self.file, 65536):
                pass
        _, status = os.waitpid(self.pid, 0)
        os.close(self.file)
        return os.waitstatus_to_exitcode(status)


def lanes():
    """One of each kind, with the longest and the shortest of everything."""
    return [
        target("billing", in_flight=12, retries=3),
        target("search-eu-west-1-primary", state="circuit-open", in_flight=1,
               in_flight_limit=1, parked=1234, dead=17, lag_messages=1234567,
               lag_ms=5025000, **failed("CONNECTION_REFUSED", 18000),
               probe_at="2026-03-01T03:00:14.900Z",
               breaker="open", budget_left=0, p50_ms=None, p99_ms=None),
        target("audit", state="shedding", parked=10000, lag_messages=99,
               lag_ms=86400000 * 3, **failed("CONNECT_TIMEOUT", 30000),
               dead=1234567,
               breaker="half-open", budget_left=0.999, p50_ms=0.823, p99_ms=12345.6),
        target("crm", state="throttled", parked=7, waiting=60, in_flight=64,
               **failed("HTTP_429", 250), budget_left=None, lag_ms=1500),
        target("mail", state="paused", lag_messages=5),
        target("legacy", is_known=False, added_by=None, state="orphaned",
               lag_messages=31, budget_left=None, p50_ms=None, p99_ms=None),
        target("flaky", parked=2, **failed("HTTP_503", 250000), dead=3,
               budget_left=43.7),
        target("denied", **failed("HTTP_401", 3999), dead=1930),
        target("slow", is_catching_up=True, is_lag_exact=False,
               lag_messages=45678, lag_ms=61000,
               p50_ms=987.6, p99_ms=9999.9),
    ]


class Case(unittest.TestCase):

    def setUp(self):
        self.hub = FakeHub()
        self.addCleanup(self.hub.close)
        self.url = self.hub.url
        self.hub.targets = lanes()
        self.hub.delivers = {"billing": 12345, "flaky": 7, "slow": 999}

    def ask(self, *words, **more):
        return run(*words, "--hub", self.url, **more)

    def succeed(self, *words, **more):
        done = self.ask(*words, **more)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        return done.stdout

    def fail_with(self, code, words, *command, **more):
        done = self.ask(*command, **more)
        self.assertEqual((done.returncode, done.stdout), (code, ""),
                         done.stderr)
        self.assertIn(words, done.stderr)
        return done.stderr

    def calls(self):
        return [f"{method} {path}" for method, path, _ in self.hub.requests]

    def check_golden(self, name, text):
        text = text.replace(self.hub.url, "http://127.0.0.1:8080")
        path = GOLDEN / name
        if os.environ.get("STAGGER_GOLDEN") == "write":
            path.write_text(text)
        self.assertEqual(text, path.read_text(), name)


class Golden(Case):
    """Each at 80 and at 120 columns; no line is longer."""

    def both(self, name, *words):
        for columns in (80, 120):
            self.hub.looks = 0
            for each in self.hub.targets:
                each["delivered"] = 1000
            text = self.succeed(*words, columns=columns)
            for line in text.splitlines():
                self.assertLessEqual(len(line), columns, line)
            self.check_golden(f"{name}-{columns}.txt", text)

    def test_status(self):
        self.both("status", "status", "--interval=10ms")

    def test_status_of_a_hub_in_trouble(self):
        self.hub.targets = self.hub.targets[1:2]
        self.hub.status.update(state="broken", missing="the store is full",
                               replays_running=2)
        self.both("status-trouble", "status", "--interval=10ms")

    def test_status_of_a_hub_that_reads_topics(self):
        place = {"next_position": 10, "end_position": 15,
                 "committed_position": 8, "lag_messages": 5}
        self.hub.status["source"] = {
            "kind": "kafka", "is_away": True, "partitions": [
                {"topic": topic, "partition": number, **place}
                for topic, number in (("orders", 0), ("orders", 3),
                                      ("refunds", 1))]}
        self.hub.targets = self.hub.targets[:1]
        self.both("status-kafka", "status", "--interval=10ms")

    def test_status_without_targets(self):
        self.hub.targets = []
        self.hub.status["missing"] = (
            "there is no target; the first one is added by POST /v1/targets, "
            "or stagger targets add")
        self.both("status-none", "status", "--interval=10ms")

    def test_dead_replay(self):
        self.hub.letters = [
            letter(40 + i, target=name, cause=cause, count=count,
                   detail=detail)
            for i, (name, cause, count, detail) in enumerate([
                ("billing", "HTTP_503", 1, "HTTP 503"),
                ("search-eu-west-1-primary", "CONNECTION_REFUSED", 1,
                 "connect 127.0.0.1:8080: connection refused"),
                ("audit", "CONNECT_TIMEOUT", 123456, None),
                ("x", "DNS_TEMPORARY_FAILURE", 1,
                 "resolve a-long-name.example.org: \x1b[31mthe resolver "
                 "did not answer within 5 s")] * 4)]
        self.both("dead-replay", "dead", "replay", "--all", "--dry-run")
        self.both("dead-drop", "dead", "drop", "--dry-run", "-c", "HTTP_503")

    def test_dead_list_and_show(self):
        with tempfile.TemporaryDirectory() as folder:
            store = os.path.join(folder, "hub.db")
            make_store(store)
            self.letters("dead-list", "list", "--store", store)
            self.letters("dead-summary", "list", "--summary", "--store", store)
            self.letters("dead-show", "show", "--store", store, "2")

    def letters(self, name, *words):
        for columns in (80, 120):
            done = run("dead", *words, columns=columns)
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            self.check_golden(f"{name}-{columns}.txt", done.stdout)


def make_store(path):
    """The store of a hub that has run, with dead letters that no clock made."""
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))
        port = nobody.getsockname()[1]
        case.deliver(
            path, [b"one", b"two"], "--policy", "none",
            "--to", f"billing=http://127.0.0.1:{port}/",
            "--to", f"search-eu-west-1-primary=http://127.0.0.1:{port}/in",
            targets=2)
    with contextlib.closing(sqlite3.connect(path)) as db, db:
        db.execute(
            "UPDATE failed_broadcast_logs SET message_id = "
            "'00c0ffee00c0ffee-' || ((id + 1) / 2), payload = 'one', "
            "content_type = 'text/plain; charset=utf-8', "
            "target = CASE id % 2 WHEN 0 THEN 'billing' ELSE "
            "'search-eu-west-1-primary' END, "
            "target_url = 'http://127.0.0.1:9000/', "
            "detail = 'connect 127.0.0.1:9000: connection refused', "
            "first_attempt_at = '2026-03-01T12:00:00.000Z', "
            "last_attempt_at = '2026-03-01T12:00:01.500Z', "
            "created_at = '2026-03-01T12:00:01.750Z'")


class Status(Case):
    def test_rates_are_of_two_looks_and_by_the_clock_of_the_hub(self):
        found = json.loads(self.succeed("status", "--json",
                                        "--interval=10ms"))
        rates = {each["name"]: each["delivered_per_s"]
                 for each in found["targets"]}
        self.assertEqual((rates["billing"], rates["flaky"], rates["mail"]),
                         (12345, 7, 0))
        self.assertEqual(found["hub"]["accepted"], 123456)
        billing = next(each for each in found["targets"]
                       if each["name"] == "billing")
        for name, value in self.hub.targets[0].items():
            self.assertEqual(billing[name], value, name)

    def test_reads_every_page(self):
        self.hub.page = 7
        self.hub.targets = [target(f"t{i:04}") for i in range(100)]
        text = self.succeed("status", "--interval=10ms")
        for i in range(100):
            self.assertIn(f"t{i:04} ", text)
        self.assertIn("100 targets: 100 live\n", text)

    def test_watches_a_pipe_line_by_line(self):
        process = subprocess.Popen(
            [STAGGER, "status", "--json", "--watch", "--interval=10ms",
             "--hub", self.hub.url], stdout=subprocess.PIPE, text=True)
        looks = [json.loads(process.stdout.readline()) for _ in range(3)]
        process.terminate()
        process.wait(PATIENCE)
        process.stdout.close()
        rates = [look["targets"][0]["delivered_per_s"] for look in looks]
        self.assertEqual(rates[0], None)
        self.assertNotIn(None, rates[1:])

    def test_fits_the_screen_with_the_worst_first(self):
        self.hub.targets = [target(f"t{i:04}") for i in range(1000)]
        self.hub.targets[777].update(state="circuit-open", breaker="open")
        self.hub.targets[500].update(parked=3)
        screen = Terminal("status", "--hub", self.hub.url, "--interval=10ms",
                          lines=15)
        text = screen.read(r"more:.*more:.*more:")
        screen.end(signal.SIGTERM)
        first = text[:text.index("more:")].replace("\x1b[K", "")
        first = re.sub(r"\x1b\[[?0-9;]*[a-zA-Z]", "", first)
        lines = first.replace("\r", "").split("\n")
        self.assertEqual(len(lines), 14, first)
        self.assertTrue(lines[5].startswith("t0777"), first)
        self.assertTrue(lines[6].startswith("t0500"), first)
        self.assertTrue(lines[-1].startswith("and 992 "), first)
        # Drawn over the last one, of 14 lines.
        self.assertIn("\x1b[14A", text)

    def rows_of(self, *targets, columns=80):
        self.hub.targets = list(targets)
        text = self.succeed("status", "--interval=10ms", columns=columns)
        return text.splitlines()[2:]

    def test_says_how_old_the_last_fault_is(self):
        for ms, expected in ((0, "0s"), (999, "0s"), (59999, "59s"),
                           (60000, "1m"), (5999999, "99m"), (6000000, "1h"),
                           (172799999, "47h"), (172800000, "2d"),
                           (999 * 86400000, "999d")):
            lines = self.rows_of(target("a", **failed("HTTP_401", ms)))
            self.assertEqual(lines[0], "1 target, 1 failing: 1 live"
                             if ms < 60000 else "1 target: 1 live")
            self.assertTrue(lines[3].endswith(f" HTTP_401 {expected} ago"),
                            lines)

    def test_says_when_the_next_probe_starts(self):
        ill = {**failed("HTTP_503", 1000), "state": "circuit-open",
               "breaker": "open"}
        for at, expected, roomy in (
                ("03:00:14", "probe 12s", "probe in 12s"),
                ("03:10:02", "probe 10m", "probe in 10m"),
                ("03:00:00", "probe 0s", "probe in 0s")):
            for columns, words in ((80, expected), (120, roomy)):
                self.hub.looks = 0
                lines = self.rows_of(
                    target("a", **ill, probe_at=f"2026-03-01T{at}.000Z"),
                    columns=columns)
                self.assertTrue(lines[3].endswith(f" HTTP_503 {words}"), lines)
        ill["breaker"] = "half-open"
        self.assertTrue(self.rows_of(target("a", **ill))[3].endswith(
            " HTTP_503 probing"))
        ill.update(state="paused", breaker="open",
                   probe_at="2026-03-01T04:00:00.000Z")
        self.assertTrue(self.rows_of(target("a", **ill))[3].endswith(
            " HTTP_503 1s ago"))

    def test_never_cuts_what_is_wrong(self):
        ill = target("a", **failed("CONNECTION_REFUSED", 1000),
                     state="circuit-open", breaker="open",
                     probe_at="2026-03-01T03:00:14.000Z")
        lines = self.rows_of(ill, target("b"))
        self.assertEqual(lines[4].strip(), "CONNECTION_REFUSED probe in 12s")
        self.assertTrue(lines[5].startswith("b "), lines)
        self.hub.looks = 0
        self.hub.status["missing"] = "x" * 50 + " " + "y" * 50
        text = self.succeed("status", "--interval=10ms")
        self.assertIn("\n" + "x" * 50 + "\n" + "y" * 50 + "\n", text)

    def test_counts_the_lines_of_causes(self):
        self.hub.targets = [target(f"t{i:03}", **failed("CONNECTION_REFUSED", 0))
                            for i in range(50)]
        screen = Terminal("status", "--hub", self.hub.url, "--once",
                          "--interval=10ms", lines=15)
        text = screen.read(r"--all --once")
        screen.end()
        self.assertIn("and 46 more, 46 failing: 46 live (", text)

    def test_counts_all_that_waits_for_its_first_attempt(self):
        """Taken or put back, and what is still in the log."""
        def lag(**more):
            return self.rows_of(target("a", **more))[3].split()[5]
        self.assertEqual(lag(waiting=3), "3")
        self.assertEqual(lag(waiting=3, lag_messages=4), "7")
        self.assertEqual(lag(waiting=3, lag_messages=4, is_lag_exact=False),
                         "7+")

    def test_tells_the_disabled_from_the_paused(self):
        lines = self.rows_of(target("slow", state="throttled"),
                             target("off", state="paused"),
                             target("gone", state="paused", is_disabled=True))
        self.assertEqual([line.split()[:2] for line in lines[3:]],
                         [["gone", "disabled"], ["slow", "throttled"],
                          ["off", "paused"]])
        self.assertIn("1 throttled, 1 paused, 1 disabled", lines[0])

    def test_shows_those_that_fail_above_those_that_are_behind(self):
        lines = self.rows_of(
            target("behind", parked=9), target("held", state="throttled"),
            target("over", **failed("HTTP_401", 60000)),
            target("well"), target("z-fails", **failed("HTTP_401", 59000)))
        self.assertEqual([line.split()[0] for line in lines[3:]],
                         ["held", "z-fails", "behind", "over", "well"])

    def test_is_faint_about_what_is_over(self):
        self.hub.targets = [target("new", **failed("HTTP_401", 1000)),
                            target("old", **failed("HTTP_401", 61000))]
        screen = Terminal("status", "--hub", self.hub.url, "--once",
                          "--interval=10ms")
        text = screen.read(r"1m ago.*\n")
        screen.end()
        self.assertRegex(text, r"\x1b\[2mHTTP_401 1m ago\x1b\[0m")
        self.assertNotRegex(text, r"\x1b\[2mHTTP_401 1s ago")

    def test_all_of_them_come_with_their_policies(self):
        self.hub.targets = [target("a", policy="fixed base=1s"),
                            target("b", policy="fixed base=2s"),
                            target("c", policy="fixed base=1s\x1b[2J")]
        self.hub.targets.append(target("d", policy="fixed base=1s"))
        text = self.succeed("status", "--once", "--all", "--interval=10ms")
        self.assertIn("\npolicy of a and 1 more:\n  fixed base=1s\n"
                      "\npolicy of b:\n  fixed base=2s\n", text)
        self.assertNotIn("\x1b", text)
        self.assertNotIn("policy of", self.succeed("status", "--once",
                                                   "--interval=10ms"))

    def test_says_how_many_of_the_rest_fail(self):
        self.hub.targets = [target(f"t{i:03}", **failed("HTTP_401", i * 1000))
                            for i in range(50)]
        screen = Terminal("status", "--hub", self.hub.url, "--once",
                          "--interval=10ms", lines=15)
        text = screen.read(r"--all --once")
        screen.end()
        self.assertIn("50 targets, 50 failing: 50 live", text)
        self.assertIn("and 42 more, 42 failing: 42 live (", text)

    def test_waits_on_a_screen_for_a_hub_that_is_gone(self):
        screen = Terminal("status", "--hub", self.hub.url, "--interval=10ms")
        screen.read("billing")
        self.hub.problem = lambda method, path: Problem(503, "it stops")
        screen.read("it stops .503.; trying again")
        self.hub.problem = None
        screen.read(r"trying again.*billing[^\n]*\n[^\n]*\n\x1b\[J")
        self.assertEqual(screen.end(signal.SIGINT), -signal.SIGINT)

    def test_shows_no_bytes_that_move_the_cursor(self):
        self.hub.targets = [target("evil\x1b[2J", last_cause="A\x1b]0;x\x07",
                                   state="live\r\n")]
        self.hub.is_honest = False
        text = self.succeed("status", "--interval=10ms")
        self.assertTrue(all(c == "\n" or c.isprintable() for c in text), text)

    def test_is_refused_with_bad_options(self):
        for words, expected in (
                (["--once", "--watch"], "exclude each other"),
                (["--interval=1ms"], "expected a time from 10ms to 1h"),
                (["--interval=x"], "expected a time from 10ms to 1h"),
                (["x"], "unexpected argument"),
                (["--nonsense"], "See stagger status --help")):
            self.fail_with(2, expected, "status", *words)


class Errors(Case):
    """What went wrong, and what to do, in every command."""

    COMMANDS = (["status", "--once"], ["targets"], ["pause", "billing"],
                ["resume", "billing"], ["reload"],
                ["targets", "forget", "--yes", "legacy"],
                ["dead", "replay", "--all", "--dry-run"],
                ["dead", "drop", "--all", "--yes"])

    def each(self, code, *expected):
        for command in self.COMMANDS:
            with self.subTest(command=command):
                said = self.fail_with(code, expected[0], *command)
                for words in expected:
                    self.assertIn(words, said)

    def test_no_hub_there(self):
        nobody = socket.socket() # bound, and does not listen
        self.addCleanup(nobody.close)
        nobody.bind(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{nobody.getsockname()[1]}"
        self.each(1, f"no hub answers at {self.url}: connect 127.0.0.1:",
                  "connection refused", "--hub URL")

    def test_no_server_of_that_name(self):
        # A label of 64 bytes is none: no name server is asked for it.
        self.url = f"http://{64 * 'x'}.invalid:8080"
        self.each(1, f"no hub answers at {self.url}: the server's name does "
                  "not resolve\n", "--hub URL")

    def test_no_token(self):
        self.hub.token = "a-token-of-some-length"
        self.each(1, "a token is needed (401)", "--token-file")

    def test_a_token_that_may_not(self):
        with tempfile.NamedTemporaryFile("w") as file:
            file.write("# mine\nanother-token-of-some-length\n")
            file.flush()
            self.hub.problem = lambda method, path: Problem(
                403, "it wants the role operate", "Forbidden")
            for command in self.COMMANDS:
                said = self.fail_with(1, "it wants the role operate (403)",
                                      *command, "--token-file", file.name)
                self.assertIn("operate for changes", said)
                self.assertNotIn("another-token", said)

    def test_a_token_goes_along(self):
        self.hub.token = "a-token-of-some-length"
        with tempfile.NamedTemporaryFile("w") as file:
            file.write("a-token-of-some-length\n")
            file.flush()
            for command in self.COMMANDS:
                self.succeed(*command, "--token-file", file.name)
        self.fail_with(2, "nowhere", "targets", "--token-file=nowhere")

    def test_all_errors_of_the_settings(self):
        errors = [f"hub.yaml:{i}:3: no such key" for i in range(1, 301)]
        self.hub.problem = lambda method, path: Problem(
            422, "the settings have 300 mistakes", errors=errors)
        said = self.fail_with(1, "the settings have 300 mistakes (422)",
                              "reload")
        self.assertEqual(said.splitlines()[1:], [f"  {e}" for e in errors])

    def test_an_only_error_is_told_once(self):
        long = "`rate`: `5` is not a rate; expected one" + " or another" * 30
        for detail in (long, long[:199]):
            self.hub.problem = lambda method, path: Problem(
                422, detail, errors=[{"pointer": "/rate", "detail": long}])
            self.assertEqual(
                self.fail_with(1, "", "targets", "add", "a", "rate=5"),
                f"stagger targets: {self.url}: /rate: {long} (422)\n")
        self.hub.problem = lambda method, path: Problem(
            422, "hub.yaml:1:3: no such key", errors=["hub.yaml:1:3: no such "
                                                      "key"])
        self.assertEqual(self.fail_with(1, "", "reload").count("\n"), 1)

    def test_another_server(self):
        class Other(Problem):
            def __init__(self, status):
                super().__init__(status, "")
                self.body = b"<h1>hello</h1>"
        for status in (200, 404, 500):
            self.hub.problem = lambda method, path: Other(status)
            self.each(1, f"answered {status}, but not as a hub does")

    def test_a_url_that_is_none(self):
        for command in self.COMMANDS:
            done = run(*command, "--hub", "ftp://x")
            self.assertEqual(done.returncode, 2, done.stderr)
            self.assertIn("--hub: ", done.stderr)
        done = run("targets", "--hub", "http://h/?a")
        self.assertIn("without a query", done.stderr)

    def test_the_hub_of_the_environment(self):
        done = run("targets", STAGGER_HUB=self.hub.url + "/")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("billing", done.stdout)


class Targets(Case):
    def test_pause_and_resume(self):
        self.assertEqual(self.succeed("pause", "billing", "flaky"),
                         "billing: paused\nflaky: paused\n")
        self.assertEqual(self.succeed("resume", "billing"), "billing: live\n")
        self.assertEqual(self.calls(), [
            "POST /v1/targets/billing/pause", "POST /v1/targets/flaky/pause",
            "POST /v1/targets/billing/resume"])

    def test_one_that_is_not_there(self):
        done = self.ask("pause", "none", "billing")
        self.assertEqual((done.returncode, done.stdout),
                         (1, "billing: paused\n"))
        self.assertIn("there is no target none (404)", done.stderr)
        self.fail_with(1, "there is no target a/../b?c", "pause", "a/../b?c")
        self.assertEqual(self.calls()[-1],
                         "POST /v1/targets/a%2F..%2Fb%3Fc/pause")
        self.fail_with(2, "expected the name of a target", "pause")

    def test_list(self):
        text = self.succeed("targets")
        self.assertRegex(text, r"\nlegacy +orphaned +store ")
        self.hub.delivers = {}
        self.assertEqual(self.succeed("targets"),
                         self.succeed("targets", "list"))
        found = json.loads(self.succeed("targets", "--json"))
        self.assertEqual([each["name"] for each in found["targets"]],
                         sorted(each["name"] for each in self.hub.targets))

    def test_forget_wants_a_yes(self):
        self.fail_with(2, "add --yes to confirm", "targets", "forget", "legacy")
        self.assertEqual(self.calls(), [])
        self.assertEqual(self.succeed("targets", "forget", "-y", "legacy"),
                         "legacy: forgotten\n")
        self.fail_with(1, "the settings have it (409)", "targets", "forget",
                       "--yes", "billing")

    def test_forget_asks_on_a_terminal(self):
        self.hub.find("legacy")["dead"] = 2
        for answer, code in (("n", 1), ("", 1), ("yes", 0)):
            screen = Terminal("targets", "forget", "legacy", "--hub",
                              self.hub.url)
            screen.read(r"31 messages that wait for it are cancelled, and its "
                        r"2 dead letters cannot be sent again, for good\. "
                        r"Forget it\? \[y/N\]")
            screen.type(answer + "\n")
            self.assertEqual(screen.end(), code)
        self.assertEqual(
            [call for call in self.calls() if call.endswith("forget")],
            ["POST /v1/targets/legacy/forget"])

    def test_forget_says_first_what_would_go(self):
        self.assertEqual(
            self.succeed("targets", "forget", "--dry-run", "legacy"),
            "legacy: would be forgotten: 31 messages that wait for it are "
            "cancelled\n")
        self.fail_with(1, "the settings have it (409)", "targets", "forget",
                       "--dry-run", "billing")
        self.assertEqual(len(self.hub.targets), 9)

    def test_reload(self):
        self.assertEqual(self.succeed("reload"),
                         "reloaded: 3 targets are new, 1 changed, 0 are gone, 9 "
                         "as before\n")

    def test_bad_words(self):
        for words, expected in (
                (["targets", "x"], "expected list, show, add, set, rewind, remove or forget"),
                (["targets", "list", "x"], "unexpected argument"),
                (["targets", "--yes"], "list has no option --yes"),
                (["targets", "forget", "--json", "x"], "no option --json"),
                (["targets", "forget"], "expected the name"),
                (["reload", "x"], "unexpected argument")):
            self.fail_with(2, expected, *words)
        self.assertEqual(self.calls(), [])


class Dead(Case):
    def setUp(self):
        super().setUp()
        self.hub.letters = [letter(i, count=10 if i == 3 else 1)
                            for i in range(1, 6)]

    def choices(self):
        return [json.loads(body) for method, path, body in self.hub.requests
                if method == "POST" and path.startswith("/v1/dead-letters")]

    def test_conditions_go_to_the_hub(self):
        self.succeed("dead", "replay", "--dry-run", "-t", "billing", "-c",
                     "HTTP_503", "--since", "2026-03-01", "--until",
                     "2026-03-01 12:30")
        self.succeed("dead", "drop", "--dry-run", "--id", "1,2", "--id=3",
                     "-c", "B")
        self.succeed("dead", "drop", "--dry-run", "--all")
        self.succeed("dead", "drop", "--dry-run", "--since", "2h")
        *fixed, ago = self.choices()
        self.assertEqual(fixed, [
            {"target": "billing", "cause": "HTTP_503", "dry_run": True,
             "since": "2026-03-01T00:00:00.000Z",
             "until": "2026-03-01T12:30:00.000Z"},
            {"ids": [1, 2, 3], "cause": "B", "dry_run": True},
            {"all": True, "dry_run": True}])
        self.assertRegex(ago["since"],
                         r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$")

    def test_replay_is_waited_for(self):
        self.hub.replay = [{}, {}]
        self.assertEqual(self.succeed("dead", "replay", "--all", "--yes"),
                         "14 messages are on the way again; stagger status "
                         "shows how they fare\n")
        self.assertEqual(self.choices(), [{"all": True, "dry_run": False}])
        self.assertEqual(self.calls()[1:], ["GET /v1/replays/5"] * 3)

    def test_a_replay_that_does_not_get_to_its_end_is_told(self):
        for state, words in (
                ({"state": "held", "held": "billing"},
                 "500 of a replay wait at once, and billing does not take "
                 "them: mend it, then ask again"),
                ({"state": "full"}, "the store is full"),
                ({"state": "stopped"}, "the hub was stopped")):
            self.hub.letters = [letter(1)]
            self.hub.replay = [{**state, "letters": 1, "messages": 4,
                                "expired": 0, "forgotten": 0,
                                "orphaned": 0, "paused": 0}]
            done = self.ask("dead", "replay", "--all", "--yes")
            self.assertEqual(done.returncode, 1)
            self.assertIn("4 messages are on the way", done.stdout)
            self.assertIn(words, done.stderr)
            self.assertIn("dead as before", done.stderr)

    def test_what_cannot_be_sent_again_is_told(self):
        self.hub.expired, self.hub.forgotten = 7, 1
        text = self.succeed("dead", "replay", "--all", "--dry-run")
        self.assertIn("7 messages cannot be sent again: the bodies are gone\n"
                      "1 dead letter cannot be sent again: the target was "
                      "forgotten\n", text)
        text = self.succeed("dead", "replay", "--all", "--yes")
        self.assertIn("7 messages cannot be sent again", text)
        self.hub.letters = [letter(1)]
        self.assertNotIn("again", self.succeed("dead", "drop", "--all", "-y"))

    def test_a_hub_that_goes_meanwhile_is_told(self):
        self.hub.problem = lambda method, path: (
            Problem(503, "it stops") if "replays" in path else None)
        self.fail_with(1, "goes on in the hub, or has ended", "dead",
                       "replay", "--all", "--yes")

    def test_drop(self):
        self.assertEqual(self.succeed("dead", "drop", "--id=3", "-y"),
                         "1 dead letter, 10 messages: dropped\n")
        self.assertEqual(len(self.hub.letters), 4)

    def test_none_that_fits_is_told(self):
        self.hub.letters = [letter(1, target="gone", cause="HTTP_503")]
        for command, words in (("replay", "nothing was sent again"),
                            ("drop", "nothing was dropped")):
            for choice in (["-c", "HTTP_404"], ["-t", "billing"],
                           ["-t", "gone", "-c", "SHED"]):
                for how in ("--dry-run", "--yes"):
                    self.assertEqual(
                        self.succeed("dead", command, how, *choice),
                        f"no dead letter fits: {words}\n")
        text = self.succeed("dead", "replay", "-c", "SHED", "--dry-run",
                            "--json")
        self.assertEqual(json.loads(text)["letters"], 0)

    def test_only_some_of_a_target_that_was_forgotten(self):
        self.hub.letters, self.hub.forgotten = [], 2
        for how in ("--dry-run", "--yes"):
            self.assertEqual(
                self.succeed("dead", "replay", how, "--all"),
                "nothing was sent again\n2 dead letters cannot be sent again: "
                "the target was forgotten\n")

    def test_what_waits_for_a_paused_target_is_not_on_the_way(self):
        self.hub.paused = 10
        self.assertIn("14 messages: would be sent again\n10 messages wait "
                      "until the target is resumed: it is paused\n",
                      self.succeed("dead", "replay", "--all", "--dry-run"))
        self.assertEqual(
            self.succeed("dead", "replay", "--all", "--yes"),
            "4 messages are on the way again; stagger status shows how they "
            "fare\n10 messages wait until the target is resumed: it is "
            "paused\n")
        self.hub.letters, self.hub.paused = [letter(1)], 1
        self.hub.letters[0]["count"] = 1
        self.assertEqual(
            self.succeed("dead", "replay", "--all", "--yes"),
            "1 message waits until the target is resumed: it is paused\n")

    def test_only_some_of_a_target_that_is_not_in_the_settings(self):
        self.hub.letters, self.hub.orphaned = [], 2
        for how in ("--dry-run", "--yes"):
            self.assertEqual(
                self.succeed("dead", "replay", how, "--all"),
                "nothing was sent again\n2 dead letters cannot be sent again: "
                "the settings do not have the target\n")

    def test_a_name_that_nobody_has_is_told(self):
        for words in (["list"], ["list", "--summary"], ["list", "--json"],
                      ["list", "--csv"], ["export"], ["replay", "--dry-run"],
                      ["replay", "--yes"], ["drop", "--dry-run"],
                      ["drop", "--yes"],
                      ["drop", "--dry-run", "--json"]):
            done = self.ask("dead", *words, "-t", "a b")
            self.assertEqual(done.returncode, 1, words)
            self.assertIn("a b: no dead letter has this target; "
                          f"{self.url}: there is no target a b (404)\n",
                          done.stderr)
            self.assertEqual(done.stdout != "",
                             "--json" in words or "--csv" in words, words)

    def test_an_id_that_no_letter_has_is_told(self):
        self.hub.letters.append(letter(9, state="replayed"))
        for command in ("replay", "drop"):
            for how in (["--dry-run"], ["--yes"], ["--dry-run", "--json"]):
                self.hub.replay = [{"state": "done", "letters": 0, "messages":
                                    0, "expired": 0, "forgotten": 0}]
                done = self.ask("dead", command, "--id=999", "--id=998", *how)
                self.assertEqual(done.returncode, 1, how)
                self.assertEqual(done.stderr,
                                 "stagger dead: there is no dead letter 999\n"
                                 "stagger dead: there is no dead letter 998\n")
        done = self.ask("dead", "drop", "-c", "HTTP_404", "--id=1,9", "-y")
        self.assertEqual((done.returncode, done.stdout, done.stderr), (
            0, "no dead letter fits: nothing was dropped\n",
            "stagger dead: dead letter 9 is replayed\n"))

    def test_a_replay_that_is_held_at_once_has_sent_nothing(self):
        self.hub.replay = [{"state": "held", "held": "billing", "letters": 0,
                            "messages": 0, "expired": 0, "forgotten": 0,
                                "orphaned": 0, "paused": 0}]
        done = self.ask("dead", "replay", "--all", "--yes")
        self.assertEqual((done.returncode, done.stdout),
                         (1, "nothing was sent again\n"))
        self.assertIn("billing does not take them", done.stderr)

    def test_asks_on_a_terminal_and_shows_what_first(self):
        for command, answer, code in (("replay", "n", 1), ("drop", "q", 1),
                                   ("replay", "y", 0)):
            screen = Terminal("dead", command, "--all", "--hub", self.hub.url)
            text = screen.read(r"\[y/N\]")
            self.assertIn("5 dead letters, 14 messages: would be", text)
            self.assertIn("HTTP_503", text)
            screen.type(answer + "\n")
            self.assertEqual(screen.end(), code)
        self.assertEqual([choice["dry_run"] for choice in self.choices()],
                         [True, True, True, False])

    def test_json(self):
        dry = json.loads(self.succeed("dead", "replay", "--all", "--json",
                                      "--dry-run"))
        self.assertEqual((dry["letters"], dry["messages"]), (5, 14))
        done = json.loads(self.succeed("dead", "replay", "--all", "--json",
                                       "--yes"))
        self.assertEqual((done["state"], done["messages"]), ("done", 14))

    def test_is_refused_without_a_condition_or_a_yes(self):
        for words, expected in (
                ([], "which ones?"),
                (["--yes"], "which ones?"),
                (["--all"], "add --yes to confirm, or --dry-run"),
                (["--all", "--json"], "add --yes, or --dry-run"),
                (["--all", "--target=x", "--yes"], "no other condition"),
                (["--all", "--dry-run", "--yes"], "exclude each other"),
                (["--id=0", "--yes"], "expected ids"),
                (["--id=1,", "--yes"], "expected ids"),
                (["--id=-1", "--yes"], "expected ids"),
                (["--id=99999999999999999999", "--yes"], "expected ids"),
                (["--state=dead", "--yes"], "no option --state"),
                (["--store=x", "--yes"], "no option --store"),
                (["7"], "unexpected argument 7; did you mean --id 7?"),
                (["7x"], "unexpected argument 7x\n")):
            for command in ("replay", "drop"):
                self.fail_with(2, expected, "dead", command, *words)
        done = run("dead", "list", "--yes")
        self.assertIn("list has no option --yes", done.stderr)
        self.assertEqual(self.calls(), [])


if __name__ == "__main__":
    unittest.main()
