"""Models behind somebody else's API: which addresses and keys an evaluation may name, and what its orchestrator is told of them.

Knows which of an evaluation's options go together. Refuses to call anything: who connects checks where the name leads.
"""

from django.conf import settings

from controlplane.core.addresses import check_address
from controlplane.core.errors import Invalid
from controlplane.evals.models import Evaluation
from controlplane.evals.request import EvalOptions
from controlplane.secrets.queries import team_secret
from trainer.contracts.internal import ExternalModel

AT = ("body", "eval_config")


def check_external(team_id: str, options: EvalOptions) -> None:
    """Raises Invalid (422) naming what is wrong with the address or the key."""
    if options.api_base_url is None:
        if options.api_key_var is not None:
            raise Invalid((*AT, "api_key_var"), "goes with api_base_url")
        return
    check_address((*AT, "api_base_url"), options.api_base_url, may_be_private=settings.PRIVATE_MODELS)
    if options.seats:
        raise Invalid((*AT, "seats"), "an external model plays every agent; leave the seats out")
    name = options.api_key_var
    if name is not None and name not in options.custom_secrets and team_secret(team_id, name) is None:
        hint = f"`prime secret create --name {name}` keeps it for the team; custom_secrets sends it for this evaluation alone."
        raise Invalid((*AT, "api_key_var"), f"the team has no secret {name}", hint=hint)


def external_of(evaluation: Evaluation, secrets: dict[str, str]) -> ExternalModel | None:
    """What the orchestrator is told. The key is the evaluation's own secret, else the team's; out of `secrets`, which go into the
    sandbox, it is taken."""
    config = evaluation.config or {}
    if not config.get("api_base_url"):
        return None
    name = config.get("api_key_var") or ""
    key = secrets.pop(name, None) or (team_secret(evaluation.team_id, name) if name else None) or ""
    return ExternalModel(
        base_url=config["api_base_url"], model=config["model"], api_key=key, may_be_private=settings.PRIVATE_MODELS
    )
