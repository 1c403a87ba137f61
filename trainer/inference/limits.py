"""Every limit of an engine, in one frozen object. Knows numbers; refuses to know where they come from."""

from dataclasses import dataclass

MIB = 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineLimits:
    """Limits of one engine process. Nothing in the engine grows beyond them."""

    sequences_max: int = 128
    """Sequences that run in one step."""
    waiting_max: int = 1024
    """Requests that may wait; one more is answered 503."""
    step_tokens_max: int = 2048
    """Tokens computed in one step. Bounds how long a long prompt delays everybody's next token."""
    block_tokens: int = 16
    kv_cache_bytes: int = 256 * MIB
    adapter_slots: int = 32
    """Adapters that run in one step, for each rank class."""
    adapter_ram_bytes: int = 512 * MIB
    adapters_registered_max: int = 4096
    rank_max: int = 64
    step_interval_s: float = 0.0
    """Least time between the starts of two steps while the batch is less than half full. A step of few rows costs nearly what
    one of many costs: on a shared machine, waiting a little for company leaves the cores to those who make the requests."""
    request_deadline_s: float = 600.0
    patience_s: float = 2.0
    """A request that waited longer is passed by nobody, so that a stream of requests for placed adapters cannot starve it."""
    health_fresh_s: float = 20.0
    """An engine whose last step is not older is taken for healthy without a trial: a step on busy cores takes seconds."""
    health_deadline_s: float = 10.0
    body_bytes_max: int = 8 * MIB
    stop_strings_max: int = 16
    top_logprobs_max: int = 20

    def __post_init__(self) -> None:
        assert self.step_tokens_max >= self.sequences_max, "every running sequence gets at least one token a step"
        assert self.block_tokens > 0 and self.adapter_slots > 0
