"""From the body of `POST /rft/runs` to a validated configuration: legacy keys, fields that we do not serve, secrets.

Knows the public client's spelling. Refuses to know the database: what exists is
`preflight`'s to check.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from pydantic import TypeAdapter, ValidationError

from controlplane.core.errors import Invalid
from controlplane.core.problems import validation_problems
from controlplane.core.schemas import TEAM_FIELDS
from trainer.contracts.run_config import RunConfig, Secret
from trainer.contracts.toml_config import drop_legacy

SECRETS_MAX = 64
NOT_SERVED = {
    "monitoring": "forwarding metrics to another service",
    "temp_scheduler": "a temperature schedule",
    "extra_body": "extra sampling parameters",
    "enable_thinking": "thinking control",
    "reasoning_effort": "reasoning effort",
    "val": "a validation set apart from [eval]",
    "post_batch_filters": "filtering a batch that is cut already (use pre_batch_filters, which fill it again)",
    "cluster_name": "choosing a cluster",
    "compute_size": "choosing a size of compute",
    "tailscale": "private networks",
}
"""Fields of the public client that mean something we do not do. Empty ones are dropped; others are refused by name, since
ignoring them would train something else than was asked for."""
LOSSES = {"rl": None, "sft": "sft", "opd": "opd"}
"""The public client's `loss`, and the algorithm that it stands for; "rl" leaves the choice to `algorithm`."""
_SECRETS = TypeAdapter(list[Secret])


@dataclass(frozen=True)
class RunRequest:
    config: RunConfig
    client_config: dict[str, Any]
    """The free table `run_config`."""
    notices: list[str]
    is_forced: bool
    """Whether the sender insists on a release that failed its check."""
    secrets: dict[str, str] = field(repr=False)


def parse_request(body: Any, *, force: bool = False, notices: Sequence[str] = ()) -> RunRequest:
    """Raises Invalid (422) naming every field that is unknown, malformed, out of range or not served."""
    if not isinstance(body, Mapping):
        raise Invalid(("body",), "the body must be a JSON object")
    rest = {key: value for key, value in body.items() if key not in TEAM_FIELDS}
    client_config = _take_free_table(rest)
    secrets = _take_secrets(rest)
    _take_loss(rest)
    _take_teacher(rest)
    _refuse_unserved(rest)
    kept, legacy = drop_legacy(rest)
    try:
        config = RunConfig.model_validate(kept)
    except ValidationError as error:
        raise _refusal(error, "body") from None
    return RunRequest(config, client_config, [*notices, *legacy], force or client_config.get("force") is True, secrets)


def _take_free_table(rest: dict[str, Any]) -> dict[str, Any]:
    table = rest.pop("run_config", None) or {}
    if not isinstance(table, dict):
        raise Invalid(("body", "run_config"), "must be a table")
    return table


def _take_secrets(rest: dict[str, Any]) -> dict[str, str]:
    given = rest.pop("secrets", None) or []
    try:
        secrets = _SECRETS.validate_python(given)
    except ValidationError as error:
        raise _refusal(error, "body", "secrets") from None
    if len(secrets) > SECRETS_MAX:
        raise Invalid(("body", "secrets"), f"{len(secrets)} secrets; at most {SECRETS_MAX} are taken")
    return {secret.key: secret.value for secret in secrets}


def _take_loss(rest: dict[str, Any]) -> None:
    """`loss` is the public client's word for what `algorithm.id` says more exactly."""
    loss = rest.pop("loss", None) or "rl"
    if not isinstance(loss, str) or loss not in LOSSES:
        raise Invalid(("body", "loss"), f"{loss!r} is not one of {', '.join(LOSSES)}")
    algorithm = rest.get("algorithm") or {}
    if LOSSES[loss] is None or not isinstance(algorithm, Mapping):
        return
    if algorithm.get("id", LOSSES[loss]) != LOSSES[loss]:
        raise Invalid(("body", "loss"), f"{loss!r} contradicts algorithm.id = {algorithm['id']!r}; leave one of them out")
    rest["algorithm"] = {**algorithm, "id": LOSSES[loss]}


def _take_teacher(rest: dict[str, Any]) -> None:
    """A teacher elsewhere than on our own engines is refused: its log-probabilities would not be those of our weights."""
    teacher = rest.get("teacher")
    if isinstance(teacher, Mapping) and "client" in teacher:
        if teacher["client"]:
            message = "teachers are served by this installation's own engines; leave the field out"
            raise Invalid(("body", "teacher", "client"), message)
        rest["teacher"] = {name: value for name, value in teacher.items() if name != "client"}
    if not rest.get("teacher"):
        rest.pop("teacher", None)


def _refuse_unserved(rest: dict[str, Any]) -> None:
    for name, meaning in NOT_SERVED.items():
        if rest.pop(name, None) not in (None, [], {}):
            raise Invalid(("body", name), f"{meaning} is not served by this installation; leave the field out")


def _refusal(error: ValidationError, *root: str) -> Invalid:
    refused = Invalid(root, "The configuration is not valid.")
    refused.problems = [replace(problem, loc=(*root, *problem.loc[1:])) for problem in validation_problems(error)]
    return refused
