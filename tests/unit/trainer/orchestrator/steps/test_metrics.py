"""The numbers of a step."""

from dataclasses import replace

from tests.factories.rollouts import make_call, make_group, make_outcome, teach
from trainer.contracts.base import new_id
from trainer.contracts.training import StepResult
from trainer.orchestrator.rollouts.rollout import Accounted
from trainer.orchestrator.steps.metrics import commit_metrics, cut_metrics


def make_step_result(**metrics: float) -> StepResult:
    return StepResult(
        run_id=new_id(),
        step=1,
        adapter_digest="d" * 64,
        adapter_path="runs/x/adapters/v1",
        size_bytes=1,
        tokens=10,
        metrics=metrics,
        packs=1,
        packs_shared=0,
    )


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


def paid(environment: str, rewards: dict[str, float | None], metrics: dict[str, float]) -> Accounted:
    one = item(1.0, environment=environment)
    one.rollout.outcome = replace(one.rollout.outcome, rewards=rewards, metrics=metrics)
    return one


def test_parts_of_one_name_are_told_apart_by_environment_and_from_what_is_only_measured():
    words = [paid("ann/words", {"right": right, "group/longest": 1.0}, {"letters": 4.0}) for right in (1.0, 0.0)]
    sums = paid("sums", {"right": 0.25, "unscored": None}, {"right": 7.0})
    metrics = cut_metrics([*words, sums], broken_prefixes=0)
    assert {name: value for name, value in metrics.items() if name.startswith(("reward_part", "metric"))} == {
        "reward_part/ann/words/right": 0.5,
        "reward_part/ann/words/group/longest": 1.0,
        "metric/ann/words/letters": 4.0,
        "reward_part/sums/right": 0.25,
        "metric/sums/right": 7.0,
    }


def test_what_masking_hides_is_charted_beside_it():
    """The kind: a mean over the survivors looks well while nearly everything fails."""
    lost = [item(None, state="infrastructure", trained=False) for _ in range(7)]
    broken = [item(None, state=state, trained=False) for state in ("failed", "incomplete")]
    dropped = [item(1.0, state="stale", trained=False), item(None, state="cancelled", trained=False)]
    metrics = cut_metrics([item(1.0), *lost, *broken, *dropped], broken_prefixes=0)
    assert (metrics["reward"], metrics["reward_unmasked"], metrics["error_rate"]) == (1.0, 0.1, 0.9)


def failed(error: str | None, state="failed") -> Accounted:
    found = item(None, state=state, trained=False)
    found.rollout.outcome = make_outcome(None, state=state, error=error)
    return found


def test_failures_of_the_environment_are_counted_by_the_class_of_their_error():
    broken = [
        failed("KeyError: 'x' at digits:7"),
        failed("KeyError: 'y'"),
        failed("judge.Refused: no"),
        failed("no reward: none"),
    ]
    late = failed("the rollout passed its deadline", state="deadline")
    ours = failed("ConnectError: the engine", state="infrastructure")
    metrics = cut_metrics([*broken, late, ours, item(1.0)], broken_prefixes=0)
    counted = {name: count for name, count in metrics.items() if name.startswith("errors/")}
    assert counted == {"errors/KeyError": 2, "errors/judge.Refused": 1, "errors/failed": 1, "errors/deadline": 1}


def test_an_environment_cannot_fill_the_charts_with_classes_of_errors():
    metrics = cut_metrics([failed(f"Odd{number}: x") for number in range(20) for _ in range(1 + (number < 3))], broken_prefixes=0)
    counted = {name: count for name, count in metrics.items() if name.startswith("errors/")}
    assert len(counted) == 9 and counted["errors/Odd2"] == 2
    assert counted["errors/other"] == 12 and sum(counted.values()) == metrics["rollouts_failed"]


def test_truncated_rollouts_and_those_without_an_advantage_are_shares_of_the_trained_ones():
    cut_off = item(1.0)
    cut_off.rollout.outcome = make_outcome(1.0, calls=[make_call(), make_call(finish_reason="length")])
    (group,) = [teach(make_graded(), [0.0, 0.0, 0.5, -0.5])]
    taught = [Accounted(rollout, "ok", True, 0, billed=True) for rollout in group.rollouts]
    assert cut_metrics([cut_off, item(0.0)], broken_prefixes=0)["truncated_fraction"] == 0.5
    assert cut_metrics(taught, broken_prefixes=0)["zero_advantage_fraction"] == 0.5


def make_graded():
    group = make_group(0, 4)
    for rollout in group.rollouts:
        rollout.outcome = make_outcome(1.0)
    return group


def test_staleness_is_a_histogram_of_trained_rollouts():
    metrics = cut_metrics([item(1.0, staleness=age) for age in (0, 1, 1)], broken_prefixes=0)
    assert (metrics["staleness_mean"], metrics["staleness_max"]) == (2 / 3, 1)
    assert (metrics["staleness/0"], metrics["staleness/1"]) == (1, 2)


def test_a_step_without_rewards_has_no_reward_metric():
    assert "reward" not in cut_metrics([], broken_prefixes=0)


def timed(group, *, duration_s: float, call_s: float, scoring_s: float) -> Accounted:
    (rollout,) = group.rollouts
    rollout.ended_s = duration_s
    rollout.outcome = make_outcome(1.0, calls=[make_call(started_s=0.0, ended_s=call_s)], scoring_s=scoring_s)
    return Accounted(rollout, "ok", True, 0, billed=True)


def test_the_parts_of_a_steps_time_add_up_to_it():
    group = make_group(0, 1)
    group.scoring_s = 1.0
    cut = cut_metrics([timed(group, duration_s=4.0, call_s=2.0, scoring_s=1.0)], broken_prefixes=0, groups=[group])
    assert (cut["generate_s_mean"], cut["environment_s_mean"], cut["score_s_mean"]) == (2.0, 1.0, 2.0)
    metrics = commit_metrics(cut, make_step_result(queue_s=0.5), {"wait": 10.0, "train": 2.0, "publish": 0.25})
    parts = {name: value for name, value in metrics.items() if name.startswith("time/")}
    assert parts == {
        "time/generate_s": 4.0,
        "time/environment_s": 2.0,
        "time/score_s": 4.0,
        "time/trainer_queue_s": 0.5,
        "time/train_s": 1.5,
        "time/publish_s": 0.25,
    }
    assert sum(parts.values()) == metrics["step_time_s"]


def test_a_runner_cannot_claim_more_time_than_passed():
    cut = cut_metrics([timed(make_group(0, 1), duration_s=3.0, call_s=1.0, scoring_s=1e9)], broken_prefixes=0)
    assert (cut["generate_s_mean"], cut["environment_s_mean"], cut["score_s_mean"]) == (1.0, 0.0, 2.0)


def test_the_range_of_a_steps_rewards_is_that_of_its_groups_means():
    low, high = make_group(0, 2), make_group(0, 2)
    accounted = []
    for group, rewards in ((low, (0.0, 0.5)), (high, (0.5, 1.0))):
        for rollout, reward in zip(group.rollouts, rewards, strict=True):
            rollout.outcome = make_outcome(reward)
            accounted.append(Accounted(rollout, "ok", True, 0, billed=True))
    metrics = cut_metrics(accounted, broken_prefixes=0)
    assert (metrics["reward_group_min"], metrics["reward_group_max"]) == (0.25, 0.75)
