"""The project's own Python files, parsed once: what the guards of this folder read."""

import ast
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from tests.fixtures.places import REPOSITORY

ROOTS = ("platform", "workers", "trainer", "tests", "examples")
SKIPPED = frozenset({"__pycache__", "node_modules", ".venv"})

Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True)
class Module:
    path: Path
    text: str
    tree: ast.Module

    @property
    def name(self) -> str:
        return self.path.relative_to(REPOSITORY).as_posix()

    @property
    def lines(self) -> list[str]:
        return self.text.splitlines()

    def functions(self) -> list[Function]:
        return [node for node in ast.walk(self.tree) if isinstance(node, Function)]


@cache
def modules() -> tuple[Module, ...]:
    """Every module of ours. Tenants' code in test data is not ours to judge."""
    paths = (path for root in ROOTS for path in sorted((REPOSITORY / root).rglob("*.py")))
    return tuple(parse(path) for path in paths if _ours(path))


def _ours(path: Path) -> bool:
    parts = path.relative_to(REPOSITORY).parts
    return not SKIPPED & set(parts) and parts[:2] != ("tests", "data")


def parse(path: Path) -> Module:
    text = path.read_text()
    return Module(path, text, ast.parse(text))


def product_modules() -> tuple[Module, ...]:
    return tuple(module for module in modules() if not module.name.startswith(("tests/", "examples/")))
