#!/usr/bin/env python3
"""The operators' swarm: hubs with random settings over all features, under
everyday acts of an operator, among leaves that misbehave.

usage: operators.py [--for TIME] [--seed N] [--count N] [--without WORD,...]
                    [--shrink TIME] [--keep FOLDER] [--jobs N] [--trace]
       operators.py --acts FILE... [--shrink TIME]
       operators.py --draw [--seed N]

--for 10m      fresh seeds, from N on, for so long; --count: so many
--acts FILE    scripts that were kept, one after the other
--without      acts, spoils and settings that are not drawn (acts.py)
--shrink TIME  makes a script that fails small, for so long
--keep FOLDER  for the scripts and the files of runs that fail
--jobs N       so many processes, each with seeds of its own
--trace        prints each act, and when it began
--draw         prints the script of the seed

It needs STAGGER and STAGGER_SOURCE. A failure prints its seed, what is wrong, and
the script, which --acts runs again: settings, and an act a line.
"""
import argparse
import collections
import faulthandler
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
os.environ.setdefault("STAGGER_SOURCE", str(HERE.parents[1]))
sys.path[:0] = [str(HERE), str(HERE.parent / "hub")]

import acts  # noqa: E402
import run as runs  # noqa: E402
import script as scripts  # noqa: E402
import settings  # noqa: E402
import shrink  # noqa: E402
from leaf import STAGGER  # noqa: E402
from services import Shared  # noqa: E402
from tools import Tools  # noqa: E402

STRIDE = 10 ** 6
UNITS = {"s": 1, "m": 60, "h": 3600}


def seconds(text):
    found = re.fullmatch(r"(\d+)([smh])", text)
    if not found:
        raise argparse.ArgumentTypeError(f"{text}: expected 30s, 10m or 2h")
    return int(found[1]) * UNITS[found[2]]


def options():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("--for", dest="time", type=seconds)
    parser.add_argument("--seed", type=int)
    parser.add_argument("--count", type=int)
    parser.add_argument("--without", default="")
    parser.add_argument("--acts", nargs="+")
    parser.add_argument("--shrink", type=seconds, default=0)
    parser.add_argument("--keep")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--trace", action="store_true")
    parser.add_argument("--draw", action="store_true")
    found = parser.parse_args()
    found.without = set(filter(None, found.without.split(",")))
    return found


def make_tokens(folder):
    """Two pairs of a token and the file that has it."""
    found = []
    for name in ("one", "two"):
        path = os.path.join(folder, f"tokens.{name}")
        done = subprocess.run(
            [STAGGER, "token", "new", path, "--role", "publish,operate", "--name",
             name], check=True, capture_output=True, text=True)
        with open(path) as file:
            found.append((done.stdout.strip(), file.read()))
    return found


def print_act(act):
    print(f"{time.monotonic():10.3f}  {str(act)[:150]}", flush=True)


class Swarm:
    def __init__(self, o, folder):
        self.o = o
        self.shared = Shared(folder)
        self.shared.tokens = make_tokens(folder)
        self.tools = Tools()
        self.counts = collections.Counter()

    def try_script(self, script, seed, name=None, is_judged=True):
        """Runs it, prints a line, and returns the failure, or None."""
        at = time.monotonic()
        keep = self.o.keep and name and os.path.join(self.o.keep, name)
        failure, one = runs.run(script, self.shared, seed, self.tools, keep,
                                print_act if self.o.trace else lambda _: None,
                                is_judged)
        self.counts.update(
            runs=1, acts=len(script.acts), failures=int(failure is not None),
            messages=len(one.producers.accepted), kills=one.kills,
            requests=len(one.services.record.receipts))
        if name:
            word = f"FAIL {failure.kind}" if failure else "ok"
            print(f"{word:4} {name}: {len(script.acts)} acts, "
                  f"{len(one.producers.accepted)} messages "
                  f"({time.monotonic() - at:.1f} s)", flush=True)
        return failure

    def tell(self, name, script, seed, failure):
        print(f"{name}: {str(failure)[:6000]}")
        if self.o.shrink:
            script = self.shrink(script, seed, failure)
        print(f"# --- {name}, to be run by --acts\n{script}# ---", flush=True)
        if self.o.keep:
            path = pathlib.Path(self.o.keep, f"{name}.acts")
            path.write_text(f"# {name}: {failure.kind}\n{script}")

    def shrink(self, script, seed, failure):
        mark = same(failure)

        def fails(candidate):
            found = self.try_script(candidate, seed,
                                    is_judged=not failure.is_early)
            return found is not None and same(found) == mark

        return shrink.shrink(
            script, fails, self.o.shrink, lambda s: print(
                f"  {len(s.acts)} acts, {len(json.dumps(s.settings))} bytes of "
                "settings", flush=True))

    def run_seeds(self):
        seed = self.o.seed if self.o.seed is not None else int(time.time())
        until = time.monotonic() + (self.o.time or 1e9)
        left = self.o.count or (1 if self.o.time is None else 10 ** 9)
        while left and time.monotonic() < until:
            script = acts.draw(seed, self.tools.names, self.o.without)
            failure = self.try_script(script, seed, f"seed {seed}")
            if failure:
                self.tell(f"seed {seed}", script, seed, failure)
            seed, left = seed + 1, left - 1

    def run_files(self):
        for path in self.o.acts:
            script = scripts.read(pathlib.Path(path).read_text())
            name = pathlib.Path(path).stem
            failure = self.try_script(script, 1, name)
            if failure:
                self.tell(name, script, 1, failure)


def same(failure):
    """Returns what two failures of one cause share: the kind, and the
    sanitizer's summary."""
    found = re.search(r"SUMMARY: .*", str(failure))
    return failure.kind, found and re.sub(r"0x[0-9a-f]+", "", found[0])


def share_out(o):
    """Other processes of this script, with seeds far from each other's, or with
    scripts of their own."""
    shared = [f"--shrink={o.shrink}s", f"--without={','.join(o.without)}"]
    if o.keep:
        shared.append(f"--keep={o.keep}")
    if o.time is not None:
        shared.append(f"--for={o.time}s")
    if o.count is not None:
        shared.append(f"--count={-(-o.count // o.jobs)}")
    first = o.seed if o.seed is not None else int(time.time())
    children = []
    for number in range(o.jobs):
        own = (["--acts", *o.acts[number::o.jobs]] if o.acts else
               ["--seed", str(first + number * STRIDE)])
        if own != ["--acts"]:
            children.append(subprocess.Popen(
                [sys.executable, __file__, *shared, *own]))
    return max(child.wait() for child in children)


def main():
    faulthandler.register(signal.SIGUSR1)  # says where it is
    o = options()
    if o.jobs > 1:
        sys.exit(share_out(o))
    missing = settings.unknown()
    if missing:
        sys.exit(f"settings.py draws nothing for {', '.join(missing)}")
    if o.keep:
        os.makedirs(o.keep, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="stagger-operators-") as folder:
        if o.draw:
            print(acts.draw(o.seed or 0, Tools().names, o.without), end="")
            return
        swarm = Swarm(o, folder)
        swarm.run_files() if o.acts else swarm.run_seeds()
        swarm.tools.close()
    c = swarm.counts
    print(f"{c['runs']} runs, {c['acts']} acts, {c['messages']} messages, "
          f"{c['requests']} requests, {c['kills']} kills: "
          f"{c['failures']} failures", flush=True)
    os._exit(1 if c["failures"] or not c["runs"] else 0)


if __name__ == "__main__":
    main()
