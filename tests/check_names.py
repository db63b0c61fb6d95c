#!/usr/bin/env python3
"""Static functions of src are found by grep: each begins with its file's noun,
and its name stands in one file.

usage: check_names.py [--shrink]

The noun of lane_cursor.c is lane_cursor, cursor or lane, in singular or plural, and
something must follow it: `cursor_move`. A name that is in two files could not
be told apart in a debugger, a profile or a backtrace. tests/house/names.txt
lists the names that were there before this check; the list may only shrink, and
--shrink takes out what is mended.
"""

import collections
import sys

from house import lists, sources


def numbers(noun):
    """The noun in singular and in plural."""
    yield noun
    if noun.endswith("ies"):
        yield noun[:-3] + "y"
    elif noun.endswith("es"):
        yield noun[:-2]
    if noun.endswith("s"):
        yield noun[:-1]
    else:
        yield noun + "s"
        yield noun[:-1] + "ies" if noun.endswith("y") else noun + "es"


def nouns(stem):
    words = stem.split("_")
    parts = {"_".join(words[i:j]) for i in range(len(words))
             for j in range(i + 1, len(words) + 1)}
    return {form for part in parts for form in numbers(part)}


def has_noun(name, stem):
    name = name.removeprefix("stg_")
    return any(name.startswith(noun + "_") and len(name) > len(noun) + 1
               for noun in nouns(stem))


def definitions(root):
    """(path, line, name) of each static function of src."""
    for path in sorted(root.glob("src/**/*.[ch]")):
        for line, name in sources.statics(path.read_text()):
            yield path.relative_to(root), line, name


def main():
    defined = list(definitions(lists.ROOT))
    files = collections.defaultdict(set)
    for path, _, name in defined:
        files[name].add(str(path))
    found = collections.defaultdict(list)
    for path, line, name in defined:
        if len(files[name]) > 1 or not has_noun(name, path.stem):
            found[str(path), name].append(line)

    def says(name):
        if len(files[name]) > 1:
            return "is in " + ", ".join(sorted(files[name])[:4]) + \
                ": a static function's name stands in one file"
        return "begins with the noun of its file, and a verb follows: group_forward " \
               "in group.c"

    complaints, listed = lists.judge("names.txt", found, says)
    twice = sum(len(files[name]) > 1 for _, _, name in defined)
    lists.end(complaints, f"{len(defined)} static functions; {listed} names are "
                          f"listed to be changed, {twice} of them in two files or more")


if __name__ == "__main__":
    sys.exit(__doc__ if set(sys.argv[1:]) - {"--shrink"} else main())
