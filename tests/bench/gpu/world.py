"""One random model on the device as trainer and engine load it, and versions of adapters that the one wrote for the other.

Knows folders and how parts are put together. Refuses to know what is measured. Files are real: the same code reads and writes
them that does so in service.
"""

import json
from functools import cached_property
from pathlib import Path

import torch

from tests.bench.gpu.scale import Scale
from tests.factories.tiny_llama import make_model
from tests.numerics.recorded import TEAM, run_id
from trainer.contracts.adapters import LoraSpec, adapter_path
from trainer.contracts.generation import AdapterIdentity, SamplingParams
from trainer.core.adapters import Adapter
from trainer.core.llama import Llama as TrainedLlama
from trainer.core.pool import Pool, PoolLimits
from trainer.core.tenants import RunSpec
from trainer.core.versions import VersionStore
from trainer.inference.adapter_files import AdapterReader
from trainer.inference.core import EngineCore
from trainer.inference.limits import MIB, EngineLimits
from trainer.inference.llama import LlamaShape, load_llama
from trainer.inference.lora import AdapterWeights
from trainer.inference.sequence import Sequence

ENGINE = EngineLimits(sequences_max=128, kv_cache_bytes=4096 * MIB, adapter_slots=16, adapter_ram_bytes=4096 * MIB)
LEARNED = 0.02
"""How far a parameter lies from where training would start: B ≠ 0, so that an adapter that is not applied is seen."""


class World:
    def __init__(self, root: Path, scale: Scale, device: torch.device, *, exact: bool = False) -> None:
        """`exact`: the smaller model, in float32."""
        self.root, self.scale, self.device = root / ("exact" if exact else "measured"), scale, device
        self.dtype = torch.float32 if exact else torch.bfloat16
        shape = scale.exact_model if exact else scale.model
        self.folder = make_model(self.root / "base", seed=1, device=device, dtype=self.dtype, **shape)
        self.lora = LoraSpec(rank=scale.rank)

    @cached_property
    def trained(self) -> TrainedLlama:
        return TrainedLlama(self.folder, self.dtype, self.device)

    @cached_property
    def digest(self) -> str:
        return self.trained.digest_now()

    @cached_property
    def core(self) -> EngineCore:
        return EngineCore(load_llama(self.folder, device=self.device, dtype=self.dtype), ENGINE)

    @cached_property
    def reader(self) -> AdapterReader:
        shape = LlamaShape.from_config(json.loads((self.folder / "config.json").read_text()))
        return AdapterReader(root=self.root, shape=shape, base_digest=self.digest, rank_max=self.scale.rank)

    def pool(self, name: str, runs: list[str], *, strict: bool = False) -> Pool:
        """With these runs open, each somewhere behind its start."""
        limits = PoolLimits(slots=len(runs), pack_tokens=self.scale.pack_tokens, strict=strict)
        pool = Pool(self.trained, base_model="random", artifact_root=self.root / name, limits=limits)
        for seed, run in enumerate(runs):
            pool.open(run, RunSpec(team_id=TEAM, lora=self.lora, seed=seed))
            self._move(pool.tenant(run).adapter, seed)
        return pool

    def adapter(self, seed: int) -> Adapter:
        adapter = Adapter(self.lora, self.trained.targets, torch.float32, self.device)
        adapter.initialise(torch.Generator().manual_seed(seed))
        self._move(adapter, seed)
        return adapter

    def publish(self, adapter: Adapter, version: int) -> Path:
        """The folder of a committed version."""
        store, run = VersionStore(self.root, "random", self.digest), run_id("served")
        store.write(run, TEAM, version, adapter, {})
        return self.root / adapter_path(run, version)

    def served(self, count: int) -> list[AdapterWeights]:
        return [self.reader.read(self.publish(self.adapter(seed), seed), digest=None) for seed in range(1, count + 1)]

    def sequence(
        self, prompt: list[int], adapter: AdapterWeights | None, new_tokens: int, *, temperature: float = 0.0, seed: int = 0
    ) -> Sequence:
        return Sequence(
            id="gpu",
            prompt=prompt,
            sampling=SamplingParams(temperature=temperature, seed=seed),
            identity=AdapterIdentity(name="gpu", digest="0" * 64),
            adapter=adapter,
            max_new=new_tokens,
            deadline_at_s=float("inf"),
        )

    def decode(self, sequences: list[Sequence]) -> None:
        for sequence in sequences:
            self.core.scheduler.add(sequence)
        while self.core.scheduler.has_work:
            self.core.step()

    def prompts(self, count: int) -> list[list[int]]:
        drawn = torch.Generator().manual_seed(0)
        vocabulary, length = self.trained.shape.vocabulary_size, self.scale.prompt_tokens
        found: list[list[int]] = torch.randint(vocabulary, (count, length), generator=drawn).tolist()
        return found

    def settle(self) -> None:
        """Until the device has done what it was told."""
        if self.device.type == "cuda":
            torch.cuda.synchronize(self.device)

    def _move(self, adapter: Adapter, seed: int) -> None:
        drawn = torch.Generator(self.device).manual_seed(seed)
        adapter.params_P.add_(LEARNED * torch.randn(adapter.params_P.shape, generator=drawn, device=self.device))
