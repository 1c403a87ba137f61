"""The environment variables of the control plane: parsed once, typed, every missing or malformed one named together.

Knows names, types and meanings; `docs/settings.md` is generated from here. Refuses to know what a setting is used for in Django.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, Self
from urllib.parse import parse_qs, unquote, urlsplit

from pydantic import BaseModel, ConfigDict, Field, HttpUrl, SecretStr, StringConstraints, TypeAdapter, ValidationError

PostgresUrl = Annotated[str, StringConstraints(pattern=r"^postgres(ql)?://")]
BrokerUrl = Annotated[str, StringConstraints(pattern=r"^(redis|rediss|amqp)://")]
StoreUrl = Annotated[str, StringConstraints(pattern=r"^(file:///|s3://[a-z0-9])")]
_HTTP_URL = TypeAdapter(HttpUrl)


class SettingsError(Exception):
    """The process cannot start. The text lists every variable that is missing or wrong."""


class Environment(BaseModel):
    """One field per variable; the alias is the variable's name."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    database_url: PostgresUrl = Field(
        alias="DATABASE_URL",
        description="PostgreSQL as the application's role, which neither owns tables nor bypasses row-level security. "
        "`postgresql://role@/db?host=SOCKET_FOLDER` for a Unix socket.",
    )
    database_admin_url: PostgresUrl | None = Field(
        None, alias="DATABASE_ADMIN_URL", description="PostgreSQL as the owner of the tables. Only for `bootstrap_database`."
    )
    broker_url: BrokerUrl = Field(alias="BROKER_URL", description="Celery's broker and the doorbell of live streams.")
    object_store_url: StoreUrl = Field(
        alias="ROOTSTOCK_OBJECT_STORE_URL", description="`file:///absolute/folder` or `s3://bucket[/prefix]`."
    )
    s3_endpoint_url: str | None = Field(
        None, alias="ROOTSTOCK_S3_ENDPOINT_URL", description="An S3 server other than Amazon's. Only with `s3://`."
    )
    s3_public_url: str | None = Field(
        None,
        alias="ROOTSTOCK_S3_PUBLIC_URL",
        description="Where clients reach the S3 server, if elsewhere than our processes do. Signed URLs name it.",
    )
    secret_key: SecretStr = Field(
        alias="ROOTSTOCK_SECRET_KEY",
        min_length=32,
        description="Signs sessions and object URLs, and seals secrets. At least 32 characters.",
    )
    public_origin: str = Field(
        alias="ROOTSTOCK_PUBLIC_ORIGIN", description="Scheme, host and port under which clients reach the web process."
    )
    internal_url: str | None = Field(
        None, alias="ROOTSTOCK_INTERNAL_URL", description="Where leased processes reach the internal API. Read by the worker."
    )
    pool_token: SecretStr | None = Field(
        None, alias="ROOTSTOCK_POOL_TOKEN", description="Bearer that trainer service and engines demand."
    )
    artifact_root: Path | None = Field(
        None, alias="ROOTSTOCK_ARTIFACT_ROOT", description="Folder shared by trainer, engines and orchestrators."
    )
    runner_dir: Path | None = Field(
        None, alias="ROOTSTOCK_RUNNER_DIR", description="Virtual environments of the runner and of built releases."
    )
    log_dir: Path | None = Field(None, alias="ROOTSTOCK_LOG_DIR", description="Where launched processes write their logs.")
    key_requests_per_minute: int = Field(
        1_200, ge=1, alias="ROOTSTOCK_KEY_REQUESTS_PER_MINUTE", description="Requests a minute of one API key or session."
    )
    team_requests_per_minute: int = Field(
        6_000,
        ge=1,
        alias="ROOTSTOCK_TEAM_REQUESTS_PER_MINUTE",
        description="Requests a minute of all keys of a team.",
    )
    inference_requests_per_minute: int = Field(
        6_000, ge=1, alias="ROOTSTOCK_INFERENCE_REQUESTS_PER_MINUTE", description="Requests a minute of one team to the models."
    )
    visitor_requests_per_minute: int = Field(
        600, ge=1, alias="ROOTSTOCK_VISITOR_REQUESTS_PER_MINUTE", description="Requests a minute of one address without a key."
    )
    sandbox_backend: Literal["auto", "bubblewrap", "docker"] = Field(
        "auto",
        alias="ROOTSTOCK_SANDBOX_BACKEND",
        description="What holds tenant code: `auto`, `bubblewrap` or `docker`.",
    )

    private_models: bool = Field(
        False,
        alias="ROOTSTOCK_PRIVATE_MODELS",
        description="Whether evaluations may call models by `http://` and at addresses inside this installation's network.",
    )
    private_webhooks: bool = Field(
        False,
        alias="ROOTSTOCK_PRIVATE_WEBHOOKS",
        description="Whether webhooks may go to `http://` and to addresses inside this installation's network: for development.",
    )

    @classmethod
    def read(cls, variables: Mapping[str, str]) -> Self:
        """Parse the variables. An empty one counts as missing.

        Raises SettingsError naming all that are missing or wrong, never their values.
        """
        given = {name: value for name, value in variables.items() if value}
        try:
            environment = cls.model_validate(given)
            _HTTP_URL.validate_python(environment.public_origin)
        except ValidationError as error:
            problems = "\n".join(
                f"  {_variable(problem['loc'])}: {problem['msg']}" for problem in error.errors(include_input=False)
            )
            raise SettingsError(f"the environment is incomplete (docs/settings.md):\n{problems}") from None
        return environment


def _variable(location: tuple[int | str, ...]) -> str:
    return str(location[0]) if location else "ROOTSTOCK_PUBLIC_ORIGIN"


def database_settings(url: str) -> dict[str, Any]:
    """Django's spelling of a PostgreSQL URL."""
    parts = urlsplit(url)
    query = {name: values[-1] for name, values in parse_qs(parts.query).items()}
    return {
        "ENGINE": "controlplane.core.database",
        "NAME": unquote(parts.path.lstrip("/")),
        "USER": unquote(parts.username or ""),
        "PASSWORD": unquote(parts.password or ""),
        "HOST": query.pop("host", parts.hostname or ""),
        "PORT": str(parts.port or ""),
        "CONN_MAX_AGE": 60,
        "CONN_HEALTH_CHECKS": True,
        "OPTIONS": {"connect_timeout": 10, **query},
    }


def document() -> str:
    """`docs/settings.md`, from the fields above."""
    rows = [
        f"| `{field.alias}` | {'yes' if field.is_required() else 'no'} | {field.description} |"
        for field in Environment.model_fields.values()
    ]
    head = ["# Settings", "", "Written by `manage.py document_settings`; a test compares it with the code.", ""]
    return "\n".join([*head, "| variable | required | meaning |", "|---|---|---|", *rows, ""])
