"""Samples, as rows: what of an open document counts, which sample of its evaluation it is, and putting it there once.

Knows that (example, rollout) names a sample, so that sending it again changes nothing. Refuses to know statistics. A sample that
failed has no reward, whatever it says: harnesses write 0 for what broke.
"""

import hashlib
import json
import math
from collections import Counter
from collections.abc import Iterable
from typing import Any

from django.db.models import Count, Max

from controlplane.evals.models import EXAMPLE_LENGTH_MAX, Evaluation, EvaluationSample
from trainer.contracts.internal import RolloutSummary

UNFIT = frozenset({"infrastructure", "cancelled", "stale"})
"""States of rollouts that another attempt makes again."""
COUNT_MAX = 2**31 - 1


def store_samples(evaluation: Evaluation, rows: Iterable[EvaluationSample]) -> int:
    """Add what is new and overwrite what is there; how many are new. The caller holds the evaluation's lock and saves it."""
    given = {row.key: row for row in rows}
    known = EvaluationSample.objects.filter(evaluation=evaluation, key__in=list(given))
    there = {row.key: row for row in known.only("id", "key", "position")}
    for key, old in there.items():
        given[key].pk, given[key].position = old.pk, old.position
    fresh = [row for key, row in given.items() if key not in there]
    for index, row in enumerate(fresh, start=_next_position(evaluation)):
        row.position = index
    EvaluationSample.objects.bulk_create(fresh, batch_size=500)
    EvaluationSample.objects.bulk_update([given[key] for key in there], _REPORTED, batch_size=500)
    evaluation.samples_count += len(fresh)
    return len(fresh)


_REPORTED = (
    "attempt", "step", "tag", "state", "reward", "duration_s", "input_tokens", "output_tokens", "body_key", "data",
)  # fmt: skip


def _next_position(evaluation: Evaluation) -> int:
    last = EvaluationSample.objects.filter(evaluation=evaluation).aggregate(last=Max("position"))["last"]
    return 0 if last is None else last + 1


def pushed_rows(evaluation: Evaluation, samples: list[dict[str, Any]]) -> list[EvaluationSample]:
    """Of documents that a client sent. One that does not say which rollout of its example it is, is known by its content, and is
    the next rollout of its example."""
    named = [(_example_of(sample), _whole(sample.get("rollout_number")), sample) for sample in samples]
    keyed = [
        (_content_key(sample) if number is None else sample_key(name, number), name, number, sample)
        for name, number, sample in named
    ]
    counts = Counter(_counts(evaluation, {name for _, name, _, _ in keyed}))
    seen, rows = _known_keys(evaluation, [key for key, *_ in keyed]), []
    for key, name, number, sample in keyed:
        rows.append(_pushed(evaluation, name, counts[name] if number is None else number, key, sample))
        counts[name] += key not in seen
        seen.add(key)
    return rows


def _pushed(evaluation: Evaluation, name: str, number: int, key: str, sample: dict[str, Any]) -> EvaluationSample:
    reward = None if sample.get("error") else _finite(sample.get("reward"))
    state = "failed" if sample.get("error") else "unscored" if reward is None else "ok"
    usage = sample.get("token_usage") or sample.get("usage")
    tokens = usage if isinstance(usage, dict) else sample
    return EvaluationSample(
        evaluation=evaluation,
        team_id=evaluation.team_id,
        example=name,
        rollout=number,
        key=key,
        state=state,
        reward=reward,
        duration_s=_duration_s(sample),
        input_tokens=_first_whole(tokens, "input_tokens", "prompt_tokens"),
        output_tokens=_first_whole(tokens, "output_tokens", "completion_tokens"),
        data=sample,
    )


def reported_row(evaluation: Evaluation, summary: RolloutSummary) -> EvaluationSample:
    """Of a rollout of ours. Calls outside any rollout's trace are kept, as samples of no example."""
    name = str(summary.task) if summary.task >= 0 else ""
    return EvaluationSample(
        evaluation=evaluation,
        team_id=evaluation.team_id,
        example=name,
        rollout=summary.rollout_number,
        key=sample_key(name, summary.rollout_number) if name else f"id:{summary.rollout_id}",
        state=summary.state,
        reward=summary.reward,
        duration_s=summary.duration_s,
        input_tokens=summary.input_tokens,
        output_tokens=summary.output_tokens,
    )


def settled_pairs(evaluation: Evaluation) -> list[tuple[int, int]]:
    """(task, number) of the rollouts that an attempt need not make again."""
    rows = EvaluationSample.objects.filter(evaluation=evaluation).exclude(example="").exclude(state__in=UNFIT)
    return [(int(example), number) for example, number in rows.order_by("position").values_list("example", "rollout")]


def sample_key(example: str, number: int) -> str:
    return f"{number}/{example}"


def _content_key(sample: dict[str, Any]) -> str:
    content = json.dumps(sample, sort_keys=True, separators=(",", ":"), default=str)
    return f"sha256:{hashlib.sha256(content.encode('utf-8', 'replace')).hexdigest()}"


def _example_of(sample: dict[str, Any]) -> str:
    """What the sample calls its example; a sample that names none is an example of its own."""
    for name in ("example_id", "task_id"):
        if sample.get(name) is not None:
            return str(sample[name])[:EXAMPLE_LENGTH_MAX].replace("\0", "")
    return _content_key(sample)


def _counts(evaluation: Evaluation, names: set[str]) -> dict[str, int]:
    rows = EvaluationSample.objects.filter(evaluation=evaluation, example__in=names)
    return dict(rows.values_list("example").annotate(count=Count("id")).order_by())


def _known_keys(evaluation: Evaluation, keys: list[str]) -> set[str]:
    return set(EvaluationSample.objects.filter(evaluation=evaluation, key__in=keys).values_list("key", flat=True))


def _duration_s(sample: dict[str, Any]) -> float | None:
    """As ours, or as verifiers writes it: milliseconds under `timing.total_ms`."""
    timing = sample.get("timing")
    total_ms = _finite(timing.get("total_ms")) if isinstance(timing, dict) else None
    found = _finite(sample.get("duration_s")) if total_ms is None else total_ms / 1000.0
    return found if found is not None and found >= 0 else None


def _finite(value: Any) -> float | None:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return float(value) if is_number and math.isfinite(value) else None


def _whole(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= COUNT_MAX else None


def _first_whole(found: dict[str, Any], *names: str) -> int | None:
    numbers = (_finite(found.get(name)) for name in names)
    number = next((number for number in numbers if number is not None), None)
    return _whole(int(number)) if number is not None else None
