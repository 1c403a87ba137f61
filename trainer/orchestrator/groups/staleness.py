"""Staleness: how many optimizer steps lie between a group's dispatch and the batch that trains on it.

Knows arithmetic on step numbers. Refuses to know groups, clocks and I/O.

Batch `step` trains version `step - 1` into version `step`. A group dispatched on version v and trained in batch `step` has
staleness (step - 1) - v. The bound is enforced at dispatch (a group that could not arrive in time is not started), in flight
(what can no longer make it is cancelled) and at the cut (what is too old is dropped). The cut is the guarantee.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class StalenessRule:
    """`bound` in optimizer steps, `batch_size` in rollouts."""

    bound: int
    batch_size: int

    def of(self, version: int, step: int) -> int:
        return step - 1 - version

    def oldest_version(self, step: int) -> int:
        """The oldest dispatch version that batch `step` may still train on."""
        return step - 1 - self.bound

    def may_dispatch(self, *, version: int, next_step: int, outstanding: int) -> bool:
        """Whether a group started now on `version` can be trained within the bound.

        `next_step` is the next batch to be cut, `outstanding` the rollouts that are ahead of it. They fill
        outstanding // batch_size batches first.
        """
        return self.of(version, next_step + outstanding // self.batch_size) <= self.bound
