"""The object store in a local directory. Knows temp-and-rename and our own signed URLs; serving them is `objects.views`."""

import hashlib
import os
import tempfile
from pathlib import Path
from typing import BinaryIO

from controlplane.core.objects.keys import MissingObject, StoredObject, check_key, chunks, describe
from controlplane.core.objects.signing import sign


class LocalStore:
    """Objects are files below `root`. `origin` is where clients reach the view that serves signed URLs."""

    def __init__(self, root: Path, origin: str) -> None:
        self.root = root
        self.origin = origin

    def put(self, key: str, data: bytes | BinaryIO) -> StoredObject:
        path = self._path(key)
        path.parent.mkdir(parents=True, exist_ok=True)
        digest, size_bytes = hashlib.sha256(), 0
        handle, partial = tempfile.mkstemp(dir=path.parent, prefix=".partial-")
        try:
            with os.fdopen(handle, "wb") as file:
                for chunk in chunks(data):
                    file.write(chunk)
                    digest.update(chunk)
                    size_bytes += len(chunk)
                file.flush()
                os.fsync(file.fileno())
            Path(partial).replace(path)
        finally:
            Path(partial).unlink(missing_ok=True)
        return StoredObject(key, digest.hexdigest(), size_bytes)

    def open(self, key: str) -> BinaryIO:
        try:
            return self._path(key).open("rb")
        except FileNotFoundError:
            raise MissingObject(key) from None

    def read(self, key: str) -> bytes:
        with self.open(key) as file:
            return file.read()

    def stat(self, key: str) -> StoredObject | None:
        try:
            with self.open(key) as file:
                return describe(key, file)
        except MissingObject:
            return None

    def delete(self, key: str) -> None:
        self._path(key).unlink(missing_ok=True)

    def signed_get_url(self, key: str, expires_s: int) -> str:
        return f"{self.origin}/objects/{sign('GET', check_key(key), expires_s)}"

    def signed_put_url(self, key: str, expires_s: int, size_max: int) -> str:
        return f"{self.origin}/objects/{sign('PUT', check_key(key), expires_s, size_max)}"

    def _path(self, key: str) -> Path:
        return self.root / check_key(key)
