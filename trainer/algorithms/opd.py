"""OPD, on-policy distillation: a frozen teacher reads what the student said and says how likely it would have said it.

Source: docs/algorithms.md, "opd". Rewards have no say: the environment only provides the situations.
Knows that a teacher's log-probabilities are wanted. Refuses to know who it is and how it is asked.
"""

from collections.abc import Sequence

from trainer.algorithms.distillation import Distillation
from trainer.algorithms.protocol import GroupView
from trainer.contracts.algorithms import OpdOptions


class Opd(Distillation[OpdOptions]):
    id = "opd"

    def prefix(self, group: GroupView) -> Sequence[int]:
        return ()
