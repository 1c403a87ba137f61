"""Making an adapter version answer: loaded on every engine, then current for new groups, and unloaded when nothing needs it.

Knows names, digests and which versions stay deployable. Refuses to know the control plane: who publishes also reports.
"""

from pathlib import Path

from trainer.contracts.adapters import WEIGHTS_NAME
from trainer.contracts.internal import ServedModel
from trainer.contracts.names import AdapterVersionName
from trainer.contracts.run_config import RunConfig
from trainer.orchestrator.engines.client import Engines, Published
from trainer.orchestrator.engines.policies import Policy, PolicyTable


async def load_served(served: ServedModel, artifact_root: Path, engines: Engines) -> Policy:
    """A model that is not the run's own, loaded on every engine where it is an adapter version. Others may use it too: it is
    never unloaded from here. Raises AttemptOver when an engine refuses it."""
    if served.adapter_path is None or served.adapter_digest is None:
        return Policy(served.engine_name, await engines.base_digest(served.engine_name))
    path = artifact_root / served.adapter_path
    policy = Policy(served.engine_name, served.adapter_digest, path=str(path), keep=True)
    await engines.load(policy)
    return policy


class Publisher:
    def __init__(self, run_id: str, config: RunConfig, artifact_root: Path, *, engines: Engines, policies: PolicyTable):
        self._run_id = run_id
        self._config = config
        self._artifact_root = artifact_root
        self._engines = engines
        self._policies = policies

    def policy(self, step: int, digest: str, path: str) -> Policy:
        """Version `step` of the run: the adapter after that many optimizer steps."""
        return Policy(
            engine_name=str(AdapterVersionName(self._run_id, step)),
            digest=digest,
            version=step,
            path=str(self._artifact_root / path),
            keep=self.is_kept(step),
        )

    def is_kept(self, step: int) -> bool:
        """Whether the version stays deployable, as `adapters.interval` asks."""
        interval = self._config.adapters.interval
        return step == self._config.max_steps or (interval > 0 and step > 0 and step % interval == 0)

    def size_bytes(self, path: str) -> int:
        """Size of a version's weights on disk; 0 where this host cannot see them."""
        weights = self._artifact_root / path / WEIGHTS_NAME
        return weights.stat().st_size if weights.exists() else 0

    async def publish(self, policy: Policy) -> Published:
        """The next group is dispatched on this version. Rollouts in flight stay on theirs."""
        published = await self._engines.load(policy)
        self._policies.publish(policy)
        return published

    async def retire(self, versions_in_use: set[int]) -> None:
        for policy in self._policies.retire(versions_in_use):
            await self._engines.unload(policy)
