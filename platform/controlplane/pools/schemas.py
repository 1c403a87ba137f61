"""How the installation looks on the wire. Knows spelling only."""

from datetime import datetime
from importlib.metadata import version
from typing import Self

from controlplane.core.schemas import Answer
from controlplane.pools.models import Pool
from controlplane.pools.queries import SandboxRecord

PACKAGE = "rootstock-lab"


class PoolAnswer(Answer):
    name: str
    base_model: str
    engine: str
    run_slots: int
    runs: int


class SandboxAnswer(Answer):
    """Of the newest boxes that checked a release: how many ended by themselves, and how many were lost."""

    last_at: datetime | None
    ended: int
    lost: int


class InstallationAnswer(Answer):
    version: str
    pools: list[PoolAnswer]
    sandbox: SandboxAnswer

    @classmethod
    def of(cls, pools: list[tuple[Pool, int]], sandbox: SandboxRecord) -> Self:
        shown = [
            PoolAnswer(name=pool.name, base_model=pool.base_model, engine=pool.engine, run_slots=pool.run_slots, runs=runs)
            for pool, runs in pools
        ]
        told = SandboxAnswer(last_at=sandbox.last_at, ended=sandbox.ended, lost=sandbox.lost)
        return cls(version=version(PACKAGE), pools=shown, sandbox=told)
