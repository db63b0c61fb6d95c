"""The same of async functions: on asyncio, and on trio."""

from __future__ import annotations

import asyncio
import contextlib
from typing import Any

import pytest

import stagger
from conftest import Hang, package

FIXED = "fixed base=1s jitter=none attempts=3"


def test_awaits_until_it_succeeds(time: Any, flaky: Any) -> None:
    work = flaky(TimeoutError, ConnectionResetError)
    assert asyncio.run(stagger.retry(FIXED)(work.later)("yes")) == "yes"
    assert (work.calls, time.waits) == (3, [1, 1])
    work = flaky(TimeoutError)
    assert asyncio.run(stagger.call(FIXED, work.later)) == "done"


def test_keeps_the_loop_going_while_it_waits() -> None:
    turns: list[int] = []

    @stagger.retry("fixed base=10ms jitter=none attempts=1000 deadline=none")
    async def work() -> None:
        if len(turns) < 100:
            raise ConnectionRefusedError

    async def take_turns() -> None:
        for turn in range(100):
            await asyncio.sleep(0)
            turns.append(turn)

    async def both() -> None:
        await asyncio.gather(take_turns(), work())

    asyncio.run(both())


def test_has_an_async_block(time: Any, flaky: Any) -> None:
    async def block() -> object:
        async for attempt in stagger.attempts(FIXED):
            with attempt:
                result = await work.later()
        return result

    work = flaky(TimeoutError, TimeoutError)
    assert asyncio.run(block()) == "done"


def test_cancels_an_attempt_that_takes_too_long() -> None:
    hang = Hang()
    policy = "fixed base=1ms attempts=2 attempt-timeout=20ms"
    with pytest.raises(TimeoutError) as raised:
        asyncio.run(stagger.call(policy, hang))
    assert hang.cancelled == 2
    assert "timeout (attempts)" in raised.value.__notes__[0]


def test_asks_the_policy_about_an_attempt_that_it_cancelled() -> None:
    hang = Hang()
    retrying = stagger.Retrying(
        "fixed base=1ms attempts=2 attempt-timeout=20ms", on=KeyError
    )
    with pytest.raises(stagger.AttemptTimeout):
        asyncio.run(retrying.call(hang))
    assert hang.cancelled == 2
    assert retrying.statistics.ends == {"attempts": 1}

    async def late() -> None:
        raise TimeoutError

    with pytest.raises(TimeoutError):
        asyncio.run(retrying.call(late))
    assert retrying.statistics.ends == {"attempts": 1, "permanent": 1}


def test_cancels_an_attempt_at_the_deadline() -> None:
    with pytest.raises(TimeoutError) as raised:
        asyncio.run(stagger.call("deadline=20ms", asyncio.sleep, 3600))
    assert "(deadline)" in raised.value.__notes__[0]


def test_ends_with_its_task() -> None:
    async def cancel(retried: Any) -> None:
        task = asyncio.ensure_future(retried())
        await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    async def refuse() -> None:
        raise ConnectionRefusedError

    async def hang() -> None:
        await asyncio.sleep(3600)

    for work in (refuse, hang):
        retried = stagger.retry("fixed base=1m jitter=none attempts=3")(work)
        asyncio.run(cancel(retried))
        assert retried.retry.statistics.ends == {"cancelled": 1}


def test_gives_back_what_a_cancelled_wait_has_of_a_budget() -> None:
    async def cancel() -> None:
        with contextlib.suppress(asyncio.TimeoutError):
            await asyncio.wait_for(retried(), 0.01)

    async def refuse() -> None:
        raise ConnectionRefusedError

    peer = stagger.Peer("fixed base=1m jitter=none budget=tokens:5:0.001/s")
    retried = stagger.retry(peer.policy, peer=peer)(refuse)
    asyncio.run(cancel())
    assert peer.budget == pytest.approx(5, abs=0.1)


def test_knows_the_operation_of_each_task(time: Any) -> None:
    keys = set()

    @stagger.retry(FIXED)
    async def work() -> None:
        operation = stagger.current()
        assert operation is not None
        first = operation.key
        await asyncio.sleep(0)
        operation = stagger.current()
        assert operation is not None
        assert operation.key == first
        keys.add(first)

    async def all_of_them() -> None:
        await asyncio.gather(*(work() for _ in range(50)))

    asyncio.run(all_of_them())
    assert len(keys) == 50


def test_ends_waits_in_the_order_of_virtual_time(time: Any) -> None:
    ended = []

    async def work(name: str, base: str) -> None:
        async for attempt in stagger.attempts(
            f"fixed base={base} jitter=none attempts=3"
        ):
            with attempt:
                ended.append((name, time.now))
                if attempt.number < 3:
                    raise TimeoutError

    async def both() -> None:
        await asyncio.gather(work("a", "5s"), work("b", "2s"))

    asyncio.run(both())
    assert ended == [
        ("a", 0), ("b", 0), ("b", 2), ("b", 4), ("a", 5), ("a", 10)
    ]  # fmt: skip


def test_leaves_the_task_alone_after_an_attempt() -> None:
    async def go_on() -> None:
        await stagger.call("attempt-timeout=10ms", asyncio.sleep, 0)
        await asyncio.sleep(0.03)

    asyncio.run(go_on())


def test_runs_on_trio(time: Any, flaky: Any) -> None:
    trio = package("trio")
    package("anyio")
    work = flaky(TimeoutError)
    assert trio.run(stagger.retry(FIXED)(work.later)) == "done"
    assert time.waits == [1]


def test_cancels_an_attempt_on_trio() -> None:
    trio = package("trio")
    package("anyio")

    @stagger.retry(
        "fixed base=1ms attempts=2 attempt-timeout=20ms", on=KeyError
    )
    async def hang() -> None:
        await trio.sleep(3600)

    with pytest.raises(stagger.AttemptTimeout):
        trio.run(hang)
    assert hang.retry.statistics.attempts == 2
