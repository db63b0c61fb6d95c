"""What real packages raise."""

from __future__ import annotations

import asyncio
import builtins
import errno
import socket
import ssl
import types
import urllib.error
import urllib.request
from typing import Any

import pytest

import stagger
from conftest import package

# A port on which nobody listens.
REFUSED = "127.0.0.1:9"


def raised(call: Any, *args: Any, **kwargs: Any) -> BaseException:
    with pytest.raises(Exception) as caught:  # noqa: PT011
        call(*args, **kwargs)
    return caught.value


def name(error: BaseException) -> str:
    return stagger.classify(error).name


def test_reads_errno_and_the_classes_of_the_system() -> None:
    assert name(OSError(errno.EHOSTUNREACH, "")) == "unreachable"
    assert name(OSError(errno.EMFILE, "")) == "no-files"
    assert name(ConnectionResetError()) == "reset"
    assert name(BrokenPipeError()) == "reset"
    assert name(FileNotFoundError(errno.ENOENT, "")) == "error"
    assert name(socket.gaierror(socket.EAI_AGAIN, "")) == "dns-temporary"
    assert name(socket.gaierror(socket.EAI_NONAME, "")) == "dns"
    assert name(ssl.SSLCertVerificationError(1, "")) == "tls"
    assert name(ssl.SSLEOFError(8, "")) == "reset"


def test_reads_timeouts() -> None:
    assert name(TimeoutError()) == "timeout"
    assert name(asyncio.TimeoutError()) == "timeout"
    assert name(socket.timeout()) == "timeout"


def test_reads_what_an_exception_was_raised_from() -> None:
    class LibraryError(Exception):
        """Of a package of its own."""

    def wrap() -> None:
        try:
            raise ConnectionRefusedError(errno.ECONNREFUSED, "")
        except OSError as error:
            raise LibraryError from error

    # One that came up in the handling of another one is none of its doing.
    def stumble() -> None:
        try:
            raise TimeoutError
        except TimeoutError:
            raise KeyError  # noqa: B904

    assert name(raised(wrap)) == "refused"
    assert name(raised(stumble)) == "error"


def test_survives_exceptions_in_a_circle() -> None:
    first, second = ValueError(), ValueError()
    first.__cause__, second.__cause__ = second, first
    assert name(first) == "error"


class Failing(Exception):
    @property
    def response(self) -> Any:
        raise RuntimeError("not read yet")

    reason = exceptions = retry_after = response


@pytest.mark.parametrize(
    "attributes",
    [
        {"exceptions": ()},
        {"exceptions": None},
        {"exceptions": {"pear": 7}},
        {"exceptions": 7},
        {"kwargs": {}, "reason": 7, "os_error": "no"},
        {"response": {"Error": "bad"}},
        {"response": {"Error": {"Code": ["bad"]}}},
        {"response": {"ResponseMetadata": None}},
        {"sqlstate": "4000\xe9"},
        {"retry_after": "\ud800"},
        {"retry_after": b"7"},
        {"retry_after": 10**400},
    ],
    ids=str,
)
def test_survives_attributes_that_mean_something_else(
    attributes: dict[str, Any],
) -> None:
    def fail() -> None:
        raise error

    error = Exception("mine")
    vars(error).update(attributes)
    assert name(error) == "error"
    assert raised(stagger.Retrying("attempts=3").call, fail) is error


def test_survives_properties_that_fail() -> None:
    assert name(Failing()) == "error"


@pytest.mark.parametrize(
    "headers",
    [
        [("Retry-After", "7")],
        {"Retry-After": b"7"},
        {"Retry-After": "7\ud800"},
        7,
    ],
    ids=str,
)
def test_reads_a_status_beside_headers_of_another_kind(headers: Any) -> None:
    error = Exception("mine")
    answer = types.SimpleNamespace(status_code=503, headers=headers)
    vars(error)["response"] = answer
    outcome = stagger.classify(error)
    assert (outcome.name, outcome.delay) == ("503", 0)


def test_obeys_retry_after_however_it_is_given() -> None:
    import datetime

    for value in (7, 7.0, "7", datetime.timedelta(seconds=7)):
        error = TimeoutError()
        error.retry_after = value  # type: ignore[attr-defined]
        assert stagger.classify(error).delay == 7
    error.retry_after = object()  # type: ignore[attr-defined]
    assert stagger.classify(error).delay == 0


def test_reads_urllib(sink: Any) -> None:
    url = sink("--reply", "429", "--retry-after", "9")
    outcome = stagger.classify(raised(urllib.request.urlopen, url))
    assert (outcome.name, outcome.delay) == ("429", 9)
    assert name(raised(urllib.request.urlopen, f"http://{REFUSED}")) == (
        "refused"
    )
    url = sink("--reply", "reset")
    assert name(raised(urllib.request.urlopen, url)) == "reset"
    url = sink("--hang")
    assert name(raised(urllib.request.urlopen, url, timeout=0.1)) == "timeout"


def test_reads_requests(sink: Any) -> None:
    requests = package("requests")

    def get(url: str, timeout: float = 30) -> None:
        requests.get(url, timeout=timeout).raise_for_status()

    outcome = stagger.classify(
        raised(get, sink("--reply", "503", "--retry-after", "9"))
    )
    assert (outcome.name, outcome.delay) == ("503", 9)
    assert name(raised(get, sink("--reply", "404"))) == "404"
    assert name(raised(get, f"http://{REFUSED}")) == "refused"
    assert name(raised(get, sink("--reply", "reset"))) == "reset"
    assert name(raised(get, sink("--hang"), 0.1)) == "timeout"
    assert name(requests.ConnectTimeout()) == "connect-timeout"
    assert name(requests.exceptions.SSLError()) == "tls"


def test_reads_httpx(sink: Any) -> None:
    httpx = package("httpx")

    def get(url: str, timeout: float = 30) -> None:
        httpx.get(url, timeout=timeout, trust_env=False).raise_for_status()

    outcome = stagger.classify(
        raised(get, sink("--reply", "503", "--retry-after", "9"))
    )
    assert (outcome.name, outcome.delay) == ("503", 9)
    assert name(raised(get, f"http://{REFUSED}")) == "refused"
    assert name(raised(get, sink("--reply", "reset"))) == "reset"
    assert name(raised(get, sink("--hang"), 0.1)) == "timeout"
    assert name(httpx.ConnectTimeout("")) == "connect-timeout"
    answer = httpx.get(sink("--reply", "503"), trust_env=False)
    assert stagger.response(answer).name == "503"


def test_reads_aiohttp(sink: Any) -> None:
    aiohttp = package("aiohttp")

    async def get(url: str, timeout: float) -> None:
        limit = aiohttp.ClientTimeout(total=timeout)
        async with (
            aiohttp.ClientSession(timeout=limit) as session,
            session.get(url) as answer,
        ):
            answer.raise_for_status()

    def error_of(url: str, timeout: float = 30) -> BaseException:
        return raised(asyncio.run, get(url, timeout))

    outcome = stagger.classify(
        error_of(sink("--reply", "503", "--retry-after", "9"))
    )
    assert (outcome.name, outcome.delay) == ("503", 9)
    assert name(error_of(f"http://{REFUSED}")) == "refused"
    assert name(error_of(sink("--reply", "reset"))) == "reset"
    assert name(error_of(sink("--hang"), 0.1)) == "timeout"
    assert name(aiohttp.ConnectionTimeoutError()) == "connect-timeout"


def test_reads_grpc() -> None:
    grpc = package("grpc")
    channel = grpc.insecure_channel(REFUSED)
    error = raised(channel.unary_unary("/a.B/C"), b"", timeout=60)
    channel.close()
    assert isinstance(error, grpc.RpcError)
    assert name(error) == "grpc:14"

    class Pushed(grpc.RpcError):  # type: ignore[misc,name-defined]
        def code(self) -> Any:
            return grpc.StatusCode.RESOURCE_EXHAUSTED

        def trailing_metadata(self) -> Any:
            return (("grpc-retry-pushback-ms", "1500"),)

    outcome = stagger.classify(Pushed())
    assert (outcome.fault, outcome.delay) == ("pushback", 1.5)


def test_reads_psycopg() -> None:
    psycopg = package("psycopg")
    assert name(psycopg.errors.DeadlockDetected()) == "deadlock"
    assert name(psycopg.errors.UniqueViolation()) == "sqlstate:23505"
    host, port = REFUSED.split(":")
    error = raised(psycopg.connect, host=host, port=port, connect_timeout=2)
    assert name(error) == "connection-lost"
    assert name(psycopg.errors.ConnectionTimeout()) == "connect-timeout"


def test_reads_asyncpg() -> None:
    asyncpg = package("asyncpg")
    assert name(asyncpg.DeadlockDetectedError("")) == "deadlock"
    assert name(asyncpg.TooManyConnectionsError("")) == "too-many-connections"

    async def connect() -> None:
        host, port = REFUSED.split(":")
        await asyncpg.connect(host=host, port=int(port), timeout=2)

    assert name(raised(asyncio.run, connect())) == "refused"


def test_reads_mysql() -> None:
    pymysql = package("pymysql")
    for number, fault in ((1213, "deadlock"), (1205, "lock-timeout")):
        assert name(pymysql.err.OperationalError(number, "")) == fault
    assert name(pymysql.err.IntegrityError(1062, "")) == "mysql:1062"
    host, port = REFUSED.split(":")
    error = raised(pymysql.connect, host=host, port=int(port))
    assert stagger.classify(error).unsent


def test_reads_redis() -> None:
    redis = package("redis")
    host, port = REFUSED.split(":")
    client = redis.Redis(
        host=host,
        port=int(port),
        retry=package("redis.retry").Retry(
            package("redis.backoff").NoBackoff(), 0
        ),
    )
    assert name(raised(client.ping)) == "refused"
    assert name(redis.TimeoutError()) == "timeout"
    loading = stagger.classify(redis.BusyLoadingError())
    assert (loading.name, loading.unsent) == ("redis:LOADING", True)
    assert name(redis.ResponseError("WRONGTYPE no")) == "redis:WRONGTYPE"
    assert name(redis.exceptions.MaxConnectionsError()) == (
        "too-many-connections"
    )


def test_reads_brokers() -> None:
    class Closed(Exception):
        reply_code = 320

    class KafkaError(Exception):
        errno = 7

    KafkaError.__module__ = "kafka.errors"
    assert name(Closed()) == "amqp:320"
    assert name(KafkaError()) == "kafka:7"


def test_reads_botocore() -> None:
    exceptions = package("botocore.exceptions")

    def answer(status: int, code: str) -> Any:
        return exceptions.ClientError(
            {
                "Error": {"Code": code},
                "ResponseMetadata": {
                    "HTTPStatusCode": status,
                    "HTTPHeaders": {"retry-after": "3"},
                },
            },
            "GetItem",
        )

    assert name(answer(400, "ThrottlingException")) == "429"
    assert name(answer(400, "EC2ThrottledException")) == "429"
    assert name(answer(400, "RequestTimeout")) == "408"
    assert name(answer(400, "ValidationException")) == "400"
    outcome = stagger.classify(answer(503, "ServiceUnavailable"))
    assert (outcome.name, outcome.delay) == ("503", 3)
    url = f"http://{REFUSED}"
    assert name(exceptions.EndpointConnectionError(endpoint_url=url)) == (
        "refused"
    )
    assert name(exceptions.ReadTimeoutError(endpoint_url=url)) == "timeout"


def test_reads_groups() -> None:
    group = getattr(builtins, "ExceptionGroup", None)
    if group is not None:
        assert name(group("", [TimeoutError()])) == "timeout"


def test_makes_outcomes() -> None:
    outcome = stagger.Outcome.status(503)
    assert (outcome.cause, outcome.fault) == ("HTTP_503", "5xx")
    assert (outcome.category, outcome.is_ok) == ("server", False)
    assert outcome.sentence == "the server failed"
    assert repr(outcome) == "<Outcome 503>"
    changed = outcome.but(delay=2, permanent=True, unsent=True)
    assert (changed.delay, changed.permanent, changed.unsent) == (2, True, True)
    assert changed != outcome
    assert outcome == stagger.Outcome.status(503)
    assert stagger.Outcome.ok().is_ok
    assert outcome.but(delay=-1).delay == 0
    assert outcome.but(delay=1e300).delay == 365 * 86400
    with pytest.raises(ValueError, match="there is no fault `late`"):
        stagger.Outcome.failed("late")
    for make in (stagger.Outcome, stagger.Operation):
        with pytest.raises(TypeError, match="not made by a call"):
            make()
