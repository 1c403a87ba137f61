"""A picture in a task for a base model that reads text alone: the rollout fails by the field's name, and is no reward."""

import asyncio

import pytest

from tests.factories.model_socket import FakeEngine
from tests.fixtures.runner import running

pytestmark = pytest.mark.timeout(300)


async def test_a_model_that_reads_text_alone_refuses_the_picture_by_field(make_release):
    engine = FakeEngine(reply=lambda prompt: "black")
    async with running(await asyncio.to_thread(make_release, "pictures"), engine) as environment:
        end = await environment.play()
    assert (end.state, end.fault, engine.requests) == ("failed", "tenant", []), end
    assert end.traces[0].reward is None
    assert "messages.0.content.1: image_url: the base model reads text alone" in end.traces[0].errors[0].message
