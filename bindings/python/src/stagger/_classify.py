"""What people raise, as outcomes.

By duck typing: nothing is imported, and an exception is known by the names of
its classes and by what it carries (a status, an errno, an SQLSTATE). What the
codes mean is the library's to say (docs/retry.md, "What is read as which");
here is only where each package keeps them. An exception may carry anything
under the same names: what is of another shape, or fails when it is read, says
nothing.
"""

from __future__ import annotations

import datetime
import errno
import socket
import ssl
from collections.abc import Iterator, Mapping
from typing import Any, Callable

from ._core import Outcome

_UNCLASSIFIED = Outcome.failed("error")

# Exceptions that say by their class alone what happened: package and name.
_BY_CLASS = {
    name: Outcome.failed(fault)
    for fault, names in {
        "connect-timeout": (
            "aiohttp.ConnectionTimeoutError botocore.ConnectTimeoutError "
            "httpcore.ConnectTimeout httpcore.PoolTimeout "
            "httpx.ConnectTimeout httpx.PoolTimeout psycopg.ConnectionTimeout "
            "requests.ConnectTimeout urllib3.ConnectTimeoutError"
        ),
        "timeout": (
            "aiohttp.ServerTimeoutError asyncio.TimeoutError "
            "botocore.ReadTimeoutError builtins.TimeoutError "
            "concurrent.TimeoutError httpcore.TimeoutException "
            "httpx.TimeoutException redis.TimeoutError requests.Timeout "
            "socket.timeout urllib3.TimeoutError"
        ),
        "tls": (
            "aiohttp.ClientConnectorCertificateError "
            "aiohttp.ServerFingerprintMismatch botocore.SSLError "
            "requests.SSLError urllib3.SSLError"
        ),
        "reset": (
            "aiohttp.ServerDisconnectedError asyncio.IncompleteReadError "
            "botocore.ConnectionClosedError builtins.ConnectionResetError "
            "builtins.ConnectionAbortedError builtins.BrokenPipeError "
            "httpx.CloseError httpx.ReadError httpx.WriteError"
        ),
        "refused": (
            "botocore.EndpointConnectionError builtins.ConnectionRefusedError "
            "httpx.ConnectError"
        ),
        "protocol": (
            "aiohttp.ClientPayloadError botocore.ResponseStreamingError "
            "http.HTTPException httpx.DecodingError httpx.RemoteProtocolError "
            "requests.ChunkedEncodingError requests.ContentDecodingError "
            "requests.ConnectionError urllib3.ProtocolError"
        ),
        "connection-lost": (
            "asyncpg.ConnectionDoesNotExistError psycopg.OperationalError "
            "psycopg2.OperationalError redis.ConnectionError"
        ),
        "too-many-connections": "redis.MaxConnectionsError",
    }.items()
    for name in names.split()
}

# redis takes the code from a reply and makes a class of it.
_REDIS = {
    "BusyLoadingError": "LOADING",
    "ClusterDownError": "CLUSTERDOWN",
    "MasterDownError": "MASTERDOWN",
    "ReadOnlyError": "READONLY",
    "TryAgainError": "TRYAGAIN",
}

# AWS answers many of its throttled requests by 400, and some that timed out.
_AWS_TIMEOUTS = frozenset(("RequestTimeout", "RequestTimeoutException"))
_AWS_THROTTLED = frozenset(
    (
        "BandwidthLimitExceeded",
        "EC2ThrottledException",
        "LimitExceededException",
        "PriorRequestNotComplete",
        "ProvisionedThroughputExceededException",
        "RequestLimitExceeded",
        "RequestThrottled",
        "RequestThrottledException",
        "SlowDown",
        "Throttling",
        "ThrottledException",
        "ThrottlingException",
        "TooManyRequestsException",
        "TransactionInProgressException",
    )
)


def classify(error: BaseException) -> Outcome:
    """What an exception says, by itself and by what it was raised from.

    >>> classify(ConnectionRefusedError(111, "Connection refused"))
    <Outcome refused>
    >>> classify(KeyError("name"))
    <Outcome error>
    """
    outcome = _first_known(error)
    delay = _attribute(error, "retry_after")
    return outcome if delay is None else _delayed(outcome, delay)


def response(answer: Any) -> Outcome:
    """What an answer of HTTP says that was returned, not raised, with its
    Retry-After: for `when_result`. It has a `status_code` or a `status`.
    """
    status = getattr(answer, "status_code", None)
    if status is None:
        status = getattr(answer, "status", None)
    if not isinstance(status, int):
        raise TypeError(f"{answer!r} has neither status_code nor status")
    return _answered(status, getattr(answer, "headers", None))


def _first_known(error: BaseException) -> Outcome:
    by_class = None
    for each in _chain(error):
        outcome = _read(each)
        if outcome is not None:
            return outcome
        by_class = by_class or _read_class(type(each))
    return by_class or _UNCLASSIFIED


def _chain(error: BaseException) -> Iterator[BaseException]:
    """The exception and what it wraps, outermost first: its cause, an
    exception that it carries, or one of which it was the handling."""
    seen: set[int] = set()
    found: list[BaseException] = [error]
    while found and len(seen) < 16:
        each = found.pop(0)
        if id(each) in seen:
            continue
        seen.add(id(each))
        yield each
        is_library = _package(type(each)) != "builtins"
        found += [
            inner
            for inner in (
                each.__cause__,
                _attribute(each, "os_error"),  # aiohttp
                _attribute(each, "reason"),  # urllib, urllib3
                _first_of_group(each),
                *(each.args if is_library else ()),
                *_inner_args(each),
                each.__context__ if is_library else None,
            )
            if isinstance(inner, BaseException)
        ]


def _inner_args(error: BaseException) -> tuple[object, ...]:
    """urllib3 has ProtocolError("...", error) inside other arguments, botocore
    its error= among kwargs."""
    kwargs = _attribute(error, "kwargs")
    return (kwargs.get("error"),) if isinstance(kwargs, dict) else ()


def _first_of_group(error: BaseException) -> object:
    members = _attribute(error, "exceptions")
    return members[0] if isinstance(members, tuple) and members else None


def _attribute(error: BaseException, name: str) -> object:
    """None, too, for a property that fails."""
    try:
        return getattr(error, name, None)
    except Exception:
        return None


def _read_class(kind: type) -> Outcome | None:
    for each in kind.__mro__:
        name = f"{_package(each)}.{each.__name__}"
        if name in _BY_CLASS:
            return _BY_CLASS[name]
    return None


def _package(kind: type) -> str:
    return kind.__module__.partition(".")[0]


# -- what an exception carries. Each of these reads one kind, or says None.


def _read(error: BaseException) -> Outcome | None:
    for read in _READERS:
        try:
            outcome = read(error)
        except Exception:  # not what this reader took it for
            continue
        if outcome is not None and not outcome.is_ok:
            return outcome
    return None


def _own(error: BaseException) -> Outcome | None:
    outcome = getattr(error, "outcome", None)
    return outcome if isinstance(outcome, Outcome) else None


def _http(error: BaseException) -> Outcome | None:
    answer = getattr(error, "response", None)  # requests, httpx
    status = getattr(answer, "status_code", None)
    headers = getattr(answer, "headers", None)
    package = _package(type(error))
    if status is None and package == "aiohttp":
        status = getattr(error, "status", None)
        headers = getattr(error, "headers", None)
    if status is None and package == "urllib":
        status = getattr(error, "code", None)
        headers = getattr(error, "headers", None)
    if not isinstance(status, int) or status < 100:
        return None
    return _answered(status, headers)


def _aws(error: BaseException) -> Outcome | None:
    answer = getattr(error, "response", None)  # botocore
    if not isinstance(answer, dict):
        return None
    code = answer.get("Error", {}).get("Code")
    if code in _AWS_THROTTLED:
        return Outcome.status(429)
    if code in _AWS_TIMEOUTS:
        return Outcome.status(408)
    metadata = answer.get("ResponseMetadata", {})
    status = metadata.get("HTTPStatusCode")
    if not isinstance(status, int):
        return None
    return _answered(status, metadata.get("HTTPHeaders"))


def _grpc(error: BaseException) -> Outcome | None:
    rpc: Any = error
    if not callable(getattr(type(rpc), "trailing_metadata", None)):
        return None
    value = getattr(rpc.code(), "value", None)
    number = value[0] if isinstance(value, tuple) else value
    if not isinstance(number, int):
        return None
    trailers = dict(rpc.trailing_metadata() or ())
    return Outcome.grpc(number, trailers.get("grpc-retry-pushback-ms"))


def _sql(error: BaseException) -> Outcome | None:
    state = getattr(error, "sqlstate", None)  # psycopg, asyncpg
    if state is None:
        state = getattr(error, "pgcode", None)  # psycopg2
    if _package(type(error)) in _MYSQL or not isinstance(state, str):
        return None
    return Outcome.sqlstate(state) if len(state) == 5 else None


_MYSQL = frozenset(("MySQLdb", "aiomysql", "asyncmy", "mysql", "pymysql"))


def _mysql(error: BaseException) -> Outcome | None:
    if _package(type(error)) not in _MYSQL:
        return None
    number = getattr(error, "errno", None)
    if number is None and error.args:
        number = error.args[0]
    return Outcome.mysql(number) if isinstance(number, int) else None


def _redis(error: BaseException) -> Outcome | None:
    if _package(type(error)) != "redis":
        return None
    names = [each.__name__ for each in type(error).__mro__]
    for name in names:
        if name in _REDIS:
            return Outcome.redis(_REDIS[name])
    return Outcome.redis(str(error)) if "ResponseError" in names else None


def _broker(error: BaseException) -> Outcome | None:
    reply_code = getattr(error, "reply_code", None)  # pika, py-amqp
    if isinstance(reply_code, int):
        return Outcome.amqp(reply_code)
    package = _package(type(error))
    number = getattr(error, "errno", None)
    if package in ("aiokafka", "kafka") and isinstance(number, int):
        return Outcome.kafka(number)
    if package in ("cimpl", "confluent_kafka") and error.args:
        code = getattr(error.args[0], "code", None)
        return Outcome.kafka(code()) if callable(code) else None
    return None


def _tls(error: BaseException) -> Outcome | None:
    if isinstance(error, (ssl.SSLEOFError, ssl.SSLZeroReturnError)):
        return Outcome.failed("reset")
    return Outcome.failed("tls") if isinstance(error, ssl.SSLError) else None


def _system(error: BaseException) -> Outcome | None:
    if not isinstance(error, OSError) or not isinstance(error.errno, int):
        return None
    if isinstance(error, socket.gaierror):
        return Outcome.resolver(error.errno)
    if error.errno not in errno.errorcode:
        return None
    outcome = Outcome.errno(error.errno)
    return None if outcome.fault == "error" else outcome


_READERS: tuple[Callable[[BaseException], Outcome | None], ...] = (
    _own,
    _grpc,
    _http,
    _aws,
    _mysql,
    _sql,
    _redis,
    _broker,
    _tls,
    _system,
)


# -- how long to wait


def _answered(status: int, headers: Mapping[str, Any] | None) -> Outcome:
    outcome = Outcome.status(status)
    if headers is None or outcome.is_ok:
        return outcome
    return outcome.told(lambda name: _header(headers, name))


def _header(headers: Mapping[str, Any], name: str) -> str | None:
    try:
        value = headers.get(name)
        if value is None:
            value = headers.get(name.lower())  # botocore has a plain dict
    except Exception:  # no mapping
        return None
    return value if isinstance(value, str) and value.isascii() else None


def _delayed(outcome: Outcome, delay: object) -> Outcome:
    if isinstance(delay, datetime.timedelta):
        delay = delay.total_seconds()
    try:
        if isinstance(delay, (int, float)):
            return outcome.but(delay=delay)
        return outcome.after(delay) if isinstance(delay, str) else outcome
    except (OverflowError, UnicodeError):
        return outcome
