"""What a pool may be told to save memory with gives the gradients that it would have given otherwise."""

import pytest
import torch
from torch.nn import functional
from torch.utils._python_dispatch import TorchDispatchMode

from tests.numerics.recorded import WEIGHTS, new_pool, recorded, run_id, spec, step_together
from trainer.contracts.adapters import LoraSpec
from trainer.core import token_scores
from trainer.core.adapter_stack import AdapterStack
from trainer.core.adapters import Adapter
from trainer.core.layout import lay_out
from trainer.core.llama import Llama
from trainer.core.pool import Pool
from trainer.core.token_scores import TokenScores

RUNS = [run_id("one"), run_id("two")]
SPECS = [spec(), spec(lora=LoraSpec(rank=4, alpha=8, target_modules=("q_proj", "down_proj")), seed=3)]
BATCHES = [recorded(run, 1, seed=seed, count=8)[0] for seed, run in enumerate(RUNS)]


def moved(pool: Pool) -> Pool:
    """With two runs whose B is not zero, so that every parameter has a gradient."""
    for seed, (run, run_spec) in enumerate(zip(RUNS, SPECS, strict=True)):
        pool.open(run, run_spec)
        params = pool.tenant(run).adapter.params_P
        params.add_(0.05 * torch.randn(params.shape, generator=torch.Generator().manual_seed(seed)))
    return pool


def gradients(pool: Pool) -> list[torch.Tensor]:
    pool.train([pool.prepare(one) for one in BATCHES])
    return [pool.tenant(run).adapter.grads_P for run in RUNS]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_recomputed_activations_give_the_same_bits(tmp_path, dtype):
    kept = gradients(moved(new_pool(tmp_path / "kept", dtype=dtype)))
    computed_again = gradients(moved(new_pool(tmp_path / "again", dtype=dtype, recompute=True)))
    assert all(torch.equal(*pair) for pair in zip(kept, computed_again, strict=True))
    assert all(grads.any() for grads in kept)


class _LinearCalls(TorchDispatchMode):
    """Counts products with weights: recomputing shows in them, whatever memory the machine has."""

    count = 0

    def __torch_dispatch__(self, function, types, arguments=(), options=None):
        self.count += function in {torch.ops.aten.mm.default, torch.ops.aten.addmm.default}
        return function(*arguments, **(options or {}))


def test_recomputing_computes_layers_twice(tmp_path):
    counts = []
    for recompute in (False, True):
        pool = moved(new_pool(tmp_path / str(recompute), recompute=recompute))
        with _LinearCalls() as calls:
            gradients(pool)
        counts.append(calls.count)
    assert counts[1] > counts[0] + 4 * pool.model.shape.layers - 1


def test_a_bfloat16_base_keeps_adapters_in_float32_and_nearly_their_gradients(tmp_path):
    """The direction agrees to 0.995 and the length to 3 %: bfloat16 has 8 bits, and a layer rounds a dozen times."""
    exact = gradients(moved(new_pool(tmp_path / "wide")))
    narrow = moved(new_pool(tmp_path / "narrow", dtype=torch.bfloat16))
    for found, wanted in zip(gradients(narrow), exact, strict=True):
        assert found.dtype == torch.float32
        assert functional.cosine_similarity(found, wanted, dim=0) > 0.995
        assert found.norm() / wanted.norm() == pytest.approx(1.0, abs=0.03)
    pool = moved(new_pool(tmp_path / "steps", dtype=torch.bfloat16))
    step_together(pool, BATCHES)
    tenant = pool.tenant(RUNS[0])
    assert {t.dtype for t in (tenant.adapter.params_P, tenant.optimizer.first_P, tenant.optimizer.second_P)} == {torch.float32}
    assert pool.model.digest_now() == new_pool(tmp_path / "other").base_digest  # stored in bfloat16: held exactly


def test_the_head_in_chunks_gives_the_gradient_of_the_whole_table(tmp_path, monkeypatch):
    whole = gradients(moved(new_pool(tmp_path / "whole", dtype=torch.float64)))
    monkeypatch.setattr(token_scores, "CHUNK_TOKENS_MIN", 7)
    monkeypatch.setattr(token_scores, "CHUNK_ELEMENTS", 1)
    largest = []
    score = TokenScores.of
    monkeypatch.setattr(TokenScores, "of", lambda normed, *rest: largest.append(len(normed)) or score(normed, *rest))
    chunked = gradients(moved(new_pool(tmp_path / "chunked", dtype=torch.float64)))
    assert max(largest) == 7 and len(largest) > 10
    assert all((a - b).abs().max() < 1e-12 for a, b in zip(whole, chunked, strict=True))


def test_a_pass_lies_on_its_models_device_alone():
    """On torch's device without data, which refuses to mix with a CPU's tensors: what CUDA would refuse too."""
    model = Llama(WEIGHTS, torch.bfloat16, device="meta")
    adapters = [Adapter(LoraSpec(rank=rank), model.targets, torch.float32, "meta") for rank in (4, 8)]
    samples = [torch.arange(length).numpy() for length in (40, 9)]
    layout = lay_out(samples, [40, 9]).to(model.device)
    stack = AdapterStack(adapters, model.targets, layout.group_rows, dtype=model.dtype)
    hidden = model.hidden(layout, stack)
    normed = model.last_norm(hidden)
    scores = TokenScores.of(normed.detach(), model.head_VH, layout.token_ids_T, torch.ones(49, device="meta"))
    torch.autograd.backward(normed, scores.backward(scores.logprob_C))
    stack.deliver()
    assert {adapter.grads_P.device.type for adapter in adapters} == {"meta"}
