"""What calls share: budget, breaker and rate limit."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest

import stagger


def test_pays_for_retries_from_one_budget(time: Any, flaky: Any) -> None:
    peer = stagger.Peer("fixed base=1s attempts=9 budget=tokens:3:0.001/s")
    work = flaky(*[TimeoutError] * 9)
    with pytest.raises(TimeoutError) as raised:
        stagger.retry(peer.policy, peer=peer)(work)()
    assert work.calls == 4
    assert "(budget)" in raised.value.__notes__[0]


def test_counts_what_threads_pay_exactly() -> None:
    peer = stagger.Peer("fixed base=0 attempts=2 budget=tokens:100:0.001/s")

    @stagger.retry(peer.policy, peer=peer, log=None)
    def refuse() -> None:
        raise ConnectionRefusedError

    def many() -> None:
        for _ in range(100):
            with pytest.raises(ConnectionRefusedError):
                refuse()

    threads = [threading.Thread(target=many) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    statistics = refuse.retry.statistics
    assert (statistics.calls, statistics.retries) == (400, 100)


def test_does_not_call_through_an_open_breaker(time: Any, flaky: Any) -> None:
    peer = stagger.Peer("attempts=1 breaker=2:30s")
    retried = stagger.retry(peer.policy, peer=peer)(flaky(*[TimeoutError] * 2))
    for _ in range(2):
        with pytest.raises(TimeoutError):
            retried()
    with pytest.raises(stagger.GaveUp, match="circuit-open") as raised:
        retried()
    assert raised.value.outcome.name == "circuit-open"
    time.advance(29)
    assert peer.breaker == "open"
    time.advance(2)
    assert peer.breaker == "half-open"
    assert retried() == "done"


def test_opens_the_breaker_when_calls_are_slow(time: Any) -> None:
    peer = stagger.Peer("attempts=1 breaker=50%/3/1m:30s breaker-slow=100%/2s")
    retried = stagger.retry(peer.policy, peer=peer)(lambda: time.advance(2))
    for _ in range(3):
        assert peer.breaker == "closed"
        retried()
    assert peer.breaker == "open"
    with pytest.raises(stagger.GaveUp, match="circuit-open"):
        retried()


def test_raises_the_last_exception_when_the_breaker_opens(
    time: Any, flaky: Any
) -> None:
    peer = stagger.Peer("fixed base=1s attempts=5 breaker=2:30s")
    work, last = flaky(TimeoutError, TimeoutError("last")), "last"
    with pytest.raises(TimeoutError, match=last) as raised:
        stagger.retry(peer.policy, peer=peer)(work)()
    assert "(circuit-open)" in raised.value.__notes__[0]


def test_says_how_the_peer_is(flaky: Any) -> None:
    peer = stagger.Peer("attempts=1 breaker=1:30s budget=tokens:7:1/s")
    assert (peer.breaker, peer.budget) == ("closed", 7.0)
    with pytest.raises(TimeoutError):
        stagger.retry(peer.policy, peer=peer)(flaky(TimeoutError))()
    assert peer.breaker == "open"
    assert stagger.Peer("none").budget is None
    assert peer.policy == stagger.Policy(peer.policy.text)
    assert repr(peer) == f"Peer({peer.policy.text!r})"
    retrying = stagger.Retrying("attempts=2")
    assert repr(retrying) == f"Retrying({retrying.policy.text!r})"


def test_holds_calls_to_a_rate(time: Any) -> None:
    peer = stagger.Peer("attempts=1 rate=10/s", burst=2)
    for _ in range(5):
        stagger.retry(peer.policy, peer=peer)(lambda: None)()
    assert time.waits == pytest.approx([0.1] * 3)
    with pytest.raises(ValueError, match="burst"):
        stagger.Peer("rate=10/s", burst=10**7)


def test_holds_calls_to_a_number_at_once(time: Any) -> None:
    peer = stagger.Peer("attempts=1 bulkhead=1:160ms")
    retrying = stagger.Retrying(peer.policy, peer=peer)
    with pytest.raises(stagger.GaveUp, match="bulkhead"):
        retrying.call(lambda: retrying.call(lambda: None))
    assert sum(time.waits) == pytest.approx(0.16)
    assert retrying.call(lambda: 7) == 7


def test_takes_back_its_place_when_a_predicate_fails(time: Any) -> None:
    def judge(error: Exception) -> bool:
        raise ZeroDivisionError

    def fail() -> None:
        raise KeyError

    async def fail_async() -> None:
        raise KeyError

    # As long as the exception is kept, its traceback keeps the call.
    peer = stagger.Peer("attempts=3 bulkhead=1")
    retrying = stagger.Retrying(peer.policy, peer=peer, when=judge)
    with pytest.raises(ZeroDivisionError) as plain:
        retrying.call(fail)
    with pytest.raises(ZeroDivisionError) as coroutine:
        asyncio.run(retrying.call(fail_async))
    assert retrying.call(lambda: 7) == 7
    assert retrying.statistics.ends == {"cancelled": 2, "done": 1}
    assert plain.value is not coroutine.value


def test_gives_a_function_a_peer_of_its_own(time: Any, flaky: Any) -> None:
    retried = stagger.retry("backend")(flaky())
    assert retried.retry.peer is not None
    assert stagger.retry("attempts=2")(flaky()).retry.peer is None


def test_refuses_a_shared_policy_without_a_peer() -> None:
    with pytest.raises(ValueError, match=r"with\.peer is NULL"):
        stagger.attempts("backend")
    with pytest.raises(ValueError, match="another budget"):
        stagger.retry("backend", peer=stagger.Peer("aws"))
