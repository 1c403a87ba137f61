"""Rollouts, groups and calls as the orchestrator keeps them, made for tests without any I/O."""

from collections.abc import Sequence
from functools import partial

from trainer.algorithms.protocol import per_stream, policy_gradient
from trainer.contracts.base import new_id
from trainer.contracts.rollouts import TraceReport
from trainer.orchestrator.groups.views import GroupStudy
from trainer.orchestrator.proxy.sessions import Call
from trainer.orchestrator.rollouts.rollout import Group, Rollout, RolloutOutcome, Trace


def make_call(prompt_ids=(1, 2), token_ids=(3, 4), **changes) -> Call:
    fields = {
        "engine_name": "tiny",
        "adapter_digest": "d" * 64,
        "prompt_ids": tuple(prompt_ids),
        "token_ids": tuple(token_ids),
        "logprobs": tuple(-0.5 - 0.1 * index for index in range(len(token_ids))),
        "temperature": 1.0,
        "input_tokens": len(prompt_ids),
        "output_tokens": len(token_ids),
        "finish_reason": "stop",
    }
    return Call(**(fields | changes))


def make_outcome(reward: float | None = 1.0, state="ok", calls=None, scoring_s=0.0, **changes) -> RolloutOutcome:
    calls = (make_call(),) if calls is None else tuple(calls)
    verdict = {"state": "ok", "reward": reward} if state == "ok" else {"state": "failed"}
    report = TraceReport(trace_id="t", scoring_s=scoring_s, **verdict)
    return RolloutOutcome(state=state, reward=reward if state == "ok" else None, traces=(Trace(report, calls),), **changes)


def make_group(version: int = 0, size: int = 4, environment: str = "digits") -> Group:
    group_id = new_id()
    members = [Rollout(new_id(), group_id, environment, 0, "t0", "", version, 0.0) for _ in range(size)]
    return Group(group_id, environment, 0, version, members)


def teach(group: Group, advantages: Sequence[float]) -> Group:
    """Give the valid rollouts policy gradient lessons, one advantage each."""
    study = GroupStudy(group, has_group_rewards=False)
    pairs = zip(study.view().rollouts, advantages, strict=True)
    study.teach([per_stream(rollout, value, partial(policy_gradient, advantage=value)) for rollout, value in pairs])
    return group
