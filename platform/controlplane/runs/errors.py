"""What can go wrong with what runs leave behind."""

from controlplane.core.errors import Conflict


class CheckpointRetired(Conflict):
    """The checkpoint was there, and the plan of its run has dropped it since."""

    code = "checkpoint_retired"

    def __init__(self, step: int, kept: int) -> None:
        super().__init__(
            f"the checkpoint of step {step} was removed: its run keeps the newest {max(1, kept)} (checkpoints.keep_cloud)",
            hint="`prime train checkpoints RUN` lists those that are there.",
        )
