"""Grouped LoRA products equal the plain formula, row by row."""

import pytest
import torch

from trainer.inference.llama import LlamaShape
from trainer.inference.lora import AdapterSlots, AdapterWeights, LoraLayout, rank_class, targets_of

SHAPE = LlamaShape(
    vocabulary=10, hidden=16, intermediate=24, layers=2, heads=4, kv_heads=2, head_dim=4,
    context=32, rms_eps=1e-5, rope_theta=1e4, tied=True,
)  # fmt: skip


def random_pairs(seed, rank, modules=None):
    generator, pairs = torch.Generator().manual_seed(seed), {}
    for layer in range(SHAPE.layers):
        for target in targets_of(SHAPE):
            for module, width in target.modules:
                if modules is None or module in modules:
                    a = torch.randn(rank, target.width_in, generator=generator)
                    pairs[layer, module] = (a, torch.randn(width, rank, generator=generator))
    return pairs


def packed(name, pairs, rank, scale=2.0):
    return AdapterWeights(digest=name, rank=rank, flat=LoraLayout(SHAPE, rank_class(rank)).pack(pairs, scale))


def expected(pairs, x, layer, target, scale=2.0):
    parts = []
    for module, width in target.modules:
        pair = pairs.get((layer, module))
        parts.append(x.new_zeros(len(x), width) if pair is None else scale * x @ pair[0].T @ pair[1].T)
    return torch.cat(parts, dim=-1)


@pytest.mark.parametrize("ranks", [[8], [8, 4], [8, 16, 3, 64], [1, 2, 3, 4]])
def test_grouped_products_equal_the_formula(ranks):
    slots = AdapterSlots(SHAPE, 4, device=torch.device("cpu"), dtype=torch.float32)
    all_pairs = [
        random_pairs(index, rank, {"self_attn.v_proj", "mlp.down_proj"} if index == 1 else None)
        for index, rank in enumerate(ranks)
    ]
    keys = [slots.place(packed(f"d{index}", pairs, ranks[index])) for index, pairs in enumerate(all_pairs)]
    order = sorted(range(len(ranks)), key=lambda index: keys[index])
    keys_B = torch.tensor([0, 0] + [keys[index] for index in order for _ in range(2)]).numpy()
    tokens_B = torch.tensor([3, 1] + [1, 2] * len(ranks)).numpy()
    segments = slots.segments(keys_B, tokens_B)
    for layer in range(SHAPE.layers):
        for target in targets_of(SHAPE):
            x = torch.randn(int(tokens_B.sum()), target.width_in, generator=torch.Generator().manual_seed(9))
            out = torch.zeros(len(x), target.width_out)
            segments.add_delta(out, x, layer, target.name)
            assert not out[:4].any(), "the base model's rows get no delta"
            for place, index in enumerate(order):
                part = slice(4 + 3 * place, 7 + 3 * place)
                assert torch.allclose(out[part], expected(all_pairs[index], x[part], layer, target), rtol=1e-4, atol=1e-4)


def test_a_slot_is_reused_only_when_nobody_holds_it():
    slots = AdapterSlots(SHAPE, 2, device=torch.device("cpu"), dtype=torch.float32)
    one, two, three = (packed(name, random_pairs(1, 8), 8) for name in ("one", "two", "three"))
    first, second = slots.place(one), slots.place(two)
    assert slots.place(one) == first, "a placed adapter is shared"
    assert slots.place(three) is None
    slots.release(second)
    assert slots.place(three) == second
    slots.release(first)
    assert slots.place(two) is None, "`one` has a holder left"
    slots.release(first)
    assert slots.place(two) == first
    assert [slots.digest_of(first), slots.digest_of(second)] == ["two", "three"]


def test_a_batch_of_base_rows_has_no_segment():
    slots = AdapterSlots(SHAPE, 2, device=torch.device("cpu"), dtype=torch.float32)
    out = torch.zeros(3, 16)
    slots.segments(torch.tensor([0, 0]).numpy(), torch.tensor([1, 2]).numpy()).add_delta(out, torch.ones(3, 16), 0, "o")
    assert not out.any()
