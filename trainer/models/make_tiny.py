"""Make the tiny base model: `python -m trainer.models.make_tiny [--out FOLDER] [--seed 0]`, about two minutes of one core.

Knows the layout of a shipped model: `weights/` (config.json, model.safetensors in bfloat16) and `tokenizer/`. A model that
misses a gate is not written.
"""

import argparse
import sys
from pathlib import Path

import torch
from transformers import LlamaForCausalLM

from trainer.models.tiny_recipe.gates import GateReport, measure
from trainer.models.tiny_recipe.tokenizer import save_tokenizer
from trainer.models.tiny_recipe.training import STEPS, train


def write(model: LlamaForCausalLM, folder: Path) -> None:
    """Weights and tokenizer under `folder`, in Hugging Face's formats."""
    weights = folder / "weights"
    weights.mkdir(parents=True, exist_ok=True)
    model.to(torch.bfloat16).save_pretrained(weights)
    (weights / "generation_config.json").unlink(missing_ok=True)
    (weights / "model.safetensors").chmod(0o644)  # other users of the machine serve from an installed package
    save_tokenizer(folder / "tokenizer")
    model.to(torch.float32)


def make(folder: Path, seed: int) -> GateReport:
    """Train, measure, and write what passes."""

    def report(step: int, loss: float) -> None:
        if step % 100 == 0:
            print(f"step {step}/{STEPS} loss {loss:.3f}", flush=True)

    model = train(seed, report)
    gates = measure(model)
    if gates.passed:
        write(model, folder)
    return gates


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "tiny")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    torch.set_num_threads(1)
    gates = make(options.out, options.seed)
    print(gates)
    return 0 if gates.passed else 1


if __name__ == "__main__":
    sys.exit(main())
