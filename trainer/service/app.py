"""HTTP of the trainer: parse, ask the desk, render. No rule lives here.

Knows routes, statuses, the bearer token and limits on bodies. Shapes: `trainer.contracts.training`.
"""

import asyncio
import hmac
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from typing import Annotated, TypeVar

from pydantic import BaseModel, Field, TypeAdapter, ValidationError
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from trainer.contracts.base import PublicId
from trainer.contracts.exports import ExportRequest
from trainer.contracts.training import CheckpointRequest, OpenRun, StepRequest
from trainer.core.errors import TrainerRefusal
from trainer.service.desk import Desk
from trainer.service.exports import Exporter

log = logging.getLogger(__name__)

BODY_BYTES_MAX = 512 * 2**20
STATUS_OF = {
    "bad_batch": 422,
    "non_finite": 422,
    "bad_request": 422,
    "not_servable": 422,
    "not_exportable": 422,
    "unauthorized": 401,
    "run_not_open": 404,
    "no_free_slot": 503,
    "stale_lease": 409,
    "step_out_of_order": 409,
    "run_mismatch": 409,
    "unknown_state": 409,
    "too_large": 413,
}
Body = TypeVar("Body", bound=BaseModel)
Value = TypeVar("Value")
Handler = Callable[[Request], Awaitable[Response]]
_RUN_ID: TypeAdapter[str] = TypeAdapter(PublicId)
_TOKEN: TypeAdapter[int] = TypeAdapter(Annotated[int, Field(ge=1)])


class BadRequest(TrainerRefusal):
    code = "bad_request"


class TooLarge(TrainerRefusal):
    code = "too_large"


class Unauthorized(TrainerRefusal):
    code = "unauthorized"


def create_app(desk: Desk, token: str | None = None) -> Starlette:
    """The ASGI application. With a token every route but /health demands it as a bearer."""

    exporter = Exporter(desk.pool.root)

    async def health(request: Request) -> Response:
        report = desk.health()
        return _rendered(report, 200 if report.status == "ok" else 503)

    async def stats(request: Request) -> Response:
        return _rendered(await desk.stats())

    async def open_run(request: Request) -> Response:
        return _rendered(await desk.open(_run_id(request), await _body(request, OpenRun)))

    async def step(request: Request) -> Response:
        return _rendered(await desk.step(_run_id(request), await _body(request, StepRequest, code="bad_batch")))

    async def checkpoint(request: Request) -> Response:
        return _rendered(await desk.checkpoint(_run_id(request), await _body(request, CheckpointRequest)))

    async def close(request: Request) -> Response:
        await desk.close(_run_id(request), _validated(_TOKEN, request.query_params.get("fencing_token"), "fencing_token"))
        return Response(status_code=204)

    async def export(request: Request) -> Response:
        return _rendered(await exporter.export(await _body(request, ExportRequest)))

    def guarded(handler: Handler) -> Handler:
        async def checked(request: Request) -> Response:
            sent = request.headers.get("authorization", "")
            if token and not hmac.compare_digest(sent.encode(), f"Bearer {token}".encode()):
                raise Unauthorized("this trainer wants the pool's bearer token")
            return await handler(request)

        return checked

    routes = [
        Route("/health", health),
        Route("/stats", guarded(stats)),
        Route("/runs/{run_id}", guarded(open_run), methods=["PUT"]),
        Route("/runs/{run_id}", guarded(close), methods=["DELETE"]),
        Route("/runs/{run_id}/steps", guarded(step), methods=["POST"]),
        Route("/runs/{run_id}/checkpoints", guarded(checkpoint), methods=["POST"]),
        Route("/exports", guarded(export), methods=["POST"]),
    ]

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        packing = asyncio.create_task(desk.loop.run())
        try:
            yield
        finally:
            packing.cancel()
            with suppress(asyncio.CancelledError):
                await packing

    handlers = {TrainerRefusal: _refused, HTTPException: _unrouted, Exception: _failed}
    return Starlette(routes=routes, lifespan=lifespan, exception_handlers=handlers)


async def _refused(request: Request, problem: Exception) -> Response:
    code = getattr(problem, "code", "internal")
    return JSONResponse({"detail": str(problem), "code": code}, status_code=STATUS_OF.get(code, 500))


async def _unrouted(request: Request, problem: Exception) -> Response:
    assert isinstance(problem, HTTPException)
    return JSONResponse({"detail": problem.detail, "code": "bad_request"}, status_code=problem.status_code)


async def _failed(request: Request, problem: Exception) -> Response:
    return JSONResponse({"detail": "the trainer failed; its log names the cause", "code": "internal"}, status_code=500)


def _rendered(message: BaseModel, status: int = 200) -> Response:
    return Response(message.model_dump_json(), status_code=status, media_type="application/json")


def _run_id(request: Request) -> str:
    return _validated(_RUN_ID, request.path_params["run_id"], "run_id")


async def _body(request: Request, kind: type[Body], *, code: str = BadRequest.code) -> Body:
    """Parse a body of bounded size; large ones off the event loop."""
    chunks, size = [], 0
    async for chunk in request.stream():
        size += len(chunk)
        if size > BODY_BYTES_MAX:
            raise TooLarge(f"a body holds at most {BODY_BYTES_MAX} bytes")
        chunks.append(chunk)
    try:
        return await asyncio.to_thread(kind.model_validate_json, b"".join(chunks))
    except ValidationError as problem:
        refusal = BadRequest(_named(problem))
        refusal.code = code
        raise refusal from None


def _validated(kind: TypeAdapter[Value], value: object, name: str) -> Value:
    try:
        return kind.validate_python(value)
    except ValidationError as problem:
        raise BadRequest(f"{name}: {problem.errors()[0]['msg']}") from None


def _named(problem: ValidationError) -> str:
    """The first few complaints with their fields, without echoing what was sent."""
    errors = problem.errors(include_input=False, include_url=False, include_context=False)[:5]
    return "; ".join(f"{'.'.join(map(str, error['loc']))}: {error['msg']}" for error in errors)
