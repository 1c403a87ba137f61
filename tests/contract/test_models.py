"""What every table promises: row-level security where there is a team, integer money, aware time, migrations in step."""

import pytest
from django.apps import apps
from django.conf import settings
from django.core.management import call_command
from django.db import connection, models

from controlplane.core.tenancy import acting_as_system

OURS = [model for model in apps.get_models() if model.__module__.startswith("controlplane.")]
TENANT_TABLES = sorted(
    (model for model in OURS if any(field.name == "team" for field in model._meta.get_fields())), key=lambda model: model.__name__
)


@pytest.mark.django_db
@pytest.mark.parametrize("model", TENANT_TABLES, ids=lambda model: model._meta.db_table)
def test_row_security_is_on_and_forced_for_every_table_with_a_team(model: type[models.Model]):
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT relrowsecurity, relforcerowsecurity FROM pg_class WHERE oid = %s::regclass", [model._meta.db_table]
        )
        assert cursor.fetchone() == (True, True)
        cursor.execute(
            "SELECT count(*) FROM pg_policies WHERE tablename = %s AND cmd = 'ALL' AND qual LIKE %s AND with_check LIKE %s",
            [model._meta.db_table, "%rootstock.team_id%", "%rootstock.team_id%"],
        )
        assert cursor.fetchone() == (1,)


@pytest.mark.django_db
def test_the_application_can_neither_bypass_nor_own():
    with connection.cursor() as cursor:
        cursor.execute("SELECT rolsuper, rolbypassrls, rolcreatedb, rolcreaterole FROM pg_roles WHERE rolname = current_user")
        assert cursor.fetchone() == (False, False, False, False)
        cursor.execute("SELECT count(*) FROM pg_class c JOIN pg_roles r ON r.oid = c.relowner WHERE r.rolname = current_user")
        assert cursor.fetchone() == (0,)
        cursor.execute("SELECT has_schema_privilege('public', 'CREATE')")
        assert cursor.fetchone() == (False,)


@pytest.mark.django_db
@pytest.mark.parametrize("model", TENANT_TABLES, ids=lambda model: model._meta.db_table)
def test_nobody_sees_no_rows(model: type[models.Model]):
    """A query outside any scope, as a forgotten one would be, sees nothing of any team (public rows aside)."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM pg_policies WHERE tablename = %s AND cmd = 'SELECT'", [model._meta.db_table])
        (public_policies,) = cursor.fetchone()
    if not public_policies:
        assert model._default_manager.count() == 0
    with acting_as_system():
        assert model._default_manager.count() >= 0


def test_money_is_integer():
    floats = [
        f"{model._meta.label}.{field.name}"
        for model in OURS
        for field in model._meta.get_fields()
        if field.name.endswith("microusd") and not isinstance(field, models.BigIntegerField)
    ]
    assert floats == []


def test_units_stand_last_and_floats_hold_no_money():
    suspects = [
        f"{model._meta.label}.{field.name}"
        for model in OURS
        for field in model._meta.get_fields()
        if isinstance(field, models.FloatField) and any(word in field.name for word in ("usd", "price", "amount", "balance"))
    ]
    assert suspects == []


def test_moments_are_named_and_aware():
    assert settings.USE_TZ and settings.TIME_ZONE == "UTC"
    misnamed = [
        f"{model._meta.label}.{field.name}"
        for model in OURS
        for field in model._meta.get_fields()
        if isinstance(field, models.DateTimeField) and field.name != "at" and not field.name.endswith("_at")
    ]
    assert misnamed == []


def test_every_app_keeps_its_migrations_in_the_migrations_folder():
    own = {config.label for config in apps.get_app_configs() if config.name.startswith("controlplane.")}
    assert own == set(settings.MIGRATION_MODULES)
    assert set(settings.MIGRATION_MODULES.values()) == {f"migrations.{label}" for label in own}


@pytest.mark.django_db
def test_migrations_match_the_models():
    call_command("makemigrations", check=True, dry_run=True, verbosity=0)
