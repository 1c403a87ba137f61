"""POST /v1/chat/completions: OpenAI's shapes around one generation, streamed or whole.

Knows messages, text and tool calls. Refuses to know sampling and scheduling. Streamed and whole answers are made by the same
`Answer`, so they cannot differ.
"""

import json
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse

from trainer.inference.backend import Ticket
from trainer.inference.chat_request import ChatRequest, parse_chat, template_messages
from trainer.inference.errors import BadRequest, EngineError
from trainer.inference.http import departure_watch, read_body
from trainer.inference.sequence import FinishReason, Sequence
from trainer.inference.service import InferenceService, raise_if_ended_by_us, usage_of
from trainer.inference.text import TextCodec, TextStream
from trainer.inference.tool_calls import ToolCall, ToolCallStream


async def chat_completions(request: Request) -> Response:
    service: InferenceService = request.app.state.service
    asked = parse_chat(await read_body(request))
    _check(asked, service)
    resolved = await service.resolve(asked.model)
    offered = None if asked.tool_choice == "none" else asked.tools
    prompt = service.codec.render_chat(template_messages(asked.messages), offered)
    ticket = service.submit(
        resolved,
        prompt,
        asked.sampling(),
        top_logprobs=(asked.top_logprobs or 0) if asked.logprobs else 0,
        streams=asked.stream or bool(asked.stop_strings),
        cache_salt=asked.cache_salt,
    )
    answer = Answer(asked, ticket, service.codec, parses_tools=bool(offered) and service.spec.tool_parser is not None)
    if asked.stream:
        return StreamingResponse(_events(request, service, answer), media_type="text/event-stream")
    async with departure_watch(request, service.engine, ticket.sequence):
        deltas = [delta async for delta in answer.deltas()]
    return JSONResponse(answer.whole(deltas))


def _check(asked: ChatRequest, service: InferenceService) -> None:
    if asked.top_logprobs and not asked.logprobs:
        raise BadRequest("top_logprobs needs logprobs = true", param="top_logprobs")
    if len(asked.stop_strings) > service.limits.stop_strings_max:
        raise BadRequest(f"at most {service.limits.stop_strings_max} stop strings are allowed", param="stop")


async def _events(request: Request, service: InferenceService, answer: "Answer") -> AsyncIterator[str]:
    """Server-sent events. An error behind the first byte goes out as an event, since the status is gone."""
    async with departure_watch(request, service.engine, answer.sequence):
        try:
            yield _event(answer.opening())
            async for delta in answer.deltas():
                yield _event(answer.chunk(delta))
            for chunk in answer.closing():
                yield _event(chunk)
        except EngineError as error:
            yield _event(error.body())
        yield "data: [DONE]\n\n"


def _event(body: dict[str, Any]) -> str:
    return f"data: {json.dumps(body, ensure_ascii=False, separators=(',', ':'))}\n\n"


@dataclass(slots=True)
class Delta:
    """What became known together: text, and the tokens that it came from."""

    text: str = ""
    token_ids: list[int] = field(default_factory=list)
    logprobs: list[dict[str, Any]] = field(default_factory=list)
    calls: list[ToolCall] = field(default_factory=list)


class Answer:
    """One assistant turn as it grows, and its rendering."""

    def __init__(self, asked: ChatRequest, ticket: Ticket, codec: TextCodec, *, parses_tools: bool):
        self.sequence: Sequence = ticket.sequence
        self._asked = asked
        self._ticket = ticket
        self._codec = codec
        self._text = TextStream(codec, stop_strings=asked.stop_strings, skip_special_tokens=asked.skip_special_tokens)
        self._tools = ToolCallStream() if parses_tools else None
        self._seen = 0
        self._has_calls = False
        self._created_s = int(time.time())

    async def deltas(self) -> AsyncIterator[Delta]:
        """Until the sequence ends or a stop string is found. Raises EngineError when the engine ended it."""
        finished = False
        while not (finished or self._text.stopped):
            await self._ticket.progress()
            # Read before the tokens: when it is set, all tokens are there.
            finished = self.sequence.is_finished
            delta = self._take()
            if delta.token_ids:
                yield delta
        if finished:
            raise_if_ended_by_us(self.sequence)
        last = self._last()
        if last.text or last.calls:
            yield last

    def _take(self) -> Delta:
        start, self._seen = self._seen, len(self.sequence.token_ids)
        token_ids = self.sequence.token_ids[start : self._seen]
        text = self._text.feed(token_ids)
        return Delta(
            text=self._tools.feed(text) if self._tools else text,
            token_ids=token_ids,
            logprobs=[self._logprob(index) for index in range(start, self._seen)] if self._asked.logprobs else [],
        )

    def _last(self) -> Delta:
        text = self._text.finish()
        if self._tools is None:
            return Delta(text=text)
        shown = self._tools.feed(text)
        rest, calls = self._tools.finish()
        self._has_calls = bool(calls)
        return Delta(text=shown + rest, calls=calls)

    def _logprob(self, index: int) -> dict[str, Any]:
        sequence = self.sequence
        tops = sequence.tops[index] if sequence.top_logprobs else []
        entry = self._token(sequence.token_ids[index], sequence.logprobs[index])
        return entry | {"top_logprobs": [self._token(token_id, logprob) for token_id, logprob in tops]}

    def _token(self, token_id: int, logprob: float) -> dict[str, Any]:
        text = self._codec.token_text(token_id)
        return {"token": text, "logprob": logprob, "bytes": list(text.encode())}

    def opening(self) -> dict[str, Any]:
        chunk = self._stream_body([self._stream_choice({"role": "assistant", "content": ""})])
        return chunk | ({"prompt_token_ids": self.sequence.prompt} if self._asked.return_token_ids else {})

    def chunk(self, delta: Delta) -> dict[str, Any]:
        body: dict[str, Any] = {"content": delta.text} if delta.text else {}
        if delta.calls:
            body["tool_calls"] = [call.body() | {"index": index} for index, call in enumerate(delta.calls)]
        choice = self._stream_choice(body)
        if self._asked.logprobs:
            choice["logprobs"] = {"content": delta.logprobs, "refusal": None}
        if self._asked.return_token_ids:
            choice["token_ids"] = delta.token_ids
        return self._stream_body([choice])

    def closing(self) -> list[dict[str, Any]]:
        """The chunk with the reason, and usage: in a chunk of its own where the client asked for it that way."""
        end = self._stream_body([self._stream_choice({}) | {"finish_reason": self._finish_reason()}])
        usage = {"usage": usage_of(self.sequence).model_dump()}
        return [end, self._stream_body([]) | usage] if self._asked.include_usage else [end | usage]

    def whole(self, deltas: list[Delta]) -> dict[str, Any]:
        text = "".join(delta.text for delta in deltas)
        calls = [call.body() for delta in deltas for call in delta.calls]
        message: dict[str, Any] = {"role": "assistant", "content": text or (None if calls else ""), "refusal": None}
        choice: dict[str, Any] = {"index": 0, "message": message, "finish_reason": self._finish_reason(), "logprobs": None}
        if calls:
            message["tool_calls"] = calls
        if self._asked.logprobs:
            choice["logprobs"] = {"content": [entry for delta in deltas for entry in delta.logprobs], "refusal": None}
        body = self._body("chat.completion") | {"choices": [choice], "usage": usage_of(self.sequence).model_dump()}
        if self._asked.return_token_ids:
            choice["token_ids"] = [token_id for delta in deltas for token_id in delta.token_ids]
            body["prompt_token_ids"] = self.sequence.prompt
        return body

    def _finish_reason(self) -> str:
        if self._has_calls:
            return "tool_calls"
        return "length" if self.sequence.finish_reason is FinishReason.LENGTH and not self._text.stopped else "stop"

    def _stream_choice(self, delta: dict[str, Any]) -> dict[str, Any]:
        return {"index": 0, "delta": delta, "finish_reason": None}

    def _stream_body(self, choices: list[dict[str, Any]]) -> dict[str, Any]:
        return self._body("chat.completion.chunk") | {"choices": choices}

    def _body(self, kind: str) -> dict[str, Any]:
        identity = self.sequence.identity
        return {
            "id": f"chatcmpl-{self.sequence.id}",
            "object": kind,
            "created": self._created_s,
            "model": self._asked.model,
            "system_fingerprint": identity.digest,
            "adapter": identity.model_dump(),
        }
