"""What an answer holds, however it is sent."""

from asgiref.sync import async_to_sync
from django.http import StreamingHttpResponse


def content_of(answer: StreamingHttpResponse) -> bytes:
    """The bytes of a streamed download."""

    async def read() -> bytes:
        return b"".join([chunk async for chunk in answer])

    return async_to_sync(read)()
