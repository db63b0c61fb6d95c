"""Who hears of an operation: a hook, the log, and its statistics."""

from __future__ import annotations

import logging
from typing import Any, Callable, NamedTuple

from ._core import Outcome

log = logging.getLogger("stagger")


class Event(NamedTuple):
    """What a hook is told, in the thread or task of the call."""

    kind: str  # "attempt" or "hedge" begins, "decision", "end", "fallback"
    name: str  # of the function
    number: int  # of the attempt, from 1
    next: str  # "go", "wait", "done" or "give-up"
    why: str  # of a wait or an end: "backoff", "attempts" ...
    wait: float  # of "wait": seconds; else 0
    outcome: Outcome | None  # of "decision", but for a wait before a try
    error: BaseException | None  # what was raised
    text: str  # how it goes, as a sentence
    hedge: int = 0  # of "hedge" and "decision": which one of the attempt


Hook = Callable[[Event], object]


class Statistics(NamedTuple):
    """Of the calls of a function that have ended, from all threads."""

    calls: int
    attempts: int  # first tries included
    retries: int
    successes: int
    failures: int
    waited: float  # in seconds
    fallbacks: int  # of the failures: those that a fallback answered
    ends: dict[str, int]  # calls by reason: "done", "attempts", "budget" ...
    hedges: int = 0  # beside the attempts

    @classmethod
    def of(cls, totals: dict[str, Any]) -> Statistics:
        calls, attempts = totals["calls"], totals["attempts"]
        done = totals["ends"].get("done", 0)
        return cls(
            calls=calls,
            attempts=attempts,
            retries=max(0, attempts - calls),
            successes=done,
            failures=calls - done,
            waited=totals["waited"],
            fallbacks=totals["fallbacks"],
            ends=totals["ends"],
            hedges=totals["hedges"],
        )


def call_hook(hook: Hook, event: Event) -> None:
    """A hook that fails is no reason to fail."""
    try:
        hook(event)
    except Exception:
        log.exception("%s: the hook failed", event.name)
