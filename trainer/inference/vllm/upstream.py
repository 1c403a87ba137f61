"""The vLLM server's HTTP: generate by token ids, load and forget adapters, answer whether it is there and how busy it is.

Knows addresses, shapes and vLLM's words for an unknown model. Refuses to know sequences and who holds which adapter.
"""

import json
import math
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
from prometheus_client.parser import text_string_to_metric_families

CONNECT_S = 5.0
SILENCE_S = 300.0
LOAD_S = 60.0
CONNECTIONS_MAX = 1024
ERROR_TEXT_MAX = 500
LOGPROB_FLOOR = -9999.0
"""What vLLM writes where a log-probability is not a number that JSON can hold."""


class UpstreamAway(Exception):
    """The server cannot be reached, or failed while it answered."""


class UpstreamRefused(Exception):
    """The server will not serve this request, however often it is sent."""


class UnknownName(Exception):
    """No adapter of that name is loaded, which a restart explains."""


@dataclass(frozen=True, slots=True)
class Token:
    """`logprob` is NaN where the server has no number. `tops`: the most likely tokens, best first, where they were asked for."""

    token_id: int
    logprob: float
    tops: list[tuple[int, float]]


@dataclass(frozen=True, slots=True)
class Piece:
    """A whole answer, or one event of a stream. `prompt_logprobs`: per prompt token, id → log-probability; None for the first."""

    tokens: list[Token]
    finish_reason: str | None
    prompt_logprobs: list[dict[int, float] | None] | None = None


@dataclass(frozen=True, slots=True)
class Load:
    """Requests that wait for a place in the batch, over all of the server's engines; `kv_share` of its fullest cache, which has
    `kv_blocks` blocks (0: it does not say)."""

    waiting: int
    kv_share: float
    kv_blocks: int


class Upstream:
    """Use from one event loop; `close` at the end. `transport` is httpx's own unless a test brings another."""

    def __init__(self, url: str, *, transport: httpx.AsyncBaseTransport | None = None) -> None:
        limits = httpx.Limits(max_connections=CONNECTIONS_MAX, max_keepalive_connections=CONNECTIONS_MAX)
        timeout = httpx.Timeout(SILENCE_S, connect=CONNECT_S, pool=None)
        self._http = httpx.AsyncClient(base_url=url, limits=limits, timeout=timeout, trust_env=False, transport=transport)

    async def close(self) -> None:
        await self._http.aclose()

    async def is_ready(self) -> bool:
        try:
            return (await self._http.get("/health", timeout=CONNECT_S)).status_code == 200
        except httpx.TransportError:
            return False

    async def load_now(self) -> Load | None:
        """How busy the server is; None where it does not say."""
        try:
            answer = await self._http.get("/metrics", timeout=CONNECT_S)
            return _load(answer.text) if answer.status_code == 200 else None
        except (httpx.TransportError, ValueError):
            return None

    async def generate(self, body: dict[str, Any]) -> AsyncIterator[Piece]:
        """The answer in pieces: one for `stream: false`. Raises UnknownName, UpstreamRefused, UpstreamAway."""
        try:
            async with self._http.stream("POST", "/inference/v1/generate", json=body) as response:
                if response.status_code != 200:
                    raise _refusal(response.status_code, await response.aread())
                if not body["stream"]:
                    yield _piece(json.loads(await response.aread()))
                    return
                async for line in response.aiter_lines():
                    if line.startswith("data: {"):
                        yield _piece(json.loads(line.removeprefix("data: ")))
        except (httpx.TransportError, ValueError) as error:
            raise UpstreamAway(f"{type(error).__name__}: {error}") from error

    async def load(self, name: str, folder: Path) -> None:
        """An adapter under a name that was never used before. A name that is loaded already is fine: names are digests."""
        async with self._post("/v1/load_lora_adapter", {"lora_name": name, "lora_path": str(folder)}) as response:
            if response.status_code == 400 and "already been loaded" in response.text:
                return
            if response.status_code != 200:
                raise _refusal(response.status_code, response.content)

    async def unload(self, name: str) -> None:
        """Forget the name. One that is not known is forgotten already."""
        async with self._post("/v1/unload_lora_adapter", {"lora_name": name}) as response:
            if response.status_code not in {200, 404}:
                raise _refusal(response.status_code, response.content)

    @asynccontextmanager
    async def _post(self, path: str, body: dict[str, Any]) -> AsyncIterator[httpx.Response]:
        try:
            yield await self._http.post(path, json=body, timeout=LOAD_S)
        except httpx.TransportError as error:
            raise UpstreamAway(f"{path}: {type(error).__name__}") from error


def _refusal(status: int, content: bytes) -> Exception:
    text = f"vLLM answered {status}: {content[:ERROR_TEXT_MAX].decode('utf-8', 'replace')}"
    if status == 404:
        return UnknownName(text)
    return UpstreamRefused(text) if status < 500 and status != 429 else UpstreamAway(text)


def _load(text: str) -> Load | None:
    samples = [sample for family in text_string_to_metric_families(text) for sample in family.samples]
    waiting = [sample.value for sample in samples if sample.name == "vllm:num_requests_waiting"]
    shares = [sample.value for sample in samples if sample.name == "vllm:kv_cache_usage_perc"]
    blocks = [sample.labels.get("num_gpu_blocks", "") for sample in samples if sample.name == "vllm:cache_config_info"]
    if not waiting:
        return None
    return Load(
        round(sum(waiting)), max(shares, default=0.0), max((int(count) for count in blocks if count.isdigit()), default=0)
    )


def _piece(body: dict[str, Any]) -> Piece:
    if "error" in body:
        raise UpstreamAway(f"vLLM failed while it answered: {str(body['error'])[:ERROR_TEXT_MAX]}")
    if not body["choices"]:
        return Piece([], None)
    choice = body["choices"][0]
    token_ids, entries = choice["token_ids"] or [], (choice["logprobs"] or {}).get("content") or []
    tokens = [_token(token_id, entry) for token_id, entry in zip(token_ids, entries, strict=True)]
    return Piece(tokens, choice["finish_reason"], _prompt_logprobs(body.get("prompt_logprobs")))


def _token(token_id: int, entry: dict[str, Any]) -> Token:
    tops = sorted(((top["token_id"], _number(top["logprob"])) for top in entry["top_logprobs"]), key=lambda top: -top[1])
    return Token(token_id, _number(entry["logprob"]), tops)


def _number(logprob: float | None) -> float:
    return math.nan if logprob is None or logprob <= LOGPROB_FLOOR else logprob


def _prompt_logprobs(rows: list[dict[str, Any] | None] | None) -> list[dict[int, float] | None] | None:
    if rows is None:
        return None
    return [row and {int(token_id): _number(entry["logprob"]) for token_id, entry in row.items()} for row in rows]
