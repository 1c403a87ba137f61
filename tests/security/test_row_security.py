"""Row-level security with rows in the tables: what the doors forget, PostgreSQL still refuses.

Every factory of the tenancy matrix fills the tables of one team; another team then looks past all doors, by plain querysets.
"""

import pytest
from django.db import DatabaseError, connection, models, transaction

from controlplane.core.tenancy import acting_as_system, acting_for
from tests.contract.test_models import TENANT_TABLES
from tests.factories.objects import OBJECTS, World
from tests.factories.teams import Member, make_member

pytestmark = [pytest.mark.django_db, pytest.mark.gate("R3")]


@pytest.fixture
def full_team() -> Member:
    """A team that owns one of everything that an address can name."""
    world = World()
    for parameter in sorted(OBJECTS):
        assert world[parameter]
    return world.member


def rows_of(model: type[models.Model], member: Member) -> "models.QuerySet[models.Model]":
    return model._default_manager.filter(team_id=member.team_id)


def test_another_team_reads_changes_and_removes_nothing(full_team: Member):
    stranger = make_member()
    with acting_as_system():
        filled = [model for model in TENANT_TABLES if rows_of(model, full_team).exists()]
    assert len(filled) >= 10, [model._meta.label for model in filled]
    for model in filled:
        with acting_for(stranger.team_id):
            assert not rows_of(model, full_team).exists(), model._meta.label
            assert _changed(model, full_team) == 0, model._meta.label
        with acting_for(full_team.team_id):
            assert rows_of(model, full_team).exists(), model._meta.label


def test_another_team_cannot_plant_a_row(full_team: Member):
    stranger = make_member()
    planted = 0
    for model in TENANT_TABLES:
        with acting_as_system():
            row = rows_of(model, full_team).first()
        if row is None:
            continue
        row.pk = None
        with acting_for(stranger.team_id), pytest.raises(DatabaseError, match="row-level security"), transaction.atomic():
            row.save(force_insert=True)
        planted += 1
    assert planted >= 10


@pytest.mark.parametrize(
    "statement", ["SET ROLE postgres", "ALTER TABLE teams_apikey DISABLE ROW LEVEL SECURITY", "SET row_security = off"]
)
def test_the_application_cannot_step_out(full_team: Member, statement: str):
    with pytest.raises(DatabaseError), transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(statement)
        cursor.execute("SELECT 1 FROM teams_apikey")


def _changed(model: type[models.Model], member: Member) -> int:
    """Rows that an update reached. Append-only tables refuse the statement itself, which is as good."""
    try:
        with transaction.atomic():
            return rows_of(model, member).update(team_id=member.team_id)
    except DatabaseError as error:
        assert "permission denied" in str(error) or "append-only" in str(error), error
        return 0
