"""From scored groups and rows of datasets to the batch of one step: every row, every lesson of every valid rollout, and the
counts over all of them.

Knows samples. Refuses to know algorithms (each lesson says what its tokens are told) and to change a token.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from trainer.contracts.samples import TrainBatch, TrainSample
from trainer.orchestrator.rollouts.rollout import Group, Lesson, Rollout


@dataclass(frozen=True, slots=True)
class Cut:
    """`broken_prefixes` and `left_out` are the sums of what the rollouts say."""

    batch: TrainBatch
    broken_prefixes: int
    left_out: int


def cut_batch(run_id: str, step: int, groups: Iterable[Group], rows: Iterable[TrainSample] = ()) -> Cut:
    """Each component is counted over the whole batch, whose groups may differ in algorithm: by its weights that are not 0."""
    rollouts = [rollout for group in groups for rollout in group.valid]
    samples = [*rows, *(_sample(lesson, rollout) for rollout in rollouts for lesson in rollout.lessons)]
    batch = TrainBatch(
        run_id=run_id,
        step=step,
        n_rl=_count(sample.rl_weights for sample in samples),
        n_ce=_count(sample.ce_weights for sample in samples),
        n_ref_kl=_count(sample.ref_kl_weights for sample in samples),
        samples=samples,
    )
    return Cut(batch, sum(rollout.broken_prefixes for rollout in rollouts), sum(rollout.left_out for rollout in rollouts))


def _count(streams: Iterable[list[float] | None]) -> int:
    return sum(weight != 0.0 for stream in streams for weight in stream or ())


def _sample(lesson: Lesson, rollout: Rollout) -> TrainSample:
    branch, signals = lesson.branch, lesson.signals
    return TrainSample(
        token_ids=branch.token_ids,
        mask=branch.mask,
        logprobs=branch.logprobs,
        temperatures=branch.temperatures,
        policy_versions=[rollout.version] * len(branch.token_ids),
        rl_weights=signals.rl_weights or [0.0] * len(branch.token_ids),
        advantages=signals.advantages,
        ce_weights=signals.ce_weights,
        ref_kl_weights=signals.ref_kl_weights,
        ref_logprobs=signals.ref_logprobs,
        rollout_id=rollout.rollout_id,
        group_id=rollout.group_id,
        environment=rollout.environment,
        routed_experts=branch.routed_experts,
        multimodal=branch.multimodal,
    )
