"""The files of an archive, kept aside as they stream by, so that they can be hashed in an order that is not the archive's.

Knows where each begins. Refuses to know limits: whoever adds has counted the bytes (`members.Census`).
"""

from collections.abc import Iterable, Iterator, Mapping
from io import SEEK_END
from typing import IO

CHUNK_BYTES = 2**20


class SpooledTree(Mapping[str, Iterator[bytes]]):
    """Chunks of each file by its path. One file is read at a time."""

    def __init__(self, spool: IO[bytes]) -> None:
        self._spool = spool
        self._places: dict[str, tuple[int, int]] = {}

    def add(self, name: str, chunks: Iterable[bytes]) -> None:
        start = self._spool.seek(0, SEEK_END)
        size_bytes = sum(self._spool.write(chunk) for chunk in chunks)
        self._places[name] = (start, size_bytes)

    def __getitem__(self, name: str) -> Iterator[bytes]:
        return self._read(*self._places[name])

    def _read(self, start: int, left_bytes: int) -> Iterator[bytes]:
        self._spool.seek(start)
        while left_bytes and (chunk := self._spool.read(min(left_bytes, CHUNK_BYTES))):
            left_bytes -= len(chunk)
            yield chunk

    def __iter__(self) -> Iterator[str]:
        return iter(self._places)

    def __len__(self) -> int:
        return len(self._places)
