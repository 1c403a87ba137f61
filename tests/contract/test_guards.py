"""The guards themselves: each rule is shown one thing that it must refuse and one that it must not."""

import ast
from pathlib import Path

import pytest

from tests.contract.source import Module
from tests.contract.test_layout import long_functions, unexplained_imports
from tests.contract.test_openapi import documented_path


def module(text: str) -> Module:
    return Module(Path(__file__), text, ast.parse(text))


def test_long_functions_are_found_and_short_ones_are_not():
    text = "def long():\n" + "    x = 1\n" * 70 + "async def short():\n    pass\n"
    assert [place.rpartition(":")[2] for place in long_functions((module(text),), 70)] == ["long has 71 lines"]


@pytest.mark.parametrize(
    ("body", "found"),
    [
        ("    import torch\n", 1),
        ("    # Heavy and optional.\n    import torch\n", 0),
        ("    import torch  # heavy and optional\n", 0),
        ("    # Heavy and optional.\n    import torch\n    import peft\n", 0),
        ("    # Heavy.\n    import torch\n    x = 1\n    import peft\n", 1),
    ],
)
def test_imports_inside_functions_need_a_reason(body: str, found: int):
    assert len(unexplained_imports(module("def f():\n" + body))) == found


@pytest.mark.parametrize(
    ("route", "path"),
    [("/a/<str:run_id>/b", "/a/{run_id}/b"), ("/a/<path:name>", "/a/{name}"), ("/a/@<version>", "/a/@{version}"), ("/a", "/a")],
)
def test_routes_are_spelled_as_the_document_spells_them(route: str, path: str):
    assert documented_path(route) == path
