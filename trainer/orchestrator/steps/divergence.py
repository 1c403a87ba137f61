"""Is a run falling apart? A watcher over its steps' metrics, and the words for its owner.

Knows two signs, each by figures of the run's own steps:

  drift      the median of three steps' `step_kl` is above `DRIFT_MAX`: every step changes the policy too much
  collapse   the mean reward of three steps has fallen, from the best such mean of late, by more than `COLLAPSE_STDS` of the
             widest `reward_std` so far and by far more than steps differ anyway, and `entropy` has moved by `ENTROPY_TIMES` with
             it: what was learnt is lost. A step of unlucky tasks lowers the reward, but leaves the policy as sure as it was

Neither depends on the reward's scale. Refuses to know who is told and what ends. Gradient norm and the masked share are told with
an alarm and raise none: runs that learn well move each of them as far (docs/training.md, "Divergence").
"""

from collections import deque
from collections.abc import Mapping
from statistics import fmean, median

from trainer.contracts.events import FailureCode
from trainer.orchestrator.attempt.endings import AttemptOver

WINDOW = 3
"""Steps: one step's figure is noise, and the alarm is due within ten."""
LATE_STEPS = 12
CHANGES_MAX = 100
DRIFT_MAX = 0.1
"""Nats a token, of r − 1 − log r: as if each step had made every token 1.5 times or 0.6 times as likely."""
COLLAPSE_STDS = 0.6
NOISE_TIMES = 2.6
"""Times the mean change from step to step: five standard deviations of a mean of three, where that change is noise alone."""
ENTROPY_TIMES = 1.8
CALM_STEPS = 10
"""Steps without a sign after which an alarm is over."""
TOLD = ("reward", "step_kl", "mismatch_kl", "staleness_mean", "masked_fraction", "clamped_fraction", "entropy", "grad_norm")


class DivergenceAlarm:
    """`add` takes each committed step's metrics in order. An alarm rises once and stands until it has been calm for long."""

    def __init__(self, *, learning_rate: float):
        self._learning_rate = learning_rate
        self._drift: deque[float] = deque(maxlen=WINDOW)
        self._late: deque[tuple[float, float]] = deque(maxlen=LATE_STEPS)
        self._changes: deque[float] = deque(maxlen=CHANGES_MAX)
        self._widest = 0.0
        self._calm = 0
        self.message: str | None = None
        """What the standing alarm says; None without one."""

    def add(self, step: int, metrics: Mapping[str, float]) -> bool:
        """Whether the alarm rose or ended with this step."""
        signs = [sign for sign in (self._drifts(metrics), self._collapses(metrics)) if sign is not None]
        self._calm = 0 if signs else self._calm + 1
        if signs and self.message is None:
            self.message = self._words(step, signs, metrics)
            return True
        if self.message is not None and self._calm >= CALM_STEPS:
            self.message = None
            return True
        return False

    def ending(self) -> AttemptOver | None:
        """How the run pauses while an alarm stands, if its owner wants that."""
        return AttemptOver("paused", self.message, FailureCode.DIVERGING) if self.message is not None else None

    def _drifts(self, metrics: Mapping[str, float]) -> str | None:
        self._drift.append(metrics.get("step_kl", 0.0))
        drift = median(self._drift)
        if len(self._drift) < WINDOW or drift <= DRIFT_MAX:
            return None
        return f"each step changes the policy by a step_kl of about {drift:.2f} a token, more than {DRIFT_MAX}"

    def _collapses(self, metrics: Mapping[str, float]) -> str | None:
        """A step without rewards says nothing."""
        if "reward" not in metrics:
            return None
        self._changes.extend(abs(metrics["reward"] - reward) for reward, _ in list(self._late)[-1:])
        self._late.append((metrics["reward"], metrics.get("entropy", 0.0)))
        self._widest = max(self._widest, metrics.get("reward_std", 0.0))
        if len(self._late) < 2 * WINDOW:
            return None
        best, now = max(means := _means(list(self._late))), means[-1]
        less_sure, surer = max(best[1], now[1]), min(best[1], now[1])
        if best[0] - now[0] <= max(COLLAPSE_STDS * self._widest, NOISE_TIMES * fmean(self._changes)):
            return None
        if less_sure <= ENTROPY_TIMES * surer:
            return None
        return (
            f"the mean reward of {WINDOW} steps fell from {best[0]:.2f} to {now[0]:.2f}, and the entropy moved from "
            f"{best[1]:.2g} to {now[1]:.2g}"
        )

    def _words(self, step: int, signs: list[str], metrics: Mapping[str, float]) -> str:
        figures = ", ".join(f"{name} {metrics[name]:.3g}" for name in TOLD if name in metrics)
        return (
            f"step {step}: the run is diverging: {' and '.join(signs)} ({figures}). Begin again from an earlier checkpoint, or "
            f"from the base model, with a learning_rate below {self._learning_rate:g}; a third of it is a good guess. A smaller "
            "max_off_policy_steps or a larger batch_size helps too."
        )


def _means(steps: list[tuple[float, float]]) -> list[tuple[float, float]]:
    """Reward and entropy, each a mean over `WINDOW` steps in a row."""
    windows = [steps[start : start + WINDOW] for start in range(len(steps) - WINDOW + 1)]
    return [(fmean(reward for reward, _ in window), fmean(entropy for _, entropy in window)) for window in windows]
