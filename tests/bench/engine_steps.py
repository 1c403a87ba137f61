"""What one step of the engine costs: `python -m tests.bench.engine_steps [--rows 64] [--adapters 5]`. CPU time, one thread.

Prints the mean cost of a pure decode step, and tokens a second of short rollouts (prompt 20, answer 8) with arrivals and ends.
"""

import argparse
import tempfile
import time
from pathlib import Path

import torch

from tests.factories.tiny_llama import make_model, write_adapter
from trainer.contracts.catalogue import weights_digest
from trainer.contracts.generation import AdapterIdentity, SamplingParams
from trainer.inference.adapter_files import AdapterReader
from trainer.inference.core import EngineCore
from trainer.inference.limits import EngineLimits
from trainer.inference.llama import load_llama
from trainer.inference.lora import AdapterWeights
from trainer.inference.sequence import Sequence

SHAPE = {
    "hidden_size": 64,
    "intermediate_size": 192,
    "num_attention_heads": 2,
    "num_key_value_heads": 2,
    "head_dim": 32,
    "max_position_embeddings": 2048,
}


def make_core(folder: Path, adapters: int, rows: int, device: str) -> tuple[EngineCore, list[AdapterWeights | None]]:
    base = make_model(folder / "base", **SHAPE)
    model = load_llama(base, device=torch.device(device), dtype=torch.float32)
    reader = AdapterReader(root=folder, shape=model.shape, base_digest=weights_digest(base), rank_max=64)
    weights: list[AdapterWeights | None] = []
    for index in range(adapters):
        write_adapter(folder / f"a{index}", base, seed=index)
        weights.append(reader.read(folder / f"a{index}", digest=None))
    return EngineCore(model, EngineLimits(sequences_max=rows)), weights or [None]


def sequence(adapter: AdapterWeights | None, max_new: int) -> Sequence:
    return Sequence(
        id="bench",
        prompt=list(range(40, 60)),
        sampling=SamplingParams(max_tokens=max_new),
        identity=AdapterIdentity(name="bench", digest="0" * 64),
        adapter=adapter,
        max_new=max_new,
        deadline_at_s=float("inf"),
    )


def decode_cost(core: EngineCore, weights: list[AdapterWeights | None], rows: int, steps: int) -> float:
    for index in range(rows):
        core.scheduler.add(sequence(weights[index % len(weights)], steps + 1))
    core.step()
    started_s = time.process_time()
    for _ in range(steps):
        core.step()
    assert not core.scheduler.has_work
    return (time.process_time() - started_s) / steps


def rollout_rate(core: EngineCore, weights: list[AdapterWeights | None], rows: int, rollouts: int) -> float:
    """Rollouts a CPU second, with `rows` in flight all the time."""
    sent, started_s = 0, time.process_time()
    while sent < rollouts or core.scheduler.has_work:
        while sent < rollouts and len(core.scheduler.running) + len(core.scheduler.waiting) < rows:
            core.scheduler.add(sequence(weights[sent % len(weights)], 4 + sent % 5))
            sent += 1
        core.step()
    return rollouts / (time.process_time() - started_s)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=64)
    parser.add_argument("--adapters", type=int, default=5)
    parser.add_argument("--device", default="cpu")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        core, weights = make_core(Path(folder), arguments.adapters, arguments.rows, arguments.device)
        costs_s = [decode_cost(core, weights, arguments.rows, 16) for _ in range(8)]
        rates = [rollout_rate(core, weights, arguments.rows, 300) for _ in range(4)]
        # The best of several: whatever else the machine does only adds.
        print(f"{arguments.rows} rows, {arguments.adapters} adapters: decode step {min(costs_s) * 1000:.2f} ms, ", end="")
        print(f"{max(rates):.0f} rollouts a CPU second")


if __name__ == "__main__":
    main()
