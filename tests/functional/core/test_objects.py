"""The object store's promises, and what a signed address allows."""

import hashlib
import io
from datetime import timedelta
from pathlib import Path

import httpx
import pytest
from django.core.management import call_command
from django.test import Client

from controlplane.core.objects import MissingObject, ObjectStore, sending, signing, store
from controlplane.core.objects.keys import CHUNK_BYTES
from controlplane.core.objects.local import LocalStore
from tests.factories.answers import content_of

pytestmark = pytest.mark.django_db


@pytest.fixture
def objects(tmp_path: Path, settings) -> LocalStore:
    settings.OBJECT_STORE_URL = f"file://{tmp_path}/objects"
    found = store()
    assert isinstance(found, LocalStore)
    return found


@pytest.fixture(params=["local", "s3"])
def any_store(request: pytest.FixtureRequest) -> ObjectStore:
    """Each backend in turn: what follows is the promise of both."""
    request.getfixturevalue("objects" if request.param == "local" else "s3_settings")
    return store()


def path_of(url: str) -> str:
    return url.removeprefix("http://testserver")


@pytest.mark.parametrize("data", [b"", b"hello", b"x" * (3 * 2**20)])
def test_what_is_put_is_read_with_its_digest(any_store: ObjectStore, data: bytes):
    stored = any_store.put("a/b.bin", io.BytesIO(data))
    assert stored == ("a/b.bin", hashlib.sha256(data).hexdigest(), len(data))
    assert any_store.read("a/b.bin") == data and any_store.stat("a/b.bin") == stored
    with any_store.open("a/b.bin") as file:
        assert file.read(2) == data[:2]


def test_putting_again_replaces(any_store: ObjectStore):
    any_store.put("a/c", b"first")
    any_store.put("a/c", b"second")
    assert any_store.read("a/c") == b"second"


def test_absent_objects(any_store: ObjectStore):
    assert any_store.stat("nothing") is None
    any_store.delete("nothing")
    with pytest.raises(MissingObject):
        any_store.read("nothing")


def test_deleting(any_store: ObjectStore):
    any_store.put("a/d", b"x")
    any_store.delete("a/d")
    assert any_store.stat("a/d") is None


@pytest.mark.parametrize("key", ["../x", "a/../b", "/etc/passwd", "a//b", "", "a/.hidden", "a\\b", "a b", "x" * 600, "a/..b"])
def test_keys_are_plain_relative_paths(any_store: ObjectStore, key: str):
    for use in (lambda: any_store.put(key, b""), lambda: any_store.signed_get_url(key, 1), lambda: any_store.delete(key)):
        with pytest.raises(ValueError, match="not an object key"):
            use()


def test_s3_serves_signed_addresses_and_refuses_altered_ones(s3_settings):
    address = store().signed_put_url("up/1", 60, 100)
    assert httpx.put(address, content=b"12345", headers={"Content-Type": "application/octet-stream"}).status_code == 200
    fetched = httpx.get(store().signed_get_url("up/1", 60))
    assert (fetched.status_code, fetched.content) == (200, b"12345")
    signed = store().signed_get_url("up/1", 60)
    assert httpx.get(signed[:-1] + ("0" if signed[-1] != "0" else "1")).status_code == 403
    assert httpx.put(store().signed_get_url("up/1", 60), content=b"x").status_code == 403
    assert httpx.get(f"{s3_settings.endpoint_url}/{s3_settings.bucket}/some/prefix/up/1").status_code == 403


def test_signed_urls_name_the_address_that_clients_know(s3_settings, settings):
    inside, settings.S3_PUBLIC_URL = s3_settings.endpoint_url, s3_settings.endpoint_url.replace("127.0.0.1", "localhost")
    call_command("ensure_object_store")
    store().put("a", b"x")
    address = store().signed_get_url("a", 60)
    assert address.startswith("http://localhost:") and not address.startswith(inside)
    assert httpx.get(address).content == b"x"


def test_objects_of_s3_are_not_served_by_us(s3_settings):
    assert Client().get(f"/objects/{signing.sign('GET', 'up/1', 60)}").status_code == 404


def test_a_failed_write_leaves_nothing(objects: LocalStore):
    class Broken(io.BytesIO):
        def read(self, size: int | None = -1, /) -> bytes:
            raise OSError("the line went dead")

    with pytest.raises(OSError, match="dead"):
        objects.put("a/b", Broken())
    assert objects.stat("a/b") is None and list((objects.root / "a").iterdir()) == []


@pytest.mark.django_db(transaction=True)
def test_a_large_object_leaves_in_chunks_before_it_is_read_whole(live_origin: str, objects: LocalStore, monkeypatch):
    """The reader takes the first bytes and stops; the server must then have read a few chunks of the sixty-four."""
    objects.put("large", b"x" * (64 * CHUNK_BYTES))
    reads: list[int] = []
    read = sending._read
    monkeypatch.setattr(sending, "_read", lambda file, left: reads.append(file.tell()) or read(file, left))
    address = live_origin + path_of(objects.signed_get_url("large", 60))
    with httpx.stream("GET", address) as answer:
        assert answer.status_code == 200 and int(answer.headers["Content-Length"]) == 64 * CHUNK_BYTES
        assert len(next(answer.iter_raw())) > 0
        assert 0 < len(reads) < 32
    assert len(httpx.get(address).content) == 64 * CHUNK_BYTES


def test_a_signed_get_needs_no_other_credential(objects: LocalStore):
    objects.put("w/pkg-1.0.whl", b"wheel")
    answer = Client().get(path_of(objects.signed_get_url("w/pkg-1.0.whl", 60)))
    assert content_of(answer) == b"wheel"
    assert answer["Content-Type"] == "application/octet-stream" and "attachment" in answer["Content-Disposition"]


def test_a_signed_put_stores_up_to_its_limit(objects: LocalStore):
    address = path_of(objects.signed_put_url("up/1", 60, 5))
    assert Client().put(address, b"12345", content_type="application/octet-stream").status_code == 200
    assert objects.read("up/1") == b"12345"
    assert Client().put(address, b"123456", content_type="application/octet-stream").status_code == 413
    assert objects.read("up/1") == b"12345"


def test_a_signature_allows_one_method_one_key_and_ends(objects: LocalStore, shift_clock):
    objects.put("a", b"x")
    objects.put("b", b"y")
    address = path_of(objects.signed_get_url("a", 60))
    assert Client().put(address, b"z").status_code == 403
    assert Client().get(address.replace("/objects/a", "/objects/b")).status_code == 403
    assert Client().get(address.replace("size_max=0", "size_max=9")).status_code == 403
    assert Client().get("/objects/a").status_code == 422
    assert Client().get(address).status_code == 200
    shift_clock(timedelta(seconds=61))
    assert Client().get(address).status_code == 403
