"""What the trainer refuses, each with the code that the wire carries.

Knows why a single run's request is refused. A refusal never concerns another run.
"""


class TrainerRefusal(Exception):
    """`code` is one of those that `trainer.contracts.training` lists; the text names what is wrong and where."""

    code = "internal"


class BadBatch(TrainerRefusal):
    """A misaligned, out-of-range or non-finite batch. The run's parameters and moments are untouched."""

    code = "bad_batch"


class NonFinite(BadBatch):
    """The batch is well formed, but its gradient overflows."""

    code = "non_finite"


class NotServable(TrainerRefusal):
    """An adapter that this pool could not serve: rank, target modules, or a warm start of another shape."""

    code = "not_servable"


class NotExportable(TrainerRefusal):
    """A version that cannot be written for use elsewhere: damaged, of other base weights, or too large."""

    code = "not_exportable"


class NoFreeSlot(TrainerRefusal):
    code = "no_free_slot"


class RunNotOpen(TrainerRefusal):
    code = "run_not_open"


class StaleLease(TrainerRefusal):
    code = "stale_lease"


class StepOutOfOrder(TrainerRefusal):
    code = "step_out_of_order"


class RunMismatch(TrainerRefusal):
    """A run is opened again under another specification: its batch log would no longer replay to its adapter."""

    code = "run_mismatch"


class UnknownState(TrainerRefusal):
    """A run's files were written by a release that this one does not understand; the text names the format and the way out."""

    code = "unknown_state"
