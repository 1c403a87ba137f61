"""What can go wrong with datasets, in the words that their senders need."""

from collections.abc import Sequence

from controlplane.core.errors import Conflict, NotFound
from controlplane.runs.models import Run

NAMED_RUNS_MAX = 3


class DatasetExists(Conflict):
    """A dataset is immutable: its name stands for one content."""

    code = "dataset_exists"

    def __init__(self, name: str) -> None:
        super().__init__(
            f"The dataset '{name}' exists with another content; what a name stands for never changes.",
            hint="Choose another name, for example with a number at its end.",
        )


class DatasetInUse(Conflict):
    """A run that may still read the file names it."""

    code = "dataset_in_use"

    def __init__(self, name: str, runs: Sequence[Run]) -> None:
        named = ", ".join(f"{run.name} ({run.id})" for run in runs[:NAMED_RUNS_MAX])
        more = f" and {len(runs) - NAMED_RUNS_MAX} more" if len(runs) > NAMED_RUNS_MAX else ""
        super().__init__(
            f"The dataset '{name}' is what these runs learn from: {named}{more}.",
            hint="Wait until they have ended, or `prime train stop RUN`.",
        )


def no_dataset(name: str) -> NotFound:
    return NotFound(f"There is no dataset '{name}'.", hint="`prime datasets list` shows yours.")
