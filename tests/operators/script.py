"""A run as text: the settings that a hub starts with, and an operator's acts.

    # comment
    settings {"targets": [...]}
    +250 edit {"set": {"budget-empty": "give-up"}}
    +0 reload {"how": "hup"}

An act is a line: the milliseconds that go by before it, its name, and its
arguments in JSON. In texts, `@leaf@` and its like stand for what each run has
anew (services.py): a run is the same on every machine.
"""
import json
import typing


class Act(typing.NamedTuple):
    after: int  # ms
    name: str
    args: dict

    def __str__(self):
        words = json.dumps(self.args) if self.args else ""
        return f"+{self.after} {self.name} {words}".rstrip()


class Script(typing.NamedTuple):
    settings: dict
    acts: list

    def __str__(self):
        lines = ["settings " + json.dumps(self.settings), *map(str, self.acts)]
        return "\n".join(lines) + "\n"


class Mistake(Exception):
    """A line that is not an act."""


def read_act(line):
    after, name, *args = line.split(None, 2)
    return Act(int(after.removeprefix("+")), name,
               json.loads(args[0]) if args else {})


def read(text):
    settings, acts = None, []
    for number, line in enumerate(text.splitlines(), 1):
        line = line.strip()
        if not line or line.startswith("#"):
            continue
        try:
            if line.startswith("settings "):
                settings = json.loads(line.removeprefix("settings "))
            else:
                acts.append(read_act(line))
        except ValueError as error:
            raise Mistake(f"line {number}: {error}: {line}") from None
    if settings is None:
        raise Mistake("no line begins with `settings`")
    return Script(settings, acts)


def filled(value, words):
    """A copy with @NAME@ replaced in each text. words: name to text."""
    text = json.dumps(value)
    for name, word in words.items():
        text = text.replace(f"@{name}@", json.dumps(word)[1:-1])
    return json.loads(text)
