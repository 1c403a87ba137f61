"""Both spellings of an address lead to the same view."""

import pytest
from django.urls import URLResolver
from django.urls.resolvers import RegexPattern
from django.views import View

from controlplane.core.routes import endpoint


class Sample(View):
    """Only to be routed."""


def test_both_spellings_are_one_view():
    resolver = URLResolver(RegexPattern(r"^/"), endpoint("runs/<str:run_id>", Sample))
    with_slash, without = (resolver.resolve(path) for path in ("/runs/c1/", "/runs/c1"))
    assert with_slash.kwargs == without.kwargs == {"run_id": "c1"} and with_slash.func is without.func


@pytest.mark.parametrize("route", ["/runs", "runs/", "/runs/"])
def test_slashes_are_not_the_callers_business(route: str):
    with pytest.raises(ValueError, match="without a slash"):
        endpoint(route, Sample)
