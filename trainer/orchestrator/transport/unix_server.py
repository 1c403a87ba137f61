"""Serving an ASGI application on a Unix socket inside this process's event loop.

Knows uvicorn. Refuses to know what is served, and leaves signals to `__main__`.
"""

import asyncio
import contextlib
import os
import socket
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import uvicorn
from starlette.types import ASGIApp

BACKLOG = 1024


class QuietServer(uvicorn.Server):
    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """The process has one handler for signals; a server in it takes none over."""
        yield


@contextlib.asynccontextmanager
async def serve_unix(app: ASGIApp, path: Path) -> AsyncIterator[None]:
    """Serve while the context lasts. The folder's mode guards the socket; the socket itself is open to the sandbox's user."""
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    path.unlink(missing_ok=True)
    listener.bind(str(path))
    os.chmod(path, 0o666)
    listener.listen(BACKLOG)
    server = QuietServer(uvicorn.Config(app, log_level="error", access_log=False, lifespan="off", timeout_keep_alive=75))
    task = asyncio.create_task(server.serve(sockets=[listener]), name=f"serve {path.name}")
    try:
        while not server.started:
            if task.done():
                await task
            await asyncio.sleep(0.001)
        yield
    finally:
        server.should_exit = server.force_exit = True
        await asyncio.wait({task}, timeout=5)
        listener.close()
        path.unlink(missing_ok=True)
