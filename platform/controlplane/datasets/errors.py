"""What can go wrong with datasets, in the words that their senders need."""

from controlplane.core.errors import Conflict, NotFound


class DatasetExists(Conflict):
    """A dataset is immutable: its name stands for one content."""

    code = "dataset_exists"

    def __init__(self, name: str) -> None:
        super().__init__(
            f"The dataset '{name}' exists with another content; what a name stands for never changes.",
            hint="Choose another name, for example with a number at its end.",
        )


def no_dataset(name: str) -> NotFound:
    return NotFound(f"There is no dataset '{name}'.", hint="`prime datasets list` shows yours.")
