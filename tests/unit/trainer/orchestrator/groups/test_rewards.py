"""What comparison with the group adds to a rollout's reward, and what happens when there is no comparison."""

from types import SimpleNamespace

import pytest

from trainer.algorithms import RolloutSignals
from trainer.contracts.rollouts import GroupMember, GroupScores, MemberTrace, RunnerHealth, TenantError
from trainer.contracts.run_config import GroupReward
from trainer.orchestrator.attempt.endings import AttemptOver
from trainer.orchestrator.environments.runner_client import RunnerSilent, TenantRefused
from trainer.orchestrator.groups.rewards import GroupRewards, shortest_correct
from trainer.orchestrator.groups.scoring import GroupScorer
from trainer.orchestrator.rollouts.rollout import Group, Rollout, RolloutOutcome


class Compared:
    """An environment that declares two group rewards and answers as told."""

    name = "acme/compared"

    def __init__(self, answer=None) -> None:
        self.health = RunnerHealth(status="ready", group_rewards=["long", "odd"])
        self.answer = answer or {"long": [0.0, 1.0, 0.0], "odd": [2.0, 2.0, -2.0]}
        self.asked = []

    async def score_group(self, request) -> GroupScores:
        self.asked.append(request)
        if isinstance(self.answer, Exception):
            raise self.answer
        return GroupScores(scores={name: self.answer[name] for name in request.names if name in self.answer})


class SeesRewards:
    valid_min = 1

    def __init__(self) -> None:
        self.seen = None

    async def score(self, view):
        self.seen = [rollout.reward for rollout in view.rollouts]
        return [RolloutSignals(None, ()) for _ in view.rollouts]


def member(reward: float, tokens: int) -> GroupMember:
    return GroupMember(rollout_id="r", reward=reward, completion_tokens=tokens)


def make_group(*rewards_and_tokens: tuple[float, int]) -> Group:
    rollouts = [
        Rollout(f"r{index}", "g", "acme/compared", 7, "key", "", 0, 0.0, 1.0, _Outcome("ok", reward=reward, said=tokens))
        for index, (reward, tokens) in enumerate(rewards_and_tokens)
    ]
    return Group("g", "acme/compared", 7, 0, rollouts, valid_min=1)


class _Outcome(RolloutOutcome):
    """An outcome whose calls said so many tokens."""

    def __new__(cls, state, *, reward, said):
        call = SimpleNamespace(output_tokens=said, route="chat")
        report = SimpleNamespace(agent="agent", messages=[], trainable=False)
        return RolloutOutcome(state, reward, traces=(SimpleNamespace(report=report, calls=(call,)),))


async def scored(environment, chosen, group) -> list[float]:
    """The rewards that the algorithm saw; nothing where it was not asked."""
    algorithm = SeesRewards()
    scorer = GroupScorer({environment.name: algorithm}, {environment.name: GroupRewards(environment, chosen)})
    scorer.check()
    await scorer(group)
    return algorithm.seen or []


def test_the_worked_case():
    """docs/environments.md, "Group rewards": (42, 80 tokens, right), (42, 30, right), (41, 10, wrong), bonus 0.2."""
    assert shortest_correct([member(1.0, 80), member(1.0, 30), member(0.0, 10)]) == [0.0, 1.0, 0.0]


@pytest.mark.parametrize(
    ("members", "scores"),
    [([(1.0, 5), (1.0, 5), (1.0, 6)], [1.0, 1.0, 0.0]), ([(0.0, 5), (0.5, 1)], [0.0, 0.0]), ([], [])],
)
def test_the_shortest_correct_shares_with_its_equals_and_nobody_wins_where_all_are_wrong(members, scores):
    assert shortest_correct([member(*one) for one in members]) == scores


async def test_the_bonus_is_added_before_the_algorithm_compares_and_shown_as_a_part():
    group = make_group((1.0, 80), (1.0, 30), (0.0, 10))
    seen = await scored(Compared(), [GroupReward(name="shortest_correct", weight=0.2)], group)
    assert seen == pytest.approx([1.0, 1.2, 0.0])
    assert [rollout.outcome.rewards for rollout in group.rollouts] == [{"group/shortest_correct": v} for v in (0.0, 1.0, 0.0)]


async def test_without_a_choice_all_that_the_environment_declares_is_added():
    environment = Compared()
    assert await scored(environment, None, make_group((1.0, 1), (0.0, 1), (0.0, 1))) == [3.0, 3.0, -2.0]
    assert environment.asked[0].names == ["long", "odd"] and environment.asked[0].task == 7


async def test_an_empty_choice_compares_nobody():
    environment = Compared()
    assert await scored(environment, [], make_group((1.0, 1), (0.0, 1))) == [1.0, 0.0]
    assert environment.asked == []


async def test_only_what_is_chosen_is_asked_for():
    environment = Compared()
    chosen = [GroupReward(name="odd", weight=-1.0)]
    assert await scored(environment, chosen, make_group((1.0, 1), (0.0, 1), (0.0, 1))) == [-1.0, -2.0, 2.0]
    assert environment.asked[0].names == ["odd"]


async def test_one_that_nobody_declares_ends_the_attempt_before_it_begins():
    with pytest.raises(AttemptOver, match="group_reward_lnog; there are shortest_correct, long, odd"):
        await scored(Compared(), [GroupReward(name="lnog")], make_group((1.0, 1)))


@pytest.mark.parametrize(
    ("answer", "state", "words"),
    [
        (
            TenantRefused(TenantError(type="KeyError", message="'x'", module="e/t.py", line=3)),
            "failed",
            "KeyError: 'x' at e/t.py:3",
        ),
        (RunnerSilent("the runner is gone"), "infrastructure", "the runner is gone"),
        ({"long": [0.0], "odd": [0.0, 0.0]}, "failed", "left rollouts of the group out"),
        ({"long": [0.0, 0.0]}, "failed", "left rollouts of the group out"),
    ],
)
async def test_a_comparison_that_fails_is_no_reward(answer, state, words):
    group = make_group((1.0, 1), (0.0, 1))
    assert await scored(Compared(answer), None, group) == []
    assert {(rollout.outcome.state, rollout.outcome.reward) for rollout in group.rollouts} == {(state, None)}
    assert all(words in rollout.outcome.error for rollout in group.rollouts)


def test_a_members_reply_is_the_last_thing_that_its_first_seat_said():
    messages = [
        {"role": "assistant", "content": "one"},
        {"role": "user", "content": "?"},
        {"role": "assistant", "content": "two"},
    ]
    seats = [MemberTrace(agent="a", messages=messages), MemberTrace(agent="b", messages=[{"role": "assistant", "content": "x"}])]
    assert member(1.0, 1).model_copy(update={"traces": seats}).reply == "two"
    assert member(1.0, 1).reply == ""
