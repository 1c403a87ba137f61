"""Whether the engines of a base model can serve an adapter of a given shape. Pure: catalogue entry in, problems out.

Asked before a run starts, so that nobody pays for an adapter that cannot be served, and again before a deployment.
"""

from collections.abc import Iterable

from trainer.contracts.catalogue import BaseModelSpec


def servable_problems(spec: BaseModelSpec, *, lora_rank: int, target_modules: Iterable[str]) -> list[str]:
    """Every reason against it, each naming the limit; empty when it can be served."""
    problems = []
    if lora_rank > spec.rank_max:
        problems.append(f"rank {lora_rank} is above {spec.rank_max}, the highest that {spec.id} is served with")
    foreign = sorted(set(target_modules) - set(spec.target_modules))
    if foreign:
        allowed = ", ".join(spec.target_modules)
        problems.append(f"{', '.join(foreign)} cannot be adapted on {spec.id}; its engines take {allowed}")
    return problems
