"""What the tests share: packages that may be missing, and servers."""

from __future__ import annotations

import asyncio
import importlib
import os
import re
import subprocess
from collections.abc import Iterator
from typing import Any, Callable

import pytest

import stagger

STAGGER = os.environ.get("STAGGER")


def package(name: str) -> Any:
    """Imports it. A test is left out where it is missing, but not in CI."""
    try:
        return importlib.import_module(name)
    except ImportError:
        if os.environ.get("CI") == "true":
            raise
        pytest.skip(f"no {name}")


@pytest.fixture
def command() -> str:
    """The path of the command `stagger`."""
    if STAGGER is None:
        assert os.environ.get("CI") != "true", "STAGGER is not set"
        pytest.skip("STAGGER, the command, is not set")
    return STAGGER


@pytest.fixture
def time() -> Iterator[stagger.testing.SkippedTime]:
    """Virtual time for the test and its threads."""
    with stagger.testing.virtual_time(seed=1, process=True) as skipped:
        yield skipped


@pytest.fixture
def sink(command: str) -> Iterator[Callable[..., str]]:
    """Starts `stagger sink` and returns its URL."""
    running = []

    def start(*options: str) -> str:
        process = subprocess.Popen(
            [command, "sink", "--listen", "127.0.0.1:0", "-q", *options],
            stdout=subprocess.PIPE,
            text=True,
        )
        running.append(process)
        assert process.stdout is not None
        found = re.search(r"127\.0\.0\.1:\d+", process.stdout.readline())
        assert found is not None
        return f"http://{found[0]}/"

    yield start
    for process in running:
        process.terminate()
        process.communicate()


class Flaky:
    """Raises what it is told to, one after the other, and then returns."""

    def __init__(self, *errors: BaseException | type[BaseException]) -> None:
        self.errors = list(errors)
        self.calls = 0

    def __call__(self, result: object = "done") -> object:
        self.calls += 1
        if self.errors:
            raise self.errors.pop(0)
        return result

    async def later(self, result: object = "done") -> object:
        return self(result)


class Hang:
    """Never returns, and counts how often it was cancelled."""

    cancelled = 0

    async def __call__(self) -> None:
        try:
            await asyncio.sleep(3600)
        except asyncio.CancelledError:
            self.cancelled += 1
            raise


@pytest.fixture
def flaky() -> type[Flaky]:
    return Flaky
