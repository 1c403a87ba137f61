"""Which adapters this engine knows, and which of them are in RAM. Knows names, digests, and the order of last use.

Refuses to know slots and requests: a sequence holds its weights itself, so a version goes when the last holder lets go. Reading
happens on a loader thread; the event loop and the engine thread never touch the disk.
"""

import asyncio
import time
from collections import OrderedDict
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from trainer.inference.errors import BadRequest, ModelNotFound, NameTaken, Saturated
from trainer.inference.limits import EngineLimits
from trainer.inference.metrics import EngineMetrics
from trainer.inference.sequence import Adapter


class Reader(Protocol):
    """Turns a version's folder into what the backend holds, after checking everything."""

    def folder(self, path: str) -> Path:
        """Raises InvalidAdapter for a path that leads outside."""

    def read(self, folder: Path, *, digest: str | None) -> Adapter:
        """Raises InvalidAdapter."""


@dataclass(frozen=True, slots=True)
class Registered:
    """A name that requests may use. It never changes its digest."""

    name: str
    digest: str
    folder: Path
    created_s: int


class AdapterStore:
    """Lives on the event loop; not thread safe, and needs not be."""

    def __init__(self, reader: Reader, limits: EngineLimits, metrics: EngineMetrics, *, reserved_name: str):
        self._reader = reader
        self._limits = limits
        self._metrics = metrics
        self._reserved_name = reserved_name
        self._registered: dict[str, Registered] = {}
        self._resident: OrderedDict[str, Adapter] = OrderedDict()
        self._reads: dict[tuple[Path, str | None], asyncio.Task[Adapter]] = {}
        self._threads = ThreadPoolExecutor(max_workers=1, thread_name_prefix="adapter-loader")

    async def register(self, name: str, path: str, digest: str | None) -> Registered:
        """Make a name known and its weights resident. Again with the same digest: the same answer; with another: NameTaken."""
        if name == self._reserved_name or not name:
            raise BadRequest(f"'{name}' cannot name an adapter", param="lora_name")
        folder = self._reader.folder(path)
        known = self._registered.get(name)
        if known is not None and digest == known.digest:
            return known
        if known is None and len(self._registered) >= self._limits.adapters_registered_max:
            raise Saturated(f"{self._limits.adapters_registered_max} adapters are registered; unload one first")
        weights = await self._read(folder, digest)
        return self._claim(Registered(name, weights.digest, folder, int(time.time())))

    def _claim(self, new: Registered) -> Registered:
        """Decided after the read, without an await: of two racing loads one wins."""
        known = self._registered.setdefault(new.name, new)
        if known.digest != new.digest:
            raise NameTaken(
                f"'{new.name}' is loaded with digest {known.digest}; a name is never reloaded with other weights ({new.digest})",
                param="lora_name",
            )
        self._metrics.adapters_registered.set(len(self._registered))
        return known

    def unregister(self, name: str) -> None:
        """New requests no longer find the name; those that run keep their weights to the end."""
        known = self._registered.pop(name, None)
        if known is None:
            raise ModelNotFound(f"no adapter '{name}' is loaded", param="lora_name")
        if all(other.digest != known.digest for other in self._registered.values()):
            self._resident.pop(known.digest, None)
        self._report()

    async def weights(self, name: str) -> tuple[Registered, Adapter]:
        """The weights behind a registered name, read again from disk where RAM had to be given up."""
        known = self._registered.get(name)
        if known is None:
            raise ModelNotFound(f"the model '{name}' does not exist", param="model")
        weights = self._resident.get(known.digest)
        if weights is None:
            weights = await self._read(known.folder, known.digest)
        self._resident_use(weights)
        return known, weights

    def list(self) -> list[Registered]:
        return list(self._registered.values())

    def close(self) -> None:
        self._threads.shutdown(wait=True, cancel_futures=True)

    async def _read(self, folder: Path, digest: str | None) -> Adapter:
        """One read at a time for one version, however many requests wait for it."""
        key = (folder, digest)
        if key not in self._reads:
            self._reads[key] = asyncio.create_task(self._read_once(folder, digest))
            self._reads[key].add_done_callback(lambda _: self._reads.pop(key))
        # Shielded: the reader that gives up must not take the file away from the others.
        return await asyncio.shield(self._reads[key])

    async def _read_once(self, folder: Path, digest: str | None) -> Adapter:
        started_s = time.perf_counter()
        loop = asyncio.get_running_loop()
        weights = await loop.run_in_executor(self._threads, lambda: self._reader.read(folder, digest=digest))
        self._metrics.adapter_loads.inc()
        self._metrics.adapter_load_s.observe(time.perf_counter() - started_s)
        self._resident_use(weights)
        return weights

    def _resident_use(self, weights: Adapter) -> None:
        self._resident[weights.digest] = weights
        self._resident.move_to_end(weights.digest)
        while len(self._resident) > 1 and self._resident_bytes() > self._limits.adapter_ram_bytes:
            self._resident.popitem(last=False)
        self._report()

    def _resident_bytes(self) -> int:
        return sum(weights.size_bytes for weights in self._resident.values())

    def _report(self) -> None:
        self._metrics.adapters_registered.set(len(self._registered))
        self._metrics.adapters_resident.set(len(self._resident))
        self._metrics.adapter_ram_bytes.set(self._resident_bytes())
