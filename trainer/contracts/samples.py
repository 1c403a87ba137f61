"""What the trainer eats: flat token streams (one branch of a trace each) and the batch of one run's step.

Source of the streams and their meaning: docs/algorithms.md, "Wire". The trainer sees these and never an algorithm's name.
"""

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from trainer.contracts.base import PublicId, Sha256, Wire

TOKENS_MAX = 65_536
SAMPLES_MAX = 16_384

LossKind = Literal["dppo", "ppo_clip", "ipo", "reinforce"]


class ArtifactRef(Wire):
    """A large tensor that travels beside the sample, by digest (routing data, images)."""

    digest: Sha256
    size_bytes: Annotated[int, Field(ge=0)]


class TrainSample(Wire):
    """One branch of a trace. Every list has length T, the number of tokens.

    `mask[t]` is True where the policy sampled token t; `logprobs[t]` is the sampler's log-probability there and 0.0 elsewhere.
    A weight of 0.0 takes a token out of that loss component.
    """

    token_ids: list[int]
    mask: list[bool]
    logprobs: list[float]
    temperatures: list[float]
    policy_versions: list[int]
    rl_weights: list[float]
    advantages: list[float] | None = None
    ce_weights: list[float] | None = None
    ref_kl_weights: list[float] | None = None
    ref_logprobs: list[float] | None = None
    rollout_id: str = ""
    group_id: str = ""
    environment: str = ""
    routed_experts: ArtifactRef | None = None
    multimodal: ArtifactRef | None = None
    """Files of the run's folder `rollout-artifacts`, whose names are the digests. A trainer whose base model has no use for one
    refuses the batch."""

    @model_validator(mode="after")
    def _aligned(self) -> Self:
        size = len(self.token_ids)
        if not 2 <= size <= TOKENS_MAX:
            raise ValueError(f"token_ids has {size} entries; 2 to {TOKENS_MAX} are allowed")
        for name in (
            "mask",
            "logprobs",
            "temperatures",
            "policy_versions",
            "rl_weights",
            "advantages",
            "ce_weights",
            "ref_kl_weights",
            "ref_logprobs",
        ):
            stream = getattr(self, name)
            if stream is not None and len(stream) != size:
                raise ValueError(f"{name} has {len(stream)} entries, token_ids has {size}")
        if self.mask[0]:
            raise ValueError("mask[0] is True, but nothing precedes the first token that could have sampled it")
        return self


class TrainBatch(Wire):
    """All samples of one optimizer step of one run. The N_* are counted over the whole batch, so that any split into packs
    gives the same gradient. Idempotent by (run_id, step): `step` s takes the adapter from version s-1 to version s."""

    run_id: PublicId
    step: Annotated[int, Field(ge=1)]
    n_rl: Annotated[int, Field(ge=0)] = 0
    n_ce: Annotated[int, Field(ge=0)] = 0
    n_ref_kl: Annotated[int, Field(ge=0)] = 0
    samples: Annotated[list[TrainSample], Field(min_length=1, max_length=SAMPLES_MAX)]
