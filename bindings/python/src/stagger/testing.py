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
import threading
from collections.abc import Iterator

from . import _clock
from ._core import Clock, Operation

__all__ = ["SkippedTime", "no_waits", "virtual_time"]


class _Turn:
    """A wait of a task."""

    def __init__(self, due_at: int, number: int) -> None:
        self.key = (due_at, number)
        self.woken = _clock.event()
        self.is_over = False

    def __lt__(self, other: _Turn) -> bool:
        return self.key < other.key


class _Tasks:
    """The tasks that wait on one event loop.

    One of them is the keeper: it alone goes through the turns of the loop, and
    in each of them the wait that ends first is over. So n waits cost n turns,
    and not n looks at each other in every one.
    """

    def __init__(self) -> None:
        self._waiting: list[_Turn] = []
        self._keeper: _Turn | None = None

    async def wait(self, turn: _Turn) -> None:
        heapq.heappush(self._waiting, turn)
        try:
            if self._keeper is None:
                self._keeper = turn
            else:
                await turn.woken.wait()
            while not turn.is_over:  # it has become the keeper
                await _clock.pause(0)
                self._end_first()
        finally:
            turn.is_over = True
            if self._keeper is turn:
                self._keep_by_next()

    def _end_first(self) -> None:
        turn = heapq.heappop(self._waiting)
        if not turn.is_over:  # else it was cancelled
            turn.is_over = True
            turn.woken.set()

    def _keep_by_next(self) -> None:
        # The last of a heap is a late one, and may be taken out.
        while self._waiting and self._waiting[-1].is_over:
            self._waiting.pop()
        self._keeper = self._waiting[-1] if self._waiting else None
        if self._keeper is not None:
            self._keeper.woken.set()


class SkippedTime:
    """Time that jumps to the end of a wait."""

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self.waits: list[float] = []  # in seconds, in the order they began
        self._order = itertools.count()
        # By thread: each has one loop at a time.
        self._tasks: dict[int, _Tasks] = {}

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

    async def skip_async(self, operation: Operation) -> None:
        """The same among other tasks: the wait that ends first ends first."""
        self.waits.append(operation.wait)
        tasks = self._tasks.setdefault(threading.get_ident(), _Tasks())
        await tasks.wait(_Turn(operation.due_at, next(self._order)))
        self.clock.skip_to(operation.due_at)


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
