"""The faces of the loop: a decorator, a call, a block."""

from __future__ import annotations

import functools
import inspect
import types
from collections.abc import AsyncIterator, Iterator
from typing import (
    TYPE_CHECKING,
    Any,
    Callable,
    TypeVar,
    overload,
)

from ._attempts import Attempt, Run
from ._core import Peer, Policy
from ._events import Statistics
from ._hedges import Round, check_loop
from ._settings import Options, Settings

if TYPE_CHECKING:
    from typing import Protocol

    from typing_extensions import Concatenate, ParamSpec, Self, Unpack

    P = ParamSpec("P")
    Q = ParamSpec("Q")
    R = TypeVar("R")
    R_co = TypeVar("R_co", covariant=True)
    T = TypeVar("T")

    class Retried(Protocol[P, R_co]):
        """A decorated function: called as before, and it has `retry`."""

        retry: Retrying
        __name__: str

        @property
        def __wrapped__(self) -> Callable[P, R_co]: ...
        def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R_co: ...
        @overload
        def __get__(self, instance: None, owner: type) -> Self: ...
        @overload
        def __get__(
            self: Retried[Concatenate[T, Q], R], instance: T, owner: type
        ) -> Retried[Q, R]: ...


DEFAULT = "retry=default"


class Retrying:
    """A policy with its options: what a decorated function has as `retry`.

    >>> patient = Retrying("fixed base=1ms attempts=3", on=KeyError)
    >>> patient.call(len, "word")
    4
    >>> patient.statistics.calls
    1
    """

    def __init__(
        self, policy: str | Policy = DEFAULT, **options: Unpack[Options]
    ) -> None:
        self._settings = Settings(policy, has_own_peer=True, **options)

    def __repr__(self) -> str:
        return f"Retrying({self.policy.text!r})"

    @property
    def policy(self) -> Policy:
        return self._settings.policy

    @property
    def peer(self) -> Peer | None:
        """The one given; or its own, for a policy with budget or breaker."""
        return self._settings.peer

    @property
    def statistics(self) -> Statistics:
        return Statistics.of(self._settings.calls.totals())

    def call(self, f: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
        """Calls f until it succeeds, or the policy gives up. The call of an
        async function is awaited."""
        refuse_generators(f)
        if _is_async(f):
            call_async = _async_call_of(self._settings)
            return call_async(self._settings, f, args, kwargs)  # type: ignore[no-any-return]
        return _call(self._settings, f, args, kwargs)

    def __iter__(self) -> Iterator[Attempt]:
        self._settings.refuse_fallback()
        return Run(self._settings)

    def __aiter__(self) -> AsyncIterator[Attempt]:
        self._settings.refuse_fallback()
        return Run(self._settings)


def retry(
    policy: str | Policy = DEFAULT, **options: Unpack[Options]
) -> Callable[[Callable[P, R]], Retried[P, R]]:
    """Decorates a function, plain or async: it is called until it succeeds, or
    the policy gives up. An async one, on asyncio, has the policy's hedges.

    >>> @retry("exponential base=500ms jitter=full attempts=4", on=OSError)
    ... def read(path: str) -> str:
    ...     with open(path) as file:
    ...         return file.read()
    >>> read.retry.policy.attempts_max
    4
    """
    # A mistake in the policy is told where it stands, not at the first call.
    Settings(policy, has_own_peer=True, **options)

    def decorate(f: Callable[P, R]) -> Retried[P, R]:
        refuse_generators(f)
        own: Options = {**options}
        own.setdefault("name", _name_of(f))
        retrying = Retrying(policy, **own)
        settings = retrying._settings

        if _is_async(f):
            call_async = _async_call_of(settings)

            @functools.wraps(f)
            async def retried(*args: Any, **kwargs: Any) -> Any:
                return await call_async(settings, f, args, kwargs)
        else:

            @functools.wraps(f)
            def retried(*args: Any, **kwargs: Any) -> Any:
                return _call(settings, f, args, kwargs)

        retried.retry = retrying  # type: ignore[attr-defined]
        return retried  # type: ignore[return-value]

    return decorate


def call(
    policy: str | Policy,
    f: Callable[P, R],
    *args: P.args,
    **kwargs: P.kwargs,
) -> R:
    """Calls f by the policy, once: see Retrying for one with options.

    >>> call("attempts=3", int, "7")
    7
    """
    refuse_generators(f)
    settings = Settings(policy, has_own_peer=False, name=_name_of(f))
    if _is_async(f):
        return _async_call_of(settings)(settings, f, args, kwargs)  # type: ignore[no-any-return]
    return _call(settings, f, args, kwargs)


class attempts:  # noqa: N801 - it is used as a function
    """The attempts of one operation, each of them a block; `for` or
    `async for`. One at a time: hedge= in the policy has no effect.

    >>> for attempt in attempts("attempts=3"):
    ...     with attempt:
    ...         print(attempt.number)
    1
    """

    def __init__(
        self, policy: str | Policy = DEFAULT, **options: Unpack[Options]
    ) -> None:
        self._settings = Settings(policy, has_own_peer=False, **options)
        self._settings.refuse_fallback()

    def __iter__(self) -> Iterator[Attempt]:
        return Run(self._settings)

    def __aiter__(self) -> AsyncIterator[Attempt]:
        return Run(self._settings)


def _call(settings: Settings, f: Callable[..., R], args: Any, kwargs: Any) -> R:
    run = Run(settings)
    try:
        for attempt in run:
            with attempt:
                result = f(*args, **kwargs)
                if isinstance(result, types.CoroutineType):
                    raise _not_awaited(f, result)
                attempt.classify(result)
    except Exception as error:
        if not run.may_fall_back():
            raise
        result = run.ask_fallback(error)
        run.fall_back(error)
    return result


async def _call_async(
    settings: Settings, f: Any, args: Any, kwargs: Any
) -> Any:
    run = Run(settings)
    try:
        async for attempt in run:
            with attempt:
                result = await f(*args, **kwargs)
                attempt.classify(result)
    except Exception as error:
        if not run.may_fall_back():
            raise
        result = await _fall_back_async(run, error)
    return result


async def _call_hedged(
    settings: Settings, f: Any, args: Any, kwargs: Any
) -> Any:
    check_loop(settings.name)
    run = Run(settings)
    try:
        async for _ in run:
            result = await Round(run, f, args, kwargs).make()
    except Exception as error:
        if not run.may_fall_back():
            raise
        result = await _fall_back_async(run, error)
    return result


async def _fall_back_async(run: Run, error: Exception) -> Any:
    answer = run.ask_fallback(error)
    if callable(run.settings.fallback) and inspect.isawaitable(answer):
        answer = await answer
    run.fall_back(error)
    return answer


def _async_call_of(settings: Settings) -> Any:
    return _call_hedged if settings.policy.hedges_max else _call_async


def _not_awaited(
    f: object, result: types.CoroutineType[Any, Any, Any]
) -> TypeError:
    """A coroutine that is returned has not begun to fail."""
    result.close()
    return TypeError(f"{f!r} returns a coroutine: retry an async function")


def _name_of(f: object) -> str:
    name: str = getattr(f, "__qualname__", repr(f))
    return name


def _is_async(f: object) -> bool:
    return inspect.iscoroutinefunction(f) or inspect.iscoroutinefunction(
        getattr(f, "__call__", None)  # noqa: B004 - an object with async call
    )


def refuse_generators(f: object) -> None:
    """TypeError for what cannot be called again as a whole."""
    if isinstance(f, (staticmethod, classmethod)):
        raise TypeError(f"put @stagger.retry below @{type(f).__name__}")
    own_call = getattr(f, "__call__", None)  # noqa: B004 - as in _is_async()
    if any(
        inspect.isgeneratorfunction(each) or inspect.isasyncgenfunction(each)
        for each in (f, own_call)
    ):
        raise TypeError(
            f"{getattr(f, '__qualname__', f)} is a generator: what it has "
            "yielded cannot be taken back. Retry the calls in it, or return "
            "a list"
        )
    if not callable(f):
        raise TypeError(f"{f!r} cannot be called")
