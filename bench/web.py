#!/usr/bin/env python3
"""How fast the simulator is in WebAssembly, beside itself natively.

usage: web.py BUILD_DIR [PAIRS]

For each number of clients it runs both in turn, PAIRS times (5), and prints the
medians: calls a second of CPU time, and the ratio of the pairs. "first" is the
first run in a new engine, while it is still being compiled. Both do the same
calls (bench/web.c, bench/web.js), which it checks. Needs node.
"""
import os
import shutil
import statistics
import subprocess
import sys

CASES = ((100, 1000), (1000, 60), (10000, 2))


def run(*command):
    return [float(word) for word in subprocess.run(
        command, check=True, text=True,
        stdout=subprocess.PIPE).stdout.split()]


def main(arguments):
    if not 1 <= len(arguments) <= 2:
        sys.exit(__doc__)
    build = os.path.abspath(arguments[0])
    pairs = int(arguments[1]) if len(arguments) == 2 else 5
    source = os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir)
    node = shutil.which("node") or sys.exit("web.py: there is no node")
    wasm = os.path.join(build, "web", "stagger-sim.wasm")
    if not os.path.exists(wasm):
        sys.exit("web.py: the page is not built: make web")

    print("clients   native     wasm     first   M calls/s     wasm is slower by")
    for clients, reps in CASES:
        natives, wasms, firsts, ratios = [], [], [], []
        for _ in range(pairs):
            calls, seconds = run(os.path.join(build, "bench", "web"),
                                 str(clients), str(reps))
            natives.append(calls / seconds)
            same, seconds, first = run(
                node, os.path.join(source, "bench", "web.js"),
                os.path.join(source, "web", "engine.js"), wasm,
                str(clients), str(reps))
            if same != calls:
                sys.exit(f"web.py: {same} calls, and natively {calls}")
            wasms.append(same / seconds)
            firsts.append(first)
            ratios.append(natives[-1] / wasms[-1])
        native, wasm_rate, first = (statistics.median(each) / 1e6
                                    for each in (natives, wasms, firsts))
        print(f"{clients:7} {native:8.2f} {wasm_rate:8.2f} {first:9.2f}"
              f"{statistics.median(ratios):24.2f}")


if __name__ == "__main__":
    main(sys.argv[1:])
