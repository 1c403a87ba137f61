"""The models that play agents of environments instead of the policy: the user of a dialogue, the other side of a game.

Knows which agent of which environment has which model. Refuses to know what they say: they are asked over the rollout proxy like
the policy, answer under their own engine names, are never trained, never retired, and never unloaded from here.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path

from trainer.contracts.internal import ServedModel
from trainer.contracts.rollouts import RolloutSampling, SeatModel
from trainer.contracts.run_config import EnvironmentRef
from trainer.orchestrator.engines.client import Engines
from trainer.orchestrator.engines.policies import PolicyTable
from trainer.orchestrator.engines.publishing import load_served


def seat_models(ref: EnvironmentRef, served: Mapping[str, ServedModel], sampling: RolloutSampling) -> dict[str, SeatModel]:
    """The configured agents of one environment with their engine names. `sampling` is the policy's, for what they leave open."""
    return {
        name: SeatModel(
            model=served[name].engine_name,
            temperature=sampling.temperature if seat.temperature is None else seat.temperature,
            max_tokens=seat.max_tokens or sampling.max_tokens,
        )
        for name, seat in ref.seats.items()
    }


async def load_seats(
    seats: Sequence[Mapping[str, ServedModel]], artifact_root: Path, *, engines: Engines, policies: PolicyTable
) -> None:
    """Each model once, however many agents it plays. Raises AttemptOver when an engine refuses one."""
    for served in {served.engine_name: served for agents in seats for served in agents.values()}.values():
        policies.add(await load_served(served, artifact_root, engines))
