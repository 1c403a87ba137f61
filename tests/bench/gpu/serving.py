"""The engine's share of the check: tokens a second, whom a hot load keeps waiting, and whether the trainer computes the same.

A load goes the way that it goes in service: a loader thread reads and checks the files, the engine's thread copies into a slot.
"""

import asyncio
import statistics
import time
from collections.abc import Awaitable
from itertools import pairwise

import numpy as np
import torch
from torch import Tensor

from tests.bench.gpu.figures import Figure
from tests.bench.gpu.world import ENGINE, World
from trainer.core.adapter_stack import AdapterStack
from trainer.core.adapters import Adapter
from trainer.core.layout import lay_out
from trainer.core.token_scores import TokenScores
from trainer.inference.adapter_store import AdapterStore
from trainer.inference.backend import Ticket
from trainer.inference.engine import Engine
from trainer.inference.lora import AdapterWeights
from trainer.inference.metrics import EngineMetrics
from trainer.inference.sequence import Sequence

ADAPTERS = 8


def speed(world: World) -> list[Figure]:
    """Kinds in turn, so that a device that slows down slows all."""
    served, rows = world.served(ADAPTERS), world.scale.rows
    kinds: dict[str, list[AdapterWeights | None]] = {
        "engine.base": [None] * rows,
        "engine.1": [served[0]] * rows,
        "engine.8": [served[row % ADAPTERS] for row in range(rows)],
    }
    for adapters in kinds.values():
        _decode_s(world, adapters)
    taken_s = {name: [] for name in kinds}
    for _ in range(world.scale.trials):
        for name, adapters in kinds.items():
            taken_s[name].append(_decode_s(world, adapters))
    tokens = rows * world.scale.new_tokens
    return [Figure(name, tokens / statistics.median(found)) for name, found in taken_s.items()]


def _decode_s(world: World, adapters: list[AdapterWeights | None]) -> float:
    prompts = world.prompts(len(adapters))
    sequences = [world.sequence(*one, world.scale.new_tokens) for one in zip(prompts, adapters, strict=True)]
    world.settle()
    began_s = time.monotonic()
    world.decode(sequences)
    return time.monotonic() - began_s


def swap(world: World) -> list[Figure]:
    folders = [world.publish(world.adapter(seed), seed) for seed in range(101, 101 + world.scale.swaps)]
    return [Figure("swap", asyncio.run(_stall(world, [str(folder) for folder in folders])))]


async def _stall(world: World, folders: list[str]) -> float:
    """(p99 of the gaps between a row's tokens while versions are loaded − a decode step) ÷ a decode step."""
    metrics = EngineMetrics()
    engine = Engine(world.core, ENGINE, metrics, on_fatal=lambda: None)
    store = AdapterStore(world.reader, ENGINE, metrics, reserved_name="base")
    await engine.start()
    watching: list[asyncio.Task[None]] = []
    try:
        tickets = [engine.submit(_long(world, prompt)) for prompt in world.prompts(world.scale.rows)]
        seen_s: list[float] = []
        watching.append(asyncio.create_task(_watch(tickets[0], seen_s)))
        await tickets[-1].progress()
        quiet = await _between(seen_s, asyncio.sleep(0.02 * world.scale.new_tokens))
        loading = await _between(seen_s, _load_all(world, engine, store, folders))
        if tickets[0].sequence.is_finished:
            raise ValueError("the rows that were watched ended before the last load")
        step_s = statistics.median(quiet)
        return max(0.0, float(np.quantile(loading, 0.99)) - step_s) / step_s
    finally:
        for task in watching:
            task.cancel()
        await engine.stop()
        store.close()


def _long(world: World, prompt: list[int]) -> Sequence:
    """Decodes until the context is full."""
    sequence = world.sequence(prompt, None, world.trained.shape.context_tokens - len(prompt))
    sequence.streams = True
    return sequence


async def _watch(ticket: Ticket, seen_s: list[float]) -> None:
    while not ticket.sequence.is_finished:
        await ticket.progress()
        seen_s.append(time.monotonic())


async def _between(seen_s: list[float], work: Awaitable[None]) -> list[float]:
    """Gaps between the tokens that come while some work is done."""
    start = len(seen_s)
    await work
    return [after - before for before, after in pairwise(seen_s[start:])]


async def _load_all(world: World, engine: Engine, store: AdapterStore, folders: list[str]) -> None:
    """One after the other, each used at once: a slot is filled when the first request comes."""
    for index, folder in enumerate(folders):
        await store.register(f"v{index}", folder, None)
        _, weights = await store.weights(f"v{index}")
        await engine.submit(world.sequence(world.prompts(1)[0], weights, 4)).finished()


def agreement(world: World) -> list[Figure]:
    """Mean gap between the log-probabilities that the engine sampled with and those that the trainer computes."""
    adapter = world.adapter(201)
    served = world.reader.read(world.publish(adapter, 201), digest=None)
    prompts, new_tokens = world.prompts(4), world.scale.new_tokens
    sequences = [world.sequence(prompt, served, new_tokens, temperature=1.0, seed=seed) for seed, prompt in enumerate(prompts)]
    world.decode(sequences)
    gaps = torch.cat([(_trained(world, adapter, one) - torch.tensor(one.logprobs)).abs() for one in sequences])
    return [Figure(f"agreement.{str(world.dtype).removeprefix('torch.')}", float(gaps.mean()))]


@torch.no_grad()
def _trained(world: World, adapter: Adapter, sequence: Sequence) -> Tensor:
    """The trainer's log-probabilities of what was sampled."""
    model, ids = world.trained, np.array([*sequence.prompt, *sequence.token_ids], dtype=np.int64)
    layout = lay_out([ids], [len(ids)])
    stack = AdapterStack([adapter], model.targets, layout.group_rows, dtype=model.dtype)
    hidden_TH = model.hidden(layout.to(model.device), stack)[len(sequence.prompt) - 1 : -1]
    targets_P = torch.tensor(sequence.token_ids, device=model.device)
    ones_P = torch.ones(len(targets_P), device=model.device)
    return TokenScores.of(model.last_norm(hidden_TH), model.head_VH, targets_P, ones_P).logprob_C.cpu()
