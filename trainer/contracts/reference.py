"""`python -m trainer.contracts.reference > docs/run-config.md`: every field of a run's configuration, from the code.

Knows pydantic's description of the fields. Refuses to know what they do: their docstrings say it.
"""

import json
from collections.abc import Iterator
from types import UnionType
from typing import Any, Literal, NamedTuple, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from trainer.contracts.run_config import RunConfig

HEADER = """# The run configuration

Every field, its limits and its default, written from the code (`python -m trainer.contracts.reference`).
`prime train FILE --a.b VALUE` sets any of them behind the file. A field that is not here is refused by name, as is a value out of
its range.

In a file, `[[env]]` tables are the environments, `[[dataset]]` tables the datasets, and `[sampling]` holds `max_tokens` and
`temperature`. In a request body the first two are `environments` and `datasets`, and the other two stand at the top.
"""
LIMITS = {
    "ge": "≥ {}",
    "gt": "> {}",
    "le": "≤ {}",
    "lt": "< {}",
    "max_length": "at most {} long",
    "multiple_of": "multiple of {}",
}


class Row(NamedTuple):
    path: str
    kind: str
    limits: str
    default: str
    meaning: str


def document() -> str:
    lines = [HEADER, "| field | type | limits | default | meaning |", "|---|---|---|---|---|"]
    lines += [
        "| " + " | ".join([f"`{row.path}`", row.kind, row.limits, row.default, row.meaning]) + " |" for row in rows(RunConfig)
    ]
    return "\n".join(lines) + "\n"


def rows(model: type[BaseModel], prefix: str = "", known: dict[type[BaseModel], str] | None = None) -> Iterator[Row]:
    """One row per field, nested tables in their place; a table of a kind that was listed before is one row. A list of tables is
    spelled `name.N`, one of tables by name `name.<name>`; where they are of several kinds, one kind follows the other, each
    beginning with its `type`. `known` says where each kind of table was listed."""
    known = {} if known is None else known
    for name, field in model.model_fields.items():
        tables, place = _tables_of(field.annotation)
        path = f"{prefix}{name}{place}"
        if not tables:
            yield Row(path, _kind(field.annotation), _limits(field), _default(field), _meaning(field))
        for inner in tables:
            if inner in known:
                yield Row(f"{path}.…", f"as `{known[inner]}.…`", "", "", _meaning(field))
            else:
                known[inner] = path
                yield from rows(inner, f"{path}.", known)


def _tables_of(annotation: Any) -> tuple[list[type[BaseModel]], str]:
    """(the types that a table there may have, how one of several is spelled behind the field's name); none for a plain value."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation], ""
    found = [_tables_of(argument) for argument in get_args(annotation)]
    tables = [table for inner, _ in found for table in inner]
    inside = "".join(place for _, place in found)
    return tables, inside + {list: ".N", dict: ".<name>"}.get(get_origin(annotation), "") if tables else ""


def _kind(annotation: Any) -> str:
    arguments = [argument for argument in get_args(annotation) if argument is not type(None)]
    if get_origin(annotation) is Literal:
        return ", ".join(f"`{value}`" for value in arguments)
    if get_origin(annotation) is UnionType or (arguments and type(None) in get_args(annotation)):
        return " or ".join(_kind(argument) for argument in arguments)
    if hasattr(annotation, "__metadata__"):
        return _kind(annotation.__origin__)
    names = {str: "text", int: "whole number", float: "number", bool: "true or false", dict: "table", tuple: "list"}
    return names[get_origin(annotation) or annotation]


def _limits(field: FieldInfo) -> str:
    constraints = [*field.metadata]
    for part in (field.annotation, *get_args(field.annotation)):
        constraints += [entry for meta in getattr(part, "__metadata__", ()) for entry in getattr(meta, "metadata", [meta])]
    # A constraint that sets one limit alone has the others as None.
    found = [(text, getattr(entry, key, None)) for entry in constraints for key, text in LIMITS.items()]
    return ", ".join(text.format(limit) for text, limit in found if limit is not None)


def _meaning(field: FieldInfo) -> str:
    """On one line, since a line break would end the table."""
    return " ".join((field.description or "").split())


def _default(field: FieldInfo) -> str:
    if field.default is PydanticUndefined:
        return "must be given" if field.is_required() else ""
    return "" if field.default is None else f"`{json.dumps(field.default)}`"


if __name__ == "__main__":
    print(document(), end="")
