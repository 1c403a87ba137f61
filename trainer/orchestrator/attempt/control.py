"""Client of the control plane's internal API: everything that an attempt may say, under its lease.

Knows `/internal/v1`, retries and the lease's end. Refuses to know what a run is. Once the lease is lost nothing more is sent,
whatever is called: a stale process cannot write.
"""

import asyncio
import time
from typing import Any, TypeVar

import httpx

from trainer.contracts.adapters import FileEntry
from trainer.contracts.base import Wire
from trainer.contracts.internal import (
    AttemptSpec,
    CheckpointReport,
    EventBatch,
    Finish,
    Heartbeat,
    HeartbeatReply,
    ReplayPage,
    RolloutBatch,
    SandboxValues,
    UsageBatch,
    UsageReceipt,
    VersionReport,
)
from trainer.orchestrator.attempt.endings import StaleLease
from trainer.orchestrator.transport.backoff import Backoff, Clock, Sleep

CALL_TIMEOUT_S = 30.0
FIRST_LEASE_S = 60.0
WireT = TypeVar("WireT", bound=Wire)


class ControlRefused(Exception):
    """The control plane refused a message as wrong: a defect of ours, never retried."""


def internal_client(url: str, token: str) -> httpx.AsyncClient:
    """HTTP client for `http://host:port` or `unix:/path/to.sock`."""
    headers = {"Authorization": f"Bearer {token}"}
    if url.startswith("unix:"):
        transport = httpx.AsyncHTTPTransport(uds=url.removeprefix("unix:"))
        return httpx.AsyncClient(transport=transport, base_url="http://internal", headers=headers, timeout=CALL_TIMEOUT_S)
    return httpx.AsyncClient(base_url=url, headers=headers, timeout=CALL_TIMEOUT_S, trust_env=False)


class ControlClient:
    """Every method raises StaleLease when a newer attempt owns the subject, or when the control plane has been away for so
    long that the lease has surely run out; ControlRefused when a message is wrong."""

    def __init__(self, http: httpx.AsyncClient, *, clock: Clock = time.monotonic, sleep: Sleep = asyncio.sleep):
        self._http = http
        self._clock = clock
        self._sleep = sleep
        self._stale: str | None = None
        self._lease_until_s = clock() + FIRST_LEASE_S

    async def attempt(self) -> AttemptSpec:
        asked_s = self._clock()
        spec = AttemptSpec.model_validate_json(await self._send("GET", "attempt", None))
        self._lease_until_s = asked_s + spec.lease_s
        return spec

    async def replay(self, environment: int, step: int) -> list[dict[str, Any]]:
        """The rollouts that one environment (counted from 0) replays of one recorded step."""
        return ReplayPage.model_validate_json(await self._send("GET", f"replays/{environment}/{step}", None)).rollouts

    async def sandbox_values(self, release_id: str) -> SandboxValues:
        """What the team has set by now for the environment of a release."""
        return SandboxValues.model_validate_json(await self._send("GET", f"releases/{release_id}/values", None))

    async def dataset(self, index: int) -> bytes:
        """The file of one of the run's datasets (counted from 0)."""
        return await self._send("GET", f"datasets/{index}", None)

    async def export_part(self, name: str, part: int, entry: FileEntry, data: bytes) -> None:
        """One part of a file of the export; `entry` is the whole file's."""
        await self._send("PUT", f"exports/{name}/{part}?sha256={entry.sha256}&size_bytes={entry.size_bytes}", data)

    async def heartbeat(self, beat: Heartbeat) -> HeartbeatReply:
        asked_s = self._clock()
        reply = HeartbeatReply.model_validate_json(await self._send("POST", "heartbeat", beat))
        self._lease_until_s = asked_s + reply.lease_s
        return reply

    async def events(self, batch: EventBatch) -> None:
        await self._send("POST", "events", batch)

    async def usage(self, batch: UsageBatch) -> UsageReceipt:
        return UsageReceipt.model_validate_json(await self._send("POST", "usage", batch))

    async def rollouts(self, batch: RolloutBatch) -> None:
        await self._send("POST", "rollouts", batch)

    async def version(self, report: VersionReport) -> None:
        await self._send("POST", "versions", report)

    async def checkpoint(self, report: CheckpointReport) -> None:
        await self._send("POST", "checkpoints", report)

    async def finish(self, finish: Finish) -> None:
        await self._send("POST", "finish", finish)

    async def aclose(self) -> None:
        await self._http.aclose()

    async def _send(self, method: str, path: str, message: Wire | bytes | None) -> bytes:
        """One call, repeated while the control plane is away and the lease may still hold."""
        content = message.model_dump_json().encode() if isinstance(message, Wire) else message
        kind = "application/octet-stream" if isinstance(message, bytes) else "application/json"
        backoff = Backoff(give_up_s=float("inf"), clock=self._clock, sleep=self._sleep)
        while True:
            if self._stale is not None:
                raise StaleLease(self._stale)
            if self._clock() >= self._lease_until_s:
                raise self._lost("the control plane did not answer until the lease had run out")
            try:
                response = await self._http.request(
                    method, f"/internal/v1/{path}", content=content, headers={"Content-Type": kind}
                )
            except httpx.TransportError:
                await backoff.wait()
                continue
            if response.status_code >= 500 or response.status_code == 429:
                await backoff.wait()
                continue
            return self._answer(path, response)

    def _answer(self, path: str, response: httpx.Response) -> bytes:
        if response.is_success:
            return response.content
        if response.status_code == 401 or (response.status_code == 409 and "stale_lease" in response.text):
            raise self._lost(f"the control plane answered {response.status_code} to {path}")
        raise ControlRefused(f"{path} was refused with {response.status_code}: {response.text[:2000]}")

    def _lost(self, reason: str) -> StaleLease:
        self._stale = reason
        return StaleLease(reason)
