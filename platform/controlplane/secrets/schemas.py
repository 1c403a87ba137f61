"""Bodies of secrets and variables, as the public client sends and reads them (wire: global secrets, env secrets, env variables).

No answer has a secret's value: there is no field for it.
"""

from datetime import datetime
from typing import Annotated, Literal, Self

from pydantic import ConfigDict, Field
from pydantic.alias_generators import to_camel

from controlplane.core.schemas import Answer, Body, CamelAnswer
from controlplane.core.sealing import SealBroken, unseal_text
from controlplane.secrets.models import DESCRIPTION_LENGTH_MAX, VALUE_LENGTH_MAX, Link, Secret, Setting
from trainer.contracts.run_config import SecretName

Value = Annotated[str, Field(min_length=1, max_length=VALUE_LENGTH_MAX, pattern=r"^[^\x00]+$")]
Description = Annotated[str, Field(max_length=DESCRIPTION_LENGTH_MAX)]


class ValueIn(Body):
    """A new secret or variable of an environment."""

    name: SecretName
    value: Value = Field(repr=False)
    description: Description | None = None


class SecretIn(ValueIn):
    """A new secret of the team. Of a file, `value` is the content in base64."""

    model_config = ConfigDict(extra="forbid", frozen=True, alias_generator=to_camel, populate_by_name=True)

    is_file: bool = False


class Changes(Body):
    """What is left out stays as it is."""

    name: SecretName | None = None
    value: Value | None = Field(default=None, repr=False)
    description: Description | None = None


class SecretOut(CamelAnswer):
    """`last_used_at`: when a sandbox was last given it."""

    id: str
    name: str
    description: str
    is_file: bool
    user_id: str
    team_id: str
    environments_count: int
    created_at: datetime
    updated_at: datetime
    last_used_at: datetime | None

    @classmethod
    def of(cls, row: Secret) -> Self:
        return cls(
            id=row.id,
            name=row.name,
            description=row.description,
            is_file=row.is_file,
            user_id=row.created_by_id,
            team_id=row.team_id,
            environments_count=len(row.links.all()),
            created_at=row.created_at,
            updated_at=row.updated_at,
            last_used_at=row.last_used_at,
        )


class SecretAnswer(Answer):
    data: SecretOut


class SecretPage(Answer):
    data: list[SecretOut]
    total_count: int
    offset: int
    limit: int


class EnvironmentSecret(CamelAnswer):
    """`source` tells an environment's own from one of the team that is linked; the id of the latter is the secret's."""

    id: str
    name: str
    source: Literal["environment", "global"]
    description: str
    team_id: str
    created_at: datetime
    updated_at: datetime
    last_used_at: datetime | None

    @classmethod
    def of(cls, row: Setting | Secret) -> Self:
        return cls(
            id=row.id,
            name=row.name,
            source="global" if isinstance(row, Secret) else "environment",
            description=row.description,
            team_id=row.team_id,
            created_at=row.created_at,
            updated_at=row.updated_at,
            last_used_at=row.last_used_at,
        )


class EnvironmentSecretAnswer(Answer):
    data: EnvironmentSecret


class EnvironmentSecrets(Answer):
    data: list[EnvironmentSecret]


class LinkOut(CamelAnswer):
    id: str
    secret_id: str
    secret_name: str
    environment_id: str
    created_at: datetime

    @classmethod
    def of(cls, row: Link) -> Self:
        return cls(
            id=row.id,
            secret_id=row.secret_id,
            secret_name=row.secret.name,
            environment_id=row.environment_id,
            created_at=row.created_at,
        )


class LinkAnswer(Answer):
    data: LinkOut


class Variable(CamelAnswer):
    """A variable is no secret: its value is shown, and is not masked in logs. It is empty where it was sealed with another key of
    the installation: set it again."""

    id: str
    name: str
    value: str
    description: str
    team_id: str
    created_at: datetime
    updated_at: datetime

    @classmethod
    def of(cls, row: Setting) -> Self:
        return cls(
            id=row.id,
            name=row.name,
            value=_shown(row.sealed_value),
            description=row.description,
            team_id=row.team_id,
            created_at=row.created_at,
            updated_at=row.updated_at,
        )


def _shown(sealed_value: str) -> str:
    try:
        return unseal_text(sealed_value)
    except SealBroken:
        return ""


class VariableAnswer(Answer):
    data: Variable


class Variables(Answer):
    data: list[Variable]
