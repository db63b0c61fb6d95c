"""The hub from outside: it is killed again and again, and nothing is lost.

usage: blackbox.py [KILLS]

A producer publishes, leaves answer out of a seeded table, and the hub between
them is killed with SIGKILL: at random moments, and where there is strace also
at chosen system calls. Then the faults end, everything pending has to end too,
and the three accounts of the run are compared (blackbox_check.py).

KILLS, or STAGGER_KILLS in the environment (20); STAGGER_SEED repeats a run as
far as chance goes. It needs STAGGER, the command, and nothing of its code.
"""
import contextlib
import os
import pathlib
import random
import shutil
import signal
import socket
import sqlite3
import subprocess
import sys
import tempfile
import time
import urllib.request

import blackbox_check

HERE = pathlib.Path(__file__).resolve().parent
STAGGER = os.environ["STAGGER"]
LEAVES = 4
ATTEMPTS = 3
WAIT = 0.05
POLICY = (f"fixed base=50ms jitter=none attempts={ATTEMPTS} "
          "attempt-timeout=1s retry=5xx,429,timeout,reset deadline=none")
MEMORY_MB = 256 # resident, the hub's limit for messages being half of it

# Where a kill hurts: between what is written and what is durable, between what
# is durable and what is said.
CALLS = ["pwrite64", "fdatasync", "fsync", "write", "writev", "sendto",
         "sendmsg", "accept4", "epoll_wait", "ftruncate", "unlink", "connect"]


class Failure(Exception):
    pass


class Hub:
    """The process, started again and again on one store and one port."""

    def __init__(self, folder, leaves, rng):
        self.folder = folder
        self.leaves = leaves
        self.rng = rng
        self.port = free_port()
        self.store = os.path.join(folder, "hub.db")
        self.log = open(os.path.join(folder, "hub.log"), "ab")
        self.words = [STAGGER, "hub", "--store", self.store, "--policy",
                      POLICY, "--listen", f"127.0.0.1:{self.port}"]
        for number, port in enumerate(leaves.stdout.readline().split()):
            self.words += ["--to", f"leaf{number}=http://127.0.0.1:{port}"
                                   f"/in/{number}?a=b"]
        self.deaths = []
        self.process = None
        self.has_strace = self.can_trace()

    def can_trace(self):
        return shutil.which("strace") is not None and subprocess.run(
            ["strace", "-D", "-o", "/dev/null", "true"],
            capture_output=True).returncode == 0

    def start(self, is_traced=False):
        words = self.words
        if is_traced:
            call = self.rng.choice(CALLS)
            when = int(self.rng.expovariate(1 / 60)) + 1
            # -D: the hub is our child, and strace its grandchild.
            words = ["strace", "-f", "-D", "-q", "-o", "/dev/null", "-e",
                     f"trace={call}", "-e",
                     f"inject={call}:signal=KILL:when={when}", *words]
        self.process = subprocess.Popen(words, stderr=self.log,
                                        stdout=self.log)

    def is_ready(self):
        try:
            url = f"http://127.0.0.1:{self.port}/readyz"
            with urllib.request.urlopen(url, timeout=1) as answer:
                return answer.status == 200
        except OSError:
            return False

    def await_ready(self, may_die=False):
        until = time.monotonic() + 30
        while not self.is_ready():
            if self.process.poll() is not None:
                if may_die and self.process.returncode == -signal.SIGKILL:
                    return
                raise Failure(f"the hub ended by itself, with "
                              f"{self.process.returncode}")
            if time.monotonic() > until:
                raise Failure("the hub was not ready in 30 s")
            time.sleep(0.01)

    def live_and_die(self, is_traced):
        """One incarnation, which ends by a kill."""
        self.start(is_traced)
        self.await_ready(may_die=is_traced)
        # At once, too: a recovery that is cut has to be recovered from.
        span = self.rng.choice([0.0, 0.1, 0.5, 1.0, 2.0])
        try:
            self.process.wait(3 if is_traced else self.rng.random() * span)
        except subprocess.TimeoutExpired:
            self.process.kill()
        self.clear_away()

    def clear_away(self):
        """Of the killed hub: what it has sent is received, and then it counts
        as dead, so that no receipt of its seems to be the next one's."""
        code = self.process.wait(30)
        if code != -signal.SIGKILL:
            raise Failure(f"the hub ended by itself, with {code}")
        self.leaves.stdin.write("drain\n")
        self.leaves.stdin.flush()
        self.leaves.stdout.readline()
        self.deaths.append(time.monotonic())

    def resident_mb(self):
        text = pathlib.Path(f"/proc/{self.process.pid}/status").read_text()
        line = next(l for l in text.splitlines() if l.startswith("VmHWM"))
        return int(line.split()[1]) / 1024

    def pending(self):
        """What the store says is not settled, for people; "": nothing."""
        with contextlib.closing(sqlite3.connect(
                f"file:{self.store}?mode=ro", uri=True, timeout=10)) as db:
            parked, = db.execute("SELECT count(*) FROM parked").fetchone()
            next, = db.execute("SELECT value FROM meta WHERE name = "
                               "'next_position'").fetchone()
            bases = db.execute(
                "SELECT value ->> 'base' FROM cursors, json_each(lanes)"
            ).fetchall()
        behind = sum(base != next for base, in bases)
        return (f"{parked} parked, {behind} lanes behind"
                if parked or behind or len(bases) < LEAVES else "")

    def await_quiet(self):
        """I20: when the faults end, everything pending ends too. The budget
        of retries lets so many go in ten seconds, and with many kills there
        are more that wait: as long as they grow fewer, all is well."""
        seen = None
        while pending := self.pending():
            if pending != seen:
                seen, until = pending, time.monotonic() + 60
            if self.process.poll() is not None:
                raise Failure("the hub ended by itself, with "
                              f"{self.process.returncode}")
            if time.monotonic() > until:
                raise Failure(f"I20: no quiet after 60 s: {pending}")
            time.sleep(0.1)

    def stop(self):
        """I14: in order, and it says so."""
        self.process.terminate()
        try:
            code = self.process.wait(30)
        except subprocess.TimeoutExpired:
            raise Failure("I14: the hub did not stop in 30 s") from None
        if code != 0:
            raise Failure(f"I14: the hub stopped with {code}")


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


@contextlib.contextmanager
def helper(script, *words):
    """Runs until the end of its input, which we hold."""
    process = subprocess.Popen(
        [sys.executable, HERE / script, *map(str, words)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        yield process
    finally:
        if process.poll() is None:
            process.kill()
        process.communicate()


def finish(process):
    process.stdin.close()
    process.stdin = None
    if process.wait(60) != 0:
        raise Failure("the producer failed")


def run(folder, seed, kills):
    """Returns what is wrong, and the run in a line."""
    with helper("blackbox_leaves.py", folder, seed, LEAVES) as leaves:
        hub = Hub(folder, leaves, random.Random(seed))
        try:
            # Lanes begin with the first start, so that all messages are theirs.
            hub.start()
            hub.await_ready()
            with helper("blackbox_producer.py", folder, seed,
                        hub.port) as producer:
                time.sleep(0.5)
                hub.process.kill()
                hub.clear_away()
                for i in range(1, kills):
                    hub.live_and_die(hub.has_strace and i % 3 == 0)
                hub.start()
                hub.await_ready()
                finish(producer)
                pathlib.Path(folder, "calm").touch()
                hub.await_quiet()
            resident = hub.resident_mb()
            hub.stop()
        finally:
            if hub.process and hub.process.poll() is None:
                hub.process.kill()
                hub.process.wait()
    found = blackbox_check.Run(folder, hub.store, ATTEMPTS, WAIT, hub.deaths)
    problems = list(found.problems())
    if resident > MEMORY_MB:
        problems.append(f"I6: {resident:.0f} MB are resident")
    return problems, f"{found.summary()}, {resident:.0f} MB"


def main(words):
    kills = int(words[0] if words else os.environ.get("STAGGER_KILLS", 20))
    seed = os.environ.get("STAGGER_SEED", str(random.randrange(10 ** 9)))
    folder = tempfile.mkdtemp(prefix="stagger-blackbox-")
    try:
        problems, summary = run(folder, seed, kills)
    except Failure as failure:
        problems, summary = [str(failure)], "broken off"
    print(f"blackbox: {summary}")
    if not problems:
        shutil.rmtree(folder)
        return 0
    print(*problems[:50], sep="\n")
    print(f"{len(problems)} problems; seed {seed}, and all is kept in {folder}")
    return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
