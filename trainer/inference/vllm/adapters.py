"""Which adapter versions the vLLM server has been told of. Knows digests, folders and when a restart has forgotten them all.

Refuses to know requests' names: towards vLLM an adapter is called by the digest of its weights. The same name can then never mean
other numbers, and a prefix cache that is keyed by it can never be stale.
"""

import asyncio
from collections import OrderedDict
from dataclasses import dataclass
from pathlib import Path

from safetensors.torch import save_file
from torch import zeros

from trainer.contracts.adapters import CONFIG_NAME, WEIGHTS_NAME
from trainer.inference.adapter_files import AdapterReader
from trainer.inference.base_model import BaseModel
from trainer.inference.vllm.upstream import Upstream

ZERO_NAME = "zero"
ZERO_RANK = 8
ZERO_FOLDER = "engines/zero-adapter"
ZERO_CONFIG = (
    '{"peft_type": "LORA", "r": 8, "lora_alpha": 8, "target_modules": ["o_proj"], "bias": "none", "task_type": "CAUSAL_LM"}'
)


@dataclass(frozen=True, slots=True)
class AdapterFolder:
    """A verified version on disk. vLLM reads the numbers itself, so nothing of them is kept here."""

    digest: str
    rank: int
    folder: Path
    size_bytes: int = 0


class FolderReader:
    """Checks a version as our own engine does, and keeps the place instead of the numbers."""

    def __init__(self, reader: AdapterReader) -> None:
        self._reader = reader

    def folder(self, path: str) -> Path:
        return self._reader.folder(path)

    def read(self, folder: Path, *, digest: str | None) -> AdapterFolder:
        weights = self._reader.read(folder, digest=digest)
        return AdapterFolder(weights.digest, weights.rank, folder)


class LoadedAdapters:
    """The names that vLLM knows, at most `names_max`; the one that was longest not used is unloaded for a new one."""

    def __init__(self, upstream: Upstream, *, names_max: int) -> None:
        self._upstream = upstream
        self._names_max = names_max
        self._loads: OrderedDict[str, asyncio.Task[None]] = OrderedDict()
        self._holders: dict[str, int] = {}

    async def hold(self, adapter: AdapterFolder) -> str:
        """The name under which vLLM serves it, loaded; it stays until as many `release` calls. One load serves all who wait."""
        name = adapter.digest
        self._holders[name] = self._holders.get(name, 0) + 1
        if name not in self._loads:
            self._loads[name] = asyncio.create_task(self._load(name, adapter.folder))
        self._loads.move_to_end(name)
        try:
            # Shielded: the request that gives up must not take the load away from the others.
            await asyncio.shield(self._loads[name])
        except BaseException:
            self.release(adapter)
            raise
        return name

    def release(self, adapter: AdapterFolder) -> None:
        self._holders[adapter.digest] -= 1
        if not self._holders[adapter.digest]:
            del self._holders[adapter.digest]

    def forget(self, adapter: AdapterFolder) -> None:
        """vLLM does not know it any more: the next holder loads it again."""
        self._loads.pop(adapter.digest, None)

    async def _load(self, name: str, folder: Path) -> None:
        try:
            await self._make_room()
            await self._upstream.load(name, folder)
        except BaseException:
            self._loads.pop(name, None)
            raise

    async def _make_room(self) -> None:
        """vLLM itself evicts weights when its slots are full; this bounds the names alone."""
        idle = [name for name in self._loads if name not in self._holders]
        for name in idle[: max(0, len(self._loads) - self._names_max)]:
            del self._loads[name]
            await self._upstream.unload(name)


def zero_adapter(base: BaseModel, artifacts: Path) -> AdapterFolder:
    """An adapter that changes nothing, written below the artifact root.

    On CPU, vLLM 0.32 computes rows without an adapter with whatever lies in the last slot, as soon as they share a batch with
    adapters; unloading a name does not empty its slot. Base requests therefore go through this adapter there.
    """
    folder = artifacts.resolve() / ZERO_FOLDER
    folder.mkdir(parents=True, exist_ok=True)
    prefix = "base_model.model.model.layers.0.self_attn.o_proj.lora_"
    shapes = {"A": (ZERO_RANK, base.shape.q_width), "B": (base.shape.hidden, ZERO_RANK)}
    save_file({f"{prefix}{half}.weight": zeros(*shape) for half, shape in shapes.items()}, folder / WEIGHTS_NAME)
    (folder / CONFIG_NAME).write_text(ZERO_CONFIG)
    return AdapterFolder(ZERO_NAME, ZERO_RANK, folder)
