"""P1 to P3: greedy decoding of mixed adapters on our engine, against itself, PEFT and plain transformers.

One thread, fp32, the same weights, prompts and lengths on both sides; no end token, so that both sides compute the same steps.
"""

import math
from functools import cache

import numpy as np
import torch
from peft import PeftModel
from transformers import LlamaForCausalLM

from tests.bench.pairs import in_turn
from tests.bench.rows import Bound, Disagreement, Row
from tests.bench.sizes import VOCABULARY, Size, size
from trainer.contracts.catalogue import weights_digest
from trainer.contracts.generation import AdapterIdentity, SamplingParams
from trainer.inference.adapter_files import AdapterReader
from trainer.inference.core import EngineCore
from trainer.inference.limits import EngineLimits
from trainer.inference.llama import load_llama
from trainer.inference.lora import AdapterWeights
from trainer.inference.sequence import Sequence

PROMPT_TOKENS = 32
NEW_TOKENS = 64
AGREEMENT_MIN = 0.99


def prompts(rows: int) -> list[list[int]]:
    return np.random.default_rng(0).integers(0, VOCABULARY, size=(rows, PROMPT_TOKENS)).tolist()


class OurEngine:
    """The engine's core without its server: what a step costs is the question."""

    def __init__(self, chosen: Size) -> None:
        model = load_llama(chosen.model, device=torch.device("cpu"), dtype=torch.float32)
        reader = AdapterReader(root=chosen.root, shape=model.shape, base_digest=weights_digest(chosen.model), rank_max=64)
        self.adapters = [reader.read(folder, digest=None) for folder in chosen.adapters]
        self._core = EngineCore(model, EngineLimits(sequences_max=64))

    def decode(self, adapters: list[AdapterWeights | None]) -> list[list[int]]:
        """New tokens of one row for each adapter."""
        rows = [self._sequence(prompt, adapter) for prompt, adapter in zip(prompts(len(adapters)), adapters, strict=True)]
        for row in rows:
            self._core.scheduler.add(row)
        while self._core.scheduler.has_work:
            self._core.step()
        return [row.token_ids for row in rows]

    def mixed(self, rows: int) -> list[AdapterWeights | None]:
        return [self.adapters[index % len(self.adapters)] for index in range(rows)]

    def _sequence(self, prompt: list[int], adapter: AdapterWeights | None) -> Sequence:
        return Sequence(
            id="bench",
            prompt=prompt,
            sampling=SamplingParams(temperature=0.0),
            identity=AdapterIdentity(name="bench", digest="0" * 64),
            adapter=adapter,
            max_new=NEW_TOKENS,
            deadline_at_s=math.inf,
        )


class Transformers:
    """`generate` with its key-value cache on one static batch, as its documentation advises; adapters by PEFT."""

    def __init__(self, chosen: Size, *, adapters: bool) -> None:
        self.model = LlamaForCausalLM.from_pretrained(chosen.model, dtype=torch.float32)
        if adapters:
            first, *others = chosen.adapters
            self.model = PeftModel.from_pretrained(self.model, first, adapter_name="a0")
            for index, folder in enumerate(others, start=1):
                self.model.load_adapter(folder, adapter_name=f"a{index}")
        self.model.eval()

    @torch.no_grad()
    def decode(self, rows: int, **options: object) -> list[list[int]]:
        ids = torch.tensor(prompts(rows))
        settings = {"do_sample": False, "max_new_tokens": NEW_TOKENS, "min_new_tokens": NEW_TOKENS, "pad_token_id": 0}
        made = self.model.generate(input_ids=ids, attention_mask=torch.ones_like(ids), **settings, **options)
        return made[:, PROMPT_TOKENS:].tolist()

    def mixed(self, rows: int, adapters: int) -> list[list[int]]:
        return self.decode(rows, adapter_names=[f"a{index % adapters}" for index in range(rows)])


engine = cache(OurEngine)
transformers_base = cache(lambda chosen: Transformers(chosen, adapters=False))
peft = cache(lambda chosen: Transformers(chosen, adapters=True))


def require_agreement(ours: list[list[int]], theirs: list[list[int]]) -> None:
    """Greedy tokens equal. A row counts up to its first difference: behind it the two sides answer different questions."""
    compared = equal = 0
    for left, right in zip(ours, theirs, strict=True):
        split = next((place for place, (a, b) in enumerate(zip(left, right, strict=True)) if a != b), len(left))
        compared, equal = compared + min(split + 1, len(left)), equal + split
    if equal < AGREEMENT_MIN * compared:
        raise Disagreement(f"{equal} of {compared} greedy tokens are equal")


def require_tenants_differ(ours: OurEngine, rows: int) -> None:
    """Each adapter answers otherwise than the base model does."""
    base, mixed = ours.decode([None] * rows), ours.decode(ours.mixed(rows))
    same = sum(left == right for left, right in zip(base, mixed, strict=True))
    if same:
        raise Disagreement(f"{same} of {rows} rows answer as the base model does")


def p1(key: str, pairs: int) -> list[float]:
    ours, rows = engine(size(key)), 32
    require_tenants_differ(ours, rows)
    measured = in_turn(lambda: ours.decode(ours.mixed(rows)), lambda: ours.decode([ours.adapters[0]] * rows), pairs)
    return [pair.theirs_s / pair.ours_s for pair in measured]


def p2(key: str, pairs: int) -> list[float]:
    """The geometric mean of 8 and 32 rows, for each pair."""
    ours, theirs, ratios = engine(size(key)), peft(size(key)), []
    for rows in (8, 32):
        require_agreement(ours.decode(ours.mixed(rows)), theirs.mixed(rows, len(ours.adapters)))
        measured = in_turn(
            lambda rows=rows: ours.decode(ours.mixed(rows)), lambda rows=rows: theirs.mixed(rows, len(ours.adapters)), pairs
        )
        ratios.append([pair.theirs_s / pair.ours_s for pair in measured])
    return [math.sqrt(few * many) for few, many in zip(*ratios, strict=True)]


def p3(key: str, pairs: int) -> list[float]:
    ours, theirs, rows = engine(size(key)), transformers_base(size(key)), 32
    require_agreement(ours.decode([None] * rows), theirs.decode(rows))
    require_tenants_differ(ours, rows)
    measured = in_turn(lambda: ours.decode(ours.mixed(rows)), lambda: theirs.decode(rows), pairs)
    return [pair.theirs_s / pair.ours_s for pair in measured]


def rows() -> list[Row]:
    def row(kind: str, key: str, what: str, peer: str, must: float, aim: float) -> Row:
        measure = {"P1": p1, "P2": p2, "P3": p3}[kind]
        return Row(f"{kind}.{key}", what, peer, Bound("higher", must, aim), lambda pairs: measure(key, pairs))

    one, two = "8 adapters mixed ÷ one adapter, tokens/s at 32 rows", "8 adapters mixed ÷ PEFT `adapter_names`, 8 and 32 rows"
    three = "8 adapters mixed ÷ transformers without LoRA, 32 rows"
    return [
        row("P1", "4m", one, "itself", 0.87, 0.97),
        row("P1", "30m", one, "itself", 0.90, 0.97),
        row("P2", "4m", two, "peft", 2.8, 6),
        row("P2", "30m", two, "peft", 2.0, 4),
        row("P3", "4m", three, "transformers", 1.0, 1.5),
        row("P3", "30m", three, "transformers", 1.0, 1.5),
    ]
