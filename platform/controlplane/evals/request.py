"""The body of `POST /hosted-evaluations`: the public client's spelling, with the limits of contracts.EvalConfig."""

from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, Field, model_validator

from controlplane.core.schemas import Body
from trainer.contracts.base import PublicId
from trainer.contracts.run_config import SEATS_MAX, Seat, SeatName, SecretName, SecretValue


def _refuse_when_set(value: Any) -> None:
    if value:
        raise ValueError("this installation does not serve this option; leave it out")


MODELS_MAX = 8
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


class Prices(Body):
    input_usd_per_mtok: Annotated[float, Field(ge=0, lt=1e6)]
    output_usd_per_mtok: Annotated[float, Field(ge=0, lt=1e6)]


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
    api_client_type: Literal["openai_chat_completions"] | None = None
    api_base_url: Annotated[str, Field(max_length=500)] | None = None
    """Evaluate the model of this name behind this address, to which `/chat/completions` is appended, instead of one of ours."""
    api_key_var: SecretName | None = None
    """The secret that holds the key for it. It is used outside the sandbox alone."""
    prices: Prices | None = None
    """What the external model costs, for quality against dollars."""
    allow_sandbox_access: bool = False
    """Permissions, two of which the public client gives unasked: there is nothing here that they would open."""
    allow_instances_access: bool = False
    allow_tunnel_access: bool = False


class HostedRequest(WithoutNulls):
    """Each environment, named by id or `owner/name`, with or without `@version`, becomes an evaluation for each model."""

    environment_ids: Annotated[list[str], Field(min_length=1, max_length=16)]
    inference_model: Annotated[str, Field(min_length=1, max_length=255)] | None = None
    inference_models: Annotated[list[Annotated[str, Field(min_length=1, max_length=255)]], Field(max_length=MODELS_MAX)] = []
    """Several at once, instead of `inference_model`: each becomes an evaluation of its own, all of one group."""
    group_id: PublicId | None = None
    """The group that they join; without it, several evaluations make a new one."""
    eval_config: EvalOptions = EvalOptions()
    name: Annotated[str, Field(min_length=1, max_length=255)] | None = None
    is_public: bool = False
    """Show them to everybody who may see the environment."""
    force: bool = False
    """Evaluate a release that failed its check, to see it fail."""

    @property
    def models(self) -> list[str]:
        return self.inference_models or ([self.inference_model] if self.inference_model else [])

    @model_validator(mode="after")
    def _names_models_once(self) -> Self:
        if bool(self.inference_model) == bool(self.inference_models):
            raise ValueError("name the model in inference_model, or several in inference_models")
        if len(set(self.inference_models)) != len(self.inference_models):
            raise ValueError("inference_models names a model twice")
        return self
