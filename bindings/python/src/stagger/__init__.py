"""Retries that do not trample.

A policy is a line of text; the decisions are those of the C library.

>>> import stagger
>>> @stagger.retry("exponential base=500ms jitter=full attempts=4", on=OSError)
... def stock(item: str) -> int:
...     return len(item)
>>> stock("pear")
4
"""

from . import testing
from ._attempts import Attempt, current
from ._classify import classify, response
from ._clock import AttemptTimeout
from ._command import Figures, plan, simulate
from ._core import Operation, Outcome, Peer, Policy
from ._core import version as __version__
from ._events import Event, Hook, Statistics
from ._gave_up import GaveUp
from ._retry import Retrying, attempts, call, retry

__all__ = [
    "Attempt",
    "AttemptTimeout",
    "Event",
    "Figures",
    "GaveUp",
    "Hook",
    "Operation",
    "Outcome",
    "Peer",
    "Policy",
    "Retrying",
    "Statistics",
    "__version__",
    "attempts",
    "call",
    "classify",
    "current",
    "plan",
    "response",
    "retry",
    "simulate",
    "testing",
]
