"""How rewards become signals: one file per algorithm, and the registry that finds it by name.

Knows ids and options. Refuses to know tensors and models: the trainer sees token streams and never an algorithm.
"""

from trainer.algorithms.protocol import (
    Algorithm,
    GroupUnfit,
    GroupView,
    Reference,
    RolloutSignals,
    RolloutView,
    SeatView,
    Signals,
    SignalsLost,
    UnknownAlgorithm,
)
from trainer.algorithms.registry import ALGORITHMS, algorithm_for

__all__ = [
    "ALGORITHMS",
    "Algorithm",
    "GroupUnfit",
    "GroupView",
    "Reference",
    "RolloutSignals",
    "RolloutView",
    "SeatView",
    "Signals",
    "SignalsLost",
    "UnknownAlgorithm",
    "algorithm_for",
]
