"""Writes to secrets and variables. One transaction each, no network; each leaves an audit event that holds names and no value.

Knows limits, and that a value which nobody may use any more is gone at the next start of a sandbox. Refuses to know sandboxes.
"""

import base64
import binascii
from typing import Any, TypeVar

from django.db import IntegrityError, transaction
from django.db.models import QuerySet

from controlplane.audit.services import record
from controlplane.core.clock import DatabaseNow
from controlplane.core.errors import Invalid
from controlplane.core.sealing import seal_text
from controlplane.core.tenancy import acting_as_system, acting_for
from controlplane.secrets.access import Place, secret_of
from controlplane.secrets.errors import NameTaken, TooMany
from controlplane.secrets.models import Link, Named, Secret, Setting
from controlplane.secrets.queries import placeholders, values_of
from controlplane.secrets.schemas import Changes, SecretIn, ValueIn
from controlplane.teams.actors import Actor
from trainer.contracts.internal import SandboxValues

SECRETS_PER_TEAM_MAX = 200
PER_ENVIRONMENT_MAX = 64
"""Secrets, variables and links together: all of them fit the environment of one process."""
Row = TypeVar("Row", bound=Named)


def create_secret(actor: Actor, body: SecretIn) -> Secret:
    """Raises NameTaken, TooMany, and Invalid for a file that is not in base64."""
    _check_content(body.value, is_file=body.is_file)
    with transaction.atomic():
        _check_count(Secret.objects.filter(team=actor.team), "A team", SECRETS_PER_TEAM_MAX)
        made = _saved(Secret(is_file=body.is_file, **_columns(actor, body)))
        record(actor, "secret.created", kind="secret", object_id=made.id, detail={"name": made.name})
    return made


def update_secret(actor: Actor, secret: Secret, changes: Changes) -> Secret:
    if changes.value is not None:
        _check_content(changes.value, is_file=secret.is_file)
    with transaction.atomic():
        _change(secret, changes)
        record(actor, "secret.updated", kind="secret", object_id=secret.id, detail=_told(secret, changes))
    return secret


def delete_secret(actor: Actor, secret: Secret) -> None:
    """Its links go with it. A sandbox that has it keeps it until it ends."""
    with transaction.atomic():
        record(actor, "secret.deleted", kind="secret", object_id=secret.id, detail={"name": secret.name})
        secret.delete()


def create_setting(place: Place, body: ValueIn, *, is_secret: bool) -> Setting:
    """A secret or a variable of one environment. Raises NameTaken, TooMany."""
    with acting_for(place.actor.team_id), transaction.atomic():
        _check_room(place)
        columns = _columns(place.actor, body)
        made = _saved(Setting(environment=place.environment, is_secret=is_secret, **columns))
        _record(place, made, "created", {"name": made.name})
    return made


def update_setting(place: Place, setting: Setting, changes: Changes) -> Setting:
    with acting_for(place.actor.team_id), transaction.atomic():
        _change(setting, changes)
        _record(place, setting, "updated", _told(setting, changes))
    return setting


def delete_setting(place: Place, setting: Setting) -> None:
    with acting_for(place.actor.team_id), transaction.atomic():
        _record(place, setting, "deleted", {"name": setting.name})
        setting.delete()


def link_secret(place: Place, secret_id: str) -> Link:
    """Give the team's work on an environment one of the team's secrets. Twice is once."""
    secret = secret_of(place.actor, secret_id)
    with acting_for(place.actor.team_id), transaction.atomic():
        known = Link.objects.filter(environment=place.environment, secret=secret).first()
        if known is None:
            _check_room(place)
        known, made = Link.objects.get_or_create(team=place.actor.team, environment=place.environment, secret=secret)
        if made:
            _record(place, secret, "linked", {"name": secret.name, "environment": place.environment.slug})
    known.secret = secret
    return known


def unlink_secret(place: Place, link: Link) -> None:
    with acting_for(place.actor.team_id), transaction.atomic():
        _record(place, link.secret, "unlinked", {"name": link.secret.name, "environment": place.environment.slug})
        link.delete()


def forget_environment(environment_id: str) -> None:
    """A deleted environment runs nowhere any more: what any team has set for it goes."""
    with acting_as_system():
        Setting.objects.filter(environment_id=environment_id).delete()
        Link.objects.filter(environment_id=environment_id).delete()


def hand_out(team_id: str, environment_id: str, *, is_check: bool) -> SandboxValues:
    """What a sandbox of the team's work on an environment gets, as it is now. Raises SealedElsewhere."""
    values = values_of(team_id, environment_id)
    if is_check:
        return placeholders(values)
    now = DatabaseNow()
    Setting.objects.filter(team_id=team_id, environment_id=environment_id).update(last_used_at=now)
    Secret.objects.filter(team_id=team_id, links__environment_id=environment_id).update(last_used_at=now)
    return values


def _columns(actor: Actor, body: ValueIn) -> dict[str, Any]:
    return {
        "team": actor.team,
        "created_by": actor.user,
        "name": body.name,
        "description": body.description or "",
        "sealed_value": seal_text(body.value),
    }


def _saved(row: Row) -> Row:
    """The database decides who was first with a name."""
    try:
        with transaction.atomic():
            row.save(force_insert=row._state.adding)
    except IntegrityError:
        raise NameTaken(row.name) from None
    row.refresh_from_db()
    return row


def _change(row: Named, changes: Changes) -> None:
    given = changes.model_dump(exclude_none=True)
    if not given:
        raise Invalid(("body",), "nothing to change: send name, value or description")
    if (value := given.pop("value", None)) is not None:
        row.sealed_value = seal_text(value)
    for name, new in given.items():
        setattr(row, name, new)
    row.updated_at = DatabaseNow()
    _saved(row)


def _told(row: Named, changes: Changes) -> dict[str, Any]:
    return {"name": row.name, "changed": sorted(changes.model_dump(exclude_none=True))}


def _record(place: Place, row: Secret | Setting, verb: str, detail: dict[str, Any]) -> None:
    kind = "variable" if isinstance(row, Setting) and not row.is_secret else "secret"
    named = {"environment": place.environment.slug} | detail
    record(place.actor, f"{kind}.{verb}", kind=kind, object_id=row.id, detail=named)


def _check_room(place: Place) -> None:
    mine = {"team": place.actor.team, "environment": place.environment}
    links = Link.objects.filter(**mine).count()
    _check_count(Setting.objects.filter(**mine), "An environment", PER_ENVIRONMENT_MAX, besides=links)


def _check_count(rows: QuerySet[Any], what: str, most: int, besides: int = 0) -> None:
    if rows.count() + besides >= most:
        raise TooMany(what, most)


def _check_content(value: str, *, is_file: bool) -> None:
    if is_file:
        try:
            base64.b64decode(value, validate=True)
        except binascii.Error:
            raise Invalid(("body", "value"), "the content of a file is sent in base64") from None
