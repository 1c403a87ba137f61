"""Files are whole or absent, and a folder exists once its manifest does."""

import pytest

from trainer.contracts.adapters import MANIFEST_NAME
from trainer.core import durable


def test_a_written_file_is_the_only_one_in_its_folder(tmp_path):
    durable.write_file(tmp_path / "a" / "x.bin", b"one")
    durable.write_file(tmp_path / "a" / "x.bin", b"two")
    assert [(p.name, p.read_bytes()) for p in (tmp_path / "a").iterdir()] == [("x.bin", b"two")]


def test_a_failed_write_leaves_the_old_file_and_no_other(tmp_path, monkeypatch):
    durable.write_file(tmp_path / "x.bin", b"old")
    monkeypatch.setattr(durable.os, "fsync", _fail)
    with pytest.raises(OSError, match="disk full"):
        durable.write_file(tmp_path / "x.bin", b"new")
    assert [(p.name, p.read_bytes()) for p in tmp_path.iterdir()] == [("x.bin", b"old")]


def _fail(_descriptor):
    raise OSError("disk full")


def test_the_manifest_comes_last(tmp_path, monkeypatch):
    written = []
    monkeypatch.setattr(durable, "write_file", lambda path, data: written.append(path.name))
    durable.write_folder(tmp_path, {"a": b"1", "b": b"2"}, b"{}")
    assert written == ["a", "b", MANIFEST_NAME]


def test_bytes_that_differ_from_the_manifest_are_refused(tmp_path):
    entry = durable.entry_of(b"right")
    (tmp_path / "x").write_bytes(b"wrong")
    with pytest.raises(ValueError, match="x is not the file"):
        durable.read_verified(tmp_path, "x", entry)
