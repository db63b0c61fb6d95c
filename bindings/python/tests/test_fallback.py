"""What answers when a call has given up."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

import stagger


def fail() -> object:
    raise TimeoutError("late")


async def fail_async() -> object:
    raise TimeoutError("late")


def test_is_a_value(time: Any) -> None:
    retrying = stagger.Retrying("attempts=2", fallback=7)
    assert retrying.call(fail) == 7
    assert retrying.call(lambda: 3) == 3
    assert stagger.Retrying("attempts=2", fallback=None).call(fail) is None
    statistics = retrying.statistics
    assert (statistics.failures, statistics.fallbacks) == (1, 1)
    assert statistics.ends == {"attempts": 1, "done": 1}


def test_is_a_function_that_is_told_why(time: Any) -> None:
    told: list[stagger.GaveUp] = []

    def spare(error: stagger.GaveUp) -> str:
        told.append(error)
        return "spare"

    @stagger.retry("attempts=3", fallback=spare)
    def stock() -> object:
        return fail()

    assert stock() == "spare"
    (error,) = told
    assert (error.why, error.attempts) == ("attempts", 3)
    assert isinstance(error.__cause__, TimeoutError)
    assert error.outcome.name == "timeout"


def test_is_async_where_the_function_is(time: Any) -> None:
    async def spare(error: stagger.GaveUp) -> str:
        await asyncio.sleep(0)
        return error.why

    async def main() -> None:
        retrying = stagger.Retrying("attempts=2", fallback=spare)
        assert await retrying.call(fail_async) == "attempts"
        assert await stagger.Retrying("none", fallback=5).call(fail_async) == 5
        plain = stagger.Retrying("none", fallback=lambda e: e.why)
        assert await plain.call(fail_async) == "attempts"

    asyncio.run(main())


def test_stands_for_a_result_that_is_not_good_enough(time: Any) -> None:
    retrying = stagger.Retrying(
        "attempts=2", when_result=lambda r: r is None, fallback="spare"
    )
    assert retrying.call(lambda: None) == "spare"
    assert retrying.call(lambda: 1) == 1


def test_answers_where_no_attempt_was_made(time: Any) -> None:
    peer = stagger.Peer("attempts=1 bulkhead=1")
    retrying = stagger.Retrying(
        peer.policy, peer=peer, fallback=lambda e: e.why
    )
    assert retrying.call(lambda: retrying.call(fail)) == "bulkhead"


def test_that_fails_fails(time: Any) -> None:
    def broken(error: stagger.GaveUp) -> int:
        raise KeyError("no cache")

    retrying = stagger.Retrying("attempts=2", fallback=broken)
    with pytest.raises(KeyError):
        retrying.call(fail)
    assert retrying.statistics.fallbacks == 0


def test_is_not_asked_where_the_call_is_cancelled(time: Any) -> None:
    async def hang() -> int:
        await asyncio.sleep(3600)
        return 1

    async def main() -> None:
        retrying = stagger.Retrying("attempts=2 deadline=none", fallback=7)
        task = asyncio.ensure_future(retrying.call(hang))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert retrying.statistics.fallbacks == 0

    asyncio.run(main())


def test_is_told_to_hooks(time: Any) -> None:
    events: list[stagger.Event] = []
    stagger.Retrying("none", fallback=7, hook=events.append).call(fail)
    kinds = [(e.kind, e.why) for e in events]
    assert kinds[-2:] == [("end", "attempts"), ("fallback", "attempts")]
    assert "the fallback answered" in events[-1].text


def test_is_not_for_blocks() -> None:
    with pytest.raises(TypeError, match="block"):
        stagger.attempts("attempts=2", fallback=7)
    with pytest.raises(TypeError, match="block"):
        iter(stagger.Retrying("attempts=2", fallback=7))
