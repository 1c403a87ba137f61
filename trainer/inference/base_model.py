"""A base model as its catalogue entry and its files describe it, before anything is loaded. Knows no adapter and no engine."""

import json
from dataclasses import dataclass
from pathlib import Path

from trainer.contracts.catalogue import BaseModelSpec, model_folder, weights_digest
from trainer.contracts.generation import AdapterIdentity
from trainer.inference.adapter_files import AdapterReader
from trainer.inference.limits import EngineLimits
from trainer.inference.llama import LlamaShape


@dataclass(frozen=True, slots=True)
class BaseModel:
    """`digest` is the identity of the weights in `weights`."""

    spec: BaseModelSpec
    weights: Path
    shape: LlamaShape
    digest: str

    @classmethod
    def of(cls, spec: BaseModelSpec) -> "BaseModel":
        weights = model_folder(spec.weights)
        shape = LlamaShape.from_config(json.loads((weights / "config.json").read_text()))
        return cls(spec, weights, shape, weights_digest(weights))

    @property
    def identity(self) -> AdapterIdentity:
        return AdapterIdentity(name=self.spec.id, digest=self.digest)

    @property
    def context_tokens(self) -> int:
        return min(self.spec.context_tokens, self.shape.context)

    def adapter_reader(self, artifacts: Path, limits: EngineLimits) -> AdapterReader:
        """Reads what was trained on these weights, below the artifact root."""
        rank_max = min(self.spec.rank_max, limits.rank_max)
        return AdapterReader(root=artifacts, shape=self.shape, base_digest=self.digest, rank_max=rank_max)
