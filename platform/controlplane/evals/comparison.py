"""Two or more evaluations side by side: aligned by example, the first one being what the others are measured against.

Knows alignment, verdicts and order. Refuses to compute statistics (`contracts.eval_statistics`) and to compare what has no
examples in common: the third example of one environment says nothing about the third of another.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from django.db.models import Avg, Count

from controlplane.core.errors import Invalid
from controlplane.evals import queries
from controlplane.evals.models import Evaluation, EvaluationSample
from trainer.contracts.eval_statistics import Paired, paired

COMPARED_MAX = 8
ROLLOUTS_SHOWN = 16
TITLE_MAX = 200

Verdict = Literal["improved", "regressed", "same", "missing"]
ExampleMeans = dict[str, tuple[float, int]]
"""By example: mean reward, and of how many rollouts."""


@dataclass(frozen=True)
class AlignedExample:
    """`means` and `counts` in the order of the evaluations; a mean is None where an evaluation has no reward for the example.
    `change` is the worst of the others less the first, None where nothing can be compared."""

    example: str
    means: list[float | None]
    counts: list[int]
    change: float | None
    verdict: Verdict


def check_comparable(evaluations: Sequence[Evaluation]) -> None:
    """Raises Invalid (422) for evaluations of different environments."""
    first = evaluations[0]
    for other in evaluations[1:]:
        if set(other.environment_ids) != set(first.environment_ids):
            names = [", ".join(row.environment_names) or "none" for row in (first, other)]
            message = f"{first.id} is of {names[0]} and {other.id} of {names[1]}: they have no examples in common"
            raise Invalid(("query", "ids"), message, hint="Compare evaluations of one environment.")


def notes_on(evaluations: Sequence[Evaluation]) -> list[str]:
    """What a reader must know before trusting a difference."""
    versions = {str(row.metadata.get("version")) for row in evaluations if row.metadata.get("version")}
    notes = [f"Different versions of the environment ({', '.join(sorted(versions))}): examples may not be the same."]
    live = [row.name for row in evaluations if row.finished_at is None]
    return (notes if len(versions) > 1 else []) + [f"{name} has not ended: figures will change." for name in live]


def means_of(evaluation: Evaluation) -> ExampleMeans:
    rows = EvaluationSample.objects.filter(evaluation=evaluation, reward__isnull=False).exclude(example="")
    found = rows.values_list("example").annotate(mean=Avg("reward"), count=Count("id")).order_by("example")
    return {example: (mean, count) for example, mean, count in found}


def against_first(means: Sequence[ExampleMeans]) -> list[Paired | None]:
    """One test for each evaluation but the first; None where it shares no example with it."""
    scores = [{example: [mean] for example, (mean, _) in found.items()} for found in means]
    return [paired(scores[0], other) for other in scores[1:]]


def aligned(means: Sequence[ExampleMeans], *, verdict: Verdict | None = None, best_first: bool = False) -> list[AlignedExample]:
    """Every example that any evaluation has a reward for, the worst regression first; what cannot be compared stands last."""
    examples = [_aligned(example, means) for example in sorted(set().union(*means))]
    chosen = [row for row in examples if verdict is None or row.verdict == verdict]
    sign = -1.0 if best_first else 1.0
    return sorted(chosen, key=lambda row: (row.change is None, sign * (row.change or 0.0), row.example))


def _aligned(example: str, means: Sequence[ExampleMeans]) -> AlignedExample:
    found = [one.get(example) for one in means]
    first, others = found[0], [other[0] for other in found[1:] if other is not None]
    changes = [mean - first[0] for mean in others] if first is not None else []
    change = min(changes, default=None)
    return AlignedExample(
        example=example,
        means=[None if one is None else one[0] for one in found],
        counts=[0 if one is None else one[1] for one in found],
        change=change,
        verdict=_verdict(changes),
    )


def _verdict(changes: list[float]) -> Verdict:
    """Among several others a single regression counts: it is what a reader must see."""
    if not changes:
        return "missing"
    if min(changes) < 0:
        return "regressed"
    return "improved" if max(changes) > 0 else "same"


def titles_of(evaluation: Evaluation, examples: Sequence[str]) -> dict[str, str]:
    """What each example asks, in a few words."""
    rows = EvaluationSample.objects.filter(evaluation=evaluation, example__in=examples).order_by("-position")
    return {example: _title(data) for example, data in rows.values_list("example", "data")}


def _title(data: dict[str, Any]) -> str:
    prompt = data.get("task_preview") or data.get("prompt") or ""
    if isinstance(prompt, list):
        prompt = next((turn.get("content") for turn in reversed(prompt) if isinstance(turn, dict)), "")
    return " ".join(str(prompt).split())[:TITLE_MAX]


def answers_of(evaluation: Evaluation, example: str) -> list[dict[str, Any]]:
    """The samples of one example with their messages, the first few."""
    rows = queries.samples_of(evaluation).filter(example=example).order_by("rollout", "position")
    return queries.samples_page(rows, offset=0, limit=ROLLOUTS_SHOWN)
