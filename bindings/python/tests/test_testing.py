"""Tests that do not wait, and what the extension leaves behind."""

from __future__ import annotations

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
