#!/usr/bin/env python3
"""What stagger hub tells the service manager: sd_notify(3)."""
import contextlib
import ctypes
import os
import signal
import socket
import sqlite3
import time

import case

BEAT = 0.05  # seconds between two signs of life
PTRACE_ATTACH, PTRACE_DETACH = 16, 17


class Manager:
    """Hears what comes at a socket of its own."""

    def __init__(self, folder):
        self.path = os.path.join(folder, "notify")
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind(self.path)

    def before(self, **variables):
        """Words in front of the command."""
        return ["env", f"NOTIFY_SOCKET={self.path}",
                *(f"{name}={value}" for name, value in variables.items())]

    def hear(self, patience=case.PATIENCE):
        """The next message, as a dictionary; None: there is none."""
        self.socket.settimeout(patience)
        try:
            text = self.socket.recv(4096).decode()
        except (TimeoutError, BlockingIOError):
            return None
        return dict(line.split("=", 1) for line in text.split("\n"))

    def hear_about(self, name):
        while True:
            message = self.hear()
            assert message is not None, f"nothing of {name}"
            if name in message:
                return message

    def is_silent(self):
        """After what was on its way, for many beats."""
        time.sleep(2 * BEAT)
        while self.hear(0) is not None:
            pass
        return self.hear(10 * BEAT) is None

    def close(self):
        self.socket.close()


@contextlib.contextmanager
def frozen(pid):
    """All threads of a process but its first, which the loop runs on."""
    ptrace = ctypes.CDLL(None, use_errno=True).ptrace
    ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p,
                       ctypes.c_void_p]
    held = []
    try:
        for thread in map(int, os.listdir(f"/proc/{pid}/task")):
            if thread == pid:
                continue
            if ptrace(PTRACE_ATTACH, thread, None, None) != 0:
                raise OSError(ctypes.get_errno(), "ptrace")
            held.append(thread)
            os.waitpid(thread, 0x40000000)  # __WALL
        yield
    finally:
        for thread in held:
            ptrace(PTRACE_DETACH, thread, None, None)


class Service(case.Case):
    def setUp(self):
        super().setUp()
        self.manager = self.kept(Manager(self.folder))

    def hub(self, *arguments, **variables):
        return super().hub("--to", f"a={self.refused()}", *arguments,
                           before=self.manager.before(**variables))

    def watched_hub(self):
        hub = self.hub(WATCHDOG_USEC=int(2e6 * BEAT))
        self.manager.hear_about("READY")
        self.manager.hear_about("WATCHDOG")
        return hub

    def test_it_is_ready_when_it_listens_and_says_when_it_stops(self):
        hub = self.hub("--drain", "5s")
        ready = self.manager.hear()
        hub.post(b"x")
        self.assertEqual(ready, {"READY": "1", "STATUS":
                                 "serving: targets 1, down 0, messages "
                                 "accepted 0, attempts in flight 0"})
        self.assertEqual(hub.stop(), 0)
        last = self.manager.hear()
        self.assertEqual((last["STOPPING"], last["EXTEND_TIMEOUT_USEC"]),
                         ("1", "65000000"))
        self.assertIn("stopping: targets 1", last["STATUS"])
        self.assertIsNone(self.manager.hear(0))

    def test_a_hub_that_cannot_start_is_never_ready(self):
        hub = super().hub("--to", "http://x/", listen=None,
                          store="/nowhere/hub.db",
                          before=self.manager.before())
        self.assertNotEqual(hub.wait(), 0)
        self.assertIsNone(self.manager.hear(0))

    def test_it_gives_signs_of_life_and_says_how_it_is(self):
        hub = self.watched_hub()
        for i in range(30):
            hub.post(b"%d" % i)
        while True:
            found = self.manager.hear_about("STATUS")["STATUS"]
            if found == ("serving: targets 1, down 1, messages accepted 30, "
                         "attempts in flight 0"):
                break
        self.assertEqual(hub.stop(), 0)

    def test_a_reload_is_told_when_it_begins_and_when_it_is_over(self):
        path = os.path.join(self.folder, "stagger.yaml")
        good = (f"store: {{path: {self.store}}}\n"
                'listen: {address: "127.0.0.1:0"}\n'
                f"targets: [{{name: a, url: '{self.refused()}'}}]\n")
        with open(path, "w") as file:
            file.write(good)
        hub = super().hub(settings=path, before=self.manager.before())
        self.manager.hear_about("READY")
        for text in (good, good + "nonsense: true\n"):
            with open(path, "w") as file:
                file.write(text)
            before = time.monotonic_ns()
            hub.process.send_signal(signal.SIGHUP)
            begins = self.manager.hear()
            self.assertEqual(begins["RELOADING"], "1")
            at = int(begins["MONOTONIC_USEC"]) * 1000
            self.assertLess(before - 2000, at)
            self.assertLess(at, time.monotonic_ns())
            self.assertEqual(self.manager.hear()["READY"], "1")
        self.assertEqual(hub.stop(), 0)

    def test_a_loop_that_hangs_gives_none(self):
        hub = self.watched_hub()
        hub.process.send_signal(signal.SIGSTOP)
        self.assertTrue(self.manager.is_silent())
        hub.process.send_signal(signal.SIGCONT)
        self.manager.hear_about("WATCHDOG")
        self.assertEqual(hub.stop(), 0)

    def test_a_store_that_does_not_answer_gives_none(self):
        hub = self.watched_hub()
        with frozen(hub.process.pid):
            self.assertTrue(self.manager.is_silent())
        self.manager.hear_about("WATCHDOG")
        self.assertEqual(hub.stop(), 0)

    def test_a_store_that_waits_for_another_process_is_alive(self):
        hub = self.watched_hub()
        with contextlib.closing(sqlite3.connect(
                self.store, isolation_level=None)) as db:
            db.execute("BEGIN IMMEDIATE")
            with contextlib.closing(hub.producer()) as producer:
                producer.http.request("POST", "/v1/messages", b"x")
                self.manager.is_silent()  # what was on its way is heard
                self.manager.hear_about("WATCHDOG")
                db.execute("ROLLBACK")
                self.assertEqual(producer.http.getresponse().status, 202)
        self.assertEqual(hub.stop(), 0)


if __name__ == "__main__":
    case.main()
