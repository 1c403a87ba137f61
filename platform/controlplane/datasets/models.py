"""State of a dataset: what its sender declared, and what was found in it. Knows columns and constraints; does no I/O.

A dataset exists once it has been checked; its content never changes afterwards.
"""

from django.db import models

from controlplane.core.models import TenantModel

NAME_LENGTH_MAX = 100
DIGEST_LENGTH = 64


class Dataset(TenantModel):
    """`object_key` is where the signed PUT writes; a checked file lies under its digest, where nobody can write any more."""

    created_by = models.ForeignKey("teams.User", on_delete=models.PROTECT, related_name="+")
    name = models.CharField(max_length=NAME_LENGTH_MAX)
    sha256 = models.CharField(max_length=DIGEST_LENGTH)
    size_bytes = models.PositiveBigIntegerField()
    dropped_max = models.FloatField()
    """Share of the rows that may be dropped, as the sender allowed."""
    object_key = models.CharField(max_length=255)
    kind = models.CharField(max_length=8, blank=True, default="")
    report = models.JSONField(null=True)
    """contracts.ImportReport, once the file has been checked."""
    checked_at = models.DateTimeField(null=True)

    class Meta:
        constraints = (models.UniqueConstraint(fields=["team", "name"], name="dataset_name_once"),)
        indexes = (models.Index(fields=["team", "-created_at"], name="dataset_newest_of_team"),)

    def __str__(self) -> str:
        return f"{self.name} ({self.kind or 'not checked'})"
