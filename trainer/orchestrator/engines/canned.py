"""A model that always says the same few words: what a release check plays its one rollout against.

Knows the engine's reply shapes and a tokenizer file. Refuses to know weights. It stands behind the ordinary rollout proxy: a
release is checked through the same path that a run uses.
"""

import json
import time
from pathlib import Path
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route
from tokenizers import Tokenizer

from trainer.contracts.generation import (
    AdapterIdentity,
    GenerateChoice,
    GenerateReply,
    GenerateRequest,
    LogprobContent,
    TokenLogprob,
    Usage,
)

TEXT = "1"
LOGPROB = -0.5
DIGEST = "0" * 64


class CannedEngine:
    """Answers `model_id` on the generate and chat routes."""

    def __init__(self, model_id: str, tokenizer_folder: Path):
        self._identity = AdapterIdentity(name=model_id, digest=DIGEST)
        self._tokens = Tokenizer.from_file(str(tokenizer_folder / "tokenizer.json")).encode(TEXT, add_special_tokens=False).ids
        self.app = Starlette(
            routes=[
                Route("/inference/v1/generate", self._generate, methods=["POST"]),
                Route("/v1/chat/completions", self._chat, methods=["POST"]),
            ]
        )

    async def _generate(self, request: Request) -> Response:
        asked = GenerateRequest.model_validate_json(await request.body())
        tokens = [*self._tokens, *asked.sampling_params.stop_token_ids[:1]][: asked.sampling_params.max_tokens]
        content = [TokenLogprob(token=f"token_id:{token}", logprob=LOGPROB) for token in tokens]
        choice = GenerateChoice(token_ids=tokens, logprobs=LogprobContent(content=content), finish_reason="stop")
        size = len(asked.token_ids)
        reply = GenerateReply(
            id="canned",
            request_id="canned",
            model=asked.model,
            choices=[choice],
            usage=Usage(prompt_tokens=size, completion_tokens=len(tokens), total_tokens=size + len(tokens)),
            adapter=self._identity,
        )
        return Response(reply.model_dump_json(), media_type="application/json")

    async def _chat(self, request: Request) -> Response:
        asked = await request.json()
        if asked.get("stream"):
            chunk = self._chat_reply("chat.completion.chunk", "delta")
            return StreamingResponse(iter([f"data: {json.dumps(chunk)}\n\n", "data: [DONE]\n\n"]), media_type="text/event-stream")
        return JSONResponse(self._chat_reply("chat.completion", "message"))

    def _chat_reply(self, kind: str, part: str) -> dict[str, Any]:
        said = {"role": "assistant", "content": TEXT}
        return {
            "id": "canned",
            "object": kind,
            "created": int(time.time()),
            "model": self._identity.name,
            "system_fingerprint": DIGEST,
            "adapter": self._identity.model_dump(),
            "choices": [{"index": 0, part: said, "finish_reason": "stop"}],
            "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2},
        }
