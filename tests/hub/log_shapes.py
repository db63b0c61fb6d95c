"""The shapes of the log's lines, as docs/logs.md has them.

    for wrong in log_shapes.mistakes(line):  # of a line of JSON, parsed
        ...
"""
import collections
import os
import re

DOCS = os.path.join(os.environ["STAGGER_SOURCE"], "docs/logs.md")
KINDS = {"text": str, "number": int, "bool": bool, "time": (int, float)}

# fields: of (name, kind, whether it is always there), in their order. alike:
# how many of the first make lines one series; None: they are not counted.
# is_always: the event is never folded.
Shape = collections.namedtuple("Shape", "levels fields alike is_always")


def read_fields(text):
    fields, alike = [], None
    for part in re.split(r"([,;])", text):
        if part == ";":
            alike = len(fields)
        found = re.fullmatch(r"(\[?)`([a-z_]+)`(?:: (\w+))?\]?", part.strip())
        if found:
            fields.append((found[2], found[3] or "text", not found[1]))
        else:
            assert part.strip() in ("", ",", ";"), part
    return fields, alike


def read():
    """Event to Shape."""
    shapes = {}
    with open(DOCS) as file:
        text = file.read()
        always = re.search(r"never folded: ((?:`[a-z-]+`[,\s]*)+)", text)[1]
        for line in text.splitlines():
            row = re.match(r"\| `([a-z-]+)` \| ([a-z, ]+) \| (.*?) \| (.+?) \|",
                           line)
            if row:
                assert row[1] not in shapes, f"{row[1]} twice"
                shapes[row[1]] = Shape(row[2].split(", "), *read_fields(row[3]),
                                       f"`{row[1]}`" in always)
    return shapes


SHAPES = read()


def mistakes(line):
    """What is wrong with a line: a list of words."""
    shape = SHAPES.get(line.get("event"))
    if shape is None:
        return [f"no such event in docs/logs.md: {line}"]
    names = list(line)
    wrong = []
    if names[:3] != ["time", "level", "event"]:
        wrong.append(f"begins with {names[:3]}")
    if not re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z",
                        str(line.get("time"))):
        wrong.append(f"time: {line.get('time')}")
    if line.get("level") not in shape.levels:
        wrong.append(f"level: {line.get('level')}")
    return wrong + mistakes_of_fields(line, names[3:], shape)


# Fields of a line that stands for many events, of many targets.
FOLDED = [("cause", "text", False), ("status", "number", False),
          ("folded", "number", True), ("since", "text", True),
          *[(subjects, "number", False) for subjects in (
              "targets", "addresses", "receivers", "topics", "clients",
              "proxies")],
          ("at_least", "bool", False), ("names", "text", False)]


def events_in(line):
    """How many events a line stands for."""
    return line.get("folded", line.get("repeated", 1))


def names_in(line):
    """The target, or the first three of them: "a, b, c"."""
    return line["names"] if "folded" in line else line["target"]


def mistakes_of_fields(line, names, shape):
    fields = list(shape.fields)
    if "folded" in line:
        fields = FOLDED if not shape.is_always else []
    elif "repeated" in line and shape.alike is not None:
        fields[shape.alike:shape.alike] = [("repeated", "number", True),
                                           ("since", "text", True)]
    if "cut" in line: # what had no room is missing
        fields = [(name, kind, False) for name, kind, _ in fields]
        fields.append(("cut", "bool", True))
    known = {name + ("_ms" if kind == "time" else ""): kind
             for name, kind, _ in fields}
    wrong = [f"{name} is no field of it" for name in names
             if name not in known]
    wrong += [f"{name} is missing" for name, kind, is_needed in fields
              if is_needed
              and name + ("_ms" if kind == "time" else "") not in names]
    if not wrong and names != [name for name in known if name in names]:
        wrong.append(f"the order is {names}")
    for name in names:
        value = line[name]
        kind = known.get(name, "text")
        if kind == "time" and value is None:
            continue
        if (not isinstance(value, KINDS[kind])
                or isinstance(value, bool) != (kind == "bool")):
            wrong.append(f"{name} is {value!r}, and no {kind}")
    return [f"{line['event']}: {what}" for what in wrong]
