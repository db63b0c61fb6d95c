"""Conflicts of a real PostgreSQL, where it is installed."""

from __future__ import annotations

import asyncio
import os
import pathlib
import subprocess
from collections.abc import Iterator
from typing import Any

import pytest

import stagger
from conftest import package

SERVER = pathlib.Path(__file__).parents[3] / "scripts" / "postgres"
POLICY = "fixed base=0 attempts=3"


@pytest.fixture(scope="module")
def url(tmp_path_factory: Any) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("postgres") / "server"
    up = subprocess.run(
        [SERVER, "up", folder], stdout=subprocess.PIPE, text=True, check=False
    )
    if up.returncode == 77 and os.environ.get("CI") != "true":
        pytest.skip("no PostgreSQL")
    up.check_returncode()
    yield up.stdout.strip()
    subprocess.run([SERVER, "down", folder], check=True)


def test_repeats_a_transaction_that_psycopg_could_not_serialize(
    url: str,
) -> None:
    psycopg = package("psycopg")
    with psycopg.connect(url, autocommit=True) as other:
        other.execute("create table stock (item text, count int)")
        other.execute("insert into stock values ('pear', 0)")

        @stagger.retry(POLICY)
        def sell() -> None:
            with psycopg.connect(url) as db:
                db.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
                db.execute("select count from stock").fetchone()
                if not disturbed:
                    disturbed.append(1)
                    other.execute("update stock set count = count + 10")
                db.execute("update stock set count = count + 1")

        disturbed: list[int] = []
        sell()
        assert sell.retry.statistics.retries == 1
        row = other.execute("select count from stock").fetchone()
        assert row == (11,)


def test_repeats_a_transaction_that_asyncpg_had_no_lock_for(url: str) -> None:
    asyncpg = package("asyncpg")

    async def main() -> None:
        holder = await asyncpg.connect(url)
        seeker = await asyncpg.connect(url)
        await holder.execute("create table locked ()")
        held = holder.transaction()
        await held.start()
        await holder.execute("lock table locked")
        async for attempt in stagger.attempts(POLICY):
            with attempt:
                numbers.append(attempt.number)
                async with seeker.transaction():
                    await seeker.execute("lock table locked nowait")
            if attempt.number == 1:
                await held.rollback()
        await holder.close()
        await seeker.close()

    numbers: list[int] = []
    asyncio.run(main())
    assert numbers == [1, 2]
