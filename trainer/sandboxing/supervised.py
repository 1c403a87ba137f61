"""The life of one started box, whichever driver started it: read its output, watch limits, end it, record why.

Knows an attached process, a log buffer, a clock. Refuses to know namespaces and engines: a `Box` says how to look at the tree,
how to kill it, and what its end looked like from the outside.
"""

import asyncio
import time
from asyncio.subprocess import Process
from pathlib import Path
from typing import Protocol

from trainer.sandboxing.output import LogBuffer
from trainer.sandboxing.processes import folder_bytes
from trainer.sandboxing.specs import EndReason, SandboxEnd, SandboxSpec, SandboxUsage

_WATCH_S = 0.25
_DRAIN_S = 5.0
_CHUNK_BYTES = 64 * 1024
_OVER_LIMIT_PAUSE_S = 0.05
"""A box that floods its output is slowed to about 1 MiB/s instead of eating our processor."""


class Box(Protocol):
    """What a driver knows about one box that runs."""

    def breach(self) -> tuple[EndReason, str] | None:
        """A limit that nothing but looking can enforce, if it is exceeded right now."""
        ...

    async def kill(self) -> None: ...

    async def end(self, exit_code: int) -> tuple[EndReason, float | None, int | None]:
        """(reason, cpu_s, memory_peak_bytes) of a tree that ended without us; also cleans up."""
        ...


class SupervisedSandbox:
    """Implements `Sandbox` over an attached process and a `Box`."""

    def __init__(self, spec: SandboxSpec, process: Process, box: Box) -> None:
        self._spec, self._process, self._box = spec, process, box
        self._log = LogBuffer(spec.limits.log_bytes)
        self._started = time.monotonic()
        self._verdict: tuple[EndReason, str] | None = None
        self._reader = asyncio.create_task(self._read_output())
        self._life = asyncio.create_task(self._live())

    @property
    def sandbox_id(self) -> str:
        return self._spec.sandbox_id

    @property
    def alive(self) -> bool:
        return not self._life.done()

    async def wait(self) -> SandboxEnd:
        return await asyncio.shield(self._life)

    async def kill(self, detail: str = "") -> SandboxEnd:
        await self._condemn("killed", detail)
        return await self.wait()

    def logs(self) -> str:
        return self._log.text()

    async def _live(self) -> SandboxEnd:
        exited = asyncio.create_task(self._process.wait())
        while not (await asyncio.wait({exited}, timeout=_WATCH_S))[0]:
            if breach := self._breach():
                await self._condemn(*breach)
        reason, cpu_s, memory_peak_bytes = await self._box.end(exited.result())
        detail = ""
        if self._verdict:
            reason, detail = self._verdict
        await asyncio.wait({self._reader}, timeout=_DRAIN_S)
        self._reader.cancel()
        usage = SandboxUsage(time.monotonic() - self._started, cpu_s, memory_peak_bytes)
        return SandboxEnd(reason, exited.result(), usage, detail)

    def _breach(self) -> tuple[EndReason, str] | None:
        limits = self._spec.limits
        if time.monotonic() - self._started > limits.deadline_s:
            return "timeout", f"the deadline of {limits.deadline_s:g} s passed"
        for mount in self._spec.mounts:
            if mount.writable and (held := _held_bytes(mount.source)) > limits.disk_bytes:
                return "disk", f"{mount.target} held {held} bytes, the limit is {limits.disk_bytes}"
        return self._box.breach()

    async def _condemn(self, reason: EndReason, detail: str) -> None:
        if not self._life.done() and self._process.returncode is None:
            self._verdict = self._verdict or (reason, detail)
            await self._box.kill()

    async def _read_output(self) -> None:
        assert self._process.stdout is not None
        while data := await self._process.stdout.read(_CHUNK_BYTES):
            self._log.write(data)
            if self._log.is_over_limit:
                await asyncio.sleep(_OVER_LIMIT_PAUSE_S)


def _held_bytes(source: Path) -> int:
    return folder_bytes(source) if source.is_dir() else 0
