"""Client of one environment runner on `run.sock`: hostile speech, parsed with limits on size and time.

Knows the runner's HTTP. Refuses to know groups and policies. Whatever breaks the protocol is `RunnerSilent`: the process that
said it is not to be trusted with another rollout.
"""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator
from typing import TypeVar

from pydantic import ValidationError

from trainer.contracts.base import Wire
from trainer.contracts.redaction import Redactor
from trainer.contracts.release_checks import INSPECTION_S, Inspection, InspectionRequest
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
from trainer.orchestrator.attempt.masking import masked_end, masked_error, masked_inspection, masked_page
from trainer.orchestrator.transport.link import Answer, Link, LinkError

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
    """`link` leads to the runner's socket. What the runner says is masked by `redactor` before anybody sees it."""

    def __init__(self, link: Link, redactor: Redactor | None = None):
        self._link = link
        self._redactor = redactor or Redactor()

    async def tasks(self, cursor: int, limit: int) -> TaskPage:
        """Raises TenantRefused, RunnerSilent."""
        body = await self._ask("GET", f"/tasks?cursor={cursor}&limit={limit}", None)
        return masked_page(self._redactor, self._parsed(TaskPage, body))

    async def score_group(self, request: GroupScoreRequest) -> GroupScores:
        """Raises TenantRefused, RunnerSilent."""
        return self._parsed(GroupScores, await self._ask("POST", "/groups/score", request))

    async def inspect(self, request: InspectionRequest) -> Inspection:
        """Raises TenantRefused, RunnerSilent."""
        body = await self._ask("POST", "/inspection", request, deadline_s=INSPECTION_S + GRACE_S)
        return masked_inspection(self._redactor, self._parsed(Inspection, body))

    async def roll(self, request: RolloutRequest) -> RolloutEnd:
        """Drive one rollout to its end; a refusal is a failed rollout. Raises RunnerSilent."""
        try:
            async with asyncio.timeout(request.deadline_s + GRACE_S):
                answer = await self._link.send("POST", "/rollouts", request.model_dump_json().encode())
                try:
                    return masked_end(self._redactor, await self._ended(answer))
                finally:
                    answer.close()
        except (LinkError, TimeoutError) as error:
            raise RunnerSilent(f"during a rollout: {_short(error)}") from error

    async def cancel(self, rollout_id: str) -> None:
        """Ask; the rollout's own stream then ends. A runner that does not answer is its supervisor's business."""
        with contextlib.suppress(RunnerSilent, TenantRefused):
            await self._ask("DELETE", f"/rollouts/{rollout_id}", None)

    async def _ask(self, method: str, path: str, message: Wire | None, *, deadline_s: float = CALL_S) -> bytes:
        body = b"" if message is None else message.model_dump_json().encode()
        try:
            async with asyncio.timeout(deadline_s):
                answer = await self._link.send(method, path, body)
                try:
                    content = await answer.read(ANSWER_BYTES_MAX)
                finally:
                    answer.close()
        except (LinkError, TimeoutError) as error:
            raise RunnerSilent(f"{method} {path}: {_short(error)}") from error
        if answer.status != 200:
            raise TenantRefused(self._refusal(content, answer.status))
        return content

    async def _ended(self, answer: Answer) -> RolloutEnd:
        if answer.status != 200:
            error = self._refusal(await answer.read(ANSWER_BYTES_MAX), answer.status)
            return RolloutEnd(state="failed", errors=[error], fault="tenant")
        end = None
        async for line in _lines(answer):
            if b'"alive"' in line[:64]:
                self._parsed(RolloutAlive, line)
            elif end is None:
                end = self._parsed(RolloutEnd, line)
        if end is None:
            raise RunnerSilent("a rollout ended without a result")
        return end

    def _parsed(self, kind: type[WireT], body: bytes) -> WireT:
        try:
            return kind.model_validate_json(body)
        except ValidationError as error:
            raise RunnerSilent(f"the runner's message was refused: {self._redactor.text(_short(error))}") from None

    def _refusal(self, body: bytes, status: int) -> TenantError:
        """The error of a refused request: `{"code", "message"}` and, where tenant code raised, `error`."""
        try:
            said = json.loads(body)
            if isinstance(said.get("error"), dict):
                return masked_error(self._redactor, TenantError.model_validate(said["error"]))
            code, message = self._redactor.text(str(said["code"])), self._redactor.text(str(said["message"]))
            return TenantError(type=code[:128], message=message[:TEXT_MAX])
        except (ValueError, KeyError, AttributeError):
            text = self._redactor.text(body.decode("utf-8", "replace"))
            return TenantError(type=f"status {status}", message=text[:500])


async def _lines(answer: Answer) -> AsyncIterator[bytes]:
    """Lines of the body, none longer than the limit, none of them later than the runner may be silent."""
    pending, chunks = b"", answer.chunks()
    while True:
        try:
            async with asyncio.timeout(SILENT_S):
                chunk = await anext(chunks)
        except StopAsyncIteration:
            break
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


def _short(error: Exception) -> str:
    if isinstance(error, ValidationError):
        return json.dumps(
            [{"loc": [str(part) for part in item["loc"][:4]], "msg": item["msg"][:100]} for item in error.errors()[:3]]
        )
    return f"{type(error).__name__}: {error}".rstrip(": ")
