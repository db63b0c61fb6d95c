"""What mypy --strict sees of a decorated function."""

from __future__ import annotations

import os
import pathlib
import subprocess
import sys

import stagger
from conftest import package

SOURCE = """
import stagger
from typing_extensions import assert_type

@stagger.retry("attempts=3", on=OSError)
def stock(item: str, *, most: int = 7) -> int: ...

@stagger.retry()
async def later(item: str) -> bytes: ...

class Shop:
    @stagger.retry()
    def buy(self, item: str) -> float: ...

assert_type(stock("pear", most=3), int)
assert_type(Shop().buy("pear"), float)
assert_type(Shop.buy(Shop(), "pear"), float)
assert_type(stagger.call("none", len, "word"), int)
assert_type(stock.retry.statistics.calls, int)

async def main() -> None:
    assert_type(await later("pear"), bytes)

stock(7)  # error: arg-type
stock("pear", least=3)  # error: call-arg
Shop().buy()  # error: call-arg
stagger.retry(attempts=3)  # error: call-arg
"""


def test_keeps_signatures(tmp_path: pathlib.Path) -> None:
    package("mypy")
    program = tmp_path / "program.py"
    program.write_text(SOURCE)
    sources = pathlib.Path(stagger.__file__).parents[1]
    paths = (
        {} if sources.name == "site-packages" else {"MYPYPATH": str(sources)}
    )
    found = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--no-error-summary",
         "--disable-error-code", "empty-body", program.name],
        cwd=tmp_path, env={**os.environ, **paths},
        stdout=subprocess.PIPE, text=True, check=False,
    )  # fmt: skip
    expected = [
        f"{number}:{line.rpartition(' ')[2]}"
        for number, line in enumerate(SOURCE.splitlines(), 1)
        if "# error: " in line
    ]
    said = [
        line.split(":")[1] + ":" + line.rpartition("[")[2].rstrip("]")
        for line in found.stdout.splitlines()
        if ": error: " in line
    ]
    assert said == expected, found.stdout
