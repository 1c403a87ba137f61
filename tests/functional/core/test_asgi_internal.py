"""The two processes serve two address spaces: neither answers for the other's."""

import os
import subprocess
import sys

import pytest

from tests.fixtures.places import REPOSITORY

_PROBE = """
import asyncio, httpx
from controlplane.{module} import application
async def ask():
    transport = httpx.ASGITransport(application, raise_app_exceptions=False)
    async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
        for path in ("/internal/v1/attempt", "/api/v1/openapi.json"):
            print((await client.get(path)).status_code)
asyncio.run(ask())
"""


@pytest.mark.parametrize(("module", "statuses"), [("asgi", ["404", "200"]), ("asgi_internal", ["401", "404"])])
def test_each_process_has_its_own_addresses(module: str, statuses: list[str]):
    environment = {**os.environ, "DJANGO_SETTINGS_MODULE": "controlplane.settings"}
    command = [sys.executable, "-c", _PROBE.format(module=module)]
    done = subprocess.run(command, env=environment, cwd=REPOSITORY, capture_output=True, text=True, check=False)
    assert done.stdout.split() == statuses, done.stderr[-2000:]
