"""What the engines of a pool can serve: the base model's own limits, narrowed by what the pool's machines are set to.

Knows the catalogue and the pool's columns. Refuses to know who asks: run preflight, deployments and `/models` read the same.
"""

from dataclasses import dataclass

from controlplane.pools.models import Engine, Pool
from trainer.contracts.catalogue import load_catalogue

SCORES_AT: dict[str, float | None] = {Engine.TORCH: None, Engine.VLLM: 1.0}
"""The temperature at which an engine scores given tokens; None for any."""


@dataclass(frozen=True)
class PoolLimits:
    """`scores_at` None scores at any temperature."""

    base_model: str
    engine: str
    rank_max: int
    context_tokens: int
    target_modules: tuple[str, ...]
    scores_at: float | None


def limits_of(pool: Pool) -> PoolLimits:
    spec = load_catalogue()[pool.base_model]
    taken = [name for name in spec.target_modules if not pool.target_modules or name in pool.target_modules]
    return PoolLimits(
        base_model=spec.id,
        engine=pool.engine,
        rank_max=min(spec.rank_max, pool.rank_max or spec.rank_max),
        context_tokens=min(spec.context_tokens, pool.context_tokens or spec.context_tokens),
        target_modules=tuple(taken),
        scores_at=SCORES_AT[pool.engine],
    )
