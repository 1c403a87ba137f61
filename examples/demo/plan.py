"""What a demo does with a base model: one TOML per model beside this file. Knows names and figures, nothing of what they mean."""

import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent


@dataclass(frozen=True)
class TeamPlan:
    """`environment` is a folder of examples/environments, `config` a file of examples/configs."""

    name: str
    environment: str
    config: str

    @property
    def package(self) -> str:
        """The environment's name in the hub."""
        return self.environment.replace("_", "-")


@dataclass(frozen=True)
class Gates:
    """Figures of each team with their limits, and how many packs must have carried all runs."""

    packs_shared_min: int
    at_most: dict[str, float]
    at_least: dict[str, float]


@dataclass(frozen=True)
class Plan:
    """`first_steps`: over how many steps the reward at the start is averaged. `rollouts`: of each evaluation."""

    model: str
    question: str
    instruction: str
    """The system message of the question that is asked before and after; empty for none."""
    reply_tokens: int
    steps: int
    rollouts: int
    first_steps: int
    run_deadline_s: float
    teams: tuple[TeamPlan, ...]
    gates: Gates

    @classmethod
    def read(cls, model: str) -> "Plan":
        document: dict[str, Any] = tomllib.loads((FOLDER / f"{model}.toml").read_text())
        teams = tuple(TeamPlan(**entry) for entry in document.pop("team"))
        return cls(model=model, teams=teams, gates=Gates(**document.pop("gates")), **document)


def models() -> list[str]:
    return sorted(path.stem for path in FOLDER.glob("*.toml"))
