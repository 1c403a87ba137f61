"""Documents views that are plain Django (streams, signed objects), which the schema generator cannot see.

    @documented("get", operation_id="run_events", description="Live events.", media_type="text/event-stream")
    async def run_events(request, run_id): …

Knows how an operation is spelled in OpenAPI. Refuses to know any view.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, TypeVar

from django.urls import URLPattern, URLResolver, get_resolver
from pydantic import BaseModel

from controlplane.core.declarations import PUBLIC, SCOPE_FIELD

EVENT_STREAM = "text/event-stream"
ATTRIBUTE = "rootstock_operations"
_PARAMETER = re.compile(r"<(?:(\w+):)?(\w+)>")
_SECURITY: list[dict[str, list[str]]] = [{"apiKey": []}, {"session": []}]
F = TypeVar("F", bound=Callable[..., Any])


@dataclass(frozen=True)
class PlainOperation:
    tag: str
    operation_id: str
    description: str
    request: type[BaseModel] | None
    response: type[BaseModel] | None
    media_type: str
    scope: str
    events: bool


def documented(
    method: str,
    *,
    operation_id: str,
    description: str,
    request: type[BaseModel] | None = None,
    response: type[BaseModel] | None = None,
    media_type: str = "application/json",
    scope: str = PUBLIC,
    events: bool = False,
) -> Callable[[F], F]:
    """Attach the documentation of one method to a plain view. `media_type` is that of the answer; with `events` it may also be a
    stream of server-sent events. `scope` is the one that the view asks the actor for."""

    def attach(view: F) -> F:
        operations = dict(getattr(view, ATTRIBUTE, {}))
        operations[method] = PlainOperation(
            view.__module__.split(".")[1], operation_id, description, request, response, media_type, scope, events
        )
        setattr(view, ATTRIBUTE, operations)
        return view

    return attach


def add_plain_operations(result: dict[str, Any], **_: Any) -> dict[str, Any]:
    """Hook of the generator: the documented plain views, beside DRF's."""
    schemas = result.setdefault("components", {}).setdefault("schemas", {})
    for route, operations in _plain_routes(get_resolver(), "/"):
        item = result["paths"].setdefault(_PARAMETER.sub(r"{\2}", route), {})
        for method, operation in operations.items():
            item[method] = _spell(operation, route, schemas)
    return result


def _plain_routes(resolver: Any, prefix: str) -> Iterator[tuple[str, dict[str, PlainOperation]]]:
    for entry in resolver.url_patterns:
        route = prefix + str(entry.pattern)
        if isinstance(entry, URLResolver):
            yield from _plain_routes(entry, route)
        elif isinstance(entry, URLPattern) and hasattr(entry.callback, ATTRIBUTE) and not route.endswith("/"):
            yield route, getattr(entry.callback, ATTRIBUTE)


def _spell(operation: PlainOperation, route: str, schemas: dict[str, Any]) -> dict[str, Any]:
    answer: dict[str, Any] = {"schema": _reference(operation.response, schemas)} if operation.response else {"schema": {}}
    content = {operation.media_type: answer}
    if operation.events:
        content[EVENT_STREAM] = {"schema": {"type": "string"}}
    spelled: dict[str, Any] = {
        "operationId": operation.operation_id,
        "summary": first_sentence(operation.description),
        "description": operation.description,
        "tags": [operation.tag],
        "parameters": [
            {"in": "path", "name": name, "required": True, "schema": {"type": "integer" if kind == "int" else "string"}}
            for kind, name in _PARAMETER.findall(route)
        ],
        "security": [{}] if operation.scope == PUBLIC else _SECURITY,
        SCOPE_FIELD: operation.scope,
        "responses": {"200": {"description": "", "content": content}},
    }
    if operation.request:
        content = {"application/json": {"schema": _reference(operation.request, schemas)}}
        spelled["requestBody"] = {"required": True, "content": content}
    return spelled


def first_sentence(description: str) -> str:
    """A description's first sentence, without its full stop, as the summary."""
    return " ".join(description.split()).split(". ")[0].rstrip(".")


def _reference(model: type[BaseModel], schemas: dict[str, Any]) -> dict[str, str]:
    schema = model.model_json_schema(ref_template="#/components/schemas/{model}")
    for name, part in {**schema.pop("$defs", {}), model.__name__: schema}.items():
        schemas.setdefault(name, part)
    return {"$ref": f"#/components/schemas/{model.__name__}"}
