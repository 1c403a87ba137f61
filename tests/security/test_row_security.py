"""R3: row-level security with rows in every table that has a team: what the doors forget, PostgreSQL still refuses.

Every factory of the tenancy matrix fills the tables of one team, what no address leads to is filled from the columns' types;
another team then looks past all doors, by plain querysets.
"""

from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
import pytest
from django.db import DatabaseError, IntegrityError, connection, models, transaction

from controlplane.core.tenancy import acting_as_system, acting_for
from tests.contract.test_models import TENANT_TABLES
from tests.factories.objects import OBJECTS, World
from tests.factories.rows import plant
from tests.factories.teams import Member, make_member
from tests.fixtures.gates import Gate

pytestmark = pytest.mark.django_db


def make_full_team() -> Member:
    """A team that owns a row of every table that has a team."""
    world = World()
    for parameter in sorted(OBJECTS):
        assert world[parameter]
    with acting_as_system():
        for model in TENANT_TABLES:
            if not rows_of(model, world.member).exists():
                plant(model, world.member.team_id)
    return world.member


@pytest.fixture
def full_team() -> Member:
    return make_full_team()


def rows_of(model: type[models.Model], member: Member) -> "models.QuerySet[models.Model]":
    return model._default_manager.filter(team_id=member.team_id)


def leaks(owner: Member, stranger: Member) -> list[str]:
    """Tables in which a stranger reads, changes or plants a row of the owner's, and in what way."""
    found = []
    for model in TENANT_TABLES:
        with acting_as_system():
            row = rows_of(model, owner).first()
        assert row is not None, f"{model._meta.db_table} is empty: nothing was tried"
        row.pk = None
        with acting_for(stranger.team_id):
            attempts = {
                "read": rows_of(model, owner).exists,
                "changed": lambda model=model: rows_of(model, owner).update(team_id=owner.team_id) > 0,
                "planted": lambda row=row: row.save(force_insert=True) is None,
            }
            found += [f"{model._meta.db_table} {name}" for name, attempt in attempts.items() if _worked(attempt)]
    return found


def _worked(attempt) -> bool:
    """Whether the policies let it pass. Nothing that was done stays."""
    try:
        with _undone():
            return bool(attempt())
    except IntegrityError:
        # Constraints are looked at behind the policies: one that speaks says that these were silent.
        return True
    except DatabaseError as error:
        refusals = ("row-level security", "permission denied", "append-only", "is not written")
        assert any(words in str(error) for words in refusals), error
        return False


@contextmanager
def _undone() -> Iterator[None]:
    with transaction.atomic():
        yield
        transaction.set_rollback(True)


@pytest.mark.gate("R3")
def test_another_team_reads_changes_and_plants_nothing_in_any_table(full_team: Member, gate: Gate):
    found = leaks(full_team, make_member())
    gate.record(trials=len(TENANT_TABLES), violations=len(found))
    assert found == []


def test_the_owner_reads_its_rows(full_team: Member):
    """Without this the test above would pass for tables that nobody can read."""
    with acting_for(full_team.team_id):
        assert [model._meta.db_table for model in TENANT_TABLES if not rows_of(model, full_team).exists()] == []


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("table", ["runs_run", "billing_ledgerentry", "pools_lease"])
def test_r3_turns_red_when_a_table_loses_its_policy(owner_connection: "psycopg.Connection", table: str):
    owner, stranger = make_full_team(), make_member()
    owner_connection.execute(f'ALTER TABLE "{table}" DISABLE ROW LEVEL SECURITY')
    assert f"{table} read" in leaks(owner, stranger)


@pytest.mark.parametrize(
    "statement", ["SET ROLE postgres", "ALTER TABLE teams_apikey DISABLE ROW LEVEL SECURITY", "SET row_security = off"]
)
def test_the_application_cannot_step_out(full_team: Member, statement: str):
    with pytest.raises(DatabaseError), transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(statement)
        cursor.execute("SELECT 1 FROM teams_apikey")
