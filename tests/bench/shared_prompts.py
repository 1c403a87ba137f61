"""P7: one step on a group whose prompt is shared, against the same step over every sample's every token.

Eight answers of 64 tokens to a prompt of 256, rank 8, policy gradient on the answers. Two peers: our own trainer told not to
share, and a plain PEFT step as TRL's GRPO takes one on its own rollouts (one batch of whole sequences without padding, logits of
the answers alone, ratio 1). TRL itself is not installed: its step is written out here.
"""

from collections.abc import Callable
from unittest.mock import patch

import numpy as np
import torch
from peft import PeftModel, get_peft_model_state_dict
from safetensors.torch import load_file

from tests.bench.packing import DIFFERENCE_MAX, PeftRun
from tests.bench.pairs import in_turn
from tests.bench.rows import Bound, Disagreement, Row
from tests.bench.sizes import RANK, VOCABULARY, Size, size
from tests.bench.training_batches import OPTIMIZER
from tests.numerics.recorded import TEAM, run_id
from trainer.contracts.adapters import WEIGHTS_NAME, LoraSpec, adapter_path
from trainer.contracts.samples import TrainBatch, TrainSample
from trainer.contracts.training import LossSpec
from trainer.core import layout
from trainer.core.llama import Llama
from trainer.core.pool import Pool, PoolLimits
from trainer.core.tenants import RunSpec

PROMPT_TOKENS, ANSWER_TOKENS, GROUP = 256, 64, 8
RUN = run_id("group")
TOKENS = GROUP * (PROMPT_TOKENS + ANSWER_TOKENS)


def sequences() -> np.ndarray:
    """[answer, token]"""
    rng = np.random.default_rng(0)
    prompt = np.tile(rng.integers(0, VOCABULARY, size=PROMPT_TOKENS), (GROUP, 1))
    return np.concatenate([prompt, rng.integers(0, VOCABULARY, size=(GROUP, ANSWER_TOKENS))], axis=1)


def advantages() -> list[float]:
    return [1.0 if index % 2 else -0.5 for index in range(GROUP)]


def batch(step: int) -> TrainBatch:
    unpaid = [0.0] * PROMPT_TOKENS
    samples = [
        TrainSample(
            token_ids=row.tolist(),
            mask=[False] * PROMPT_TOKENS + [True] * ANSWER_TOKENS,
            logprobs=[0.0] * len(row),
            temperatures=[1.0] * len(row),
            policy_versions=[0] * len(row),
            rl_weights=unpaid + [1.0] * ANSWER_TOKENS,
            advantages=unpaid + [advantage] * ANSWER_TOKENS,
        )
        for row, advantage in zip(sequences(), advantages(), strict=True)
    ]
    return TrainBatch(run_id=RUN, step=step, n_rl=GROUP * ANSWER_TOKENS, n_ce=0, n_ref_kl=0, samples=samples)


class OurGroup:
    """A pool with one run; `shared` says whether a common beginning is computed once."""

    def __init__(self, chosen: Size, *, shared: bool) -> None:
        self._root = chosen.root / f"group-shared-{shared}"
        limits = PoolLimits(slots=1, pack_tokens=TOKENS)
        self._pool = Pool(Llama(chosen.model), base_model="bench", artifact_root=self._root, limits=limits)
        lora, loss = LoraSpec(rank=RANK), LossSpec(kind="reinforce")
        self._pool.open(RUN, RunSpec(team_id=TEAM, lora=lora, optimizer=OPTIMIZER, loss=loss))
        self._tenant = self._pool.tenant(RUN)
        self._shared_min = layout.SHARED_MIN if shared else TOKENS
        self.start = self._root / adapter_path(RUN, 0)

    def step(self) -> None:
        with patch.object(layout, "SHARED_MIN", self._shared_min):
            self._pool.train([self._pool.prepare(batch(self._tenant.step + 1))])
        self._tenant.check_gradient()
        self._tenant.apply_gradient()

    def weights(self) -> dict[str, torch.Tensor]:
        self._pool.versions.write(RUN, TEAM, self._tenant.step, self._tenant.adapter, {})
        return load_file(self._root / adapter_path(RUN, self._tenant.step) / WEIGHTS_NAME)


class PeftGroup(PeftRun):
    def __init__(self, chosen: Size, ours: OurGroup) -> None:
        super().__init__(chosen, ours.start)
        self._ids, self._advantages = torch.from_numpy(sequences()), torch.tensor(advantages())

    def loss(self, model: PeftModel) -> torch.Tensor:
        logits = model(input_ids=self._ids, use_cache=False, logits_to_keep=ANSWER_TOKENS + 1).logits[:, :-1]
        chosen = logits.log_softmax(dim=-1).gather(2, self._ids[:, -ANSWER_TOKENS:, None])[..., 0]
        return -(self._advantages[:, None] * chosen).mean()

    def weights(self) -> dict[str, torch.Tensor]:
        return get_peft_model_state_dict(self.model)


def require_agreement(ours: OurGroup, theirs: OurGroup | PeftGroup) -> None:
    ours.step()
    theirs.step()
    start, mine, other = load_file(ours.start / WEIGHTS_NAME), ours.weights(), theirs.weights()
    changed = sum((mine[name] - start[name]).abs().sum().item() for name in mine)
    apart = sum((mine[name] - other[name]).abs().sum().item() for name in mine)
    if not changed or apart > DIFFERENCE_MAX * changed:
        raise Disagreement(f"weights are {apart / max(changed, 1e-12):.3f} of their change apart")


def p7(key: str, peer: Callable[[Size, OurGroup], OurGroup | PeftGroup], pairs: int) -> list[float]:
    ours = OurGroup(size(key), shared=True)
    theirs = peer(size(key), ours)
    require_agreement(ours, theirs)
    return [pair.ours_s / pair.theirs_s for pair in in_turn(ours.step, theirs.step, pairs)]


PEERS: dict[str, tuple[str, Callable[[Size, OurGroup], OurGroup | PeftGroup]]] = {
    "": ("itself, every token of every sample", lambda chosen, _: OurGroup(chosen, shared=False)),
    ".peft": ("peft, the step of TRL's GRPO written out", PeftGroup),
}


def rows() -> list[Row]:
    what = f"step of a group with a shared prompt ÷ naive tokens, prompt {PROMPT_TOKENS}, {GROUP} × {ANSWER_TOKENS}"
    return [
        Row(f"P7.{key}{name}", what, peer, Bound("lower", 0.42, 0.31), lambda pairs, key=key, side=side: p7(key, side, pairs))
        for key in ("4m", "30m")
        for name, (peer, side) in PEERS.items()
    ]
