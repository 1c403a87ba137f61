"""Client of one environment runner on `run.sock`: hostile speech, parsed with limits on size and time.

Knows the runner's HTTP. Refuses to know groups and policies. Whatever breaks the protocol is `RunnerSilent`: the process that
said it is not to be trusted with another rollout.
"""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator
from typing import Any, TypeVar

import httpx
from pydantic import ValidationError

from trainer.contracts.base import Wire
from trainer.contracts.rollouts import (
    TEXT_MAX,
    GroupScoreRequest,
    GroupScores,
    RolloutAlive,
    RolloutEnd,
    RolloutRequest,
    TaskPage,
    TenantError,
)

ANSWER_BYTES_MAX = 8 << 20
SILENT_S = 45.0
GRACE_S = 20.0
CALL_S = 60.0
WireT = TypeVar("WireT", bound=Wire)


class RunnerSilent(Exception):
    """The runner died, fell silent or broke the protocol in the middle of a call."""


class TenantRefused(Exception):
    """The environment's own code failed outside a rollout; `error` names module and line."""

    def __init__(self, error: TenantError):
        super().__init__(error.message)
        self.error = error


class RunnerClient:
    """`http` is bound to the runner's socket."""

    def __init__(self, http: httpx.AsyncClient):
        self._http = http

    async def tasks(self, cursor: int, limit: int) -> TaskPage:
        """Raises TenantRefused, RunnerSilent."""
        body = await self._ask("GET", f"/tasks?cursor={cursor}&limit={limit}", None)
        return _parsed(TaskPage, body)

    async def score_group(self, request: GroupScoreRequest) -> GroupScores:
        """Raises TenantRefused, RunnerSilent."""
        return _parsed(GroupScores, await self._ask("POST", "/groups/score", request))

    async def roll(self, request: RolloutRequest) -> RolloutEnd:
        """Drive one rollout to its end; a refusal is a failed rollout. Raises RunnerSilent."""
        try:
            async with (
                asyncio.timeout(request.deadline_s + GRACE_S),
                self._http.stream("POST", "/rollouts", **_json(request), timeout=SILENT_S) as response,
            ):
                if not response.is_success:
                    error = _refusal(await _bounded(response), response.status_code)
                    return RolloutEnd(state="failed", errors=[error], fault="tenant")
                async for line in _lines(response):
                    if b'"alive"' not in line[:64]:
                        return _parsed(RolloutEnd, line)
                    _parsed(RolloutAlive, line)
        except (httpx.HTTPError, TimeoutError) as error:
            raise RunnerSilent(f"during a rollout: {_short(error)}") from error
        raise RunnerSilent("a rollout ended without a result")

    async def cancel(self, rollout_id: str) -> None:
        """Ask; the rollout's own stream then ends. A runner that does not answer is its supervisor's business."""
        with contextlib.suppress(httpx.HTTPError):
            await self._http.delete(f"/rollouts/{rollout_id}", timeout=CALL_S)

    async def _ask(self, method: str, path: str, message: Wire | None) -> bytes:
        try:
            async with (
                asyncio.timeout(CALL_S),
                self._http.stream(method, path, **_json(message), timeout=CALL_S) as response,
            ):
                body = await _bounded(response)
        except (httpx.HTTPError, TimeoutError) as error:
            raise RunnerSilent(f"{method} {path}: {_short(error)}") from error
        if not response.is_success:
            raise TenantRefused(_refusal(body, response.status_code))
        return body


def _json(message: Wire | None) -> dict[str, Any]:
    if message is None:
        return {}
    return {"content": message.model_dump_json().encode(), "headers": {"Content-Type": "application/json"}}


async def _bounded(response: httpx.Response) -> bytes:
    body = b""
    async for chunk in response.aiter_raw():
        body += chunk
        _check_size(body)
    return body


async def _lines(response: httpx.Response) -> AsyncIterator[bytes]:
    """Lines of the body, none longer than the limit."""
    pending = b""
    async for chunk in response.aiter_raw():
        *lines, pending = (pending + chunk).split(b"\n")
        for line in lines:
            if line:
                yield line
        _check_size(pending)
    if pending:
        yield pending


def _check_size(body: bytes) -> None:
    if len(body) > ANSWER_BYTES_MAX:
        raise RunnerSilent(f"the runner sent more than {ANSWER_BYTES_MAX} bytes at once")


def _parsed(kind: type[WireT], body: bytes) -> WireT:
    try:
        return kind.model_validate_json(body)
    except ValidationError as error:
        raise RunnerSilent(f"the runner's message was refused: {_short(error)}") from error


def _refusal(body: bytes, status: int) -> TenantError:
    """The error of a refused request: `{"code", "message"}` and, where tenant code raised, `error`."""
    try:
        said = json.loads(body)
        if isinstance(said.get("error"), dict):
            return TenantError.model_validate(said["error"])
        return TenantError(type=str(said["code"])[:128], message=str(said["message"])[:TEXT_MAX])
    except (ValueError, KeyError, AttributeError):
        return TenantError(type=f"status {status}", message=body[:500].decode("utf-8", "replace"))


def _short(error: Exception) -> str:
    if isinstance(error, ValidationError):
        return json.dumps(
            [{"loc": [str(part) for part in item["loc"][:4]], "msg": item["msg"][:100]} for item in error.errors()[:3]]
        )
    return f"{type(error).__name__}: {error}".rstrip(": ")
