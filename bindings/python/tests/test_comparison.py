"""docs/comparison.md: what tenacity and backoff do, and ours, do the same.

A block marked `python tenacity` (or `python backoff`) and the next `python` are
a pair. Both define stock(), which calls ask(); both are called with an ask()
that fails in several ways, on a clock that each call moves by a second.
"""

from __future__ import annotations

import asyncio
import datetime
import inspect
import logging
import pathlib
import random
import re
import types
from collections.abc import Iterator
from typing import Any, Callable, NamedTuple
from unittest import mock

import pytest

import stagger
from conftest import package

PAGE = pathlib.Path(__file__).parents[3] / "docs" / "comparison.md"
BLOCK = re.compile(r"^```python ?([\w ]*)\n(.*?)^```$", re.M | re.S)
CALLS_MAX = 12  # limit for a pair that retries for ever
DRAWS = 200  # runs of a pair whose waits are random


class Enough(BaseException):
    """It has been called often enough to see what it does."""


Script = Callable[[int], object]


def raising(error: Callable[[], BaseException], times: int = 99) -> Script:
    def ask(number: int) -> object:
        if number <= times:
            raise error()
        return 7

    return ask


SCRIPTS: dict[str, Script] = {
    "an error": raising(Exception),
    "an OSError": raising(lambda: OSError("try later")),
    "a KeyError": raising(lambda: KeyError("pear")),
    "a refused connection": raising(ConnectionRefusedError),
    "a timeout": raising(TimeoutError),
    "two OSErrors": raising(lambda: OSError("later"), times=2),
    "none": lambda number: None,
    "none at first": lambda number: None if number < 3 else 7,
    "at once": lambda number: 7,
}


class Pair:
    def __init__(self, kind: str, line: int, theirs: str, ours: str) -> None:
        self.library, _, self.differs = kind.partition(" ")
        self.line = line
        self.theirs = theirs
        self.ours = ours


def pairs() -> Iterator[Pair]:
    text = PAGE.read_text(encoding="utf-8")
    blocks = [
        (each[1], text.count("\n", 0, each.start()) + 1, each[2])
        for each in BLOCK.finditer(text)
    ]
    for (kind, line, theirs), (mark, _, ours) in zip(blocks, blocks[1:]):
        if kind:
            assert not mark, f"{PAGE}:{line} has no block of ours behind it"
            yield Pair(kind, line, theirs, ours)


class World:
    """One side of a pair: its clock, its calls, and what it waited."""

    def __init__(self, script: Script, seed: int = 0) -> None:
        self.script = script
        self.seed = seed
        self.calls = 0
        self.now = 0.0
        self.waits: list[float] = []

    def pass_time(self, seconds: float) -> None:
        self.now += seconds

    def ask(self) -> object:
        if self.calls == CALLS_MAX:
            raise Enough
        self.calls += 1
        self.pass_time(1)
        return self.script(self.calls)

    def answer(self, status: int, headers: dict[str, str]) -> object:
        self.calls += 1
        return types.SimpleNamespace(status_code=status, headers=headers)

    def sleep(self, seconds: float) -> None:
        """Some of tenacity's retry even what is no Exception: this ends it."""
        self.waits.append(seconds)
        if self.calls == CALLS_MAX:
            raise Enough
        self.now += seconds

    async def sleep_async(self, seconds: float) -> None:
        self.sleep(seconds)

    def datetime(self) -> Any:
        start = datetime.datetime(2026, 1, 1)
        return types.SimpleNamespace(
            datetime=types.SimpleNamespace(
                now=lambda: start + datetime.timedelta(seconds=self.now)
            ),
            timedelta=datetime.timedelta,
        )


def run(code: str, names: dict[str, Any], world: World) -> Any:
    """What stock() comes to."""
    names.update(ask=world.ask, answer=world.answer, logging=logging)
    exec(code, names)
    try:
        result = names["stock"]()
        if inspect.iscoroutine(result):
            result = asyncio.run(result)
        return getattr(result, "status_code", result)
    except Enough:
        return Enough
    except Exception as error:
        # tenacity's RetryError has the last attempt in it.
        last = getattr(error, "last_attempt", None)
        if last is None:
            return type(error)
        return type(last.exception()) if last.failed else last.result()


class Seen(NamedTuple):
    result: Any
    calls: int
    waits: list[float]
    told: Any


Side = Callable[[str, World, dict[str, Any]], Any]


def on_their_clock(code: str, world: World, names: dict[str, Any]) -> Any:
    tenacity, backoff = package("tenacity"), package("backoff")
    names.update({**vars(tenacity), **names, "backoff": backoff})
    clock = types.SimpleNamespace(
        monotonic=lambda: world.now, sleep=world.sleep
    )
    with (
        mock.patch("tenacity.time", clock),
        mock.patch("tenacity.nap.time", clock),
        mock.patch("backoff._sync.time", clock),
        mock.patch("backoff._sync.datetime", world.datetime()),
        mock.patch("backoff._async.datetime", world.datetime()),
        mock.patch("asyncio.sleep", world.sleep_async),
    ):
        return run(code, names, world)


def on_our_clock(code: str, world: World, names: dict[str, Any]) -> Any:
    names["stagger"] = stagger
    with stagger.testing.virtual_time(seed=world.seed) as time:
        world.pass_time = time.advance  # type: ignore[method-assign]
        result = run(code, names, world)
    world.waits = [round(each, 9) for each in time.waits]
    return result


def see(
    side: Side, code: str, script: Script, seed: int, before: dict[str, Any]
) -> Seen:
    world, names = World(script, seed), dict(before)
    names.pop("told", None)
    result = side(code, world, names)
    before.update(names)
    waits = [each for each in world.waits if each > 0]
    return Seen(result, world.calls, waits, names.get("told"))


PAIRS = list(pairs())

# Of each block, the names that those before it on the page have defined.
Names = dict[int, tuple[dict[str, Any], dict[str, Any]]]


@pytest.fixture(scope="module")
def names() -> Names:
    found: Names = {}
    theirs: dict[str, Any] = {}
    ours: dict[str, Any] = {}
    for pair in PAIRS:
        found[pair.line] = dict(theirs), dict(ours)
        see(on_their_clock, pair.theirs, SCRIPTS["at once"], 0, theirs)
        see(on_our_clock, pair.ours, SCRIPTS["at once"], 0, ours)
    return found


def see_both(
    pair: Pair, script: Script, names: Names, seed: int = 0
) -> tuple[Seen, Seen]:
    theirs, ours = names[pair.line]
    return (
        see(on_their_clock, pair.theirs, script, seed, dict(theirs)),
        see(on_our_clock, pair.ours, script, seed, dict(ours)),
    )


# What the examples of their READMEs use (tenacity 9.2.1, backoff 2.2.1).
USES = {
    "tenacity": (
        "stop_after_attempt( stop_after_delay( stop_before_delay( | "
        "wait_fixed( wait_random( wait_exponential( wait_random_exponential( + "
        "wait_chain( retry_if_exception_type( retry_if_not_exception_type( "
        "retry_if_result( TryAgain reraise= before= before_log( after= "
        "after_log( before_sleep= before_sleep_log( statistics "
        "retry_error_callback= seconds_since_start attempt_number retry_with( "
        "retryer(ask) mock.patch enabled= retry_with(enabled=False) "
        "AsyncRetrying( set_result( items_factory()"
    ),
    "backoff": (
        "max_time= max_tries= jitter=None giveup= raise_on_giveup=False "
        "on_exception( on_predicate( fibo max_value= constant interval= "
        "runtime value= random_jitter max_tries=lambda on_backoff= "
        "on_backoff=[ on_giveup= on_success= async"
    ),
}


@pytest.mark.parametrize("library", USES)
def test_each_example_has_a_pair(library: str) -> None:
    theirs = [each.theirs for each in PAIRS if each.library == library]
    found = "\n".join(theirs)
    assert [use for use in USES[library].split() if use not in found] == []


@pytest.mark.parametrize("pair", PAIRS, ids=lambda pair: f"line-{pair.line}")
@pytest.mark.parametrize("script", SCRIPTS)
def test_a_pair_does_the_same(pair: Pair, script: str, names: Names) -> None:
    random.seed(1)
    theirs, ours = see_both(pair, SCRIPTS[script], names)
    again, _ = see_both(pair, SCRIPTS[script], names)
    if pair.differs:
        assert ours.result == theirs.result
    elif theirs.waits == again.waits:
        assert ours == theirs
    else:
        assert ours._replace(waits=[]) == theirs._replace(waits=[])
        check_draws(
            [see_both(pair, SCRIPTS[script], names, i) for i in range(DRAWS)]
        )


def check_draws(seen: list[tuple[Seen, Seen]]) -> None:
    """From the same interval, as far as so many draws show it."""
    theirs, ours = (
        [list(waits) for waits in zip(*(both[i].waits for both in seen))]
        for i in (0, 1)
    )
    assert len(theirs) == len(ours) > 0
    for here, there in zip(ours, theirs):
        near = 0.1 * max(there)
        assert min(here) == pytest.approx(min(there), abs=near)
        assert max(here) == pytest.approx(max(there), abs=near)


def test_policies_of_the_lists_are_policies() -> None:
    lists = PAGE.read_text(encoding="utf-8").partition("\n## Polly\n")[2]
    texts = re.findall(r"`([a-z-]+=[^` ]+)`", lists)
    assert len(texts) >= 6
    for text in texts:
        stagger.Policy(text)
