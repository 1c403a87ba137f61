"""`manage.py bootstrap_database` on an empty server: role, database, rights, migrations; twice is as good as once."""

import os
import subprocess
import sys
from pathlib import Path

import psycopg
import pytest

from tests.fixtures.places import REPOSITORY
from workers.embedded.postgres import Postgres

ROLE = f"bootstrap_app_{os.getpid()}"
DATABASE = f"bootstrap_{os.getpid()}"


def manage(server: Postgres, *arguments: str, **variables: str) -> "subprocess.CompletedProcess[str]":
    urls = {"DATABASE_URL": server.url(ROLE, DATABASE), "DATABASE_ADMIN_URL": server.url("postgres", DATABASE)}
    environment = {**os.environ, **urls, "DJANGO_SETTINGS_MODULE": "controlplane.settings"} | variables
    command = [sys.executable, str(REPOSITORY / "platform" / "manage.py"), *arguments]
    return subprocess.run(command, env=environment, cwd=REPOSITORY, capture_output=True, text=True, check=False)


@pytest.fixture
def server(postgres_server: Postgres):
    yield postgres_server
    with psycopg.connect(postgres_server.url("postgres", "postgres"), autocommit=True) as owner:
        owner.execute(f'DROP DATABASE IF EXISTS "{DATABASE}" WITH (FORCE)')
        owner.execute(f'DROP ROLE IF EXISTS "{ROLE}"')


def test_it_makes_a_working_database_and_may_be_repeated(server: Postgres, tmp_path: Path):
    for _ in range(2):
        done = manage(server, "bootstrap_database", "--verbosity", "0")
        assert done.returncode == 0, done.stderr
    with psycopg.connect(server.url(ROLE, DATABASE), autocommit=True) as application:
        assert application.execute("SELECT count(*) FROM teams_user").fetchone() == (0,)
        assert application.execute("SELECT rootstock_now() IS NOT NULL").fetchone() == (True,)
        for forbidden in ("CREATE TABLE x (y int)", "DROP TABLE teams_user", "TRUNCATE teams_user", "CREATE ROLE x"):
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                application.execute(forbidden)


def test_without_the_owners_url_it_says_what_is_missing(server: Postgres):
    done = manage(server, "bootstrap_database", DATABASE_ADMIN_URL="")
    assert done.returncode != 0 and "DATABASE_ADMIN_URL" in done.stderr
