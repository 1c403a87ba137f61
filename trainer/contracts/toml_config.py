"""From the TOML of `prime train` to the body of `POST /rft/runs`: renames, flattening, overrides, legacy keys.

Knows how the public LoRA TOML spells things (wire, LoRA TOML). Refuses to know defaults and limits, which `run_config` alone
holds: an unknown key travels on as it stands, so that the server can name it to its sender. Pure: no files, no clock, no HTTP.
"""

import math
import tomllib
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from trainer.contracts.legacy_buffer import without_buffer

RUN_DEPTH_MAX = 16

LEGACY_NOTICES = {
    "trajectory_strategy": "trajectory_strategy is gone and was ignored: traces always branch where a prefix breaks",
    "max_async_level": "max_async_level is now max_off_policy_steps; its value was taken over",
}
"""Keys of older clients that are accepted, and what is said about each; `buffer` has words of its own (`legacy_buffer`)."""

EVAL_LEGACY_NOTICE = "eval.eval_base_model is gone and was ignored: version 0, which equals the base, is always evaluated"


class Translation(NamedTuple):
    """`env_files` name files of KEY=value lines that the caller reads: secrets never pass through here."""

    body: dict[str, Any]
    notices: list[str]
    env_files: list[str]


class OverrideError(ValueError):
    """An override cannot be applied; the text says which and why."""


def translate(config: Mapping[str, Any]) -> Translation:
    """The request body that a parsed TOML document means."""
    rest = dict(config)
    env_files = _env_files(rest)
    body: dict[str, Any] = {}
    _model(rest, body)
    _sources(rest, body)
    notices = _eval(rest, body)
    _tables(rest, body)
    body |= rest
    body, legacy = drop_legacy(body)
    return Translation(body, legacy + notices, env_files)


def drop_legacy(body: Mapping[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """A run request without the keys that only older clients send, and one notice per key that was there."""
    kept = {key: value for key, value in body.items() if key not in LEGACY_NOTICES}
    notices = [notice for key, notice in LEGACY_NOTICES.items() if key in body]
    if "buffer" in kept:
        kept, notice = without_buffer(kept)
        notices.append(notice)
    if "max_async_level" in body:
        kept.setdefault("max_off_policy_steps", body["max_async_level"])
    return kept, notices


def split_version(environment: str) -> tuple[str, str | None]:
    """`owner/name@version` → (`owner/name`, version)."""
    name, at, version = environment.partition("@")
    return name, version if at else None


def _env_files(rest: dict[str, Any]) -> list[str]:
    named = [rest.pop("env_file", None), *_as_list(rest.pop("env_files", None))]
    return [str(name) for name in named if name is not None]


def _model(rest: dict[str, Any], body: dict[str, Any]) -> None:
    model = rest.pop("model", None)
    if model is not None:
        body["model"] = _named(model)
    if rest.get("loss") == "rl":
        del rest["loss"]


def _named(model: Any) -> Any:
    return {"name": model} if isinstance(model, str) else model


def _teacher(table: Mapping[str, Any]) -> dict[str, Any]:
    """A file names a teacher's model by its name alone."""
    return {key: _named(value) if key == "model" else value for key, value in table.items()}


def _sources(rest: dict[str, Any], body: dict[str, Any]) -> None:
    entries = rest.pop("env", None)
    if entries is not None:
        body["environments"] = [_environment(entry) for entry in _as_list(entries)]
    datasets = rest.pop("dataset", None)
    if datasets is not None:
        body["datasets"] = [{"id": entry} if isinstance(entry, str) else entry for entry in _as_list(datasets)]


def _environment(entry: Any) -> Any:
    """One `[[env]]` table. The v1 shape names its package as `taskset.id`; what else a taskset sets stays for the server."""
    if not isinstance(entry, Mapping):
        return entry
    made = dict(entry)
    taskset = made.get("taskset")
    if "id" not in made and isinstance(taskset, Mapping) and "id" in taskset:
        made["id"] = taskset["id"]
        remainder = {key: value for key, value in taskset.items() if key != "id"}
        made["taskset"] = remainder
        if not remainder:
            del made["taskset"]
    if isinstance(made.get("teacher"), Mapping):
        made["teacher"] = _teacher(made["teacher"])
    if isinstance(made.get("seats"), Mapping):
        made["seats"] = {name: _seat(seat) for name, seat in made["seats"].items()}
    if isinstance(made.get("id"), str):
        made["id"], version = split_version(made["id"])
        if version is not None:
            made.setdefault("version", version)
    return made


def _seat(table: Any) -> Any:
    """A seat's model is named like a teacher's."""
    return _teacher(table) if isinstance(table, Mapping) else table


def _eval(rest: dict[str, Any], body: dict[str, Any]) -> list[str]:
    """`[eval]` counts only when it names environments, as the public client has it."""
    plan = rest.pop("eval", None)
    if not isinstance(plan, Mapping):
        if plan is not None:
            body["eval"] = plan
        return []
    made = {key: value for key, value in plan.items() if key not in {"env", "eval_base_model"}}
    entries = [*_as_list(plan.get("env")), *_as_list(made.get("environments"))]
    if entries:
        body["eval"] = made | {"environments": [_environment(entry) for entry in entries]}
    return [EVAL_LEGACY_NOTICE] if "eval_base_model" in plan else []


def _tables(rest: dict[str, Any], body: dict[str, Any]) -> None:
    """Tables that the request spells otherwise: `[sampling]` and `[infrastructure]` are flat there, `[wandb]` sits deeper, the
    model of `[teacher]` has a name."""
    if isinstance(rest.get("teacher"), Mapping):
        rest["teacher"] = _teacher(rest["teacher"])
    for name in ("sampling", "infrastructure"):
        if isinstance(rest.get(name), Mapping):
            body |= rest.pop(name)
    if "wandb" in rest:
        body["monitoring"] = {"wandb": rest.pop("wandb")}


def _as_list(value: Any) -> list[Any]:
    if value is None:
        return []
    return list(value) if isinstance(value, list | tuple) else [value]


def parse_overrides(words: Iterable[str]) -> list[tuple[str, str]]:
    """`--a.b 1 --flag --c=2` → [("a.b", "1"), ("flag", "true"), ("c", "2")]. Dashes inside a key mean underscores."""
    pairs: list[tuple[str, str]] = []
    pending: str | None = None
    for word in words:
        if word.startswith("--"):
            if pending is not None:
                pairs.append((pending, "true"))
            key, equals, value = word[2:].partition("=")
            pending = None if equals else key.replace("-", "_")
            if equals:
                pairs.append((key.replace("-", "_"), value))
        elif pending is None:
            raise OverrideError(f"'{word}' follows no --key; overrides are --key value or --key=value")
        else:
            pairs.append((pending, word))
            pending = None
    return [*pairs, (pending, "true")] if pending is not None else pairs


def apply_override(config: dict[str, Any], key: str, text: str) -> Any:
    """Set one dotted key of a parsed TOML document in place; a number walks into a list. Returns the value that was set."""
    *path, last = _path(key)
    node: Any = config
    for index, part in enumerate(path):
        node = _child(node, part, ".".join(path[: index + 1]))
    value = parse_value(text)
    if isinstance(node, list):
        node[_position(node, last, key)] = value
    elif isinstance(node, dict):
        node[last] = value
    else:
        raise OverrideError(f"--{key}: '{'.'.join(path)}' is not a table")
    return value


def _path(key: str) -> list[str]:
    parts = key.split(".")
    if not all(parts) or len(parts) > RUN_DEPTH_MAX:
        raise OverrideError(f"--{key}: not a dotted name of a field")
    return parts


def _child(node: Any, part: str, so_far: str) -> Any:
    if isinstance(node, list):
        return node[_position(node, part, so_far)]
    if isinstance(node, dict):
        return node.setdefault(part, {})
    raise OverrideError(f"--{so_far}: the name before '{part}' is not a table")


def _position(node: list[Any], part: str, key: str) -> int:
    if not part.isdigit() or int(part) >= len(node):
        raise OverrideError(f"--{key}: the list has {len(node)} entries, counted from 0; '{part}' is none of them")
    return int(part)


def parse_value(text: str) -> Any:
    """A TOML value where the text is one that JSON has too (`1e-3`, `true`, `[1, 2]`, `"x"`), else the text itself: a date, or
    `nan`, is more likely a name."""
    try:
        value = tomllib.loads(f"value = {text}")["value"] if "\n" not in text else text
    except tomllib.TOMLDecodeError:
        return text
    is_json = isinstance(value, bool | int | str | list | dict) or (isinstance(value, float) and math.isfinite(value))
    return value if is_json else text
