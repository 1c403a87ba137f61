"""What rewards of an evaluation say, and how surely: means, pass rates, and the difference between two evaluations.

Knows numbers grouped by example. Refuses to know where they come from and what a failure is: a rollout without a reward is not
here at all. Pure, standard library alone, so that server, command and trainer compute every figure with the same lines.

- Rollouts of one example are not independent. The standard error of a mean is therefore clustered by example (Miller, "Adding
  Error Bars to Evals", 2024, with the finite-sample factor G/(G−1)), and its interval takes Student's t with G−1 degrees.
- pass@k is the unbiased estimator 1 − C(n−c, k)/C(n, k) (Chen et al., "Evaluating Large Language Models Trained on Code",
  2021); pass^k, that all of k succeed, is C(c, k)/C(n, k).
- Two evaluations are compared example by example: a paired t-test over the differences of the examples' means.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import comb, exp, lgamma, log, sqrt
from statistics import fmean

CONFIDENCE = 0.95
PASS_THRESHOLD = 0.5
"""A rollout with at least this reward has solved its example."""

Scores = Mapping[str, Sequence[float]]
"""Rewards by example; no example is empty."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """A mean with its 95 % interval. `low` and `high` are None below two examples, which say nothing about others."""

    mean: float
    low: float | None
    high: float | None

    @property
    def interval(self) -> tuple[float, float] | None:
        return None if self.low is None or self.high is None else (self.low, self.high)


@dataclass(frozen=True, slots=True)
class PassRate:
    """Over the `examples` that have at least k rewards: the chance that one of k rollouts solves an example (`any_of`), and
    that all of them do (`all_of`)."""

    k: int
    examples: int
    any_of: float
    all_of: float


@dataclass(frozen=True, slots=True)
class Paired:
    """The second evaluation less the first, over the examples that both have. `p_value` is two-sided, of no difference; None
    below two examples."""

    examples: int
    difference: Estimate
    p_value: float | None
    improved: int
    regressed: int
    same: int


def mean_estimate(scores: Scores) -> Estimate | None:
    """Mean over rollouts, clustered by example; None without any."""
    count = sum(len(rewards) for rewards in scores.values())
    if not count:
        return None
    mean = sum(sum(rewards) for rewards in scores.values()) / count
    clusters = len(scores)
    if clusters < 2:
        return Estimate(mean, None, None)
    squares = sum((sum(rewards) - len(rewards) * mean) ** 2 for rewards in scores.values())
    return _estimate(mean, sqrt(squares * clusters / (clusters - 1)) / count, clusters - 1)


def pass_rates(scores: Scores, *, threshold: float = PASS_THRESHOLD) -> list[PassRate]:
    """For k = 1, 2, 4, … up to the most rewards that any example has."""
    counts = [(len(rewards), sum(reward >= threshold for reward in rewards)) for rewards in scores.values()]
    most, rates, k = max((n for n, _ in counts), default=0), [], 1
    while k <= most:
        taken = [(n, c) for n, c in counts if n >= k]
        any_of, all_of = (fmean(rate(n, c, k) for n, c in taken) for rate in (pass_at_k, pass_hat_k))
        rates.append(PassRate(k, len(taken), any_of, all_of))
        k *= 2
    return rates


def pass_at_k(n: int, c: int, k: int) -> float:
    """The chance that of k rollouts, drawn from n of which c succeeded, at least one did. Raises ValueError for k > n."""
    if k > n:
        raise ValueError(f"{n} rollouts say nothing about {k}")
    return 1.0 - comb(n - c, k) / comb(n, k)


def pass_hat_k(n: int, c: int, k: int) -> float:
    """The chance that of k rollouts, drawn from n of which c succeeded, all did. Raises ValueError for k > n."""
    if k > n:
        raise ValueError(f"{n} rollouts say nothing about {k}")
    return comb(c, k) / comb(n, k)


def differences(first: Scores, second: Scores) -> dict[str, float]:
    """By example that both have: the second's mean less the first's."""
    return {example: fmean(second[example]) - fmean(rewards) for example, rewards in first.items() if example in second}


def paired(first: Scores, second: Scores) -> Paired | None:
    """None where no example is in both. Every example weighs the same, however many rollouts it had. Where all differences are
    one number, the interval is that number and p is 1 for zero, else 0."""
    found = list(differences(first, second).values())
    if not found:
        return None
    mean, count = fmean(found), len(found)
    difference, p_value = Estimate(mean, None, None), None
    if count > 1:
        error = sqrt(sum((value - mean) ** 2 for value in found) / (count - 1) / count)
        difference, p_value = _estimate(mean, error, count - 1), _p_value(mean, error, count - 1)
    improved, regressed = sum(value > 0 for value in found), sum(value < 0 for value in found)
    return Paired(count, difference, p_value, improved, regressed, count - improved - regressed)


def _estimate(mean: float, error: float, degrees: int) -> Estimate:
    half = t_quantile(degrees) * error
    return Estimate(mean, mean - half, mean + half)


def _p_value(mean: float, error: float, degrees: int) -> float:
    if error == 0.0:
        return 1.0 if mean == 0.0 else 0.0
    return t_tail(mean / error, degrees)


def t_tail(t: float, degrees: int) -> float:
    """The chance of a value at least as far from zero, by Student's distribution: I_x(v/2, 1/2) at x = v/(v + t²)."""
    return _incomplete_beta(degrees / (degrees + t * t), degrees / 2.0, 0.5)


def t_quantile(degrees: int, confidence: float = CONFIDENCE) -> float:
    """The t whose tails hold 1 − confidence, by bisection: exact to ten digits, and quick enough to be asked per page."""
    low, high = 0.0, 1.0
    while t_tail(high, degrees) > 1.0 - confidence:
        high *= 2.0
    for _ in range(60):
        middle = (low + high) / 2.0
        low, high = (middle, high) if t_tail(middle, degrees) > 1.0 - confidence else (low, middle)
    return high


def _incomplete_beta(x: float, a: float, b: float) -> float:
    """The regularised incomplete beta function, on the side of its symmetry where the continued fraction converges fast."""
    if x <= 0.0 or x >= 1.0:
        return min(max(x, 0.0), 1.0)
    front = exp(lgamma(a + b) - lgamma(a) - lgamma(b) + a * log(x) + b * log(1.0 - x))
    if x < (a + 1.0) / (a + b + 2.0):
        return front * _beta_fraction(x, a, b) / a
    return 1.0 - front * _beta_fraction(1.0 - x, b, a) / b


def _beta_fraction(x: float, a: float, b: float) -> float:
    """The continued fraction of the incomplete beta function (NIST DLMF 8.17.22), by Lentz's method."""
    c, d = 1.0, 1.0 / _away_from_zero(1.0 - (a + b) * x / (a + 1.0))
    value = d
    for m in range(1, 500):
        before = value
        for term in (
            m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m)),
            -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1)),
        ):
            d = 1.0 / _away_from_zero(1.0 + term * d)
            c = _away_from_zero(1.0 + term / c)
            value *= c * d
        if abs(value - before) < 1e-14 * abs(value):
            break
    return value


def _away_from_zero(value: float) -> float:
    return value if abs(value) > 1e-300 else 1e-300
