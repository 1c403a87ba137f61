"""Which models play agents of environments instead of the policy or the evaluated model, resolved to what the engines serve.

Knows the doors of adapters, and that the engines of a pool serve one base model and its adapters. Whoever cannot play is refused
by field. Whether an environment has such an agent is known to its own code alone: the sandbox says so. Writes nothing.
"""

from collections.abc import Mapping
from typing import Any

from controlplane.adapters.access import resolve_served_model
from controlplane.adapters.errors import UnknownModel
from controlplane.core.errors import Invalid
from controlplane.teams.actors import Actor
from trainer.contracts.run_config import EnvironmentRef, RunConfig, Seat
from trainer.contracts.teaching import Location


def resolve_seats(actor: Actor, config: RunConfig) -> list[dict[str, Any]]:
    """One entry per release of the run, as it is kept (contracts.ServedModel by agent); empty when the policy plays everybody.
    Raises Invalid or NotFound."""
    trained: list[tuple[Location, EnvironmentRef]] = [
        (("body", "environments", index), ref) for index, ref in enumerate(config.environments)
    ]
    plan = config.eval.environments if config.eval else []
    evaluated: list[tuple[Location, EnvironmentRef]] = [
        (("body", "eval", "environments", index), ref) for index, ref in enumerate(plan)
    ]
    seats = [players_of(actor, ref.seats, config.model.name, (*loc, "seats")) for loc, ref in [*trained, *evaluated]]
    return seats if any(seats) else []


def players_of(actor: Actor, seats: Mapping[str, Seat], base_model: str, loc: Location) -> dict[str, Any]:
    """Who plays each agent (contracts.ServedModel). `loc` is where `seats` stands in the request. Raises Invalid or NotFound."""
    return {name: _served(actor, base_model, seat, (*loc, name, "model", "name")) for name, seat in seats.items()}


def _served(actor: Actor, base_model: str, seat: Seat, loc: Location) -> dict[str, Any]:
    try:
        served, spec, _ = resolve_served_model(actor, seat.model.name)
    except UnknownModel as error:
        raise Invalid(loc, error.detail, hint=error.hint) from None
    if spec.id != base_model:
        raise Invalid(
            loc,
            f"{seat.model.name} stands on {spec.id}, not on {base_model}: the engines serve no other base model",
            hint=f"Name {base_model} itself, or an adapter of it.",
        )
    return served.model_dump(mode="json")
