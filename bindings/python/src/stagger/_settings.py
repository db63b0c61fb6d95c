"""How a function is called: the options, checked once."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, Callable, TypedDict, Union

from . import _events
from ._classify import classify
from ._clock import AttemptTimeout
from ._core import Calls, Outcome, Peer, Policy

if TYPE_CHECKING:
    from typing_extensions import Unpack

_UNCLASSIFIED = Outcome.failed("error")

Types = Union[type[BaseException], tuple[type[BaseException], ...]]


class Options(TypedDict, total=False):
    """What retry(), attempts() and Retrying() take beside the policy."""

    # What is a failure, and is it retried?
    on: Types  # only these; those of them that no rule knows, too
    when: Callable[[Any], object]  # of an exception: true, false or an Outcome
    when_result: Callable[[Any], object]  # of a result: the same

    # What answers when it has given up? A value, or a function of the GaveUp
    # that would say why; of an async one the answer is awaited.
    fallback: Any

    # What is it that is called?
    peer: Peer  # shared budget, breaker and rate limit
    method: str  # "POST": repeated only with a key, or if surely not processed
    key: bool | str  # attempt.key goes with each attempt; or this one
    name: str  # in the log, and for hooks; as a rule the function's

    # Who hears of it?
    log: logging.Logger | str | None  # "stagger"; None: nobody
    level: int  # logging.INFO
    hook: _events.Hook
    raise_last: bool  # False: GaveUp instead of the last exception


class Settings:
    """The options of one function. ValueError for a bad policy."""

    __slots__ = (
        "_is_only_for_results",
        "_on",
        "_when",
        "_when_result",
        "calls",
        "fallback",
        "has_fallback",
        "hook",
        "level",
        "log",
        "name",
        "peer",
        "policy",
        "raise_last",
    )

    def __init__(
        self,
        policy: str | Policy,
        *,
        has_own_peer: bool,
        **options: Unpack[Options],
    ) -> None:
        _check(options)
        if callable(policy):
            raise TypeError("write @stagger.retry(), with the parentheses")
        self.policy = Policy(policy)
        self._on = options.get("on")
        self._when = options.get("when")
        self._when_result = options.get("when_result")
        self.has_fallback = "fallback" in options
        self.fallback = options.get("fallback")
        self.name = options.get("name", "call")
        self.log = _logger(options.get("log", _events.log))
        self.level = options.get("level", logging.INFO)
        self.hook = options.get("hook")
        self.raise_last = options.get("raise_last", True)
        self.peer = options.get("peer")
        if self.peer is None and has_own_peer and self.policy.needs_peer:
            self.peer = Peer(self.policy)
        self._is_only_for_results = self._on is None and bool(self._when_result)
        is_choosy = self._on or self._when or self._when_result
        self.calls = Calls(
            self.policy.with_errors() if is_choosy else self.policy,
            self.peer,
            options.get("method"),
            options.get("key", False),
        )

    def outcome_of(self, error: Exception) -> Outcome:
        outcome = classify(error)
        if self._on is not None and not isinstance(error, self._on):
            is_ours = isinstance(error, AttemptTimeout)
            return outcome if is_ours else outcome.but(permanent=True)
        if self._when is not None:
            return self._ruled(self._when(error), outcome)
        if self._is_only_for_results and not self._would_retry(outcome):
            return outcome.but(permanent=True)
        return outcome

    def refuse_fallback(self) -> None:
        """A block has no result that another one could stand for."""
        if self.has_fallback:
            raise TypeError("fallback is for functions: a block has no result")

    def judge(self, result: object) -> Outcome | None:
        """None: it is a success."""
        if self._when_result is None:
            return None
        verdict = self._when_result(result)
        if isinstance(verdict, Outcome):
            return None if verdict.is_ok else self._ruled(verdict, verdict)
        return _UNCLASSIFIED if verdict else None

    def _ruled(self, verdict: object, outcome: Outcome) -> Outcome:
        """A predicate overrules the policy, unless it asks for its rules."""
        if isinstance(verdict, Outcome):
            is_retried = self._would_retry(verdict)
            return verdict if is_retried else verdict.but(permanent=True)
        if not verdict:
            return outcome.but(permanent=True)
        if self._would_retry(outcome):
            return outcome
        return _UNCLASSIFIED.but(delay=outcome.delay, unsent=outcome.unsent)

    def _would_retry(self, outcome: Outcome) -> bool:
        return self.policy.retries(outcome) != 0


def _check(options: Options) -> None:
    """TypeError or ValueError now, and not at the first failure, in the middle
    of an outage."""
    for name, value in options.items():
        if name not in Options.__annotations__:
            raise TypeError(
                f"there is no option {name!r}: they are "
                f"{', '.join(Options.__annotations__)}. Settings, such as "
                "attempts=3, belong in the policy's text"
            )
        if name in ("when", "when_result", "hook"):
            if value is not None and not callable(value):
                raise TypeError(f"{name} is a function, not {value!r}")
        elif name == "on":
            _check_types(value)
        elif name == "key" and value == "":
            raise ValueError("key is empty: True makes one, False is none")
        elif name == "level" and not isinstance(value, int):
            raise TypeError(
                f"level is a number such as logging.INFO, not {value!r}"
            )


def _check_types(on: object) -> None:
    for each in on if isinstance(on, tuple) else (on,):
        if each is not None and not (
            isinstance(each, type) and issubclass(each, BaseException)
        ):
            raise TypeError(
                f"on is a type of exception, or a tuple of them, not {each!r}"
            )


def _logger(
    given: logging.Logger | str | None,
) -> logging.Logger | None:
    if isinstance(given, str):
        return logging.getLogger(given)
    if given is not None and not hasattr(given, "isEnabledFor"):
        raise TypeError(f"log is a logger, its name or None, not {given!r}")
    return given
