"""The errors that the API answers with. Services raise them; `problems` turns them into JSON.

Knows statuses, codes and texts for people. Refuses to know HTTP beyond the status number. `hint` says what to do next. A text
never tells whether an object of somebody else exists.
"""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class FieldProblem:
    """One field that was refused: where it is (`("body", "model", "name")`), why, and the kind for machines."""

    loc: tuple[str | int, ...]
    msg: str
    type: str = "value_error"


class ApiError(Exception):
    """Base of the family. Subclasses fix `status` and the default `code`; an instance carries the text."""

    status: int = 500
    code: str = "internal"

    def __init__(
        self,
        detail: str,
        *,
        code: str | None = None,
        hint: str = "",
        status: int | None = None,
        retry_after_s: int | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(detail)
        self.detail = detail
        self.hint = hint
        self.code = code or self.code
        self.status = status or self.status
        self.retry_after_s = retry_after_s
        self.headers = dict(headers or {})
        self.problems: list[FieldProblem] = []


class NotFound(ApiError):
    """Absent, or somebody else's: the two are one."""

    status = 404
    code = "not_found"


class Invalid(ApiError):
    """A field that is unknown, malformed or out of range, named by `loc`."""

    status = 422
    code = "invalid"

    def __init__(self, loc: tuple[str | int, ...], msg: str, *, code: str | None = None, hint: str = "") -> None:
        super().__init__(msg, code=code, hint=hint)
        self.problems = [FieldProblem(loc, msg)]


class Conflict(ApiError):
    """The request is fine, the object's state does not allow it."""

    status = 409
    code = "conflict"


class NotUploaded(Conflict):
    """A file was announced and is to be judged before it has arrived."""

    code = "not_uploaded"

    def __init__(self) -> None:
        super().__init__("nothing was uploaded yet; PUT the file to its address first")


class StaleLease(ApiError):
    """The caller's lease was taken over: it stops and writes nothing more."""

    status = 409
    code = "stale_lease"

    def __init__(self, detail: str = "a newer attempt holds the lease", *, hint: str = "Stop; write nothing more.") -> None:
        super().__init__(detail, hint=hint)


class PaymentRequired(ApiError):
    status = 402
    code = "insufficient_funds"


class Unauthorized(ApiError):
    status = 401
    code = "unauthorized"


class Forbidden(ApiError):
    """The actor may see the object but not do this to it."""

    status = 403
    code = "forbidden"


class TooLarge(ApiError):
    status = 413
    code = "too_large"


class RateLimited(ApiError):
    status = 429
    code = "rate_limited"


class Unavailable(ApiError):
    """Something we depend on is away; trying again later is right."""

    status = 503
    code = "unavailable"
