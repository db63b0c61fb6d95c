"""The decorator, the call and the block, of plain functions."""

from __future__ import annotations

import asyncio
import dataclasses
import functools
import inspect
import io
import logging
import pickle
from typing import Any

import pytest

import stagger

FIXED = "fixed base=1s jitter=none attempts=3"


def test_calls_again_until_it_succeeds(time: Any, flaky: Any) -> None:
    work = flaky(ConnectionResetError, TimeoutError)
    assert stagger.retry(FIXED)(work)("yes") == "yes"
    assert (work.calls, time.waits) == (3, [1, 1])


def test_raises_the_last_exception_with_reason_and_history(
    time: Any, flaky: Any
) -> None:
    last = TimeoutError("three")
    work = flaky(ConnectionResetError("one"), TimeoutError("two"), last)
    with pytest.raises(TimeoutError, match="three") as raised:
        stagger.call(FIXED, work)
    assert raised.value is last
    assert last.__notes__ == [
        "stagger: gave up after 3 attempts in 2 s: timeout (attempts)\n"
        "  attempt 1: reset, then waited 1.000 s\n"
        "  attempt 2: timeout, then waited 1.000 s\n"
        "  attempt 3: timeout"
    ]


def test_raises_gave_up_by_choice(time: Any, flaky: Any) -> None:
    retried = stagger.retry(FIXED, raise_last=False)(
        flaky(*[TimeoutError("late")] * 3)
    )
    with pytest.raises(stagger.GaveUp, match="attempts") as raised:
        retried()
    assert isinstance(raised.value.__cause__, TimeoutError)
    assert (raised.value.why, raised.value.attempts) == ("attempts", 3)
    assert raised.value.outcome.name == "timeout"
    assert len(raised.value.history) == 3


def test_remembers_no_more_than_it_shows(time: Any, flaky: Any) -> None:
    retried = stagger.retry("fixed base=1ms attempts=100", raise_last=False)(
        flaky(*[TimeoutError] * 100)
    )
    with pytest.raises(stagger.GaveUp) as raised:
        retried()
    assert [each[0] for each in raised.value.history] == list(range(91, 101))


def test_leaves_what_is_not_worth_it(time: Any, flaky: Any) -> None:
    work = flaky(KeyError("name"))
    with pytest.raises(KeyError):
        stagger.call(FIXED, work)
    assert work.calls == 1


def test_retries_the_types_of_on_and_no_others(time: Any, flaky: Any) -> None:
    retry = stagger.retry(FIXED, on=(KeyError, OSError))
    work = flaky(KeyError, FileNotFoundError)
    assert retry(work)() == "done"
    work = flaky(asyncio.TimeoutError())
    work.errors = [EOFError()]
    with pytest.raises(EOFError):
        retry(work)()
    assert work.calls == 1


def test_crosses_processes(flaky: Any) -> None:
    with pytest.raises(stagger.GaveUp) as raised:
        stagger.Retrying("attempts=2 base=0", raise_last=False).call(
            flaky(ConnectionResetError, TimeoutError)
        )
    before = raised.value
    after = pickle.loads(pickle.dumps(before))
    assert str(after) == str(before)
    assert (after.why, after.attempts) == ("attempts", 2)
    assert after.outcome == before.outcome
    assert after.history == before.history
    for outcome in (
        stagger.Outcome.ok(),
        stagger.Outcome.failed("refused").but(delay=1.5, unsent=True),
        stagger.Outcome.sqlstate("40001").but(permanent=True),
        stagger.Outcome.kafka(-195),
    ):
        assert pickle.loads(pickle.dumps(outcome)) == outcome


def test_keeps_the_rules_of_the_policy_for_the_types_of_on(
    time: Any, flaky: Any
) -> None:
    work = flaky(*[ConnectionResetError] * 3)
    with pytest.raises(ConnectionResetError):
        stagger.retry(FIXED + " retry=refused", on=OSError)(work)()
    assert work.calls == 1


@pytest.mark.parametrize(
    ("verdict", "calls"),
    [
        (True, 3),
        (False, 1),
        (None, 1),
        (stagger.Outcome.status(503), 3),
        (stagger.Outcome.status(404), 1),
        (stagger.classify(KeyError()), 1),
    ],
)
def test_asks_when_about_an_exception(
    time: Any, flaky: Any, verdict: object, calls: int
) -> None:
    work = flaky(*[KeyError] * 3)
    with pytest.raises(KeyError):
        stagger.retry(FIXED, when=lambda _: verdict)(work)()
    assert work.calls == calls


def test_asks_when_result_about_a_result(time: Any) -> None:
    states = ["starting", "starting", "ready", "never asked"]
    retry = stagger.retry(FIXED, when_result=lambda state: state != "ready")
    assert retry(lambda: states.pop(0))() == "ready"
    assert time.waits == [1, 1]


def test_asking_about_results_changes_nothing_for_exceptions(
    time: Any, flaky: Any
) -> None:
    retry = stagger.retry(FIXED, when_result=bool)
    work = flaky(KeyError, KeyError)
    with pytest.raises(KeyError):
        retry(work)()
    assert work.calls == 1
    work = flaky(TimeoutError, TimeoutError)
    retry(work)(0)
    assert work.calls == 3


def test_returns_the_last_result_that_is_no_good(time: Any) -> None:
    assert stagger.retry(FIXED, when_result=bool)(lambda: 7)() == 7
    with pytest.raises(stagger.GaveUp, match="error"):
        stagger.retry(FIXED, when_result=bool, raise_last=False)(lambda: 7)()


def test_reads_a_response(time: Any) -> None:
    class Answer:
        def __init__(self, status: int, **headers: str) -> None:
            self.status_code = status
            self.headers = {"Retry-After": "7", **headers}

    answers = [Answer(503), Answer(200)]
    retry = stagger.retry(FIXED, when_result=stagger.response)
    assert retry(lambda: answers.pop(0))().status_code == 200
    assert 7 <= time.waits[0] <= 8
    assert retry(lambda: Answer(404))().status_code == 404
    precise = stagger.response(Answer(429, **{"retry-after-ms": "1500"}))
    assert precise.delay == 1.5
    with pytest.raises(TypeError, match="status_code"):
        retry(lambda: 7)()


def test_waits_for_the_reset_of_a_rate_limit() -> None:
    class Answer:
        def __init__(self, status: int, **headers: str) -> None:
            self.status_code = status
            self.headers = headers

    def delay(status: int, **headers: str) -> float:
        return stagger.response(Answer(status, **headers)).delay

    used_up = {"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": "30"}
    assert delay(429, **used_up) == 30
    assert delay(429, **{name.lower(): used_up[name] for name in used_up}) == 30
    assert delay(429, **{**used_up, "X-RateLimit-Remaining": "1"}) == 0
    assert delay(403, **{"X-Rate-Limit-Reset": "30"}) == 30
    assert delay(503, **{"X-Rate-Limit-Reset": "30"}) == 0
    assert delay(503, RateLimit='"a";r=0;t=7') == 7
    assert delay(429, **{**used_up, "Retry-After": "3"}) == 3
    assert delay(200, **used_up) == 0


def test_passes_on_what_a_look_up_raises() -> None:
    with pytest.raises(ZeroDivisionError):
        stagger.Outcome.status(429).told(lambda name: 1 / 0)  # type: ignore
    with pytest.raises(TypeError):
        stagger.Outcome.status(429).told(lambda name: 7)  # type: ignore


def test_obeys_retry_after_of_an_exception(time: Any, flaky: Any) -> None:
    error = TimeoutError()
    error.retry_after = 30  # type: ignore[attr-defined]
    assert stagger.call(FIXED, flaky(error)) == "done"
    assert time.waits == [30]


def test_stops_at_the_deadline(time: Any, flaky: Any) -> None:
    work = flaky(*[TimeoutError] * 9)
    with pytest.raises(TimeoutError) as raised:
        stagger.call("fixed base=1s jitter=none attempts=9 deadline=3s", work)
    assert work.calls == 3
    assert "(deadline)" in raised.value.__notes__[0]


def test_lets_interrupts_pass(flaky: Any) -> None:
    ends: list[str] = []
    retried = stagger.retry(FIXED, hook=lambda event: ends.append(event.why))(
        flaky(KeyboardInterrupt)
    )
    with pytest.raises(KeyboardInterrupt):
        retried()
    assert ends == ["", "cancelled"]
    assert retried.retry.statistics.ends == {"cancelled": 1}


class Shop:
    """It has methods of all kinds."""

    def __init__(self) -> None:
        self.calls = 0

    @stagger.retry(FIXED, on=KeyError)
    def buy(self, item: str) -> str:
        """Buys it."""
        self.calls += 1
        if self.calls < 3:
            raise KeyError(item)
        return item

    @classmethod
    @stagger.retry(FIXED)
    def open(cls) -> str:
        return cls.__name__

    @staticmethod
    @stagger.retry(FIXED)
    def greet(name: str) -> str:
        return f"Hello {name}"


def test_decorates_methods(time: Any) -> None:
    shop = Shop()
    assert shop.buy("pear") == "pear"
    assert shop.calls == 3
    # mypy binds these two by the type of a function only.
    assert Shop.open() == "Shop"  # type: ignore[call-arg]
    assert shop.greet("you") == "Hello you"  # type: ignore[call-arg]
    assert Shop.buy.__doc__ == "Buys it."
    assert list(inspect.signature(Shop.buy).parameters) == ["self", "item"]
    assert shop.buy.retry.statistics.retries >= 2


def test_refuses_what_it_cannot_call_again() -> None:
    def some() -> Any:
        yield 1

    async def others() -> Any:
        yield 1

    class Source:
        def __call__(self) -> Any:
            yield 1

    for generator in (some, others, Source()):
        with pytest.raises(TypeError, match="is a generator"):
            stagger.retry(FIXED)(generator)
        with pytest.raises(TypeError, match="is a generator"):
            stagger.call(FIXED, generator)
        with pytest.raises(TypeError, match="is a generator"):
            stagger.Retrying(FIXED).call(generator)

    async def later() -> int:
        return 7

    hidden: Any = lambda: later()  # noqa: E731
    with pytest.raises(TypeError, match="returns a coroutine"):
        stagger.call(FIXED, hidden)
    with pytest.raises(TypeError, match="below @staticmethod"):
        stagger.retry(FIXED)(staticmethod(some))  # type: ignore[arg-type,unused-ignore]
    with pytest.raises(TypeError, match="cannot be called"):
        stagger.retry(FIXED)(7)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="a str or a Policy"):
        stagger.retry(7)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"write @stagger\.retry\(\)"):
        stagger.retry(some)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"onn": OSError}, "no option 'onn': they are on, when, .* raise_last"),
        ({"attempts": 3}, "Settings, such as attempts=3, .* the policy's text"),
        ({"on": [KeyError, OSError]}, "on is .* tuple of them, not"),
        ({"on": OSError("one")}, "on is a type of exception"),
        ({"on": (OSError, 7)}, "on is a type of exception"),
        ({"when": True}, "when is a function, not True"),
        ({"when_result": 503}, "when_result is a function"),
        ({"hook": "print"}, "hook is a function"),
        ({"log": 7}, "log is a logger, its name or None, not 7"),
        ({"level": "INFO"}, "level is a number .* not 'INFO'"),
    ],
)
def test_refuses_bad_options_before_the_first_failure(
    options: Any, message: str
) -> None:
    for face in (stagger.retry, stagger.Retrying, stagger.attempts):
        with pytest.raises(TypeError, match=message):
            face(FIXED, **options)


def test_takes_partial_functions(time: Any, flaky: Any) -> None:
    work = functools.partial(flaky(TimeoutError), "part")
    assert stagger.retry(FIXED)(work)() == "part"


def test_says_what_is_wrong_with_a_policy_and_where() -> None:
    with pytest.raises(ValueError, match=r"^policy:1:\d+: .*attempts"):
        stagger.retry("fixed attempts=0")
    with pytest.raises(ValueError, match=r"^policy:1:1: "):
        stagger.Policy("expontial")
    with pytest.raises(ValueError, match="null"):
        stagger.Policy("fixed\0")


def test_has_policies_that_are_values() -> None:
    policy = stagger.Policy("backend")
    assert policy == stagger.Policy(policy.text)
    assert policy != stagger.Policy("client")
    assert hash(policy) == hash(stagger.Policy(str(policy)))
    assert pickle.loads(pickle.dumps(policy)) == policy
    assert repr(stagger.Policy("none")).startswith("Policy('")
    assert (policy.attempts_max, policy.needs_peer) == (5, True)
    assert stagger.Policy("attempts=unlimited").attempts_max is None
    assert policy.retries(stagger.Outcome.status(503)) is None
    assert policy.retries(stagger.Outcome.status(404)) == 0
    assert policy.with_errors().retries(stagger.classify(KeyError())) is None


def test_has_a_block(time: Any, flaky: Any) -> None:
    work, numbers, keys = flaky(TimeoutError, TimeoutError), [], set()
    for attempt in stagger.attempts(FIXED):
        with attempt:
            numbers.append(attempt.number)
            keys.add(attempt.key)
            result = work()
    assert (result, numbers, len(keys)) == ("done", [1, 2, 3], 1)


def test_refuses_a_block_without_with() -> None:
    with pytest.raises(RuntimeError, match="with attempt"):
        for _ in stagger.attempts(FIXED):
            pass


def test_reports_an_outcome_from_a_block(time: Any) -> None:
    numbers = []
    for attempt in stagger.attempts(FIXED, raise_last=False):
        with attempt:
            numbers.append(attempt.number)
            if attempt.number < 3:
                attempt.fail(stagger.Outcome.status(503))
    assert numbers == [1, 2, 3]


def test_can_leave_a_block(time: Any) -> None:
    peer = stagger.Peer("attempts=9 budget=tokens:5:1/s")
    for attempt in stagger.attempts(peer.policy, peer=peer):
        with attempt:
            if attempt.number == 1:
                raise TimeoutError
            break
    assert attempt.number == 2
    for _ in stagger.attempts(peer.policy, peer=peer):
        break


def test_tells_the_attempt_what_it_may_take(time: Any) -> None:
    @stagger.retry("fixed base=1s attempt-timeout=5s deadline=7s jitter=none")
    def work() -> None:
        operation = stagger.current()
        assert operation is not None
        seen.append((operation.number, operation.timeout))
        time.advance(3)
        raise TimeoutError

    seen: list[tuple[int, object]] = []
    assert stagger.current() is None
    with pytest.raises(TimeoutError):
        work()
    assert seen == [(1, 5.0), (2, 3.0)]


def test_leaves_retries_to_the_call_around_it(time: Any) -> None:
    inner_calls = []

    @stagger.retry(FIXED)
    def inner() -> None:
        inner_calls.append(1)
        raise TimeoutError

    with pytest.raises(TimeoutError):
        stagger.call(FIXED, inner)
    # The last attempt of the outer one has nobody around it to repeat it.
    assert len(inner_calls) == 1 + 1 + 3
    assert inner.retry.statistics.ends == {"nested": 2, "attempts": 1}


def test_repeats_a_post_with_a_key_only(time: Any, flaky: Any) -> None:
    work = flaky(TimeoutError)
    with pytest.raises(TimeoutError) as raised:
        stagger.retry(FIXED, method="POST")(work)()
    assert "not-idempotent" in raised.value.__notes__[0]

    work = flaky(TimeoutError)
    assert stagger.retry(FIXED, method="POST", key=True)(work)() == "done"

    with pytest.raises(ValueError, match="key is empty"):
        stagger.retry(FIXED, method="POST", key="")

    for attempt in stagger.attempts(FIXED, method="POST", key="order-7"):
        with attempt:
            assert attempt.key == "order-7"


def test_logs_a_line_an_attempt(time: Any, flaky: Any, caplog: Any) -> None:
    caplog.set_level(logging.DEBUG)
    work = flaky(TimeoutError("a"), TimeoutError("b"))
    stagger.retry(FIXED, name="work", log="app", level=logging.WARNING)(work)()
    stagger.retry(FIXED, name="well")(lambda: 1)()
    stagger.retry(FIXED, log=None)(flaky(TimeoutError))()
    assert caplog.record_tuples == [
        ("app", 30, "work: attempt 1: timeout: TimeoutError('a'); "
                    "again in 1.000 s (backoff)"),
        ("app", 30, "work: attempt 2: timeout: TimeoutError('b'); "
                    "again in 1.000 s (backoff)"),
        ("app", 30, "work: attempt 3: ok; done after 3 attempts in 2 s"),
    ]  # fmt: skip


def test_tells_a_hook_what_happens(time: Any, flaky: Any) -> None:
    events: list[stagger.Event] = []
    work = flaky(TimeoutError("late"))
    stagger.retry(FIXED, name="work", hook=events.append)(work)()
    assert [(e.kind, e.number, e.next, e.why, e.wait) for e in events] == [
        ("attempt", 1, "go", "", 0),
        ("decision", 1, "wait", "backoff", 1),
        ("attempt", 2, "go", "", 0),
        ("decision", 2, "done", "done", 0),
        ("end", 2, "done", "done", 0),
    ]
    assert isinstance(events[1].error, TimeoutError)
    assert events[1].outcome is not None
    assert events[1].outcome.name == "timeout"
    assert events[-1].text == "done after 2 attempts in 1 s"


@dataclasses.dataclass(frozen=True)
class Frozen(Exception):
    number: int


class Nameless(Exception):
    def __repr__(self) -> str:
        raise ZeroDivisionError


def test_raises_what_can_have_no_note(time: Any, flaky: Any) -> None:
    with pytest.raises(Frozen):
        stagger.retry("attempts=2", on=Frozen)(flaky(Frozen(7), Frozen(7)))()


def test_raises_what_cannot_be_logged(
    time: Any, flaky: Any, monkeypatch: Any
) -> None:
    log = logging.Logger("quiet")
    log.addHandler(logging.StreamHandler(io.StringIO()))
    monkeypatch.setattr(logging, "raiseExceptions", False)
    with pytest.raises(Nameless):
        stagger.retry("attempts=2", on=Nameless, log=log)(
            flaky(Nameless, Nameless)
        )()


def test_goes_on_when_a_hook_fails(flaky: Any, caplog: Any) -> None:
    def hook(event: stagger.Event) -> None:
        raise KeyError(event.name)

    assert stagger.retry(FIXED, hook=hook)(lambda: 1)() == 1
    assert "the hook failed" in caplog.text


def test_keeps_functions_apart_that_one_decorator_has(flaky: Any) -> None:
    names: list[str] = []
    retry = stagger.retry("fixed", hook=lambda event: names.append(event.name))

    @retry
    def buy() -> None: ...

    @retry
    def sell() -> None: ...

    buy()
    sell()
    assert {name.rpartition(".")[2] for name in names} == {"buy", "sell"}
    assert buy.retry.statistics.calls == 1


def test_counts(time: Any, flaky: Any) -> None:
    work = flaky(TimeoutError, KeyError)
    retried = stagger.retry(FIXED)(work)
    with pytest.raises(KeyError):
        retried()
    assert retried() == "done"
    assert retried.retry.statistics == stagger.Statistics(
        calls=2,
        attempts=3,
        retries=1,
        successes=1,
        failures=1,
        waited=1.0,
        fallbacks=0,
        ends={"done": 1, "permanent": 1},
    )
