"""Requests to addresses that tenants have written. Called from workers alone.

Knows how to connect to the address that was checked and to no other: under the host's name for TLS and `Host`, without redirects,
without a proxy, within a deadline, and without reading more of the answer than is kept. Refuses to know rows.
"""

import asyncio
import ssl
import time
from collections.abc import Sequence

import httpx

from controlplane.webhooks.delivering import Order, Outcome
from controlplane.webhooks.models import RESPONSE_LENGTH_MAX
from trainer.contracts.addresses import PrivateAddress, checked_address

DEADLINE_S = 5.0
"""Of one attempt: looking the name up, connecting, sending, and reading the beginning of the answer."""
USER_AGENT = "rootstock-webhooks/1"
HTTPS_PORT, HTTP_PORT = 443, 80


async def send_all(orders: Sequence[Order], *, may_be_private: bool, deadline_s: float = DEADLINE_S) -> list[Outcome]:
    """All attempts at once, their outcomes in order. Takes no longer than the deadline."""
    trusted = ssl.create_default_context()
    async with httpx.AsyncClient(verify=trusted, trust_env=False, timeout=deadline_s) as client:
        tries = (_outcome(client, order, may_be_private=may_be_private, deadline_s=deadline_s) for order in orders)
        return await asyncio.gather(*tries)


async def _outcome(client: httpx.AsyncClient, order: Order, *, may_be_private: bool, deadline_s: float) -> Outcome:
    began, error = time.monotonic(), ""
    try:
        async with asyncio.timeout(deadline_s):
            status, text = await _post(client, order, may_be_private=may_be_private)
            return Outcome(status, text, duration_ms=_since(began))
    except TimeoutError:
        error = f"no answer within {deadline_s:g} s"
    except PrivateAddress:
        error = "the host is an address inside this installation's own network"
    except (httpx.HTTPError, OSError, ValueError) as problem:
        # ValueError: a host or a port that no resolver and no socket takes.
        error = f"{type(problem).__name__}: {problem}"
    return Outcome(None, error=error, duration_ms=_since(began))


async def _post(client: httpx.AsyncClient, order: Order, *, may_be_private: bool) -> tuple[int, str]:
    url = httpx.URL(order.url)
    port = url.port or (HTTPS_PORT if url.scheme == "https" else HTTP_PORT)
    address = await checked_address(url.host, port, may_be_private=may_be_private)
    headers = {"Content-Type": "application/json", "User-Agent": USER_AGENT, "Host": url.netloc.decode()} | order.headers
    pinned = url.copy_with(host=address)
    request = client.build_request("POST", pinned, content=order.body.encode(), headers=headers)
    request.extensions["sni_hostname"] = url.host
    answer = await client.send(request, stream=True, follow_redirects=False)
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
