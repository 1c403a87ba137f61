"""What can go wrong with reports from elsewhere, in the words that their senders need."""

from controlplane.core.errors import Conflict, Invalid


class NotExternal(Conflict):
    """The run is trained here: its own processes report of it, and nobody else does."""

    code = "run_not_external"

    def __init__(self, run_id: str) -> None:
        super().__init__(
            f"The run '{run_id}' is trained here, and its own processes report of it.",
            hint="Leave RUN_ID unset: the trainer then makes a run of its own.",
        )


class RunEnded(Conflict):
    """A run that has ended takes no more reports."""

    code = "run_ended"

    def __init__(self, state: str) -> None:
        super().__init__(f"The run is {state} and takes no more reports.", hint="Leave RUN_ID unset for a new run.")


class SamplesRefused(Invalid):
    """The uploaded file is no table of samples. Nothing of it was kept."""

    code = "samples_refused"

    def __init__(self, reason: str) -> None:
        super().__init__(("body", "s3_key"), reason, hint="Nothing was kept. Presign the step again and send a corrected file.")
