"""The line to the control plane: patient while the lease holds, silent once it is lost."""

import httpx
import pytest

from trainer.contracts.internal import Finish, Heartbeat
from trainer.orchestrator.attempt.control import FIRST_LEASE_S, ControlClient, ControlRefused
from trainer.orchestrator.attempt.endings import StaleLease


class Server:
    """Answers from a list, then 200 forever; `now_s` moves with every sleep."""

    def __init__(self, *answers):
        self.answers = list(answers)
        self.now_s = 0.0
        self.asked = 0

    def __call__(self, request: httpx.Request) -> httpx.Response:
        self.asked += 1
        answer = self.answers.pop(0) if self.answers else 200
        if answer == "down":
            raise httpx.ConnectError("refused")
        if answer == 200 and request.url.path.endswith("heartbeat"):
            return httpx.Response(200, json={"desired": "run", "lease_s": 30.0})
        body = {"detail": "newer", "code": "stale_lease"} if answer == 409 else {}
        return httpx.Response(answer, json=body)

    async def sleep(self, delay_s: float) -> None:
        self.now_s += delay_s

    def client(self) -> ControlClient:
        http = httpx.AsyncClient(transport=httpx.MockTransport(self), base_url="http://internal")
        return ControlClient(http, clock=lambda: self.now_s, sleep=self.sleep)


async def test_a_short_absence_is_waited_out():
    server = Server("down", 503, 500, 429)
    await server.client().finish(Finish(outcome="completed"))
    assert server.asked == 5


async def test_an_absence_beyond_the_lease_loses_it():
    server = Server(*["down"] * 1000)
    client = server.client()
    with pytest.raises(StaleLease):
        await client.finish(Finish(outcome="completed"))
    assert server.now_s >= FIRST_LEASE_S
    server.answers = []
    asked = server.asked
    with pytest.raises(StaleLease):
        await client.finish(Finish(outcome="completed"))
    assert server.asked == asked


async def test_a_heartbeat_extends_the_lease():
    server = Server()
    client = server.client()
    server.now_s = FIRST_LEASE_S - 1
    await client.heartbeat(Heartbeat())
    server.now_s = FIRST_LEASE_S + 20
    await client.finish(Finish(outcome="completed"))
    assert server.asked == 2


async def test_after_a_stale_answer_nothing_is_sent_any_more():
    server = Server(409)
    client = server.client()
    for _ in range(2):
        with pytest.raises(StaleLease):
            await client.heartbeat(Heartbeat())
    assert server.asked == 1


async def test_a_refused_message_is_a_defect_and_not_repeated():
    server = Server(422)
    with pytest.raises(ControlRefused, match="422"):
        await server.client().finish(Finish(outcome="completed"))
    assert server.asked == 1
