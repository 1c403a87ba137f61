"""Sends a stored object without holding it in memory.

Django's own `FileResponse` is read whole before the first byte leaves under ASGI, since its iterator is synchronous. Knows open
files. Refuses to know whose they are and who may have them.
"""

import asyncio
import re
import sys
from collections.abc import AsyncIterator
from typing import BinaryIO

from django.http import HttpRequest, StreamingHttpResponse
from django.utils.http import content_disposition_header

from controlplane.core.objects.keys import CHUNK_BYTES


def attachment(file: BinaryIO, *, filename: str, size_bytes: int | None = None) -> StreamingHttpResponse:
    """The file as a download of no particular type: a stored page must never run under our origin. Closes the file at its end."""
    answer = StreamingHttpResponse(_chunks(file), content_type="application/octet-stream")
    answer["Content-Disposition"] = content_disposition_header(True, filename) or "attachment"
    if size_bytes is not None:
        answer["Content-Length"] = str(size_bytes)
    return answer


def requested_part(request: HttpRequest, file: BinaryIO, *, filename: str, size_bytes: int) -> StreamingHttpResponse:
    """The file, or the one range of it that the request asks for (RFC 9110, 14.2); several ranges are answered with the whole."""
    span = _span(request.headers.get("Range", ""), size_bytes)
    if span is None:
        answer = attachment(file, filename=filename, size_bytes=size_bytes)
    elif span[0] >= span[1]:
        file.close()
        answer = StreamingHttpResponse(_nothing(), status=416)
        answer["Content-Range"] = f"bytes */{size_bytes}"
    else:
        start, end = span
        answer = StreamingHttpResponse(_chunks(file, start, end - start), status=206, content_type="application/octet-stream")
        answer["Content-Range"] = f"bytes {start}-{end - 1}/{size_bytes}"
        answer["Content-Length"] = str(end - start)
    answer["Accept-Ranges"] = "bytes"
    return answer


def _span(header: str, size_bytes: int) -> tuple[int, int] | None:
    """Start and end (exclusive) of `bytes=a-b`, `bytes=a-` or `bytes=-n`; None where the header asks for nothing that we know."""
    match = re.fullmatch(r"bytes=(\d{0,18})-(\d{0,18})", header.strip())
    if match is None or not (match[1] or match[2]):
        return None
    if not match[1]:
        return max(0, size_bytes - int(match[2])), size_bytes
    start, last = int(match[1]), int(match[2]) if match[2] else size_bytes - 1
    return None if last < start and match[2] else (start, min(last + 1, size_bytes))


async def _chunks(file: BinaryIO, start: int = 0, length: int | None = None) -> AsyncIterator[bytes]:
    """One chunk in memory at a time; reading happens on a thread, since a disk or an object store may take its time."""
    try:
        await asyncio.to_thread(_skip, file, start)
        left_bytes = sys.maxsize if length is None else length
        while chunk := await asyncio.to_thread(_read, file, left_bytes):
            left_bytes -= len(chunk)
            yield chunk
    finally:
        file.close()


def _read(file: BinaryIO, left_bytes: int) -> bytes:
    return file.read(min(CHUNK_BYTES, left_bytes))


async def _nothing() -> AsyncIterator[bytes]:
    return
    yield b""


def _skip(file: BinaryIO, size_bytes: int) -> None:
    """An object store's stream only goes forward."""
    if file.seekable():
        file.seek(size_bytes)
        return
    while size_bytes > 0 and (chunk := file.read(min(CHUNK_BYTES, size_bytes))):
        size_bytes -= len(chunk)
