"""How a taskset's configuration names its splits: the setting, the value that it has, and the others that it may have.

Knows types of settings. Refuses to load anything: whether a split has tasks is the inspection's to find out.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import Enum
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin

from pydantic import BaseModel

from trainer.contracts.release_checks import LIST_MAX

SETTINGS = ("split", "dataset_split")
"""The first one that there is counts. The library itself has none; its own tasksets use both names."""


@dataclass(frozen=True, slots=True)
class Split:
    """`name` is empty for a taskset without such a setting. `changes` of the configuration choose it: none for the one that is
    configured. `open_setting` names the setting where it takes values that cannot be listed."""

    name: str = ""
    changes: dict[str, Any] = field(default_factory=dict)
    open_setting: str = ""


def splits_of(config: BaseModel) -> Iterator[Split]:
    """The configured one, then each other value that a `Literal` or an enum allows. Of a plain text nobody knows the others."""
    fields = type(config).model_fields
    setting = next((name for name in SETTINGS if name in fields), None)
    if setting is None:
        yield Split()
        return
    values, configured = _values(fields[setting].annotation), getattr(config, setting)
    yield Split(_name(configured), open_setting="" if values else setting)
    for value in values[:LIST_MAX]:
        if _name(value) != _name(configured):
            yield Split(_name(value), {setting: value})


def _values(kind: Any) -> list[Any]:
    """What a setting of this type may be; nothing where the type allows any text. None is no split of its own."""
    if get_origin(kind) is Literal:
        return list(get_args(kind))
    if isinstance(kind, type) and issubclass(kind, Enum):
        return list(kind)
    if get_origin(kind) in (Union, UnionType):
        listed = [_values(part) for part in get_args(kind) if part is not NoneType]
        return [value for values in listed for value in values] if all(listed) else []
    return []


def _name(value: Any) -> str:
    """As `args` of an `[[env]]` table says it."""
    return "" if value is None else str(value.value if isinstance(value, Enum) else value)
