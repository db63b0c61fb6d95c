"""The end of an operation that did not succeed, for people."""

from __future__ import annotations

import contextlib
from collections import deque
from typing import Any, Optional

from ._core import Operation, Outcome

# Of each attempt: its number, what it came to, and the wait behind it.
History = deque[tuple[int, Outcome, Optional[float]]]


class GaveUp(Exception):
    """The call was given up, and why.

    Raised where no attempt could be made (the breaker is open, the deadline
    has passed), and instead of the last exception with `raise_last=False`.
    """

    def __init__(
        self, name: str, operation: Operation, history: History | None
    ) -> None:
        super().__init__(f"{name}: {operation.text}")
        self.why = operation.why
        self.attempts = operation.number
        self.waited = operation.waited
        self.history = list(history or ())
        # What a call around this one takes it for.
        self.outcome = operation.last or _refused(operation.why)

    def __reduce__(self) -> Any:
        # A pool of processes sends it to the one that asked.
        return _restore, (self.args, self.__dict__)


def _restore(args: Any, state: dict[str, Any]) -> GaveUp:
    error = GaveUp.__new__(GaveUp, *args)
    error.__dict__.update(state)
    return error


def _refused(why: str) -> Outcome:
    """No attempt was made."""
    return Outcome.failed(why if why == "circuit-open" else "error")


def note(
    error: BaseException, operation: Operation, history: History | None
) -> None:
    """Adds the reason and the history to the exception (PEP 678), if it takes
    any: one that is a frozen dataclass does not."""
    lines = [f"stagger: {operation.text}"]
    if history is not None and len(history) > 1:
        lines += [_line(*each) for each in history]
    text = "\n".join(lines)
    with contextlib.suppress(Exception):
        _add_note(error, text)


def _add_note(error: BaseException, text: str) -> None:
    if hasattr(error, "add_note"):
        error.add_note(text)
    else:  # before Python 3.11: as it stores them
        notes: Any = getattr(error, "__notes__", None)
        error.__notes__ = [*(notes or ()), text]  # type: ignore[attr-defined,unused-ignore]


def _line(number: int, outcome: Outcome, wait: float | None) -> str:
    then = "" if wait is None else f", then waited {wait:.3f} s"
    return f"  attempt {number}: {outcome.name}{then}"
