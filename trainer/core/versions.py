"""Adapter versions on disk: PEFT's two files, the step's result, and a manifest with their digests, written last.

Knows PEFT's names and our manifest. Refuses to know moments and batches. A version is immutable: once its manifest exists
nothing is written to its folder again.
"""

import json
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from safetensors.torch import load, save
from torch import Tensor

from trainer.contracts.adapters import CONFIG_NAME, MANIFEST_NAME, WEIGHTS_NAME, AdapterManifest, LoraSpec, adapter_path
from trainer.contracts.manifests import UnknownFormat, read_adapter_manifest
from trainer.contracts.training import StepResult
from trainer.core.adapters import Adapter, TargetShape
from trainer.core.durable import entry_of, read_verified, write_folder
from trainer.core.errors import NotServable, UnknownState
from trainer.core.llama import module_path

RESULT_NAME = "step_result.json"


def weights_bytes(adapter: Adapter) -> bytes:
    """The safetensors file of an adapter, in the names that PEFT and vLLM load. Equal adapters give equal bytes."""
    tensors: dict[str, Tensor] = {}
    for shape, factors in adapter.named_tensors():
        name_a, name_b = _names(shape)
        tensors[name_a] = factors.a.contiguous().cpu()
        tensors[name_b] = factors.b.contiguous().cpu()
    return save(tensors, metadata={"format": "pt"})


def _names(shape: TargetShape) -> tuple[str, str]:
    path = f"base_model.model.{module_path(shape)}"
    return f"{path}.lora_A.weight", f"{path}.lora_B.weight"


def config_bytes(lora: LoraSpec, base_model: str) -> bytes:
    config = {
        "peft_type": "LORA",
        "task_type": "CAUSAL_LM",
        "base_model_name_or_path": base_model,
        "r": lora.rank,
        "lora_alpha": lora.alpha,
        "target_modules": sorted(lora.target_modules),
        "lora_dropout": 0.0,
        "bias": "none",
        "fan_in_fan_out": False,
        "inference_mode": True,
    }
    return json.dumps(config, indent=2, sort_keys=True).encode()


def load_weights(adapter: Adapter, data: bytes) -> None:
    """Fill an adapter from a safetensors file. Raises NotServable unless names and shapes are exactly the adapter's."""
    tensors = load(data)
    expected: dict[str, Tensor] = {}
    for shape, factors in adapter.named_tensors():
        name_a, name_b = _names(shape)
        expected |= {name_a: factors.a, name_b: factors.b}
    if tensors.keys() != expected.keys():
        differing = sorted(tensors.keys() ^ expected.keys())
        raise NotServable(f"{len(differing)} tensors differ from the adapter's own, e.g. {differing[0]}")
    for name, own in expected.items():
        if tensors[name].shape != own.shape:
            raise NotServable(f"{name} is {tuple(tensors[name].shape)}, this run's is {tuple(own.shape)}")
    for name, own in expected.items():
        own.copy_(tensors[name])


@dataclass(frozen=True)
class StepOutcome:
    """What a step did, before its version has a digest."""

    run_id: str
    step: int
    tokens: int
    metrics: dict[str, float]
    packs: int
    packs_shared: int


class VersionStore:
    """The versions of every run under one artifact root."""

    def __init__(self, root: Path, base_model: str, base_digest: str) -> None:
        self.root = root
        self.base_model = base_model
        self.base_digest = base_digest

    def write(self, run_id: str, team_id: str, version: int, adapter: Adapter, extra: dict[str, bytes]) -> AdapterManifest:
        """Publish a version with extra files, or return the one that is there."""
        published = self.manifest(run_id, version)
        if published is not None:
            return published
        files = {WEIGHTS_NAME: weights_bytes(adapter), CONFIG_NAME: config_bytes(adapter.spec, self.base_model), **extra}
        entries = {name: entry_of(data) for name, data in files.items()}
        manifest = AdapterManifest(
            run_id=run_id,
            team_id=team_id,
            version=version,
            base_model=self.base_model,
            base_digest=self.base_digest,
            lora=adapter.spec,
            adapter_digest=entries[WEIGHTS_NAME].sha256,
            files=entries,
            created_at=datetime.now(UTC),
        )
        write_folder(self._folder(run_id, version), files, manifest.model_dump_json(indent=2).encode())
        return manifest

    def publish_step(self, outcome: StepOutcome, team_id: str, adapter: Adapter) -> StepResult:
        """Publish the version that a step made, with the answer beside it. A version that is there keeps its own answer."""
        weights = entry_of(weights_bytes(adapter))
        result = StepResult(
            run_id=outcome.run_id,
            step=outcome.step,
            adapter_digest=weights.sha256,
            adapter_path=adapter_path(outcome.run_id, outcome.step),
            size_bytes=weights.size_bytes,
            tokens=outcome.tokens,
            metrics=outcome.metrics,
            packs=outcome.packs,
            packs_shared=outcome.packs_shared,
        )
        self.write(outcome.run_id, team_id, outcome.step, adapter, {RESULT_NAME: result.model_dump_json().encode()})
        return result

    def manifest(self, run_id: str, version: int) -> AdapterManifest | None:
        """None while the version is not committed. Raises UnknownState for one that another release wrote."""
        path = self._folder(run_id, version) / MANIFEST_NAME
        try:
            return read_adapter_manifest(path.read_bytes()) if path.exists() else None
        except UnknownFormat as problem:
            raise UnknownState(f"version {version} of run {run_id}: {problem}") from problem

    def result(self, run_id: str, step: int) -> StepResult | None:
        """What the step that made this version answered."""
        manifest = self.manifest(run_id, step)
        if manifest is None or RESULT_NAME not in manifest.files:
            return None
        return StepResult.model_validate_json(read_verified(self._folder(run_id, step), RESULT_NAME, manifest.files[RESULT_NAME]))

    def load(self, manifest: AdapterManifest, adapter: Adapter) -> None:
        """Fill an adapter with a version's weights. Raises ValueError for damaged files, NotServable for another shape."""
        folder = self._folder(manifest.run_id, manifest.version)
        load_weights(adapter, read_verified(folder, WEIGHTS_NAME, manifest.files[WEIGHTS_NAME]))

    def _folder(self, run_id: str, version: int) -> Path:
        return self.root / adapter_path(run_id, version)
