"""One backend with everything around it: codec, adapters, limits. Turns a request into a sequence and an end into an error.

Knows what requests name and what they may cost. Refuses to know HTTP, and which backend it is (`assembly`).
"""

import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass

from trainer.contracts.catalogue import model_folder
from trainer.contracts.generation import AdapterIdentity, AdapterLoaded, LoadAdapter, ModelCard, SamplingParams, Usage
from trainer.inference.adapter_store import AdapterStore, Reader
from trainer.inference.backend import Backend, Ticket
from trainer.inference.base_model import BaseModel
from trainer.inference.errors import BadRequest, DeadlineExceeded, EngineError, EngineStopped, NonFiniteOutput
from trainer.inference.limits import EngineLimits
from trainer.inference.metrics import EngineMetrics
from trainer.inference.sequence import Adapter, FinishReason, Sequence
from trainer.inference.text import TextCodec
from trainer.inference.tool_calls import PARSERS

_ENDED_BY_US: dict[FinishReason, Callable[[], EngineError]] = {
    FinishReason.DEADLINE: lambda: DeadlineExceeded("the request's deadline passed before it was answered"),
    FinishReason.NON_FINITE: lambda: NonFiniteOutput("the model's output is not finite; the adapter's weights have diverged"),
    FinishReason.ENGINE: lambda: EngineStopped("the engine stopped while the request ran"),
}


@dataclass(frozen=True, slots=True)
class Resolved:
    """The weights behind a request's `model`."""

    identity: AdapterIdentity
    adapter: Adapter | None


class InferenceService:
    """Use from one event loop. `start` before the first request, `stop` after the last."""

    def __init__(
        self,
        base: BaseModel,
        *,
        engine: Backend,
        reader: Reader,
        limits: EngineLimits,
        metrics: EngineMetrics,
    ):
        spec = base.spec
        if spec.tool_parser is not None and spec.tool_parser not in PARSERS:
            raise ValueError(f"catalogue entry {spec.id}: tool_parser '{spec.tool_parser}' is not one of {sorted(PARSERS)}")
        self.spec = spec
        self.limits = limits
        self.metrics = metrics
        self.codec = TextCodec(model_folder(spec.tokenizer))
        self.context_tokens = base.context_tokens
        self._vocabulary = base.shape.vocabulary
        self.base = base.identity
        self._eos_ids = frozenset({self.codec.eos_id} - {None})
        self._started_s = int(time.time())
        self.adapters = AdapterStore(reader, limits, metrics, reserved_name=spec.id)
        self.engine = engine

    async def start(self) -> None:
        await self.engine.start()
        await self.probe()

    async def stop(self) -> None:
        await self.engine.stop()
        self.adapters.close()

    async def load(self, request: LoadAdapter) -> AdapterLoaded:
        started_s = time.perf_counter()
        known = await self.adapters.register(request.lora_name, request.lora_path, request.digest)
        in_flight = self.engine.in_flight_count
        self.metrics.in_flight_at_swap.observe(in_flight)
        return AdapterLoaded(
            lora_name=known.name,
            digest=known.digest,
            load_s=time.perf_counter() - started_s,
            requests_in_flight=in_flight,
        )

    def models(self) -> list[ModelCard]:
        base = ModelCard(
            id=self.base.name,
            created=self._started_s,
            root=self.base.name,
            max_model_len=self.context_tokens,
            digest=self.base.digest,
        )
        return [base] + [
            ModelCard(
                id=known.name,
                created=known.created_s,
                root=str(known.folder),
                parent=self.base.name,
                max_model_len=self.context_tokens,
                digest=known.digest,
            )
            for known in self.adapters.list()
        ]

    async def resolve(self, model: str) -> Resolved:
        """Raises ModelNotFound naming it."""
        if model == self.base.name:
            return Resolved(self.base, None)
        known, weights = await self.adapters.weights(model)
        return Resolved(AdapterIdentity(name=known.name, digest=known.digest), weights)

    def submit(
        self,
        resolved: Resolved,
        prompt: list[int],
        sampling: SamplingParams,
        *,
        top_logprobs: int = 0,
        prompt_top_logprobs: int | None = None,
        streams: bool = False,
        cache_salt: str = "",
    ) -> Ticket:
        """Queue one generation. Raises BadRequest for what the model cannot take, Saturated when too many wait."""
        self._check(prompt, sampling, top_logprobs, prompt_top_logprobs)
        eos = frozenset() if sampling.ignore_eos else self._eos_ids
        return self.engine.submit(
            Sequence(
                id=secrets.token_hex(12),
                prompt=prompt,
                sampling=sampling,
                identity=resolved.identity,
                adapter=resolved.adapter,
                stop_ids=eos.union(sampling.stop_token_ids),
                max_new=min(sampling.max_tokens, self.context_tokens - len(prompt)),
                top_logprobs=top_logprobs,
                prompt_top_logprobs=prompt_top_logprobs,
                streams=streams,
                cache_salt=cache_salt,
                deadline_at_s=time.monotonic() + self.limits.request_deadline_s,
            )
        )

    def score(self, resolved: Resolved, token_ids: list[int], temperature: float, *, cache_salt: str = "") -> Ticket:
        """Queue the scoring of token ids: one prefill, nothing sampled. Raises as `submit`."""
        if len(token_ids) > self.context_tokens:
            raise BadRequest(
                f"token_ids has {len(token_ids)} entries, more than the context of {self.context_tokens}",
                param="token_ids",
                code="context_length_exceeded",
            )
        self._check_vocabulary(token_ids)
        return self.engine.submit(
            Sequence(
                id=secrets.token_hex(12),
                prompt=token_ids,
                sampling=SamplingParams(temperature=temperature),
                identity=resolved.identity,
                adapter=resolved.adapter,
                max_new=0,
                prompt_top_logprobs=0,
                cache_salt=cache_salt,
                deadline_at_s=time.monotonic() + self.limits.request_deadline_s,
            )
        )

    def _check(self, prompt: list[int], sampling: SamplingParams, top_logprobs: int, prompt_top_logprobs: int | None) -> None:
        if not prompt:
            raise BadRequest("the prompt is empty", param="token_ids")
        if len(prompt) >= self.context_tokens:
            raise BadRequest(
                f"the prompt has {len(prompt)} tokens; the context of {self.context_tokens} leaves no room for an answer",
                code="context_length_exceeded",
            )
        self._check_vocabulary(prompt)
        for name, count in (("top_logprobs", top_logprobs), ("prompt_logprobs", prompt_top_logprobs or 0)):
            if not 0 <= count <= self.limits.top_logprobs_max:
                raise BadRequest(f"{name} must be 0 to {self.limits.top_logprobs_max}", param=name)

    def _check_vocabulary(self, token_ids: list[int]) -> None:
        if min(token_ids) < 0 or max(token_ids) >= self._vocabulary:
            raise BadRequest(f"token_ids must lie in 0 … {self._vocabulary - 1}", param="token_ids")

    async def probe(self) -> None:
        """Generate one token on the base model, ahead of everything that waits. Raises EngineError when none comes in time."""
        ticket = self.engine.submit(
            Sequence(
                id="probe",
                prompt=[0],
                sampling=SamplingParams(temperature=0.0, max_tokens=1),
                identity=self.base,
                max_new=1,
                urgent=True,
                deadline_at_s=time.monotonic() + self.limits.health_deadline_s,
            )
        )
        raise_if_ended_by_us(await ticket.finished())

    @property
    def is_fresh(self) -> bool:
        """The last step is so recent that no trial is needed."""
        at_s = self.engine.generated_at_s
        return at_s is not None and time.monotonic() - at_s < self.limits.health_fresh_s


def raise_if_ended_by_us(sequence: Sequence) -> None:
    """Raise the error of a sequence that did not end by its own doing."""
    if sequence.finish_reason in _ENDED_BY_US:
        raise _ENDED_BY_US[sequence.finish_reason]()


def usage_of(sequence: Sequence) -> Usage:
    prompt, completion = len(sequence.prompt), len(sequence.token_ids)
    return Usage(prompt_tokens=prompt, completion_tokens=completion, total_tokens=prompt + completion)
