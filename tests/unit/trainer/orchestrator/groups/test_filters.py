"""Filters: what they find, what they leave out, and that they never keep a run from getting on."""

import math

import pytest

from tests.factories.rollouts import make_call, make_group, make_outcome, teach
from trainer.algorithms import Signals
from trainer.contracts.filters import GibberishFilter, RepetitionFilter, ZeroAdvantageFilter
from trainer.orchestrator.attempt.endings import AttemptOver
from trainer.orchestrator.groups.filters import DROPPED_BATCHES_MAX, UNUSED_BATCHES_MAX, RolloutFilters
from trainer.orchestrator.rollouts.branches import Branch
from trainer.orchestrator.rollouts.rollout import Lesson

SURE, UNSURE = math.log(0.995), math.log(0.5)
REPETITION = RepetitionFilter(type="repetition", window=3, enforce=True)
GIBBERISH = GibberishFilter(type="gibberish", token_id_threshold=100, logprob_threshold=-5.0, enforce=True)
ZERO = ZeroAdvantageFilter(type="zero_advantage")


def filters(*chosen, warnings=None):
    return RolloutFilters(chosen, batch_size=4, warn=[].append if warnings is None else warnings.append)


def said(*logprobs: float, tokens=None):
    tokens = tokens or range(1, len(logprobs) + 1)
    return make_outcome(0.5, calls=[make_call((1, 2), tuple(tokens), logprobs=tuple(logprobs))])


@pytest.mark.parametrize(
    ("logprobs", "found"),
    [
        ([SURE, SURE, SURE], True),
        ([UNSURE, SURE, SURE, SURE], True),
        ([SURE, SURE, UNSURE, SURE, SURE], False),
        ([SURE, SURE], False),
        ([UNSURE] * 9, False),
    ],
)
def test_a_loop_is_a_run_of_certain_tokens(logprobs, found):
    outcome = filters(REPETITION).examine(said(*logprobs))
    assert (outcome.state == "filtered") is found
    assert outcome.reward == 0.5, "what is filtered keeps the reward that it was given"
    assert not found or outcome.error.startswith("repetition: 3 tokens in a row")


def test_a_loop_does_not_reach_over_two_replies():
    calls = [make_call((1, 2), (3, 4), logprobs=(SURE, SURE)), make_call((1, 2, 3, 4, 5), (6, 7), logprobs=(SURE, SURE))]
    assert filters(REPETITION).examine(make_outcome(calls=calls)).state == "ok"


@pytest.mark.parametrize(
    ("token", "logprob", "found"), [(101, -5.1, True), (100, -5.1, False), (101, -4.9, False), (7, -0.1, False)]
)
def test_gibberish_is_a_rare_token_that_was_hardly_believed(token, logprob, found):
    outcome = filters(GIBBERISH).examine(said(-0.1, logprob, tokens=(5, token)))
    assert (outcome.state == "filtered") is found
    assert not found or "rare 101" in outcome.error


def test_what_is_not_enforced_is_counted_alone():
    watched = filters(REPETITION.model_copy(update={"enforce": False}), ZERO.model_copy(update={"enforce": False}))
    assert watched.examine(said(SURE, SURE, SURE)).state == "ok"
    group = flat_group()
    watched.sift(group, step=1)
    assert len(group.valid) == 2
    assert watched.take_counts() == {"filter/repetition": 1, "filter/zero_advantage": 2}
    assert watched.take_counts() == {"filter/repetition": 0, "filter/zero_advantage": 0}


def test_failures_are_left_as_they_are():
    failure = make_outcome(state="failed", error="KeyError")
    assert filters(REPETITION, GIBBERISH).examine(failure) is failure


def flat_group(advantages=(0.0, 0.0)):
    group = make_group(0, 2)
    for rollout in group.rollouts:
        rollout.outcome = make_outcome(1.0)
    return teach(group, advantages)


def test_a_group_that_teaches_nothing_is_left_out_with_its_rewards():
    group, other = flat_group(), flat_group((0.5, -0.5))
    for one in (group, other):
        filters(ZERO).sift(one, step=1)
    assert [(one.outcome.state, one.outcome.reward, one.lessons) for one in group.rollouts] == [("filtered", 1.0, ())] * 2
    assert "zero_advantage" in group.rollouts[0].outcome.error
    assert len(other.valid) == 2


def test_without_filters_nothing_is_left_out():
    group = flat_group()
    filters().sift(group, step=1)
    assert len(group.valid) == 2 and filters().take_counts() == {}


def test_a_step_waits_for_a_few_batches_of_lessons_and_no_longer():
    warnings = []
    sieve = filters(ZERO, warnings=warnings)

    def kept(step: int) -> bool:
        group = flat_group()
        sieve.sift(group, step=step)
        return len(group.valid) == 2

    dropped = DROPPED_BATCHES_MAX * 4 // 2
    assert [kept(1) for _ in range(dropped + 2)] == [False] * dropped + [True, True]
    assert len(warnings) == 1 and warnings[0].startswith("step 1: 16 rollouts")
    assert not kept(2), "the next step begins to wait anew"


def test_a_rollout_of_which_nothing_is_taken_fills_no_batch_and_keeps_its_reward():
    group = make_group(size=2)
    for rollout, weights in zip(group.rollouts, ([0.0, 0.0, 1.0, 1.0], None), strict=True):
        rollout.outcome = make_outcome(0.5)
        rollout.lessons = (Lesson(Branch([1, 2, 3, 4]), Signals(ce_weights=weights)),)
    filters().sift(group, step=1)
    used, unused = group.rollouts
    assert (used.valid, unused.valid, unused.lessons) == (True, False, ())
    assert (unused.outcome.state, unused.outcome.reward) == ("filtered", 0.5) and "min_reward" in unused.outcome.error


def test_a_run_that_takes_nothing_for_long_pauses_and_says_why():
    sifting = filters()

    def fruitless(count: int) -> None:
        for _ in range(count):
            group = make_group(size=1)
            group.rollouts[0].outcome = make_outcome(0.0)
            sifting.sift(group, step=1)

    fruitless(UNUSED_BATCHES_MAX * 4 - 1)
    good = make_group(size=1)
    good.rollouts[0].outcome = make_outcome(1.0)
    good.rollouts[0].lessons = (Lesson(Branch([1, 2]), Signals(ce_weights=[0.0, 1.0])),)
    sifting.sift(good, step=1)
    fruitless(UNUSED_BATCHES_MAX * 4 - 1)
    with pytest.raises(AttemptOver, match="min_reward") as over:
        fruitless(1)
    assert over.value.outcome == "paused"
