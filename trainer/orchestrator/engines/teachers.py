"""The frozen models that teach a run's environments: loaded before the first rollout, there until the attempt ends.

Knows which environment has which teacher. Refuses to know what they teach. A teacher answers under its own engine name beside
the run's policy versions; it is never retired and never unloaded from here, since others may use it too.
"""

from collections.abc import Mapping
from pathlib import Path

from trainer.contracts.internal import ServedModel
from trainer.orchestrator.engines.client import Engines
from trainer.orchestrator.engines.policies import PolicyTable
from trainer.orchestrator.engines.publishing import load_served


class Teachers:
    """`served` has an entry for each environment that has a teacher, by the environment's name."""

    def __init__(self, served: Mapping[str, ServedModel], artifact_root: Path, *, engines: Engines, policies: PolicyTable):
        self._served = served
        self._artifact_root = artifact_root
        self._engines = engines
        self._policies = policies

    def name_of(self, environment: str) -> str | None:
        """Engine name of the environment's teacher."""
        served = self._served.get(environment)
        return served.engine_name if served else None

    async def load(self) -> None:
        """Each teacher once, however many environments share it. Raises AttemptOver when an engine refuses one."""
        for served in {served.engine_name: served for served in self._served.values()}.values():
            self._policies.add(await load_served(served, self._artifact_root, self._engines))
