#!/usr/bin/env python3
"""Every line that the hub can log is in docs/logs.md: its event, its levels and
its fields with their kinds; and nothing else is."""
import os
import re
import sys

SOURCE = os.environ["STAGGER_SOURCE"]
sys.path.insert(0, os.path.join(SOURCE, "tests/hub"))
import log_shapes # noqa: E402

CALL = re.compile(r"\b(STG_LOG|STG_LOG_ALWAYS|STG_LOG_REPEAT|"
                  r"stg_log_event|stg_log_always|stg_log_repeat)\(")
# A fold has room for twice as many kinds: STG_LOG_FOLD_EVENTS of log_fold.h.
EVENTS_MAX = 128
FIELD = re.compile(r'stg_field_(text|span|number|bool|time|secret)\(\s*"(\w+)"')
KINDS = {"span": "text", "secret": "text"}
# The log itself, which is told the event; and lines without an event of ours.
LEFT_OUT = {"src/host/log.c"}


def sources():
    for root, _, files in os.walk(os.path.join(SOURCE, "src")):
        for name in files:
            path = os.path.relpath(os.path.join(root, name), SOURCE)
            if name.endswith(".c") and path not in LEFT_OUT:
                with open(os.path.join(SOURCE, path)) as file:
                    yield path, re.sub(r"//[^\n]*|/\*.*?\*/", "",
                                       file.read(), flags=re.S)


def call_at(text, start):
    """The text from start to its closing parenthesis."""
    depth, is_quoted, at = 0, False, start
    while True:
        c = text[at]
        if c == "\\":
            at += 1
        elif c == '"':
            is_quoted = not is_quoted
        elif not is_quoted:
            depth += (c == "(") - (c == ")")
            if c == ")" and depth == 0:
                return text[start:at + 1]
        at += 1


def function_around(text, at):
    """Its name, and its text."""
    begin = text.rindex("\n{\n", 0, at)
    head = text[text.rindex("\n\n", 0, begin):begin]
    end = text.index("\n}\n", at)
    return re.search(r"(\w+)\(", head)[1], text[begin:end]


def events_of(text, call, at):
    """(event, levels) of a call; of a function that is told them, those of its
    callers."""
    arguments = call[call.index("(") + 1:]
    literal = re.search(r'"([a-z]+(?:-[a-z]+)*)"', arguments)
    first_field = arguments.find("stg_field")
    if literal and (first_field < 0 or literal.start() < first_field):
        return [(literal[1], levels_in(arguments))]
    name, _ = function_around(text, at)
    found = []
    for caller in re.finditer(rf"\b{name}\(", text):
        inner = call_at(text, caller.start())
        literal = re.search(r'"([a-z]+(?:-[a-z]+)*)"', inner)
        if literal and levels_in(inner):
            found.append((literal[1], levels_in(inner)))
    assert found, f"nobody calls {name} with an event"
    return found


def levels_in(text):
    return {level.lower()
            for level in re.findall(r"STG_LOG_(DEBUG|INFO|WARN|ERROR)\b", text)}


def fields_of(text, call, at):
    fields = FIELD.findall(call)
    if not fields:
        fields = FIELD.findall(function_around(text, at)[1])
    return {name: KINDS.get(kind, kind) for kind, name in fields}


def find_all():
    """Event to (levels, fields, whether repeats are counted, whether it is
    never folded)."""
    found = {}
    for path, text in sources():
        for match in CALL.finditer(text):
            call = call_at(text, match.start())
            fields = fields_of(text, call, match.start())
            is_counted = "repeat" in match[1].lower()
            is_always = "always" in match[1].lower()
            for event, levels in events_of(text, call, match.start()):
                before = found.setdefault(event, (set(), {}, is_counted,
                                                  is_always))
                before[0].update(levels)
                before[1].update(fields)
    # The log's own word.
    found["log-lines-dropped"] = ({"warn"}, {"lines": "number"}, False, True)
    return found


def main():
    wrong = []
    found = find_all()
    for event in sorted(set(found) | set(log_shapes.SHAPES)):
        if event not in log_shapes.SHAPES:
            levels, fields, *_ = found[event]
            wrong.append(f"{event} is not in docs/logs.md: {sorted(levels)} "
                         f"{fields}")
            continue
        if event not in found:
            wrong.append(f"{event} is in docs/logs.md, and nobody logs it")
            continue
        shape = log_shapes.SHAPES[event]
        levels, fields, is_counted, is_always = found[event]
        told = {name: kind for name, kind, _ in shape.fields}
        if set(shape.levels) != levels:
            wrong.append(f"{event}: its levels are {sorted(levels)}, not "
                         f"{shape.levels}")
        if told != fields:
            wrong.append(f"{event}: its fields are {fields}, not {told}")
        if is_counted != (shape.alike is not None):
            wrong.append(f"{event}: a semicolon behind the fields that make "
                         "repeats, if they are counted")
        if is_always != shape.is_always:
            wrong.append(f"{event}: the list of events that are never folded")
    if len(found) > EVENTS_MAX:
        wrong.append(f"more than {EVENTS_MAX} events: raise "
                     "STG_LOG_FOLD_EVENTS")
    for words in wrong:
        print(words)
    print(f"{len(found)} events")
    return 1 if wrong or len(found) < 30 else 0


if __name__ == "__main__":
    sys.exit(main())
