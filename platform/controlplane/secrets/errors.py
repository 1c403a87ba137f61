"""What can go wrong with secrets and variables, in the words that their owners need. No text holds a value."""

from controlplane.core.errors import Conflict, NotFound


class NameTaken(Conflict):
    """A sandbox has one environment variable of a name."""

    code = "name_taken"

    def __init__(self, name: str) -> None:
        super().__init__(f"There is a {name} already.", hint="Update that one, or choose another name.")


class TooMany(Conflict):
    code = "too_many_secrets"

    def __init__(self, what: str, most: int) -> None:
        super().__init__(f"{what} has at most {most} secrets and variables.", hint="Delete one that nothing needs.")


class LinkedSecret(Conflict):
    """It belongs to the team; the environment only has a link to it."""

    code = "linked_secret"

    def __init__(self, name: str, secret_id: str) -> None:
        super().__init__(
            f"{name} is a secret of the team that is linked to this environment.",
            hint=f"`prime env secret unlink {secret_id}` takes it away here, `prime secret update {secret_id}` changes it.",
        )


class SealedElsewhere(Conflict):
    """The installation's secret key is not the one that it was sealed with."""

    code = "secret_unreadable"

    def __init__(self, name: str) -> None:
        super().__init__(f"The value of {name} can no longer be read.", hint=f"Set {name} again.")


def no_secret(secret_id: str) -> NotFound:
    return NotFound(f"There is no secret '{secret_id}'.", hint="`prime secret list` shows the team's.")


def no_setting(setting_id: str) -> NotFound:
    hint = "`prime env secret list` and `prime env var list` show those of the environment."
    return NotFound(f"The environment has no '{setting_id}'.", hint=hint)
