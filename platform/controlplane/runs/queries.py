"""Reads over runs: queue, metrics, rollouts, progress, distributions. Every number that a page shows comes from here.

Knows rows; refuses to know the wire's spelling (`schemas`) and whose run it may be (`access`).
"""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import Count, Max, QuerySet

from controlplane.core.clock import DatabaseNow
from controlplane.pools.bodies import read_body, with_messages
from controlplane.pools.models import Pool
from controlplane.pools.queries import live_count_by_team
from controlplane.runs.models import Checkpoint, Rollout, RolloutStep, Run, RunEvent, RunMetric
from controlplane.runs.states import LEASED_STATES, RunKind
from controlplane.teams.actors import Actor
from trainer.contracts.events import EventKind, RunState

BINS = 20
TRAIN_TAG = "train"
TIMELINE_KINDS = [EventKind.STATE, EventKind.EVAL, EventKind.CHECKPOINT, EventKind.INCIDENT, EventKind.WARNING]


def runs_of(actor: Actor, *, mine: bool = False) -> QuerySet[Run]:
    """The team's runs, newest first."""
    runs = Run.objects.filter(team=actor.team, deleted_at__isnull=True)
    if mine:
        runs = runs.filter(created_by=actor.user)
    return runs.select_related("pool").order_by("-created_at", "-id")


def chosen_runs(runs: QuerySet[Run], *, status: str | None, model: str, environment: str, search: str) -> QuerySet[Run]:
    """Of `runs` those in one state, on one base model, with one environment (as the configuration spells it), with `search` in
    the name; what is None or empty chooses nothing."""
    wanted = {
        "state": status,
        "base_model": model,
        "config__environments__contains": [{"id": environment}] if environment else None,
        "name__icontains": search,
    }
    return runs.filter(**{name: value for name, value in wanted.items() if value})


def latest_rewards(runs: list[Run]) -> dict[str, float | None]:
    """Mean reward of each run's newest step, by run id."""
    rows = RunMetric.objects.filter(run__in=runs, superseded_by__isnull=True)
    newest = rows.order_by("run_id", "-step").distinct("run_id").values_list("run_id", "values__reward")
    return dict(newest)


def queue_order(pool: Pool, *, only_eligible: bool = False) -> list[str]:
    """Ids of the waiting runs, next one first: the team with the fewest runs at work, counting those ahead in the queue, goes
    first; among equals whoever waited longest. So a team that queues a thousand runs delays nobody's first one."""
    waiting = Run.objects.filter(pool=pool, state=RunState.QUEUED, deleted_at__isnull=True)
    if only_eligible:
        waiting = waiting.filter(eligible_at__lte=DatabaseNow())
    taken = live_count_by_team("run", pool)
    ranked = []
    for run_id, team_id, queued_at in waiting.order_by("queued_at", "id").values_list("id", "team_id", "queued_at"):
        ranked.append((taken.get(team_id, 0), queued_at, run_id))
        taken[team_id] = taken.get(team_id, 0) + 1
    return [run_id for _, _, run_id in sorted(ranked)]


def runs_ahead(run: Run) -> int | None:
    """How many waiting runs will start before this one; None unless it waits."""
    if run.state != RunState.QUEUED or run.pool is None:
        return None
    order = queue_order(run.pool)
    return order.index(run.id) if run.id in order else 0


def places_in_queue(runs: list[Run]) -> dict[str, int]:
    """The same for a page of runs, asking once per pool."""
    waiting = {run.pool_id: run.pool for run in runs if run.state == RunState.QUEUED and run.pool is not None}
    return {run_id: place for pool in waiting.values() for place, run_id in enumerate(queue_order(pool))}


def stop_overdue_since(moment: datetime) -> list[str]:
    """Runs whose owner asked for a stop before `moment` and whose holder has not obeyed."""
    return list(Run.objects.filter(stop_requested_at__lt=moment).values_list("id", flat=True))


def leased_without_lease(leased_ids: set[str]) -> list[str]:
    """Runs whose state says that somebody works on them, although nobody seems to."""
    ours = Run.objects.filter(state__in=LEASED_STATES, deleted_at__isnull=True).exclude(kind=RunKind.EXTERNAL)
    return [run_id for run_id in ours.values_list("id", flat=True) if run_id not in leased_ids]


def silent_external_runs(since: datetime) -> list[str]:
    """Runs at work elsewhere of which nothing has been heard since that moment."""
    at_work = Run.objects.filter(kind=RunKind.EXTERNAL, state__in=LEASED_STATES, deleted_at__isnull=True)
    return list(at_work.filter(updated_at__lt=since).values_list("id", flat=True))


def events_after(run_id: str, seq: int, *, limit: int) -> list[RunEvent]:
    return list(RunEvent.objects.filter(run_id=run_id, seq__gt=seq).order_by("seq")[:limit])


def timeline_of(run: Run, *, limit: int) -> tuple[int, list[RunEvent]]:
    """How many events there are but log lines, steps and versions, of which a long run has thousands; and the newest of them,
    oldest first. Events beyond the count that this run's row showed are left to the stream."""
    events = RunEvent.objects.filter(run=run, kind__in=TIMELINE_KINDS, seq__lte=run.events_count)
    return events.count(), list(reversed(events.order_by("-seq")[:limit]))


def metrics_of(run: Run, *, min_step: int | None = None, max_step: int | None = None) -> QuerySet[RunMetric]:
    """One row per step, in order of step: what no later attempt has superseded."""
    rows = RunMetric.objects.filter(run=run, superseded_by__isnull=True).order_by("step")
    if min_step is not None:
        rows = rows.filter(step__gte=min_step)
    return rows if max_step is None else rows.filter(step__lte=max_step)


def checkpoints_of(run: Run) -> QuerySet[Checkpoint]:
    """Those that can be started from."""
    return Checkpoint.objects.filter(run=run, retired_at__isnull=True).order_by("step")


@dataclass(frozen=True)
class Progress:
    latest_step: int
    steps_with_samples: list[int]
    last_updated_at: datetime


def progress_of(run: Run) -> Progress:
    steps = RolloutStep.objects.filter(run=run, rollouts_count__gt=0).order_by("step").distinct()
    newest = RunEvent.objects.filter(run=run).aggregate(at=Max("at"))["at"]
    return Progress(run.step, list(steps.values_list("step", flat=True)), newest or run.updated_at)


@dataclass(frozen=True)
class SamplePage:
    samples: list[dict[str, Any]]
    total: int


def samples_page(run: Run, *, step: int, tag: str | None, offset: int, limit: int) -> SamplePage:
    """Rollouts accounted in a step with their bodies, in the order in which they were reported; of one tag where it is named."""
    steps = RolloutStep.objects.filter(run=run, step=step)
    steps = steps.order_by("created_at", "id") if tag is None else steps.filter(tag=tag)
    keys = {rollout_step.id: rollout_step.body_key for rollout_step in steps}
    rows = Rollout.objects.filter(rollout_step__in=steps).order_by("rollout_step__created_at", "rollout_step_id", "position")
    page = list(rows[offset : offset + limit])
    bodies = _bodies({keys[row.rollout_step_id] for row in page})
    samples = [bodies.get(row.summary["rollout_id"], {}) | row.summary for row in page]
    return SamplePage(samples, rows.count())


def _bodies(keys: set[str]) -> dict[str, dict[str, Any]]:
    return {record["rollout_id"]: with_messages(record) for key in sorted(keys) for record in read_body(key)}


def rollout_counts(run: Run) -> dict[str, int]:
    """How many rollouts ended in which state, over all steps and tags."""
    rows = Rollout.objects.filter(rollout_step__run=run).values_list("state").annotate(number=Count("id"))
    return dict(rows)


@dataclass(frozen=True)
class Distribution:
    step: int | None
    bins: list[dict[str, float | int]]


def distribution_of(run: Run, *, column: str, step: int | None) -> Distribution:
    """Histogram of `reward` or `advantage` over one step's training rollouts; the newest step unless one is named."""
    steps = RolloutStep.objects.filter(run=run, tag=TRAIN_TAG)
    found = (steps.filter(step=step) if step is not None else steps).order_by("-step").first()
    if found is None:
        return Distribution(step, [])
    values = Rollout.objects.filter(rollout_step=found).exclude(**{column: None}).values_list(column, flat=True)
    return Distribution(found.step, histogram([float(value) for value in values if value is not None]))


def histogram(values: list[float]) -> list[dict[str, float | int]]:
    """Up to `BINS` equal bins over the values' range; each value is in exactly one."""
    if not values:
        return []
    low, high = min(values), max(values)
    if low == high:
        return [{"start": low, "end": high, "count": len(values)}]
    width = (high - low) / BINS
    counts = [0] * BINS
    for value in values:
        counts[min(BINS - 1, int((value - low) / width))] += 1
    return [
        {"start": low + index * width, "end": low + (index + 1) * width, "count": count} for index, count in enumerate(counts)
    ]
