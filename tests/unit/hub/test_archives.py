"""The hub takes the archives of tests/data/archives/accept and refuses those of reject, each for its own reason."""

import gzip
import io
import itertools
import tarfile
from pathlib import Path

import pytest

from controlplane.hub.archives import ArchiveRefused, SourceFacts, WheelFacts, inspect_source, inspect_wheel, members
from tests.data.archives.corpus import ACCEPT, HERE, NAME, REJECT, SOURCES, VERSION, WHEEL_NAME, source, wheel
from trainer.contracts.packages import content_hash, folder_hash


def inspect(path: Path) -> WheelFacts | SourceFacts:
    data = path.read_bytes()
    if path.suffix == ".whl":
        return inspect_wheel(io.BytesIO(data), len(data), name=NAME, version=VERSION, filename=WHEEL_NAME)
    return inspect_source(io.BytesIO(data), len(data), name=NAME, version=VERSION, declared_hash=declared_hash(data))


def declared_hash(data: bytes) -> str:
    """What an honest sender of this very archive declares; of an unreadable one, anything."""
    try:
        with tarfile.open(fileobj=io.BytesIO(data), mode="r:gz") as archive:
            members = [member for member in archive if member.isreg()]
            return content_hash({member.name: [archive.extractfile(member).read()] for member in members})
    except (tarfile.TarError, EOFError, OSError, RecursionError):
        return "0" * 64


def test_the_files_are_those_that_the_module_describes():
    for folder, cases in (("accept", ACCEPT), ("reject", REJECT)):
        assert {path.name for path in (HERE / folder).iterdir()} == set(cases)


@pytest.mark.parametrize("name", sorted(ACCEPT))
def test_a_good_archive_is_taken(name):
    facts = inspect(HERE / "accept" / name)
    if isinstance(facts, WheelFacts):
        assert (facts.module, facts.version) == ("demo_env", VERSION)
        assert [line.partition(">=")[0] for line in facts.requires_dist] == ["verifiers"]
    else:
        assert facts.readme == "# Demo\n"


@pytest.mark.parametrize("name", sorted(REJECT))
def test_a_bad_archive_is_refused_for_its_reason(name):
    with pytest.raises(ArchiveRefused) as refused:
        inspect(HERE / "reject" / name)
    assert REJECT[name].reason in str(refused.value)


@pytest.mark.parametrize(
    ("filename", "reason"),
    [
        ("other-0.1.0-py3-none-any.whl", "the sender said"),
        ("demo_env-0.2.0-py3-none-any.whl", "the sender said"),
        ("demo_env-0.1.0-cp311-cp311-linux_x86_64.whl", "pure-Python"),
        ("demo_env.zip", "not a wheel"),
    ],
)
def test_the_file_name_must_agree(filename, reason):
    data = wheel()
    with pytest.raises(ArchiveRefused, match=reason):
        inspect_wheel(io.BytesIO(data), len(data), name=NAME, version=VERSION, filename=filename)


def test_a_wrong_content_hash_is_refused():
    data = source()
    with pytest.raises(ArchiveRefused, match="hash to"):
        inspect_source(io.BytesIO(data), len(data), name=NAME, version=VERSION, declared_hash="0" * 64)


@pytest.mark.parametrize("order", list(itertools.permutations(SOURCES)))
def test_the_hash_follows_neither_the_order_of_an_archive_nor_its_times(order):
    """Case 6: whoever packs, the same files are the same environment."""
    files = {name: [content] for name, content in SOURCES.items()}
    data = packed(order)
    facts = inspect_source(io.BytesIO(data), len(data), name=NAME, version=VERSION, declared_hash=content_hash(files))
    assert (facts.folder_hash, facts.readme, facts.files_count) == (folder_hash(files), "# Demo\n", 3)


def packed(order: tuple[str, ...]) -> bytes:
    """The corpus' files in this order, each of another time."""
    raw = io.BytesIO()
    with gzip.open(raw, "wb") as stream, tarfile.open(fileobj=stream, mode="w") as archive:
        for time, name in enumerate(order):
            member = tarfile.TarInfo(name)
            member.size, member.mtime = len(SOURCES[name]), time
            archive.addfile(member, io.BytesIO(SOURCES[name]))
    return raw.getvalue()


def test_too_many_members_are_refused(monkeypatch):
    monkeypatch.setattr(members, "MEMBERS_MAX", 3)
    data = wheel()
    with pytest.raises(ArchiveRefused, match="more than 3 members"):
        inspect_wheel(io.BytesIO(data), len(data), name=NAME, version=VERSION, filename=WHEEL_NAME)


def test_an_archive_that_is_too_large_is_not_even_opened():
    with pytest.raises(ArchiveRefused, match="at most"):
        inspect_wheel(io.BytesIO(), members.ARCHIVE_MAX_BYTES + 1, name=NAME, version=VERSION, filename=WHEEL_NAME)


@pytest.mark.parametrize("name", ["MEMBER_MAX_BYTES", "UNPACKED_MAX_BYTES"])
def test_size_limits_count_what_comes_out(monkeypatch, name):
    monkeypatch.setattr(members, name, 10)
    data = source()
    with pytest.raises(ArchiveRefused, match="more than 10 bytes"):
        inspect_source(io.BytesIO(data), len(data), name=NAME, version=VERSION, declared_hash=declared_hash(data))
