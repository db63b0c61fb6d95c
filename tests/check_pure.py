#!/usr/bin/env python3
"""Core decides and does nothing else: this holds it to that.

usage: check_pure.py NM OBJECT... [--shared LIBRARY]

The objects of core, flow and the simulator may need memory primitives and each
other, no more. No source of core, flow or base computes in floating point or 128 bits,
one file of the adapters at most reads a clock or entropy, and the shared
library gives out no name that is not ours.
"""

import os
import pathlib
import re
import subprocess
import sys

ALLOWED = re.compile(
    r"mem(cpy|set|cmp|move|chr)|str(len|cmp|ncmp|chr|str)"
    r"|__(mem(cpy|set|move)|str(cpy|ncpy|cat|ncat))_chk"
    r"|__stack_chk_fail|_GLOBAL_OFFSET_TABLE_|__assert_fail")
NOT_INTEGER = re.compile(
    r"\b(double|float|_Float\d+|__int128|_BitInt)\b"
    r"|\b\d+\.\d*|\b\d+[eE][-+]?\d+\b")
CLOCK = re.compile(
    r"\b(clock_gettime|gettimeofday|timespec_get|getentropy|getrandom|"
    r"arc4random\w*)\b|/dev/u?random")


def code_of(path, keep_strings=False):
    """The file without its comments (and strings), line by line as it was."""
    token = re.compile(
        r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|' r"'(?:\\.|[^'\\\n])+'", re.S)

    def blank(match):
        if keep_strings and match[0][0] == '"':
            return match[0]
        return re.sub(r"[^\n]", " ", match[0])

    return token.sub(blank, path.read_text())


def places(pattern, path, **options):
    for number, line in enumerate(code_of(path, **options).split("\n"), 1):
        for match in pattern.finditer(line):
            yield f"{path}:{number}: {match[0]}"


def symbols(nm, *arguments):
    run = subprocess.run([nm, "-P", *arguments], check=True, text=True,
                         stdout=subprocess.PIPE)
    return {line.split()[0].split("@")[0] for line in run.stdout.splitlines()
            if len(line.split()) > 1}


def impure_symbols(nm, objects):
    own = symbols(nm, "-g", "--defined-only", *objects)
    for obj in objects:
        for name in sorted(symbols(nm, "-u", obj) - own):
            if not ALLOWED.fullmatch(name):
                yield f"{obj}: needs {name}"


def strange_exports(nm, library):
    for name in sorted(symbols(nm, "-D", "--defined-only", library)):
        if not name.startswith("stg_"):
            yield f"{library}: exports {name}"


def sources(*parts):
    root = pathlib.Path(os.environ["STAGGER_SOURCE"], "src")
    return sorted(path for part in parts
                  for path in (root / part).glob("*.[ch]"))


def main(arguments):
    if len(arguments) < 2:
        sys.exit(__doc__)
    nm, objects, library = arguments[0], arguments[1:], None
    if "--shared" in objects:
        library, objects = objects[-1], objects[:-2]

    found = list(impure_symbols(nm, objects))
    if library:
        found += strange_exports(nm, library)
    for path in sources("base", "core", "flow"):
        found += places(NOT_INTEGER, path)
        found += places(CLOCK, path, keep_strings=True)
    readers = [list(places(CLOCK, path, keep_strings=True))
               for path in sources("adapters")]
    readers = [places for places in readers if places]
    if len(readers) > 1:
        found += [f"{each[0]}: a second file reads it" for each in readers[1:]]

    print("\n".join(found) or f"{len(objects)} objects, all pure")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
