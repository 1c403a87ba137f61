"""Sequences in, vLLM's tokens out: the backend's contract over an `Upstream`.

Knows sampling parameters and how an answer ends. Refuses to know HTTP and files. One task a sequence; one that ends early closes
its connection, which ends the work behind it.
"""

import asyncio
import logging
import math
import time
from typing import Any

from trainer.contracts.generation import AdapterIdentity, SamplingParams
from trainer.inference.backend import Ticket
from trainer.inference.errors import BadRequest, EngineStopped, Saturated
from trainer.inference.limits import EngineLimits
from trainer.inference.metrics import EngineMetrics
from trainer.inference.sequence import FinishReason, Sequence, SequenceState
from trainer.inference.vllm.adapters import AdapterFolder, LoadedAdapters
from trainer.inference.vllm.upstream import Load, Piece, Token, UnknownName, Upstream, UpstreamAway, UpstreamRefused

START_DEADLINE_S = 900.0
"""A large model takes minutes to load."""
POLL_S = 0.5
RETRY_S = 0.5
LOOK_S = 2.0
"""How often the server is asked how busy it is."""

_logger = logging.getLogger(__name__)


class VllmEngine:
    """`base` names the base model. Its requests go through `base_adapter`, where there is one, else under its own name."""

    def __init__(
        self,
        upstream: Upstream,
        adapters: LoadedAdapters,
        limits: EngineLimits,
        metrics: EngineMetrics,
        *,
        base: AdapterIdentity,
        base_adapter: AdapterFolder | None,
    ) -> None:
        self._upstream = upstream
        self._adapters = adapters
        self._limits = limits
        self._metrics = metrics
        self._base = base
        self._base_adapter = base_adapter
        self._tasks: dict[Sequence, asyncio.Task[None]] = {}
        self._answering = 0
        self._load: Load | None = None
        self._looking: asyncio.Task[None] | None = None
        self._stopping = False
        self.generated_at_s: float | None = None

    @property
    def in_flight_count(self) -> int:
        return self._answering

    async def start(self) -> None:
        """Wait for the server, which may be starting at the same time, and for its first token, which takes it as long as a
        thousand later ones. Raises EngineStopped when it never comes."""
        try:
            async with asyncio.timeout(START_DEADLINE_S):
                while not await self._upstream.is_ready():
                    await asyncio.sleep(POLL_S)
                await self._answered(Ticket(first_sequence(self._base)))
        except (TimeoutError, UpstreamRefused, UpstreamAway, UnknownName) as error:
            raise EngineStopped(f"vLLM gave no first token: {error or 'out of time'}") from error
        self._looking = asyncio.create_task(self._keep_looking())

    async def stop(self) -> None:
        self._stopping = True
        tasks = [*self._tasks.values(), *([self._looking] if self._looking else [])]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self._upstream.close()

    async def look(self) -> None:
        """Ask the server how busy it is, for whoever reads our own numbers."""
        self._load = await self._upstream.load_now()
        if self._load is not None and self._load.kv_blocks:
            self._metrics.kv_blocks_total.set(self._load.kv_blocks)
            self._metrics.kv_blocks_used.set(round(self._load.kv_share * self._load.kv_blocks))
        self._show_load()

    async def _keep_looking(self) -> None:
        while True:
            await self.look()
            await asyncio.sleep(LOOK_S)

    def _show_load(self) -> None:
        """What the server has and does not decode waits there; what it has not got yet waits for its adapter here."""
        running = self._answering - min(self._answering, self._load.waiting if self._load else 0)
        self._metrics.running.set(running)
        self._metrics.waiting.set(len(self._tasks) - min(running, len(self._tasks)))

    def submit(self, sequence: Sequence) -> Ticket:
        if self._stopping:
            raise EngineStopped("the engine is stopping")
        if len(self._tasks) >= self._limits.sequences_max + self._limits.waiting_max and not sequence.urgent:
            raise Saturated(f"{self._limits.waiting_max} requests are waiting; try again later")
        if sequence.prompt_top_logprobs is not None and sequence.sampling.temperature not in {0.0, 1.0}:
            # vLLM tempers the log-probabilities of what it samples, never those of a prompt, and one number is not enough to do
            # it afterwards.
            raise BadRequest("vLLM scores prompts at temperature 1 alone; ask for that", param="temperature")
        ticket = Ticket(sequence)
        task = self._tasks[sequence] = asyncio.create_task(self._run(ticket))
        # A callback, since a task that is cancelled before its first step runs nothing of its own.
        task.add_done_callback(lambda _: self._end(ticket))
        return ticket

    def abort(self, sequence: Sequence) -> None:
        if not sequence.is_finished and (task := self._tasks.get(sequence)):
            # Recorded before the task hears of it: what cancels a task without a reason is the end of the engine.
            sequence.finish_reason = FinishReason.ABORT
            task.cancel()

    async def _run(self, ticket: Ticket) -> None:
        sequence = ticket.sequence
        try:
            async with asyncio.timeout(max(0.0, sequence.deadline_at_s - time.monotonic())):
                sequence.finish_reason = await self._until_answered(ticket)
        except TimeoutError:
            sequence.finish_reason = FinishReason.DEADLINE
        except UpstreamRefused as error:
            _logger.error("request %s: %s", sequence.id, error)

    def _end(self, ticket: Ticket) -> None:
        """Without a reason of its own, a sequence ended with the engine."""
        sequence = ticket.sequence
        sequence.finish_reason = sequence.finish_reason or FinishReason.ENGINE
        sequence.state = SequenceState.FINISHED
        del self._tasks[sequence]
        self._show_load()
        self._metrics.book(sequence, time.monotonic())
        ticket.tell()

    async def _until_answered(self, ticket: Ticket) -> FinishReason:
        """Repeats what no token has come of yet: after a restart vLLM knows no adapter. The deadline bounds it."""
        while True:
            try:
                return await self._answered(ticket)
            except (UnknownName, UpstreamAway) as error:
                if ticket.sequence.token_ids:
                    _logger.error("request %s broke off: %s", ticket.sequence.id, error)
                    return FinishReason.ENGINE
                _logger.warning("request %s: %s; trying again", ticket.sequence.id, error)
                await asyncio.sleep(RETRY_S)

    async def _answered(self, ticket: Ticket) -> FinishReason:
        adapter = ticket.sequence.adapter or self._base_adapter
        if adapter is None:
            return await self._generate(ticket, ticket.sequence.identity.name)
        assert isinstance(adapter, AdapterFolder)
        name = await self._adapters.hold(adapter)
        try:
            return await self._generate(ticket, name)
        except UnknownName:
            self._adapters.forget(adapter)
            raise
        finally:
            self._adapters.release(adapter)

    async def _generate(self, ticket: Ticket, model: str) -> FinishReason:
        self._answering += 1
        self._show_load()
        try:
            pieces = self._upstream.generate(request_body(ticket.sequence, model))
            reason: FinishReason | None = None
            async for piece in pieces:
                reason = self._take(ticket, piece) or reason
            if reason is None:
                raise UpstreamAway("the answer ended early")
            return reason
        finally:
            self._answering -= 1
            self._show_load()

    def _take(self, ticket: Ticket, piece: Piece) -> FinishReason | None:
        sequence = ticket.sequence
        if piece.prompt_logprobs is not None:
            take_prompt(sequence, piece.prompt_logprobs)
        if not sequence.max_new:
            self.generated_at_s = time.monotonic()
            return sequence.scored()
        reason = None
        for token in piece.tokens:
            reason = take_token(sequence, token)
        if piece.tokens:
            self.generated_at_s = time.monotonic()
            ticket.tell()
        return reason or (FinishReason.ENGINE if piece.finish_reason else None)


def first_sequence(base: AdapterIdentity) -> Sequence:
    """One token of the base model."""
    sampling = SamplingParams(temperature=0.0, max_tokens=1)
    return Sequence(id="first", prompt=[0], sampling=sampling, identity=base, max_new=1, deadline_at_s=math.inf)


def request_body(sequence: Sequence, model: str) -> dict[str, Any]:
    """vLLM's request. All that ends a sequence is spelled out, so that nothing depends on files that vLLM reads."""
    asked = sequence.sampling
    sampling: dict[str, Any] = {
        "temperature": asked.temperature,
        "top_p": asked.top_p,
        "top_k": max(asked.top_k, 0),
        "min_p": asked.min_p,
        "seed": asked.seed,
        # vLLM samples at least one token: of a prompt that is only scored it is left unread.
        "max_tokens": max(1, sequence.max_new),
        "stop_token_ids": sorted(sequence.stop_ids),
        "ignore_eos": True,
        "logprobs": sequence.top_logprobs,
        "prompt_logprobs": sequence.prompt_top_logprobs,
        "detokenize": False,
    }
    body = {
        "model": model,
        "token_ids": sequence.prompt,
        "stream": sequence.streams,
        "sampling_params": {name: value for name, value in sampling.items() if value is not None},
    }
    return body | ({"cache_salt": sequence.cache_salt} if sequence.cache_salt else {})


def take_token(sequence: Sequence, token: Token) -> FinishReason | None:
    reason = sequence.accept(token.token_id, token.logprob)
    if reason is not FinishReason.NON_FINITE and sequence.top_logprobs:
        sequence.tops.append(token.tops[: sequence.top_logprobs])
    return reason


def take_prompt(sequence: Sequence, rows: list[dict[int, float] | None]) -> None:
    for token_id, row in zip(sequence.prompt[1:], rows[1:], strict=True):
        assert row is not None, "only the first prompt token has nothing before it"
        sequence.prompt_logprobs.append(row[token_id])
        if sequence.prompt_top_logprobs:
            best = sorted(row.items(), key=lambda top: -top[1])
            sequence.prompt_tops.append(best[: sequence.prompt_top_logprobs])
