"""stagger run at a terminal: Ctrl-C, Ctrl-Z and fg, input, pipelines, hangups.

Each test has a pseudo terminal of its own and waits for words on it. A shell
with job control ("set -m") runs the script, where a shell matters.
"""
import os
import pty
import select
import signal
import sys
import tempfile
import time
import unittest

from run import LOOP, QUICK, STAGGER, environment

RUN = f"{STAGGER} run"
READ = "'echo ready; read x; echo got $x'"
CTRL_C, CTRL_Z, CTRL_BACKSLASH = b"\x03", b"\x1a", b"\x1c"


class Terminal:
    def __init__(self, *command):
        self.seen = b""
        self.pid, self.file = pty.fork()
        if self.pid == 0:
            os.execvpe(command[0], command, environment())

    def read(self):
        """More of the output; False at its end."""
        ready, _, _ = select.select([self.file], [], [], 60)
        if not ready:
            raise AssertionError(f"only {self.seen} in 60 s")
        try:
            more = os.read(self.file, 1000)
        except OSError:  # nobody has it open any more
            return False
        self.seen += more
        return more != b""

    def expect(self, words):
        """Reads on to words, and returns what came before."""
        words = words.encode()
        while words not in self.seen:
            if not self.read():
                raise AssertionError(f"no {words} in {self.seen}")
        before, _, self.seen = self.seen.partition(words)
        return before.decode()

    def send(self, data):
        os.write(self.file, data)

    def foreground(self):
        return os.tcgetpgrp(self.file)

    def expect_other_foreground(self, group):
        """Waits until group has the terminal no longer."""
        for _ in range(6000):
            if self.foreground() != group:
                return
            time.sleep(0.01)
        raise AssertionError("60 s in the foreground")

    def end(self):
        """Reads to the end. Returns the exit code and the output."""
        while self.read():
            continue
        pid, self.pid = self.pid, None
        return (os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]),
                self.seen.decode())

    def close(self):
        """The terminal is gone."""
        if self.file is not None:
            os.close(self.file)
            self.file = None

    def clean(self):
        self.close()
        if self.pid is not None:
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)


class AtATerminal(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def fifo(self, name):
        path = os.path.join(self.folder, name)
        os.mkfifo(path)
        return path

    def open(self, *command):
        terminal = Terminal(*command)
        self.addCleanup(terminal.clean)
        return terminal

    def shell(self, script):
        return self.open("sh", "-c", "set -m; " + script)

    def stagger(self, *arguments):
        return self.open(STAGGER, "run", *arguments)

    # -- input

    def test_reads_from_the_terminal(self):
        t = self.shell(f"{RUN} -- sh -c {READ}; echo status $?")
        t.expect("ready")
        t.send(b"some words\n")
        t.expect("got some words")
        t.expect("status 0")

    def test_leaves_the_terminal_to_those_that_come_after_it(self):
        t = self.open("sh", "-c", f"{RUN} -p '{QUICK}' -- false; "
                                  "echo ready; read x; echo got $x")
        t.expect("ready")
        t.send(b"words\n")
        t.expect("got words")
        self.assertEqual(t.end()[0], 0)

    def test_runs_the_command_in_the_foreground_if_it_is_there_itself(self):
        show = (f"'{sys.executable}' -c 'import os; "
                "print(os.tcgetpgrp(2) == os.getpgrp())'")
        t = self.shell(f"{RUN} -- {show}; {RUN} -- {show} & wait $!")
        t.expect("True")
        t.expect("False")

    def test_gives_the_terminal_to_a_command_of_a_pipeline_that_asks(self):
        for script in (f"{RUN} -- sh -c {READ} | cat; echo end",
                       f"echo | {RUN} -- sh -c 'echo ready; read x </dev/tty; "
                       "echo got $x'; echo end",
                       f"{RUN} -- sh -c 'echo ready; stty -echo; read x; "
                       "stty echo; echo got $x' | cat; echo end"):
            t = self.shell(script)
            t.expect("ready")
            t.send(b"words\n")
            t.expect("got words")
            t.expect("end")

    def test_leaves_the_terminal_to_the_others_of_a_pipeline(self):
        go = self.fifo("go")
        t = self.shell(f"{RUN} -- sh -c 'echo begun; cat {go}' | "
                       f"sh -c 'read y; echo ready; read x </dev/tty; "
                       f"echo $x >{go}; cat'; echo end")
        t.expect("ready")
        t.send(b"words\n")
        t.expect("words")  # its echo
        t.expect("words")
        t.expect("end")

    # -- Ctrl-C

    def test_ends_the_retrying_at_ctrl_c(self):
        for trap, key, end in (
                ("trap 'exit 9' INT", CTRL_C, "exit 9 (cancelled)"),
                ("trap 'exit 0' INT", CTRL_C, "status 0"),
                ("trap 'exit 8' QUIT", CTRL_BACKSLASH, "exit 8 (cancelled)"),
                (":", CTRL_C, "exit 130 (cancelled)")):
            # Without an end of its own the shell would end at Ctrl-C, too.
            t = self.open("sh", "-c",
                          f"trap : INT QUIT; {RUN} -p '{QUICK}' -- "
                          f"sh -c \"{trap}; echo ready; {LOOP}\"; "
                          "echo status $?")
            t.expect("ready")
            t.send(key)
            self.assertNotIn("ready", t.expect(end))

    def test_lets_ctrl_c_reach_the_script_around_it(self):
        t = self.open("sh", "-c",
                      f"trap 'echo the script, too; exit 7' INT; {RUN} -- "
                      f"sh -c \"trap 'exit 0' INT; echo ready; {LOOP}\"; "
                      "echo goes on")
        t.expect("ready")
        t.send(CTRL_C)
        code, output = t.end()
        self.assertEqual(code, 7)
        self.assertIn("the script, too", output)
        self.assertNotIn("goes on", output)

    def test_lets_ctrl_c_end_a_whole_pipeline(self):
        t = self.shell(f"{RUN} -- sh -c \"trap 'echo first >/dev/tty; exit 1' "
                       f"INT; echo ready >/dev/tty; {LOOP}\" | "
                       "sh -c \"trap 'echo second' INT; cat; :\"; echo end")
        t.expect("ready")
        t.send(CTRL_C)
        seen = t.expect("end")
        self.assertIn("first", seen)
        self.assertIn("second", seen)

    def test_tells_a_stagger_around_it_of_ctrl_c(self):
        t = self.open("sh", "-c",
                      f"trap : INT; {RUN} -p '{QUICK}' -- "
                      f"{RUN} -p '{QUICK} nested=full' -- "
                      f"sh -c \"trap 'exit 9' INT; echo ready; {LOOP}\"; "
                      "echo status $?")
        t.expect("ready")
        t.send(CTRL_C)
        seen = t.expect("status 9")
        self.assertEqual(seen.count("exit 9 (cancelled)"), 2, seen)

    def test_passes_ctrl_c_on_to_a_command_in_a_group_of_its_own(self):
        t = self.stagger("-p", "none", "--", "setsid", "sh", "-c",
                         f"trap 'exit 9' INT; echo ready; {LOOP}")
        t.expect("ready")
        t.send(CTRL_C)
        self.assertEqual(t.end()[0], 9)

    def test_ends_a_wait_at_ctrl_c(self):
        t = self.stagger("-p", "fixed base=1h jitter=none deadline=none", "--",
                         "false")
        t.expect("next in 1 h")
        t.send(CTRL_C)
        self.assertEqual(t.end()[0], 130)

    # -- Ctrl-Z

    def test_stops_with_its_command_and_goes_on_with_it(self):
        for pipe in ("", "| cat"):
            t = self.shell(f"{RUN} -- sh -c 'read x; echo has $x; read x; "
                           f"echo got $x' {pipe}; echo stopped; fg; echo end")
            # Once it has read a line the terminal is its own: a Ctrl-Z at the
            # very moment when it is continued for that would be lost.
            t.send(b"it\n")
            t.expect("has it")
            t.send(CTRL_Z)
            t.expect("stopped")
            t.send(b"words\n")
            t.expect("got words")
            t.expect("end")

    def test_stops_again_and_again(self):
        t = self.shell(f"{RUN} -- sh -c 'while :; do echo tick; sleep 0.01; "
                       "done'; for i in 1 2 3; do echo stop $i; fg; done")
        for i in (1, 2, 3):
            t.expect("tick")
            t.send(CTRL_Z)
            t.expect(f"stop {i}")
            t.expect("\n")
            t.expect("\n")  # fg names the job, the word tick in it
        t.expect("tick")
        t.send(CTRL_C)
        t.end()

    def test_stops_with_a_command_that_stops_its_group(self):
        for number in ("TSTP", "STOP"):
            t = self.shell(f"{RUN} -- sh -c 'kill -{number} 0; echo went on'; "
                           "echo stopped; fg; echo end")
            t.expect("stopped")
            t.expect("went on")
            t.expect("end")

    def test_stops_while_it_waits(self):
        t = self.shell(f"{RUN} -p 'fixed base=1h jitter=none deadline=none' -- "
                       "false; echo stopped; fg; echo status $?")
        t.expect("next in 1 h")
        t.send(CTRL_Z)
        t.expect("stopped")
        t.expect_other_foreground(t.pid)
        t.send(CTRL_C)
        t.expect("status 130")

    def test_does_not_stop_where_nobody_could_continue_it(self):
        t = self.stagger("--", "sh", "-c", "echo ready; read x; echo got $x")
        t.expect("ready")
        t.send(CTRL_Z)
        t.expect("^Z")
        t.send(b"words\n")
        t.expect("got words")
        self.assertEqual(t.end()[0], 0)

    # -- in the background

    def test_leaves_the_terminal_alone_in_the_background(self):
        go = self.fifo("go")
        t = self.shell(f"{RUN} -- sh -c 'echo begun; read y <{go}; "
                       f"echo $y from there' & echo ready; read x; "
                       f"echo $x >{go}; wait $!")
        t.expect("begun")
        t.send(b"words\n")
        t.expect("words from there")

    def test_is_stopped_for_input_in_the_background(self):
        for pipe in ("", "| cat"):
            jobs = os.path.join(self.folder, "jobs")
            t = self.shell(
                f"{RUN} -- sh -c {READ} {pipe} & "
                f"until grep Stopped {jobs} >/dev/null 2>&1; "
                f"do sleep 0.01; jobs >{jobs}; done; "
                "echo waiting; fg; echo end")
            t.expect("waiting")
            t.send(b"words\n")
            t.expect("got words")
            t.expect("end")
            os.remove(jobs)

    def test_hangs_up_what_nobody_could_bring_to_the_foreground(self):
        out = os.path.join(self.folder, "out")
        # Its parent is gone, and the shell that looks after jobs is not told.
        t = self.shell(f"sh -c '({RUN} -p none -- sh -c \"read x </dev/tty\" "
                       f"2>{out}.part; mv {out}.part {out}) &'; echo left; "
                       f"until [ -e {out} ]; do sleep 0.01; done; cat {out}")
        t.expect("left")
        t.expect("exit 129")

    # -- hangups

    def test_ends_with_its_terminal(self):
        t = self.stagger("-p", QUICK, "--", "sh", "-c",
                         f"echo ready; {LOOP}")
        t.expect("ready")
        t.close()
        pid, t.pid = t.pid, None
        self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), 129)

    def test_outlives_its_terminal_under_nohup(self):
        go, out = self.fifo("go"), os.path.join(self.folder, "out")
        # nohup leaves descriptor 3 alone, so that the terminal stays open.
        t = self.open("sh", "-c",
                      f"exec 3<>/dev/tty; exec nohup {RUN} -p '{QUICK}' -- "
                      f"sh -c 'echo ready >&3; cat {go} >{out}' >/dev/null 2>&1")
        t.expect("ready")
        t.close()
        with open(go, "w") as file:
            file.write("still here\n")
        pid, t.pid = t.pid, None
        self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), 0)
        with open(out) as file:
            self.assertEqual(file.read(), "still here\n")

    def test_takes_its_helper_along_when_it_is_killed(self):
        t = self.shell(f"{RUN} -- sh -c 'echo at $PPID.; "
                       f"trap \"\" HUP; {LOOP}'; echo status $?; "
                       "read x")
        t.expect("at ")
        pid = int(t.expect("."))
        group = t.foreground()
        os.kill(pid, signal.SIGKILL)
        t.expect("status 137")
        deadline = time.monotonic() + 60
        while is_alive(group) and time.monotonic() < deadline:
            time.sleep(0.01)
        self.assertFalse(is_alive(group))
        os.killpg(group, signal.SIGKILL)


def is_alive(pid):
    """Whether it runs: a zombie does not."""
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


if __name__ == "__main__":
    unittest.main()
