"""The simulator, from a notebook: runs the command, and returns its numbers."""

from __future__ import annotations

import html
import json
import pathlib
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Union

from ._core import Policy

_Text = Union[str, Policy]


class Figures(dict[str, Any]):
    """A dict, which a notebook shows as the command's charts."""

    def __init__(self, numbers: Mapping[str, Any], page: str) -> None:
        super().__init__(numbers)
        self._page = page

    def _repr_html_(self) -> str:
        return self._page


def plan(*policies: _Text, command: str = "stagger") -> Figures:
    """What policies do, as `stagger plan --json` says it: the fields are in
    stagger-plan(1). A notebook shows where the waits may fall."""
    texts = ["--", *map(str, policies)]
    numbers = _run([command, "plan", "--json", *texts])
    plot = _run([command, "plan", "--plot", *texts])
    return Figures(json.loads(numbers), f"<pre>{html.escape(plot)}</pre>")


def simulate(
    kind: str = "contention",
    *,
    policy: _Text | Sequence[_Text] | Mapping[str, _Text] = (),
    command: str = "stagger",
    **options: Any,
) -> Figures:
    """Runs `stagger sim KIND`: contention, overload or advise.

    Options are those of the command, as `reps=10` or `retry_after="1s"`; what
    Python has words for takes a `_` behind it: `from_="20s"`. A list repeats an
    option; policies may have names: `policy={"ours": "backend"}`. A notebook
    shows the page of charts.
    """
    words = list(_words({"policy": _named(policy), **options}))
    with tempfile.TemporaryDirectory() as folder:
        page = pathlib.Path(folder, "page.html")
        numbers = _run(
            [command, "sim", kind, "--json", "--html", str(page), *words]
        )
        charts = page.read_text(encoding="utf-8")
    frame = (
        f'<iframe srcdoc="{html.escape(charts)}" sandbox="allow-scripts" '
        'width="100%" height="600" style="border: 0"></iframe>'
    )
    return Figures(json.loads(numbers), frame)


def _named(
    policy: _Text | Sequence[_Text] | Mapping[str, _Text],
) -> list[str]:
    if isinstance(policy, (str, Policy)):
        return [str(policy)]
    if isinstance(policy, Mapping):
        return [f"{name}={text}" for name, text in policy.items()]
    return [str(each) for each in policy]


def _words(options: Mapping[str, Any]) -> Iterator[str]:
    for name, value in options.items():
        values = value if isinstance(value, (list, tuple)) else [value]
        for each in values:
            yield f"--{name.rstrip('_').replace('_', '-')}={each}"


def _run(words: Sequence[str]) -> str:
    try:
        done = subprocess.run(
            words, capture_output=True, encoding="utf-8", check=False
        )
    except FileNotFoundError:
        raise FileNotFoundError(
            f"the command `{words[0]}` is not there: install it, or say "
            "command= where it is"
        ) from None
    if not done.stdout:
        raise ValueError(done.stderr.strip())
    return done.stdout
