"""Tests that do not wait, and what the extension leaves behind."""

from __future__ import annotations

import asyncio
import gc
import sys
import threading
import time as real_time
from typing import Any

import pytest

import stagger

HOURS = "fixed base=1h jitter=none attempts=3 deadline=none"


def test_skips_the_waits_of_a_block(flaky: Any) -> None:
    with stagger.testing.no_waits() as time:
        assert stagger.call(HOURS, flaky(TimeoutError, TimeoutError)) == "done"
    assert time.waits == [3600, 3600]
    assert time.now > 7200


def test_lets_the_clock_go_on_without_waits() -> None:
    with stagger.testing.no_waits() as time:
        before = time.now
        while time.now == before:
            real_time.sleep(0)


def test_draws_the_same_from_the_same_seed(flaky: Any) -> None:
    def waits(seed: int) -> list[float]:
        with stagger.testing.virtual_time(seed=seed) as time:
            stagger.call("base=1s attempts=5", flaky(*[TimeoutError] * 4))
            assert time.now == pytest.approx(sum(time.waits))
            return time.waits

    assert waits(1) == waits(1)
    assert waits(1) != waits(2)


def test_looks_once_at_each_wait_of_many_tasks(monkeypatch: Any) -> None:
    """And not at all of them in each turn (bench/python.py has 100,000)."""
    count, ended, pauses = 10_000, [], []
    pause = stagger._clock.pause

    async def count_pause(seconds: float) -> None:
        pauses.append(seconds)
        await pause(seconds)

    monkeypatch.setattr(stagger._clock, "pause", count_pause)

    @stagger.retry(
        "fixed base=1h jitter=50% attempts=3 deadline=none", log=None
    )
    async def refuse(i: int) -> None:
        ended.append(time.now)
        raise ConnectionRefusedError

    async def together() -> list[object]:
        return await asyncio.gather(
            *(refuse(i) for i in range(count)), return_exceptions=True
        )

    with stagger.testing.virtual_time(seed=1) as time:
        errors = asyncio.run(together())
    assert {type(error) for error in errors} == {ConnectionRefusedError}
    assert len(time.waits) == 2 * count
    assert len(ended) == 3 * count
    assert len(pauses) <= 2 * len(time.waits)
    assert ended == sorted(ended)  # each at its time, and time never steps back


def test_goes_on_when_tasks_that_wait_are_cancelled() -> None:
    async def together() -> list[object]:
        tasks = [asyncio.create_task(wait(i)) for i in range(20)]
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        for i in (0, 5, 19):  # the first one goes through the turns
            tasks[i].cancel()
        return await asyncio.gather(*tasks, return_exceptions=True)

    async def wait(i: int) -> int:
        policy = f"fixed base={20 - i}h jitter=none deadline=none"
        await stagger.Retrying(policy, log=None).call(first_fails, [], i)
        order.append(i)
        return i

    async def first_fails(seen: list[int], i: int) -> None:
        seen.append(i)
        if len(seen) == 1:
            raise ConnectionRefusedError

    order: list[int] = []
    with stagger.testing.virtual_time():
        results = asyncio.run(together())
    assert order == [i for i in reversed(range(20)) if i not in (0, 5, 19)]
    assert [i for i in range(20) if results[i] != i] == [0, 5, 19]


def test_holds_for_the_block_and_not_for_others() -> None:
    def look() -> None:
        seen.append(stagger._clock.skipped())

    seen: list[object] = []
    with stagger.testing.no_waits():
        run_thread(look)
    with stagger.testing.no_waits(process=True) as time:
        run_thread(look)
        with stagger.testing.virtual_time() as inner:
            look()
        look()
    look()
    assert seen == [None, time, inner, time, None]


def run_thread(work: Any) -> None:
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()


def test_leaves_no_object_behind(time: Any, flaky: Any) -> None:
    peer = stagger.Peer("attempts=3 budget=tokens:1000:100/s")

    def some(count: int) -> None:
        for _ in range(count):
            stagger.retry(peer.policy, peer=peer, key=True, method="POST")(
                flaky(TimeoutError)
            )()
            with pytest.raises(ValueError, match="policy"):
                stagger.Policy("attempts=0")
        time.waits.clear()
        gc.collect()

    some(10)
    kinds = (stagger.Operation, stagger.Outcome, stagger.Policy, type(peer))
    before = [sys.getrefcount(kind) for kind in kinds]
    blocks = sys.getallocatedblocks()
    some(300)
    assert [sys.getrefcount(kind) for kind in kinds] == before
    assert sys.getallocatedblocks() < blocks + 300
