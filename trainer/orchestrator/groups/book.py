"""The book of groups: every dispatched rollout enters once and leaves once, trained, failed or dropped.

Knows which groups are open, which are ready and what has been accounted. Refuses to know time, sockets and tensors. The
invariant that its property test drives: opened = in flight + held + accounted, at any moment and in any order of events.
"""

from trainer.orchestrator.rollouts.rollout import BILLED, Accounted, Group, Rollout, RolloutOutcome, RolloutState


class GroupBook:
    def __init__(self) -> None:
        self._open: dict[str, Group] = {}
        self._group_of: dict[str, Group] = {}
        self._ready: list[Group] = []
        self._accounted: list[Accounted] = []

    @property
    def inflight_count(self) -> int:
        return len(self._group_of)

    @property
    def ready_count(self) -> int:
        """Valid rollouts that wait for a batch."""
        return sum(len(group.valid) for group in self._ready)

    @property
    def outstanding_count(self) -> int:
        """Rollouts that may still fill a batch: those of open groups that are not doomed, and the ready ones."""
        return sum(len(group.rollouts) for group in self._open.values() if not group.doomed) + self.ready_count

    def inflight(self) -> list[Rollout]:
        return [rollout for group in self._open.values() for rollout in group.inflight]

    def open_groups(self) -> list[Group]:
        return list(self._open.values())

    def versions_in_use(self) -> set[int]:
        """Versions that an unfinished rollout still samples from, or that a group which is being scored may ask."""
        return {group.version for group in self._open.values()}

    def open(self, group: Group) -> None:
        self._open[group.group_id] = group
        for rollout in group.rollouts:
            self._group_of[rollout.rollout_id] = group

    def settle(self, rollout: Rollout, outcome: RolloutOutcome, *, ended_s: float) -> Group | None:
        """Record how a rollout ended. Returns its group once the last member is home and the group can be scored; a group
        that is doomed or has too few valid members is accounted here and None is returned."""
        group = self._group_of.pop(rollout.rollout_id)
        rollout.outcome, rollout.ended_s = outcome, ended_s
        if not group.complete:
            return None
        if not group.is_worth_scoring:
            self._drop(group, step=None)
            return None
        return group

    def admit(self, group: Group) -> None:
        """A scored group waits for a batch, unless scoring took so long that it is too old, or failed too many of its members."""
        if not group.is_worth_scoring:
            self._drop(group, step=None)
            return
        del self._open[group.group_id]
        self._ready.append(group)

    def doom(self, oldest_version: int, *, step: int) -> list[Rollout]:
        """Give up what batch `step` may no longer train on. Ready groups are accounted as stale; the rollouts in flight of
        open ones are returned, for the caller to cancel."""
        stale = [group for group in self._ready if group.version < oldest_version]
        self._ready = [group for group in self._ready if group.version >= oldest_version]
        for group in stale:
            group.doomed = True
            self._account(group, step=step, trained=False)
        late = [group for group in self._open.values() if group.version < oldest_version and not group.doomed]
        for group in late:
            group.doomed = True
        return [rollout for group in late for rollout in group.inflight]

    def cut(self, batch_size: int, *, step: int) -> list[Group] | None:
        """The oldest ready groups that together hold at least `batch_size` valid rollouts, or None if there are too few.
        The caller has swept with `doom` first, so that none of them is too old."""
        self._ready.sort(key=lambda group: group.version)
        taken, valid = 0, 0
        while taken < len(self._ready) and valid < batch_size:
            valid += len(self._ready[taken].valid)
            taken += 1
        if valid < batch_size:
            return None
        batch, self._ready = self._ready[:taken], self._ready[taken:]
        for group in batch:
            self._account(group, step=step, trained=True)
        return batch

    def close(self, *, ended_s: float) -> None:
        """Account everything that will never be trained, at the end of an attempt: rollouts in flight are cancelled."""
        for rollout in self.inflight():
            self._group_of.pop(rollout.rollout_id)
            rollout.outcome, rollout.ended_s = RolloutOutcome("cancelled", error="the attempt ended"), ended_s
        for group in list(self._open.values()):
            self._drop(group, step=None)
        for group in self._ready:
            self._account(group, step=None, trained=False)
        self._ready = []

    def take_accounted(self) -> list[Accounted]:
        """Everything accounted since the last call, each rollout once."""
        taken, self._accounted = self._accounted, []
        return taken

    def _drop(self, group: Group, *, step: int | None) -> None:
        del self._open[group.group_id]
        self._account(group, step=step, trained=False)

    def _account(self, group: Group, *, step: int | None, trained: bool) -> None:
        staleness = 0 if step is None else max(0, step - 1 - group.version)
        for rollout in group.rollouts:
            state = _final_state(rollout, doomed=group.doomed)
            learned = trained and rollout.valid
            self._accounted.append(Accounted(rollout, state, learned, staleness, billed=learned or state in BILLED))


def _final_state(rollout: Rollout, *, doomed: bool) -> RolloutState:
    """A doomed group's good and cancelled members went stale; a failure stays what it was."""
    if rollout.outcome is None:
        raise ValueError(f"rollout {rollout.rollout_id} is accounted while in flight")
    return "stale" if doomed and rollout.outcome.state in ("ok", "cancelled") else rollout.outcome.state
