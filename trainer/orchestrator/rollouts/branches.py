"""Calls of one trace to branches: flat token streams with the sampled positions marked.

Knows how a conversation grows by exact token prefix. Refuses to tokenize: a turn whose prompt does not continue what was
sampled (a template that drops earlier thinking, a rewritten history) begins a new branch and is counted, never repaired.
A sampled token is marked in the branch of the call that sampled it and nowhere else, so that no token trains twice.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field

from trainer.contracts.samples import TOKENS_MAX, ArtifactRef
from trainer.orchestrator.proxy.sessions import Call


@dataclass(slots=True)
class Branch:
    """Lists of equal length T: `mask` is True where the policy sampled the token, `logprobs` is 0.0 elsewhere."""

    token_ids: list[int] = field(default_factory=list)
    mask: list[bool] = field(default_factory=list)
    logprobs: list[float] = field(default_factory=list)
    temperatures: list[float] = field(default_factory=list)
    routed_experts: ArtifactRef | None = None
    multimodal: ArtifactRef | None = None
    """Of the last call, whose prompt is all that was before: they belong to the whole stream."""

    def extends_to(self, prompt_ids: tuple[int, ...]) -> bool:
        size = len(self.token_ids)
        return size <= len(prompt_ids) and list(prompt_ids[:size]) == self.token_ids

    def append(self, call: Call) -> None:
        observed = call.prompt_ids[len(self.token_ids) :]
        self._extend(observed, [0.0] * len(observed), call.temperature, sampled=False)
        self._extend(call.token_ids, call.logprobs, call.temperature, sampled=True)
        self.routed_experts, self.multimodal = call.routed_experts, call.multimodal

    def _extend(self, tokens: Iterable[int], logprobs: Iterable[float], temperature: float, *, sampled: bool) -> None:
        before = len(self.token_ids)
        self.token_ids.extend(tokens)
        self.logprobs.extend(logprobs)
        added = len(self.token_ids) - before
        self.mask.extend([sampled] * added)
        self.temperatures.extend([temperature] * added)


@dataclass(frozen=True, slots=True)
class Place:
    """Where a call's tokens are: in branch number `branch`, what is new of its prompt from token `start` on, its own behind."""

    branch: int
    start: int


@dataclass(frozen=True, slots=True)
class Branches:
    """`broken` counts the calls whose prompt diverged from every earlier stream of the trace. `places` has one per call."""

    branches: list[Branch]
    broken: int
    places: list[Place]


def merge_calls(calls: Iterable[Call]) -> Branches:
    """Branches of one trace from its calls in order."""
    branches: list[Branch] = []
    places: list[Place] = []
    broken = 0
    for call in calls:
        branch = _longest_prefix(branches, call.prompt_ids)
        if branch is None:
            broken += bool(branches) and not _is_fork(branches, call.prompt_ids)
            branch = Branch()
            branches.append(branch)
        # By identity: two forks may hold equal tokens for a while.
        number = next(index for index, known in enumerate(branches) if known is branch)
        places.append(Place(number, len(branch.token_ids)))
        branch.append(call)
    return Branches(branches, broken, places)


def fits(branch: Branch) -> bool:
    """Whether a branch can be trained on: something before what was sampled, something sampled, and not too long."""
    return 2 <= len(branch.token_ids) <= TOKENS_MAX and any(branch.mask) and not branch.mask[0]


def _longest_prefix(branches: list[Branch], prompt_ids: tuple[int, ...]) -> Branch | None:
    fitting = [branch for branch in branches if branch.extends_to(prompt_ids)]
    return max(fitting, key=lambda branch: len(branch.token_ids), default=None)


def _is_fork(branches: list[Branch], prompt_ids: tuple[int, ...]) -> bool:
    """Whether the prompt leaves the stream that it shares most with at a token that nobody sampled: an earlier point asked again,
    another message behind a reply that stands as it was, a sub-agent's conversation. In a broken history a reply has changed."""
    nearest = max(branches, key=lambda branch: _shared(branch, prompt_ids))
    shared = _shared(nearest, prompt_ids)
    return shared == len(prompt_ids) or not nearest.mask[shared]


def _shared(branch: Branch, prompt_ids: tuple[int, ...]) -> int:
    """Tokens that both begin with."""
    pairs = enumerate(zip(branch.token_ids, prompt_ids, strict=False))
    return next((place for place, (one, other) in pairs if one != other), min(len(branch.token_ids), len(prompt_ids)))
