"""How an operation appears in the OpenAPI document: its area, its scope, its headers and every way in which it can fail.

Knows the rules that hold for all operations, so that no view repeats them. Refuses to know any endpoint.
"""

from collections.abc import Iterator
from typing import Any, cast

from drf_spectacular.openapi import AutoSchema

from controlplane.core.declarations import PUBLIC, SCOPE_FIELD, Declarations
from controlplane.core.plain_operations import first_sentence

PUBLIC_PREFIXES = ("/api/v1/", "/api/inference/")
INFERENCE = "/api/inference/"
WRITES = frozenset({"post", "put", "patch", "delete"})
PAID_AREAS = frozenset({"runs", "evals", "inference"})
"""Where something that costs money can be started."""
FAILURES = {
    400: ("BadRequest", "The address or the body is malformed."),
    401: ("Unauthorized", "No credential was sent, or one that is not valid."),
    402: ("PaymentRequired", "The wallet does not cover it."),
    403: ("Forbidden", "The credential lacks the scope, or the member the role."),
    404: ("NotFound", "There is no such object, or it is another team's."),
    409: ("Conflict", "The state of the object does not allow it."),
    413: ("TooLarge", "The body is too large."),
    415: ("UnsupportedMediaType", "The body is no JSON."),
    422: ("Invalid", "A field is unknown, malformed or out of range; `detail` names each."),
    429: ("RateLimited", "Too many requests; `Retry-After` says when to come back."),
    503: ("Unavailable", "Something that is needed is away for the moment; try again."),
}
_TEXT = {"type": "string"}
_ERROR = {
    "type": "object",
    "required": ["detail", "code", "hint", "request_id"],
    "properties": {
        "detail": {"oneOf": [_TEXT, {"type": "array", "items": {"$ref": "#/components/schemas/FieldProblem"}}]},
        "code": _TEXT,
        "hint": _TEXT,
        "request_id": _TEXT,
    },
    "examples": [
        {
            "detail": "There is no such run.",
            "code": "not_found",
            "hint": "`prime train list` shows yours.",
            "request_id": "c2m3x7k9w4p1q8r5t6y0u2i4o",
        }
    ],
}
_FIELD_PROBLEM = {
    "type": "object",
    "required": ["loc", "msg", "type"],
    "properties": {
        "loc": {"type": "array", "items": {"oneOf": [_TEXT, {"type": "integer"}]}},
        "msg": _TEXT,
        "type": _TEXT,
    },
}
_INFERENCE_ERROR = {
    "type": "object",
    "required": ["error"],
    "properties": {
        "error": {
            "type": "object",
            "required": ["message", "type", "code", "param"],
            "properties": {
                "message": _TEXT,
                "type": _TEXT,
                "code": {"type": ["string", "null"]},
                "param": {"type": ["string", "null"]},
            },
        }
    },
}
_TEAM = {
    "name": "X-Prime-Team-ID",
    "in": "header",
    "required": False,
    "description": "The team to act for. Without it: the user's personal team.",
    "schema": _TEXT,
}
_IDEMPOTENCY_KEY = {
    "name": "Idempotency-Key",
    "in": "header",
    "required": False,
    "description": "A text of your choice, new for each intent. The same request with the same key has one effect for 24 hours.",
    "schema": {"type": "string", "pattern": r"^[\x21-\x7e]{1,255}$"},
}
_RETRY_AFTER = {"description": "Seconds to wait.", "schema": {"type": "integer"}}


def public_routes(endpoints: list[tuple[str, str, str, Any]], **_: Any) -> list[tuple[str, str, str, Any]]:
    """The documented surface: public routes, each in its spelling without the trailing slash."""
    return [one for one in endpoints if one[0].startswith(PUBLIC_PREFIXES) and not one[0].endswith("/")]


class OperationSchema(AutoSchema):
    """What the declarations of `ApiView` say, in OpenAPI's words."""

    @property
    def _declared(self) -> Declarations:
        """Every view of the API is an `ApiView`; the generator's types know DRF's alone."""
        return cast(Declarations, self.view)

    def get_tags(self) -> list[str]:
        return [type(self.view).__module__.split(".")[1]]

    def get_summary(self) -> str:
        return first_sentence(self.get_description())

    def get_auth(self) -> list[dict[str, Any]]:
        schemes = super().get_auth()
        return [*schemes, {}] if self._declared.admits_visitors(self.method) and {} not in schemes else schemes

    def get_operation(self, *args: Any) -> dict[str, Any] | None:
        operation = super().get_operation(*args)
        return operation and operation | {SCOPE_FIELD: self._declared.needed_scope(self.method)}


def describe_operations(result: dict[str, Any], **_: Any) -> dict[str, Any]:
    """Hook of the generator: the parameters and the failures that operations share."""
    components = result.setdefault("components", {})
    components["schemas"] = components.get("schemas", {}) | {
        "Error": _ERROR,
        "FieldProblem": _FIELD_PROBLEM,
        "InferenceError": _INFERENCE_ERROR,
    }
    components["parameters"] = {"Team": _TEAM, "IdempotencyKey": _IDEMPOTENCY_KEY}
    components["responses"] = dict(_responses())
    for path, method, operation in operations_of(result):
        for answer in operation["responses"].values():
            answer["description"] = answer["description"] or operation["summary"]
        suffix = "OfInference" if path.startswith(INFERENCE) else ""
        if operation[SCOPE_FIELD] != PUBLIC:
            shared = ["Team", "IdempotencyKey"] if method == "post" and not suffix else ["Team"]
            operation.setdefault("parameters", []).extend({"$ref": f"#/components/parameters/{name}"} for name in shared)
        for status in failures_of(method, operation):
            operation["responses"][str(status)] = {"$ref": f"#/components/responses/{FAILURES[status][0]}{suffix}"}
    return result


def operations_of(document: dict[str, Any]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    for path, item in document["paths"].items():
        for method, operation in item.items():
            if isinstance(operation, dict) and "responses" in operation:
                yield path, method, operation


def failures_of(method: str, operation: dict[str, Any]) -> list[int]:
    """The statuses of an operation's failures, by what it takes and does."""
    writes = method in WRITES
    # An object that is not given out, as one in quarantine, is no missing one.
    conflicts = writes or "302" in operation["responses"]
    special = {402: writes and bool(PAID_AREAS & set(operation["tags"])), 409: conflicts, 413: writes, 415: writes}
    return [status for status in FAILURES if special.get(status, True)]


def _responses() -> Iterator[tuple[str, dict[str, Any]]]:
    for status, (name, description) in FAILURES.items():
        for suffix, schema in (("", "Error"), ("OfInference", "InferenceError")):
            content = {"application/json": {"schema": {"$ref": f"#/components/schemas/{schema}"}}}
            headers = {"headers": {"Retry-After": _RETRY_AFTER}} if status in {429, 503} else {}
            yield name + suffix, {"description": description, "content": content, **headers}
