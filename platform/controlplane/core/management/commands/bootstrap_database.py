"""`manage.py bootstrap_database`: role, database, rights, migrations. Runs with DATABASE_ADMIN_URL; may run any number of times.

Afterwards the role of DATABASE_URL reads and writes the tables, owns none of them and cannot bypass row-level security.
"""

from typing import Any

import psycopg
from django.conf import settings
from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandError
from psycopg import sql


class Command(BaseCommand):
    help = "Create the application's role and database where absent, grant rights, and migrate as the owner."

    def handle(self, *args: Any, **options: Any) -> None:
        if "owner" not in settings.DATABASES:
            raise CommandError("set DATABASE_ADMIN_URL: the application's role may not create tables")
        owner: dict[str, Any] = settings.DATABASES["owner"]
        application: dict[str, Any] = settings.DATABASES["default"]
        if owner["NAME"] != application["NAME"]:
            raise CommandError("DATABASE_URL and DATABASE_ADMIN_URL name different databases")
        with connect(owner, "postgres") as server:
            create_role(server, application["USER"], application["PASSWORD"])
            create_database(server, application["NAME"])
        with connect(owner, owner["NAME"]) as database:
            grant_rights(database, application["USER"])
        call_command("migrate", database="owner", interactive=False, verbosity=options["verbosity"])


def connect(owner: dict[str, Any], database: str) -> "psycopg.Connection[Any]":
    """A connection of the owner to one database of the server, committing statement by statement."""
    return psycopg.connect(
        dbname=database,
        user=owner["USER"],
        password=owner["PASSWORD"] or None,
        host=owner["HOST"] or None,
        port=owner["PORT"] or None,
        autocommit=True,
        connect_timeout=10,
    )


def create_role(server: "psycopg.Connection[Any]", role: str, password: str) -> None:
    """The application's role: it may log in, and nothing else."""
    if server.execute("SELECT 1 FROM pg_roles WHERE rolname = %s", [role]).fetchone() is None:
        server.execute(sql.SQL("CREATE ROLE {} LOGIN").format(sql.Identifier(role)))
    limits = sql.SQL("ALTER ROLE {} NOSUPERUSER NOBYPASSRLS NOCREATEDB NOCREATEROLE NOREPLICATION")
    server.execute(limits.format(sql.Identifier(role)))
    if password:
        server.execute(sql.SQL("ALTER ROLE {} PASSWORD {}").format(sql.Identifier(role), sql.Literal(password)))


def create_database(server: "psycopg.Connection[Any]", name: str) -> None:
    if server.execute("SELECT 1 FROM pg_database WHERE datname = %s", [name]).fetchone() is None:
        server.execute(sql.SQL("CREATE DATABASE {} TEMPLATE template0 ENCODING 'UTF8'").format(sql.Identifier(name)))


def grant_rights(database: "psycopg.Connection[Any]", role: str) -> None:
    """Rows, not tables: what the owner creates from now on can be read and written, never altered, by the application."""
    who = sql.Identifier(role)
    for statement in (
        "REVOKE CREATE ON SCHEMA public FROM PUBLIC",
        "GRANT USAGE ON SCHEMA public TO {}",
        "ALTER DEFAULT PRIVILEGES IN SCHEMA public GRANT SELECT, INSERT, UPDATE, DELETE ON TABLES TO {}",
        "ALTER DEFAULT PRIVILEGES IN SCHEMA public GRANT USAGE, SELECT ON SEQUENCES TO {}",
    ):
        database.execute(sql.SQL(statement).format(who))
