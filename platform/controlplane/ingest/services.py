"""What trainers elsewhere tell of their runs, written down as our own runs are: steps, rollouts, the end.

Knows reports. Refuses to know HTTP and to judge them: nothing here is billed, and nothing is trained on. Every report is one
transaction; a file is read before it begins, and dropped once its rollouts are kept.
"""

import tempfile
from datetime import timedelta
from typing import Any

from django.db import transaction

from controlplane.core.clock import now
from controlplane.core.errors import Conflict, Invalid, NotUploaded
from controlplane.core.objects import MissingObject, store
from controlplane.core.objects.keys import chunks
from controlplane.ingest.access import access_external, access_reporting
from controlplane.ingest.errors import SamplesRefused
from controlplane.ingest.parquet import FILE_BYTES_MAX, ROWS_MAX, Row, read_rows
from controlplane.ingest.records import Sample, by_tag, kept_samples, merged, samples_of
from controlplane.ingest.schemas import (
    ConfirmRequest,
    ExternalRun,
    FinalizeRequest,
    MetricsReport,
    PresignRequest,
    StatusRequest,
)
from controlplane.pools.bodies import read_body, store_records
from controlplane.runs import access as run_access
from controlplane.runs.history import append_event, move, save_history, set_failure
from controlplane.runs.models import RolloutStep, Run, RunMetric
from controlplane.runs.queries import silent_external_runs
from controlplane.runs.reports import keep_numbers, keep_rollouts
from controlplane.runs.states import RunKind, is_terminal
from controlplane.teams.actors import Actor
from trainer.contracts.base import new_id
from trainer.contracts.events import Component, EventKind, FailureCode, RunState
from trainer.contracts.run_config import RunConfig

UPLOAD_EXPIRES_S = 3600
TRIES = 3
SILENT_FOR = timedelta(hours=24)
"""From the last report until a run whose trainer says nothing more counts as lost."""
REWARDS = ("reward/all/mean", "reward/mean", "reward_mean")
"""What public trainers call the mean reward of a step, which is `reward` on our pages."""
NOWHERE = "external"
STATES = {"completed": RunState.COMPLETED, "failed": RunState.FAILED, "stopped": RunState.STOPPED}
CODES = {RunState.FAILED: FailureCode.EXTERNAL_FAILED, RunState.STOPPED: FailureCode.STOPPED_BY_USER}


@transaction.atomic
def register_run(actor: Actor, body: ExternalRun) -> Run:
    """A run that is at work elsewhere from now on."""
    moment = now()
    run = Run.objects.create(
        team=actor.team,
        created_by=actor.user,
        name=body.name or (body.environments[0].id if body.environments else NOWHERE),
        kind=RunKind.EXTERNAL,
        base_model=body.base_model,
        config=_shape(body),
        client_config=_told(body),
        attempt=1,
        state=RunState.PENDING,
        queued_at=moment,
    )
    move(run, RunState.RUNNING, reason="a trainer elsewhere reports")
    save_history(run)
    return run


def _shape(body: ExternalRun) -> dict[str, Any]:
    """The shape that lists and clients read of every run. What the trainer did not tell has the value of a field left out."""
    blank = RunConfig.model_validate({"model": {"name": body.base_model}, "environments": [{"id": NOWHERE}]})
    environment = blank.environments[0]
    refs = [environment.model_copy(update={"id": one.id, "name": one.name}) for one in body.environments]
    told = {"name": body.name, "max_steps": body.max_steps or 0}
    sizes = {"batch_size": body.batch_size, "rollouts_per_example": body.rollouts_per_example, "max_tokens": body.seq_len}
    told |= {name: size for name, size in sizes.items() if size is not None}
    return blank.model_dump(mode="json") | told | {"environments": [ref.model_dump(mode="json") for ref in refs]}


def _told(body: ExternalRun) -> dict[str, Any]:
    """What the trainer told of itself, and nothing else."""
    return body.model_dump(mode="json", exclude_unset=True, exclude_none=True)


@transaction.atomic
def record_metrics(actor: Actor, report: MetricsReport) -> None:
    """Add numbers to a step: a trainer reports of one step more than once. A name that comes again has its newest value."""
    run, step = access_reporting(actor, report.run_id, lock=True), report.step_number()
    known = RunMetric.objects.filter(run=run, step=step, superseded_by__isnull=True).values_list("values", flat=True).first()
    values = (known or {}) | report.numbers()
    reward = next((values[name] for name in REWARDS if name in values), None)
    if reward is not None:
        values["reward"] = reward
    moment = now()
    append_event(run, EventKind.STEP, {"metrics": values, "component": Component.TRAINER}, step=step, at=moment)
    keep_numbers(run, step, values, moment)
    run.step = max(step, run.step)
    save_history(run)


def presign_samples(actor: Actor, asked: PresignRequest) -> tuple[str, str]:
    """Key and signed address for one file of one step."""
    run = access_reporting(actor, asked.run_id)
    key = f"{_folder(run, asked.step)}{new_id()}.parquet"
    return key, store().signed_put_url(key, UPLOAD_EXPIRES_S, FILE_BYTES_MAX)


def _folder(run: Run, step: int) -> str:
    return f"ingest/{run.team_id}/{run.id}/step-{step}/"


def confirm_samples(actor: Actor, asked: ConfirmRequest) -> int:
    """Add the rollouts of an uploaded file to its step and return how many it has. Confirming a file again changes nothing.
    Raises NotUploaded, or SamplesRefused with the reason."""
    run = access_reporting(actor, asked.run_id)
    folder = _folder(run, asked.step)
    if not asked.s3_key.startswith(folder):
        raise Invalid(("body", "s3_key"), "is not the key that was given for this run and step")
    upload = asked.s3_key.removeprefix(folder)
    for _ in range(TRIES):
        earlier = _steps(run, asked.step)
        kept = [sample for step in earlier for sample in kept_samples(step.tag, read_body(step.body_key))]
        if known := sum(sample.record["upload"] == upload for sample in kept):
            return known
        added = samples_of(_read(asked.s3_key), step=asked.step, upload=upload)
        if _kept(actor, asked, earlier, merged(kept, added)):
            store().delete(asked.s3_key)
            return len(added)
    raise Conflict("other files of this step are being confirmed", hint="Confirm it again in a moment.", retry_after_s=1)


def _kept(actor: Actor, asked: ConfirmRequest, earlier: list[RolloutStep], samples: list[Sample]) -> bool:
    """Put all samples of a step in the place of those of before. False where these are not the newest any more."""
    if len(samples) > ROWS_MAX:
        raise SamplesRefused(f"the step would have {len(samples)} rollouts; at most {ROWS_MAX} are taken")
    run, parts = access_reporting(actor, asked.run_id), by_tag(samples)
    bodies = {
        tag: store_records(f"rollouts/{run.team_id}/{run.id}/", [one.record for one in part]) for tag, part in parts.items()
    }
    with transaction.atomic():
        run = access_reporting(actor, asked.run_id, lock=True)
        if [step.id for step in _steps(run, asked.step)] != [step.id for step in earlier]:
            return False
        RolloutStep.objects.filter(run=run, step=asked.step).delete()
        for tag, part in parts.items():
            keep_rollouts(run, step=asked.step, tag=tag, summaries=[one.summary for one in part], body=bodies[tag])
        run.step = max(run.step, asked.step)
        save_history(run)
    return True


def _steps(run: Run, step: int) -> list[RolloutStep]:
    return list(RolloutStep.objects.filter(run=run, step=step).order_by("id"))


def _read(key: str) -> list[Row]:
    """The rows of an uploaded file, which is copied off the store first, no more of it than a file may have."""
    with tempfile.TemporaryFile() as file:
        try:
            with store().open(key) as uploaded:
                for chunk in chunks(uploaded):
                    file.write(chunk)
                    if file.tell() > FILE_BYTES_MAX:
                        raise SamplesRefused(f"the file has more than {FILE_BYTES_MAX} bytes")
        except (MissingObject, ValueError):
            raise NotUploaded from None
        file.seek(0)
        return read_rows(file)


@transaction.atomic
def finalize_run(actor: Actor, asked: FinalizeRequest) -> Run:
    """The trainer is done. What it sums up goes into the log. Twice is once."""
    run = access_external(actor, asked.run_id, lock=True)
    if is_terminal(RunState(run.state)):
        return run
    if asked.summary:
        names = ", ".join(sorted(asked.summary)[:20])
        payload = {"component": Component.TRAINER, "level": "info", "message": f"summary of the trainer: {names}"}
        append_event(run, EventKind.LOG, payload | {"summary": asked.summary})
    failed = asked.exit_code not in (None, 0)
    _end(
        run, RunState.FAILED if failed else RunState.COMPLETED, f"the trainer ended with code {asked.exit_code}" if failed else ""
    )
    return run


@transaction.atomic
def set_status(actor: Actor, run_id: str, asked: StatusRequest) -> Run:
    """End the run as its trainer says; one that has ended stays as it is."""
    run = access_external(actor, run_id, lock=True)
    if not is_terminal(RunState(run.state)):
        _end(run, STATES[asked.status], asked.error_message or f"the trainer says that it {asked.status}")
    return run


def _end(run: Run, state: RunState, message: str) -> None:
    code = CODES.get(state)
    set_failure(run, code, message if code else "")
    move(run, state, reason=message, code=code)
    save_history(run)


def end_silent_runs() -> int:
    """Give up the runs whose trainers have said nothing for a day. Returns how many."""
    ended = 0
    for run_id in silent_external_runs(now() - SILENT_FOR):
        with transaction.atomic():
            run = run_access.lock_run(run_id)
            if run is not None and not is_terminal(RunState(run.state)):
                _end(run, RunState.FAILED, f"nothing was reported for {SILENT_FOR.total_seconds() / 3600:.0f} hours")
                ended += 1
    return ended
