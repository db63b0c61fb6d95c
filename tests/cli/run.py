"""stagger run, as its users see it: the real binary and real commands.

Waits are a millisecond where the test can choose, so nothing here sleeps for
long; where a signal must meet a running command, a pipe says that it runs.
"""
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
import unittest

STAGGER = os.environ["STAGGER"]
LOOP = "while :; do sleep 0.01; done"
QUICK = "fixed base=1ms jitter=none attempts=3"


def environment():
    env = dict(os.environ)
    for name in ("STAGGER_ATTEMPT", "STAGGER_ATTEMPTS_MAX"):
        env.pop(name, None)
    return env


def run(*arguments, stdin=None, env=None):
    return subprocess.run(
        [STAGGER, "run", *arguments], capture_output=True, text=True,
        input=stdin, env=env or environment(), timeout=60)


class Run(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def path(self, name):
        return os.path.join(self.folder, name)

    def flaky(self, failures, code=1):
        """A command that fails that often, and then succeeds."""
        count = self.path("count")
        return ["sh", "-c", f"""
            n=$(cat {count} 2>/dev/null || echo 0)
            echo $((n + 1)) > {count}
            echo "try $n"
            [ "$n" -ge {failures} ] || exit {code}"""]

    def attempts(self):
        with open(self.path("count")) as count:
            return int(count.read())

    # -- what it does

    def test_is_silent_when_the_command_succeeds(self):
        r = run("--", "echo", "hello")
        self.assertEqual((r.returncode, r.stdout, r.stderr), (0, "hello\n", ""))

    def test_prints_each_retry_when_it_is_verbose(self):
        policy = "list=1ms,3ms jitter=none attempts=3"
        retries = ["Retry 1 after 1 ms", "Retry 2 after 3 ms"]
        for option in ("-v", "--verbose"):
            r = run(option, "-p", policy, "--", "false")
            lines = r.stderr.splitlines()
            self.assertEqual([lines[1], lines[3]], retries)
            self.assertEqual(len(lines), 5, lines)
        r = run("-qv", "-p", policy, "--", "false")
        self.assertEqual(r.stderr.splitlines(), retries)
        r = run("-v", "--json", "-p", policy, "--", "false")
        self.assertEqual([json.loads(line)["next"]
                          for line in r.stderr.splitlines()],
                         ["wait", "wait", "give-up"])

    def test_runs_a_command_until_it_succeeds(self):
        r = run("-p", QUICK, "--", *self.flaky(2))
        self.assertEqual(r.returncode, 0)
        self.assertEqual(r.stdout, "try 0\ntry 1\ntry 2\n")
        lines = r.stderr.splitlines()
        self.assertEqual(lines[0], "stagger: attempt 1 of 3: exit 1; "
                                   "next in 1 ms (backoff)")
        self.assertEqual(lines[1], "stagger: attempt 2 of 3: exit 1; "
                                   "next in 1 ms (backoff)")
        self.assertRegex(lines[2], r"^stagger: done after 3 attempts in .*s$")
        self.assertEqual(len(lines), 3)

    def test_ends_with_the_last_exit_code(self):
        r = run("-p", QUICK, "--", "sh", "-c", "exit 7")
        self.assertEqual(r.returncode, 7)
        self.assertRegex(r.stderr.splitlines()[-1],
                         r"^stagger: gave up after 3 attempts in .*s: "
                         r"exit 7 \(attempts\)$")

    def test_has_a_default_policy(self):
        r = run("--", *self.flaky(1, 9))
        self.assertEqual(r.returncode, 0)
        self.assertIn("attempt 1 of 3: exit 9; next in ", r.stderr)

    def test_takes_a_preset_with_a_budget_and_a_breaker(self):
        for policy in ("backend base=1ms", "broadcast base=1ms",
                       "aws base=1ms", "webhook list=1ms"):
            count = self.path("count")
            if os.path.exists(count):
                os.remove(count)
            r = run("-p", policy, "--", *self.flaky(1))
            self.assertEqual(r.returncode, 0, r.stderr)

    def test_obeys_a_policy_that_has_a_word_on_exit(self):
        r = run("-p", QUICK + " never=exit", "--", *self.flaky(9))
        self.assertEqual((r.returncode, self.attempts()), (1, 1))
        self.assertRegex(r.stderr, r"^stagger: gave up after 1 attempt in .*: "
                                   r"exit 1 \(permanent\)\n$")
        r = run("-p", QUICK + " once=exit", "--", *self.flaky(9))
        self.assertEqual(self.attempts(), 3)
        self.assertIn("(fault-limit)", r.stderr)

    def test_retries_unlimited(self):
        r = run("-p", "fixed base=0 jitter=none attempts=unlimited "
                      "deadline=none", "--", *self.flaky(20))
        self.assertEqual(r.returncode, 0)
        self.assertIn("stagger: attempt 20: exit 1; next in 0 (backoff)\n",
                      r.stderr)

    def test_reads_a_policy_of_a_file(self):
        with open(self.path("policies"), "w") as file:
            file.write("# two\nquick: fixed base=1ms attempts=2\n"
                       "other: client\n")
        r = run("-f", self.path("policies"), "-p", "quick", "--",
                *self.flaky(9))
        self.assertEqual((r.returncode, self.attempts()), (1, 2))

    def test_knows_the_presets_beside_a_file(self):
        with open(self.path("policies"), "w") as file:
            file.write("quick: fixed base=1ms attempts=2\n")
        r = run("-f", self.path("policies"), "-p", "none", "--", "false")
        self.assertEqual(r.returncode, 1)
        r = run("-f", self.path("policies"), "-p", "quack", "--", "false")
        self.assertEqual(r.returncode, 125)
        self.assertRegex(r.stderr, "has no policy called quack, did you mean "
                                   r"quick\?\n")
        for name, hint in (("bakcend", "did you mean the preset backend?"),
                           ("quicka", "did you mean quick?"),
                           ("zzz", "called zzz")):
            r = run("-f", self.path("policies"), "-p", name, "--", "false")
            self.assertEqual(r.returncode, 125)
            self.assertTrue(r.stderr.endswith(hint + "\n"), r.stderr)
        with open(self.path("policies"), "a") as file:
            file.write("backed: none\n")
        r = run("-f", self.path("policies"), "-p", "backedn", "--", "false")
        self.assertIn("did you mean backed, or the preset backend?", r.stderr)

    def test_notices_a_policy_without_quotes(self):
        r = run("-p", "attempts=1", "base=1s", "--", "false")
        self.assertEqual(r.returncode, 127)
        self.assertIn("Quote a policy of several words", r.stderr)

    def test_passes_standard_input_on(self):
        r = run("--", "cat", stdin="some words\n")
        self.assertEqual(r.stdout, "some words\n")

    def test_tells_the_command_which_attempt_it_is(self):
        show = 'echo $STAGGER_ATTEMPT of $STAGGER_ATTEMPTS_MAX; exit 1'
        r = run("-p", QUICK, "--", "sh", "-c", show)
        self.assertEqual(r.stdout, "1 of 3\n2 of 3\n3 of 3\n")
        r = run("-p", "attempts=unlimited fixed base=1h jitter=none deadline=1m", "--",
                "sh", "-c", show)
        self.assertEqual(r.stdout, "1 of 4294967295\n")

    # -- exit codes

    def test_retries_the_codes_of_on_only(self):
        on = ("-p", QUICK, "--on", "1,75-78", "--")
        for code, attempts in ((1, 3), (2, 1), (74, 1), (75, 3), (78, 3),
                               (79, 1)):
            r = run(*on, *self.flaky(9, code))
            self.assertEqual((r.returncode, self.attempts()), (code, attempts))
            left_out = f"exit {code} (permanent), which --on leaves out\n"
            self.assertEqual(attempts == 1, r.stderr.endswith(left_out))
            os.remove(self.path("count"))

    def test_does_not_repeat_what_cannot_be_executed(self):
        r = run("-p", QUICK, "--", self.path("missing"))
        self.assertEqual(r.returncode, 127)
        self.assertIn(f"{self.path('missing')}: No such file", r.stderr)
        self.assertIn("gave up after 1 attempt", r.stderr)
        with open(self.path("text"), "w") as file:
            file.write("no program\n")
        r = run("-p", QUICK, "--", self.path("text"))
        self.assertEqual(r.returncode, 126)
        self.assertIn("gave up after 1 attempt", r.stderr)
        r = run("-p", QUICK, "--", "sh", "-c", "exit 127")
        self.assertIn("gave up after 1 attempt", r.stderr)

    def write(self, name, content, mode=0o755):
        path = self.path(name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as file:
            file.write(content)
        os.chmod(path, mode)
        return path

    def test_runs_a_script_that_names_no_shell(self):
        script = self.write("script", b"echo $0 $1 $#; exit 3\n")
        for path in (None, self.folder, f"/nowhere:{script}:{self.folder}:"):
            given = {} if path is None else {"PATH": path}
            r = run("-p", "none", "--", script if path is None else "script",
                    "one", "two words", env={**environment(), **given})
            self.assertEqual((r.returncode, r.stdout),
                             (3, f"{script} one 2\n"), r.stderr)
        self.assertEqual(run("--", self.write("empty", b"")).returncode, 0)

    def test_does_not_take_a_program_for_a_script(self):
        program = self.write("program", b"\x7fELF\x02\x01\x01\0\nexit 5\n")
        r = run("-p", QUICK, "--", program)
        self.assertEqual(r.returncode, 126)
        self.assertIn(f"{program}: Exec format error", r.stderr)
        self.assertIn("gave up after 1 attempt", r.stderr)

    def test_looks_along_the_path_as_shells_do(self):
        denied = self.write("denied/command", b"echo no\n", 0o644)
        self.write("given/command", b"#!/bin/sh\necho yes\n")
        self.write("given/other", b"")
        given, denied = self.path("given"), os.path.dirname(denied)
        for path, command, code in (
                (f"{denied}:/nowhere:{given}", "command", 0),
                (f"{denied}:/nowhere", "command", 126),
                (given, "another", 127), (given, "", 127), ("", "command", 127),
                ("/" + "x" * 5000 + ":" + given, "command", 0)):
            r = run("-p", "none", "--", command,
                    env={**environment(), "PATH": path})
            self.assertEqual(r.returncode, code, (path, command, r.stderr))

    def test_reads_a_death_by_signal_as_128_and_its_number(self):
        r = run("-p", QUICK, "--", "sh", "-c", "kill -9 $$")
        self.assertEqual(r.returncode, 137)
        self.assertIn("exit 137 (attempts)", r.stderr)

    # -- time

    def test_ends_an_attempt_in_time(self):
        r = run("-p", QUICK, "-t", "50ms", "--", "sleep", "60")
        self.assertEqual(r.returncode, 124)
        self.assertIn("attempt 1 of 3: timeout; next in 1 ms", r.stderr)
        self.assertIn("timeout (attempts)", r.stderr)

    def test_retries_a_timeout_only_if_on_has_its_code(self):
        r = run("-p", QUICK, "-t", "50ms", "-o", "1", "--", "sleep", "60")
        self.assertEqual(r.returncode, 124)
        self.assertIn("gave up after 1 attempt", r.stderr)

    def test_takes_the_attempt_timeout_and_the_deadline_of_the_policy(self):
        r = run("-p", "attempts=1 attempt-timeout=50ms", "--", "sleep", "60")
        self.assertEqual(r.returncode, 124)
        r = run("-p", "attempts=9 deadline=50ms", "--", "sleep", "60")
        self.assertEqual(r.returncode, 124)
        self.assertIn("timeout (deadline)", r.stderr)

    def assert_ends(self, pid):
        """It runs no longer, or ends soon; a zombie has ended."""
        for _ in range(6000):
            try:
                with open(f"/proc/{pid}/stat") as file:
                    if file.read().rpartition(")")[2].split()[0] == "Z":
                        return
            except FileNotFoundError:
                return
            time.sleep(0.01)
        os.kill(pid, signal.SIGKILL)
        self.fail(f"{pid} still runs after 60 s")

    def run_out_of_time(self, script, *options):
        """Runs script out of time, again if it has not written its pid by then.
        Returns the output and the pid."""
        r = run("-p", "fixed base=0 jitter=none attempts=99 deadline=none",
                "-t", "300ms", *options, "--", "sh", "-c",
                f"[ ! -s {self.path('pid')} ] || exit 0; {script}")
        self.assertEqual(r.returncode, 0, r.stderr)
        with open(self.path("pid")) as file:
            return r.stdout, int(file.read())

    def test_ends_what_the_command_has_started_in_time(self):
        _, pid = self.run_out_of_time(
            f"sh -c 'echo $$ >{self.path('pid')}; {LOOP}' & wait", "-k", "1h")
        self.assert_ends(pid)

    def test_waits_for_what_takes_its_time_to_end(self):
        output, pid = self.run_out_of_time(
            "sh -c 'trap \"sleep 0.1; echo ended; exit\" TERM; "
            f"echo $$ >{self.path('pid')}; {LOOP}' & wait", "-k", "1h")
        self.assertEqual(output, "ended\n")
        self.assert_ends(pid)

    def test_kills_who_does_not_end(self):
        tough = (f"trap \"\" TERM; echo $$ >{self.path('pid')}; {LOOP}")
        for script in (f"sh -c '{tough}' & wait", tough):
            _, pid = self.run_out_of_time(script, "--kill-after", "100ms")
            self.assert_ends(pid)
            os.remove(self.path("pid"))

    def test_ends_a_command_that_is_stopped(self):
        r = run("-p", "none", "-t", "300ms", "-k", "1h", "--", "sh", "-c",
                "kill -STOP $$")
        self.assertEqual(r.returncode, 124)

    def test_ends_a_command_in_a_group_of_its_own(self):
        r = run("-p", "none", "-t", "300ms", "-k", "1h", "--", "setsid",
                "sleep", "60")
        self.assertEqual(r.returncode, 124)

    def test_leaves_alone_what_a_command_in_time_has_started(self):
        r = run("-p", "none", "-t", "1h", "--", "sh", "-c",
                "sleep 60 >/dev/null 2>&1 & echo $!")
        pid = int(r.stdout)
        self.assertEqual(r.returncode, 0)
        os.kill(pid, signal.SIGKILL)  # it is there

    def test_does_not_wait_past_the_deadline(self):
        r = run("-p", "fixed base=1h jitter=none", "--", "false")
        self.assertEqual(r.returncode, 1)
        self.assertIn("exit 1 (deadline)", r.stderr)

    # -- signals

    def start(self, policy, script, *options):
        """Runs sh -c script, and returns once it has written a line."""
        p = subprocess.Popen(
            [STAGGER, "run", "-p", policy, *options, "--", "sh", "-c", script],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            env=environment(), start_new_session=True)
        self.addCleanup(p.stdout.close)
        self.addCleanup(p.stderr.close)
        self.assertEqual(p.stdout.readline(), "ready\n")
        return p

    def test_passes_a_signal_on_and_stops(self):
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            p = self.start(QUICK, f"trap 'exit 9' {number.value}; echo ready; "
                                  "while :; do sleep 0.01; done")
            p.send_signal(number)
            self.assertEqual(p.wait(30), 9)
            self.assertIn("exit 9 (cancelled)", p.stderr.read())

    def test_passes_a_signal_on_to_what_the_command_has_started(self):
        p = self.start(QUICK, "sleep 60 >/dev/null 2>&1 & "
                              f"echo $! >{self.path('pid')}; echo ready; wait")
        p.send_signal(signal.SIGTERM)
        self.assertEqual(p.wait(30), 143)
        with open(self.path("pid")) as file:
            self.assert_ends(int(file.read()))

    # Who has told that the time is over gets a signal of ours, too, and there is
    # no other attempt.
    LATE = ("fixed base=1h jitter=none attempts=3 deadline=none "
            "attempt-timeout=300ms")

    def late(self, script, *options):
        p = self.start(self.LATE, script, *options)
        self.assertEqual(p.stdout.readline(), "over\n")
        p.send_signal(signal.SIGTERM)
        self.assertEqual(p.stdout.readline(), "told\n")
        self.assertEqual(p.wait(30), 124)
        # Before it stand words of the shell about its sleep.
        self.assertRegex(p.stderr.read(), r"stagger: gave up after 1 attempt "
                                          r"in .*: timeout \(cancelled\)\n$")

    TWICE = ("trap \"trap 'echo told; $then' TERM; echo over\" TERM; "
             f"echo ready; {LOOP}")

    def test_passes_a_signal_on_when_the_time_is_over(self):
        self.late("then=exit; " + self.TWICE, "--kill-after=20s")

    def test_passes_a_signal_on_to_who_is_left_when_the_time_is_over(self):
        # The command itself ends at the first one.
        self.late("(then=exit; " + self.TWICE + ") & wait", "--kill-after=20s")

    def test_kills_who_does_not_end_at_a_late_signal_either(self):
        self.late("then=:; echo $$ >%s; %s" % (self.path("pid"), self.TWICE),
                  "--kill-after=2s")
        with open(self.path("pid")) as file:
            self.assert_ends(int(file.read()))

    def test_outlives_a_command_that_signals_its_group(self):
        p = self.start(QUICK, "echo ready; kill 0; sleep 60")
        self.assertEqual(p.wait(30), 143)
        self.assertIn("exit 143 (attempts)", p.stderr.read())

    def test_is_done_when_the_command_ends_well_by_a_signal(self):
        p = self.start(QUICK, "trap 'exit 0' TERM; echo ready; "
                              "while :; do sleep 0.01; done")
        p.send_signal(signal.SIGTERM)
        self.assertEqual(p.wait(30), 0)

    def test_passes_user_signals_on_and_goes_on(self):
        p = self.start("none", "trap 'echo got; exit 3' USR1; echo ready; "
                               "while :; do sleep 0.01; done")
        p.send_signal(signal.SIGUSR1)
        self.assertEqual(p.wait(30), 3)
        self.assertEqual(p.stdout.read(), "got\n")
        self.assertNotIn("cancelled", p.stderr.read())

    def test_stops_waiting_at_a_signal(self):
        p = self.start("fixed base=1m jitter=none deadline=none",
                       "echo ready; exit 1")
        self.assertIn("next in 1 min", p.stderr.readline())
        p.send_signal(signal.SIGTERM)
        self.assertEqual(p.wait(30), 143)
        self.assertIn("exit 1 (cancelled)", p.stderr.read())

    def test_waits_on_at_a_user_signal(self):
        p = self.start("fixed base=300ms jitter=none attempts=2",
                       "echo ready; exit 1")
        self.assertIn("next in 300 ms", p.stderr.readline())
        p.send_signal(signal.SIGUSR1)
        self.assertEqual(p.wait(30), 1)
        self.assertIn("gave up after 2 attempts", p.stderr.read())

    def test_starts_the_command_with_the_signals_as_they_were(self):
        r = run("--", sys.executable, "-c",
                "import signal; print(sorted(signal.pthread_sigmask("
                "signal.SIG_BLOCK, [])))")
        self.assertEqual(r.stdout, "[]\n")

    def test_leaves_a_signal_ignored_that_its_parent_ignores(self):
        p = subprocess.run(
            ["sh", "-c", f"trap '' HUP; {STAGGER} run -- sh -c "
                         "'kill -HUP $PPID; kill -HUP $$; echo alive'"],
            capture_output=True, text=True, env=environment(), timeout=30)
        self.assertEqual((p.returncode, p.stdout), (0, "alive\n"))

    # -- nesting

    def test_makes_one_attempt_inside_another_run(self):
        r = run("-p", QUICK, "--", STAGGER, "run", "-p", QUICK, "--",
                *self.flaky(99))
        # The one around has no attempt left after its third.
        self.assertEqual((r.returncode, self.attempts()), (1, 1 + 1 + 3))
        self.assertEqual(r.stderr.count("exit 1 (nested)"), 2)

    def test_is_not_nested_by_what_is_no_stagger_around_it(self):
        for attempt, most in (("", ""), ("1", None), ("1", ""), ("x", "3"),
                              ("1", "x"), ("1x", "3"), ("0", "3"), ("-1", "3"),
                              ("3", "3"), ("4", "3"), ("1", "4294967296")):
            given = {"STAGGER_ATTEMPT": attempt}
            if most is not None:
                given["STAGGER_ATTEMPTS_MAX"] = most
            r = run("-p", QUICK, "--", "sh", "-c", "exit 1",
                    env={**environment(), **given})
            self.assertIn("exit 1 (attempts)", r.stderr, (attempt, most))

    def test_is_nested_in_a_stagger_that_has_attempts_left(self):
        for attempt, most in (("1", "3"), ("2", "3"), ("7", "4294967295")):
            given = {"STAGGER_ATTEMPT": attempt, "STAGGER_ATTEMPTS_MAX": most}
            r = run("-p", QUICK, "--", "sh", "-c", "exit 1",
                    env={**environment(), **given})
            self.assertIn("exit 1 (nested)", r.stderr, (attempt, most))

    def test_repeats_inside_another_run_if_the_policy_says_so(self):
        run("-p", QUICK, "--", STAGGER, "run", "-p", QUICK + " nested=full",
            "--", *self.flaky(99))
        self.assertEqual(self.attempts(), 9)

    # -- words

    def test_says_nothing_when_it_is_quiet(self):
        r = run("-q", "-p", QUICK, "--", *self.flaky(2))
        self.assertEqual((r.returncode, r.stderr), (0, ""))

    def test_speaks_json(self):
        r = run("--json", "-p", QUICK, "--", *self.flaky(9, 5))
        lines = [json.loads(line) for line in r.stderr.splitlines()]
        self.assertEqual(lines[0], {
            "attempt": 1, "attempts_max": 3, "cause": "EXIT_5",
            "next": "wait", "why": "backoff", "wait_ms": 1})
        self.assertEqual([l["next"] for l in lines],
                         ["wait", "wait", "give-up"])
        self.assertEqual(lines[-1]["why"], "attempts")
        self.assertEqual(lines[-1]["wait_ms"], None)
        r = run("--json", "-p", "none attempts=unlimited", "--", "true")
        self.assertEqual([json.loads(l) for l in r.stderr.splitlines()], [
            {"attempt": 1, "attempts_max": None, "cause": None,
             "next": "done", "why": "done", "wait_ms": None}])

    def test_has_a_help_that_fits_the_terminal(self):
        for words in (["--help"], ["-h"]):
            r = run(*words)
            self.assertEqual((r.returncode, r.stderr), (0, ""))
            self.assertTrue(r.stdout.startswith("usage: stagger run"))
            self.assertLessEqual(max(map(len, r.stdout.splitlines())), 79)

    def test_names_what_is_wrong(self):
        cases = [
            ([], "no command to run: see stagger run --help"),
            (["--"], "no command to run: see stagger run --help"),
            (["-p", "base=200ms cap=100ms", "--", "true"],
             "policy:1:12: cap=100ms is below base=200ms\n"
             "  base=200ms cap=100ms\n             ^"),
            (["-f", "/nowhere", "-p", "x", "--", "true"],
             "/nowhere: No such file or directory"),
            (["-f", "/nowhere", "--", "true"],
             "--file without --policy: expected the name of a policy in it"),
            (["-o", "0", "--", "true"],
             "--on=0: expected exit codes, such as 1,75-78"),
            (["-t", "0", "--", "true"],
             "--timeout=0: expected a time up to 365d, such as 30s"),
            (["-t", "soon", "--", "true"],
             "--timeout=soon: expected a time up to 365d, such as 30s"),
            (["-k", "0", "--", "true"],
             "--kill-after=0: expected a time up to 365d, such as 30s"),
            (["--kill-after", "5", "--", "true"],
             "--kill-after=5: expected a time up to 365d, such as 30s"),
        ]
        for words, text in cases:
            r = run(*words)
            self.assertEqual(r.returncode, 125, words)
            self.assertEqual(r.stderr, f"stagger run: {text}\n", words)
        for codes in ("", "x", "256", "1,", "5-4", "1-", ",1", "1;2", "-1"):
            r = run("--on=" + codes, "--", "true")
            self.assertEqual(r.returncode, 125, codes)
        r = run("--nonsense", "--", "true")
        self.assertEqual(r.returncode, 125)
        self.assertIn("See stagger run --help", r.stderr)

    def test_leaves_the_options_of_the_command_alone(self):
        r = run("echo", "-p", "--help")
        self.assertEqual(r.stdout, "-p --help\n")


if __name__ == "__main__":
    unittest.main()
