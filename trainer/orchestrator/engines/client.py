"""Loading and unloading adapter versions on every inference replica, and loading them again on one that has restarted.

Knows replicas and the engine's load calls. Refuses to know rollouts. An engine verifies the digest itself; a name that is
loaded under another digest is a defect that ends the attempt.
"""

import asyncio
import time
from dataclasses import dataclass

from trainer.contracts.events import FailureCode
from trainer.contracts.generation import AdapterLoaded, LoadAdapter, ModelCard, UnloadAdapter
from trainer.orchestrator.attempt.endings import failed
from trainer.orchestrator.attempt.services import Service
from trainer.orchestrator.engines.policies import Policy


@dataclass(frozen=True, slots=True)
class Published:
    """`requests_in_flight`: sequences that were decoding on the replicas when the version became available."""

    requests_in_flight: int
    load_s: float


class Engines:
    def __init__(self, replicas: list[Service]):
        self._replicas = replicas
        self._reloading: dict[str, asyncio.Task[Published]] = {}

    async def load(self, policy: Policy) -> Published:
        """Load a version on each replica; returns once all have it."""
        started_s = time.monotonic()
        loaded = await asyncio.gather(*(self._load_one(replica, policy) for replica in self._replicas))
        return Published(sum(reply.requests_in_flight for reply in loaded), time.monotonic() - started_s)

    async def reload(self, policy: Policy) -> None:
        """Load again after an engine forgot the version; callers that come meanwhile share the one attempt."""
        task = self._reloading.get(policy.engine_name)
        if task is None:
            task = asyncio.create_task(self.load(policy), name=f"reload {policy.engine_name}")
            self._reloading[policy.engine_name] = task
            task.add_done_callback(lambda _: self._reloading.pop(policy.engine_name, None))
        await asyncio.shield(task)

    async def unload(self, policy: Policy) -> None:
        """Free a version's slot. A replica that does not know it has nothing to free."""
        request = UnloadAdapter(lora_name=policy.engine_name)
        for replica in self._replicas:
            await replica.call("POST", "/v1/unload_lora_adapter", request)

    async def base_digest(self, model_id: str) -> str:
        """Digest of the base weights, as the first replica's model list names it."""
        response = await self._replicas[0].call("GET", "/v1/models")
        cards = [ModelCard.model_validate(card) for card in response.raise_for_status().json()["data"]]
        for card in cards:
            if card.id == model_id:
                return card.digest
        raise failed(FailureCode.INTERNAL, f"the inference server does not serve the base model {model_id}")

    async def _load_one(self, replica: Service, policy: Policy) -> AdapterLoaded:
        if policy.path is None:
            raise ValueError(f"{policy.engine_name} is a base model: there is nothing to load")
        request = LoadAdapter(lora_name=policy.engine_name, lora_path=policy.path, digest=policy.digest)
        response = await replica.call("POST", "/v1/load_lora_adapter", request)
        if not response.is_success:
            raise failed(
                FailureCode.INTERNAL,
                f"{replica.name} refused adapter {policy.engine_name} ({response.status_code}): {response.text[:1000]}",
            )
        return AdapterLoaded.model_validate_json(response.content)
