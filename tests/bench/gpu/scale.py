"""How large a check is: the whole one for a GPU, and a tiny one that runs the same code on any CPU in seconds. Knows numbers."""

from dataclasses import dataclass
from typing import Any

FULL_MODEL = {
    "hidden_size": 2048,
    "intermediate_size": 8192,
    "num_hidden_layers": 16,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "head_dim": 64,
    "vocab_size": 128_256,
    "max_position_embeddings": 4096,
}
"""1.5 billion parameters."""

SMALL_MODEL = FULL_MODEL | {
    "hidden_size": 512,
    "intermediate_size": 1376,
    "num_hidden_layers": 8,
    "num_attention_heads": 8,
    "num_key_value_heads": 4,
    "vocab_size": 32_000,
}

TINY_MODEL = {"num_hidden_layers": 2, "max_position_embeddings": 512}
"""What `make_model` makes when it is told nothing else, with a longer context."""


@dataclass(frozen=True, slots=True)
class Scale:
    """`model` in bfloat16 is measured; `exact_model` in float32 shows whether the two sides compute the same."""

    model: dict[str, Any]
    exact_model: dict[str, Any]
    rank: int
    sample_tokens: int
    samples: int
    """Of one run's step."""
    pack_tokens: int
    steps: int
    rows: int
    prompt_tokens: int
    new_tokens: int
    trials: int
    swaps: int


FULL = Scale(FULL_MODEL, SMALL_MODEL, 16, 512, 16, 8192, 4, 64, 128, 128, 3, 8)
TINY = Scale(TINY_MODEL, TINY_MODEL, 8, 24, 4, 96, 1, 8, 8, 8, 1, 2)
