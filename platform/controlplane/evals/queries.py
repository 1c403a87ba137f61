"""Reads over evaluations: lists, waiting order, samples with their bodies, the log as text."""

import json
from datetime import datetime, timedelta
from typing import Any

from django.db.models import QuerySet

from controlplane.core.clock import DatabaseNow
from controlplane.evals.models import EvalStatus, Evaluation, EvaluationEvent, EvaluationSample
from controlplane.pools.bodies import read_body, with_messages
from controlplane.pools.models import Pool
from controlplane.pools.queries import live_count_by_team
from controlplane.teams.actors import Actor

LOG_LINES_MAX = 10_000


def evaluations_of(actor: Actor, *, name: str = "", environment_id: str = "", group_id: str = "") -> QuerySet[Evaluation]:
    """The team's evaluations, newest first; only those of one environment where it is named (`owner/name`) or identified, and of
    one group."""
    rows = Evaluation.objects.filter(team=actor.team, deleted_at__isnull=True)
    if name:
        rows = rows.filter(environment_names__contains=[name])
    if environment_id:
        rows = rows.filter(environment_ids__contains=[environment_id])
    if group_id:
        rows = rows.filter(group_id=group_id)
    return rows.order_by("-created_at", "-id")


def waiting_order(pool: Pool) -> list[str]:
    """Ids of the waiting evaluations, the next one first: teams with little at work go before teams with much."""
    waiting = Evaluation.objects.filter(pool=pool, status=EvalStatus.PENDING, is_hosted=True, deleted_at__isnull=True)
    waiting = waiting.filter(eligible_at__lte=DatabaseNow(), cancel_requested_at__isnull=True)
    taken = live_count_by_team("eval", pool)
    ranked = []
    for evaluation_id, team_id in waiting.order_by("created_at", "id").values_list("id", "team_id"):
        ranked.append((taken.get(team_id, 0), len(ranked), evaluation_id))
        taken[team_id] = taken.get(team_id, 0) + 1
    return [evaluation_id for _, _, evaluation_id in sorted(ranked)]


def overdue(moment: datetime, *, grace: timedelta) -> list[str]:
    """Hosted evaluations that were cancelled or ran out of time more than `grace` before `moment`."""
    live = Evaluation.objects.filter(is_hosted=True, status__in=[EvalStatus.PENDING, EvalStatus.RUNNING])
    found = set(live.filter(cancel_requested_at__lt=moment - grace).values_list("id", flat=True))
    for evaluation in live.filter(started_at__isnull=False).only("id", "started_at", "config"):
        limit = timedelta(minutes=(evaluation.config or {}).get("timeout_minutes", 0)) + grace
        if evaluation.started_at is not None and evaluation.started_at + limit < moment:
            found.add(evaluation.id)
    return sorted(found)


def samples_of(
    evaluation: Evaluation, *, min_reward: float | None = None, max_reward: float | None = None
) -> QuerySet[EvaluationSample]:
    """Samples in order; within bounds (inclusive) where bounds are given."""
    rows = EvaluationSample.objects.filter(evaluation=evaluation).order_by("position")
    if min_reward is not None:
        rows = rows.filter(reward__gte=min_reward)
    return rows if max_reward is None else rows.filter(reward__lte=max_reward)


def samples_page(samples: QuerySet[EvaluationSample], *, offset: int, limit: int) -> list[dict[str, Any]]:
    """A page of samples, rollouts of ours with their messages."""
    rows = list(samples[offset : offset + limit])
    keys = {row.body_key for row in rows if row.body_key}
    bodies = {record["rollout_id"]: with_messages(record) for key in sorted(keys) for record in read_body(key)}
    return [_with_messages(row.data, bodies.get(row.data.get("rollout_id"))) for row in rows]


def _with_messages(data: dict[str, Any], body: dict[str, Any] | None) -> dict[str, Any]:
    """A rollout split the way pushed samples are: the prompt is all before the model's first turn, the completion the rest."""
    if body is None:
        return data
    messages = body["messages"]
    turns = [index for index, message in enumerate(messages) if message.get("role") == "assistant"]
    first = turns[0] if turns else len(messages)
    return body | data | {"prompt": messages[:first], "completion": messages[first:]}


def log_text(evaluation: Evaluation) -> str:
    events = EvaluationEvent.objects.filter(evaluation=evaluation).order_by("-seq")[:LOG_LINES_MAX]
    return "\n".join(json.dumps(_record(event), ensure_ascii=False) for event in reversed(events))


def _record(event: EvaluationEvent) -> dict[str, Any]:
    payload = event.payload
    state = ": ".join(str(payload[name]) for name in ("state", "reason") if payload.get(name))
    return {
        "timestamp": event.at.isoformat(),
        "level": str(payload.get("level", "ERROR" if event.kind == "incident" else "INFO")).upper(),
        "message": str(payload.get("message") or state or event.kind),
        "component": payload.get("component") or "orchestrator",
    }
