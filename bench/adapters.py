#!/usr/bin/env python3
"""Measures the cost of a retry around a call, beside other libraries.

usage: python3 bench/adapters.py BUILD [ROUNDS]

The costs, in ns, are those of a call that succeeds at once, and of a call that
fails once and is repeated without a wait. No deadline is set, since the other
libraries have none. BUILD is build/release; ROUNDS (7) is how often each
library is measured. All libraries take turns in a round, so that a busy machine
slows all of them. The medians are printed, and the median of our cost as a
share of tenacity's in the same round. "over bare" is the cost without that of
the bare call, which is repeated by hand (in C++ it throws, and so costs more
than a value). cockatiel waits at least 1 ms: node makes that of a timer of 0.

The Python package is the wheel in build/python (make wheel); the other
libraries come from PyPI and npm, pinned, into build/bench. A library that
cannot be installed is left out.

Goal: stagger's decorator costs a third of tenacity's at most.
"""

import os
import pathlib
import shutil
import statistics
import subprocess
import sys

HERE = pathlib.Path(__file__).parent
PYPI = ["tenacity==9.2.1", "backoff==2.2.1", "stamina==26.1.0"]
CASES = ("success", "retry")


def run(*command, **options):
    return subprocess.run(command, check=True, text=True, **options)


def python_with_packages(folder):
    wheels = sorted(pathlib.Path("build/python").glob("stagger-*.whl"))
    if not wheels:
        print("left out: Python (no build/python/stagger-*.whl: make wheel)")
        return None
    python = folder / "venv/bin/python"
    run(sys.executable, "-m", "venv", "--clear", "--without-pip", folder / "venv")
    run(sys.executable, "-m", "pip", "--python", python, "install", "--quiet",
        "--disable-pip-version-check", wheels[-1], *PYPI)
    return python


def node_with_packages(folder):
    if not (shutil.which("node") and shutil.which("npm")):
        print("left out: node (no node, no npm)")
        return None
    for name in ("package.json", "calls.mjs"):
        shutil.copy(HERE / "adapters" / name, folder)
    run("npm", "install", "--silent", "--no-audit", "--no-fund", cwd=folder)
    return shutil.which("node")


def or_left_out(name, prepare, folder):
    try:
        return prepare(folder)
    except subprocess.CalledProcessError as error:
        print(f"left out: {name} ({error})")
        return None


def contestants(build):
    """Groups: the title, and by name the command without the case. The first of
    a group is the bare call, the second ours."""
    folder = pathlib.Path("build/bench")
    folder.mkdir(parents=True, exist_ok=True)
    c = build / "bench/calls"
    yield "C", {name: [c, name] for name in ("bare", "call", "loop")}
    cpp = build / "bench/calls_cpp"
    if cpp.exists():
        yield "C++", {name: [cpp, name] for name in ("bare", "throw", "value")}
    python = or_left_out("Python", python_with_packages, folder)
    for kind in ("plain", "async") if python else ():
        yield f"Python, {kind}", {
            name: [python, HERE / "adapters/calls.py", name, kind] for name in
            ("bare", "stagger", "tenacity", "backoff", "stamina")}
    node = or_left_out("node", node_with_packages, folder)
    if node:
        yield "node", {name: [node, folder / "calls.mjs", name]
                       for name in ("bare", "cockatiel", "p-retry")}


def measure(groups, rounds):
    found = {}
    for _ in range(rounds):
        for title, group in groups:
            for case in CASES:
                for name, command in group.items():
                    out = run(*command, case, stdout=subprocess.PIPE).stdout
                    found.setdefault((title, name, case), []).append(float(out))
    return found


def main(arguments):
    if len(arguments) not in (1, 2):
        sys.exit(__doc__)
    os.chdir(HERE.parent)
    groups = list(contestants(pathlib.Path(arguments[0]).resolve()))
    found = measure(groups, int(arguments[1]) if len(arguments) == 2 else 7)
    ns = {key: statistics.median(each) for key, each in found.items()}
    print(f"{'ns, medians':24}{'success':>10}{'over bare':>11}"
          f"{'one retry':>12}{'over bare':>11}")
    for title, group in groups:
        print(title)
        for name in group:
            cells = [f"    {name:20}"]
            for case, width in zip(CASES, (10, 12)):
                its, bare = ns[title, name, case], ns[title, "bare", case]
                over = "" if name == "bare" else f"{its - bare:,.0f}"
                cells.append(f"{its:{width},.0f}{over:>11}")
            print("".join(cells))
        if "tenacity" in group:
            shares = [statistics.median(
                a / b for a, b in zip(found[title, "stagger", case],
                                      found[title, "tenacity", case]))
                      for case in CASES]
            print("    of tenacity's: " + ", ".join(
                f"{share:.2f} ({case})" for share, case in zip(shares, CASES)))


if __name__ == "__main__":
    main(sys.argv[1:])
