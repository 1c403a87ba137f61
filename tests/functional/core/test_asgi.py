"""The public process as a web server calls it: asynchronous, with its body limit, headers and scope."""

import httpx
import pytest
from asgiref.sync import sync_to_async

from controlplane.asgi import application
from controlplane.core.body_limit import DEFAULT_MAX_BYTES
from tests.factories.teams import make_member

pytestmark = pytest.mark.django_db(transaction=True)


def client(**headers: str) -> httpx.AsyncClient:
    transport = httpx.ASGITransport(application, raise_app_exceptions=False)
    return httpx.AsyncClient(transport=transport, base_url="http://testserver", headers=headers)


async def test_an_actor_reads_its_own_rows_and_the_next_request_starts_as_nobody():
    member = await sync_to_async(make_member)()
    async with client(Authorization=f"Bearer {member.key}") as mine, client() as nobodys:
        assert [key["name"] for key in (await mine.get("/api/v1/keys")).json()["items"]] == ["test"]
        assert (await nobodys.get("/api/v1/keys")).status_code == 401


async def test_a_declared_body_above_the_limit_is_refused_unread():
    async with client() as nobodys:
        answer = await nobodys.post("/api/v1/auth/sign-in", content=b"x", headers={"Content-Length": str(DEFAULT_MAX_BYTES + 1)})
        chat = await nobodys.post("/api/inference/v1/x", content=b"x", headers={"Content-Length": str(DEFAULT_MAX_BYTES + 1)})
    assert answer.status_code == chat.status_code == 413
    assert answer.json()["code"] == "too_large" and answer.json()["request_id"] == answer.headers["X-Request-ID"]
    assert chat.json()["error"]["code"] == "too_large"


async def test_answers_carry_the_security_headers():
    async with client() as nobodys:
        answer = await nobodys.get("/healthz")
    assert "default-src 'none'" in answer.headers["Content-Security-Policy"]
    assert answer.headers["X-Frame-Options"] == "DENY" and answer.headers["X-Request-ID"]


async def test_health_names_what_is_away():
    async with client() as nobodys:
        answer = await nobodys.get("/healthz")
    assert answer.status_code == 503 and answer.json()["parts"] == {"database": True, "broker": False}


async def test_health_is_green_with_a_broker(broker):
    async with client() as nobodys:
        assert (await nobodys.get("/healthz")).status_code == 200
