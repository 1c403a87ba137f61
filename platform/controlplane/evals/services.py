"""Writes to evaluations. One transaction each, no network; the outbox asks for the start of hosted ones."""

from typing import Any

from django.db import transaction

from controlplane.adapters.access import resolve_served_model
from controlplane.billing.services import require_funds
from controlplane.core import outbox
from controlplane.core.clock import now
from controlplane.core.errors import Conflict, Invalid
from controlplane.core.sealing import seal
from controlplane.evals import access, lifecycle
from controlplane.evals.external import check_external
from controlplane.evals.history import append_event, move, save_history
from controlplane.evals.models import EvalStatus, Evaluation
from controlplane.evals.request import HostedRequest
from controlplane.evals.samples import pushed_rows, store_samples
from controlplane.evals.schemas import Described, PushEvaluation
from controlplane.evals.scores import scores_of
from controlplane.evals.states import is_resumable, is_terminal
from controlplane.hub.access import environment_by_id
from controlplane.hub.dependencies import startable_release
from controlplane.hub.models import Release
from controlplane.pools.access import any_pool, live_lease, pool_for_model
from controlplane.pools.errors import NoPool
from controlplane.pools.models import Pool
from controlplane.runs.access import access_run
from controlplane.runs.seats import players_of
from controlplane.teams.actors import Actor
from trainer.contracts.base import new_id
from trainer.contracts.eval_statistics import mean_estimate
from trainer.contracts.events import EventKind
from trainer.contracts.internal import ServedModel
from trainer.contracts.run_config import EnvironmentRef, EvalConfig

SCHEDULE_TASK = "evals.schedule_evaluations"
PUSHED_SAMPLES_MAX = 1_000_000


def start_hosted(*, actor: Actor, request: HostedRequest) -> list[Evaluation]:
    """Queue one evaluation per environment and model: all of them, or none. Several are one group."""
    require_funds(actor.team)
    check_external(actor.team_id, request.eval_config)
    releases = [startable_release(actor, name, forced=request.force) for name in request.environment_ids]
    answering = {model: _answering(actor, request, model) for model in request.models}
    group_id = _group_of(actor, request, len(releases) * len(answering))
    with transaction.atomic():
        return [
            _insert_hosted(actor, request, release, model, fields | {"group_id": group_id})
            for release in releases
            for model, fields in answering.items()
        ]


def _answering(actor: Actor, request: HostedRequest, model: str) -> dict[str, Any]:
    """The fields that say who speaks, and whose place the evaluation takes meanwhile."""
    if request.eval_config.api_base_url is not None:
        pool = any_pool()
        served = ServedModel(engine_name=model)
        return {"base_model": pool.base_model, "served_model": served.model_dump(mode="json"), "pool": pool}
    resolved = resolve_served_model(actor, model)
    return {
        "base_model": resolved.base.id,
        "served_model": resolved.served.model_dump(mode="json"),
        "seats": players_of(actor, request.eval_config.seats, resolved.base.id, ("body", "eval_config", "seats")),
        "pool": _pool_of(resolved.base.id),
    }


def _pool_of(base_model: str) -> Pool:
    try:
        return pool_for_model(base_model)
    except NoPool:
        raise Invalid(("body", "inference_model"), f"no pool of this installation runs {base_model!r}") from None


def _group_of(actor: Actor, request: HostedRequest, count: int) -> str:
    if request.group_id is not None:
        access.access_group(actor, request.group_id)
        return request.group_id
    return new_id() if count > 1 else ""


def _insert_hosted(actor: Actor, request: HostedRequest, release: Release, model: str, fields: dict[str, Any]) -> Evaluation:
    """`fields`: who speaks, and the group."""
    slug, prices = release.environment.slug, request.eval_config.prices
    evaluation = Evaluation.objects.create(
        team=actor.team,
        created_by=actor.user,
        name=request.name or f"{slug}@{release.version} with {model}"[:255],
        is_hosted=True,
        is_public=request.is_public,
        model_name=model,
        environment_ids=[release.environment_id],
        environment_names=[slug],
        metadata={"version": release.version} | ({"prices": prices.model_dump()} if prices else {}),
        config=_config_of(request, release, model).model_dump(mode="json"),
        **fields,
        release_id=release.pk,
        sealed_secrets=seal(request.eval_config.custom_secrets),
    )
    append_event(evaluation, EventKind.STATE, {"state": EvalStatus.PENDING, "reason": "accepted"})
    save_history(evaluation)
    outbox.emit(task=SCHEDULE_TASK, key=f"eval:{evaluation.id}:queued", payload={})
    return evaluation


def _config_of(request: HostedRequest, release: Release, model: str) -> EvalConfig:
    options = request.eval_config
    return EvalConfig(
        environment=EnvironmentRef(
            id=release.environment.slug, version=release.version, args=options.env_args, seats=options.seats
        ),
        model=model,
        api_base_url=options.api_base_url,
        api_key_var=options.api_key_var,
        num_examples=options.num_examples,
        rollouts_per_example=options.rollouts_per_example,
        max_tokens=options.sampling_args.max_tokens,
        temperature=options.sampling_args.temperature,
        max_concurrent=options.max_concurrent,
        timeout_minutes=options.timeout_minutes,
    )


@transaction.atomic
def cancel_hosted(*, actor: Actor, evaluation_id: str) -> Evaluation:
    """Stop an evaluation. One that nobody works on ends here; otherwise its holder is told, and is ended if it does not obey."""
    evaluation = access.access_evaluation(actor, evaluation_id, lock=True)
    if not evaluation.is_hosted:
        raise Conflict("only a hosted evaluation can be cancelled")
    if is_terminal(evaluation.status) or evaluation.cancel_requested_at is not None:
        return evaluation
    evaluation.cancel_requested_at = now()
    if evaluation.status == EvalStatus.PENDING or live_lease("eval", evaluation.id) is None:
        lifecycle.fence(evaluation, "cancelled")
        move(evaluation, EvalStatus.CANCELLED, reason="cancelled by its owner")
    save_history(evaluation)
    return evaluation


@transaction.atomic
def resume_hosted(*, actor: Actor, evaluation_id: str) -> Evaluation:
    """Let an evaluation that ended early go on, under its id, with what it lacks. Its clock and its losses count anew."""
    evaluation = access.access_evaluation(actor, evaluation_id, lock=True)
    if not evaluation.is_hosted:
        raise Conflict("only a hosted evaluation can go on; push the samples of another again")
    if not is_resumable(evaluation.status):
        raise Conflict(f"the evaluation is {evaluation.status}; one that failed, was cancelled or ran out of time can go on")
    require_funds(actor.team)
    evaluation.cancel_requested_at = evaluation.started_at = evaluation.finished_at = None
    evaluation.error_code, evaluation.error_message, evaluation.error_detail = "", "", {}
    evaluation.lost_attempts, evaluation.eligible_at = 0, now()
    move(evaluation, EvalStatus.PENDING, reason="resumed by its owner")
    save_history(evaluation)
    outbox.emit(task=SCHEDULE_TASK, key=f"eval:{evaluation.id}:resumed:{evaluation.events_count}", payload={})
    return evaluation


@transaction.atomic
def push_evaluation(*, actor: Actor, body: PushEvaluation) -> Evaluation:
    """Open an evaluation that was run elsewhere; samples follow, then `finalize`."""
    if not body.environments and not body.run_id:
        raise Invalid(("body", "environments"), "name the environments, or a run_id")
    environments = [environment_by_id(actor, choice.id) for choice in body.environments or []]
    evaluation = Evaluation(
        team=actor.team,
        created_by=actor.user,
        name=body.name,
        status=EvalStatus.RUNNING,
        eval_type="environment" if environments else "training",
        environment_ids=[environment.id for environment in environments],
        environment_names=[environment.slug for environment in environments],
        run=access_run(actor, body.run_id) if body.run_id else None,
    )
    _describe(evaluation, body)
    evaluation.save(force_insert=True)
    return evaluation


@transaction.atomic
def update_evaluation(*, actor: Actor, evaluation_id: str, body: Described) -> Evaluation:
    evaluation = access.access_evaluation(actor, evaluation_id, lock=True)
    _describe(evaluation, body)
    save_history(evaluation)
    return evaluation


def _describe(evaluation: Evaluation, body: Described) -> None:
    given = body.model_dump(include={*Described.model_fields, "name"}, exclude_none=True)
    for name, value in given.items():
        setattr(evaluation, name, value)


@transaction.atomic
def push_samples(*, actor: Actor, evaluation_id: str, samples: list[dict[str, Any]]) -> Evaluation:
    """Add samples. Those that are there already are overwritten, so that a push can be repeated."""
    evaluation = _open_pushed(actor, evaluation_id)
    if evaluation.samples_count + len(samples) > PUSHED_SAMPLES_MAX:
        raise Invalid(("body", "samples"), f"an evaluation holds at most {PUSHED_SAMPLES_MAX} samples")
    store_samples(evaluation, pushed_rows(evaluation, samples))
    save_history(evaluation)
    return evaluation


@transaction.atomic
def finalize_evaluation(*, actor: Actor, evaluation_id: str, metrics: dict[str, Any] | None) -> Evaluation:
    """Close a pushed evaluation. Twice is once."""
    evaluation = access.access_evaluation(actor, evaluation_id, lock=True)
    if evaluation.is_hosted:
        raise Conflict("a hosted evaluation ends by itself")
    if evaluation.status == EvalStatus.COMPLETED:
        return evaluation
    evaluation.metrics = evaluation.metrics | (metrics or {})
    estimate = mean_estimate(scores_of(evaluation))
    evaluation.avg_score = estimate.mean if estimate else None
    evaluation.ci_low, evaluation.ci_high = (estimate.low, estimate.high) if estimate else (None, None)
    move(evaluation, EvalStatus.COMPLETED, reason="finalized by its sender")
    save_history(evaluation)
    return evaluation


def _open_pushed(actor: Actor, evaluation_id: str) -> Evaluation:
    evaluation = access.access_evaluation(actor, evaluation_id, lock=True)
    if evaluation.is_hosted or is_terminal(evaluation.status):
        raise Conflict(f"the evaluation is {evaluation.status} and takes no samples")
    return evaluation


@transaction.atomic
def delete_evaluation(*, actor: Actor, evaluation_id: str) -> None:
    """Take an evaluation out of sight; its bill stays."""
    evaluation = access.access_evaluation(actor, evaluation_id, lock=True)
    if evaluation.is_hosted and not is_terminal(evaluation.status):
        raise Conflict(f"the evaluation is {evaluation.status}; cancel it first")
    evaluation.deleted_at = now()
    save_history(evaluation)
