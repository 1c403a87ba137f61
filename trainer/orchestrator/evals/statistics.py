"""The result of one evaluation pass: what its accounted rollouts add up to.

Knows which rollouts count. Refuses to know statistics, which `contracts.eval_statistics` computes.
"""

from collections import defaultdict
from collections.abc import Sequence
from statistics import fmean

from trainer.contracts.eval_statistics import mean_estimate
from trainer.contracts.internal import EvalResult
from trainer.orchestrator.rollouts.rollout import Accounted


def eval_result(accounted: Sequence[Accounted]) -> EvalResult:
    """Failures are excluded from the mean and counted."""
    rewards: defaultdict[str, list[float]] = defaultdict(list)
    parts: defaultdict[str, list[float]] = defaultdict(list)
    good = [item.rollout for item in accounted if item.state == "ok"]
    for rollout in good:
        assert rollout.outcome is not None and rollout.outcome.reward is not None
        rewards[str(rollout.task)].append(rollout.outcome.reward)
        for name, score in {**rollout.outcome.rewards, **rollout.outcome.metrics}.items():
            if score is not None:
                parts[name].append(score)
    estimate = mean_estimate(rewards)
    return EvalResult(
        reward_mean=estimate.mean if estimate else None,
        reward_ci95=estimate.interval if estimate else None,
        rollouts=len(accounted),
        failed=len(accounted) - len(good),
        metrics={name: fmean(scores) for name, scores in sorted(parts.items())},
    )
