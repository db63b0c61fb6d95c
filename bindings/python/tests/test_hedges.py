"""Several attempts of an async function at once."""

from __future__ import annotations

import asyncio
import gc
import logging
from typing import Any, Callable

import pytest

import stagger
from conftest import Hang, package


class Remote:
    """Answers as it is told to: after so much virtual time a result, or an
    exception. Who ends how is told in a trace."""

    def __init__(self, time: Any, *answers: tuple[float, object]) -> None:
        self.time = time
        self.answers = list(answers)
        self.trace: list[str] = []
        self.begun = 0

    def say(self, text: str) -> None:
        self.trace.append(f"{self.time.now * 1000:.0f} {text}")

    async def __call__(self) -> object:
        self.begun += 1
        number = self.begun
        seconds, answer = self.answers[number - 1]
        self.say(f"begin {number}")
        try:
            await self.time.sleep(seconds)
        except asyncio.CancelledError:
            self.say(f"cancel {number}")
            raise
        if isinstance(answer, Exception):
            self.say(f"fail {number}")
            raise answer
        self.say(f"end {number}")
        return answer


def test_first_good_one_wins_and_the_loser_is_cancelled(time: Any) -> None:
    remote = Remote(time, (0.5, "slow"), (0.02, "fast"))
    retried = stagger.retry("hedge=100ms")(remote.__call__)
    assert asyncio.run(retried()) == "fast"
    assert remote.trace == [
        "0 begin 1",
        "100 begin 2",
        "120 end 2",
        "120 cancel 1",
    ]
    statistics = retried.retry.statistics
    assert (statistics.calls, statistics.attempts) == (1, 1)
    assert statistics.hedges == 1
    assert (statistics.retries, statistics.ends) == (0, {"done": 1})


def test_first_attempt_may_win_and_a_fast_one_has_no_hedge(time: Any) -> None:
    remote = Remote(time, (0.15, "first"), (0.5, "second"))
    assert asyncio.run(stagger.call("hedge=100ms", remote)) == "first"
    assert remote.trace[-2:] == ["150 end 1", "150 cancel 2"]
    remote = Remote(time, (0.099, "first"))
    assert asyncio.run(stagger.call("hedge=100ms", remote)) == "first"
    assert remote.begun == 1


def test_makes_as_many_hedges_as_the_policy_says(time: Any) -> None:
    assert stagger.Policy("hedge=100ms:3").hedges_max == 3
    remote = Remote(time, *[(9, "slow")] * 3, (0.01, "fast"))
    assert asyncio.run(stagger.call("hedge=100ms:3", remote)) == "fast"
    assert remote.trace == [
        *("0 begin 1", "100 begin 2", "200 begin 3", "300 begin 4"),
        *("310 end 4", "310 cancel 1", "310 cancel 2", "310 cancel 3"),
    ]


def test_failure_waits_for_the_other_and_the_last_is_retried(time: Any) -> None:
    remote = Remote(
        time,
        (0.15, ConnectionResetError()),
        (0.2, TimeoutError()),
        (0.01, "yes"),
    )
    policy = "fixed base=1s jitter=none attempts=2 hedge=100ms"
    assert asyncio.run(stagger.call(policy, remote)) == "yes"
    assert remote.trace == [
        *("0 begin 1", "100 begin 2", "150 fail 1", "300 fail 2"),
        *("1300 begin 3", "1310 end 3"),
    ]
    assert time.waits == [1]


def test_hedge_may_succeed_after_the_first_has_failed(time: Any) -> None:
    remote = Remote(time, (0.15, ConnectionResetError()), (0.2, "yes"))
    assert asyncio.run(stagger.call("hedge=100ms", remote)) == "yes"
    assert remote.trace[-2:] == ["150 fail 1", "300 end 2"]


def test_failure_that_is_never_retried_ends_the_round(time: Any) -> None:
    remote = Remote(time, (0.5, "slow"), (0.01, KeyError("pear")))
    with pytest.raises(KeyError) as raised:
        asyncio.run(stagger.call("hedge=100ms", remote))
    assert remote.trace[-2:] == ["110 fail 2", "110 cancel 1"]
    assert "1 attempt and 1 hedge" in raised.value.__notes__[0]


def test_answer_that_asks_for_time_stops_hedges(time: Any) -> None:
    busy = ConnectionResetError()
    busy.retry_after = 5  # type: ignore[attr-defined]
    remote = Remote(time, (0.15, busy), (0.5, "yes"))
    assert asyncio.run(stagger.call("hedge=100ms:3", remote)) == "yes"
    assert remote.begun == 2


def test_result_is_classified(time: Any) -> None:
    remote = Remote(time, (0.15, "bad"), (0.2, "good"))
    retrying = stagger.Retrying(
        "attempts=1 hedge=100ms", when_result=lambda r: r == "bad"
    )
    assert asyncio.run(retrying.call(remote)) == "good"
    remote = Remote(time, (0.15, "bad"), (0.2, "bad"))
    assert asyncio.run(retrying.call(remote)) == "bad"
    assert retrying.statistics.ends == {"done": 1, "attempts": 1}


def test_returns_the_last_result_that_was_not_good_enough(time: Any) -> None:
    remote = Remote(time, (0.15, TimeoutError()), (0.2, "bad"))
    retrying = stagger.Retrying(
        "attempts=1 hedge=100ms", on=TimeoutError, when_result=lambda _: True
    )
    assert asyncio.run(retrying.call(remote)) == "bad"


def test_first_of_two_that_end_in_one_turn_wins(time: Any) -> None:
    events: list[str] = []

    async def main() -> None:
        answered, begun = asyncio.Event(), iter((1, 2))

        async def work() -> int:
            number = next(begun)
            await answered.wait()
            return number

        retrying = stagger.Retrying(
            "hedge=100ms", hook=lambda event: events.append(event.kind)
        )
        call = asyncio.ensure_future(retrying.call(work))
        await time.sleep(0.2)
        answered.set()
        assert await call == 1

    asyncio.run(main())
    assert events == ["attempt", "hedge", "decision", "end"]


def test_gives_up_with_all_failures(time: Any) -> None:
    remote = Remote(time, (0.15, ConnectionResetError()), (0.2, TimeoutError()))
    retrying = stagger.Retrying("attempts=1 hedge=100ms", raise_last=False)
    with pytest.raises(stagger.GaveUp) as raised:
        asyncio.run(retrying.call(remote))
    error = raised.value
    assert [outcome.name for _, outcome, _ in error.history] == [
        "reset",
        "timeout",
    ]
    assert isinstance(error.__cause__, TimeoutError)
    assert str(error).endswith(
        "gave up after 1 attempt and 1 hedge in 300 ms: timeout (attempts)"
    )


def test_fallback_answers_when_all_have_failed(time: Any) -> None:
    remote = Remote(time, (0.15, TimeoutError()), (0.2, TimeoutError()))

    async def spare(error: stagger.GaveUp) -> str:
        return error.why

    retrying = stagger.Retrying("attempts=1 hedge=100ms", fallback=spare)
    assert asyncio.run(retrying.call(remote)) == "attempts"


def test_cancels_all_with_the_call_and_waits_for_them(time: Any) -> None:
    remote = Remote(time, (9, "slow"), (9, "slow"))
    peer = stagger.Peer("deadline=none hedge=100ms bulkhead=2")
    retrying = stagger.Retrying(peer.policy, peer=peer)

    async def main() -> None:
        task = asyncio.ensure_future(retrying.call(remote))
        await time.sleep(0.2)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert len(asyncio.all_tasks()) == 1
        # The places in the bulkhead are free again.
        again = Remote(time, (0.5, "slow"), (0.1, "yes"))
        assert await retrying.call(again) == "yes"

    asyncio.run(main())
    assert sorted(remote.trace[-2:]) == ["200 cancel 1", "200 cancel 2"]
    assert retrying.statistics.ends == {"cancelled": 1, "done": 1}


def test_waits_for_a_loser_that_cleans_up(time: Any) -> None:
    ended: list[int] = []

    async def work() -> str:
        if ended or time.now > 0:
            return "fast"
        try:
            await time.sleep(9)
        finally:
            await asyncio.sleep(0)
            await asyncio.sleep(0)
            ended.append(1)
        return "slow"

    async def main() -> None:
        assert await stagger.call("hedge=100ms", work) == "fast"
        assert ended == [1]

    asyncio.run(main())


def test_loser_that_fails_while_it_is_cancelled_is_dropped(
    time: Any, caplog: Any
) -> None:
    async def work() -> str:
        if time.now > 0:
            return "fast"
        try:
            await time.sleep(9)
        except asyncio.CancelledError:
            raise KeyError("pear") from None
        return "slow"

    assert asyncio.run(stagger.call("hedge=100ms", work)) == "fast"
    gc.collect()
    assert [r for r in caplog.records if r.name == "asyncio"] == []


def test_has_a_timeout_for_each_attempt() -> None:
    hang = Hang()
    retrying = stagger.Retrying(
        "attempts=1 hedge=1ms attempt-timeout=200ms", on=KeyError
    )
    with pytest.raises(TimeoutError) as raised:
        asyncio.run(retrying.call(hang))
    assert hang.cancelled == 2
    assert retrying.statistics.hedges == 1
    assert "timeout (attempts)" in raised.value.__notes__[0]


def test_ends_at_the_deadline() -> None:
    with pytest.raises(TimeoutError) as raised:
        asyncio.run(
            stagger.call("deadline=20ms hedge=5ms:3", asyncio.sleep, 3600)
        )
    assert "(deadline)" in raised.value.__notes__[0]


def test_has_one_key_and_one_operation_for_all(time: Any) -> None:
    keys: list[str] = []

    async def work() -> None:
        operation = stagger.current()
        assert operation is not None
        keys.append(operation.key)
        await time.sleep(0.35 - time.now)

    async def main() -> None:
        retrying = stagger.Retrying("hedge=100ms:2", method="POST", key=True)
        await retrying.call(work)
        assert stagger.current() is None

    asyncio.run(main())
    assert len(keys) == 3
    assert len(set(keys)) == 1


def test_is_not_made_of_what_may_not_be_repeated(time: Any) -> None:
    remote = Remote(time, (0.5, "slow"))
    retrying = stagger.Retrying("hedge=100ms", method="POST")
    assert asyncio.run(retrying.call(remote)) == "slow"
    assert retrying.statistics.hedges == 0


def test_calls_inside_leave_retries_and_hedges_to_the_one_around(
    time: Any,
) -> None:
    inner = stagger.Retrying("attempts=3 hedge=50ms")
    outer = stagger.Retrying("attempts=2 hedge=100ms")
    late = (0.12, TimeoutError())
    remote = Remote(time, late, late, (0.05, "yes"))

    async def work() -> object:
        return await inner.call(remote)

    assert asyncio.run(outer.call(work)) == "yes"
    assert (inner.statistics.attempts, inner.statistics.hedges) == (3, 0)
    assert (outer.statistics.attempts, outer.statistics.hedges) == (2, 1)


def test_waits_after_a_percentile_of_the_latencies(time: Any) -> None:
    begun = 0

    async def work() -> None:
        nonlocal begun
        begun += 1
        await time.sleep(0.01 if begun <= 100 else 1)

    retrying = stagger.Retrying("hedge=p95")

    async def main() -> None:
        for _ in range(101):
            await retrying.call(work)

    asyncio.run(main())
    assert retrying.statistics.hedges == 1


def test_is_told_to_hooks_and_in_the_log(time: Any, caplog: Any) -> None:
    caplog.set_level(logging.INFO)
    events: list[stagger.Event] = []
    remote = Remote(time, (0.15, TimeoutError()), (0.2, "yes"))
    retrying = stagger.Retrying("hedge=100ms", name="stock", hook=events.append)
    asyncio.run(retrying.call(remote))
    assert [(e.kind, e.number, e.hedge, e.next) for e in events] == [
        ("attempt", 1, 0, "go"),
        ("hedge", 1, 1, "go"),
        ("decision", 1, 0, "go"),
        ("decision", 1, 1, "done"),
        ("end", 1, 0, "done"),
    ]
    assert [record.getMessage() for record in caplog.records] == [
        "stock: attempt 1, hedge 1: begins",
        "stock: attempt 1: timeout: TimeoutError(); another one is under way",
        "stock: attempt 1, hedge 1: ok; done after 1 attempt and 1 hedge in "
        "300 ms",
    ]


def test_does_not_overtake_attempts_that_are_ready_to_run(time: Any) -> None:
    """Time stands still while a task of the loop has anything to do."""

    async def busy() -> str:
        for _ in range(1000):
            await asyncio.sleep(0)
        return "done"

    retrying = stagger.Retrying("hedge=1ms")

    async def main() -> None:
        results = await asyncio.gather(*(retrying.call(busy) for _ in range(9)))
        assert results == ["done"] * 9

    asyncio.run(main())
    assert retrying.statistics.hedges == 0
    assert time.now == 0


def test_is_made_in_real_time_where_waits_are_skipped() -> None:
    async def work() -> str:
        await asyncio.sleep(0.001)
        return "yes"

    retrying = stagger.Retrying("hedge=1h deadline=none")
    with stagger.testing.no_waits() as skipped:
        before = skipped.now
        assert asyncio.run(retrying.call(work)) == "yes"
        assert skipped.now < before + 3600
    assert retrying.statistics.hedges == 0


def test_runs_in_real_time() -> None:
    async def work() -> str:
        calls.append(1)
        await asyncio.sleep(3600 if len(calls) == 1 else 0)
        return "yes"

    calls: list[int] = []
    assert asyncio.run(stagger.call("hedge=5ms", work)) == "yes"
    assert len(calls) == 2


def test_none_in_a_block_or_a_plain_function(time: Any) -> None:
    async def block() -> None:
        async for attempt in stagger.attempts("hedge=1ms"):
            with attempt:
                await asyncio.sleep(0.01)

    asyncio.run(block())
    retrying = stagger.Retrying("hedge=1ms")
    retrying.call(lambda: time.advance(1))
    assert retrying.statistics.hedges == 0


def test_refused_on_trio(flaky: Any) -> None:
    trio = package("trio")
    package("anyio")
    with pytest.raises(RuntimeError, match="hedges need asyncio"):
        trio.run(stagger.retry("hedge=100ms")(flaky().later))

    async def sleep(time: Any) -> None:
        await time.sleep(1)

    with (
        stagger.testing.virtual_time() as time,
        pytest.raises(RuntimeError, match="the event loop of asyncio"),
    ):
        trio.run(sleep, time)


def test_leave_nothing_behind(time: Any) -> None:
    async def main() -> None:
        retrying = stagger.Retrying("attempts=2 base=0 hedge=100ms", log=None)
        for i in range(50):
            remote = Remote(time, (9, i), (0.01, i))
            assert await retrying.call(remote) == i
        assert len(asyncio.all_tasks()) == 1

    asyncio.run(main())


def make(f: Callable[..., Any]) -> Any:
    return stagger.retry("hedge=100ms")(f)


def test_decorates_methods(time: Any) -> None:
    class Stock:
        @make
        async def ask(self, item: str) -> str:
            await time.sleep(0.05)
            return item

    assert asyncio.run(Stock().ask("pear")) == "pear"
