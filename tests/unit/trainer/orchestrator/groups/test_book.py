"""The book of groups: whatever happens, in whatever order, every dispatched rollout is accounted exactly once."""

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from tests.factories.rollouts import make_group, make_outcome
from trainer.orchestrator.groups.book import GroupBook
from trainer.orchestrator.groups.staleness import StalenessRule

STATES = ["ok", "ok", "ok", "failed", "incomplete", "deadline", "infrastructure", "filtered"]
BATCH, SIZE = 8, 4


class AnyOrder(RuleBasedStateMachine):
    """Groups open, end in any way, go stale, and are cut, as random delays would have it."""

    @initialize(bound=st.integers(0, 3))
    def begin(self, bound):
        self.rule_of = StalenessRule(bound, BATCH)
        self.book = GroupBook()
        self.version, self.next_step = 0, 1
        self.opened, self.accounted, self.trained = {}, [], []
        self.cancelled = set()

    def collect(self):
        self.accounted += self.book.take_accounted()

    @rule()
    def dispatch(self):
        outstanding = self.book.outstanding_count
        if self.rule_of.may_dispatch(version=self.version, next_step=self.next_step, outstanding=outstanding):
            group = make_group(self.version, SIZE)
            self.book.open(group)
            self.opened |= {rollout.rollout_id: rollout for rollout in group.rollouts}

    @precondition(lambda self: self.book.inflight_count)
    @rule(data=st.data(), state=st.sampled_from(STATES))
    def end_one(self, data, state):
        rollout = data.draw(st.sampled_from(self.book.inflight()))
        state = "cancelled" if rollout.rollout_id in self.cancelled else state
        group = self.book.settle(rollout, make_outcome(state=state), ended_s=1.0)
        if group is not None:
            self.book.admit(group)

    @rule()
    def end_all(self):
        for rollout in self.book.inflight():
            group = self.book.settle(rollout, make_outcome(), ended_s=1.0)
            if group is not None:
                self.book.admit(group)

    @rule()
    def sweep(self):
        late = self.book.doom(self.rule_of.oldest_version(self.next_step), step=self.next_step)
        self.cancelled |= {rollout.rollout_id for rollout in late}

    @rule()
    def cut(self):
        self.sweep()
        groups = self.book.cut(BATCH, step=self.next_step)
        if groups is None:
            return
        assert sum(len(group.valid) for group in groups) >= BATCH
        for group in groups:
            assert self.rule_of.of(group.version, self.next_step) <= self.rule_of.bound
        self.version, self.next_step = self.next_step, self.next_step + 1

    @invariant()
    def once_each(self):
        self.collect()
        ids = [item.rollout.rollout_id for item in self.accounted]
        assert len(ids) == len(set(ids))
        held = self.book.ready_count
        assert set(ids) <= set(self.opened)
        assert len(ids) + self.book.inflight_count + held <= len(self.opened)

    @invariant()
    def only_the_valid_are_trained_and_only_failures_of_its_own_are_billed_besides(self):
        for item in self.accounted:
            assert not item.trained or (item.state == "ok" and item.staleness <= self.rule_of.bound)
            assert item.billed == (item.trained or item.state in {"failed", "incomplete", "deadline", "filtered"})

    @invariant()
    def never_stuck(self):
        """With nothing outstanding there is always room for a new group."""
        if not self.book.outstanding_count:
            assert self.rule_of.may_dispatch(version=self.version, next_step=self.next_step, outstanding=0)

    def teardown(self):
        self.book.close(ended_s=2.0)
        self.collect()
        assert {item.rollout.rollout_id for item in self.accounted} == set(self.opened)


AnyOrder.TestCase.settings = settings(max_examples=30, stateful_step_count=30, deadline=None)
TestAnyOrder = AnyOrder.TestCase


def test_the_oldest_groups_are_cut_first():
    book = GroupBook()
    for version in (3, 1, 2):
        group = make_group(version, 2)
        book.open(group)
        for rollout in group.rollouts:
            ready = book.settle(rollout, make_outcome(), ended_s=1.0)
        book.admit(ready)
    assert [group.version for group in book.cut(4, step=4)] == [1, 2]


def test_a_group_with_one_valid_member_is_dropped_whole_and_its_failures_are_billed():
    book, group = GroupBook(), make_group(0, 2)
    book.open(group)
    assert book.settle(group.rollouts[0], make_outcome(), ended_s=1.0) is None
    assert book.settle(group.rollouts[1], make_outcome(state="failed"), ended_s=1.0) is None
    states = [(item.state, item.trained, item.billed) for item in book.take_accounted()]
    assert states == [("ok", False, False), ("failed", False, True)]


def test_a_stale_group_in_flight_hands_out_its_rollouts_once_and_ages_as_a_unit():
    book, group = GroupBook(), make_group(0, 2)
    book.open(group)
    book.settle(group.rollouts[0], make_outcome(), ended_s=1.0)
    assert book.doom(1, step=3) == [group.rollouts[1]]
    assert book.doom(1, step=3) == []
    assert book.settle(group.rollouts[1], make_outcome(state="cancelled"), ended_s=2.0) is None
    assert [item.state for item in book.take_accounted()] == ["stale", "stale"]
