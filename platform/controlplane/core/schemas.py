"""Request and response bodies as pydantic models: one declaration for validation, OpenAPI and documentation.

Knows how a body or a query string becomes a model, and that a refusal names the field. Refuses to know any endpoint.
"""

from typing import Any, TypeVar

import pydantic
from django.http import HttpRequest
from drf_spectacular.utils import OpenApiParameter
from pydantic import BaseModel, ConfigDict
from pydantic.alias_generators import to_camel
from rest_framework.request import Request
from rest_framework.response import Response

from controlplane.core.errors import Invalid
from controlplane.core.problems import validation_problems


def example(body: dict[str, Any]) -> ConfigDict:
    """A body as the OpenAPI document shows it: `model_config = example({…})`."""
    return ConfigDict(json_schema_extra={"examples": [body]})


class Body(BaseModel):
    """A body that clients send. An unknown field is refused by name."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


class Query(BaseModel):
    """Parameters behind the `?`. Unknown ones are ignored: clients send their team to every address."""

    model_config = ConfigDict(extra="ignore", frozen=True, allow_inf_nan=False)


class Answer(BaseModel):
    """A body that we send."""

    model_config = ConfigDict(frozen=True)


class CamelAnswer(Answer):
    """Spelled in camelCase, where the public client expects that."""

    model_config = ConfigDict(frozen=True, alias_generator=to_camel, populate_by_name=True, serialize_by_alias=True)


B = TypeVar("B", bound=BaseModel)
# The public client names the team in the body of some calls; authentication has read it there.
TEAM_FIELDS = ("team_id", "teamId")


def read_body(request: Request, model: type[B]) -> B:
    """The JSON body as `model`. Raises Invalid (422) naming every refused field."""
    data = request.data
    if not isinstance(data, dict):
        raise Invalid(("body",), "the body must be a JSON object")
    known = {name for field, info in model.model_fields.items() for name in (field, info.alias) if name}
    return _validate(model, {name: value for name, value in data.items() if name in known or name not in TEAM_FIELDS}, "body")


def read_query(request: Request | HttpRequest, model: type[B]) -> B:
    """The query string as `model`; a repeated parameter counts once, unless its field is a list."""
    lists = {name for name, info in model.model_fields.items() if "list" in str(info.annotation)}
    given: dict[str, Any] = {name: request.GET.getlist(name) if name in lists else request.GET[name] for name in request.GET}
    return _validate(model, given, "query")


def _validate(model: type[B], given: Any, root: str) -> B:
    try:
        return model.model_validate(given)
    except pydantic.ValidationError as error:
        refused = Invalid((root,), "The request is not valid.")
        refused.problems = validation_problems(error, root)
        raise refused from None


def query_parameters(model: type[Query]) -> list[OpenApiParameter]:
    """The same model as parameters of the OpenAPI document."""
    properties = model.model_json_schema()["properties"]
    return [
        OpenApiParameter(
            name=info.alias or name,
            type=properties[info.alias or name],
            location=OpenApiParameter.QUERY,
            required=info.is_required(),
            description=info.description or "",
        )
        for name, info in model.model_fields.items()
    ]


def render(answer: Answer, status: int = 200) -> Response:
    """An answer as JSON: the model decides the spelling, pydantic the formats."""
    return Response(answer.model_dump(mode="json"), status=status)
