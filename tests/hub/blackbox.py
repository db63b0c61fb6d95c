"""The hub from outside: it is killed again and again, and nothing is lost.

usage: blackbox.py [KILLS [WAY...]]

A producer publishes, leaves answer out of a seeded table, and the hub between
them is killed with SIGKILL, in ways that take turns:

    kill    at a random moment
    call    at a chosen system call, by strace
    failing after some calls to the disk have failed with EIO or ENOSPC, by strace:
            it may also end by itself, and say so
    frozen  after it was stopped for longer than an attempt may take
    clock   while its wall clock is hours off and jumps, by libfaketime
    memory  after it got no more memory than it had, or less than it likes from its
            start on (RLIMIT_AS): it may also end by itself, and say so
    slow    while each write or sync of the disk takes long
    power   at a random moment, or at one of the disk's writes and syncs; and of
            what was not synced, bytes and names, any part is lost

The network between all three has faults, too (blackbox_proxy.py).

Then the faults end, everything pending has to end too, and the three accounts of
the run are compared (blackbox_check.py).

KILLS, or STAGGER_KILLS in the environment (one of each way and one more; with
STAGGER_FULL 20); WAY: these alone. STAGGER_SEED
repeats a run as far as chance goes. It needs STAGGER, the command, and nothing of
its code. A way whose tool is missing is another kill. For the last two ways the
store is on a disk of its own: STAGGER_DISK (blackbox_disk.c). With half of the seeds
it is in ext4 on that, where that can be mounted; STAGGER_EXT4 says 1 or 0 for all.
"""
import contextlib
import glob
import os
import pathlib
import random
import resource
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
import blackbox_power

HERE = pathlib.Path(__file__).resolve().parent
STAGGER = os.environ["STAGGER"]
LEAVES = 4
ATTEMPTS = 3
WAIT = 0.05
POLICY = (f"fixed base=50ms jitter=none attempts={ATTEMPTS} "
          "attempt-timeout=1s retry=5xx,429,timeout,reset,protocol "
          "deadline=none")
MEMORY_MB = 256 # resident, the hub's limit for messages being half of it

# Where a kill hurts: between what is written and what is durable, between what
# is durable and what is said.
CALLS = ["pwrite64", "fdatasync", "fsync", "write", "writev", "sendto",
         "sendmsg", "accept4", "epoll_wait", "ftruncate", "unlink", "connect"]
DISK_CALLS = ["pwrite64", "fdatasync", "ftruncate"]
WAYS = ["kill", "call", "kill", "failing", "frozen", "clock",
        "memory", "power", "slow"]
MAY_END = ("failing", "memory")
ENDS = (3, 4)  # of a store that has failed, at the start or later
FROZEN = 1.5  # seconds: more than an attempt may take
LEAST = 48 << 20  # bytes of address space: with less it does not even start
HOURS = 6  # that a clock may be off: less than bodies are kept


class Failure(Exception):
    pass


class Hub:
    """The process, started again and again on one store and one port."""

    def __init__(self, folder, leaves, rng, disk):
        self.folder = folder
        self.disk = disk
        self.leaves = leaves
        self.rng = rng
        self.port = free_port()
        self.store = os.path.join(disk.there if disk else folder, "hub.db")
        self.log = open(os.path.join(folder, "hub.log"), "ab")
        self.words = [STAGGER, "hub", "--store", self.store, "--policy",
                      POLICY, "--listen", f"127.0.0.1:{self.port}"]
        for number, port in enumerate(leaves.stdout.readline().split()):
            self.words += ["--to", f"leaf{number}=http://127.0.0.1:{port}"
                                   f"/in/{number}?a=b"]
        self.deaths, self.freezes = [], []
        self.ends = 0  # by itself
        self.faketime = glob.glob("/usr/lib/*/faketime/libfaketime.so.1")
        self.process = None
        self.has_strace = self.can_trace()
        self.space = None  # bytes of addresses that it takes

    def can(self, way):
        if way in ("call", "failing"):
            return self.has_strace
        if way == "clock":
            return self.faketime
        if way == "memory": # the address sanitizer takes terabytes
            return self.space < 1 << 40 and shutil.which("prlimit")
        if way in ("power", "slow"):
            return self.disk is not None
        return True

    def can_trace(self):
        return shutil.which("strace") is not None and subprocess.run(
            ["strace", "-D", "-o", "/dev/null", "true"],
            capture_output=True).returncode == 0

    def start(self, before=(), **environment):
        self.process = subprocess.Popen(
            [*before, *self.words], stderr=self.log, stdout=self.log,
            env={**os.environ, **environment})

    def under_strace(self, calls, inject):
        """-D: the hub is our child, and strace its grandchild."""
        return ["strace", "-f", "-D", "-q", "-o", "/dev/null", "-e",
                f"trace={calls}", "-e", f"inject={calls}:{inject}"]

    def is_ready(self):
        try:
            url = f"http://127.0.0.1:{self.port}/readyz"
            with urllib.request.urlopen(url, timeout=1) as answer:
                return answer.status == 200
        except OSError:
            return False

    def await_ready(self, may_die=False):
        """may_die: also by itself, but not of a bug."""
        until = time.monotonic() + 30
        while not self.is_ready():
            code = self.process.poll()
            if code is not None:
                if may_die and code in (-signal.SIGKILL, *ENDS):
                    return
                raise Failure(f"the hub ended by itself, with {code}")
            if time.monotonic() > until:
                raise Failure("the hub was not ready in 30 s")
            time.sleep(0.01)

    def live_and_die(self, way):
        """One incarnation, which ends by a kill."""
        if not self.can(way):
            way = "kill"
        getattr(self, f"live_{way}")()
        self.process.kill()
        self.clear_away(may_end=way in MAY_END)
        if way == "power":
            self.disk.cut(self.rng.getrandbits(63))

    def live_for(self, seconds):
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(seconds)

    def live_kill(self):
        self.start()
        self.await_ready()
        # At once, too: a recovery that is cut has to be recovered from.
        span = self.rng.choice([0.0, 0.1, 0.5, 1.0, 2.0])
        self.live_for(self.rng.random() * span)

    def live_call(self):
        call = self.rng.choice(CALLS)
        when = int(self.rng.expovariate(1 / 60)) + 1
        self.start(self.under_strace(call, f"signal=KILL:when={when}"))
        self.await_ready(may_die=True)
        self.live_for(3)

    def live_failing(self):
        call = self.rng.choice(DISK_CALLS)
        error = self.rng.choice(["EIO", "ENOSPC"])
        when = int(self.rng.expovariate(1 / 60)) + 1
        until = when + self.rng.choice([0, 3, 30])
        self.start(self.under_strace(
            call, f"error={error}:when={when}..{until}"))
        self.await_ready(may_die=True)
        self.live_for(3)

    def live_memory(self):
        if self.rng.random() < 0.5:
            least = self.rng.randint(LEAST, self.space)
            self.start(["prlimit", f"--as={least}"])
            self.await_ready(may_die=True)
        else:
            self.start()
            self.await_ready()
            more = self.rng.choice([0, 1 << 16, 1 << 20])
            with contextlib.suppress(ProcessLookupError):
                resource.prlimit(self.process.pid, resource.RLIMIT_AS, 2 * [
                    self.memory("VmSize") + more])
        self.live_for(2)

    def live_slow(self):
        write, sync = self.rng.choice([(5000, 0), (0, 100000), (1000, 50000)])
        self.disk.say(f"slow {write} {sync}")
        self.start()
        self.await_ready()
        self.live_for(2)
        self.disk.say("slow 0 0")

    def live_power(self):
        """Armed at once: a recovery may be cut, too."""
        self.start()
        if self.rng.random() < 0.5:
            at = int(self.rng.expovariate(1 / 100)) + 1
            self.disk.say(f"arm {at} {self.process.pid}")
            self.await_ready(may_die=True)
            self.live_for(3)
        else:
            self.await_ready()
            self.live_for(self.rng.random())
        self.disk.say(f"arm 0 {self.process.pid}")

    def live_frozen(self):
        self.start()
        self.await_ready()
        self.live_for(self.rng.random())
        since = time.monotonic()
        self.process.send_signal(signal.SIGSTOP)
        time.sleep(FROZEN)
        self.process.send_signal(signal.SIGCONT)
        self.live_for(0.3)
        self.freezes.append((since, time.monotonic()))

    def live_clock(self):
        """The file is read at each look at the clock."""
        wall = os.path.join(self.folder, "wall")

        def step():
            off = self.rng.randint(-HOURS * 3600, HOURS * 3600)
            pathlib.Path(f"{wall}.new").write_text(f"{off:+d}s\n")
            os.replace(f"{wall}.new", wall)
        step()
        self.start(LD_PRELOAD=self.faketime[0], DONT_FAKE_MONOTONIC="1",
                   FAKETIME_TIMESTAMP_FILE=wall, FAKETIME_NO_CACHE="1")
        self.await_ready()
        for _ in range(3):
            self.live_for(self.rng.random() * 0.5)
            step()
        self.live_for(0.2)

    def clear_away(self, may_end=False):
        """Of the killed hub: what it has sent is received, and then it counts
        as dead, so that no receipt of its seems to be the next one's."""
        code = self.process.wait(30)
        if code != -signal.SIGKILL and not (may_end and code in ENDS):
            raise Failure(f"the hub ended by itself, with {code}")
        self.ends += code != -signal.SIGKILL
        self.leaves.stdin.write("drain\n")
        self.leaves.stdin.flush()
        self.leaves.stdout.readline()
        self.deaths.append(time.monotonic())

    def memory(self, name):
        """In bytes."""
        text = pathlib.Path(f"/proc/{self.process.pid}/status").read_text()
        line = next(l for l in text.splitlines() if l.startswith(name))
        return int(line.split()[1]) << 10

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


def run(folder, seed, kills, ways):
    """Returns what is wrong, and the run in a line."""
    disk = blackbox_power.make(folder, ways, random.Random(seed).random() < .5)
    with (contextlib.closing(disk) if disk else contextlib.nullcontext(),
          helper("blackbox_leaves.py", folder, seed, LEAVES) as leaves):
        hub = Hub(folder, leaves, random.Random(seed), disk)
        try:
            # Lanes begin with the first start, so that all messages are theirs.
            hub.start()
            hub.await_ready()
            hub.space = hub.memory("VmSize")
            with (helper("blackbox_proxy.py", folder, seed,
                         hub.port) as proxy,
                  helper("blackbox_producer.py", folder, seed,
                         proxy.stdout.readline().strip()) as producer):
                time.sleep(0.5)
                hub.process.kill()
                hub.clear_away()
                for i in range(1, kills):
                    hub.live_and_die(ways[i % len(ways)])
                hub.start()
                hub.await_ready()
                finish(producer)
                pathlib.Path(folder, "calm").touch()
                hub.await_quiet()
            resident = hub.memory("VmHWM") >> 20
            hub.stop()
        finally:
            if hub.process and hub.process.poll() is None:
                hub.process.kill()
                hub.process.wait()
    found = blackbox_check.Run(folder, f"{folder}/hub.db", ATTEMPTS, WAIT, hub.deaths,
                               hub.freezes)
    problems = list(found.problems())
    if resident > MEMORY_MB:
        problems.append(f"I6: {resident} MB are resident")
    return problems, ", ".join([
        found.summary(), f"{hub.ends} ends by itself", f"{resident} MB",
        *([disk.summary()] if disk else [])])


def main(words):
    kills = int(words[0] if words else os.environ.get("STAGGER_KILLS") or
                (20 if "STAGGER_FULL" in os.environ else len(WAYS) + 1))
    ways = words[1:] or WAYS
    seed = os.environ.get("STAGGER_SEED", str(random.randrange(10 ** 9)))
    folder = tempfile.mkdtemp(prefix="stagger-blackbox-")
    try:
        problems, summary = run(folder, seed, kills, ways)
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
