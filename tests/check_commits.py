#!/usr/bin/env python3
"""Commits since this check's own say what they change, and why.

usage: check_commits.py

A subject is `room: verb ...` in the imperative, of 72 letters at most; a room is a
folder or a file of the tree, without its suffix. A body says why. Verbs are those of
tests/house/verbs.txt: a verb that is missing there is added to it. Where there is no
history (an archive, a shallow clone), what there is of it is judged.
"""

import pathlib
import re
import sys

from house import lists

SUBJECT_MAX = 72
BODY_MIN = 5  # words
TRAILER = re.compile(r"^[A-Z][\w-]+: \S", re.M)
OWN = "tests/check_commits.py"


def commits():
    """(hash, subject, body) of each commit since the one that added this file, that
    one included, oldest first; merges are left out."""
    added = lists.git("log", "--diff-filter=A", "--format=%H", "--", OWN).split()
    if not added:
        return
    shown = lists.git("log", "--no-merges", "--reverse", "--format=%h%x00%s%x00%b%x01",
                      "HEAD", "--not", *[f"{commit}^@" for commit in added[-1:]])
    for entry in shown.split("\x01"):
        if entry.strip():
            yield entry.strip("\n").split("\0")


def rooms():
    names = set()
    for name in lists.git("ls-files").splitlines():
        path = pathlib.PurePath(name)
        names |= {part.lower() for part in path.parts} | {path.stem.lower()}
    return {name.lstrip(".") for name in names}


def complaints_about(subject, body, known, verbs):
    """Yields a sentence for each fault of a commit's message."""
    match = re.fullmatch(r"([^:]+): (\S+)( .+)?", subject)
    if len(subject) > SUBJECT_MAX:
        yield f"the subject has {len(subject)} letters, {SUBJECT_MAX} at most"
    if not match:
        yield "expected `room: verb ...`"
    else:
        for room in re.split(r"[,/ ]+", match[1]):
            if room.lower() not in known:
                yield f"`{room}` is not a folder or a file of the tree"
        if match[2] not in verbs:
            yield f"`{match[2]}` is not a verb of tests/house/verbs.txt: the subject " \
                  "is in the imperative, such as `lane: wake on the first retry`"
        elif not match[3]:
            yield "the verb has no object"
        if subject.endswith("."):
            yield "the subject ends in a full stop"
    words = " ".join(line for line in body.splitlines() if not TRAILER.match(line))
    if len(words.split()) < BODY_MIN:
        yield "a body says why"


def main():
    known = rooms()
    verbs = set((lists.FOLDER / "verbs.txt").read_text().split())
    judged = list(commits())
    lists.end([f"{commit} {subject}: {complaint}" for commit, subject, body in judged
               for complaint in complaints_about(subject, body, known, verbs)],
              f"{len(judged)} commits say what and why")


if __name__ == "__main__":
    sys.exit(__doc__ if sys.argv[1:] else main())
