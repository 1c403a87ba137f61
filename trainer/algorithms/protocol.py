"""What an algorithm is to the orchestrator: it is shown a complete group and says what every token is told.

Knows the shape of a group, of the three loss components' streams and of what survives a restart. Refuses to know where rewards
and reference log-probabilities come from, and what the trainer does with a signal.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Generic, Protocol, TypeVar

from trainer.contracts.base import Wire


class UnknownAlgorithm(ValueError):
    """An option that the algorithm does not have; the text names it."""


class SignalsLost(Exception):
    """What a group needs besides its rewards (a teacher's log-probabilities, say) cannot be had. The text says why. The group is
    masked, counted as a failure of the infrastructure and free; it is never a reward of 0."""


class GroupUnfit(Exception):
    """The environment or its configuration lacks what the algorithm needs, and every further group would lack it too. The text
    names it and says what to do; the run ends with it."""


class Stream(Protocol):
    """One branch of a trace, flat: T tokens. `mask` is True where the policy sampled the token; `logprobs` is the sampler's
    log-probability there and 0.0 elsewhere."""

    @property
    def token_ids(self) -> Sequence[int]: ...
    @property
    def mask(self) -> Sequence[bool]: ...
    @property
    def logprobs(self) -> Sequence[float]: ...


@dataclass(frozen=True, slots=True)
class SeatView:
    """One trainable trace of a rollout. `reward` is the seat's own where several seats have their own, else the rollout's."""

    agent: str
    reward: float
    streams: tuple[Stream, ...]


@dataclass(frozen=True, slots=True)
class RolloutView:
    """A valid rollout. `completion_tokens` counts what the model said in it."""

    rollout_id: str
    reward: float
    completion_tokens: int
    seats: tuple[SeatView, ...]


@dataclass(frozen=True, slots=True)
class GroupView:
    """The valid rollouts of one task, in the order of their dispatch. Failed ones are not in it: they are no rewards of 0.
    `policy` is the engine name of the version that sampled them. `hint` is the task's own, which no rollout has seen."""

    environment: str
    task: int
    policy: str
    rollouts: tuple[RolloutView, ...]
    hint: str = ""


@dataclass(frozen=True, slots=True)
class Signals:
    """What the tokens of one stream are told. Each list has T entries, and is None where the component has no say. A weight of
    0.0 takes a token out of the component and of its count. `rl` needs `advantages` beside it, `ref_kl` needs `ref_logprobs`,
    and both take sampled tokens alone."""

    rl_weights: list[float] | None = None
    advantages: list[float] | None = None
    ce_weights: list[float] | None = None
    ref_kl_weights: list[float] | None = None
    ref_logprobs: list[float] | None = None

    @property
    def teaches(self) -> bool:
        """Whether any token is pulled anywhere: a `ce` or `ref_kl` weight, or an advantage that is not zero."""
        return any(any(stream or ()) for stream in (self.advantages, self.ce_weights, self.ref_kl_weights))


@dataclass(frozen=True, slots=True)
class RolloutSignals:
    """`seats[i][j]` belongs to stream j of seat i. `advantage` is what the page shows of the rollout, None for an algorithm
    without advantages."""

    advantage: float | None
    seats: tuple[tuple[Signals, ...], ...]

    @property
    def teaches(self) -> bool:
        return any(signals.teaches for seat in self.seats for signals in seat)


class Reference(Protocol):
    """Somebody who can tell how likely tokens are: a teacher, or the policy itself."""

    async def logprobs(self, token_ids: Sequence[int], *, policy: str) -> list[float]:
        """One log-probability per token, 0.0 for the first, which nothing precedes. `policy` is the engine name of the version
        that sampled. Raises SignalsLost."""
        ...

    def spell(self, text: str) -> list[int]:
        """The text in the tokens that it reads. Special tokens may be written out; none is added."""
        ...


OptionsT = TypeVar("OptionsT", bound=Wire)


class Algorithm(ABC, Generic[OptionsT]):
    """One per environment of a run. `valid_min` is how many valid rollouts a group needs for its scores to mean anything;
    `needs_reference` says that `reference` must be given."""

    id: ClassVar[str]
    valid_min: ClassVar[int] = 1
    needs_reference: ClassVar[bool] = False

    def __init__(self, options: OptionsT, reference: Reference | None = None) -> None:
        self._options = options
        self._reference = reference

    @abstractmethod
    async def score(self, group: GroupView) -> list[RolloutSignals]:
        """One entry per rollout of the group, in order. May wait for a reference. Raises SignalsLost and GroupUnfit."""

    def state(self) -> dict[str, float]:
        """What the next group's signals depend on besides the group. Written with every step, so that a resumed run goes on
        from it."""
        return {}

    def restore(self, state: Mapping[str, float]) -> None:
        """Take over what `state` said when the newest step was cut."""


def on_sampled(stream: Stream, value: float) -> list[float]:
    """[T]: `value` where the policy sampled, 0.0 elsewhere."""
    return [value if sampled else 0.0 for sampled in stream.mask]


def policy_gradient(stream: Stream, advantage: float) -> Signals:
    """The `rl` component on every sampled token, all with one advantage."""
    return Signals(rl_weights=on_sampled(stream, 1.0), advantages=on_sampled(stream, advantage))


def per_stream(rollout: RolloutView, advantage: float | None, signals: Callable[[Stream], Signals]) -> RolloutSignals:
    """The same rule for every stream of every seat."""
    return RolloutSignals(advantage, tuple(tuple(signals(stream) for stream in seat.streams) for seat in rollout.seats))
