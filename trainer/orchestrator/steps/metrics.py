"""The numbers of one step, as the run page charts them.

Knows formulas over accounted rollouts. Refuses to know where they go. Names are stable: `reward`, `reward_std`,
`reward_group_min` and `reward_group_max` (of the groups' means), `reward/<environment>`, `reward_part/<environment>/<name>`,
`metric/<environment>/<name>` (what the environment measures and pays nothing for), `staleness_mean`, `staleness_max`,
`staleness/<n>` (trained rollouts of that staleness), `failed_fraction` (failures of the environment's own making), `error_rate`
and `reward_unmasked` (all failures), `rollouts_<state>`, `errors/<class>` (of the environment's failures: the exception's
class, else the state), `output_tokens_mean` with `_min` and `_max`, `truncated_fraction`, `tokens_per_s`, and `time/<part>_s`:
where the time between two commits went. A name that ends with `_min` or `_max` is an extreme, which whoever thins the points
out must keep.

The loop waits for rollouts, not for any one thing that they do. Its wait is divided among generating, the environment and
scoring in the proportion in which the trained rollouts spent their own time.
"""

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from statistics import fmean, pstdev

from trainer.contracts.training import StepResult
from trainer.orchestrator.rollouts.rollout import TENANT_FAULTS, Accounted, Group, RolloutOutcome, RolloutState

STALENESS_BARS_MAX = 64
ERROR_CLASSES_MAX = 8
"""The commonest of a step; the environment chooses their names, and shall not fill the charts."""
_ERROR_CLASS = re.compile(r"([A-Za-z_][A-Za-z0-9_.]{0,63}): ")
REWARDED: frozenset[RolloutState] = frozenset({"ok", "filtered"})
ENDED: frozenset[RolloutState] = TENANT_FAULTS | REWARDED | {"infrastructure"}


def cut_metrics(accounted: list[Accounted], *, broken_prefixes: int, groups: Iterable[Group] = ()) -> dict[str, float]:
    """What is known at the cut: of the rollouts accounted since the last one, and of those that the batch trains on, whose
    `groups` they are."""
    trained = [item for item in accounted if item.trained]
    lengths = [_output_tokens(item) for item in trained]
    return {
        **_rewards(trained),
        **_group_rewards(trained),
        **_staleness(trained),
        **_failures(accounted),
        "trained_rollouts": len(trained),
        "zero_advantage_fraction": _share(not item.rollout.advantage for item in trained if item.rollout.advantage is not None),
        "rollout_s_mean": _mean(item.rollout.duration_s for item in trained),
        "turns_mean": _mean(item.rollout.outcome.turns for item in trained if item.rollout.outcome),
        **_rollout_times(trained, groups),
        "output_tokens_mean": _mean(lengths),
        "output_tokens_min": min(lengths, default=0),
        "output_tokens_max": max(lengths, default=0),
        "truncated_fraction": _share(_truncated(item) for item in trained),
        "broken_prefixes": broken_prefixes,
    }


def commit_metrics(cut: Mapping[str, float], result: StepResult, times_s: Mapping[str, float]) -> dict[str, float]:
    """What the STEP event carries: figures of rollouts, and the trainer's of samples and tokens, which share no name with them.
    `times_s` holds wait, train and publish; their sum is the step's time."""
    step_s = sum(times_s.values())
    return {
        **cut,
        **result.metrics,
        **{f"{name}_s": value for name, value in times_s.items()},
        **_time_split({**cut, **result.metrics}, times_s),
        "step_time_s": step_s,
        "trained_tokens": result.tokens,
        "tokens_per_s": result.tokens / step_s if step_s > 0 else 0.0,
        "packs": result.packs,
        "packs_shared": result.packs_shared,
    }


def _rewards(trained: list[Accounted]) -> dict[str, float]:
    by_environment: dict[str, list[float]] = {}
    parts: dict[str, list[float]] = {}
    for item in trained:
        outcome = item.rollout.outcome
        assert outcome is not None and outcome.reward is not None
        by_environment.setdefault(item.rollout.environment, []).append(outcome.reward)
        for name, score in _parts(item.rollout.environment, outcome).items():
            parts.setdefault(name, []).append(score)
    rewards = [reward for values in by_environment.values() for reward in values]
    if not rewards:
        return {}
    return {
        "reward": fmean(rewards),
        "reward_std": pstdev(rewards),
        **{f"reward/{name}": fmean(values) for name, values in sorted(by_environment.items())},
        **{name: fmean(values) for name, values in sorted(parts.items())},
    }


def _parts(environment: str, outcome: RolloutOutcome) -> dict[str, float]:
    """Two environments may each have a part of the same name."""
    named = {f"reward_part/{environment}/{name}": score for name, score in outcome.rewards.items()}
    named |= {f"metric/{environment}/{name}": value for name, value in outcome.metrics.items()}
    return {name: value for name, value in named.items() if value is not None}


def _group_rewards(trained: list[Accounted]) -> dict[str, float]:
    """The range of the groups' mean rewards."""
    by_group: dict[str, list[float]] = {}
    for item in trained:
        assert item.rollout.outcome is not None and item.rollout.outcome.reward is not None
        by_group.setdefault(item.rollout.group_id, []).append(item.rollout.outcome.reward)
    means = [fmean(rewards) for rewards in by_group.values()]
    return {"reward_group_min": min(means), "reward_group_max": max(means)} if means else {}


def _rollout_times(trained: list[Accounted], groups: Iterable[Group]) -> dict[str, float]:
    """Mean seconds that a trained rollout spent in model calls, in being scored, and in all else that its environment does.
    What the runner claims is taken up to the time that passed."""
    group_s = {group.group_id: group.scoring_s for group in groups}
    generate, score, environment = [], [], []
    for item in trained:
        outcome, left_s = item.rollout.outcome, item.rollout.duration_s
        assert outcome is not None
        generate.append(min(left_s, sum(call.duration_s for call in outcome.calls)))
        left_s -= generate[-1]
        scored_s = min(left_s, sum(trace.report.scoring_s for trace in outcome.traces))
        score.append(scored_s + group_s.get(item.rollout.group_id, 0.0))
        environment.append(left_s - scored_s)
    return {"generate_s_mean": _mean(generate), "environment_s_mean": _mean(environment), "score_s_mean": _mean(score)}


def _time_split(known: Mapping[str, float], times_s: Mapping[str, float]) -> dict[str, float]:
    """`time/<part>_s`; their sum is the step's time. `queue_s` is the trainer's word for how long the batch waited there."""
    parts = {name: known.get(f"{name}_s_mean", 0.0) for name in ("generate", "environment", "score")}
    whole_s = sum(parts.values())
    shares = {name: value / whole_s if whole_s else float(name == "generate") for name, value in parts.items()}
    queue_s = min(times_s["train"], known.get("queue_s", 0.0))
    return {
        **{f"time/{name}_s": times_s["wait"] * share for name, share in shares.items()},
        "time/trainer_queue_s": queue_s,
        "time/train_s": times_s["train"] - queue_s,
        "time/publish_s": times_s["publish"],
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
        **_unmasked(accounted),
        **{f"rollouts_{state}": count for state, count in sorted(counts.items())},
        **_errors(item for item in accounted if item.state in TENANT_FAULTS),
    }


def _errors(failed: Iterable[Accounted]) -> dict[str, float]:
    """Failures by class; the rarer ones are together `errors/other`."""
    ranked = Counter(_error_class(item) for item in failed).most_common()
    rest = sum(count for _, count in ranked[ERROR_CLASSES_MAX:])
    return {
        **{f"errors/{name}": count for name, count in sorted(ranked[:ERROR_CLASSES_MAX])},
        **({"errors/other": rest} if rest else {}),
    }


def _error_class(item: Accounted) -> str:
    error = item.rollout.outcome.error if item.rollout.outcome else None
    named = _ERROR_CLASS.match(error or "")
    return named[1] if named else item.state


def _unmasked(accounted: list[Accounted]) -> dict[str, float]:
    """What masking hides: the share that failed, whoever's fault it was, and the mean reward if each failure had counted as 0
    and nothing had been filtered.
    Rollouts that we cancelled or dropped as too old have no result and count in neither."""
    ended = [item for item in accounted if item.state in ENDED]
    rewards = [item.rollout.outcome.reward or 0.0 if item.rollout.outcome else 0.0 for item in ended]
    return {"error_rate": _share(item.state not in REWARDED for item in ended), "reward_unmasked": _mean(rewards)}


def _output_tokens(item: Accounted) -> int:
    return sum(call.output_tokens for call in item.rollout.outcome.calls) if item.rollout.outcome else 0


def _truncated(item: Accounted) -> bool:
    return item.rollout.outcome is not None and any(call.finish_reason == "length" for call in item.rollout.outcome.calls)


def _mean(values: Iterable[float]) -> float:
    known = list(values)
    return fmean(known) if known else 0.0


def _share(flags: Iterable[bool]) -> float:
    return _mean(float(flag) for flag in flags)
