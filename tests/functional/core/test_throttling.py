"""A limit counts tries of one window, whatever process they come through."""

from datetime import timedelta

import pytest

from controlplane.core.errors import RateLimited
from controlplane.core.throttling import Limit

pytestmark = pytest.mark.django_db
LIMIT = Limit("test", tries_max=2, window_s=60)


def test_tries_above_the_limit_are_refused_until_the_window_ends(shift_clock):
    LIMIT.take("ada")
    LIMIT.take("ada")
    with pytest.raises(RateLimited) as refused:
        LIMIT.take("ada")
    assert refused.value.retry_after_s is not None and 0 < refused.value.retry_after_s <= 60
    shift_clock(timedelta(seconds=61))
    LIMIT.take("ada")


def test_everybody_has_their_own_count():
    for who in ("ada", "bob"):
        LIMIT.take(who)
        LIMIT.take(who)
        with pytest.raises(RateLimited):
            LIMIT.take(who)
