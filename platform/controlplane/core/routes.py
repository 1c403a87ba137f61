"""How an address is registered: with and without the trailing slash, since public clients use both and a redirect would turn
their POST into a GET."""

from collections.abc import Callable
from typing import Any

from django.urls import URLPattern, path
from django.views import View

SLASH_TWIN = "+slash"


def endpoint(route: str, view: type[View] | Callable[..., Any], name: str = "") -> list[URLPattern]:
    """Both spellings of one address: `urlpatterns = [*endpoint("keys", KeysView), …]`. `route` has no slash at either end."""
    if route.startswith("/") or route.endswith("/"):
        raise ValueError(f"write the route {route!r} without a slash at either end")
    handler: Callable[..., Any] = view.as_view() if isinstance(view, type) and issubclass(view, View) else view
    name = name or getattr(view, "__name__", route)
    return [path(route, handler, name=name), path(f"{route}/", handler, name=name + SLASH_TWIN)]
