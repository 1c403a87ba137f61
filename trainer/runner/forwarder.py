"""127.0.0.1:PORT inside the box ↔ the model socket of the bound folder, so that clients see an ordinary base URL.

Knows bytes. Refuses to know HTTP.
"""

import asyncio
from pathlib import Path

_CHUNK_BYTES = 64 * 1024


async def start_forwarder(model_socket: Path, port: int) -> asyncio.Server:
    """Listening once this returns. A connection is closed when the far side cannot be reached."""

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            far_reader, far_writer = await asyncio.open_unix_connection(str(model_socket))
        except OSError:
            writer.close()
            return
        await asyncio.gather(_pipe(reader, far_writer), _pipe(far_reader, writer))

    return await asyncio.start_server(handle, "127.0.0.1", port)


async def _pipe(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while data := await reader.read(_CHUNK_BYTES):
            writer.write(data)
            await writer.drain()
    except ConnectionError:
        pass  # one side hung up: closing the other is all there is to do
    finally:
        writer.close()
