"""Lists of the places that a gate found when it was made, and that may only go.

A list is a file of lines: a path in the first column, and below it, indented by
two spaces, one line for each place in that file. A gate fails where it finds a
place that its list lacks, and where the list has a place that is not found any
more. `--shrink` takes the latter out; nothing puts one in.
"""

import collections
import os
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(os.environ.get("STAGGER_SOURCE")
                    or pathlib.Path(__file__).resolve().parents[2])
FOLDER = ROOT / "tests/house"
COMMENT = "# "
COMMITS_MAX = 50  # that changed a list are looked at


def read(text):
    """Counts of the pairs (path, place) of a list."""
    places, path = collections.Counter(), None
    for line in text.splitlines():
        if line.startswith("  "):
            places[path, line[2:]] += 1
        elif line and not line.startswith(COMMENT):
            path = line
    return places


def write(places, head):
    lines, last = [COMMENT + line for line in head.splitlines()], None
    for path, place in sorted(places.elements()):
        if path != last:
            lines.append(path)
            last = path
        lines.append("  " + place)
    return "\n".join(lines) + "\n"


def heading(text):
    return "\n".join(line.removeprefix(COMMENT) for line in text.splitlines()
                     if line.startswith(COMMENT))


def exceptions(name):
    """Pairs of a path and a text that an exception names; its reason is behind
    ` -- `. Two texts of one line of the file are two exceptions."""
    kept = {}
    for line in (FOLDER / name).read_text().splitlines():
        if not line or line.startswith(COMMENT):
            continue
        match = re.fullmatch(r"(\S+): (.+) -- (.+)", line)
        if not match:
            sys.exit(f"{name}: `{line}`: expected PATH: TEXT -- REASON")
        kept[match[1], match[2]] = match[3]
    return kept


def git(*arguments):
    return subprocess.run(["git", "-C", ROOT, *arguments], text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.DEVNULL).stdout


def lengthened(name, count):
    """Tells of a list that is longer than a commit before had it."""
    path = f"tests/house/{name}"
    commits = git("log", f"-{COMMITS_MAX}", "--format=%H", "--", path).split()
    shortest = min((sum(read(git("show", f"{commit}:{path}")).values())
                    for commit in commits), default=count)
    if count > shortest:
        yield f"{path}: {count} places, {shortest} in a commit before: " \
              "a list may only shrink"


def judge(name, found, says):
    """Compares what a gate found with its list. found: (path, place) -> line and
    words for the report. Returns the complaints; says ends each."""
    file = FOLDER / name
    text = file.read_text()
    listed = read(text)
    here = collections.Counter({key: len(lines) for key, lines in found.items()})
    gone = listed - here
    if "--shrink" in sys.argv[1:]:
        file.write_text(write(listed & here, heading(text)))
        gone, listed = None, listed & here
    complaints = [f"{path}:{found[path, place][0]}: {place}: {says(place)}"
                  for path, place in sorted((here - listed).elements())]
    if gone:
        complaints += [f"tests/house/{name}: {path}: {place}: is mended; take it "
                       f"out (python3 {sys.argv[0]} --shrink)"
                       for path, place in sorted(gone.elements())]
    complaints += lengthened(name, sum(listed.values()))
    return complaints, sum(listed.values())


def end(complaints, summary):
    print("\n".join(complaints) or summary)
    sys.exit(1 if complaints else 0)
