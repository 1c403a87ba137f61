"""From a model's public name to the engine that answers for it, for an actor. Foreign and absent look the same."""

from dataclasses import dataclass

from controlplane.adapters.access import Resolved, resolve_served_model
from controlplane.adapters.errors import UnknownModel
from controlplane.adapters.queries import load_order
from controlplane.inference.errors import NotDeployed
from controlplane.pools.access import pool_for_model
from controlplane.pools.errors import NoPool
from controlplane.pools.models import Pool
from controlplane.teams.actors import Actor
from trainer.contracts.generation import LoadAdapter


@dataclass(frozen=True)
class Route:
    """Everything that a request needs to know to be answered and billed; no row, so that it can outlive the database."""

    team_id: str
    key_prefix: str
    public_name: str
    base_model: str
    engine_name: str
    pool_url: str
    engine_urls: tuple[str, ...]
    adapter_id: str = ""
    adapter: LoadAdapter | None = None
    """How to load what is served, where an engine should turn out not to hold it."""

    @property
    def digest(self) -> str:
        """The weights that must answer; empty for a base model, whose digest only the engine knows."""
        return (self.adapter.digest or "") if self.adapter else ""

    @property
    def cache_salt(self) -> str:
        """Separates teams in every prefix cache. The caller cannot choose it."""
        return self.team_id


def route_for(actor: Actor, name: str) -> Route:
    """Raises UnknownModel for what is not the actor's to call, NotDeployed for an adapter of theirs that is not served."""
    resolved = resolve_served_model(actor, name)
    adapter = resolved.adapter
    if adapter is not None and not adapter.is_wanted:
        raise NotDeployed(name)
    pool = _pool_of(resolved, name)
    return Route(
        team_id=actor.team_id,
        key_prefix=actor.key.prefix if actor.key else "",
        public_name=resolved.public_name,
        base_model=resolved.base.id,
        engine_name=resolved.served.engine_name,
        pool_url=pool.pool_url,
        engine_urls=tuple(pool.inference_urls),
        adapter_id=adapter.pk if adapter else "",
        adapter=load_order(adapter) if adapter else None,
    )


def _pool_of(resolved: Resolved, name: str) -> Pool:
    if resolved.adapter is not None and resolved.adapter.pool is not None:
        return resolved.adapter.pool
    try:
        return pool_for_model(resolved.base.id)
    except NoPool:
        raise UnknownModel(name) from None
