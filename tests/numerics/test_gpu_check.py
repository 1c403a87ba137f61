"""`make gpu-check` on a CPU and a tiny model: every check runs to its end, and its promises hold here too."""

import pytest
import torch

from tests.bench.gpu import __main__ as gpu_check
from tests.bench.gpu import training
from tests.bench.gpu.figures import KINDS
from tests.bench.gpu.scale import TINY
from tests.bench.gpu.world import World

CPU = torch.device("cpu")


@pytest.fixture
def found(monkeypatch) -> dict:
    figures = {}
    monkeypatch.setattr(gpu_check, "_print", lambda figure, taken_s: figures.update({figure.id: figure}))
    return figures


def test_the_whole_check_runs_on_a_cpu_and_writes_nothing(found, monkeypatch):
    written = []
    monkeypatch.setattr(gpu_check, "_write", lambda *_: written.append(True))
    assert gpu_check.main(["--device", "cpu", "--tiny"]) == 0
    assert [figure for figure in found.values() if figure.failed] == []
    assert found.keys() == KINDS.keys() and not written
    assert found["isolation.content"].value == found["isolation.strict"].value == 0
    assert found["engine.8"].value > 0 and found["swap"].value >= 0


def test_a_neighbour_that_moves_a_gradient_is_seen(tmp_path, monkeypatch):
    """Where the neighbour's seed reaches the run's own samples."""
    real = training.step_batch
    leaked = iter((1, 2, 9, 2))
    monkeypatch.setattr(training, "step_batch", lambda world, run, step, seed: real(world, run, step, next(leaked)))
    (figure,) = training.content_swap(World(tmp_path, TINY, CPU))
    assert figure.value > 0 and not figure.passes
