"""The examples of docs/python.md and of the modules work."""

from __future__ import annotations

import doctest
import importlib
import os
import pathlib
import pkgutil
import re
from typing import Any

import pytest

import stagger
from conftest import package

PAGE = pathlib.Path(__file__).parents[3] / "docs" / "python.md"
MODULES = [
    f"stagger.{each.name}" for each in pkgutil.iter_modules(stagger.__path__)
]


@pytest.mark.parametrize("name", ["stagger", *MODULES])
def test_examples_of_modules_work(name: str) -> None:
    assert doctest.testmod(importlib.import_module(name)).failed == 0


def test_examples_of_the_page_work(
    time: Any, command: str, monkeypatch: Any
) -> None:
    package("opentelemetry.trace")
    package("prometheus_client")
    folder = str(pathlib.Path(command).parent)
    monkeypatch.setenv("PATH", folder + os.pathsep + os.environ["PATH"])
    text = PAGE.read_text(encoding="utf-8")
    names: dict[str, Any] = {}
    for block in re.finditer(r"^```python\n(.*?)^```$", text, re.M | re.S):
        # Lines are counted as in the page.
        lines = text.count("\n", 0, block.start(1))
        exec(compile("\n" * lines + block[1], str(PAGE), "exec"), names)
    assert "storm" in names
