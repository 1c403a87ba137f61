"""vLLM's HTTP as far as our backend uses it, in one process: a server that counts, forgets and fails on command.

Answers token `last + 1` for every step, so that a test knows what must come out. It knows no weights.
"""

import asyncio
import json
from dataclasses import dataclass, field

import httpx
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from trainer.inference.vllm.upstream import Upstream

LOGPROB = -0.5


@dataclass
class FakeVllm:
    """`gate`: tokens come only while it is set. `failures`: statuses to answer generate requests with, first come first."""

    loaded: dict[str, str] = field(default_factory=dict)
    loads: list[str] = field(default_factory=list)
    requests: list[dict] = field(default_factory=list)
    failures: list[int] = field(default_factory=list)
    logprob: float | None = LOGPROB
    prompt_scores: dict[int, float] = field(default_factory=dict)
    """Log-probability by prompt token; with any, the most likely token is answered beside it."""
    metrics: str | None = None
    """What it says of itself; None answers 404."""
    gate: asyncio.Event = field(default_factory=asyncio.Event)

    def upstream(self) -> Upstream:
        self.gate.set()
        routes = [
            Route("/health", lambda request: Response()),
            Route("/metrics", lambda request: Response(self.metrics, 200 if self.metrics is not None else 404)),
            Route("/inference/v1/generate", self._generate, methods=["POST"]),
            Route("/v1/load_lora_adapter", self._load, methods=["POST"]),
            Route("/v1/unload_lora_adapter", self._unload, methods=["POST"]),
        ]
        return Upstream("http://vllm", transport=httpx.ASGITransport(Starlette(routes=routes)))

    def restart(self) -> None:
        self.loaded.clear()

    async def _load(self, request: Request) -> Response:
        body = await request.json()
        self.loads.append(body["lora_name"])
        if body["lora_name"] in self.loaded:
            return _error(400, f"The lora adapter '{body['lora_name']}' has already been loaded.")
        self.loaded[body["lora_name"]] = body["lora_path"]
        return Response("Success")

    async def _unload(self, request: Request) -> Response:
        name = (await request.json())["lora_name"]
        return Response("Success") if self.loaded.pop(name, None) else _error(404, "not found")

    async def _generate(self, request: Request) -> Response:
        body = await request.json()
        self.requests.append(body)
        if self.failures:
            return _error(self.failures.pop(0), "failing as told")
        if body["model"] not in {"random", *self.loaded}:
            return _error(404, f"The model `{body['model']}` does not exist.")
        await self.gate.wait()
        token_ids = self._token_ids(body)
        if not body["stream"]:
            return JSONResponse(self._event(token_ids, "length") | {"prompt_logprobs": self._prompt(body)})
        events = [self._event([token_id], None) for token_id in token_ids[:-1]] + [self._event(token_ids[-1:], "length")]
        return StreamingResponse(_stream(events), media_type="text/event-stream")

    def _token_ids(self, body: dict) -> list[int]:
        sampling, token_ids = body["sampling_params"], []
        for step in range(1, sampling["max_tokens"] + 1):
            token_ids.append(body["token_ids"][-1] + step)
            if token_ids[-1] in sampling["stop_token_ids"]:
                break
        return token_ids

    def _event(self, token_ids: list[int], finish_reason: str | None) -> dict:
        content = [
            {"token_id": token_id, "logprob": self.logprob, "top_logprobs": [{"token_id": token_id, "logprob": self.logprob}]}
            for token_id in token_ids
        ]
        return {"choices": [{"token_ids": token_ids, "logprobs": {"content": content}, "finish_reason": finish_reason}]}

    def _prompt(self, body: dict) -> list | None:
        if body["sampling_params"].get("prompt_logprobs") is None:
            return None
        best = {"0": {"logprob": -0.1, "rank": 1}} if self.prompt_scores else {}
        own = [(token_id, self.prompt_scores.get(token_id, LOGPROB)) for token_id in body["token_ids"][1:]]
        return [None] + [best | {str(token_id): {"logprob": logprob, "rank": 2}} for token_id, logprob in own]


def _error(status: int, message: str) -> Response:
    return JSONResponse({"error": {"message": message, "code": status}}, status_code=status)


async def _stream(events: list[dict]):
    for event in events:
        yield f"data: {json.dumps(event)}\n\n"
    yield "data: [DONE]\n\n"
