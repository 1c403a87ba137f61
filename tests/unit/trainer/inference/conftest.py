"""One random model and a handful of adapters for all unit tests of the engine."""

from pathlib import Path

import pytest
import torch

from tests.factories.engines import reader_of
from tests.factories.tiny_llama import make_model, write_adapter
from trainer.inference.lora import AdapterWeights


@pytest.fixture(scope="session", autouse=True)
def _one_thread():
    torch.set_num_threads(1)


@pytest.fixture(scope="session")
def artifacts(tmp_path_factory) -> Path:
    return tmp_path_factory.mktemp("artifacts")


@pytest.fixture(scope="session")
def model(artifacts) -> Path:
    return make_model(artifacts / "base")


@pytest.fixture(scope="session")
def adapters(artifacts, model) -> list[AdapterWeights]:
    """Eight adapters of ranks 1 to 16, some on a part of the modules: two rank classes."""
    reader, weights = reader_of(artifacts, model), []
    for index, rank in enumerate((8, 4, 16, 8, 1, 12, 8, 16)):
        targets = (
            ("q_proj", "v_proj")
            if index % 4 == 3
            else ("q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj")
        )
        write_adapter(artifacts / f"adapter-{index}", model, seed=100 + index, rank=rank, targets=targets)
        weights.append(reader.read(artifacts / f"adapter-{index}", digest=None))
    return weights
