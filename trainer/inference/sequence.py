"""One request inside the engine: what was asked, what came out, and in which of three states it is.

Written by the engine thread alone; the event loop reads it (lists only grow, `state` changes last).
"""

import time
from dataclasses import dataclass, field
from enum import Enum, StrEnum
from typing import Protocol

import numpy as np

from trainer.contracts.generation import AdapterIdentity, SamplingParams
from trainer.inference.sampling import stream_seed


class SequenceState(Enum):
    WAITING = "waiting"
    """Holds nothing yet."""
    RUNNING = "running"
    """Holds a lane, all the KV blocks it can ever need, and its adapter's slot."""
    FINISHED = "finished"
    """Holds nothing any more. Terminal."""


class FinishReason(StrEnum):
    STOP = "stop"
    """It sampled an end token."""
    LENGTH = "length"
    """It reached max_tokens, which the context bounds, or its prompt is scored and nothing was to be sampled."""
    ABORT = "abort"
    """The client went away, or found what it wanted (a stop string)."""
    DEADLINE = "deadline"
    NON_FINITE = "non_finite"
    """Its logits were no numbers. Its neighbours are not affected."""
    ENGINE = "engine"
    """The engine stopped under it."""


TopLogprobs = list[tuple[int, float]]


class Adapter(Protocol):
    """A verified adapter version, as its backend holds it. `digest` is that of its weights file."""

    @property
    def digest(self) -> str: ...
    @property
    def rank(self) -> int: ...
    @property
    def size_bytes(self) -> int:
        """Memory that holding it takes."""


@dataclass(slots=True, eq=False, kw_only=True)
class Sequence:
    """`max_new` is max_tokens cut to the context; 0 only scores the prompt."""

    id: str
    prompt: list[int]
    sampling: SamplingParams
    identity: AdapterIdentity
    adapter: Adapter | None = None
    stop_ids: frozenset[int] = frozenset()
    max_new: int
    top_logprobs: int = 0
    prompt_top_logprobs: int | None = None
    """None: the prompt is not scored."""
    streams: bool = False
    """Progress is wanted for each token, not at the end only."""
    urgent: bool = False
    """Goes to the head of the queue: the engine's own health probe."""
    cache_salt: str = ""
    """Separates tenants in a prefix cache, where the backend has one."""
    deadline_at_s: float
    """On the monotonic clock."""

    state: SequenceState = SequenceState.WAITING
    finish_reason: FinishReason | None = None
    token_ids: list[int] = field(default_factory=list)
    logprobs: list[float] = field(default_factory=list)
    tops: list[TopLogprobs] = field(default_factory=list)
    """Per sampled token, where `top_logprobs` asks for it."""
    prompt_logprobs: list[float] = field(default_factory=list)
    """Of prompt tokens 1, 2, …: nothing precedes token 0."""
    prompt_tops: list[TopLogprobs] = field(default_factory=list)

    lane: int = -1
    blocks: list[int] = field(default_factory=list)
    adapter_key: int = 0
    stream: np.uint64 = field(init=False)
    """Start of its random numbers."""
    submitted_at_s: float = field(default_factory=time.monotonic)
    first_token_at_s: float | None = None

    def __post_init__(self) -> None:
        self.stream = stream_seed(self.sampling.seed)

    @property
    def is_finished(self) -> bool:
        return self.state is SequenceState.FINISHED

    @property
    def truncates(self) -> bool:
        return self.sampling.top_p < 1 or self.sampling.top_k > 0 or self.sampling.min_p > 0

    def scored(self) -> FinishReason:
        """How a sequence ends of which every prompt token has its log-probability and nothing is sampled."""
        return FinishReason.LENGTH if np.isfinite(self.prompt_logprobs).all() else FinishReason.NON_FINITE

    def accept(self, token_id: int, logprob: float) -> FinishReason | None:
        """Take one sampled token; the reason to stop, if there is one now. A number that is not finite is not taken."""
        if not -np.inf < logprob < np.inf:
            return FinishReason.NON_FINITE
        self.token_ids.append(token_id)
        self.logprobs.append(logprob)
        if self.first_token_at_s is None:
            self.first_token_at_s = time.monotonic()
        if token_id in self.stop_ids:
            return FinishReason.STOP
        return FinishReason.LENGTH if len(self.token_ids) >= self.max_new else None
