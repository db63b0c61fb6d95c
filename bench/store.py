#!/usr/bin/env python3
"""What a row costs in the store: `make bench-store`.

usage: store.py [--pairs N] [--rows N] [--groups 32,256]
                [--stores file,postgres] PROGRAM...

PROGRAM is bench/store of a build; several are compared, in turn, pair by pair.
Rows are of 1 KB, each message for 50 lanes, as groups of so many with the cursors
of the lanes, which is how the hub writes them; then cursors alone, a
checkpoint each; and messages of a file's queue, which are trimmed as they were
delivered. In a file, and in a PostgreSQL of its own (scripts/postgres, with
fsync), where there is a server. For each kind of row, medians of:

  rows/s   as a hub would see it, which waits for each group
  us       CPU of the hub's process a row
  server   CPU of all of PostgreSQL's processes a row
"""
import argparse
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent


def script(*words):
    r = subprocess.run([ROOT / "scripts/postgres", *map(str, words)],
                       text=True, capture_output=True)
    if r.returncode == 77:
        return None
    if r.returncode:
        sys.exit(f"store.py: scripts/postgres {words[0]}: {r.stderr.strip()}")
    return r.stdout.strip()


def ask(url, sql):
    subprocess.run(["psql", "-qAt", url, "-c", sql], check=True,
                   stdout=subprocess.DEVNULL,
                   env=os.environ | {"PGOPTIONS": "-cclient_min_messages=error"})


class Server:
    def __init__(self, folder):
        self.folder = folder
        self.url = script("up", "--durable", folder)
        home = pathlib.Path(folder, "home").read_text().strip()
        self.pid = pathlib.Path(home, "data/postmaster.pid").read_text() \
            .splitlines()[0]

    def run(self, program, rows, group):
        ask(self.url, "DROP SCHEMA IF EXISTS bench CASCADE")
        ask(self.url, "CREATE SCHEMA bench")
        return measure(program, f"{self.url}&options=-csearch_path%3Dbench",
                       rows, group, self.pid)


def in_file(program, rows, group):
    with tempfile.TemporaryDirectory() as folder:
        return measure(program, f"{folder}/store.db", rows, group)


def measure(program, *words):
    out = subprocess.run([program, *map(str, words)], check=True, text=True,
                         capture_output=True).stdout
    lines = [line.split() for line in out.splitlines()]
    return {name: [float(n) for n in numbers] for name, *numbers in lines}


def main():
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("--pairs", type=int, default=3)
    p.add_argument("--rows", type=int, default=20000)
    p.add_argument("--groups", default="32,256")
    p.add_argument("--stores", default="file,postgres")
    p.add_argument("programs", nargs="+")
    o = p.parse_args()
    load = os.getloadavg()[0]
    if load > 0.5:
        print(f"store.py: the load average is {load:.1f}: other work slows all "
              "of it")
    with tempfile.TemporaryDirectory() as folder:
        stores = {"file": in_file}
        if "postgres" in o.stores:
            if script("up", "--durable", f"{folder}/pg") is None:
                print("store.py: there is no server of PostgreSQL")
            else:
                stores["postgres"] = Server(f"{folder}/pg").run
        try:
            compare(o, {name: stores[name] for name in o.stores.split(",")
                        if name in stores})
        finally:
            if "postgres" in stores:
                script("down", f"{folder}/pg")


def compare(o, stores):
    print("store     a group  row           program    rows/s      us  server")
    for store, run in stores.items():
        for group in map(int, o.groups.split(",")):
            found = {}
            for _ in range(o.pairs):
                for at, program in enumerate(o.programs, 1):
                    for kind, numbers in run(program, o.rows, group).items():
                        found.setdefault((kind, at), []).append(numbers)
            for (kind, at), all in sorted(
                    found.items(), key=lambda one: list(found).index(
                        (one[0][0], 1)) * 10 + one[0][1]):
                rate, own, server = map(statistics.median, zip(*all))
                print(f"{store:9} {group:7}  {kind:13} {at:7} {rate:9,.0f}"
                      f"  {own:6.1f}  {server:6.1f}", flush=True)


if __name__ == "__main__":
    main()
