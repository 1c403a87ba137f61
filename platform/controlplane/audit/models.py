"""What was done to a team's objects, by whom. Rows are added and never changed (the migration makes the table append-only)."""

from typing import Any

from django.db import models

from controlplane.core.models import TenantModel


class AuditEvent(TenantModel):
    """`created_at` is when. `user` is null where the system itself acted; `key_prefix` names the API key that was used."""

    user = models.ForeignKey("teams.User", null=True, on_delete=models.PROTECT, related_name="+")
    user_id: str | None
    key_prefix = models.CharField(max_length=12, default="")
    action = models.CharField(max_length=64)
    object_kind = models.CharField(max_length=32)
    object_id = models.CharField(max_length=128)
    detail: "models.JSONField[dict[str, Any], dict[str, Any]]" = models.JSONField(default=dict)
    request_id = models.CharField(max_length=64, default="")

    class Meta:
        indexes = (models.Index(fields=["team", "-created_at"], name="audit_by_team"),)
