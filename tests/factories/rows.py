"""A row of any table with a team, made from the columns' types alone: for tables that no address leads to."""

from datetime import UTC, datetime
from typing import Any

from django.db import models

from trainer.contracts.base import new_id

AT = datetime(2026, 11, 1, tzinfo=UTC)


def plant(model: type[models.Model], team_id: str) -> models.Model:
    """One row of `model` that belongs to the team, and of what it must point at."""
    values = {field.attname: _value(field, team_id) for field in model._meta.concrete_fields if _is_wanted(field)}
    return model._default_manager.create(**values)


def _is_wanted(field: "models.Field[Any, Any]") -> bool:
    return not (field.null or field.has_default() or field.has_db_default() or isinstance(field, models.AutoField))


def _value(field: "models.Field[Any, Any]", team_id: str) -> Any:
    if field.name == "team":
        return team_id
    if isinstance(field, models.ForeignKey):
        target: Any = field.related_model
        row = target._default_manager.filter(**({"team_id": team_id} if hasattr(target, "team") else {})).first()
        return (row or plant(target, team_id)).pk
    if field.choices:
        return next(iter(dict(field.flatchoices)))
    if isinstance(field, models.CharField | models.TextField):
        return new_id()[: field.max_length or 25]
    if isinstance(field, models.DateTimeField):
        return AT
    return {} if isinstance(field, models.JSONField) else 1
