"""What a run's holder reports, made for tests: events, summaries of rollouts, and one rollout as a report leaves it."""

import hashlib
import json
from datetime import UTC, datetime

import zstandard

from controlplane.core.objects import store
from controlplane.core.tenancy import acting_as_system
from controlplane.runs.models import Rollout, RolloutStep, Run
from tests.factories.runs import DIGEST
from trainer.contracts.events import EventKind
from trainer.contracts.internal import EventIn, RolloutSummary

AT = datetime.now(UTC)


def log(sequence: int, message: str, level: str = "info", component: str = "orchestrator") -> EventIn:
    payload = {"message": message, "level": level, "component": component}
    return EventIn(sequence=sequence, kind=EventKind.LOG, at=AT, payload=payload)


def step(sequence: int, number: int, reward: float) -> EventIn:
    payload = {"metrics": {"reward": reward}, "version": number, "adapter_digest": DIGEST}
    return EventIn(sequence=sequence, kind=EventKind.STEP, step=number, at=AT, payload=payload)


def summary(index: int, reward: float, advantage: float) -> RolloutSummary:
    counts = {"policy_version_min": 0, "policy_version_max": 0, "turns": 1, "input_tokens": 3, "output_tokens": 2}
    return RolloutSummary(
        rollout_id=f"r{index}",
        group_id="g",
        environment="ann/rules",
        task=index,
        state="ok",
        reward=reward,
        advantage=advantage,
        trained=True,
        billed=True,
        duration_s=0.1,
        **counts,
    )


def make_rollout(run: Run) -> Rollout:
    """A stored rollout of step 1 with one model call."""
    call = {
        "route": "generate",
        "engine_name": f"{run.id}.v0",
        "adapter_digest": DIGEST,
        "temperature": 1.0,
        "finish_reason": "stop",
        "usage": {"input_tokens": 1, "output_tokens": 1},
        "branch": 0,
        "start": 0,
        "prompt_ids": [1],
        "token_ids": [2],
        "logprobs": [-0.5],
    }
    known = summary(0, 1.0, 0.5).model_dump(mode="json")
    branches = [{"tokens_count": 2, "sampled_count": 1, "trained": True}]
    body = zstandard.compress(json.dumps(known | {"traces": [{"calls": [call], "branches": branches}]}).encode())
    key = f"rollouts/{run.team_id}/{run.id}/step-1.jsonl.zst"
    store().put(key, body)
    with acting_as_system():
        rollout_step = RolloutStep.objects.create(
            run=run,
            team_id=run.team_id,
            step=1,
            tag="train",
            attempt=1,
            body_key=key,
            body_sha256=hashlib.sha256(body).hexdigest(),
            size_bytes=len(body),
            rollouts_count=1,
        )
        columns = {"team_id": run.team_id, "state": "ok", "reward": 1.0, "advantage": 0.5}
        return Rollout.objects.create(rollout_step=rollout_step, position=0, summary=known, **columns)
