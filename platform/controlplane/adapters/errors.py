"""What can go wrong with adapters and engines."""

from collections.abc import Sequence

from controlplane.core.errors import ApiError, NotFound


class UnknownModel(NotFound):
    """No such base model, no such adapter, or somebody else's: one answer, which names only what was asked for."""

    code = "model_not_found"

    def __init__(self, name: str, steps: Sequence[int] = ()) -> None:
        """`steps`: those at which the caller's run of that name did keep a version, where `name` is `run@step`."""
        run_name, known = name.rpartition("@")[0], ", ".join(map(str, steps))
        hint = f"{run_name} has versions of steps {known}." if steps else "GET /api/inference/v1/models lists yours."
        super().__init__(f"the model '{name}' does not exist or is not yours", hint=hint)


class NotServable(ApiError):
    """The pool's engines could not load this adapter; the text names the limit."""

    status = 422
    code = "not_servable"


class NotExportable(ApiError):
    """The adapter's files cannot be written for use elsewhere; the text says why."""

    status = 422
    code = "not_exportable"


class EngineUnreachable(Exception):
    """An engine gave no usable answer. Trying again later is right."""


class EngineRefused(Exception):
    """An engine answered no, and will again: wrong digest, rank too high, files that are gone."""
