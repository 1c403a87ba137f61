"""Hooks of the OpenAPI document. Knows which routes are public and that each operation can fail in the one error shape."""

from typing import Any

PUBLIC_PREFIXES = ("/api/v1/", "/api/inference/")
_ERROR = {
    "type": "object",
    "required": ["detail", "code", "hint", "request_id"],
    "properties": {
        "detail": {
            "oneOf": [
                {"type": "string"},
                {"type": "array", "items": {"$ref": "#/components/schemas/FieldProblem"}},
            ]
        },
        "code": {"type": "string"},
        "hint": {"type": "string"},
        "request_id": {"type": "string"},
    },
}
_FIELD_PROBLEM = {
    "type": "object",
    "required": ["loc", "msg", "type"],
    "properties": {
        "loc": {"type": "array", "items": {"oneOf": [{"type": "string"}, {"type": "integer"}]}},
        "msg": {"type": "string"},
        "type": {"type": "string"},
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
                "message": {"type": "string"},
                "type": {"type": "string"},
                "code": {"type": ["string", "null"]},
                "param": {"type": ["string", "null"]},
            },
        }
    },
}


def public_routes(endpoints: list[tuple[str, str, str, Any]], **_: Any) -> list[tuple[str, str, str, Any]]:
    """The documented surface: public routes, each in its spelling without the trailing slash."""
    return [one for one in endpoints if one[0].startswith(PUBLIC_PREFIXES) and not one[0].endswith("/")]


def describe_errors(result: dict[str, Any], **_: Any) -> dict[str, Any]:
    """Every operation documents its failures once, as `default`."""
    schemas = result.setdefault("components", {}).setdefault("schemas", {})
    schemas |= {"Error": _ERROR, "FieldProblem": _FIELD_PROBLEM, "InferenceError": _INFERENCE_ERROR}
    for path, operations in result["paths"].items():
        shape = "InferenceError" if path.startswith("/api/inference/") else "Error"
        for operation in operations.values():
            if isinstance(operation, dict) and "responses" in operation:
                content = {"application/json": {"schema": {"$ref": f"#/components/schemas/{shape}"}}}
                operation["responses"].setdefault("default", {"description": "The request failed.", "content": content})
    return result
