"""The command against a server in memory, in an empty home folder."""

import pytest

from tests.unit.primecli.stub_server import StubServer


@pytest.fixture
def server(tmp_path, monkeypatch) -> StubServer:
    for module in ("eval_run", "deployments", "adapters", "webhooks"):
        monkeypatch.setattr(f"primecli.commands.{module}.POLL_S", 0)
    monkeypatch.setattr("primecli.commands.push.BADGE_POLL_S", 0)
    monkeypatch.setattr("primecli.client.RECONNECT_PAUSE_S", 0)
    return StubServer(tmp_path)
