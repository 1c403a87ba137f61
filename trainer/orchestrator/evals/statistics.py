"""Mean and 95 % interval of an evaluation's rewards.

Knows statistics. Refuses to know how the rewards came about. Rollouts of one task are not independent: the standard error is
taken over the tasks' means (cluster-robust), weighted by their rollouts. Source: cluster-robust variance of a weighted mean.
"""

from collections import defaultdict
from collections.abc import Sequence
from math import sqrt
from statistics import fmean

from trainer.contracts.internal import EvalResult
from trainer.orchestrator.rollouts.rollout import Accounted

Z_95 = 1.959964


def mean_interval(rewards: Sequence[tuple[int, float]]) -> tuple[float, tuple[float, float]] | None:
    """Mean and interval of (task, reward) pairs; None without any. With one task the interval is the mean itself."""
    if not rewards:
        return None
    mean = fmean(reward for _, reward in rewards)
    residuals: defaultdict[int, float] = defaultdict(float)
    for task, reward in rewards:
        residuals[task] += reward - mean
    clusters = len(residuals)
    if clusters < 2:
        return mean, (mean, mean)
    variance = sum(value**2 for value in residuals.values()) / len(rewards) ** 2 * clusters / (clusters - 1)
    half = Z_95 * sqrt(variance)
    return mean, (mean - half, mean + half)


def eval_result(accounted: Sequence[Accounted]) -> EvalResult:
    """Failures are excluded from the mean and counted."""
    good = [item.rollout for item in accounted if item.state == "ok"]
    pairs = [(rollout.task, rollout.outcome.reward) for rollout in good if rollout.outcome and rollout.outcome.reward is not None]
    interval = mean_interval(pairs)
    parts: defaultdict[str, list[float]] = defaultdict(list)
    for rollout in good:
        assert rollout.outcome is not None
        for name, score in {**rollout.outcome.rewards, **rollout.outcome.metrics}.items():
            if score is not None:
                parts[name].append(score)
    return EvalResult(
        reward_mean=interval[0] if interval else None,
        reward_ci95=interval[1] if interval else None,
        rollouts=len(accounted),
        failed=len(accounted) - len(good),
        metrics={name: fmean(scores) for name, scores in sorted(parts.items())},
    )
