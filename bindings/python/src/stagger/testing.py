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

    def __init__(self, due_at: int, number: int, is_patient: bool) -> None:
        self.key = (due_at, number)
        self.is_patient = is_patient  # not before all other tasks wait
        self.woken = _clock.event()
        self.is_over = False

    def __lt__(self, other: _Turn) -> bool:
        return self.key < other.key


class _Tasks:
    """The tasks that wait on one event loop.

    One of them is the keeper: it alone goes through the turns of the loop, and
    in each of them the wait that ends first is over. So n waits cost n turns,
    and not n looks at each other in every one. A patient wait is over only when
    no other task is ready to run, so that it overtakes nobody's work.
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
                if self._may_end_first():
                    self._end_first()
        finally:
            turn.is_over = True
            if self._keeper is turn:
                self._keep_by_next()

    def _may_end_first(self) -> bool:
        first = self._waiting[0]
        return first.is_over or not first.is_patient or _clock.is_idle()

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

    def __init__(self, clock: Clock, *, is_frozen: bool) -> None:
        self.clock = clock
        self.is_frozen = is_frozen  # else it goes on between the waits
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
        await self._wait(operation.due_at, is_patient=False)

    async def sleep(self, seconds: float) -> None:
        """Takes so much of this time: for an attempt that is slow. It is over
        when all other tasks of the event loop (asyncio's) wait, too."""
        await self.sleep_until(self.clock.now + round(seconds * 1e9))

    async def sleep_until(self, due_at: int) -> None:
        await self._wait(due_at, is_patient=True)

    async def _wait(self, due_at: int, *, is_patient: bool) -> None:
        tasks = self._tasks.setdefault(threading.get_ident(), _Tasks())
        await tasks.wait(_Turn(due_at, next(self._order), is_patient))
        self.clock.skip_to(due_at)


def no_waits(
    *, process: bool = False
) -> contextlib.AbstractContextManager[SkippedTime]:
    """Waits end at once; else all is as ever, and the clock goes on."""
    return _use(SkippedTime(Clock(), is_frozen=False), process)


def virtual_time(
    *, seed: int = 0, process: bool = False
) -> contextlib.AbstractContextManager[SkippedTime]:
    """Time stands still but for waits; jitter draws from the seed."""
    clock = Clock(frozen=True, seed=seed)
    return _use(SkippedTime(clock, is_frozen=True), process)


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
