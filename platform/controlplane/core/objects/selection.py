"""Which store the settings name. Knows the two URL schemes."""

from functools import lru_cache
from pathlib import Path
from urllib.parse import unquote, urlsplit

from django.conf import settings

from controlplane.core.objects.keys import ObjectStore
from controlplane.core.objects.local import LocalStore
from controlplane.core.objects.s3 import S3Store


def store() -> ObjectStore:
    return _build(settings.OBJECT_STORE_URL, settings.PUBLIC_ORIGIN, settings.S3_ENDPOINT_URL, settings.S3_PUBLIC_URL)


@lru_cache(maxsize=4)
def _build(url: str, origin: str, endpoint_url: str | None, public_url: str | None) -> ObjectStore:
    parts = urlsplit(url)
    if parts.scheme == "file":
        return LocalStore(Path(unquote(parts.path)), origin)
    return S3Store(parts.netloc, parts.path, endpoint_url, public_url=public_url)
