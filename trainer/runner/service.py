"""HTTP on run.sock, as `trainer.contracts.rollouts` describes it: parse, call, render.

Knows routes and status codes. Refuses to know how a rollout is played. Errors are `{"code", "message"}`.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import aclosing

from aiohttp import web
from pydantic import ValidationError

from trainer.contracts.base import Wire
from trainer.contracts.release_checks import INSPECTION_S, InspectionRequest
from trainer.contracts.rollouts import GroupScoreRequest, GroupScores, RolloutRequest, RunnerHealth, TaskPage
from trainer.runner.faults import from_exception
from trainer.runner.rollouts import LIVE_MAX, AlreadyLive, HostedEnvironment, NoSuchTask, Rollouts

_BODY_BYTES_MAX = 64 * 1024 * 1024
"""A group with all that was said in it."""
_PAGE_MAX = 1000
_PAGE_DEFAULT = 100

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class RunnerService:
    def __init__(self, environment: HostedEnvironment) -> None:
        self._environment = environment
        self._rollouts = Rollouts(environment)

    def application(self) -> web.Application:
        app = web.Application(client_max_size=_BODY_BYTES_MAX, middlewares=[self._only_when_ready])
        app.add_routes(
            [
                web.get("/health", self.health),
                web.get("/tasks", self.tasks),
                web.post("/rollouts", self.start_rollout),
                web.delete("/rollouts/{rollout_id}", self.cancel_rollout),
                web.post("/groups/score", self.score_group),
                web.post("/inspection", self.inspect),
            ]
        )
        return app

    @web.middleware
    async def _only_when_ready(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        status = self._environment.status
        if request.path != "/health" and status != "ready":
            return _refusal(503 if status == "loading" else 422, f"environment_{status}", f"the environment is {status}")
        return await handler(request)

    async def health(self, request: web.Request) -> web.Response:
        environment = self._environment
        return _reply(
            RunnerHealth(
                status=environment.status,
                error=environment.error,
                live=self._rollouts.live,
                tasks_count=environment.tasks_count,
                group_rewards=environment.group_rewards,
            )
        )

    async def tasks(self, request: web.Request) -> web.Response:
        start, limit = int(request.query.get("cursor", 0)), int(request.query.get("limit", _PAGE_DEFAULT))
        if start < 0 or not 1 <= limit <= _PAGE_MAX:
            return _refusal(422, "bad_page", f"cursor must be at least 0 and limit between 1 and {_PAGE_MAX}")
        try:
            entries, cursor = await self._environment.page(start, limit)
        except Exception as error:  # Taskset.load is the tenant's and lazy: it may raise at any row
            return _tenant_failure("taskset_failed", error)
        return _reply(TaskPage(tasks=entries, cursor=cursor))

    async def start_rollout(self, request: web.Request) -> web.StreamResponse:
        try:
            wanted = RolloutRequest.model_validate_json(await request.read())
        except ValidationError as error:
            return _refusal(422, "bad_request", str(error))
        if self._rollouts.live >= LIVE_MAX:
            return _refusal(503, "busy", f"{LIVE_MAX} rollouts are live")
        async with aclosing(self._rollouts.play(wanted)) as messages:
            try:
                first = await anext(messages)
            except NoSuchTask as error:
                return _refusal(404, "no_such_task", str(error))
            except AlreadyLive as error:
                return _refusal(409, "already_live", f"rollout {error} is being played")
            except Exception as error:  # as above: the asked-for row may not have been read yet
                return _tenant_failure("taskset_failed", error)
            return await _stream(request, first, messages)

    async def cancel_rollout(self, request: web.Request) -> web.Response:
        return web.json_response({"cancelled": self._rollouts.cancel(request.match_info["rollout_id"])})

    async def score_group(self, request: web.Request) -> web.Response:
        try:
            wanted = GroupScoreRequest.model_validate_json(await request.read())
        except ValidationError as error:
            return _refusal(422, "bad_request", str(error))
        environment = self._environment
        if unknown := sorted(set(wanted.names) - set(environment.group_rewards)):
            return _refusal(404, "no_such_group_reward", f"the environment declares no {', '.join(unknown)}")
        timeout_s = environment.config.limits.scoring_s
        try:
            async with asyncio.timeout(timeout_s):
                scores = await environment.score_group(wanted)
        except TimeoutError:
            return _refusal(422, "group_reward_failed", f"the group rewards took longer than {timeout_s:g} s")
        except Exception as error:  # the tenant's code may raise anything
            return _tenant_failure("group_reward_failed", error)
        return _reply(GroupScores(scores=scores))

    async def inspect(self, request: web.Request) -> web.Response:
        try:
            wanted = InspectionRequest.model_validate_json(await request.read())
        except ValidationError as error:
            return _refusal(422, "bad_request", str(error))
        try:
            async with asyncio.timeout(INSPECTION_S):
                return _reply(await self._environment.inspect(wanted))
        except TimeoutError:
            return _refusal(422, "inspection_failed", f"reading and checking its tasks took longer than {INSPECTION_S:g} s")
        except Exception as error:  # the tenant's classes are asked, and may raise anything
            return _tenant_failure("inspection_failed", error)


async def _stream(request: web.Request, first: Wire, rest: AsyncIterator[Wire]) -> web.StreamResponse:
    """JSON lines; the first is known already, so that an error before it could still be a status code."""
    stream = web.StreamResponse(headers={"Content-Type": "application/x-ndjson"})
    await stream.prepare(request)
    await stream.write(_line(first))
    async for message in rest:
        await stream.write(_line(message))
    await stream.write_eof()
    return stream


def _line(message: Wire) -> bytes:
    return message.model_dump_json().encode() + b"\n"


def _reply(message: Wire) -> web.Response:
    return web.Response(body=message.model_dump_json().encode(), content_type="application/json")


def _tenant_failure(code: str, error: Exception) -> web.Response:
    tenant_error = from_exception(error)
    body = {"code": code, "message": tenant_error.message, "error": tenant_error.model_dump()}
    return web.json_response(body, status=422)


def _refusal(status: int, code: str, message: str) -> web.Response:
    return web.json_response({"code": code, "message": message}, status=status)
