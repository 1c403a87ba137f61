"""One table from exceptions to error bodies, for every view: DRF's, plain and async ones, and Django's own refusals.

The body is `{detail, code, hint, request_id}`, where `detail` is a text or, for 422, a list of `{loc, msg, type}`; below
`/api/inference` it is OpenAI's `{error: {message, type, code, param}}`. Refuses to know what went wrong inside: an unexpected
exception is logged with its request id and answered with 500 and no detail of it.
"""

import logging
from dataclasses import dataclass, field
from typing import Any

import pydantic
from asgiref.sync import iscoroutinefunction, markcoroutinefunction
from django.core.exceptions import PermissionDenied as DjangoPermissionDenied
from django.core.exceptions import RequestDataTooBig, SuspiciousOperation, TooManyFieldsSent
from django.db import OperationalError
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from rest_framework import exceptions as drf
from rest_framework.response import Response

from controlplane.core.errors import ApiError, FieldProblem
from controlplane.core.requests import current_request_id

logger = logging.getLogger(__name__)
INFERENCE_PREFIX = "/api/inference"
INTERNAL_TEXT = "Something went wrong on our side."
INTERNAL_HINT = "Try again; if it happens again, report the request id."


@dataclass
class Problem:
    """What a failed request is answered with, whatever the spelling."""

    status: int
    code: str
    message: str
    hint: str = ""
    fields: list[FieldProblem] = field(default_factory=list)
    retry_after_s: int | None = None
    more_headers: dict[str, str] = field(default_factory=dict)

    def body(self, path: str) -> dict[str, Any]:
        return self._openai_body() if path.startswith(INFERENCE_PREFIX) else self._native_body()

    def headers(self) -> dict[str, str]:
        headers = dict(self.more_headers)
        if self.retry_after_s is not None:
            headers["Retry-After"] = str(self.retry_after_s)
        if self.status == 401:
            headers["WWW-Authenticate"] = "Bearer"
        return headers

    def _native_body(self) -> dict[str, Any]:
        fields = [{"loc": list(one.loc), "msg": one.msg, "type": one.type} for one in self.fields]
        return {"detail": fields or self.message, "code": self.code, "hint": self.hint, "request_id": current_request_id()}

    def _openai_body(self) -> dict[str, Any]:
        kind = "server_error" if self.status >= 500 else _OPENAI_TYPES.get(self.status, "invalid_request_error")
        names = [".".join(map(str, one.loc[1:])) for one in self.fields]
        message = "; ".join(f"{name}: {one.msg}" for name, one in zip(names, self.fields, strict=True)) or self.message
        return {"error": {"message": message, "type": kind, "code": self.code, "param": names[0] if names else None}}


_OPENAI_TYPES = {401: "authentication_error", 402: "insufficient_quota", 403: "permission_error", 429: "rate_limit_error"}
_DRF_CODES = {400: "bad_request", 401: "unauthorized", 403: "forbidden", 404: "not_found", 405: "method_not_allowed",
              415: "unsupported_media_type", 429: "rate_limited"}  # fmt: skip


def problem_of(error: Exception) -> Problem | None:
    """The answer to a known exception; None for one that nobody foresaw."""
    match error:
        case ApiError():
            retry_after_s, headers = error.retry_after_s, error.headers
            return Problem(error.status, error.code, error.detail, error.hint, error.problems, retry_after_s, headers)
        case pydantic.ValidationError():
            return Problem(422, "invalid", "The request is not valid.", fields=validation_problems(error))
        case drf.ValidationError():
            return Problem(422, "invalid", "The request is not valid.", fields=_serializer_problems(error.detail, ("body",)))
        case drf.APIException():
            wait_s = getattr(error, "wait", None)
            code = _DRF_CODES.get(error.status_code, "error")
            return Problem(error.status_code, code, str(error.detail), retry_after_s=None if wait_s is None else int(wait_s) + 1)
        case OperationalError():
            return Problem(503, "unavailable", "The database is away or busy.", "Try again.", retry_after_s=1)
        case Http404():
            return Problem(404, "not_found", "Not found.")
        case RequestDataTooBig() | TooManyFieldsSent():
            return Problem(413, "too_large", "The request body is too large.")
        case DjangoPermissionDenied():
            return Problem(403, "forbidden", str(error) or "Not allowed.")
        case SuspiciousOperation():
            return Problem(400, "bad_request", "The request is malformed.")
    return None


def validation_problems(error: pydantic.ValidationError, root: str = "body") -> list[FieldProblem]:
    """Pydantic's findings as the wire spells them. The refused value itself is left out: it may be a secret."""
    found = error.errors(include_url=False, include_context=False, include_input=False)
    return [FieldProblem((root, *one["loc"]), one["msg"].removeprefix("Value error, "), one["type"]) for one in found]


def exception_handler(error: Exception, context: dict[str, Any]) -> Response | None:
    """DRF's hook. None lets an unforeseen exception rise to `server_error`."""
    problem = problem_of(error)
    if problem is None:
        return None
    return Response(problem.body(context["request"].path), status=problem.status, headers=problem.headers())


def respond(request: HttpRequest, problem: Problem) -> HttpResponse:
    """The same answer for views that are not DRF's."""
    return JsonResponse(problem.body(request.path), status=problem.status, headers=problem.headers())


class ProblemMiddleware:
    """Answers exceptions of plain and async views, which DRF's hook never sees."""

    sync_capable = True
    async_capable = True

    def __init__(self, get_response: Any) -> None:
        self.get_response = get_response
        if iscoroutinefunction(get_response):
            markcoroutinefunction(self)

    def __call__(self, request: HttpRequest) -> Any:
        return self.get_response(request)

    def process_exception(self, request: HttpRequest, error: Exception) -> HttpResponse | None:
        problem = problem_of(error)
        return None if problem is None else respond(request, problem)


def page_not_found(request: HttpRequest, exception: Exception | None = None) -> HttpResponse:
    return respond(request, Problem(404, "not_found", "There is nothing at this address."))


def bad_request(request: HttpRequest, exception: Exception | None = None) -> HttpResponse:
    return respond(request, Problem(400, "bad_request", "The request is malformed."))


def permission_denied(request: HttpRequest, exception: Exception | None = None) -> HttpResponse:
    return respond(request, Problem(403, "forbidden", "Not allowed."))


def server_error(request: HttpRequest) -> HttpResponse:
    return respond(request, Problem(500, "internal", INTERNAL_TEXT, INTERNAL_HINT))


def csrf_failure(request: HttpRequest, reason: str = "") -> HttpResponse:
    hint = "Send the value of the cookie `rootstock_csrf` as the header `X-CSRFToken`."
    return respond(request, Problem(403, "csrf_failed", "The request's CSRF token is missing or wrong.", hint))


def _serializer_problems(detail: Any, loc: tuple[str | int, ...]) -> list[FieldProblem]:
    if isinstance(detail, dict):
        return [one for name, inner in detail.items() for one in _serializer_problems(inner, (*loc, name))]
    if isinstance(detail, list):
        return [one for inner in detail for one in _serializer_problems(inner, loc)]
    return [FieldProblem(loc, str(detail), getattr(detail, "code", "value_error"))]
