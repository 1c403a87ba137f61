"""Promise: a team never holds more places than its limit, and every place comes back."""

from contextlib import ExitStack

import pytest

from controlplane.inference.admission import slot
from controlplane.inference.errors import TooManyAtOnce


def test_the_limit_counts_per_team():
    with ExitStack() as held:
        for _ in range(3):
            held.enter_context(slot("a", limit=3))
        with pytest.raises(TooManyAtOnce, match="3 requests in flight"):
            held.enter_context(slot("a", limit=3))
        held.enter_context(slot("b", limit=3))


def test_a_place_comes_back_after_an_error():
    with pytest.raises(RuntimeError), slot("a", limit=1):
        raise RuntimeError
    with slot("a", limit=1):
        pass
