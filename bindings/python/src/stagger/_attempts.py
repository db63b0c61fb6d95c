"""The loop: one operation, and its attempts as blocks."""

from __future__ import annotations

import collections
import contextlib
import contextvars
from typing import TYPE_CHECKING, Any, Literal

from . import _clock
from ._core import Operation, Outcome
from ._events import Event, call_hook
from ._gave_up import GaveUp, History, note

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ._settings import Settings

_HISTORY_MAX = 10

# The operation whose attempt this code runs in.
_current: contextvars.ContextVar[Operation | None] = contextvars.ContextVar(
    "stagger_operation", default=None
)


def current() -> Operation | None:
    """The operation whose attempt this is: its number, timeout and key. None
    outside one."""
    return _current.get()


class Attempt:
    """One attempt: `with attempt:` around what may fail.

    An exception that will be retried ends in it; the last one passes.
    """

    __slots__ = ("_is_classified", "_limit", "_run", "_token")

    def __init__(self, run: Run, limit: _clock.Scope | None = None) -> None:
        self._run = run
        self._limit = limit
        self._is_classified = False

    @property
    def number(self) -> int:
        """From 1."""
        return self._run.operation.number

    @property
    def key(self) -> str:
        """An idempotency key, the same for all attempts of the call."""
        return self._run.operation.key

    @property
    def timeout(self) -> float | None:
        """Seconds that it may take from now; None: no limit."""
        return self._run.operation.timeout

    def classify(self, result: Any) -> None:
        """Has `when_result` look at what the attempt returned."""
        outcome = self._run.settings.classify(result)
        if outcome is not None:
            self.fail(outcome)

    def fail(self, outcome: Outcome) -> None:
        """The attempt came to this, although nothing was raised."""
        self._is_classified = True
        self._run.report(outcome, None)

    def __enter__(self) -> Attempt:
        self._token = _current.set(self._run.operation)
        if self._limit is not None:
            self._limit.__enter__()
        return self

    def __exit__(self, kind: Any, error: Any, trace: Any) -> bool:
        _current.reset(self._token)
        raised = error
        if self._limit is not None:
            try:
                self._limit.__exit__(kind, error, trace)
            except _clock.AttemptTimeout as late:
                raised = late
        if raised is not None:
            return self._fail(raised, is_new=raised is not error)
        if not self._is_classified:
            self._run.succeed()
        elif self._run.operation.gave_up:
            self._run.give_up_result()
        return False

    def _fail(self, error: BaseException, is_new: bool) -> bool:
        """Whether the exception ends here."""
        run = self._run
        if not isinstance(error, Exception):
            run.cancel()
            return False
        try:
            outcome = run.settings.outcome_of(error)
        except BaseException:  # raised by a predicate: no outcome is known
            run.cancel()
            raise
        run.report(outcome, error)
        if run.operation.is_waiting:
            return True
        run.give_up(error, is_new)
        return False


class Run:
    """An operation, and those who hear of it."""

    __slots__ = (
        "_error",
        "_history",
        "_is_begun",
        "operation",
        "settings",
        "skipped",
    )

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.skipped = _clock.skipped()
        self._error: Exception | None = None
        self._history: History | None = None
        self._is_begun = False
        self.operation = settings.calls.begin(
            _current.get(), None if self.skipped is None else self.skipped.clock
        )
        self._tell_admission()

    # -- what an attempt came to

    def succeed(self) -> None:
        self.operation.succeed()
        if self.settings.hook is not None:
            self._tell_success(0)
        if self._history is not None:  # or it is as most calls are
            self._log("ok")

    def report(self, outcome: Outcome, error: Exception | None) -> None:
        number = self.operation.number
        self.operation.report(outcome)
        self._note_failure(number, 0, outcome, error)

    # -- the same of several attempts at once: 0 is the first, then its hedges

    def begin_hedge(self) -> int:
        """Which one; 0: none may start now."""
        hedge = self.operation.hedge()
        if hedge:
            self._tell("hedge", hedge=hedge)
            self._log("begins", hedge)
        return hedge

    def succeed_attempt(self, hedge: int) -> None:
        self.operation.report_attempt(hedge, Outcome.ok())
        self._tell_success(hedge)
        if self._history is not None or self.operation.hedges:
            self._log("ok", hedge)

    def report_attempt(
        self, hedge: int, outcome: Outcome, error: Exception | None
    ) -> None:
        number = self.operation.number
        self.operation.report_attempt(hedge, outcome)
        self._note_failure(number, hedge, outcome, error)

    def cancel(self) -> None:
        self.operation.cancel()
        if self.settings.hook is not None:
            self._tell("end")

    # -- the ends

    def give_up(self, error: Exception, is_new: bool) -> None:
        """Raises, unless the exception is on its way already."""
        self._error = None
        if not self.settings.raise_last:
            raise self._gave_up() from error
        note(error, self.operation, self._history)
        if is_new:
            raise error

    def give_up_result(self) -> None:
        if not self.settings.raise_last or self.settings.has_fallback:
            raise self._gave_up()

    def may_fall_back(self) -> bool:
        """Of what was cancelled nobody wants an answer."""
        return (
            self.settings.has_fallback
            and self.operation.gave_up
            and self.operation.why != "cancelled"
        )

    def ask_fallback(self, error: Exception) -> Any:
        """The value, or what the function makes of the reason."""
        fallback = self.settings.fallback
        if not callable(fallback):
            return fallback
        gave_up = error if isinstance(error, GaveUp) else self._gave_up()
        gave_up.__cause__ = None if error is gave_up else error
        return fallback(gave_up)

    def fall_back(self, error: Exception) -> None:
        """It has answered."""
        self.operation.fall_back()
        self._tell("fallback", outcome=self.operation.last, error=error)
        self._log("fallback")

    def _give_up_waiting(self) -> None:
        """Before an attempt: the breaker opened, or it is too late."""
        error, self._error = self._error, None
        if error is None:
            raise self._gave_up()
        self.give_up(error, is_new=True)

    def _gave_up(self) -> GaveUp:
        return GaveUp(self.settings.name, self.operation, self._history)

    # -- the loop, for both kinds. Not generators: one that is left early by an
    # exception would have to be closed.

    def __iter__(self) -> Run:
        return self

    def __next__(self) -> Attempt:
        if self._is_over():
            raise StopIteration
        while self.operation.is_waiting:
            _clock.sleep(self.operation, self.skipped)
            self._admit()
        self._check_admitted()
        return Attempt(self)

    def __aiter__(self) -> Run:
        return self

    async def __anext__(self) -> Attempt:
        if self._is_over():
            raise StopAsyncIteration
        while self.operation.is_waiting:
            await self._sleep_async()
            self._admit()
        self._check_admitted()
        seconds = self.operation.timeout
        return Attempt(self, None if seconds is None else _clock.limit(seconds))

    def _is_over(self) -> bool:
        if not self._is_begun:
            self._is_begun = True
            return False
        if self.operation.is_trying:
            raise RuntimeError("no attempt was made: write `with attempt:`")
        return not self.operation.is_waiting

    def _check_admitted(self) -> None:
        if not self.operation.is_trying:
            self._give_up_waiting()

    async def _sleep_async(self) -> None:
        try:
            await _clock.sleep_async(self.operation, self.skipped)
        except BaseException:  # its task was cancelled
            self.cancel()
            raise

    def _admit(self) -> None:
        self.operation.admit()
        self._tell_admission()

    @contextlib.contextmanager
    def limit_attempt(self) -> Iterator[None]:
        """The attempt of a task of its own: its context is the task's, too."""
        _current.set(self.operation)
        seconds = self.operation.timeout
        if seconds is None:
            yield
            return
        with _clock.limit(seconds):
            yield

    # -- who hears

    def _tell_success(self, hedge: int) -> None:
        self._tell("decision", outcome=Outcome.ok(), hedge=hedge)
        self._tell("end")

    def _note_failure(
        self,
        number: int,
        hedge: int,
        outcome: Outcome,
        error: Exception | None,
    ) -> None:
        self._error = error
        self._remember(number, outcome)
        if self.settings.hook is not None:
            self._tell("decision", outcome=outcome, error=error, hedge=hedge)
            if self.operation.gave_up:
                self._tell("end", error=error)
        self._log(outcome.name, hedge, error)

    def _remember(self, number: int, outcome: Outcome) -> None:
        if self._history is None:
            self._history = collections.deque(maxlen=_HISTORY_MAX)
        wait = self.operation.wait if self.operation.is_waiting else None
        self._history.append((number, outcome, wait))

    def _tell_admission(self) -> None:
        operation = self.operation
        if self.settings.hook is None:
            return
        if operation.is_trying:
            self._tell("attempt")
        elif operation.is_waiting:
            self._tell("decision")
        else:
            self._tell("end", error=self._error)

    def _tell(
        self,
        kind: Literal["attempt", "hedge", "decision", "end", "fallback"],
        outcome: Outcome | None = None,
        error: BaseException | None = None,
        hedge: int = 0,
    ) -> None:
        operation, hook = self.operation, self.settings.hook
        if hook is None:
            return
        call_hook(
            hook,
            Event(
                kind=kind,
                name=self.settings.name,
                number=operation.number,
                next=_next(operation),
                why="" if operation.is_trying else operation.why,
                wait=operation.wait if operation.is_waiting else 0.0,
                outcome=outcome,
                error=error,
                text=operation.text,
                hedge=hedge,
            ),
        )

    def _log(
        self, what: str, hedge: int = 0, error: Exception | None = None
    ) -> None:
        operation, log = self.operation, self.settings.log
        level = self.settings.level
        if log is None or not log.isEnabledFor(level):
            return
        if operation.is_waiting:
            then = f"; again in {operation.wait:.3f} s ({operation.why})"
        elif not operation.is_trying:
            then = f"; {operation.text}"
        else:
            then = "" if what == "begins" else "; another one is under way"
        which = f", hedge {hedge}" if hedge else ""
        words = self.settings.name, operation.number, which, what
        if error is None:
            log.log(level, "%s: attempt %d%s: %s%s", *words, then)
        else:  # whose repr() may fail: that is for logging to survive
            log.log(level, "%s: attempt %d%s: %s: %r%s", *words, error, then)


def _next(operation: Operation) -> str:
    if operation.is_trying:
        return "go"
    if operation.is_waiting:
        return "wait"
    return "done" if operation.is_done else "give-up"
