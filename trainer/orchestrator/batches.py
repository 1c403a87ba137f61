"""From scored groups to the batch of one step: every branch of every valid rollout, with its weight streams and the counts.

Knows samples and what is left out. Refuses to know algorithms (the advantage is on the rollout already, and `component` names
the weight stream that the sampled tokens enter) and to change a token.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from trainer.contracts.samples import TOKENS_MAX, TrainBatch, TrainSample
from trainer.orchestrator.branches import Branch, merge_calls
from trainer.orchestrator.groups import Group, Rollout

LossComponent = Literal["rl", "ce", "ref_kl"]


@dataclass(frozen=True, slots=True)
class Cut:
    """`broken_prefixes` counts the turns that began a new branch because their history had changed; `left_out` the branches
    that are too short or too long to be trained on."""

    batch: TrainBatch
    broken_prefixes: int
    left_out: int


def cut_batch(run_id: str, step: int, groups: Iterable[Group], *, component: LossComponent = "rl") -> Cut:
    samples: list[TrainSample] = []
    broken = left_out = 0
    for rollout in (rollout for group in groups for rollout in group.valid):
        for trace in rollout.outcome.traces if rollout.outcome else ():
            if not trace.report.trainable:
                continue
            merged = merge_calls(call for call in trace.calls if call.route == "generate")
            broken += merged.broken
            fitting = [branch for branch in merged.branches if fits(branch)]
            left_out += len(merged.branches) - len(fitting)
            samples += [_sample(branch, rollout, component) for branch in fitting]
    counts = {f"n_{component}": sum(sum(sample.mask) for sample in samples)}
    return Cut(TrainBatch(run_id=run_id, step=step, samples=samples, **counts), broken, left_out)


def fits(branch: Branch) -> bool:
    """Whether a branch can be trained on: something before what was sampled, something sampled, and not too long."""
    return 2 <= len(branch.token_ids) <= TOKENS_MAX and any(branch.mask) and not branch.mask[0]


def _sample(branch: Branch, rollout: Rollout, component: LossComponent) -> TrainSample:
    advantage = rollout.advantage or 0.0
    weights = [1.0 if sampled else 0.0 for sampled in branch.mask]
    streams = {"rl_weights": [0.0] * len(weights)} | {f"{component}_weights": weights}
    return TrainSample(
        token_ids=branch.token_ids,
        mask=branch.mask,
        logprobs=branch.logprobs,
        temperatures=branch.temperatures,
        policy_versions=[rollout.version] * len(branch.token_ids),
        **streams,
        advantages=[advantage if sampled else 0.0 for sampled in branch.mask],
        rollout_id=rollout.rollout_id,
        group_id=rollout.group_id,
        environment=rollout.environment,
    )
