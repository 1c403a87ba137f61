"""Environments take turns by their ratios."""

from collections import Counter

from hypothesis import given, settings
from hypothesis import strategies as st

from trainer.orchestrator.environments.mixture import Mixture


@settings(max_examples=40, deadline=None)
@given(st.lists(st.integers(1, 9), min_size=1, max_size=5), st.integers(1, 200))
def test_every_prefix_is_within_one_turn_of_the_shares(ratios, turns):
    names = {f"e{index}": float(ratio) for index, ratio in enumerate(ratios)}
    mixture = Mixture(names)
    counts = Counter(mixture.next() for _ in range(turns))
    for name, ratio in names.items():
        assert abs(counts[name] - turns * ratio / sum(names.values())) <= len(names)


def test_skipping_turns_continues_the_order():
    first, second = Mixture({"a": 2.0, "b": 1.0}), Mixture({"a": 2.0, "b": 1.0})
    order = [first.next() for _ in range(9)]
    second.skip(4)
    assert [second.next() for _ in range(5)] == order[4:]
