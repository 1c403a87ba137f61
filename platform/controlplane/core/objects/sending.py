"""Sends a stored object without holding it in memory.

Django's own `FileResponse` is read whole before the first byte leaves under ASGI, since its iterator is synchronous. Knows open
files. Refuses to know whose they are and who may have them.
"""

import asyncio
from collections.abc import AsyncIterator
from typing import BinaryIO

from django.http import StreamingHttpResponse
from django.utils.http import content_disposition_header

from controlplane.core.objects.keys import CHUNK_BYTES


def attachment(file: BinaryIO, *, filename: str, size_bytes: int | None = None) -> StreamingHttpResponse:
    """The file as a download of no particular type: a stored page must never run under our origin. Closes the file at its end."""
    answer = StreamingHttpResponse(_chunks(file), content_type="application/octet-stream")
    answer["Content-Disposition"] = content_disposition_header(True, filename) or "attachment"
    if size_bytes is not None:
        answer["Content-Length"] = str(size_bytes)
    return answer


async def _chunks(file: BinaryIO) -> AsyncIterator[bytes]:
    """One chunk in memory at a time; reading happens on a thread, since a disk or an object store may take its time."""
    try:
        while chunk := await asyncio.to_thread(_read, file):
            yield chunk
    finally:
        file.close()


def _read(file: BinaryIO) -> bytes:
    return file.read(CHUNK_BYTES)
