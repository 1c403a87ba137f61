"""How likely tokens are under a tenant's adapter, by the trainer's own forward pass.

Knows a reference as algorithms ask it. Refuses to know who is a teacher. Questions that are asked at the same time are answered
in one pass.
"""

import asyncio
from collections.abc import Mapping, Sequence

import torch

from tests.numerics.curves.playing import hidden_of
from trainer.core.pool import Pool
from trainer.models.tiny_recipe.tokenizer import encode


@torch.no_grad()
def token_logprobs(pool: Pool, rows: Mapping[str, list[list[int]]]) -> dict[str, list[list[float]]]:
    """Per run and row one log-probability per token at temperature 1, 0.0 for the first."""
    hidden, layout = hidden_of(pool, rows)
    before = torch.cat([torch.as_tensor(places[:-1]) for places in layout.sample_rows])
    behind = torch.tensor([token for some in rows.values() for row in some for token in row[1:]])
    values = pool.model.logits(hidden[before]).float().log_softmax(-1).gather(1, behind[:, None])[:, 0].tolist()
    told = iter(values)
    return {run: [[0.0, *(next(told) for _ in row[1:])] for row in some] for run, some in rows.items()}


class Reader:
    """References to the tenants of a pool."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool
        self._asked: dict[str, list[tuple[list[int], asyncio.Future[list[float]]]]] = {}

    def of(self, run: str | None) -> "RunReference":
        return RunReference(self, run)

    async def read(self, run: str, ids: list[int]) -> list[float]:
        loop = asyncio.get_running_loop()
        if not self._asked:
            loop.call_soon(self._answer)
        answer: asyncio.Future[list[float]] = loop.create_future()
        self._asked.setdefault(run, []).append((ids, answer))
        return await answer

    def _answer(self) -> None:
        asked, self._asked = self._asked, {}
        told = token_logprobs(self._pool, {run: [ids for ids, _ in some] for run, some in asked.items()})
        for run, some in asked.items():
            for (_, answer), logprobs in zip(some, told[run], strict=True):
                answer.set_result(logprobs)


class RunReference:
    """What `run` thinks of tokens now; None asks the policy that sampled them."""

    def __init__(self, reader: Reader, run: str | None) -> None:
        self._reader, self._run = reader, run

    async def logprobs(self, token_ids: Sequence[int], *, policy: str) -> list[float]:
        return await self._reader.read(self._run or policy, list(token_ids))

    def spell(self, text: str) -> list[int]:
        return encode(text)
