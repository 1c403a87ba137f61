"""Promise: what the engines cannot serve is refused before anybody pays, naming module and limit (CASES 31, 32)."""

import json

import pytest

from controlplane.adapters.preflight import servable_problems
from controlplane.pools.limits import PoolLimits, limits_of
from controlplane.pools.models import Engine, Pool
from tests.fixtures.places import REPOSITORY
from trainer.contracts.catalogue import load_catalogue

FOLDER = REPOSITORY / "tests" / "data" / "adapter_configs"
TINY = limits_of(Pool(name="p", base_model="tiny"))
NAMED = {
    "unembed": "lm_head is as wide as the vocabulary",
    "embed": "embed_tokens is as wide as the vocabulary",
    "fused_qkv": "qkv_proj fuses projections",
    "modules_to_save": "modules_to_save is set",
    "rank": f"rank 128 is above {TINY.rank_max}",
    "pattern": "target_modules 'all-linear' is a pattern",
    "dora": "use_dora is set",
    "rank_pattern": "rank_pattern is set",
    "bias": "bias 'all' is set",
    "no_module": "target_modules is empty",
    "another_method": "peft_type 'IA3' is not served",
}
"""What each rejected configuration is told."""


def configs(kind: str):
    return [pytest.param(json.loads(path.read_text()), id=path.stem) for path in sorted((FOLDER / kind).glob("*.json"))]


@pytest.mark.parametrize("adapter", configs("accept"))
def test_what_engines_load_is_not_refused(adapter):
    assert servable_problems(TINY, adapter) == []


@pytest.mark.parametrize("name", [path.stem for path in sorted((FOLDER / "reject").glob("*.json"))])
def test_what_no_engine_loads_is_named(name):
    (problem,) = servable_problems(TINY, json.loads((FOLDER / "reject" / f"{name}.json").read_text()))
    assert NAMED[name] in problem


def test_a_pool_may_be_set_below_its_base_model():
    spec = load_catalogue()["tiny"]
    narrow = limits_of(Pool(base_model="tiny", engine=Engine.VLLM, rank_max=4, context_tokens=64, target_modules=["q_proj"]))
    assert narrow == PoolLimits("tiny", "vllm", 4, 64, ("q_proj",), 1.0)
    wide = limits_of(Pool(base_model="tiny", rank_max=10**6, context_tokens=10**6))
    assert (wide.rank_max, wide.context_tokens, wide.target_modules) == (spec.rank_max, spec.context_tokens, spec.target_modules)
    (problem,) = servable_problems(narrow, {"r": 4, "target_modules": ["q_proj", "v_proj"]})
    assert problem == "v_proj cannot be adapted on tiny; its engines take q_proj"
