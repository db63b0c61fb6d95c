#!/usr/bin/env python3
"""The same seed gives the same bytes, by every compiler that is here, with and
without optimisation.

usage: same_bytes.py

Compiles core, the simulator's engine and its contention with tests/sim/bytes.c
by gcc (with STAGGER_FULL in the environment, by clang, too) at -O0 and -O2, and compares what they print: with each other,
and with tests/sim/bytes.txt. STAGGER_WRITE in the environment writes the file
anew.
"""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

SOURCE = pathlib.Path(os.environ["STAGGER_SOURCE"])
GOLDEN = SOURCE / "tests/sim/bytes.txt"
PARTS = ["contention", "contention_totals", "curve", "distribution",
         "engine", "queue", "queue_heap",
         "queue_ladder", "random", "resource", "resource_text",
         "statistics", "tally"]


def sources():
    return [SOURCE / "tests/sim/bytes.c",
            SOURCE / "src/base/suggest.c",
            *sorted((SOURCE / "src/core").glob("*.c")),
            *(SOURCE / f"src/sim/{part}.c" for part in PARTS)]


def output(compiler, level, folder):
    program = pathlib.Path(folder, f"{compiler}{level}")
    subprocess.run([compiler, level, "-std=c11", "-w", "-ffp-contract=off",
                    "-D_GNU_SOURCE", f"-I{SOURCE}/include", f"-I{SOURCE}/src",
                    "-o", program, *sources()],
                   check=True, timeout=300)
    return subprocess.run([program], check=True, text=True, timeout=300,
                          stdout=subprocess.PIPE).stdout


def main():
    names = ("gcc", "clang") if "STAGGER_FULL" in os.environ else ("gcc",)
    compilers = [name for name in names if shutil.which(name)]
    if not compilers:
        print(f"left out: no {' nor '.join(names)}")
        return 77
    with tempfile.TemporaryDirectory() as folder:
        texts = {f"{name} {level}": output(name, level, folder)
                 for name in compilers for level in ("-O0", "-O2")}
    if "STAGGER_WRITE" in os.environ:
        GOLDEN.write_text(next(iter(texts.values())))
    wrong = [name for name, text in texts.items()
             if text != GOLDEN.read_text()]
    print("\n".join(f"{name}: prints something else" for name in wrong)
          or f"{len(texts)} builds print the same")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
