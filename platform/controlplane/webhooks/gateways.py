"""Requests to addresses that tenants have written. Called from workers alone.

Knows how to connect to the address that was checked and to no other: under the host's name for TLS and `Host`, without redirects,
without a proxy, within a deadline, and without reading more of the answer than is kept. Refuses to know rows.
"""

import asyncio
import socket
import ssl
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import KW_ONLY, dataclass

import httpx

from controlplane.webhooks.delivering import Order, Outcome
from controlplane.webhooks.models import RESPONSE_LENGTH_MAX
from trainer.contracts.addresses import PrivateAddress, checked_address

DEADLINE_S = 5.0
"""Of one attempt: looking the name up, connecting, sending, and reading the beginning of the answer."""
USER_AGENT = "rootstock-webhooks/1"
HTTPS_PORT, HTTP_PORT = 443, 80
EACH_ITS_OWN = httpx.Limits(max_keepalive_connections=0)
"""Connections are told apart by address: a kept one could carry a request to another host, whose certificate was not checked."""


async def send_all(orders: Sequence[Order], *, may_be_private: bool, deadline_s: float = DEADLINE_S) -> list[Outcome]:
    """All attempts at once, their outcomes in order. Takes no longer than the deadline."""
    trusted = ssl.create_default_context()
    # A thread for each look-up, and none is waited for: a name server that never answers holds up nobody else.
    threads = ThreadPoolExecutor(max_workers=max(1, len(orders)), thread_name_prefix="look-up")
    try:
        async with httpx.AsyncClient(verify=trusted, trust_env=False, timeout=deadline_s, limits=EACH_ITS_OWN) as client:
            sender = Sender(client, threads, may_be_private=may_be_private, deadline_s=deadline_s)
            return await asyncio.gather(*(sender.outcome(order) for order in orders))
    finally:
        threads.shutdown(wait=False, cancel_futures=True)


@dataclass(frozen=True)
class Sender:
    """Makes attempts, and turns whatever happens into an outcome."""

    client: httpx.AsyncClient
    threads: ThreadPoolExecutor
    _: KW_ONLY
    may_be_private: bool
    deadline_s: float

    async def outcome(self, order: Order) -> Outcome:
        began, error = time.monotonic(), ""
        try:
            async with asyncio.timeout(self.deadline_s):
                status, text = await self._post(order)
                return Outcome(status, text, duration_ms=_since(began))
        except TimeoutError:
            error = f"no answer within {self.deadline_s:g} s"
        except PrivateAddress:
            error = "the host is an address inside this installation's own network"
        except socket.gaierror:
            error = "the host's name has no address"
        except (httpx.HTTPError, OSError, ValueError) as problem:
            # ValueError: a host or a port that no resolver and no socket takes.
            error = f"{type(problem).__name__}: {problem}"
        return Outcome(None, error=error, duration_ms=_since(began))

    async def _post(self, order: Order) -> tuple[int, str]:
        url = httpx.URL(order.url)
        port = url.port or (HTTPS_PORT if url.scheme == "https" else HTTP_PORT)
        address = await checked_address(url.host, port, may_be_private=self.may_be_private, threads=self.threads)
        headers = {"Content-Type": "application/json", "User-Agent": USER_AGENT, "Host": url.netloc.decode()} | order.headers
        request = self.client.build_request("POST", url.copy_with(host=address), content=order.body.encode(), headers=headers)
        request.extensions["sni_hostname"] = url.host
        answer = await self.client.send(request, stream=True, follow_redirects=False)
        try:
            return answer.status_code, await _beginning(answer)
        finally:
            await answer.aclose()


async def _beginning(answer: httpx.Response) -> str:
    """As much text as is kept. Bytes of another encoding, or compressed, are shown as what they are not: replaced."""
    held = b""
    async for chunk in answer.aiter_raw():
        held += chunk[: RESPONSE_LENGTH_MAX * 4]
        if len(held) >= RESPONSE_LENGTH_MAX * 4:
            break
    # PostgreSQL keeps no NUL.
    return held.decode("utf-8", "replace").replace("\x00", "\ufffd")[:RESPONSE_LENGTH_MAX]


def _since(began: float) -> int:
    return int((time.monotonic() - began) * 1000)
