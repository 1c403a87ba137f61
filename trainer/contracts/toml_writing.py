"""From a run's configuration to the TOML of `prime train` that means it: the way back of `toml_config.translate`.

Knows how the public TOML spells things. What equals its default is left out, so that a file says what somebody chose. Pure.
"""

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from trainer.contracts.run_config import RunConfig

_BARE_KEY = re.compile(r"^[A-Za-z0-9_-]+$")
SAMPLING = ("max_tokens", "temperature")
"""Flat in the request, a table in the file."""

Table = Mapping[str, Any]


def chosen(config: RunConfig) -> dict[str, Any]:
    """The request body without what equals the defaults."""
    return config.model_dump(mode="json", exclude_defaults=True, exclude_none=True)


def changed_paths(config: RunConfig) -> list[str]:
    """Dotted paths of the fields that differ from the defaults: `environments.0.id`."""
    return sorted(_paths(chosen(config), ""))


def write_toml(config: RunConfig) -> str:
    """A document that `translate` reads as the same request."""
    body = chosen(config)
    datasets, environments, plan = body.pop("datasets", []), body.pop("environments", []), body.pop("eval", None)
    head = {name: body.pop(name) for name in ("name",) if name in body} | {"model": body.pop("model")["name"]}
    sampling = {name: body.pop(name) for name in SAMPLING if name in body}
    tables = {name: body.pop(name) for name in list(body) if isinstance(body[name], dict)}
    parts = [_pairs(head | body)]
    parts += [f"[[dataset]]\n{_pairs(dataset)}" for dataset in datasets]
    parts += [f"[[env]]\n{_pairs(environment)}" for environment in environments]
    parts += [f"[{name}]\n{_pairs(table)}" for name, table in ({"sampling": sampling} | tables).items() if table]
    if plan is not None:
        entries = plan.pop("environments", [])
        parts += [f"[eval]\n{_pairs(plan)}" if plan else "", *(f"[[eval.env]]\n{_pairs(entry)}" for entry in entries)]
    return "\n".join(part for part in parts if part)


def _paths(node: Any, prefix: str) -> Iterator[str]:
    if isinstance(node, dict) and node:
        for name, value in node.items():
            yield from _paths(value, f"{prefix}{name}.")
    elif isinstance(node, list) and any(isinstance(entry, dict) for entry in node):
        for index, entry in enumerate(node):
            yield from _paths(entry, f"{prefix}{index}.")
    else:
        yield prefix.removesuffix(".")


def _pairs(table: Table) -> str:
    return "".join(f"{_key(name)} = {_value(value)}\n" for name, value in table.items())


def _key(name: str) -> str:
    return name if _BARE_KEY.match(name) else _text(name)


def _value(value: Any) -> str:
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{_key(name)} = {_value(one)}" for name, one in value.items() if one is not None) + " }"
    if isinstance(value, list):
        return "[" + ", ".join(_value(one) for one in value) + "]"
    if isinstance(value, str):
        return _text(value)
    return str(value).lower() if isinstance(value, bool) else repr(value)


def _text(value: str) -> str:
    """A basic string. JSON's escapes are TOML's too; DEL is the one character that TOML alone refuses."""
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
