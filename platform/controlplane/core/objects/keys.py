"""What an object store promises, and how keys are spelled. Knows no backend.

Keys are relative paths of a safe alphabet. An object is visible whole or not at all. Digests are computed from the bytes, never
taken from metadata that somebody else could have written.
"""

import hashlib
import io
import re
from collections.abc import Iterator
from typing import BinaryIO, NamedTuple, Protocol

CHUNK_BYTES = 2**20
_SEGMENT = r"[A-Za-z0-9_@+-][A-Za-z0-9_.@+-]*"
_KEY = re.compile(rf"{_SEGMENT}(?:/{_SEGMENT})*")
KEY_LENGTH_MAX = 512


class StoredObject(NamedTuple):
    key: str
    sha256: str
    size_bytes: int


class MissingObject(LookupError):
    """Nothing is stored under that key."""


class ObjectStore(Protocol):
    """`put` replaces what was there. `open`, `read` raise MissingObject; `stat` answers None and reads the bytes to hash them.

    `delete` of an absent key does nothing. Signed URLs need no other credential and end after `expires_s` seconds.
    """

    def put(self, key: str, data: bytes | BinaryIO) -> StoredObject: ...
    def open(self, key: str) -> BinaryIO: ...
    def read(self, key: str) -> bytes: ...
    def stat(self, key: str) -> StoredObject | None: ...
    def delete(self, key: str) -> None: ...
    def signed_get_url(self, key: str, expires_s: int) -> str: ...
    def signed_put_url(self, key: str, expires_s: int, size_max: int) -> str: ...


def check_key(key: str) -> str:
    """Raises ValueError for a key that is not a plain relative path."""
    if len(key) > KEY_LENGTH_MAX or not _KEY.fullmatch(key) or ".." in key:
        raise ValueError(f"not an object key: {key!r}")
    return key


def content_key(folder: str, sha256: str, suffix: str = "") -> str:
    """Content-addressed: `folder/ab/abcd….suffix`."""
    return f"{folder}/{sha256[:2]}/{sha256}{suffix}"


def chunks(data: bytes | BinaryIO) -> Iterator[bytes]:
    stream = io.BytesIO(data) if isinstance(data, bytes) else data
    while chunk := stream.read(CHUNK_BYTES):
        yield chunk


def describe(key: str, stream: BinaryIO) -> StoredObject:
    """Digest and size of what `stream` still holds."""
    digest, size_bytes = hashlib.sha256(), 0
    for chunk in chunks(stream):
        digest.update(chunk)
        size_bytes += len(chunk)
    return StoredObject(key, digest.hexdigest(), size_bytes)
