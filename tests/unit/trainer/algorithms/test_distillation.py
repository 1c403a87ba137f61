"""What distillation tells every token, against cases worked out by hand."""

import pytest

from tests.factories.groups import make_group_view, make_rollout_view, make_seat, make_stream
from trainer.algorithms import GroupUnfit, SignalsLost, algorithm_for
from trainer.contracts.run_config import AlgorithmConfig


class Reader:
    """A reference that thinks token number n of what it reads worth -n; a word is spelled by its letters."""

    def __init__(self) -> None:
        self.read: list[tuple[list[int], str]] = []

    async def logprobs(self, token_ids, *, policy):
        self.read.append((list(token_ids), policy))
        return [-float(n) for n in range(len(token_ids))]

    def spell(self, text):
        return [ord(letter) for letter in text]


class Nobody(Reader):
    async def logprobs(self, token_ids, *, policy):
        raise SignalsLost("away")


def made(algorithm: str, reference=None, **options):
    return algorithm_for(AlgorithmConfig(id=algorithm, options=options), reference or Reader())


async def only(algorithm, group):
    (rollout,) = await algorithm.score(group)
    ((signals,),) = rollout.seats
    return rollout, signals


def three_tokens(hint="", reward=1.0):
    """A prompt of one token, then two that the policy sampled: ids 1, 2, 3."""
    return make_group_view(make_rollout_view(make_seat(reward, "agent", make_stream((1, False), (2, True)))), hint=hint)


async def test_opd_takes_the_teachers_view_of_the_pupils_own_tokens_and_nothing_else():
    reader = Reader()
    rollout, signals = await only(made("opd", reader), three_tokens())
    assert reader.read == [([1, 2, 3], "run.v0")]
    assert signals.ref_kl_weights == [0.0, 1.0, 1.0]
    assert signals.ref_logprobs == [0.0, -1.0, -2.0]
    assert (signals.rl_weights, signals.ce_weights, rollout.advantage, rollout.teaches) == (None, None, None, True)


async def test_opd_leaves_what_the_environment_said_alone():
    """Prompt, reply, observation, reply: weights and scores stand on the replies, each at its own place."""
    stream = make_stream((1, False), (1, True), (2, False), (1, True))
    _, signals = await only(made("opd"), make_group_view(make_rollout_view(make_seat(0.0, "agent", stream))))
    assert signals.ref_kl_weights == [0.0, 1.0, 0.0, 0.0, 1.0]
    assert signals.ref_logprobs == [0.0, -1.0, 0.0, 0.0, -4.0]


@pytest.mark.parametrize("hint", ["", "x", "a long hint"])
async def test_opsd_slices_the_scores_back_behind_the_hint(hint):
    """Token t of the stream is token len(hint) + t of what the reference read, however long the hint is."""
    reader = Reader()
    _, signals = await only(made("opsd", reader, hint=f">{hint}"), three_tokens())
    size = len(hint) + 1
    assert reader.read == [([ord(letter) for letter in f">{hint}"] + [1, 2, 3], "run.v0")]
    assert signals.ref_logprobs == [0.0, -(size + 1.0), -(size + 2.0)]
    assert signals.ref_kl_weights == [0.0, 1.0, 1.0]


async def test_opsd_takes_the_tasks_own_hint_where_the_option_leaves_room_for_it():
    reader = Reader()
    await made("opsd", reader, hint="<{hint}>").score(three_tokens(hint="ok"))
    await made("opsd", reader).score(three_tokens(hint="ok"))
    assert [bytes(ids[:-3]).decode() for ids, _ in reader.read] == ["<ok>", "ok"]


async def test_a_task_without_the_hint_that_opsd_needs_ends_the_run_by_name():
    with pytest.raises(GroupUnfit, match="task 0 of digits has no hint") as unfit:
        await made("opsd").score(three_tokens())
    assert "algorithm.options.hint" in str(unfit.value)


async def test_every_stream_of_every_seat_has_its_own_signals():
    short, long = make_stream((1, False), (1, True)), make_stream((2, False), (2, True))
    group = make_group_view(
        make_rollout_view(make_seat(1.0, "solver", short, long), make_seat(0.0, "judge", short)),
        make_rollout_view(make_seat(1.0, "solver", long)),
    )
    first, second = await made("opd").score(group)
    assert [[len(one.ref_logprobs) for one in seat] for seat in first.seats] == [[2, 4], [2]]
    assert [[one.ref_logprobs for one in seat] for seat in second.seats] == [[[0.0, 0.0, -2.0, -3.0]]]


async def test_a_teacher_that_is_away_costs_the_group():
    with pytest.raises(SignalsLost):
        await made("opd", Nobody()).score(three_tokens())


async def test_sft_imitates_every_token_that_the_generator_sampled():
    stream = make_stream((1, False), (1, True), (2, False), (1, True))
    rollout, signals = await only(made("sft"), make_group_view(make_rollout_view(make_seat(0.0, "agent", stream))))
    assert signals.ce_weights == [0.0, 1.0, 0.0, 0.0, 1.0]
    assert (signals.rl_weights, signals.ref_kl_weights, rollout.advantage) == (None, None, None)


async def test_sft_with_a_least_reward_leaves_the_other_rollouts_out():
    group = make_group_view(
        make_rollout_view(make_seat(1.0)), make_rollout_view(make_seat(0.5)), make_rollout_view(make_seat(0.0))
    )
    assert [one.teaches for one in await made("sft", min_reward=0.5).score(group)] == [True, True, False]


@pytest.mark.parametrize("algorithm", ["opd", "opsd", "sft"])
def test_a_group_of_one_is_enough(algorithm):
    assert made(algorithm).valid_min == 1
