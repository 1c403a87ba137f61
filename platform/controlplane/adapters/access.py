"""The only place that looks an adapter or a served model up. Foreign and absent look the same."""

from typing import NamedTuple

from django.db.models import QuerySet

from controlplane.adapters.errors import UnknownModel
from controlplane.adapters.models import Adapter, Export
from controlplane.core.errors import NotFound
from controlplane.teams.access import enter_team_of
from controlplane.teams.actors import Actor
from trainer.contracts.catalogue import BaseModelSpec, load_catalogue
from trainer.contracts.internal import ServedModel
from trainer.contracts.names import split_served_name

STEPS_NAMED_MAX = 20


class Resolved(NamedTuple):
    """What a served name stands for: the engine's name for it, the base it stands on, and the adapter where there is one."""

    served: ServedModel
    base: BaseModelSpec
    adapter: Adapter | None

    @property
    def public_name(self) -> str:
        return self.adapter.served_name if self.adapter else self.base.id


def access_adapter(actor: Actor, adapter_id: str, *, lock: bool = False) -> Adapter:
    """A kept adapter of the actor's team."""
    return _one(actor, lock=lock, id=adapter_id, is_kept=True)


def access_version(actor: Actor, run_id: str, version: int, *, lock: bool = False) -> Adapter:
    """Any reported version of a run of the actor's team, kept or not."""
    return _one(actor, lock=lock, run_id=run_id, version=version)


def resolve_served_model(actor: Actor, name: str) -> Resolved:
    """`base`, `base:adapter_id` or `name@step` → what it stands for. Raises UnknownModel (404) naming it.

    `name@step` is the newest run of that name that kept a version at that step. Whether the adapter is deployed is not asked
    here: an evaluation loads what it needs itself.
    """
    base, adapter_id = split_served_name(name)
    run_name, at, step = name.rpartition("@")
    adapter = None
    if adapter_id is not None:
        adapter = _adapters_of(actor).filter(id=adapter_id, base_model=base).first()
    elif at and step.isdecimal() and len(step) <= 9:
        adapter = _adapters_of(actor).filter(run__name=run_name, step=int(step)).order_by("-created_at").first()
    spec = load_catalogue().get(adapter.base_model if adapter else name)
    if spec is None:
        raise UnknownModel(name, steps=_steps_of(actor, run_name) if at else [])
    return Resolved(_served(spec, adapter), spec, adapter)


def _steps_of(actor: Actor, run_name: str) -> list[int]:
    """At which steps runs of that name of the actor's team have kept a version, the newest first."""
    steps = _adapters_of(actor).filter(run__name=run_name).order_by("-step").values_list("step", flat=True)
    return list(steps.distinct()[:STEPS_NAMED_MAX])


def lock_for_reconciler(adapter_id: str, generation: int) -> Adapter | None:
    """For the worker alone: the adapter, while the wish that it worked for is still the newest."""
    adapters = Adapter.objects.select_for_update(no_key=True, of=("self",))
    return adapters.filter(id=adapter_id, generation=generation).first()


def adapter_for_reconciler(adapter_id: str) -> Adapter:
    """For the worker alone, which acts for no team."""
    return Adapter.objects.select_related("run", "pool").get(id=adapter_id)


def access_export(actor: Actor, export_id: str) -> Export:
    """An export of the actor's team, or of another team of the same user: a download link carries no team."""
    rows = Export.objects.select_related("adapter").filter(id=export_id)
    export = rows.filter(team=actor.team).first()
    if export is None and (team_id := enter_team_of(actor, rows)):
        export = rows.filter(team_id=team_id).first()
    if export is None:
        raise NotFound(f"There is no export '{export_id}'.", hint="`prime adapters download ADAPTER` makes one.")
    return export


def lock_export(export_id: str) -> Export | None:
    """For leased work and the worker alone."""
    exports = Export.objects.select_for_update(no_key=True, of=("self",)).select_related("adapter__pool", "adapter__run")
    return exports.filter(id=export_id).first()


def _one(actor: Actor, *, lock: bool, **fields: object) -> Adapter:
    adapters = Adapter.objects.select_related("run")
    if lock:
        adapters = adapters.select_for_update(no_key=True, of=("self",))
    adapter = adapters.filter(team=actor.team, **fields).first()
    if adapter is None:
        raise NotFound(f"There is no adapter '{next(iter(fields.values()))}'.", hint="`prime deployments list` shows yours.")
    return adapter


def _adapters_of(actor: Actor) -> QuerySet[Adapter]:
    return Adapter.objects.select_related("run", "pool").filter(team=actor.team, is_kept=True)


def _served(spec: BaseModelSpec, adapter: Adapter | None) -> ServedModel:
    if adapter is None:
        return ServedModel(engine_name=spec.id)
    return ServedModel(engine_name=adapter.engine_name, adapter_path=adapter.path, adapter_digest=adapter.digest)
