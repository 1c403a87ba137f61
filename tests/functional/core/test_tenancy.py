"""Row-level security as the application meets it: the scope follows the code through transactions, threads and failures."""

import threading

import pytest
from django.db import DatabaseError, connection, transaction

from controlplane.core.tenancy import NOBODY, acting_as_system, acting_for, current_scope
from controlplane.teams.models import ApiKey
from tests.factories.teams import make_member

pytestmark = pytest.mark.django_db


def prefixes() -> set[str]:
    return set(ApiKey.objects.values_list("prefix", flat=True))


@pytest.fixture
def two_teams():
    ada, bob = make_member(), make_member()
    return ada, bob


def test_a_team_sees_its_own_rows_and_nobody_sees_none(two_teams):
    ada, bob = two_teams
    with acting_for(ada.team_id):
        seen_by_ada = prefixes()
    with acting_for(bob.team_id):
        seen_by_bob = prefixes()
    assert len(seen_by_ada) == len(seen_by_bob) == 1 and not seen_by_ada & seen_by_bob
    assert prefixes() == set()
    with acting_as_system():
        assert prefixes() == seen_by_ada | seen_by_bob


def test_a_team_cannot_write_a_row_of_another(two_teams):
    ada, bob = two_teams
    with acting_for(bob.team_id), pytest.raises(DatabaseError, match="row-level security"), transaction.atomic():
        ApiKey.objects.create(team=ada.actor.team, user=bob.actor.user, name="x", prefix="stolen", secret_sha256="0" * 64)
    with acting_for(bob.team_id):
        assert ApiKey.objects.filter(team=ada.actor.team).update(name="renamed") == 0


def test_the_scope_is_announced_anew_after_a_rollback(two_teams):
    ada, bob = two_teams
    with acting_for(ada.team_id):
        with pytest.raises(RuntimeError), transaction.atomic(), acting_for(bob.team_id):
            assert len(prefixes()) == 1
            raise RuntimeError
        assert prefixes() == {key.prefix for key in ApiKey.objects.filter(team=ada.actor.team)} != set()


def test_a_failed_statement_leaves_the_scope_usable(two_teams):
    ada, _ = two_teams
    with pytest.raises(DatabaseError), transaction.atomic(), acting_for(ada.team_id), connection.cursor() as cursor:
        cursor.execute("SELECT 1/0")
    assert prefixes() == set()
    with acting_for(ada.team_id):
        assert len(prefixes()) == 1


def test_leaving_a_scope_restores_the_outer_one():
    with acting_as_system():
        with acting_for("c" + "a" * 24):
            assert current_scope().team_id
        assert current_scope().system
    assert current_scope() == NOBODY


def test_another_thread_starts_as_nobody():
    found = []
    with acting_as_system():
        thread = threading.Thread(target=lambda: found.append(current_scope()))
        thread.start()
        thread.join()
    assert found == [NOBODY]


def test_an_empty_team_is_refused():
    with pytest.raises(ValueError, match="nobody"), acting_for(""):
        pass
