"""The numbers of a step."""

from tests.factories.rollouts import make_group, make_outcome
from trainer.orchestrator.groups import Accounted
from trainer.orchestrator.step_metrics import cut_metrics


def item(reward, *, state="ok", trained=True, staleness=0, environment="a") -> Accounted:
    (rollout,) = make_group(0, 1, environment).rollouts
    rollout.outcome = make_outcome(reward, state=state)
    return Accounted(rollout, state, trained, staleness, billed=True)


def test_rewards_are_those_of_trained_rollouts_by_environment():
    metrics = cut_metrics([item(1.0), item(0.0, environment="b"), item(None, state="failed", trained=False)], broken_prefixes=2)
    assert (metrics["reward"], metrics["reward_std"]) == (0.5, 0.5)
    assert (metrics["reward/a"], metrics["reward/b"]) == (1.0, 0.0)
    assert metrics["failed_fraction"] == 1 / 3
    assert (metrics["rollouts"], metrics["rollouts_failed"], metrics["broken_prefixes"]) == (3, 1, 2)


def test_staleness_is_a_histogram_of_trained_rollouts():
    metrics = cut_metrics([item(1.0, staleness=age) for age in (0, 1, 1)], broken_prefixes=0)
    assert (metrics["staleness_mean"], metrics["staleness_max"]) == (2 / 3, 1)
    assert (metrics["staleness/0"], metrics["staleness/1"]) == (1, 2)


def test_a_step_without_rewards_has_no_reward_metric():
    assert "reward" not in cut_metrics([], broken_prefixes=0)
