#!/usr/bin/env python3
"""Includes point one way, and core knows of nothing but the language; and
nobody asks librdkafka for what may lose messages.

usage: check_includes.py

A room of src may include itself, those that ROOMS gives it, and the public
headers. A new room gets a row: place it behind all that it includes, and add its name to
the rows that include it.
"""

import os
import pathlib
import re
import sys

SRC = pathlib.Path(os.environ["STAGGER_SOURCE"], "src")

# From below to above: what a room may include besides itself.
ROOMS = {
    "base": (),
    "core": ("base",),
    "flow": ("base", "core"),
    "adapters": ("base", "core"),
    "host": ("base", "core", "adapters"),
    "http": ("base", "core", "adapters", "host"),
    "filter": ("base",),
    "store": ("base", "core", "flow", "adapters", "host", "http"),
    "sources": ("base", "core", "flow", "adapters", "host", "http", "store"),
    "kafka": ("base", "core", "flow", "host", "http", "store", "sources"),
    "ingress": ("base", "core", "flow", "host", "http", "store"),
    "console": ("base", "core", "flow", "host", "http", "store", "ingress"),
    "alerts": ("base", "core", "flow", "host", "http", "store"),
    "config": ("base", "core", "flow", "host", "http", "store", "sources",
               "kafka", "ingress", "alerts", "filter"),
    "metrics": ("base", "core", "flow", "host", "http", "store", "sources",
                "ingress", "alerts", "config", "filter"),
    "hub": ("base", "core", "flow", "adapters", "host", "http", "store",
            "sources", "kafka", "ingress", "alerts", "metrics", "config",
            "filter"),
    "plan": ("base", "core"),
    "chart": ("base",),
    "admin": ("base", "core", "flow", "host", "http", "store", "ingress",
              "console", "alerts", "metrics", "config", "hub", "plan",
              "chart"),
    "sim": ("base", "core", "flow", "chart", "plan"),
    "cli": ("base", "core", "flow", "adapters", "host", "http", "store",
            "sources", "kafka", "ingress", "alerts", "metrics", "config", "hub",
            "admin", "chart", "sim", "plan", "filter"),
}
PURE = {"core", "flow"}
# What a compiler brings along, and the names of the memory primitives.
LANGUAGE = {"assert.h", "limits.h", "stdatomic.h", "stdbool.h", "stddef.h",
            "stdint.h", "string.h"}
# Numbers of the system, and no more, for the files that sort them.
NUMBERS = {("classify.c", "errno.h"), ("classify.c", "netdb.h"),
           ("uplink.c", "errno.h")}
INCLUDE = re.compile(r'^\s*#\s*include\s*(<|")([^>"]+)[>"]', re.M)


# Around them some versions lose what is read in batches: to read from elsewhere,
# all is assigned anew (src/kafka/group.c). And offsets that are stored
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
            elif part not in ROOMS:
                yield f"{path}: check_includes.py knows no room {part}"
            elif place not in (part, *ROOMS[part]):
                yield f'{path}: {part} may not include "{name}"'
        elif part == "base" and name in ("time.h", "uv.h"):
            yield f"{path}: base knows of no clock and no loop"
        elif part in PURE and name not in LANGUAGE \
                and (path.name, name) not in NUMBERS:
            yield f"{path}: {part} may not include <{name}>"


def main():
    files = [path for path in sorted(SRC.rglob("*.[ch]"))]
    found = [text for path in files
             for text in (*wrong_includes(path,
                                          path.relative_to(SRC).parts[0]),
                          *wrong_calls(path))]
    print("\n".join(found) or f"{len(files)} files, all the right way")
    return 1 if found or not files else 0


if __name__ == "__main__":
    sys.exit(__doc__ if sys.argv[1:] else main())
