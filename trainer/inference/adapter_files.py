"""Reads one adapter version from disk and refuses what cannot be served. Knows PEFT's files and our manifest; holds no state.

Everything is checked before a number of it is used: the manifest (written last, so an uncommitted version has none), the digest,
the rank, the names and shapes of all tensors, finiteness.
"""

import hashlib
import json
import re
from pathlib import Path
from typing import Any

import torch
from pydantic import ValidationError
from safetensors import SafetensorError
from safetensors.torch import load
from torch import Tensor

from trainer.contracts.adapters import CONFIG_NAME, MANIFEST_NAME, WEIGHTS_NAME, AdapterManifest
from trainer.contracts.manifests import UnknownFormat, read_adapter_manifest
from trainer.inference.errors import AdapterFilesMissing, InvalidAdapter
from trainer.inference.lora import AdapterWeights, Dimensions, LoraLayout, rank_class, targets_of

_KEY = re.compile(r"base_model\.model\.model\.layers\.(\d+)\.(self_attn|mlp)\.(\w+)\.lora_([AB])\.weight")
_REFUSED_FEATURES = ("use_dora", "use_rslora", "modules_to_save", "rank_pattern", "alpha_pattern", "fan_in_fan_out", "lora_bias")

Pairs = dict[tuple[int, str], tuple[Tensor, Tensor]]


class AdapterReader:
    """Turns a version's folder into weights for one base model."""

    def __init__(self, *, root: Path, shape: Dimensions, base_digest: str, rank_max: int):
        self._root = root.resolve()
        self._shape = shape
        self._base_digest = base_digest
        self._rank_max = rank_max
        self._widths = {module: (target.width_in, width) for target in targets_of(shape) for module, width in target.modules}

    def folder(self, path: str) -> Path:
        """The folder inside the artifact root that `path` names. Links are resolved before the check."""
        folder = Path(path).resolve()
        if not folder.is_relative_to(self._root):
            raise InvalidAdapter(f"lora_path {path} is outside the artifact root", param="lora_path")
        return folder

    def manifest(self, folder: Path) -> AdapterManifest:
        try:
            manifest = read_adapter_manifest(self._read(folder / MANIFEST_NAME))
        except UnknownFormat as error:
            raise InvalidAdapter(str(error), code="unknown_format") from error
        except ValidationError as error:
            raise InvalidAdapter(f"{MANIFEST_NAME} is not a valid manifest: {error.errors()[0]['msg']}") from error
        except ValueError as error:
            raise InvalidAdapter(f"{MANIFEST_NAME} is not a valid manifest: {error}") from error
        if manifest.base_digest != self._base_digest:
            raise InvalidAdapter(
                f"the adapter was trained on base weights {manifest.base_digest}, this engine serves {self._base_digest}",
                code="wrong_base_model",
            )
        return manifest

    def read(self, folder: Path, *, digest: str | None) -> AdapterWeights:
        """Weights whose file hashes to the manifest's digest, and to `digest` where the caller names one."""
        manifest = self.manifest(folder)
        data = self._read(folder / WEIGHTS_NAME)
        found = hashlib.sha256(data).hexdigest()
        for wanted, where in ((manifest.adapter_digest, MANIFEST_NAME), (digest, "the request")):
            if wanted is not None and found != wanted:
                raise InvalidAdapter(f"{WEIGHTS_NAME} hashes to {found}, {where} says {wanted}", code="digest_mismatch")
        config = self._config(folder)
        rank = self._rank(config, manifest)
        pairs = self._pairs(data, rank)
        flat = LoraLayout(self._shape, rank_class(rank)).pack(pairs, config["lora_alpha"] / rank)
        return AdapterWeights(digest=found, rank=rank, flat=flat)

    def _read(self, path: Path) -> bytes:
        try:
            return path.read_bytes()
        except OSError as error:
            raise AdapterFilesMissing(f"cannot read {path.name} of the adapter: {error.strerror}", param="lora_path") from error

    def _config(self, folder: Path) -> dict[str, Any]:
        try:
            config = json.loads(self._read(folder / CONFIG_NAME))
        except ValueError as error:
            raise InvalidAdapter(f"{CONFIG_NAME} is not valid JSON") from error
        if not isinstance(config, dict):
            raise InvalidAdapter(f"{CONFIG_NAME} is not a JSON object")
        for feature in _REFUSED_FEATURES:
            if config.get(feature):
                raise InvalidAdapter(f"{CONFIG_NAME} sets {feature}, which this engine does not serve", param=feature)
        if config.get("bias", "none") != "none":
            raise InvalidAdapter(f"{CONFIG_NAME} sets bias, which this engine does not serve", param="bias")
        return config

    def _rank(self, config: dict[str, Any], manifest: AdapterManifest) -> int:
        rank, alpha = config.get("r"), config.get("lora_alpha")
        if rank != manifest.lora.rank or alpha != manifest.lora.alpha:
            raise InvalidAdapter(
                f"{CONFIG_NAME} says rank {rank} and alpha {alpha}, "
                f"{MANIFEST_NAME} says {manifest.lora.rank} and {manifest.lora.alpha}"
            )
        if manifest.lora.rank > self._rank_max:
            raise InvalidAdapter(f"rank {rank} is above this engine's limit of {self._rank_max}", code="rank_too_large")
        return manifest.lora.rank

    def _pairs(self, data: bytes, rank: int) -> Pairs:
        try:
            tensors = load(data)
        except SafetensorError as error:
            raise InvalidAdapter(f"{WEIGHTS_NAME} is no safetensors file: {error}") from error
        halves: dict[tuple[int, str], dict[str, Tensor]] = {}
        for name, tensor in tensors.items():
            place, half = self._place(name)
            halves.setdefault(place, {})[half] = self._checked(name, tensor, rank, self._widths[place[1]], half)
        if not halves:
            raise InvalidAdapter(f"{WEIGHTS_NAME} holds no tensor")
        for (layer, module), pair in halves.items():
            if len(pair) != 2:
                raise InvalidAdapter(f"layer {layer} {module} has lora_{next(iter(pair))} alone; both halves are needed")
        return {place: (pair["A"], pair["B"]) for place, pair in halves.items()}

    def _place(self, name: str) -> tuple[tuple[int, str], str]:
        match = _KEY.fullmatch(name)
        module = f"{match[2]}.{match[3]}" if match else ""
        if match is None or module not in self._widths or int(match[1]) >= self._shape.layers:
            raise InvalidAdapter(f"tensor {name} fits no adapted module of this base model")
        return (int(match[1]), module), match[4]

    def _checked(self, name: str, tensor: Tensor, rank: int, widths: tuple[int, int], half: str) -> Tensor:
        wanted = (rank, widths[0]) if half == "A" else (widths[1], rank)
        if tuple(tensor.shape) != wanted:
            raise InvalidAdapter(f"tensor {name} has shape {tuple(tensor.shape)}, this base model needs {wanted}")
        if not tensor.is_floating_point() or not bool(torch.isfinite(tensor).all()):
            raise InvalidAdapter(f"tensor {name} holds values that are no finite numbers")
        return tensor.float()
