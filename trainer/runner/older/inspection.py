"""Rows looked at without a model: can they be asked, are they told apart, and does somebody play them?

Knows the datasets of this interface. Refuses to judge what a row asks. What is found names split, row and field.
"""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from trainer.contracts.release_checks import (
    LIST_MAX,
    ROW_BYTES_MAX,
    HarnessFit,
    Inspection,
    InspectionRequest,
    Needs,
    SplitSeen,
    TaskProblem,
    spread,
)
from trainer.contracts.rollouts import TEXT_MAX
from trainer.runner.faults import clean
from trainer.runner.limits import NAME_CHARS
from trainer.runner.older.groups import members, routed
from trainer.runner.older.messages import field, text_of


def inspect(env: Any, splits: Mapping[str, Any], asked: InspectionRequest) -> Inspection:
    """`splits` are the datasets by name, the one whose rows are played first."""
    seen, problems = [], []
    for name, rows in splits.items():
        picked = spread(len(rows), asked.tasks_per_split)
        seen.append(SplitSeen(name=name, tasks_count=len(rows), checked=picked))
        keys: dict[str, int] = {}
        for index in picked:
            found = [*_key(rows[index], index, keys), *_form(env, rows[index])]
            problems += [TaskProblem(split=name, task=index, field=part, message=clean(text, TEXT_MAX)) for part, text in found]
    return Inspection(splits=seen, problems=problems[:LIST_MAX], needs=_needs(env))


def _key(row: Mapping[str, Any], index: int, keys: dict[str, int]) -> Iterator[tuple[str, str]]:
    if (other := keys.setdefault(str(row.get("example_id", index)), index)) != index:
        yield "example_id", f"is that of row {other} too: they must be unique"


def _form(env: Any, row: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    prompt = row.get("prompt")
    if not isinstance(prompt, str | list):
        yield "prompt", f"must be a text or a list of messages, not {type(prompt).__name__}"
    elif not (prompt.strip() if isinstance(prompt, str) else any(_says_something(message) for message in prompt)):
        yield "prompt", "is empty: the model would be asked nothing"
    if (size := len(json.dumps(row, default=str))) > ROW_BYTES_MAX:
        yield "prompt", f"the row is {size} bytes as JSON, the limit is {ROW_BYTES_MAX}"
    try:
        routed(env, row)
    except (KeyError, TypeError, ValueError) as error:
        yield "info", f"names nobody who plays the row: {error}"


def _says_something(message: Any) -> bool:
    return isinstance(field(message, "content"), list) or bool(text_of(message).strip())


def _needs(env: Any) -> Needs:
    """Tools are the package's functions; nothing else is asked for, or the environment would not have been loaded."""
    tools = {clean(tool.name, NAME_CHARS) for member in members(env) for tool in member.tool_defs or []}
    plays = HarnessFit(harness=clean(type(env).__name__, NAME_CHARS), evaluate=True, train=True)
    return Needs(tools=sorted(tools)[:LIST_MAX], harnesses=[plays])
