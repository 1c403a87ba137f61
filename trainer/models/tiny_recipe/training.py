"""Supervised training of the tiny model on its lessons, from a seed.

Knows the model's shape and the optimizer. Refuses to know whether the result is good: `gates` says so.
"""

import random
from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn import functional
from transformers import LlamaConfig, LlamaForCausalLM

from trainer.models.tiny_recipe.lessons import IGNORED, Turn, lessons_of_step, tokens_of
from trainer.models.tiny_recipe.tokenizer import CONTEXT_TOKENS, PAD, TURN_END, VOCABULARY_SIZE

STEPS = 2000
LEARNING_RATE = 4e-3


def tiny_config() -> LlamaConfig:
    return LlamaConfig(
        vocab_size=VOCABULARY_SIZE,
        hidden_size=64,
        intermediate_size=192,
        num_hidden_layers=2,
        num_attention_heads=2,
        num_key_value_heads=2,
        head_dim=32,
        max_position_embeddings=CONTEXT_TOKENS,
        tie_word_embeddings=True,
        pad_token_id=PAD,
        eos_token_id=TURN_END,
        bos_token_id=None,
    )


def _padded(rows: list[list[int]] | list[list[float]], filler: float) -> Tensor:
    width = max(map(len, rows))
    return torch.tensor([[*row, *[filler] * (width - len(row))] for row in rows])


def lesson_loss(model: LlamaForCausalLM, dialogues: list[list[Turn]]) -> Tensor:
    """Weighted mean of the cross-entropy over the taught tokens. Logits are computed at those alone."""
    ids, labels, weights = zip(*map(tokens_of, dialogues), strict=True)
    labels_BT = _padded(list(labels), IGNORED)[:, 1:]
    weights_BT = _padded(list(weights), 0.0)[:, 1:]
    taught_BT = labels_BT != IGNORED
    # Rows are padded on the right under a causal mask, so padding is never attended to by a taught position.
    hidden = model.model(input_ids=_padded(list(ids), PAD), use_cache=False).last_hidden_state[:, :-1]
    losses = functional.cross_entropy(model.lm_head(hidden[taught_BT]), labels_BT[taught_BT], reduction="none")
    return (losses * weights_BT[taught_BT]).sum() / weights_BT[taught_BT].sum()


def train(seed: int, report: Callable[[int, float], None] = lambda step, loss: None, steps: int = STEPS) -> LlamaForCausalLM:
    """A trained model in float32 whose weights are exactly representable in bfloat16, the type they are shipped in.

    Deterministic on one machine with one thread; across machines only the gates are promised.
    """
    torch.manual_seed(seed)
    rng = random.Random(seed)
    model = LlamaForCausalLM(tiny_config())
    optimizer = torch.optim.AdamW(model.parameters(), lr=LEARNING_RATE, weight_decay=0.01, betas=(0.9, 0.98))
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, LEARNING_RATE, total_steps=steps, pct_start=0.1)
    for step in range(steps):
        plain, mixed = lessons_of_step(rng, step)
        loss = lesson_loss(model, plain) + lesson_loss(model, mixed)
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        report(step + 1, float(loss.detach()))
    return model.to(torch.bfloat16).to(torch.float32).eval()
