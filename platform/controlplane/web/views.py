"""Health, and the page that holds the app. Knows whether the parts this process needs answer."""

from django.conf import settings
from django.db import DatabaseError, connection
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.views.decorators.http import require_safe

from controlplane.core import broker

MISSING_FRONTEND = (
    "<!doctype html><title>Rootstock</title>"
    "<p>The API is up. The dashboard is not built: run <code>make frontend</code> and restart."
)


@require_safe
def health(request: HttpRequest) -> HttpResponse:
    """200 when PostgreSQL and the broker answer, else 503 naming what does not."""
    parts = {"database": _database_answers(), "broker": broker.is_reachable()}
    healthy = all(parts.values())
    return JsonResponse({"status": "ok" if healthy else "degraded", "parts": parts}, status=200 if healthy else 503)


@require_safe
def single_page_app(request: HttpRequest) -> HttpResponse:
    """The same page for every address: the app routes in the browser."""
    page = settings.FRONTEND_DIST / "index.html"
    if not page.is_file():
        return HttpResponse(MISSING_FRONTEND, status=503)
    return HttpResponse(page.read_bytes(), headers={"Cache-Control": "no-cache"})


def _database_answers() -> bool:
    try:
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1")
    except DatabaseError:
        return False
    return True
