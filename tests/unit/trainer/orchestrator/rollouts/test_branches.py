"""Calls become branches by exact prefix; nothing is tokenized again and no sampled token trains twice."""

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.factories.rollouts import make_call
from trainer.orchestrator.rollouts.branches import merge_calls

TOKENS = st.lists(st.integers(0, 3), min_size=1, max_size=4).map(tuple)


def test_a_turn_that_continues_the_tokens_extends_the_branch():
    first, second = make_call((1, 2), (3, 4)), make_call((1, 2, 3, 4, 9, 9), (5,))
    merged = merge_calls([first, second])
    assert merged.broken == 0
    (branch,) = merged.branches
    assert branch.token_ids == [1, 2, 3, 4, 9, 9, 5]
    assert branch.mask == [False, False, True, True, False, False, True]
    assert branch.logprobs == [0.0, 0.0, -0.5, -0.6, 0.0, 0.0, -0.5]


def test_a_template_that_drops_earlier_thinking_begins_a_branch_and_is_counted():
    first = make_call((1, 2), (7, 7, 3))
    second = make_call((1, 2, 3, 9), (5,))
    merged = merge_calls([first, second])
    assert merged.broken == 1
    assert [branch.token_ids for branch in merged.branches] == [[1, 2, 7, 7, 3], [1, 2, 3, 9, 5]]
    assert merged.branches[1].mask == [False, False, False, False, True]


def test_asking_an_earlier_point_again_is_a_fork_and_not_broken():
    merged = merge_calls([make_call((1, 2), (3,)), make_call((1, 2), (4,))])
    assert merged.broken == 0
    assert [branch.token_ids for branch in merged.branches] == [[1, 2, 3], [1, 2, 4]]


def test_a_sub_agents_conversation_and_a_second_question_are_forks_and_train_nothing_twice():
    first = make_call((1, 2), (3, 4))
    sub_agent = make_call((8, 8), (7,))
    other_question = make_call((1, 2, 3, 4, 9), (5,))
    asked_otherwise = make_call((1, 2, 3, 4, 6), (5,))
    merged = merge_calls([first, sub_agent, other_question, asked_otherwise])
    assert merged.broken == 0
    assert [branch.mask for branch in merged.branches] == [
        [False, False, True, True, False, True],
        [False, False, True],
        [False, False, False, False, False, True],
    ]


def test_the_longest_fitting_branch_is_continued():
    calls = [make_call((1,), (2,)), make_call((1,), (3,)), make_call((1, 2, 8), (9,)), make_call((1, 3, 8), (7,))]
    assert [branch.token_ids for branch in merge_calls(calls).branches] == [[1, 2, 8, 9], [1, 3, 8, 7]]


@settings(max_examples=40, deadline=None)
@given(st.lists(st.tuples(TOKENS, TOKENS), max_size=8))
def test_every_sampled_token_is_marked_exactly_once_and_streams_align(turns):
    calls = [make_call(prompt, sampled) for prompt, sampled in turns]
    merged = merge_calls(calls)
    assert sum(sum(branch.mask) for branch in merged.branches) == sum(len(call.token_ids) for call in calls)
    for branch in merged.branches:
        assert len(branch.token_ids) == len(branch.mask) == len(branch.logprobs) == len(branch.temperatures)
        assert all(value == 0.0 for value, sampled in zip(branch.logprobs, branch.mask, strict=True) if not sampled)
    assert merged.broken <= max(0, len(merged.branches) - 1)


@settings(max_examples=40, deadline=None)
@given(TOKENS, st.lists(st.tuples(TOKENS, TOKENS), min_size=1, max_size=6))
def test_a_conversation_that_only_grows_is_one_branch(start, turns):
    history, calls = tuple(start), []
    for observed, sampled in turns:
        calls.append(make_call(history, sampled))
        history = history + sampled + observed
    merged = merge_calls(calls)
    assert len(merged.branches) == 1
    assert tuple(merged.branches[0].token_ids) == calls[-1].prompt_ids + calls[-1].token_ids
