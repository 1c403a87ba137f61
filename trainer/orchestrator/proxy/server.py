"""The only model endpoint that a sandbox can reach: HTTP on `model.sock`, forwarded to the pool under our pins.

Knows which policies may be called, what is recorded of each call, and how an engine's failure is told apart from a bad
request. Refuses to know rollouts and rewards. Every reply's adapter digest must be the one published under its name;
anything else is an infrastructure failure and its tokens are never trained on.
"""

import asyncio
import json
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from dataclasses import dataclass
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from trainer.contracts.generation import GenerateReply, GenerateRequest, ModelCard
from trainer.contracts.rollouts import SEAT_HEADER, SESSION_HEADER
from trainer.contracts.samples import ArtifactRef
from trainer.orchestrator.engines.gate import EngineAway, EngineGate, EngineReply
from trainer.orchestrator.engines.policies import Policy, PolicyTable
from trainer.orchestrator.proxy.artifacts import RolloutArtifacts
from trainer.orchestrator.proxy.call_artifacts import keep_pictures, keep_routing
from trainer.orchestrator.proxy.model_requests import (
    EngineContradiction,
    Pins,
    SeatPins,
    checked_generate,
    pinned_chat,
    pinned_generate,
)
from trainer.orchestrator.proxy.sessions import CALLS_PER_SESSION_MAX, Call, Session, SessionBook
from trainer.orchestrator.transport.link import Answer, LinkError

BODY_BYTES_MAX = 16 << 20
LIVE_CALLS_MAX = 16_384
GENERATE, CHAT = "/inference/v1/generate", "/v1/chat/completions"
OUR_STATUSES = frozenset({401, 403, 404, 409})
"""Refusals that no request of a sandbox can cause."""


class Refused(Exception):
    """The call is answered with an OpenAI-shaped error."""

    def __init__(self, status: int, message: str, code: str, kind: str = "invalid_request_error"):
        super().__init__(message)
        self.status, self.code, self.kind = status, code, kind


@dataclass(frozen=True, slots=True)
class Player:
    """Who answers a chat call. `seat` is empty where it is the run's own policy."""

    policy: Policy
    seat: str
    temperature: float


class RecordedStream(StreamingResponse):
    """Server-sent events whose end is noticed however it comes, the caller's going away before the first one included."""

    def __init__(self, events: AsyncIterator[bytes], close: Callable[[], None]):
        super().__init__(events, media_type="text/event-stream")
        self._close = close

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._close()


class RolloutProxy:
    """One per environment: what it records can be claimed by that environment's rollouts alone."""

    def __init__(
        self,
        environment: str,
        *,
        policies: PolicyTable,
        gate: EngineGate,
        sessions: SessionBook,
        pins: Pins,
        seats: Mapping[str, SeatPins] | None = None,
        artifacts: RolloutArtifacts | None = None,
    ):
        self._environment = environment
        self._seats = dict(seats or {})
        self._artifacts = artifacts
        self._policies = policies
        self._gate = gate
        self._sessions = sessions
        self._pins = pins
        self._live_calls = 0
        self.app = Starlette(
            routes=[
                Route("/v1/models", self._models, methods=["GET"]),
                Route(GENERATE, self._generate, methods=["POST"]),
                Route(CHAT, self._chat, methods=["POST"]),
            ],
            exception_handlers={Refused: _render},
        )

    async def _models(self, request: Request) -> Response:
        cards = [
            ModelCard(
                id=policy.engine_name,
                created=0,
                root=policy.engine_name,
                max_model_len=self._pins.context_tokens,
                digest=policy.digest,
            ).model_dump()
            for policy in self._policies.all()
        ]
        return JSONResponse({"object": "list", "data": cards})

    async def _generate(self, request: Request) -> Response:
        body = await _body(request)
        try:
            asked = pinned_generate(body, self._pins)
        except ValueError as error:
            raise Refused(400, str(error), "bad_request") from None
        policy = self._policy(asked.model)
        session = self._enter(request)
        try:
            return await _unless_disconnected(request, self._generated(session, policy, asked))
        finally:
            self._leave(session)

    async def _generated(self, session: Session, policy: Policy, asked: GenerateRequest) -> Response:
        started_s = time.monotonic()
        pictures = await asyncio.to_thread(self._pictures, asked)
        body = await self._ask(GENERATE, asked.model_dump_json().encode(), policy, session)
        try:
            reply = checked_generate(GenerateReply.model_validate_json(body), digest=policy.digest)
            routing = await asyncio.to_thread(self._routing, reply)
        except (EngineContradiction, ValueError) as error:
            raise self._infrastructure(session, f"engine reply refused: {error}", status=502) from None
        # What was kept need not go through the sandbox as well.
        choice = reply.choices[0].model_copy(update={"routed_experts": None})
        spoken = reply.model_copy(update={"choices": [choice]})
        session.calls.append(
            Call(
                engine_name=policy.engine_name,
                adapter_digest=reply.adapter.digest,
                prompt_ids=tuple(asked.token_ids if reply.prompt_token_ids is None else reply.prompt_token_ids),
                token_ids=tuple(choice.token_ids),
                logprobs=tuple(entry.logprob for entry in choice.logprobs.content),
                temperature=asked.sampling_params.temperature,
                input_tokens=reply.usage.prompt_tokens,
                output_tokens=reply.usage.completion_tokens,
                finish_reason=choice.finish_reason,
                routed_experts=routing,
                multimodal=pictures,
                started_s=started_s,
                ended_s=time.monotonic(),
            )
        )
        return Response(spoken.model_dump_json(exclude_none=True), media_type="application/json")

    def _pictures(self, asked: GenerateRequest) -> ArtifactRef | None:
        """Without a place to keep them, as in an evaluation, nothing learns from them."""
        try:
            return keep_pictures(asked.content_parts, self._artifacts) if self._artifacts and asked.content_parts else None
        except ValueError as error:
            raise Refused(400, f"content_parts: {error}", "bad_request") from None

    def _routing(self, reply: GenerateReply) -> ArtifactRef | None:
        """Raises ValueError for data that are none."""
        routing = reply.choices[0].routed_experts
        return keep_routing(routing, self._artifacts) if self._artifacts and routing else None

    async def _chat(self, request: Request) -> Response:
        try:
            body = json.loads(await _body(request))
            seat, pins = self._seat(request, body)
            asked = pinned_chat(body, pins) if isinstance(body, dict) else {}
        except ValueError as error:
            raise Refused(400, str(error), "bad_request") from None
        player = Player(self._policy(asked.get("model")), seat, pins.temperature)
        session = self._enter(request)
        content = json.dumps(asked).encode()
        if asked.get("stream"):
            return await self._open_stream(session, player, content)
        try:
            return await _unless_disconnected(request, self._chatted(session, player, content))
        finally:
            self._leave(session)

    async def _open_stream(self, session: Session, player: Player, content: bytes) -> Response:
        started_s = time.monotonic()
        try:
            answer = await self._gate.open(CHAT, content, player.policy)
            if answer.status != 200:
                reply = EngineReply(answer.status, await answer.read(BODY_BYTES_MAX))
                answer.close()
                raise self._refused(session, reply)
        except EngineAway as error:
            self._leave(session)
            raise self._infrastructure(session, str(error), status=503) from None
        except BaseException:
            self._leave(session)
            raise
        return RecordedStream(self._streamed(session, player, answer, started_s), lambda: self._close_stream(session, answer))

    async def _chatted(self, session: Session, player: Player, content: bytes) -> Response:
        started_s = time.monotonic()
        body = await self._ask(CHAT, content, player.policy, session)
        try:
            self._record_chat(session, player, json.loads(body), started_s)
        except (EngineContradiction, KeyError, TypeError, ValueError) as error:
            raise self._infrastructure(session, f"engine reply refused: {error}", status=502) from None
        return Response(body, media_type="application/json")

    async def _streamed(self, session: Session, player: Player, answer: Answer, started_s: float) -> AsyncIterator[bytes]:
        """Pass the engine's events on as they come; the last one with usage becomes the record."""
        last, pending = None, b""
        try:
            async for part in answer.chunks():
                *lines, pending = (pending + part).split(b"\n")
                last = next((found for line in reversed(lines) if (found := _with_usage(line))), last)
                yield part
            if last is None:
                raise EngineContradiction("the stream ended without usage")
            self._record_chat(session, player, last, started_s)
        except (LinkError, EngineContradiction, KeyError, TypeError, ValueError) as error:
            session.infrastructure = f"stream broken: {type(error).__name__}: {error}"

    def _close_stream(self, session: Session, answer: Answer) -> None:
        self._leave(session)
        answer.close()

    def _record_chat(self, session: Session, player: Player, reply: dict[str, Any], started_s: float) -> None:
        policy = player.policy
        # A server outside tells nothing of its weights; ours always do.
        digest = reply["adapter"]["digest"] if policy.digest else ""
        if digest != policy.digest:
            raise EngineContradiction(f"answered with weights {digest[:12]}, but {policy.engine_name} has {policy.digest[:12]}")
        choices = reply.get("choices") or [{}]
        session.calls.append(
            Call(
                engine_name=policy.engine_name,
                adapter_digest=digest,
                prompt_ids=(),
                token_ids=(),
                logprobs=(),
                temperature=player.temperature,
                input_tokens=int(reply["usage"]["prompt_tokens"]),
                output_tokens=int(reply["usage"]["completion_tokens"]),
                finish_reason=str(choices[0].get("finish_reason") or ""),
                route="chat",
                seat=player.seat,
                started_s=started_s,
                ended_s=time.monotonic(),
            )
        )

    async def _ask(self, path: str, content: bytes, policy: Policy, session: Session) -> bytes:
        """The body of a success. Raises Refused."""
        try:
            reply = await self._gate.ask(path, content, policy)
        except EngineAway as error:
            raise self._infrastructure(session, str(error), status=503) from None
        if reply.status != 200:
            raise self._refused(session, reply)
        return reply.body

    def _refused(self, session: Session, reply: EngineReply) -> Refused:
        """What the engine's refusal is to the sandbox: its own bad request, or a failure of ours."""
        message = _message(reply.body)
        if reply.status in OUR_STATUSES:
            return self._infrastructure(session, f"the engine answered {reply.status}: {message}", status=503)
        return Refused(reply.status, message, "bad_request")

    def _infrastructure(self, session: Session, message: str, *, status: int) -> Refused:
        session.infrastructure = message
        return Refused(status, message, "infrastructure", "server_error")

    def _seat(self, request: Request, body: Any) -> tuple[str, Pins]:
        """(agent that a model of its own plays, how it samples): the caller names the agent, we know its model."""
        name = request.headers.get(SEAT_HEADER, "")
        seat = self._seats.get(name)
        if seat is None:
            return "", self._pins
        if not isinstance(body, dict) or body.get("model") != seat.engine_name:
            raise Refused(400, f"the agent {name} is played by {seat.engine_name} and by no other model", "bad_request")
        return name, seat.pins

    def _policy(self, name: Any) -> Policy:
        policy = self._policies.find(name) if isinstance(name, str) else None
        if policy is None:
            raise Refused(404, f"the model {str(name)[:128]!r} is not in use by this run", "model_not_found")
        return policy

    def _enter(self, request: Request) -> Session:
        session_id = request.headers.get(SESSION_HEADER, "")
        if not 1 <= len(session_id) <= 128:
            raise Refused(400, "the header X-Session-ID must name the trace", "bad_request")
        if self._live_calls >= LIVE_CALLS_MAX:
            raise Refused(429, f"more than {LIVE_CALLS_MAX} model calls at once", "too_many_calls")
        session = self._sessions.enter(self._environment, session_id, time.monotonic())
        self._live_calls += 1
        if len(session.calls) >= CALLS_PER_SESSION_MAX:
            self._leave(session)
            raise Refused(429, f"more than {CALLS_PER_SESSION_MAX} model calls in one trace", "too_many_calls")
        return session

    def _leave(self, session: Session) -> None:
        session.live -= 1
        self._live_calls -= 1


async def _body(request: Request) -> bytes:
    if int(request.headers.get("content-length") or 0) > BODY_BYTES_MAX:
        raise Refused(413, f"the request is larger than {BODY_BYTES_MAX} bytes", "too_large")
    return await request.body()


async def _unless_disconnected(request: Request, answering: Coroutine[Any, Any, Response]) -> Response:
    """Run the call, but give it up when the caller has gone: a cancelled rollout must not keep an engine busy."""
    call = asyncio.ensure_future(answering)
    gone = asyncio.ensure_future(request.receive())
    try:
        await asyncio.wait({call, gone}, return_when=asyncio.FIRST_COMPLETED)
        if not call.done():
            raise Refused(499, "the caller has gone", "disconnected")
        return call.result()
    finally:
        gone.cancel()
        call.cancel()


def _with_usage(line: bytes) -> dict[str, Any] | None:
    """The event of a line that carries usage."""
    if not line.startswith(b"data: {") or b'"usage"' not in line:
        return None
    event = json.loads(line[len(b"data: ") :])
    return event if event.get("usage") else None


def _message(body: bytes) -> str:
    try:
        return str(json.loads(body)["error"]["message"])[:1000]
    except (ValueError, KeyError, TypeError):
        return body[:1000].decode("utf-8", "replace")


async def _render(request: Request, error: Exception) -> Response:
    assert isinstance(error, Refused)
    body = {"error": {"message": str(error), "type": error.kind, "code": error.code, "param": None}}
    return JSONResponse(body, status_code=error.status)
