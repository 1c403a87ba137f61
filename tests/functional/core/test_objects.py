"""The object store's promises, and what a signed address allows."""

import hashlib
import io
from datetime import timedelta
from pathlib import Path

import pytest
from django.test import Client

from controlplane.core.objects import MissingObject, store
from controlplane.core.objects.local import LocalStore

pytestmark = pytest.mark.django_db


@pytest.fixture
def objects(tmp_path: Path, settings) -> LocalStore:
    settings.OBJECT_STORE_URL = f"file://{tmp_path}/objects"
    found = store()
    assert isinstance(found, LocalStore)
    return found


def path_of(url: str) -> str:
    return url.removeprefix("http://testserver")


@pytest.mark.parametrize("data", [b"", b"hello", b"x" * (3 * 2**20)])
def test_what_is_put_is_read_with_its_digest(objects: LocalStore, data: bytes):
    stored = objects.put("a/b.bin", io.BytesIO(data))
    assert stored == ("a/b.bin", hashlib.sha256(data).hexdigest(), len(data))
    assert objects.read("a/b.bin") == data and objects.stat("a/b.bin") == stored


def test_absent_objects(objects: LocalStore):
    assert objects.stat("nothing") is None
    objects.delete("nothing")
    with pytest.raises(MissingObject):
        objects.read("nothing")


@pytest.mark.parametrize("key", ["../x", "a/../b", "/etc/passwd", "a//b", "", "a/.hidden", "a\\b", "a b", "x" * 600, "a/..b"])
def test_keys_are_plain_relative_paths(objects: LocalStore, key: str):
    with pytest.raises(ValueError, match="not an object key"):
        objects.put(key, b"")


def test_a_failed_write_leaves_nothing(objects: LocalStore):
    class Broken(io.BytesIO):
        def read(self, size: int | None = -1, /) -> bytes:
            raise OSError("the line went dead")

    with pytest.raises(OSError, match="dead"):
        objects.put("a/b", Broken())
    assert objects.stat("a/b") is None and list((objects.root / "a").iterdir()) == []


def test_a_signed_get_needs_no_other_credential(objects: LocalStore):
    objects.put("w/pkg-1.0.whl", b"wheel")
    answer = Client().get(path_of(objects.signed_get_url("w/pkg-1.0.whl", 60)))
    assert b"".join(answer.streaming_content) == b"wheel"
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
