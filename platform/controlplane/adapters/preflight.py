"""Whether the engines of a pool can serve an adapter, by its `adapter_config.json`. Pure: limits and configuration in, problems
out.

Asked before a run starts, so that nobody pays for an adapter that cannot be served, and again before a deployment.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from controlplane.pools.limits import PoolLimits

NEEDS_MORE = {
    "modules_to_save": "keeps whole copies of modules beside the factors",
    "trainable_token_indices": "trains rows of the embedding",
    "rank_pattern": "has another rank for some modules",
    "alpha_pattern": "has another scale for some modules",
    "use_dora": "scales directions (DoRA)",
    "use_rslora": "is scaled by the square root of its rank",
    "lora_bias": "has biases",
    "fan_in_fan_out": "stores its factors transposed",
}
"""Fields of PEFT that, when set, make an adapter something that engines load no factors for."""
WHOLE_VOCABULARY = frozenset({"lm_head", "embed_tokens", "unembed", "wte", "embed_out"})
FUSED = frozenset({"qkv_proj", "query_key_value", "c_attn", "gate_up_proj"})


def servable_problems(limits: PoolLimits, adapter: Mapping[str, Any]) -> list[str]:
    """Every reason against it, each naming the module or field and the limit; empty when it can be served."""
    return [*_rank(limits, adapter), *_modules(limits, adapter), *_features(adapter)]


def _rank(limits: PoolLimits, adapter: Mapping[str, Any]) -> Iterator[str]:
    if adapter["r"] > limits.rank_max:
        yield f"rank {adapter['r']} is above {limits.rank_max}, the highest that {limits.base_model} is served with"


def _modules(limits: PoolLimits, adapter: Mapping[str, Any]) -> Iterator[str]:
    wanted = adapter.get("target_modules") or []
    if isinstance(wanted, str):
        yield f"target_modules {wanted!r} is a pattern; name the modules one by one"
        return
    allowed = ", ".join(limits.target_modules)
    for module in sorted(set(wanted) - set(limits.target_modules)):
        yield f"{module} {_why(module)} on {limits.base_model}; its engines take {allowed}"
    if not wanted:
        yield f"target_modules is empty; {limits.base_model} takes {allowed}"


def _why(module: str) -> str:
    if module.rpartition(".")[2] in WHOLE_VOCABULARY:
        return "is as wide as the vocabulary, for which engines keep no adapter slot: it cannot be adapted"
    if module.rpartition(".")[2] in FUSED:
        return "fuses projections that are adapted one by one: it cannot be adapted"
    return "cannot be adapted"


def _features(adapter: Mapping[str, Any]) -> Iterator[str]:
    for field, meaning in NEEDS_MORE.items():
        if adapter.get(field):
            yield f"{field} is set: an adapter that {meaning} is not served; leave it out"
    if adapter.get("bias", "none") != "none":
        yield f"bias {adapter['bias']!r} is set: an adapter that has biases is not served; leave it out"
    if adapter.get("peft_type", "LORA") != "LORA":
        yield f"peft_type {adapter['peft_type']!r} is not served; only LORA is"
