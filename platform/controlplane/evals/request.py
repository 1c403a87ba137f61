"""The body of `POST /hosted-evaluations`: the public client's spelling, with the limits of contracts.EvalConfig."""

from typing import Annotated, Any

from pydantic import AfterValidator, Field, model_validator

from controlplane.core.schemas import Body
from trainer.contracts.run_config import SEATS_MAX, Seat, SeatName, SecretName, SecretValue


def _refuse_when_set(value: Any) -> None:
    if value:
        raise ValueError("this installation does not serve this option; leave it out")


Unserved = Annotated[Any, AfterValidator(_refuse_when_set)]
"""An option of the public client that means something we do not do: accepted while switched off, refused by name otherwise."""


class WithoutNulls(Body):
    """A field that is null counts as not given."""

    @model_validator(mode="before")
    @classmethod
    def _drop_nulls(cls, data: Any) -> Any:
        return {name: value for name, value in data.items() if value is not None} if isinstance(data, dict) else data


class SamplingArgs(WithoutNulls):
    max_tokens: Annotated[int, Field(ge=1, le=32_768)] = 512
    temperature: Annotated[float, Field(ge=0, le=5)] = 1.0


class EvalOptions(WithoutNulls):
    """`eval_config` of the request."""

    num_examples: Annotated[int, Field(ge=-1, le=100_000)] = 32
    rollouts_per_example: Annotated[int, Field(ge=1, le=2048)] = 1
    env_args: dict[str, Any] = {}
    timeout_minutes: Annotated[int, Field(ge=1, le=1440)] = 120
    custom_secrets: Annotated[dict[SecretName, SecretValue], Field(max_length=64, repr=False)] = {}
    sampling_args: SamplingArgs = SamplingArgs()
    seats: Annotated[dict[SeatName, Seat], Field(max_length=SEATS_MAX)] = {}
    """Agents of the environment that another model plays; the evaluated one plays all others."""
    max_concurrent: Annotated[int, Field(ge=1, le=1024)] = 64
    verbose: bool = False
    max_retries: Unserved = None
    state_columns: Unserved = None
    independent_scoring: Unserved = None
    headers: Unserved = None
    extra_env_kwargs: Unserved = None
    api_client_type: Unserved = None
    api_base_url: Unserved = None
    api_key_var: Unserved = None
    allow_sandbox_access: Unserved = None
    allow_instances_access: Unserved = None
    allow_tunnel_access: Unserved = None


class HostedRequest(WithoutNulls):
    """Each environment, named by id or `owner/name`, with or without `@version`, becomes an evaluation of its own."""

    environment_ids: Annotated[list[str], Field(min_length=1, max_length=16)]
    inference_model: Annotated[str, Field(min_length=1, max_length=255)]
    eval_config: EvalOptions = EvalOptions()
    name: Annotated[str, Field(min_length=1, max_length=255)] | None = None
    force: bool = False
    """Evaluate a release that failed its check, to see it fail."""
