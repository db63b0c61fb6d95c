"""How the tests of stagger plan call it."""
import json
import os
import pty
import subprocess

STAGGER = os.environ["STAGGER"]

PRESETS = ["broadcast", "broadcast-wide", "backend", "client", "interactive",
           "unjittered", "webhook", "aws", "none"]

# Texts at the ends of every range, and of every kind.
EXTREMES = [
    "attempts=1", "attempts=unlimited", "attempts=4294967295",
    "attempts=unlimited deadline=none", "base=0", "base=0 jitter=decorrelated",
    "base=1ns cap=1ns", "base=1ns factor=1.001 attempts=4294967295 cap=none",
    "base=365d cap=none factor=100 attempts=40 deadline=none",
    "base=365d cap=none jitter=decorrelated attempts=40 deadline=none",
    "base=1ns cap=none jitter=decorrelated attempts=unlimited deadline=none",
    "linear base=1ns cap=none attempts=4294967295 jitter=33% deadline=365d",
    "linear base=365d attempts=unlimited jitter=none deadline=none cap=none",
    "fixed base=365d jitter=100% attempts=4294967295 deadline=none",
    "polynomial power=10 base=365d cap=none attempts=unlimited deadline=none",
    "polynomial base=1ns cap=none attempts=4294967295 jitter=33% deadline=365d",
    "polynomial power=3 base=1ns offset=365d cap=365d count-from=0 jitter=equal",
    "linear base=0 offset=365d cap=none count-from=0 attempts=unlimited",
    "list=0", "list=" + ",".join(["365d"] * 64) + " attempts=99",
    "list=1ns,1us,1ms,1s,1m,1h,1d jitter=1% attempts=unlimited",
    "deadline=1ns", "deadline=1ns jitter=none attempt-timeout=1ns",
    "attempt-timeout=365d deadline=none attempts=4294967295",
    "retry-after-max=0", "retry-after-max=365d", "reset-after=1ns",
    "retry=none", "retry=any", "never=any", "once=any", "at-most=255:any",
    "retry=" + ",".join(str(400 + i) for i in range(64)),
    "retry=default,sqlstate:40P02,mysql:999999,grpc:16,curl:999,599,100,204",
    "once=1xx".replace("1xx", "300,301,302,303,304,305,306,307"),
    "budget=aws", "budget=grpc:1000:1000", "budget=grpc:1:0.001",
    "budget=1000000:1000000/s budget-empty=wait deadline=none",
    "budget=ratio:10+1000000/s", "budget=ratio:0+0.001/s", "breaker=1:1ms",
    "breaker=1%/1/10ms:1ms-365d retry=circuit-open", "breaker=100%/10000/1d",
    "unsafe=yes nested=full",
]


def plan(*arguments, env=None, **options):
    everything = {**os.environ, "LC_ALL": "C", **(env or {})}
    if not env or "COLUMNS" not in env:
        everything.pop("COLUMNS", None)
    return subprocess.run([STAGGER, "plan", *arguments], text=True,
                          capture_output=True, timeout=120, env=everything,
                          **options)


def shown(*arguments, **options):
    """Returns the output of a `stagger plan` that succeeds."""
    run = plan(*arguments, **options)
    assert (run.returncode, run.stderr) == (0, ""), run
    return run.stdout


def read(*arguments):
    """The policies of --json; numbers of ms as they stand there."""
    return json.loads(shown("--json", *arguments), parse_float=str)["policies"]


def on_terminal(*arguments, **env):
    """What it prints on a terminal."""
    leader, follower = pty.openpty()
    process = subprocess.Popen(
        [STAGGER, "plan", *arguments], stdout=follower,
        env={**os.environ, "COLUMNS": "80", "TERM": "xterm", **env})
    os.close(follower)
    text = b""
    while True:
        try:
            piece = os.read(leader, 65536)
        except OSError:  # Linux says so at the end
            piece = b""
        if not piece:
            break
        text += piece
    os.close(leader)
    assert process.wait() == 0
    return text.decode().replace("\r\n", "\n")
