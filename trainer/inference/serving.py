"""One engine process around its application: uvicorn, signals, exit codes. Knows processes; refuses to know what is served."""

import os
import signal

import uvicorn
from starlette.types import ASGIApp

GRACE_S = 10
KEEP_ALIVE_S = 75
"""Longer than any client keeps an idle connection: who closes first must be the one who knows whether a request is on its way."""


def pool_token() -> str | None:
    """The bearer that callers must show; None asks for none."""
    return os.environ.get("ROOTSTOCK_POOL_TOKEN") or None


class EngineServer:
    """Serves until SIGTERM: no new connections, what runs may end, then the rest is cut."""

    def __init__(self, host: str, port: int) -> None:
        self._host, self._port = host, port
        self._server: uvicorn.Server | None = None
        self._failed = False

    def fail(self) -> None:
        """Nothing in here can be trusted any more: end, with an exit code that says so."""
        self._failed = True
        if self._server is not None:
            self._server.should_exit = True

    def run(self, app: ASGIApp) -> int:
        """The process's exit code."""
        options = {"access_log": False, "timeout_graceful_shutdown": GRACE_S, "timeout_keep_alive": KEEP_ALIVE_S}
        self._server = uvicorn.Server(uvicorn.Config(app, host=self._host, port=self._port, **options))
        for number in (signal.SIGTERM, signal.SIGINT):
            # uvicorn puts these back and raises the signal again when it is done; a clean end is no death by signal.
            signal.signal(number, lambda *_: None)
        self._server.run()
        return 1 if self._failed or not self._server.started else 0
