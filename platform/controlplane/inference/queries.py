"""Reads of the gateway: which models a caller may name, at which price, and what was asked so far."""

from django.db.models import QuerySet

from controlplane.adapters.models import Adapter
from controlplane.adapters.queries import deployed_adapters
from controlplane.billing.queries import price_in_force
from controlplane.core import clock
from controlplane.inference.models import InferenceRequest
from controlplane.inference.schemas import ModelRow, ModelSpecs, Pricing
from controlplane.pools.queries import base_models_served
from controlplane.teams.models import Team
from trainer.contracts.catalogue import BaseModelSpec, load_catalogue
from trainer.contracts.events import Meter
from trainer.contracts.generation import TOKENS_OUT_MAX

OWNER = "rootstock"


def served_models(team: Team | None) -> list[ModelRow]:
    """Base models that some pool runs, and the team's deployed adapters on them. Without a team the base models alone."""
    served = base_models_served()
    bases = {spec.id: _base_row(spec) for spec in load_catalogue().values() if spec.id in served}
    adapters = deployed_adapters(team) if team else []
    return [
        *bases.values(),
        *(_adapter_row(adapter, bases[adapter.base_model]) for adapter in adapters if adapter.base_model in bases),
    ]


def team_requests(team: Team) -> QuerySet[InferenceRequest]:
    return InferenceRequest.objects.filter(team=team)


def _base_row(spec: BaseModelSpec) -> ModelRow:
    return ModelRow(
        id=spec.id,
        created=0,
        owned_by=OWNER,
        display_name=spec.display_name,
        pricing=_pricing(spec.id),
        specs=ModelSpecs(context_window=spec.context_tokens, max_output_tokens=min(spec.context_tokens, TOKENS_OUT_MAX)),
    )


def _adapter_row(adapter: Adapter, base: ModelRow) -> ModelRow:
    return base.model_copy(
        update={
            "id": adapter.served_name,
            "created": int(adapter.created_at.timestamp()),
            "owned_by": adapter.team_id,
            "display_name": adapter.display_name,
            "parent": base.id,
            "adapter_digest": adapter.digest,
        }
    )


def _pricing(model: str) -> Pricing | None:
    moment = clock.now()
    price_in = price_in_force(model, Meter.INFERENCE_INPUT_TOKENS, moment)
    price_out = price_in_force(model, Meter.INFERENCE_OUTPUT_TOKENS, moment)
    if price_in is None or price_out is None:
        return None
    return Pricing(input_usd_per_mtok=float(price_in), output_usd_per_mtok=float(price_out))
