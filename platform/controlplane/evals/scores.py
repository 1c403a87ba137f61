"""Reading an evaluation's samples as numbers: rewards by example, what is missing and why, and the statistics of both.

Knows which rows count. Refuses to know formulas (`contracts.eval_statistics`) and money. A sample without a reward is in no
mean: it is counted by its state.
"""

from collections import defaultdict
from dataclasses import dataclass
from statistics import fmean, stdev
from typing import Any

from django.db.models import Avg, Count, QuerySet

from controlplane.evals.models import Evaluation, EvaluationSample
from controlplane.runs.queries import histogram
from trainer.contracts.eval_statistics import PASS_THRESHOLD, PassRate, mean_estimate, pass_rates
from trainer.contracts.internal import EvalResult

READ_ROWS = 2_000


@dataclass(frozen=True)
class ScoreStatistics:
    """See `schemas.ScoreStatistics`."""

    examples_count: int
    rewards_count: int
    missing: dict[str, int]
    mean: float | None
    std: float | None
    ci_low: float | None
    ci_high: float | None
    pass_threshold: float
    pass_rates: list[PassRate]
    bins: list[dict[str, float | int]]
    duration_mean_s: float | None
    input_tokens_mean: float | None
    output_tokens_mean: float | None


def scores_of(evaluation: Evaluation) -> dict[str, list[float]]:
    """Rewards by example."""
    scores: defaultdict[str, list[float]] = defaultdict(list)
    pairs = _rollouts(evaluation).exclude(reward=None).order_by("position").values_list("example", "reward")
    for example, reward in pairs.iterator(READ_ROWS):
        scores[example].append(float(reward or 0.0))
    return dict(scores)


def missing_of(evaluation: Evaluation) -> dict[str, int]:
    """How many samples have no reward, by the reason."""
    rows = _rollouts(evaluation).filter(reward=None).values_list("state")
    return dict(rows.annotate(count=Count("id")).order_by("state"))


def score_statistics(evaluation: Evaluation, *, threshold: float = PASS_THRESHOLD) -> ScoreStatistics | None:
    """None before the first sample."""
    scores, missing = scores_of(evaluation), missing_of(evaluation)
    if not scores and not missing:
        return None
    rewards, estimate = [reward for found in scores.values() for reward in found], mean_estimate(scores)
    means = _rollouts(evaluation).exclude(reward=None).aggregate(
        duration=Avg("duration_s"), input=Avg("input_tokens"), output=Avg("output_tokens")
    )  # fmt: skip
    return ScoreStatistics(
        examples_count=_rollouts(evaluation).aggregate(count=Count("example", distinct=True))["count"],
        rewards_count=len(rewards),
        missing=missing,
        mean=estimate.mean if estimate else None,
        std=stdev(rewards) if len(rewards) > 1 else None,
        ci_low=estimate.low if estimate else None,
        ci_high=estimate.high if estimate else None,
        pass_threshold=threshold,
        pass_rates=pass_rates(scores, threshold=threshold),
        bins=histogram(rewards),
        duration_mean_s=means["duration"],
        input_tokens_mean=means["input"],
        output_tokens_mean=means["output"],
    )


def result_of(evaluation: Evaluation) -> EvalResult:
    """What all attempts together have found: the mean with its interval, and the mean of each part of the reward and metric."""
    rows, missing, estimate = _rollouts(evaluation), missing_of(evaluation), mean_estimate(scores_of(evaluation))
    named: defaultdict[str, list[float]] = defaultdict(list)
    parts = rows.exclude(reward=None).order_by("position").values_list("data__rewards", "data__metrics")
    for rewards, metrics in parts.iterator(READ_ROWS):
        for name, score in _numbers(rewards, metrics):
            named[name].append(score)
    return EvalResult(
        reward_mean=estimate.mean if estimate else None,
        reward_ci95=estimate.interval if estimate else None,
        rollouts=rows.count(),
        failed=sum(missing.values()),
        metrics={name: fmean(found) for name, found in sorted(named.items())},
    )


def result_line(result: EvalResult) -> str:
    """A result for people, in the log."""
    mean = "no reward" if result.reward_mean is None else f"mean reward {result.reward_mean:.4g}"
    interval = f" (95 %: {result.reward_ci95[0]:.4g} to {result.reward_ci95[1]:.4g})" if result.reward_ci95 else ""
    return f"{mean}{interval} over {result.rollouts} rollouts, {result.failed} of them without a reward"


def _rollouts(evaluation: Evaluation) -> QuerySet[EvaluationSample]:
    """Model calls outside any rollout are samples of no example."""
    return EvaluationSample.objects.filter(evaluation=evaluation).exclude(example="")


def _numbers(*parts: Any) -> list[tuple[str, float]]:
    found = [pair for part in parts if isinstance(part, dict) for pair in part.items()]
    return [(name, float(score)) for name, score in found if isinstance(score, int | float) and not isinstance(score, bool)]
