"""Serves and takes objects of the local store under signed addresses. The signature is the credential; no session, no key."""

import os
from typing import Any

from django.http import HttpRequest, HttpResponse, HttpResponseBase, HttpResponseNotAllowed
from django.utils.decorators import method_decorator
from django.views import View
from django.views.decorators.csrf import csrf_exempt

from controlplane.core.errors import NotFound, TooLarge
from controlplane.core.objects import signing
from controlplane.core.objects.keys import MissingObject
from controlplane.core.objects.local import LocalStore
from controlplane.core.objects.selection import store
from controlplane.core.objects.sending import attachment
from controlplane.core.schemas import read_query


@method_decorator(csrf_exempt, name="dispatch")
class ObjectView(View):
    http_method_names = ["get", "head", "put"]

    def dispatch(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        if request.method not in {"GET", "HEAD", "PUT"}:
            return HttpResponseNotAllowed(["GET", "HEAD", "PUT"])
        self.permit = read_query(request, signing.Permit)
        signing.check("PUT" if request.method == "PUT" else "GET", kwargs["key"], self.permit)
        return super().dispatch(request, *args, **kwargs)

    def get(self, request: HttpRequest, key: str) -> HttpResponseBase:
        try:
            file = _local().open(key)
        except MissingObject:
            raise NotFound("There is no such object.") from None
        return attachment(file, filename=key.rsplit("/", 1)[-1], size_bytes=os.fstat(file.fileno()).st_size)

    def put(self, request: HttpRequest, key: str) -> HttpResponse:
        if int(request.headers.get("Content-Length") or 0) > self.permit.size_max:
            raise TooLarge(f"The object may have at most {self.permit.size_max} bytes.")
        stored = _local().put(key, _Limited(request, self.permit.size_max))  # type: ignore[arg-type]
        return HttpResponse(status=200, headers={"ETag": f'"{stored.sha256}"'})


class _Limited:
    """Reads a request's body up to a limit, for bodies that do not declare their length."""

    def __init__(self, request: HttpRequest, size_max: int) -> None:
        self.request = request
        self.left_bytes = size_max

    def read(self, size_bytes: int) -> bytes:
        chunk = self.request.read(size_bytes)
        self.left_bytes -= len(chunk)
        if self.left_bytes < 0:
            raise TooLarge("The object is larger than its address allows.")
        return chunk


def _local() -> LocalStore:
    found = store()
    if not isinstance(found, LocalStore):
        raise NotFound("Objects of this installation are not served here.")
    return found
