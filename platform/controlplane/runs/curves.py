"""A run's numbers as curves: one value per step, thinned to as many points as a chart can show, and the branches that were left.

Knows metrics by name. Refuses to know charts. A bucket of steps shows the mean of each metric, but the extreme of one whose name
says that it is one (`…_min`, `…_max`), so that a spike survives any thinning; its step is the bucket's last.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from django.db.models import Max, Min

from controlplane.runs.models import Run, RunMetric
from controlplane.runs.queries import metrics_of

NAMES_MAX = 256
"""Environments name their own reward parts: a run with more curves than this shows the first by name."""
DIGITS = 6
BRANCH_METRIC = "reward"

Numbers = dict[str, Any]
"""Values of one step by metric name, as a holder reported them."""
Column = list[float | None]


@dataclass
class Curves:
    """`series[name][i]` belongs to `steps[i]`. `bucket_steps` is 1 where nothing was thinned out."""

    steps: list[int]
    series: dict[str, Column]
    steps_count: int
    bucket_steps: int
    names_left_out: int = 0


@dataclass(frozen=True)
class Branch:
    """Steps that an attempt had committed and a later one took again."""

    attempt: int
    superseded_by: int
    first_step: int
    last_step: int
    steps: list[int] = field(repr=False)
    rewards: Column = field(repr=False)


@dataclass(frozen=True)
class Span:
    """The steps of one attempt that count."""

    attempt: int
    segment: int
    first_step: int
    last_step: int
    started_at: datetime
    last_at: datetime


def curves_of(run: Run, *, points: int, min_step: int | None = None, max_step: int | None = None) -> Curves:
    """At most `points` points of the steps in the window, both ends included."""
    rows = metrics_of(run, min_step=min_step, max_step=max_step).values_list("step", "values")
    return thinned(list(rows.iterator(chunk_size=2000)), points=points)


def thinned(rows: Sequence[tuple[int, Numbers]], *, points: int) -> Curves:
    """Rows in order of step as columns. Buckets hold equally many rows, the last one what is left."""
    size = max(1, math.ceil(len(rows) / points))
    buckets = [rows[start : start + size] for start in range(0, len(rows), size)]
    names = sorted({name for _, values in rows for name, value in values.items() if _is_number(value)})
    shown = names[:NAMES_MAX]
    return Curves(
        steps=[bucket[-1][0] for bucket in buckets],
        series={name: [_reduced(name, bucket) for bucket in buckets] for name in shown},
        steps_count=len(rows),
        bucket_steps=size,
        names_left_out=len(names) - len(shown),
    )


def _reduced(name: str, bucket: Sequence[tuple[int, Numbers]]) -> float | None:
    """One value for a bucket; None where no step of it has the metric."""
    found = [value for _, values in bucket if _is_number(value := values.get(name))]
    if not found:
        return None
    if name.endswith("_max"):
        value = max(found)
    elif name.endswith("_min"):
        value = min(found)
    else:
        value = sum(found) / len(found)
    return float(f"{value:.{DIGITS}g}")


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def branches_of(run: Run, *, points: int) -> list[Branch]:
    """What attempts had done beyond the point where a later one went on, oldest first: a stretch for each pair of the two."""
    rows = RunMetric.objects.filter(run=run, superseded_by__isnull=False).order_by("attempt", "superseded_by", "step")
    stretches: dict[tuple[int, int], list[tuple[int, Numbers]]] = {}
    for attempt, by, step, values in rows.values_list("attempt", "superseded_by", "step", "values").iterator(chunk_size=2000):
        stretches.setdefault((attempt, by), []).append((step, {BRANCH_METRIC: values.get(BRANCH_METRIC)}))
    return [_branch(attempt, by, found, points=points) for (attempt, by), found in stretches.items()]


def _branch(attempt: int, by: int, rows: Sequence[tuple[int, Numbers]], *, points: int) -> Branch:
    curves = thinned(rows, points=points)
    rewards = curves.series.get(BRANCH_METRIC, [None] * len(curves.steps))
    return Branch(attempt, by, rows[0][0], rows[-1][0], curves.steps, rewards)


def spans_of(run: Run) -> list[Span]:
    """The attempts whose steps count, in their order: where one ends and the next begins is where the run was resumed."""
    current: Iterable[dict[str, Any]] = (
        RunMetric.objects.filter(run=run, superseded_by__isnull=True)
        .values("attempt", "segment")
        .annotate(first_step=Min("step"), last_step=Max("step"), started_at=Min("at"), last_at=Max("at"))
        .order_by("first_step")
    )
    return [Span(**row) for row in current]
