"""Asking the engines how busy they are, every few seconds, for whoever decides how many rollouts are in flight.

Knows the replicas' `/metrics`. Refuses to decide. Of an engine that does not answer nothing is observed.
"""

import asyncio
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import httpx

from trainer.orchestrator.engines.concurrency import InflightLimit, load_of

POLL_S = 2.0
ANSWER_S = 5.0


@dataclass(frozen=True, slots=True)
class EngineLoads:
    """`inflight` counts the run's rollouts; `on_change` is called when there may be room."""

    http: httpx.AsyncClient
    urls: Sequence[str]
    limit: InflightLimit
    inflight: Callable[[], int]
    on_change: Callable[[], None]

    async def run(self) -> None:
        """Until cancelled."""
        while True:
            await self.look()
            await asyncio.sleep(POLL_S)

    async def look(self) -> None:
        try:
            answers = await asyncio.gather(*(self.http.get(f"{url}/metrics", timeout=ANSWER_S) for url in self.urls))
        except httpx.TransportError:
            return
        load = load_of(answer.text for answer in answers) if all(answer.is_success for answer in answers) else None
        if load is not None:
            self.limit.observe(load, inflight=self.inflight(), now_s=time.monotonic())
            self.on_change()
