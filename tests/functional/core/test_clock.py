"""The database's clock, and its shift."""

from datetime import UTC, timedelta

import pytest
from django.db import DatabaseError, connection, transaction

from controlplane.core import clock

pytestmark = pytest.mark.django_db


def test_now_is_aware_utc():
    assert clock.now().utcoffset() == timedelta(0)
    assert clock.now().astimezone(UTC) <= clock.now()


def test_a_shift_moves_it_and_adds_up(shift_clock):
    before = clock.now()
    shift_clock(timedelta(hours=1))
    shift_clock(timedelta(hours=1))
    assert timedelta(hours=2) <= clock.now() - before < timedelta(hours=2, minutes=1)


def test_a_shift_ends_with_its_test():
    with connection.cursor() as cursor:
        cursor.execute("SELECT abs(extract(epoch FROM rootstock_now() - now())) < 60")
        assert cursor.fetchone() == (True,)


@pytest.mark.parametrize("statement", ["INSERT INTO core_clock_shift (shift) VALUES ('1 h')", "DELETE FROM core_clock_shift"])
def test_the_application_cannot_shift_it(statement: str):
    with pytest.raises(DatabaseError, match="permission denied"), transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(statement)
