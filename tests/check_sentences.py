#!/usr/bin/env python3
"""Comments, table cells and messages stand alone.

usage: check_sentences.py [--shrink]

A comment of code and a cell of a table in a page begin with what they speak of: not
with of, those, they, whoever, its, it, what (but a question), with one
of/that/which/who/is/was/has/with/to/more, nor with in, as, for, by, unless a comma or
colon ends that phrase within eight words or a unit follows ("in ms"). A message stands
behind its subject, so that only two things are judged, and in comments and pages, too:
`X is no Y` is "X is not a Y", and "there is no memory" is "out of memory".

tests/house/sentences.txt lists the places that were there before this check; the list
may only shrink, and --shrink takes out what is mended. tests/house/exceptions.txt has
those that stay, each with its reason.
"""

import collections
import sys

from house import lists, prose, sources

EXCEPTIONS = "exceptions.txt"
EXCEPTIONS_MAX = 100
# Messages are what a user reads; tests quote them.
SPOKEN = ("src/", "include/", "bindings/", "web/", "scripts/", "examples/")
UNSPOKEN = ("bindings/python/tests/", "web/test")
SPOKEN_PAGES = ("docs/man/", "src/console/")
# What quotes bad sentences as such.
QUOTED = {"tests/house/prose.py", "tests/house/test_prose.py", "tests/check_sentences.py"}


def comment_faults(path, text, suffix):
    for line, words in sources.comments(text, suffix):
        start = prose.unclear_start(words)
        if start:
            yield line, words[:60].strip(), start
        for at in prose.denials(words):
            yield line, prose.around(words, at), "is no"


def page_faults(text):
    for line, cell in sources.cells(text):
        start = prose.unclear_start(cell)
        if start:
            yield line, "| " + cell[:60].strip(), start
    for line, words in sources.paragraphs(text):
        for at in prose.denials(words):
            yield line, prose.around(words, at), "is no"


def message_faults(text, suffix):
    for line, words in sources.messages(text, suffix):
        for at in prose.denials(words):
            yield line, '"' + prose.around(words, at), "is no"


def faults(path, text):
    """Triples of line, place and kind of all that a file's reader would stumble on."""
    name, suffix = str(path), sources.kind(lists.ROOT / path)
    if suffix in sources.PAGES:
        return page_faults(text)
    found = list(comment_faults(path, text, suffix))
    if name.startswith(SPOKEN) and not name.startswith(UNSPOKEN) and \
            suffix in sources.C | sources.SCRIPT | sources.PYTHON or \
            name.startswith(SPOKEN_PAGES):
        found += message_faults(text, suffix)
    # A docstring is a comment and a string; a fault of it is one place.
    return sorted({(line, place.lstrip('"'), kind) for line, place, kind in found})


def says(kinds):
    def of_place(place):
        if kinds[place] != "is no":
            return f"begins with `{kinds[place]}`: begin with the noun or the verb " \
                   "that it is about"
        return "say `is not a`" if "memory" not in place else "say `out of memory`"
    return of_place


def main():
    kept = lists.exceptions(EXCEPTIONS)
    found, kinds, used = collections.defaultdict(list), {}, set()
    for path in sources.tracked(lists.ROOT):
        if str(path) in QUOTED:
            continue
        try:
            text = (lists.ROOT / path).read_text()
        except UnicodeDecodeError:
            continue
        for line, place, kind in faults(path, text):
            if (str(path), place) in kept:
                used.add((str(path), place))
                continue
            found[str(path), place].append(line)
            kinds[place] = kind
    complaints, listed = lists.judge("sentences.txt", found, says(kinds))
    complaints += [f"tests/house/{EXCEPTIONS}: {path}: {place}: is not there any more"
                   for path, place in kept.keys() - used]
    if len(kept) > EXCEPTIONS_MAX:
        complaints.append(f"tests/house/{EXCEPTIONS}: {len(kept)} exceptions, "
                          f"{EXCEPTIONS_MAX} at most")
    lists.end(complaints, f"{listed} places are listed to be changed, "
                          f"{len(kept)} are exceptions")


if __name__ == "__main__":
    sys.exit(__doc__ if set(sys.argv[1:]) - {"--shrink"} else main())
