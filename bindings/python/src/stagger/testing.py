"""Tests that do not wait.

    with stagger.testing.no_waits():
        ...                          # retries as ever, but at once

    with stagger.testing.virtual_time(seed=1) as time:
        ...                          # and the same waits in each run
    assert time.waits == [0.1, 0.2]

Both hold for the block, the tasks and the contexts that are started in it; with
`process=True` for all threads, until the block ends. There is no environment
variable for it: one that leaks into production would make a retry storm.
"""

from __future__ import annotations

import contextlib
import heapq
import itertools
from collections.abc import Awaitable, Iterator
from typing import Callable

from . import _clock
from ._core import Clock, Operation

__all__ = ["SkippedTime", "no_waits", "virtual_time"]


class SkippedTime:
    """Time that jumps to the end of a wait."""

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self.waits: list[float] = []  # in seconds, in the order they began
        self._order = itertools.count()
        self._waiting: list[tuple[int, int]] = []

    @property
    def now(self) -> float:
        """In seconds; a virtual time begins at 0."""
        return self.clock.now / 1e9

    def advance(self, seconds: float) -> None:
        """Lets so much time pass."""
        self.clock.skip_to(self.clock.now + round(seconds * 1e9))

    def skip(self, operation: Operation) -> None:
        """To the end of the operation's wait."""
        self.waits.append(operation.wait)
        self.clock.skip_to(operation.due_at)

    async def skip_async(
        self,
        operation: Operation,
        pause: Callable[[float], Awaitable[None]],
    ) -> None:
        """The same among other tasks: the wait that ends first ends first."""
        self.waits.append(operation.wait)
        turn = (operation.due_at, next(self._order))
        heapq.heappush(self._waiting, turn)
        try:
            await pause(0)
            while self._waiting[0] is not turn:
                await pause(0)
            self.clock.skip_to(operation.due_at)
        finally:
            self._waiting.remove(turn)
            heapq.heapify(self._waiting)


def no_waits(
    *, process: bool = False
) -> contextlib.AbstractContextManager[SkippedTime]:
    """Waits end at once; else all is as ever, and the clock goes on."""
    return _use(SkippedTime(Clock()), process)


def virtual_time(
    *, seed: int = 0, process: bool = False
) -> contextlib.AbstractContextManager[SkippedTime]:
    """Time stands still but for waits; jitter draws from the seed."""
    return _use(SkippedTime(Clock(frozen=True, seed=seed)), process)


@contextlib.contextmanager
def _use(time: SkippedTime, process: bool) -> Iterator[SkippedTime]:
    before: SkippedTime | None = _clock.process
    token = _clock.block.set(time)
    if process:
        _clock.process = time
    try:
        yield time
    finally:
        _clock.block.reset(token)
        if process:
            _clock.process = before
