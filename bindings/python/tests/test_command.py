"""The library of Python decides as that of C does."""

from __future__ import annotations

import asyncio
import os
import pathlib
import shutil
import subprocess
import sys
from typing import Any

import pytest

import stagger
from conftest import package

POLICIES = [
    "exponential base=500ms jitter=none attempts=6",
    "linear base=100ms jitter=none attempts=5",
    "list=1s,5s,7s jitter=none attempts=6",
    "exponential base=500ms jitter=full attempts=6",
    "jitter=equal attempts=5",
    "jitter=25% attempts=5",
]


def waits_of(policy: str, seed: int) -> list[float]:
    def fail() -> None:
        raise ConnectionRefusedError

    with stagger.testing.virtual_time(seed=seed) as time:
        with pytest.raises(ConnectionRefusedError):
            stagger.call(policy, fail)
        return time.waits


@pytest.mark.parametrize("policy", POLICIES)
def test_waits_as_planned(command: str, policy: str) -> None:
    planned = stagger.plan(policy, command=command)["policies"][0]
    assert stagger.Policy(policy).text == planned["text"]
    for seed in range(20):
        waits = waits_of(policy, seed)
        assert len(waits) == len(planned["waits"])
        for wait, row in zip(waits, planned["waits"]):
            assert row["wait_min_ms"] <= wait * 1000 <= row["wait_max_ms"]


C = """
#include <stdio.h>
#include <stdlib.h>
#include <stagger/stagger.h>

static stg_ns now_at;

static stg_ns now(void *rng) { return rng == NULL ? 0 : now_at; }

static bool sleep_to(void *rng, stg_ns until_at, const stg_cancel *cancel)
{
    if (rng == NULL || cancel != NULL)
        return false;
    printf("%llu\\n", (unsigned long long)(until_at - now_at));
    now_at = until_at;
    return true;
}

static uint64_t draw(void *rng) { return stg_rng_next(rng); }

static stg_outcome fail(void *ctx)
{
    return ctx == NULL ? stg_failed(STG_FAULT_REFUSED) : stg_ok();
}

int main(int argc, char **argv)
{
    stg_rng rng = stg_rng_seed(argc > 2 ? strtoull(argv[2], NULL, 10) : 0);
    stg_env env = {now, sleep_to, draw, &rng};
    stg_policy policy;

    if (stg_policy_parse(&policy, argv[1], NULL) != STG_OK)
        return 2;
    return stg_call(&policy, &(stg_with){.env = &env}, fail, NULL, NULL);
}
"""


def test_draws_as_the_library_of_c(
    command: str, tmp_path: pathlib.Path
) -> None:
    source = pathlib.Path(__file__).parents[3]
    library = pathlib.Path(command).parent / "src" / "libstagger.a"
    compiler = os.environ.get("CC", "cc")
    if shutil.which(compiler) is None or not library.exists():
        assert os.environ.get("CI") != "true"
        pytest.skip("no compiler, or no libstagger.a beside the command")
    program = tmp_path / "program.c"
    program.write_text(C)
    words: list[Any] = [
        "-std=c11",
        f"-I{source}/include",
        program,
        library,
        "-o",
    ]
    subprocess.run([compiler, *words, tmp_path / "program"], check=True)
    for policy in [*POLICIES, "jitter=decorrelated attempts=9"]:
        for seed in (0, 1, 2**64 - 1):
            done = subprocess.run(
                [tmp_path / "program", policy, str(seed)],
                stdout=subprocess.PIPE, text=True, check=True,
            )  # fmt: skip
            expected = [int(line) / 1e9 for line in done.stdout.split()]
            assert waits_of(policy, seed) == expected


def test_has_the_faults_of_the_command(command: str) -> None:
    plan = stagger.plan("retry=default", command=command)
    for row in plan["policies"][0]["faults"]:
        if row["fault"].isdigit():
            outcome = stagger.Outcome.status(int(row["fault"]))
        elif "xx" in row["fault"]:
            continue
        else:
            try:
                outcome = stagger.Outcome.failed(row["fault"])
            except ValueError:  # a code: "grpc:14", and the like
                continue
        assert outcome.category == row["category"], row
        assert outcome.cause == row["cause"], row


def test_shows_a_plan_in_a_notebook(command: str) -> None:
    plan = stagger.plan("backend", "client", command=command)
    assert [policy["attempts_max"] for policy in plan["policies"]] == [5, 4]
    assert plan._repr_html_().startswith("<pre>")
    with pytest.raises(ValueError, match="attempts"):
        stagger.plan("attempts=0", command=command)


def test_simulates(command: str) -> None:
    found = stagger.simulate(
        policy={"ours": "client", "theirs": stagger.Policy("unjittered")},
        clients=[20], reps=3, command=command,
    )  # fmt: skip
    assert "ours" in str(dict(found))
    page = found._repr_html_()
    assert page.startswith("<iframe")
    assert "&lt;svg" in page
    with pytest.raises(ValueError, match="--rep"):
        stagger.simulate("overload", repetitions=3, command=command)


def test_says_that_the_command_is_missing() -> None:
    with pytest.raises(FileNotFoundError, match="install it"):
        stagger.plan("none", command="/nowhere/stagger")


def test_retries_a_real_server(sink: Any) -> None:
    import urllib.request

    @stagger.retry("fixed base=1ms attempts=3")
    def ask(url: str) -> int:
        with urllib.request.urlopen(url) as answer:
            status: int = answer.status
            return status

    url = sink("--reply", "503x2,200")
    assert ask(url) == 200
    assert ask.retry.statistics.retries == 2

    async def asks() -> int:
        return await asyncio.get_running_loop().run_in_executor(None, ask, url)

    assert asyncio.run(asks()) == 200


def test_retries_httpx_on_asyncio(sink: Any) -> None:
    httpx = package("httpx")

    @stagger.retry("fixed base=1ms attempts=3", when_result=stagger.response)
    async def ask() -> Any:
        async with httpx.AsyncClient(trust_env=False) as client:
            return await client.get(url, timeout=30)

    url = sink("--reply", "503x2,200")
    assert asyncio.run(ask()).status_code == 200
    assert ask.retry.statistics.retries == 2


def test_has_an_example_that_works(sink: Any) -> None:
    source = pathlib.Path(__file__).parents[3]
    url = sink("--reply", "503,200")
    words = [sys.executable, source / "examples/python/fetch.py", url]
    done = subprocess.run(words, stderr=subprocess.PIPE, text=True, check=True)
    first, second = done.stderr.splitlines()
    assert first.startswith("fetch: attempt 1: 503: <HTTPError 503")
    assert second.startswith("fetch: attempt 2: ok; done after 2 attempts")
