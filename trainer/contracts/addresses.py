"""Which addresses are the public internet's: asked before anything that a tenant has named is connected to.

Knows addresses and one look-up of a name. Refuses to connect: who does connects to what was checked, since a second look-up could
answer otherwise.
"""

import asyncio
import ipaddress
import socket
from concurrent.futures import Executor
from functools import partial


class PrivateAddress(OSError):
    """The name leads into our own network."""


def is_public(address: str) -> bool:
    """Whether an address is the public internet's; IPv4 in IPv6's clothes is looked at as what it is."""
    parsed = ipaddress.ip_address(address.partition("%")[0])
    inner = getattr(parsed, "ipv4_mapped", None) or parsed
    return inner.is_global and not inner.is_multicast


def names_private(host: str) -> bool:
    """Whether a host says without a look-up that it is ours: a private address, or this machine's name."""
    try:
        return not is_public(host)
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")


async def checked_address(host: str, port: int, *, may_be_private: bool, threads: Executor | None = None) -> str:
    """One of the host's addresses; PrivateAddress where any of them is not the public internet's, OSError for an unknown name.

    Looking up blocks a thread, which no deadline ends: one of `threads`, or of the loop's own."""
    look_up = partial(socket.getaddrinfo, host, port, type=socket.SOCK_STREAM)
    found = await asyncio.get_running_loop().run_in_executor(threads, look_up)
    addresses = [str(entry[4][0]) for entry in found]
    if not may_be_private and not all(is_public(address) for address in addresses):
        raise PrivateAddress(host)
    return addresses[0]
