"""Where a wait is spent: in real time, or skipped by a test."""

from __future__ import annotations

import asyncio
import contextvars
import time
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from ._core import Operation
    from .testing import SkippedTime

# Of a test: for a block and what is started in it, or for the process.
block: contextvars.ContextVar[SkippedTime | None] = contextvars.ContextVar(
    "stagger_time", default=None
)
process: SkippedTime | None = None


def skipped() -> SkippedTime | None:
    """The test's time, or None: then waits are real."""
    return block.get() or process


def sleep(operation: Operation, skipped_time: SkippedTime | None) -> None:
    """Blocks until the operation's wait is over."""
    if skipped_time is not None:
        skipped_time.skip(operation)
        return
    left = _left(operation)
    if left > 0:  # a sleep of 0 is 50 us, and more where others are busy
        time.sleep(left)


async def sleep_async(
    operation: Operation, skipped_time: SkippedTime | None
) -> None:
    """The same, and the event loop goes on."""
    if skipped_time is not None:
        await skipped_time.skip_async(operation)
    else:
        await pause(_left(operation))


async def sleep_to_hedge(
    operation: Operation, due_at: int, skipped_time: SkippedTime | None
) -> None:
    """Waits until the next hedge of an attempt is due. It moves the time
    of a test only if that is frozen: a hedge is not a wait between attempts."""
    if skipped_time is not None and skipped_time.is_frozen:
        await skipped_time.sleep_until(due_at)
    else:
        await asyncio.sleep(max(0, due_at - operation.now) / 1e9)


def is_idle() -> bool:
    """Whether no task but this one is ready to run: all wait."""
    loop = asyncio.get_running_loop() if is_asyncio() else None
    ready = getattr(loop, "_ready", None)
    if ready is None:
        raise RuntimeError(
            "virtual time for hedges, and time.sleep(), need the event loop of "
            "asyncio: no other one says when all its tasks wait"
        )
    return not ready


async def pause(seconds: float) -> None:
    if is_asyncio():
        await asyncio.sleep(seconds)
    else:
        await _anyio().sleep(seconds)


class Event(Protocol):
    def set(self) -> object: ...
    async def wait(self) -> object: ...


def event() -> Event:
    """Of the event loop that runs."""
    made: Event = asyncio.Event() if is_asyncio() else _anyio().Event()
    return made


def _left(operation: Operation) -> float:
    return max(0, operation.due_at - operation.now) / 1e9


def is_asyncio() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


def _anyio() -> Any:
    try:
        import anyio
    except ImportError:
        raise RuntimeError(
            "stagger knows asyncio, and trio if anyio is installed"
        ) from None
    return anyio


class AttemptTimeout(TimeoutError):
    """The policy cut an attempt, by attempt-timeout= or by its deadline. Not
    raised by the function, so `on=` is not asked about it."""


class Scope(Protocol):
    def __enter__(self) -> object: ...
    def __exit__(self, *raised: Any) -> bool | None: ...


def limit(seconds: float) -> Scope:
    """Cancels what is in it after so many seconds: AttemptTimeout."""
    return _AsyncioLimit(seconds) if is_asyncio() else _AnyioLimit(seconds)


class _AnyioLimit:
    def __init__(self, seconds: float) -> None:
        self._scope: Scope = _anyio().fail_after(seconds)

    def __enter__(self) -> None:
        self._scope.__enter__()

    def __exit__(self, *raised: Any) -> None:
        # Raises only what is its own: the function's TimeoutError passes.
        try:
            self._scope.__exit__(*raised)
        except TimeoutError:
            raise AttemptTimeout("the attempt took too long") from raised[1]


class _AsyncioLimit:
    """asyncio.timeout(), which came with Python 3.11."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._is_over = False

    def __enter__(self) -> None:
        task = asyncio.current_task()
        if task is None:
            raise RuntimeError("an attempt with a timeout needs a task")
        self._task = task
        # From 3.11 on a task counts who wants to cancel it.
        self._cancelling: int = getattr(task, "cancelling", int)()
        loop = asyncio.get_running_loop()
        self._timer = loop.call_later(self._seconds, self._expire)

    def _expire(self) -> None:
        self._is_over = True
        self._task.cancel()

    def __exit__(self, *raised: Any) -> None:
        self._timer.cancel()
        if not self._is_over:
            return
        cancelling: int = getattr(self._task, "uncancel", int)()
        if raised[0] is asyncio.CancelledError and (
            cancelling <= self._cancelling
        ):
            raise AttemptTimeout("the attempt took too long") from raised[1]
