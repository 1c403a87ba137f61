"""The fixtures' own promise: a test that commits leaves nothing behind, and what migrations made is back."""

import pytest

from controlplane.core.models import RateWindow
from controlplane.core.throttling import Limit


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("turn", [1, 2])
def test_commits_do_not_survive_their_test(turn: int):
    assert RateWindow.objects.count() == 0
    Limit("x", tries_max=1, window_s=60).take("me")
    assert RateWindow.objects.count() == 1
