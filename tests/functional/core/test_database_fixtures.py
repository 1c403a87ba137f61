"""The fixtures' own promise: a test that commits leaves nothing behind, and what migrations made is back."""

import pytest

from controlplane.core.models import RateBucket
from controlplane.core.throttling import Limit


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("turn", [1, 2])
def test_commits_do_not_survive_their_test(turn: int):
    assert RateBucket.objects.count() == 0
    Limit("x", burst=1, window_s=60).take("me")
    assert RateBucket.objects.count() == 1
