"""Several attempts at once: a task for each, and the first good result wins."""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING, Any, Callable

from . import _clock

if TYPE_CHECKING:
    from collections.abc import Awaitable, Iterable

    from ._attempts import Run
    from ._core import Outcome


def check_loop(name: str) -> None:
    """A cancelled attempt of trio cannot be told from a cancelled call, and a
    task there belongs to a block that nobody has opened."""
    if not _clock.is_asyncio():
        raise RuntimeError(
            f"{name}: hedges need asyncio: on trio, leave hedge= out of the "
            "policy"
        )


class Round:
    """An attempt and its hedges."""

    def __init__(
        self,
        run: Run,
        f: Callable[..., Awaitable[Any]],
        args: Any,
        kwargs: Any,
    ) -> None:
        self._run = run
        self._work = (f, args, kwargs)
        self._attempts: dict[asyncio.Task[Any], int] = {}
        self._timer: asyncio.Task[None] | None = None
        self._result: Any = None
        self._error: Exception | None = None

    async def make(self) -> Any:
        """The result of the winner; of no use where the operation waits now.
        Raises what it has given up by."""
        operation = self._run.operation
        operation.begin_round()
        self._begin(0)
        try:
            while operation.is_trying:
                await self._go_on()
        except BaseException:  # its task was cancelled, or one of an attempt
            self._run.cancel()
            await self._stop()
            raise
        await self._stop()
        if operation.gave_up:
            error, self._error = self._error, None
            if error is not None:
                self._run.give_up(error, is_new=True)
            self._run.give_up_result()
        return self._result

    def _begin(self, hedge: int) -> None:
        task = asyncio.ensure_future(self._attempt())
        self._attempts[task] = hedge

    async def _attempt(self) -> tuple[Any, Outcome | None]:
        f, args, kwargs = self._work
        with self._run.limit_attempt():
            result = await f(*args, **kwargs)
            return result, self._run.settings.classify(result)

    async def _go_on(self) -> None:
        """Until an attempt has ended, or a hedge is due."""
        self._set_timer()
        tasks: Iterable[asyncio.Task[Any]] = self._attempts
        if self._timer is not None:
            tasks = [self._timer, *tasks]
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        for task in [each for each in self._attempts if each.done()]:
            if self._run.operation.is_trying:  # else one has won
                self._end(self._attempts.pop(task), task)
        if self._timer is not None and self._timer.done():
            self._timer = None
            hedge = self._run.begin_hedge()
            if hedge:
                self._begin(hedge)

    def _set_timer(self) -> None:
        operation = self._run.operation
        due_at = operation.hedge_due_at
        if self._timer is None and due_at is not None:
            self._timer = asyncio.ensure_future(
                _clock.sleep_to_hedge(operation, due_at, self._run.skipped)
            )

    def _end(self, hedge: int, task: asyncio.Task[Any]) -> None:
        run = self._run
        try:
            self._result, outcome = task.result()
        except Exception as error:
            self._error = error
            run.report_attempt(hedge, run.settings.outcome_of(error), error)
            return
        self._error = None
        if outcome is None:
            run.succeed_attempt(hedge)
        else:
            run.report_attempt(hedge, outcome, None)

    async def _stop(self) -> None:
        """What is under way is cancelled, and has ended then. What it comes to
        is dropped."""
        tasks = list(self._attempts)
        if self._timer is not None:
            tasks.append(self._timer)
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)
        for task in tasks:
            with contextlib.suppress(asyncio.CancelledError):
                task.exception()  # or the loop would complain about it
