"""One life of a runner: from the start of its sandbox to its end, watched from outside.

Knows health, output and billable seconds. Refuses to know tasks and rollouts, and whether there will be another life.
"""

import asyncio
import contextlib
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, Protocol

from starlette.types import ASGIApp

from trainer.contracts.events import Component
from trainer.contracts.interfaces import Interface
from trainer.contracts.internal import UsageIn
from trainer.contracts.rollouts import MODEL_SOCKET, RunnerHealth
from trainer.orchestrator.attempt.reporting import Reporter
from trainer.orchestrator.environments.runner_client import RunnerClient
from trainer.orchestrator.environments.sandbox_meter import SandboxMeter
from trainer.orchestrator.transport.link import Link
from trainer.orchestrator.transport.unix_server import serve_unix
from trainer.sandboxing.runners import RunnerLost, runner_folder
from trainer.sandboxing.specs import SandboxEnd

WATCH_S = 5.0
SILENT_S = 30.0
END_KNOWN_S = 1.0
"""A broken connection is often the first sign of a sandbox's end; the end itself tells more."""
LOG_LINES_MAX = 2_000


class Box(Protocol):
    async def wait(self) -> SandboxEnd: ...


class Runner(Protocol):
    """What is used of a `RunnerHandle`: a runner that has said it is ready."""

    @property
    def sandbox(self) -> Box: ...

    @property
    def socket_path(self) -> Path: ...

    @property
    def health(self) -> RunnerHealth: ...

    @property
    def requirements_lock(self) -> str: ...

    @property
    def interface(self) -> Interface: ...

    async def check(self) -> RunnerHealth: ...

    def logs(self) -> str: ...

    async def stop(self, detail: str = "") -> SandboxEnd: ...


StartRunner = Callable[[Path], Awaitable[Runner]]
"""Brings the release up in a sandbox around a folder of sockets. Raises AttemptOver where release or host do not allow it."""


class RunnerLife:
    """Made by `begin`."""

    def __init__(
        self, environment: str, runner: Runner, stack: contextlib.AsyncExitStack, *, meter: SandboxMeter, reporter: Reporter
    ):
        self._environment = environment
        self._link = Link.to_socket(runner.socket_path)
        self.client = RunnerClient(self._link, reporter.redactor)
        self.health = runner.health
        self.requirements_lock = runner.requirements_lock
        self.interface = runner.interface
        self._runner = runner
        self._stack = stack
        self._meter = meter
        self._reporter = reporter
        self._suspicion: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self._logged_lines = 0

    @classmethod
    async def begin(
        cls, environment: str, start: StartRunner, model_app: ASGIApp, *, meter_name: str, reporter: Reporter
    ) -> "RunnerLife":
        """Serve the model socket, then start the runner beside it."""
        started_s = time.monotonic()
        async with contextlib.AsyncExitStack() as stack:
            folder = stack.enter_context(runner_folder())
            await stack.enter_async_context(serve_unix(model_app, folder / MODEL_SOCKET))
            runner = await start(folder)
            stack.push_async_callback(runner.stop, "no longer needed")
            meter = SandboxMeter(meter_name, started_s=started_s)
            return cls(environment, runner, stack.pop_all(), meter=meter, reporter=reporter)
        raise AssertionError("unreachable")

    async def until_lost(self) -> str:
        """Why the runner can no longer be used: its process ended, it fell silent, or it broke the protocol."""
        ended = asyncio.ensure_future(self._runner.sandbox.wait())
        heard_s = time.monotonic()
        try:
            while True:
                signs: set[asyncio.Future[Any]] = {ended, self._suspicion}
                await asyncio.wait(signs, timeout=WATCH_S, return_when=asyncio.FIRST_COMPLETED)
                if self._suspicion.done():
                    await asyncio.wait({ended}, timeout=END_KNOWN_S)
                if ended.done():
                    return _words(ended.result())
                if self._suspicion.done():
                    return self._suspicion.result()
                if await self._answers():
                    heard_s = time.monotonic()
                elif time.monotonic() - heard_s > SILENT_S:
                    return f"it has not answered for {SILENT_S:.0f} s (does the environment block its process?)"
                self.forward_logs()
        finally:
            ended.cancel()

    def suspect(self, reason: str) -> None:
        """The runner said something that it must not say, or nothing where it must."""
        if not self._suspicion.done():
            self._suspicion.set_result(reason)

    async def end(self) -> list[UsageIn]:
        """Kill the sandbox. Returns the seconds that became billable by its end."""
        self.forward_logs()
        await self._stack.aclose()
        self._link.close()
        return self._meter.due(time.monotonic(), ended=True)

    def usage(self) -> list[UsageIn]:
        return self._meter.due(time.monotonic())

    def logs(self) -> str:
        return self._reporter.redactor.text(self._runner.logs())

    def forward_logs(self, last: int | None = None) -> None:
        """What the environment printed since the last call, up to a limit; with `last`, the newest lines in any case."""
        lines = self._runner.logs().splitlines()
        fresh = lines[self._logged_lines : LOG_LINES_MAX] if last is None else lines[-last:]
        self._logged_lines = max(self._logged_lines, min(len(lines), LOG_LINES_MAX))
        for line in fresh:
            self._reporter.log(line, component=Component.ENVIRONMENT, environment=self._environment)

    async def _answers(self) -> bool:
        try:
            await self._runner.check()
        except RunnerLost:
            return False
        return True


def _words(end: SandboxEnd) -> str:
    detail = f": {end.detail}" if end.detail else ""
    return f"its sandbox ended ({end.reason}, exit code {end.exit_code}){detail}"
