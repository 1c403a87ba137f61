"""Exports over HTTP: asked for, built under a lease, downloaded whole, removed."""

import hashlib

import pytest
from django.test import override_settings

from controlplane.adapters import exports
from controlplane.adapters.models import Export, ExportState
from controlplane.core.clock import now
from controlplane.core.models import OutboxMessage
from controlplane.core.objects import store
from controlplane.core.tenancy import acting_as_system
from controlplane.pools.services import take_back
from tests.factories.adapters import make_adapter, make_export
from tests.factories.answers import content_of
from tests.factories.runs import fresh, holder_client, make_funded_member, make_pool
from trainer.contracts.adapters import CONFIG_NAME, WEIGHTS_NAME
from workers.exports import expire

pytestmark = pytest.mark.django_db
PARTS = [b"first part, ", b"second part"]
WEIGHTS = b"".join(PARTS)
DESCRIBED = {"sha256": hashlib.sha256(WEIGHTS).hexdigest(), "size_bytes": len(WEIGHTS)}


@pytest.fixture(autouse=True)
def small_parts(monkeypatch):
    monkeypatch.setattr("trainer.contracts.exports.PART_BYTES", len(PARTS[0]))


@pytest.fixture
def member():
    make_pool()
    return make_funded_member()


@pytest.fixture
def adapter(member):
    return make_adapter(member, version=4)


def asked(client, adapter, form="adapter"):
    answer = client.post(f"/api/v1/rft/adapters/{adapter.pk}/exports", {"form": form})
    assert answer.status_code == 200, answer.content
    return answer.json()["export"]


def begun(export_id):
    with acting_as_system():
        return exports.begin_export(export_id)


def say(token: str, method: str, path: str, body=None, **more):
    with override_settings(ROOT_URLCONF="controlplane.urls_internal"):
        return getattr(holder_client(token), method)(f"/internal/v1/{path}", body, **more)


def send(token: str, part: int, data: bytes, name: str = WEIGHTS_NAME):
    query = f"sha256={DESCRIBED['sha256']}&size_bytes={DESCRIBED['size_bytes']}"
    return say(token, "put", f"exports/{name}/{part}?{query}", data, content_type="application/octet-stream")


def finish(token: str, **report):
    body = {"outcome": "completed"} | report
    return say(token, "post", "finish", body, content_type="application/json")


def test_an_export_is_asked_for_built_and_downloaded_whole(member, adapter, client_of):
    client = client_of(member)
    export = asked(client, adapter)
    assert (export["state"], export["files"]) == ("QUEUED", []) and asked(client, adapter)["id"] == export["id"]
    with acting_as_system():
        assert OutboxMessage.objects.get(task="exports.start").payload == {"export_id": export["id"]}
    token = begun(export["id"]).token
    assert begun(export["id"]) is None, "one holder at a time"
    spec = say(token, "get", "attempt").json()
    assert spec["export"] == {"adapter_path": adapter.path, "form": "adapter", "size_max": 32 * 2**30}
    assert [send(token, part, data).status_code for part, data in enumerate(PARTS)] == [204, 204]
    assert client.get(f"/api/v1/rft/exports/{export['id']}").json()["export"]["files"] == [], "not before all have come"
    assert finish(token, exported={WEIGHTS_NAME: DESCRIBED}).status_code == 204
    ready = client.get(f"/api/v1/rft/exports/{export['id']}").json()["export"]
    (file,) = ready["files"]
    assert ready["state"] == "READY" and (file["name"], file["sha256"]) == (WEIGHTS_NAME, DESCRIBED["sha256"])
    answer = client.get(f"/api/v1{file['path']}")
    assert content_of(answer) == WEIGHTS and answer["Content-Length"] == str(len(WEIGHTS))
    listed = client.get(f"/api/v1/rft/adapters/{adapter.pk}/exports").json()["exports"]
    assert [row["id"] for row in listed] == [export["id"]]


def test_the_two_forms_are_two_exports_and_another_form_is_refused_by_name(member, adapter, client_of):
    client = client_of(member)
    assert asked(client, adapter)["id"] != asked(client, adapter, "merged")["id"]
    answer = client.post(f"/api/v1/rft/adapters/{adapter.pk}/exports", {"form": "gguf"})
    assert answer.status_code == 422 and answer.json()["detail"][0]["loc"] == ["body", "form"]


def test_a_failure_is_told_and_asking_again_tries_again(member, adapter, client_of):
    client = client_of(member)
    export = asked(client, adapter, "merged")
    finish(begun(export["id"]).token, outcome="failed", code="trainer_refused", message="the base model is another")
    seen = client.get(f"/api/v1/rft/exports/{export['id']}").json()["export"]
    assert (seen["state"], seen["error"]) == ("FAILED", "the base model is another")
    assert asked(client, adapter, "merged")["id"] != export["id"]


def test_a_lost_holder_is_followed_by_another_until_it_is_too_often(member, adapter, client_of):
    export = asked(client_of(member), adapter)
    row = fresh(Export(pk=export["id"]))
    for state in (ExportState.QUEUED, ExportState.QUEUED, ExportState.FAILED):
        granted = begun(export["id"])
        send(granted.token, 0, PARTS[0])
        with acting_as_system():
            take_back(granted.lease.id, reason="the process died", only_expired=False)
        assert fresh(row).state == state
        assert send(granted.token, 1, PARTS[1]).status_code == 409, "its token opens nothing any more"
    assert begun(export["id"]) is None


def test_a_file_of_which_nothing_came_in_makes_no_export_ready(member, adapter, client_of):
    export = asked(client_of(member), adapter)
    token = begun(export["id"]).token
    assert finish(token, exported={CONFIG_NAME: DESCRIBED}).status_code == 409
    assert send(token, 2, b"too much").status_code == 409


def test_what_has_expired_is_gone_and_made_anew(member, adapter, client_of):
    client, export = client_of(member), make_export(adapter, WEIGHTS[:10])
    key = f"exports/{export.pk}/{export.files[0]['sha256']}/0"
    path = f"/api/v1/rft/exports/{export.pk}/files/{WEIGHTS_NAME}"
    assert content_of(client.get(path)) == store().read(key) == WEIGHTS[:10]
    assert client.get(path.replace(WEIGHTS_NAME, "other.bin")).status_code == 404
    with acting_as_system():
        assert expire() == 0
        Export.objects.filter(pk=export.pk).update(expires_at=now())
        assert expire() == 1 and expire() == 0
    assert store().stat(key) is None and client.get(path).status_code == 404
    assert client.get(f"/api/v1/rft/exports/{export.pk}").json()["export"]["state"] == "EXPIRED"
    assert asked(client, adapter)["id"] != export.pk


def test_an_adapter_whose_pool_is_gone_is_refused(member, adapter, client_of):
    with acting_as_system():
        type(adapter).objects.filter(pk=adapter.pk).update(pool=None)
    answer = client_of(member).post(f"/api/v1/rft/adapters/{adapter.pk}/exports", {})
    assert (answer.status_code, answer.json()["code"]) == (422, "not_exportable")
