"""Removes what has expired and would otherwise stay for ever."""

from importlib import import_module

from django.conf import settings

from workers.app import app


@app.task(name="housekeeping.clear_sessions")
def clear_sessions() -> None:
    """Sign-ins that have run out."""
    import_module(settings.SESSION_ENGINE).SessionStore.clear_expired()
