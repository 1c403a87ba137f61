"""`POST /api/inference/v1/chat/completions`: OpenAI's chat completions over the team's models, streamed or whole.

An async view, since one worker holds hundreds of answers open. Parse, admit, hand over to an exchange, render.
"""

import asyncio
import json
from typing import Any

import pydantic
from django.http import HttpRequest, HttpResponseBase, JsonResponse, StreamingHttpResponse
from django.views.decorators.csrf import csrf_exempt

from controlplane.billing.services import require_funds
from controlplane.core.errors import ApiError, Invalid
from controlplane.core.plain_operations import documented
from controlplane.core.problems import validation_problems
from controlplane.core.tenancy import acting_for
from controlplane.core.text import is_encodable, require_text
from controlplane.core.throttling import Allowance, take_inference
from controlplane.inference.access import Route, route_for
from controlplane.inference.exchange import Exchange, complete, spawn
from controlplane.inference.offload import in_database
from controlplane.inference.relay import Relay
from controlplane.inference.schemas import ChatCompletion, ChatRequest
from controlplane.teams.authentication import actor_of

SCOPE = "inference:write"
DIGEST_HEADER = "X-Adapter-Digest"


# The key in the header is no ambient credential; for a browser's session `actor_of` checks the CSRF token itself.
@documented(
    "post",
    operation_id="chat_completions",
    description="OpenAI's chat completions over the team's models; with `stream` as server-sent events.",
    scope=SCOPE,
    request=ChatRequest,
    response=ChatCompletion,
    events=True,
)
@csrf_exempt
async def chat_completions(request: HttpRequest) -> HttpResponseBase:
    if request.method != "POST":
        raise ApiError("Send a POST request.", status=405, code="method_not_allowed")
    asked, route, allowance = await in_database(admit, request)
    exchange = Exchange(route, asked)
    if asked.stream:
        return await _streamed(exchange, allowance)
    reply = await asyncio.shield(spawn(complete(exchange)))
    return JsonResponse(reply, headers=_headers(exchange, allowance))


def admit(request: HttpRequest) -> tuple[ChatRequest, Route, Allowance]:
    """Who calls, what they ask and where it goes. Raises before anything costs money: 401, 403, 429, 422, 402, 404."""
    actor = actor_of(request)
    actor.require_scope(SCOPE)
    allowance = take_inference(actor)
    asked = _parse(request.body)
    with acting_for(actor.team_id):
        require_funds(actor.team)
        return asked, route_for(actor, asked.model), allowance


async def _streamed(exchange: Exchange, allowance: Allowance) -> StreamingHttpResponse:
    relay = Relay(exchange)
    await relay.begun()
    headers = _headers(exchange, allowance) | {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
    return StreamingHttpResponse(relay.events(), content_type="text/event-stream", headers=headers)


def _headers(exchange: Exchange, allowance: Allowance) -> dict[str, str]:
    return {DIGEST_HEADER: exchange.tally.digest, **allowance.headers()}


def _parse(body: bytes) -> ChatRequest:
    try:
        given: Any = json.loads(body)
    except (ValueError, RecursionError):
        raise ApiError("the body is not valid JSON", status=400, code="invalid_json") from None
    if not isinstance(given, dict):
        raise ApiError("the body must be a JSON object", status=400, code="invalid_json")
    require_text(given, is_encodable)
    try:
        return ChatRequest.model_validate(given)
    except pydantic.ValidationError as error:
        refused = Invalid(("body",), "The request is not valid.")
        refused.problems = validation_problems(error)
        raise refused from None
