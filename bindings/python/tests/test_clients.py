"""Real clients, retried: what they raise, and what comes of it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from concurrent import futures
from typing import Any

import pytest

import stagger
from conftest import package

POLICY = "fixed base=1ms jitter=none attempts=4"


@pytest.fixture
def skipped() -> Iterator[stagger.testing.SkippedTime]:
    with stagger.testing.no_waits(process=True) as time:
        yield time


@pytest.fixture
def shaky(sink: Any, skipped: Any) -> str:
    """A server that is well at the third request."""
    url: str = sink("--reply", "503,429,200", "--retry-after", "7", "--close")
    return url


def check(function: Any, waits: list[float], asked: float = 7) -> None:
    """At the third attempt it succeeded, and waited as the server asked."""
    statistics = function.retry.statistics
    assert (statistics.attempts, statistics.retries) == (3, 2)
    assert statistics.ends == {"done": 1}
    assert waits == [asked, asked]


def test_retries_requests(shaky: str, skipped: Any) -> None:
    requests = package("requests")

    @stagger.retry(POLICY, method="GET")
    def get() -> int:
        answer = requests.get(shaky, timeout=30)
        answer.raise_for_status()
        return int(answer.status_code)

    assert get() == 200
    check(get, skipped.waits)


def test_retries_httpx(shaky: str, skipped: Any) -> None:
    httpx = package("httpx")

    @stagger.retry(POLICY, method="GET")
    async def get() -> int:
        async with httpx.AsyncClient(trust_env=False) as client:
            answer = await client.get(shaky)
        answer.raise_for_status()
        return int(answer.status_code)

    assert asyncio.run(get()) == 200
    check(get, skipped.waits)


def test_retries_aiohttp_that_returns_its_failures(
    shaky: str, skipped: Any
) -> None:
    aiohttp = package("aiohttp")

    @stagger.retry(POLICY, when_result=stagger.response)
    async def get() -> Any:
        async with aiohttp.ClientSession() as session, session.get(shaky) as a:
            await a.read()
            return a

    assert asyncio.run(get()).status == 200
    check(get, skipped.waits)


def test_retries_grpc(skipped: Any) -> None:
    grpc = package("grpc")
    codes = [grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.RESOURCE_EXHAUSTED]

    def answer(request: bytes, context: Any) -> bytes:
        if codes:
            context.set_trailing_metadata((("grpc-retry-pushback-ms", "20"),))
            context.abort(codes.pop(0), "later")
        return request

    class Service(grpc.GenericRpcHandler):  # type: ignore[misc,name-defined]
        def service(self, details: Any) -> Any:
            return grpc.unary_unary_rpc_method_handler(answer)

    server = grpc.server(futures.ThreadPoolExecutor(1))
    server.add_generic_rpc_handlers((Service(),))
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    channel = grpc.insecure_channel(
        f"127.0.0.1:{port}", options=(("grpc.enable_retries", 0),)
    )

    @stagger.retry(POLICY)
    def call() -> bytes:
        answer: bytes = channel.unary_unary("/a.B/C")(b"7", timeout=60)
        return answer

    assert call() == b"7"
    check(call, skipped.waits, asked=0.02)
    channel.close()
    server.stop(None)


def name(error: BaseException) -> str:
    return stagger.classify(error).name


def test_reads_psycopg2() -> None:
    psycopg2 = package("psycopg2")
    with pytest.raises(psycopg2.OperationalError) as caught:
        psycopg2.connect(host="127.0.0.1", port=9, connect_timeout=2)
    assert name(caught.value) == "connection-lost"
    assert name(psycopg2.InterfaceError("")) == "error"


def test_reads_mysql_connector() -> None:
    package("mysql.connector")
    errors = package("mysql.connector.errors")
    deadlock = errors.get_mysql_exception(1213, "Deadlock", "40001")
    assert name(deadlock) == "deadlock"
    assert name(errors.get_mysql_exception(1062, "Duplicate", "23000")) == (
        "mysql:1062"
    )
    with pytest.raises(errors.Error) as caught:
        package("mysql.connector").connect(
            host="127.0.0.1", port=9, user="a", use_pure=True
        )
    outcome = stagger.classify(caught.value)
    assert (outcome.name, outcome.unsent) == ("connection-lost", True)


def test_reads_pika_and_amqp() -> None:
    pika = package("pika")
    assert name(pika.exceptions.ConnectionClosedByBroker(320, "")) == "amqp:320"
    assert name(pika.exceptions.ChannelClosedByBroker(404, "")) == "amqp:404"
    amqp = package("amqp")
    assert name(amqp.exceptions.ConnectionForced("")) == "amqp:320"
    assert name(amqp.exceptions.NotFound("")) == "amqp:404"


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # its own
def test_reads_clients_of_kafka() -> None:
    kafka = package("kafka.errors")
    assert name(kafka.RequestTimedOutError()) == "kafka:7"
    assert name(kafka.TopicAuthorizationFailedError()) == "kafka:29"
    aiokafka = package("aiokafka.errors")
    assert name(aiokafka.RequestTimedOutError()) == "kafka:7"
    confluent = package("confluent_kafka")
    error = confluent.KafkaException(
        confluent.KafkaError(confluent.KafkaError.REQUEST_TIMED_OUT)
    )
    assert name(error) == "kafka:7"
