"""The gradient of a step: the same however it is split into packs, and equal to a slow pass over one sample at a time."""

import random

import numpy as np
import pytest
import torch
from peft import LoraConfig, get_peft_model
from transformers import LlamaForCausalLM

from tests.numerics.recorded import WEIGHTS, batch, new_pool, recorded, run_id, sample, spec
from trainer.contracts.adapters import LoraSpec
from trainer.contracts.samples import TrainSample
from trainer.contracts.training import LossSpec
from trainer.core.adapters import Adapter
from trainer.core.errors import NotServable
from trainer.core.layout import lay_out
from trainer.core.pool import Pool
from trainer.core.versions import load_weights, weights_bytes

RUN = run_id("grad")


def gradient(pool: Pool, given) -> torch.Tensor:
    job = pool.prepare(given)
    pool.train([job])
    found = pool.tenant(given.run_id).adapter.grads_P.clone()
    job.restart()
    return found


def moved_pool(root, dtype=torch.float64, **options) -> Pool:
    """A pool with a run whose B is not zero, so that every parameter has a gradient."""
    pool = new_pool(root, dtype=dtype, **options)
    pool.open(RUN, spec())
    params = pool.tenant(RUN).adapter.params_P
    params.add_(0.05 * torch.randn(params.shape, generator=torch.Generator().manual_seed(9), dtype=dtype))
    return pool


@pytest.mark.parametrize("pack_tokens", [1, 40, 97, 10_000])
def test_any_split_into_packs_gives_the_same_gradient(tmp_path, pack_tokens):
    (given,) = recorded(RUN, 1, seed=3, count=9)
    for dtype, bound in ((torch.float64, 1e-12), (torch.float32, 1e-5)):
        whole = gradient(moved_pool(tmp_path / f"whole {dtype}", dtype, pack_tokens=1_000_000), given)
        split = gradient(moved_pool(tmp_path / f"split {dtype}", dtype, pack_tokens=pack_tokens), given)
        assert (whole - split).abs().max() < bound * max(1.0, whole.abs().max().item())


def test_the_order_of_samples_does_not_matter(tmp_path):
    (given,) = recorded(RUN, 1, seed=3, count=9)
    pool = moved_pool(tmp_path)
    turned = given.model_copy(update={"samples": given.samples[::-1]})
    assert (gradient(pool, given) - gradient(pool, turned)).abs().max() < 1e-12


def test_other_samples_do_not_change_a_samples_gradient(tmp_path):
    """Gradients of disjoint batches add up: no sample sees another, and the denominator comes from the header."""
    rng = random.Random(0)
    left, right = ([sample(rng, rng.randint(5, 40)) for _ in range(4)] for _ in range(2))
    pool = moved_pool(tmp_path)
    header = {"n_rl": 500, "n_ce": 100}
    both = batch(RUN, 1, left + right).model_copy(update=header)
    parts = [batch(RUN, 1, part).model_copy(update=header) for part in (left, right)]
    assert (gradient(pool, both) - sum(gradient(pool, part) for part in parts)).abs().max() < 1e-12


@pytest.mark.parametrize(("dtype", "bound"), [(torch.float64, 1e-12), (torch.float32, 1e-5)])
def test_a_beginning_that_is_computed_once_gives_the_gradient_of_samples_alone(tmp_path, dtype, bound):
    rng = random.Random(1)
    prompts = [[rng.randrange(256) for _ in range(length)] for length in (20, 33)]
    answers = [sample(rng, rng.randint(2, 12)) for _ in range(10)]
    given = batch(RUN, 1, [_behind(prompts[index % 2 if index < 2 else index // 6], one) for index, one in enumerate(answers)])
    tokens = sum(len(one.token_ids) for one in given.samples)
    assert sum(lay_out([np.array(one.token_ids) for one in given.samples], [tokens]).group_rows) < tokens - 100
    shared = gradient(moved_pool(tmp_path / "shared", dtype, pack_tokens=10_000), given)
    alone = gradient(moved_pool(tmp_path / "alone", dtype, pack_tokens=1), given)
    assert (shared - alone).abs().max() < bound * alone.abs().max()


def _behind(prompt: list[int], one: TrainSample) -> TrainSample:
    """The sample with `prompt` before it, of which nothing is trained."""
    none = [0.0] * len(prompt)
    return one.model_copy(
        update={
            "token_ids": prompt + one.token_ids,
            "mask": [False] * len(prompt) + one.mask,
            "temperatures": [1.0] * len(prompt) + one.temperatures,
            "policy_versions": [0] * len(prompt) + one.policy_versions,
            **{name: none + getattr(one, name) for name in ("logprobs", "rl_weights", "advantages", "ce_weights")},
        }
    )


@pytest.mark.parametrize("kind", ["dppo", "ppo_clip", "ipo", "reinforce"])
def test_equals_a_slow_pass_through_peft(tmp_path, kind):
    """One sample at a time through transformers and PEFT, loss written out as in the table."""
    given = recorded(RUN, 1, seed=4, count=4, longest=30)[0]
    pool = new_pool(tmp_path, dtype=torch.float64)
    pool.open(RUN, spec(loss=LossSpec(kind=kind)))
    adapter = pool.tenant(RUN).adapter
    adapter.params_P.add_(0.05 * torch.randn(adapter.params_P.shape, generator=torch.Generator().manual_seed(9)))
    slow = _peft_gradient(adapter, given, kind)
    fast = gradient(pool, given)
    # transformers computes norms and rotary angles in float32 whatever the model's type: the bound is its own.
    assert (fast - slow).abs().max() < 1e-5 * slow.abs().max()


def _peft_gradient(adapter, given, kind) -> torch.Tensor:
    base = LlamaForCausalLM.from_pretrained(WEIGHTS, dtype=torch.float64)
    config = LoraConfig(r=adapter.spec.rank, lora_alpha=adapter.spec.alpha, target_modules=list(adapter.spec.target_modules))
    model = get_peft_model(base, config).double()
    weights = {name: parameter for name, parameter in model.named_parameters() if "lora_" in name}
    path = "base_model.model.model.layers.{}.{}.{}.lora_{}.default.weight"
    ordered = []
    for shape, factors in adapter.named_tensors():
        block = "self_attn" if shape.name in {"q_proj", "k_proj", "v_proj", "o_proj"} else "mlp"
        for letter, value in (("A", factors.a), ("B", factors.b)):
            parameter = weights[path.format(shape.layer, block, shape.name, letter)]
            parameter.data.copy_(value.detach())
            ordered.append(parameter)
    loss = sum(_slow_loss(model, one, given, kind) for one in given.samples)
    return torch.cat([g.flatten() for g in torch.autograd.grad(loss, ordered)])


def _slow_loss(model, one, given, kind):
    logits = model(torch.tensor([one.token_ids])).logits[0]
    total = 0.0
    for t in range(1, len(one.token_ids)):
        pi = (logits[t - 1] / one.temperatures[t]).log_softmax(-1)[one.token_ids[t]]
        if one.rl_weights[t]:
            total = total + one.rl_weights[t] * _slow_rl(kind, pi, one.logprobs[t], one.advantages[t]) / given.n_rl
        if one.ce_weights[t]:
            total = total - one.ce_weights[t] * pi / given.n_ce
    return total


def _slow_rl(kind, pi, mu, advantage):
    d = (pi - mu).clamp(-20, 20)
    delta = (pi.exp() - torch.tensor(mu).exp()).item()
    if kind == "reinforce":
        return -advantage * pi
    if kind == "ppo_clip":
        return -torch.minimum(d.exp() * advantage, d.exp().clamp(0.8, 1.28) * advantage)
    invalid = abs(delta) > 0.1 if kind == "ipo" else (advantage > 0 and delta > 0.2) or (advantage < 0 and delta < -0.2)
    return -(0.0 if invalid else 1.0) * advantage * d.exp() + 1e-3 * d**2


def test_an_exported_file_of_another_shape_is_rejected(tmp_path):
    pool = moved_pool(tmp_path, dtype=torch.float32)
    data = weights_bytes(pool.tenant(RUN).adapter)
    narrow = Adapter(LoraSpec(target_modules=("q_proj",)), pool.model.targets, torch.float32)
    low = Adapter(LoraSpec(rank=4), pool.model.targets, torch.float32)
    for other in (narrow, low):
        with pytest.raises(NotServable):
            load_weights(other, data)
        assert not other.params_P.any()
