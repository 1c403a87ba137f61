"""State of secrets and variables. Knows columns and constraints; does no I/O. Every value is sealed (`core.sealing`).

A row is its team's alone. An environment may be somebody else's: what a team sets for it is for that team's work.
"""

from django.db import models

from controlplane.core.clock import DatabaseNow
from controlplane.core.models import TenantModel

NAME_LENGTH_MAX = 255
DESCRIPTION_LENGTH_MAX = 500
VALUE_LENGTH_MAX = 16_384


class Named(TenantModel):
    """A value under the name of an environment variable. `last_used_at`: when a sandbox was last given it."""

    created_by = models.ForeignKey("teams.User", on_delete=models.PROTECT, related_name="+")
    created_by_id: str
    name = models.CharField(max_length=NAME_LENGTH_MAX)
    description = models.CharField(max_length=DESCRIPTION_LENGTH_MAX, blank=True, default="")
    sealed_value = models.TextField()
    updated_at = models.DateTimeField(db_default=DatabaseNow())
    last_used_at = models.DateTimeField(null=True)

    class Meta:
        abstract = True

    def __str__(self) -> str:
        return self.name


class Secret(Named):
    """A team's own, for the environments that it is linked to. A file's value is its content in base64."""

    is_file = models.BooleanField(default=False)

    class Meta:
        constraints = (models.UniqueConstraint(fields=["team", "name"], name="secret_name_once"),)


class Setting(Named):
    """A secret or a variable of one environment. The two share their names: a sandbox has one variable of a name."""

    environment = models.ForeignKey("hub.Environment", on_delete=models.CASCADE, related_name="+")
    environment_id: str
    is_secret = models.BooleanField()

    class Meta:
        constraints = (models.UniqueConstraint(fields=["team", "environment", "name"], name="setting_name_once"),)


class Link(TenantModel):
    """A secret of the team that the team's work on one environment gets."""

    environment = models.ForeignKey("hub.Environment", on_delete=models.CASCADE, related_name="+")
    environment_id: str
    secret = models.ForeignKey(Secret, on_delete=models.CASCADE, related_name="links")
    secret_id: str

    class Meta:
        constraints = (models.UniqueConstraint(fields=["environment", "secret"], name="secret_link_once"),)
