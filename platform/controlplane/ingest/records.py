"""From a row of a trainer elsewhere to a rollout as our pages and clients read it: a summary, and a record with its messages.

Knows what the columns mean. Refuses to know files and rows of ours. Such a trainer tells neither token ids nor the versions that
answered: those stay empty, and nothing is made up for them.
"""

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from controlplane.core.text import replaced
from controlplane.ingest.parquet import Row
from trainer.contracts.internal import RolloutSummary

TRAIN_TAG = "train"
TAGS_MAX = 16
TAG_LENGTH_MAX = 64
PREVIEW_LENGTH_MAX = 200
DEPTH_MAX = 32
MILLISECONDS = 1000.0
Message = dict[str, Any]


@dataclass(frozen=True)
class Sample:
    """One rollout: what lists show, and the whole record."""

    tag: str
    summary: RolloutSummary
    record: dict[str, Any]


def samples_of(rows: Sequence[Row], *, step: int, upload: str) -> list[Sample]:
    """In the order of the rows. `upload` names the file: a trainer sends several of one step."""
    return [_sample(row, index, step, upload) for index, row in enumerate(rows)]


def kept_samples(tag: str, records: Sequence[dict[str, Any]]) -> list[Sample]:
    """Samples that were kept before, from their records."""
    names = RolloutSummary.model_fields
    summaries = [RolloutSummary(**{name: record[name] for name in names if name in record}) for record in records]
    return [Sample(tag, summary, record) for summary, record in zip(summaries, records, strict=True)]


def merged(kept: Sequence[Sample], added: Sequence[Sample]) -> list[Sample]:
    """Both, each sample once: what comes again takes the place of what there was."""
    return list({sample.summary.rollout_id: sample for sample in (*kept, *added)}.values())


def by_tag(samples: Sequence[Sample]) -> dict[str, list[Sample]]:
    """At most `TAGS_MAX` tags: what bears another one goes with the last."""
    found: dict[str, list[Sample]] = {}
    for sample in samples:
        tag = sample.tag if sample.tag in found or len(found) < TAGS_MAX else next(reversed(found))
        found.setdefault(tag, []).append(sample)
    return found


def _sample(row: Row, index: int, step: int, upload: str) -> Sample:
    messages = _messages(row.get("prompt"), "user") + _messages(row.get("completion"), "assistant")
    problem = _whole(row.get("problem_id"), index)
    environment = str(row.get("env_name") or "external")[:255]
    number, reward = _whole(row.get("sample_id"), index), _finite(row.get("reward"))
    summary = RolloutSummary(
        rollout_id=f"step-{step}-{number}",
        group_id=f"{environment}/{problem}",
        environment=environment,
        task=problem,
        task_key=str(problem),
        task_preview=_preview(messages, "user"),
        state="incomplete" if reward is None else "ok",
        reward=reward,
        metrics=_numbers(row.get("metrics")),
        advantage=_finite(row.get("advantage")),
        trained=True,
        policy_version_min=0,
        policy_version_max=0,
        turns=sum(message["role"] == "assistant" for message in messages),
        input_tokens=max(0, _whole(row.get("num_input_tokens"), 0)),
        output_tokens=max(0, _whole(row.get("num_output_tokens"), 0)),
        billed=False,
        duration_s=_duration_s(row.get("timing")),
        preview=_preview(messages, "assistant"),
    )
    record = summary.model_dump(mode="json") | {
        "problem_id": problem,
        "sample_id": number,
        "upload": upload,
        "answer": str(row.get("answer") or ""),
        "info": _parsed(row.get("info")),
        "traces": [_trace(summary, messages)],
    }
    tag = str(row.get("tag") or TRAIN_TAG)[:TAG_LENGTH_MAX]
    return Sample(replaced(tag), RolloutSummary.model_validate(replaced(summary.model_dump())), replaced(record))


def _trace(summary: RolloutSummary, messages: list[Message]) -> dict[str, Any]:
    shared = {"reward": summary.reward, "metrics": summary.metrics, "turns": summary.turns, "state": summary.state}
    return {"agent": "agent", "trainable": True, "messages": messages, "calls": [], "branches": []} | shared


def _messages(value: Any, role: str) -> list[Message]:
    """A conversation as JSON, or a bare text, which is one message of `role`."""
    told = _parsed(value)
    if isinstance(told, dict | list):
        found = told if isinstance(told, list) else [told]
        return [_message(one) for one in found if isinstance(one, dict)]
    return [] if value in (None, "") else [{"role": role, "content": str(value)}]


def _message(message: Message) -> Message:
    calls = [_tool_call(one) for one in message.get("tool_calls") or [] if isinstance(one, dict)]
    return {"role": str(message.get("role") or ""), "content": _text(message.get("content")), "tool_calls": calls}


def _tool_call(call: dict[str, Any]) -> dict[str, str]:
    """OpenAI's spelling has a table `function`; the library's own is flat."""
    told = call["function"] if isinstance(call.get("function"), dict) else call
    arguments = told.get("arguments", "")
    return {"name": str(told.get("name", "")), "arguments": arguments if isinstance(arguments, str) else json.dumps(arguments)}


def _text(content: Any) -> str:
    """The text of a message; of parts, those that are text."""
    if isinstance(content, list):
        return "\n".join(str(part["text"]) for part in content if isinstance(part, dict) and part.get("text"))
    return content if isinstance(content, str) else ""


def _preview(messages: list[Message], role: str) -> str:
    """The last words of a role, on one line."""
    said = next((message["content"] for message in reversed(messages) if message["role"] == role), "")
    return " ".join(said.split())[:PREVIEW_LENGTH_MAX]


def _parsed(value: Any) -> Any:
    """JSON where it is that and not nested too deep; else the text itself."""
    if not isinstance(value, str):
        return value
    try:
        told = json.loads(value)
    except (ValueError, RecursionError):
        return value
    return told if _is_shallow(told, DEPTH_MAX) else value


def _is_shallow(value: Any, left: int) -> bool:
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return left > 0 and all(_is_shallow(one, left - 1) for one in inner)


def _numbers(value: Any) -> dict[str, float]:
    table = _parsed(value)
    found = {str(name)[:128]: _finite(one) for name, one in table.items()} if isinstance(table, dict) else {}
    return {name: number for name, number in found.items() if number is not None}


def _finite(value: Any) -> float | None:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return float(value) if is_number and math.isfinite(value) else None


def _whole(value: Any, default: int) -> int:
    number = _finite(value)
    return default if number is None else int(number)


def _duration_s(value: Any) -> float:
    """`{"total_ms": …}` or `{"total": seconds}`, as trainers tell it."""
    table = _numbers(value)
    seconds = table["total_ms"] / MILLISECONDS if "total_ms" in table else table.get("total", 0.0)
    return max(0.0, seconds)
