"""The models that rows are measured on: random weights, real shapes. Knows sizes; a row names one by its key."""

import tempfile
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from tests.factories.tiny_llama import make_model, write_adapter

VOCABULARY = 2048
ADAPTERS = 8
RANK = 8

SHAPES = {
    "4m": {"hidden_size": 256, "intermediate_size": 688, "num_hidden_layers": 4, "num_attention_heads": 4},
    "30m": {"hidden_size": 512, "intermediate_size": 1376, "num_hidden_layers": 8, "num_attention_heads": 8},
}


@dataclass(frozen=True, slots=True)
class Size:
    """`adapters` are folders of committed versions: random, rank 8, on all linear layers."""

    key: str
    model: Path
    adapters: tuple[Path, ...]
    root: Path


@cache
def size(key: str) -> Size:
    """Made once a process, below a temporary folder that the operating system cleans up."""
    root, shape = Path(tempfile.mkdtemp(prefix="rootstock-bench-")), SHAPES[key]
    more = {"num_key_value_heads": shape["num_attention_heads"], "head_dim": 64, "max_position_embeddings": 1024}
    model = make_model(root / "base", seed=1, vocab_size=VOCABULARY, **shape, **more)
    folders = tuple(root / f"adapter-{index}" for index in range(ADAPTERS))
    for index, folder in enumerate(folders):
        write_adapter(folder, model, seed=index + 1, rank=RANK)
    return Size(key, model, folders, root)
