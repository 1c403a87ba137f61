"""From groups to the batch: the proxy's tokens as they were, masks, weights and the counts of the header."""

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.factories.rollouts import make_call, make_group, make_outcome, teach
from trainer.algorithms import RolloutSignals, Signals
from trainer.contracts.base import new_id
from trainer.contracts.rollouts import TraceReport
from trainer.orchestrator.groups.views import GroupStudy
from trainer.orchestrator.rollouts.rollout import RolloutOutcome, Trace
from trainer.orchestrator.steps.batches import cut_batch


def ended(group):
    for rollout in group.rollouts:
        rollout.outcome = make_outcome()
    return group


def scored(group, advantages):
    return teach(ended(group), advantages)


def test_samples_carry_the_recorded_tokens_and_the_advantage_on_the_sampled_ones():
    cut = cut_batch(new_id(), 3, [scored(make_group(2, 2), [0.5, -0.5])])
    sample = cut.batch.samples[0]
    assert sample.token_ids == [1, 2, 3, 4]
    assert sample.mask == [False, False, True, True]
    assert sample.advantages == [0.0, 0.0, 0.5, 0.5]
    assert sample.rl_weights == [0.0, 0.0, 1.0, 1.0]
    assert sample.policy_versions == [2, 2, 2, 2]
    assert (cut.batch.step, cut.batch.n_rl, cut.batch.n_ce) == (3, 4, 0)


def test_failed_members_of_a_group_are_no_samples():
    group = ended(make_group(0, 3))
    group.rollouts[2].outcome = make_outcome(state="failed")
    assert len(cut_batch(new_id(), 1, [teach(group, [1.0, -1.0])]).batch.samples) == 2


def test_a_seat_that_is_not_trainable_trains_nothing():
    group = ended(make_group(0, 2))
    user = Trace(TraceReport(trace_id="u", state="ok", trainable=False), (make_call((9,), (9,)),))
    outcome = group.rollouts[0].outcome
    group.rollouts[0].outcome = RolloutOutcome("ok", 1.0, traces=(*outcome.traces, user))
    assert len(cut_batch(new_id(), 1, [teach(group, [1.0, -1.0])]).batch.samples) == 2


def test_a_broken_prefix_is_counted_and_both_branches_train_their_own_tokens():
    group = ended(make_group(0, 2))
    group.rollouts[0].outcome = make_outcome(calls=[make_call((1, 2), (7, 3)), make_call((1, 2, 3, 9), (5,))])
    cut = cut_batch(new_id(), 1, [teach(group, [1.0, -1.0])])
    assert cut.broken_prefixes == 1
    assert len(cut.batch.samples) == 3
    assert cut.batch.n_rl == 2 + 1 + 2


WEIGHTS = st.lists(st.sampled_from([0.0, 0.0, 1.0, 0.1]), min_size=4, max_size=4)
STREAMS = st.builds(
    Signals,
    rl_weights=st.none() | WEIGHTS,
    advantages=st.just([0.5] * 4),
    ce_weights=st.none() | WEIGHTS,
    ref_kl_weights=st.none() | WEIGHTS,
    ref_logprobs=st.just([-1.0] * 4),
)


@settings(max_examples=50, deadline=None)
@given(st.lists(STREAMS, min_size=1, max_size=6))
def test_each_component_is_counted_over_the_whole_batch_by_its_weights_that_are_not_zero(streams):
    """Groups whose algorithms feed different components share one batch, and each component has its own denominator."""
    groups = [ended(make_group(0, 1)) for _ in streams]
    for group, signals in zip(groups, streams, strict=True):
        GroupStudy(group, has_group_rewards=False).teach([RolloutSignals(None, ((signals,),))])
    batch = cut_batch(new_id(), 1, groups).batch
    for name in ("rl", "ce", "ref_kl"):
        weights = [weight for signals in streams for weight in getattr(signals, f"{name}_weights") or []]
        assert getattr(batch, f"n_{name}") == sum(weight != 0 for weight in weights)
        told = [weight for sample in batch.samples for weight in getattr(sample, f"{name}_weights") or []]
        assert [weight for weight in told if weight] == [weight for weight in weights if weight]


TOKENS = st.lists(st.integers(1, 3), min_size=1, max_size=4).map(tuple)
TURNS = st.lists(st.tuples(TOKENS, TOKENS, st.booleans()), min_size=1, max_size=5)


def conversation(turns):
    """Calls of one trace: each goes on from the one before, or from a history that was rewritten."""
    history, calls = (0, 0), []
    for observed, sampled, rewritten in turns:
        prompt = (0, *history[2:]) if rewritten else history
        calls.append(make_call(prompt, sampled))
        history = (*prompt, *sampled, *observed)
    return calls


@settings(max_examples=60, deadline=None)
@given(TURNS, st.floats(-2, 2))
def test_the_batch_trains_exactly_the_tokens_that_were_sampled_each_once(turns, advantage):
    calls = conversation(turns)
    group = make_group(0, 1)
    group.rollouts[0].outcome = make_outcome(calls=calls)
    cut = cut_batch(new_id(), 1, [teach(group, [advantage])])
    trained = [
        (token, logprob)
        for sample in cut.batch.samples
        for token, logprob, mask in zip(sample.token_ids, sample.logprobs, sample.mask, strict=True)
        if mask
    ]
    sampled = [pair for call in calls for pair in zip(call.token_ids, call.logprobs, strict=True)]
    assert sorted(trained) == sorted(sampled) and cut.batch.n_rl == len(sampled)
    for sample in cut.batch.samples:
        for mask, weight, credit in zip(sample.mask, sample.rl_weights, sample.advantages, strict=True):
            assert (weight, credit) == ((1.0, advantage) if mask else (0.0, 0.0))
        # A stream is one call's history with what it sampled: never a mixture, never rendered anew.
        assert any(tuple(sample.token_ids) == call.prompt_ids + call.token_ids for call in calls)
