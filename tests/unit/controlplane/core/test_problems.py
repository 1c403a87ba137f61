"""Every exception that anybody foresaw has one answer, in both spellings."""

import pydantic
import pytest
from django.core.exceptions import RequestDataTooBig, SuspiciousOperation
from django.http import Http404
from rest_framework import exceptions as drf

from controlplane.core.errors import Conflict, Invalid, NotFound, RateLimited
from controlplane.core.problems import problem_of


class Model(pydantic.BaseModel):
    size: int


def refusal() -> pydantic.ValidationError:
    with pytest.raises(pydantic.ValidationError) as raised:
        Model.model_validate({"size": "hunter2"})
    return raised.value


@pytest.mark.parametrize(
    ("error", "status", "code"),
    [
        (NotFound("no such run"), 404, "not_found"),
        (Conflict("x", code="taken"), 409, "taken"),
        (Http404(), 404, "not_found"),
        (drf.MethodNotAllowed("PUT"), 405, "method_not_allowed"),
        (drf.ParseError(), 400, "bad_request"),
        (drf.UnsupportedMediaType("x/y"), 415, "unsupported_media_type"),
        (drf.Throttled(wait=3), 429, "rate_limited"),
        (RequestDataTooBig(), 413, "too_large"),
        (SuspiciousOperation(), 400, "bad_request"),
        (refusal(), 422, "invalid"),
        (drf.ValidationError({"name": ["too long"]}), 422, "invalid"),
    ],
)
def test_known_exceptions(error: Exception, status: int, code: str):
    problem = problem_of(error)
    assert problem is not None and (problem.status, problem.code) == (status, code)


def test_an_unforeseen_exception_has_no_answer_here():
    assert problem_of(RuntimeError("inside")) is None


def test_a_refused_value_is_not_repeated():
    problem = problem_of(refusal())
    assert problem is not None
    body = problem.body("/api/v1/runs")
    assert body["detail"][0]["loc"] == ["body", "size"] and "hunter2" not in str(body)


def test_the_gateway_speaks_openai():
    problem = problem_of(Invalid(("body", "sampling", "temperature"), "must be at most 5"))
    assert problem is not None
    assert problem.body("/api/inference/v1/chat/completions") == {
        "error": {
            "message": "sampling.temperature: must be at most 5",
            "type": "invalid_request_error",
            "code": "invalid",
            "param": "sampling.temperature",
        }
    }


def test_waiting_is_told_in_a_header():
    problem = problem_of(RateLimited("slow down", retry_after_s=7))
    assert problem is not None and problem.headers() == {"Retry-After": "7"}
