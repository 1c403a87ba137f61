"""Promise: what the engines cannot serve is refused before anybody pays, naming the limit (CASES 31, 32)."""

import pytest

from controlplane.adapters.preflight import servable_problems
from trainer.contracts.catalogue import BaseModelSpec, ModelPrices

SPEC = BaseModelSpec(
    id="tiny",
    display_name="Tiny",
    description="",
    license="Apache-2.0",
    weights="tiny",
    tokenizer="tiny",
    renderer={"name": "default"},
    context_tokens=2048,
    target_modules=("q_proj", "v_proj"),
    rank_max=16,
    prices_usd_per_mtok=ModelPrices(input=1, output=1, training=1),
)


@pytest.mark.parametrize("rank", [1, 16])
def test_within_the_limits_nothing_is_said(rank):
    assert servable_problems(SPEC, lora_rank=rank, target_modules=["q_proj"]) == []


def test_a_rank_above_the_limit_names_both():
    (problem,) = servable_problems(SPEC, lora_rank=64, target_modules=[])
    assert "rank 64" in problem and "16" in problem


@pytest.mark.parametrize("module", ["lm_head", "embed_tokens", "qkv_proj"])
def test_a_module_that_engines_do_not_take_is_named(module):
    (problem,) = servable_problems(SPEC, lora_rank=8, target_modules=["q_proj", module])
    assert module in problem and "q_proj, v_proj" in problem
