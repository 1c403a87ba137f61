"""Files of a new environment, written from templates: a package that passes its own tests, and a run on it.

Knows names and templates. Refuses to know HTTP, and to overwrite anything.
"""

import json
import re
from collections.abc import Iterable, Mapping
from importlib.resources import files
from pathlib import Path
from string import Template
from typing import Any

from primecli.output import CliError

NAME = re.compile(r"[a-z0-9]+(?:[-_][a-z0-9]+)*")
NAME_LENGTH_MAX = 100
EXAMPLE = "Two digits in, the sum of them out: an example to write your own task over."
TOKENS_OF_EXAMPLE = 16
TOKENS_OF_ROWS = 256


def create_environment(root: Path, name: str, *, model: str, tasks: list[dict[str, Any]] | None = None) -> list[Path]:
    """Write the package into an empty or absent folder and return its files. With `tasks` they are its rows."""
    if not NAME.fullmatch(name) or len(name) > NAME_LENGTH_MAX:
        raise CliError(f"'{name}' is no name for an environment", hint="lower-case letters, digits and single hyphens: my-env")
    if root.exists() and any(root.iterdir()):
        raise CliError(f"{root} is not empty", hint="name another folder: prime init NAME --path FOLDER")
    module = name.replace("-", "_")
    if not module.isidentifier():
        raise CliError(f"'{name}' begins with a digit, which no Python package does", hint=f"env-{name}")
    values = _values(name, module, model, tasks)
    plan = {
        "pyproject.toml": "pyproject.toml",
        "README.md": "README.md",
        "train.toml": "train.toml",
        f"{module}/__init__.py": "sums_init.py" if tasks is None else "rows_init.py",
        f"{module}/scoring.py": "scoring.py",
        "tests/__init__.py": None,
        "tests/test_taskset.py": "test_taskset.py",
    }
    written = [_write(root / path, rendered(template, values) if template else "") for path, template in plan.items()]
    if tasks is not None:
        written.append(_write(root / module / "rows.jsonl", _lines(tasks)))
    return written


def rendered(template: str, values: Mapping[str, Any]) -> str:
    """A template of this package with its `$names` filled in."""
    text = (files("primecli") / "templates" / f"{template}.in").read_text(encoding="utf-8")
    return Template(text).substitute(values)


def _values(name: str, module: str, model: str, tasks: list[dict[str, Any]] | None) -> dict[str, Any]:
    return {
        "name": name,
        "module": module,
        "taskset": "".join(part.title() for part in module.split("_")) + "Taskset",
        "description": EXAMPLE if tasks is None else f"{len(tasks):,} questions with one right answer each.",
        "model": model,
        "environment": name,
        "run_name": name,
        "file": "train.toml",
        "max_tokens": TOKENS_OF_EXAMPLE if tasks is None else TOKENS_OF_ROWS,
    }


def _lines(tasks: Iterable[Mapping[str, Any]]) -> str:
    return "".join(json.dumps(task, ensure_ascii=False) + "\n" for task in tasks)


def _write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path
