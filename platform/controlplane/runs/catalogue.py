"""Base models as the API lists them: the catalogue's entries that a pool runs, their prices from the price book's source."""

from typing import Any

from controlplane.pools.limits import limits_of
from controlplane.pools.models import Pool
from controlplane.pools.queries import live_count, pools
from controlplane.runs.schemas import ModelAnswer
from trainer.contracts.catalogue import load_catalogue


def trainable_models() -> list[ModelAnswer]:
    return [_render(pool) for pool in pools() if pool.base_model in load_catalogue()]


def _render(pool: Pool) -> ModelAnswer:
    spec = load_catalogue()[pool.base_model]
    limits = limits_of(pool)
    prices = spec.prices_usd_per_mtok
    return ModelAnswer(
        name=spec.id,
        at_capacity=live_count("run", pool=pool) >= pool.run_slots,
        training_price_per_mtok=float(prices.training),
        inference_input_price_per_mtok=float(prices.input),
        inference_output_price_per_mtok=float(prices.output),
        display_name=spec.display_name,
        description=spec.description,
        context_tokens=limits.context_tokens,
        rank_max=limits.rank_max,
        target_modules=list(limits.target_modules),
        engine=limits.engine,
    )


def available_models() -> list[dict[str, Any]]:
    """The shape of the public client's other table: a model and the clusters that have it."""
    return [
        {"name": pool.base_model, "clusters": [{"clusterId": pool.id, "clusterName": pool.name, "gpuType": "shared"}]}
        for pool in pools()
    ]
