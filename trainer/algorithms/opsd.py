"""OPSD, on-policy self-distillation: the policy reads its own tokens again behind a hint, and learns to have known it.

Source: docs/algorithms.md, "opsd". The reference is the version that sampled, so that what differs is the hint alone.
Knows the hint and where it goes. Refuses to know how the policy is asked.
"""

from collections.abc import Sequence

from trainer.algorithms.distillation import Distillation
from trainer.algorithms.protocol import GroupUnfit, GroupView
from trainer.contracts.algorithms import HINT_PLACE, OpsdOptions


class Opsd(Distillation[OpsdOptions]):
    id = "opsd"

    def prefix(self, group: GroupView) -> Sequence[int]:
        assert self._reference is not None, "opsd was made without a reference"
        if HINT_PLACE in self._options.hint and not group.hint:
            raise GroupUnfit(
                f"task {group.task} of {group.environment} has no hint, and algorithm.options.hint = {self._options.hint!r} "
                "needs one: give the task's data a field `hint`, or write the hint into the option"
            )
        return self._reference.spell(self._options.hint.replace(HINT_PLACE, group.hint))
