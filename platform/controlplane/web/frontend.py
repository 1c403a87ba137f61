"""Serves the built single-page app: its files as they are, its index page for every address that is the app's own.

Knows `frontend/dist`. Whitenoise knows types, compression and caching. Refuses to answer for the API.
"""

import re
from typing import Any

from asgiref.sync import iscoroutinefunction, markcoroutinefunction
from django.conf import settings
from django.http import HttpRequest, HttpResponse
from whitenoise import WhiteNoise
from whitenoise.responders import Redirect, StaticFile

# Vite puts a content hash into the names below assets/.
_IMMUTABLE = re.compile(r"^/assets/.+-[A-Za-z0-9_-]{8,}\.[a-z0-9]+$")
_METHODS = frozenset({"GET", "HEAD"})


class FrontendMiddleware:
    """Whitenoise without its own middleware, which is synchronous and would hold a thread for every open stream."""

    sync_capable = True
    async_capable = True

    def __init__(self, get_response: Any) -> None:
        self.get_response = get_response
        if iscoroutinefunction(get_response):
            markcoroutinefunction(self)
        self.files: dict[str, StaticFile | Redirect] = {}
        if settings.FRONTEND_DIST.is_dir():
            self.files = WhiteNoise(
                None, root=str(settings.FRONTEND_DIST), immutable_file_test=lambda path, url: bool(_IMMUTABLE.match(url))
            ).files

    def __call__(self, request: HttpRequest) -> Any:
        if iscoroutinefunction(self):
            return self._async_call(request)
        return self._file(request) or self.get_response(request)

    async def _async_call(self, request: HttpRequest) -> Any:
        return self._file(request) or await self.get_response(request)

    def _file(self, request: HttpRequest) -> HttpResponse | None:
        static = self.files.get(request.path_info) if request.method in _METHODS else None
        if static is None:
            return None
        answer = static.get_response(request.method, request.META)
        content = answer.file.read() if answer.file is not None else b""
        return HttpResponse(content, status=int(answer.status), headers=dict(answer.headers))
