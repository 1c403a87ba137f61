"""The numbers of one step, as the run page charts them.

Knows formulas over accounted rollouts. Refuses to know where they go. Names are stable: `reward`, `reward_std`,
`reward/<environment>`, `reward_part/<name>`, `staleness_mean`, `staleness_max`, `staleness/<n>` (trained rollouts of that
staleness), `failed_fraction`, `rollouts_<state>`, `tokens_per_s`.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from statistics import fmean, pstdev

from trainer.contracts.training import StepResult
from trainer.orchestrator.groups import TENANT_FAULTS, Accounted

STALENESS_BARS_MAX = 64


def cut_metrics(accounted: list[Accounted], *, broken_prefixes: int) -> dict[str, float]:
    """What is known at the cut: of the rollouts accounted since the last one, and of those that the batch trains on."""
    trained = [item for item in accounted if item.trained]
    return {
        **_rewards(trained),
        **_staleness(trained),
        **_failures(accounted),
        "trained_rollouts": len(trained),
        "zero_advantage_fraction": _share(not item.rollout.advantage for item in trained),
        "rollout_s_mean": _mean(item.rollout.duration_s for item in trained),
        "turns_mean": _mean(item.rollout.outcome.turns for item in trained if item.rollout.outcome),
        "output_tokens_mean": _mean(_output_tokens(item) for item in trained),
        "truncated_fraction": _share(_truncated(item) for item in trained),
        "broken_prefixes": broken_prefixes,
    }


def commit_metrics(cut: Mapping[str, float], result: StepResult, times_s: Mapping[str, float]) -> dict[str, float]:
    """What the STEP event carries. `times_s` holds wait, train and publish; their sum is the step's time."""
    step_s = sum(times_s.values())
    return {
        **cut,
        **result.metrics,
        **{f"{name}_s": value for name, value in times_s.items()},
        "step_time_s": step_s,
        "trained_tokens": result.tokens,
        "tokens_per_s": result.tokens / step_s if step_s > 0 else 0.0,
        "packs": result.packs,
        "packs_shared": result.packs_shared,
    }


def _rewards(trained: list[Accounted]) -> dict[str, float]:
    by_environment: dict[str, list[float]] = {}
    by_part: dict[str, list[float]] = {}
    for item in trained:
        outcome = item.rollout.outcome
        assert outcome is not None and outcome.reward is not None
        by_environment.setdefault(item.rollout.environment, []).append(outcome.reward)
        for name, score in {**outcome.rewards, **outcome.metrics}.items():
            if score is not None:
                by_part.setdefault(name, []).append(score)
    rewards = [reward for values in by_environment.values() for reward in values]
    if not rewards:
        return {}
    return {
        "reward": fmean(rewards),
        "reward_std": pstdev(rewards),
        **{f"reward/{name}": fmean(values) for name, values in sorted(by_environment.items())},
        **{f"reward_part/{name}": fmean(values) for name, values in sorted(by_part.items())},
    }


def _staleness(trained: list[Accounted]) -> dict[str, float]:
    values = [item.staleness for item in trained]
    bars = Counter(min(value, STALENESS_BARS_MAX) for value in values)
    return {
        "staleness_mean": _mean(values),
        "staleness_max": max(values, default=0),
        **{f"staleness/{value}": count for value, count in sorted(bars.items())},
    }


def _failures(accounted: list[Accounted]) -> dict[str, float]:
    counts = Counter(item.state for item in accounted)
    return {
        "rollouts": len(accounted),
        "failed_fraction": _share(item.state in TENANT_FAULTS for item in accounted),
        **{f"rollouts_{state}": count for state, count in sorted(counts.items())},
    }


def _output_tokens(item: Accounted) -> int:
    return sum(call.output_tokens for call in item.rollout.outcome.calls) if item.rollout.outcome else 0


def _truncated(item: Accounted) -> bool:
    return item.rollout.outcome is not None and any(call.finish_reason == "length" for call in item.rollout.outcome.calls)


def _mean(values: Iterable[float]) -> float:
    known = list(values)
    return fmean(known) if known else 0.0


def _share(flags: Iterable[bool]) -> float:
    return _mean(float(flag) for flag in flags)
