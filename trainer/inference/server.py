"""The engine's routes. Parse, call the service, render; no rule lives here."""

import contextlib
from collections.abc import AsyncIterator

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from trainer.contracts.generation import LoadAdapter, UnloadAdapter
from trainer.inference.chat_api import chat_completions
from trainer.inference.chat_request import parse_wire
from trainer.inference.errors import BadRequest, EngineError, RouteNotFound
from trainer.inference.generate_api import generate
from trainer.inference.http import BearerGate, engine_error, read_body
from trainer.inference.score_api import score
from trainer.inference.service import InferenceService


def make_app(service: InferenceService, *, pool_token: str | None) -> Starlette:
    """The ASGI application around a service that is started and stopped with it."""

    @contextlib.asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        await service.start()
        try:
            yield
        finally:
            await service.stop()

    app = Starlette(
        routes=[
            Route("/health", health),
            Route("/metrics", metrics),
            Route("/v1/models", models),
            Route("/v1/chat/completions", chat_completions, methods=["POST"]),
            Route("/inference/v1/generate", generate, methods=["POST"]),
            Route("/inference/v1/score", score, methods=["POST"]),
            Route("/v1/load_lora_adapter", load_lora_adapter, methods=["POST"]),
            Route("/v1/unload_lora_adapter", unload_lora_adapter, methods=["POST"]),
        ],
        middleware=[Middleware(BearerGate, token=pool_token)] if pool_token else [],
        exception_handlers={EngineError: engine_error, HTTPException: _unrouted},
        lifespan=lifespan,
    )
    app.state.service = service
    return app


async def health(request: Request) -> Response:
    """200 when a token was sampled in the last seconds, by anybody; else one is generated now, or 503."""
    service: InferenceService = request.app.state.service
    if not service.is_fresh:
        try:
            await service.probe()
        except EngineError as error:
            return JSONResponse({"status": "unhealthy", "reason": error.message}, status_code=503)
    return JSONResponse({"status": "ok"})


async def metrics(request: Request) -> Response:
    return Response(request.app.state.service.metrics.text(), media_type="text/plain; version=0.0.4")


async def models(request: Request) -> Response:
    cards = request.app.state.service.models()
    return JSONResponse({"object": "list", "data": [card.model_dump() for card in cards]})


async def load_lora_adapter(request: Request) -> Response:
    loaded = await request.app.state.service.load(parse_wire(LoadAdapter, await read_body(request)))
    return JSONResponse(loaded.model_dump())


async def unload_lora_adapter(request: Request) -> Response:
    asked = parse_wire(UnloadAdapter, await read_body(request))
    request.app.state.service.adapters.unregister(asked.lora_name)
    return JSONResponse({"lora_name": asked.lora_name, "status": "unloaded"})


async def _unrouted(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    if error.status_code == 404:
        return await engine_error(request, RouteNotFound(f"no route {request.method} {request.url.path}"))
    refusal = BadRequest(str(error.detail), code="method_not_allowed")
    return JSONResponse(refusal.body(), status_code=error.status_code, headers=error.headers)
