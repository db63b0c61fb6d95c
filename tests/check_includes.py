#!/usr/bin/env python3
"""Includes point one way, and core knows of nothing but the language; and
nobody asks librdkafka for what may lose messages.

usage: check_includes.py

cli -> hub and sim -> flow -> core; the adapters stand on core too. base is
below all of them. Everything may include the public headers.
"""

import os
import pathlib
import re
import sys

MAY_INCLUDE = {
    "base": {"base"},
    "core": {"core", "base"},
    "flow": {"flow", "core", "base"},
    "adapters": {"adapters", "core", "base"},
    "sim": {"sim", "flow", "core", "base"},
    "hub": {"hub", "flow", "adapters", "core", "base"},
    "cli": {"cli", "hub", "sim", "flow", "adapters", "core", "base"},
}
PURE = {"base", "core", "flow"}
# What a compiler brings along, and the names of the memory primitives.
LANGUAGE = {"assert.h", "limits.h", "stdatomic.h", "stdbool.h", "stddef.h",
            "stdint.h", "string.h"}
# Numbers of the system, and no more, for the files that sort them.
NUMBERS = {("classify.c", "errno.h"), ("classify.c", "netdb.h"),
           ("uplink.c", "errno.h")}
INCLUDE = re.compile(r'^\s*#\s*include\s*(<|")([^>"]+)[>"]', re.M)


# Around them some versions lose what is read in batches: to read from elsewhere,
# all is assigned anew (src/hub/logs/kafka_group.c). And offsets that are stored
# are committed without their metadata.
LOSING = re.compile(r"\brd_kafka_(?:(?:pause|resume|seek)\w*|offsets?_store)\b")


def wrong_calls(path):
    for name in LOSING.findall(path.read_text()):
        yield f"{path}: {name} may lose messages"


def wrong_includes(path, part):
    for quote, name in INCLUDE.findall(path.read_text()):
        place = name.split("/")[0]
        if place == "stagger":
            continue
        if quote == '"':
            if "/" not in name:
                yield f'{path}: "{name}" does not start at the root'
            elif place not in MAY_INCLUDE.get(part, {part}):
                yield f'{path}: {part} may not include "{name}"'
        elif part in PURE and name not in LANGUAGE \
                and (path.name, name) not in NUMBERS:
            yield f"{path}: {part} may not include <{name}>"


def main():
    root = pathlib.Path(os.environ["STAGGER_SOURCE"], "src")
    files = [path for path in sorted(root.rglob("*.[ch]"))]
    found = [text for path in files
             for text in (*wrong_includes(path,
                                          path.relative_to(root).parts[0]),
                          *wrong_calls(path))]
    print("\n".join(found) or f"{len(files)} files, all the right way")
    return 1 if found or not files else 0


if __name__ == "__main__":
    sys.exit(__doc__ if sys.argv[1:] else main())
