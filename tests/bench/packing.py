"""P6: one packed step of eight runs on our trainer, against eight PEFT steps one after the other.

Cross-entropy on every token but the first, AdamW, a clipped gradient; files are not written on either side. A run's tokens come
in rows of at most 32, without padding, which is what suits PEFT best. Packs are as long as a pool makes them by default.
"""

from functools import cache
from pathlib import Path

import numpy as np
import torch
from peft import PeftModel, get_peft_model_state_dict
from safetensors.torch import load_file
from torch.nn.functional import cross_entropy
from transformers import LlamaForCausalLM

from tests.bench.pairs import in_turn
from tests.bench.rows import Bound, Disagreement, Row
from tests.bench.sizes import RANK, Size, size
from tests.bench.training_batches import OPTIMIZER, batch, token_rows
from tests.numerics.recorded import TEAM, run_id
from trainer.contracts.adapters import WEIGHTS_NAME, LoraSpec, adapter_path
from trainer.core.llama import Llama
from trainer.core.pool import Pool, PoolLimits
from trainer.core.tenants import RunSpec

RUNS = 8
DIFFERENCE_MAX = 0.01
"""Of the mean change of a weight: AdamW makes a large step of the smallest gradient, whatever its sign."""


class OurTrainer:
    """A pool with eight open runs."""

    def __init__(self, chosen: Size, tokens: int) -> None:
        limits = PoolLimits(slots=RUNS)
        self.root = root = chosen.root / f"trained-on-{tokens}"
        self.pool = Pool(Llama(chosen.model), base_model="bench", artifact_root=root, limits=limits)
        self.names = [run_id(f"bench{index}") for index in range(RUNS)]
        self.rows = [token_rows(index, tokens) for index in range(RUNS)]
        for index, name in enumerate(self.names):
            self.pool.open(name, RunSpec(team_id=TEAM, lora=LoraSpec(rank=RANK), optimizer=OPTIMIZER, seed=index))
        self.starts = [root / adapter_path(name, 0) for name in self.names]

    def step(self) -> None:
        tenants = [self.pool.tenant(name) for name in self.names]
        batches = [batch(name, tenant.step + 1, rows) for name, tenant, rows in zip(self.names, tenants, self.rows, strict=True)]
        self.pool.train([self.pool.prepare(one) for one in batches])
        for tenant in tenants:
            tenant.check_gradient()
            tenant.apply_gradient()

    def weights(self, index: int) -> dict[str, torch.Tensor]:
        tenant = self.pool.tenant(self.names[index])
        self.pool.versions.write(self.names[index], TEAM, tenant.step, tenant.adapter, {})
        return load_file(self.root / adapter_path(self.names[index], tenant.step) / WEIGHTS_NAME)


class PeftRun:
    """A model of its own, so that nothing is spent on switching adapters. Subclasses say what is minimised."""

    def __init__(self, chosen: Size, start: Path) -> None:
        base = LlamaForCausalLM.from_pretrained(chosen.model, dtype=torch.float32)
        self.model = PeftModel.from_pretrained(base, start, is_trainable=True)
        self._trained = [p for p in self.model.parameters() if p.requires_grad]
        self._optimizer = torch.optim.AdamW(
            self._trained,
            lr=OPTIMIZER.learning_rate,
            betas=OPTIMIZER.betas,
            eps=OPTIMIZER.eps,
            weight_decay=OPTIMIZER.weight_decay,
        )

    def loss(self, model: PeftModel) -> torch.Tensor:
        raise NotImplementedError

    def step(self) -> None:
        self.loss(self.model).backward()
        torch.nn.utils.clip_grad_norm_(self._trained, OPTIMIZER.max_grad_norm)
        self._optimizer.step()
        self._optimizer.zero_grad(set_to_none=True)


class PeftRows(PeftRun):
    def __init__(self, chosen: Size, start: Path, rows: np.ndarray) -> None:
        super().__init__(chosen, start)
        self._ids = torch.from_numpy(rows)

    def loss(self, model: PeftModel) -> torch.Tensor:
        logits = model(input_ids=self._ids, use_cache=False).logits[:, :-1]
        return cross_entropy(logits.flatten(0, 1), self._ids[:, 1:].flatten())


class PeftTrainer:
    """Eight runs, one after the other."""

    def __init__(self, chosen: Size, ours: OurTrainer) -> None:
        self.runs = [PeftRows(chosen, start, rows) for start, rows in zip(ours.starts, ours.rows, strict=True)]

    def step(self) -> None:
        for run in self.runs:
            run.step()


@cache
def sides(key: str, tokens: int) -> tuple[OurTrainer, PeftTrainer]:
    ours = OurTrainer(size(key), tokens)
    return ours, PeftTrainer(size(key), ours)


def require_agreement(ours: OurTrainer, theirs: PeftTrainer) -> None:
    """Both sides take one step from the same start; each run's weights must come out the same."""
    ours.step()
    theirs.step()
    for index, run in enumerate(theirs.runs):
        start, mine, other = (
            load_file(ours.starts[index] / WEIGHTS_NAME),
            ours.weights(index),
            get_peft_model_state_dict(run.model),
        )
        changed = sum((mine[name] - start[name]).abs().sum().item() for name in mine)
        apart = sum((mine[name] - other[name]).abs().sum().item() for name in mine)
        if not changed or apart > DIFFERENCE_MAX * changed:
            raise Disagreement(f"run {index}: weights are {apart / max(changed, 1e-12):.3f} of their change apart")


def p6(key: str, tokens: int, pairs: int) -> list[float]:
    ours, theirs = sides(key, tokens)
    require_agreement(ours, theirs)
    return [pair.ours_s / pair.theirs_s for pair in in_turn(ours.step, theirs.step, pairs)]


BOUNDS = {
    "4m": {8: (0.35, 0.25), 32: (0.50, 0.35), 128: (0.75, 0.5), 512: (1.0, 0.7)},
    "30m": {8: (0.45, 0.35), 32: (0.85, 0.66), 128: (0.90, 0.8), 512: (1.0, 0.9)},
}


def rows() -> list[Row]:
    return [
        Row(
            f"P6.{key}.{tokens}",
            f"packed step of 8 runs ÷ 8 PEFT steps, {tokens} tokens a run",
            "peft",
            Bound("lower", must, aim),
            lambda pairs, key=key, tokens=tokens: p6(key, tokens, pairs),
        )
        for key, bounds in BOUNDS.items()
        for tokens, (must, aim) in bounds.items()
    ]
