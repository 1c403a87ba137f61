"""R1: whatever arrives as a wheel or a source archive is answered with 4xx in bounded time and memory and leaves nothing.

The trials are good and bad archives of the corpus with random damage: bytes changed, cut, repeated and moved, numbers set to
extremes.
"""

import io
import random
import resource
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from django.db import transaction

from controlplane.core.objects import store
from controlplane.core.tenancy import acting_as_system
from controlplane.hub import access, services
from controlplane.hub.archives import ArchiveRefused, inspect_wheel, members
from controlplane.hub.models import Environment, Release, Upload, UploadKind
from controlplane.hub.schemas import DeclareSource, DeclareUpload
from tests.data.archives.corpus import HERE as CORPUS
from tests.data.archives.corpus import NAME, VERSION, WHEEL_NAME, wheel
from tests.factories.packages import Package, build_package
from tests.factories.teams import Member, client_for, make_member
from tests.fixtures.gates import Gate

pytestmark = pytest.mark.django_db
TRIAL_S_MAX = 10.0
GROWTH_BYTES_MAX = 256 * 2**20
EXTREMES = (b"\x00\x00\x00\x00", b"\xff\xff\xff\xff", b"\xff\xff\xff\x7f", b"PK\x05\x06", b"\x00\x00\x00\x80")


def damaged(data: bytes, chance: random.Random) -> bytes:
    """The archive after one to four accidents."""
    for _ in range(chance.randint(1, 4)):
        data = chance.choice(ACCIDENTS)(data, chance)
    return data or b"\0"


def _flip(data: bytes, chance: random.Random) -> bytes:
    if not data:
        return data
    at = chance.randrange(len(data))
    return data[:at] + bytes([data[at] ^ 1 << chance.randrange(8)]) + data[at + 1 :]


def _cut(data: bytes, chance: random.Random) -> bytes:
    return data[: chance.randrange(len(data) + 1)]


def _repeat(data: bytes, chance: random.Random) -> bytes:
    start, end = _span(data, chance)
    return data[:end] + data[start:end] * chance.randint(1, 8) + data[end:]


def _drop(data: bytes, chance: random.Random) -> bytes:
    start, end = _span(data, chance)
    return data[:start] + data[end:]


def _extreme(data: bytes, chance: random.Random) -> bytes:
    at = chance.randrange(len(data) + 1)
    return data[:at] + chance.choice(EXTREMES) + data[at + 4 :]


def _move(data: bytes, chance: random.Random) -> bytes:
    start, end = _span(data, chance)
    return data[end:] + data[start:end] + data[:start]


def _span(data: bytes, chance: random.Random) -> tuple[int, int]:
    start, end = sorted((chance.randrange(len(data) + 1), chance.randrange(len(data) + 1)))
    return start, end


ACCIDENTS: tuple[Callable[[bytes, random.Random], bytes], ...] = (_flip, _flip, _cut, _repeat, _drop, _extreme, _extreme, _move)


class Sender:
    """Sends one archive after the other; nothing of a trial outlives it."""

    def __init__(self, member: Member, package: Package, objects: Path) -> None:
        self.member, self.package, self.objects = member, package, objects
        self.client = client_for(member)
        self.environment, _ = services.get_or_create_environment(member.actor.team, package.name, None)
        self._send_wheel()

    def _send_wheel(self) -> None:
        """The wheel that good sources wait for."""
        body = DeclareUpload.model_validate(self.package.wheel_declaration())
        upload, _ = services.declare_upload(self.member.actor, self.environment, body)
        store().put(upload.object_key, self.package.wheel)
        services.finalize_wheel(access.owned_upload(self.member.actor, self.environment.id, upload.id, UploadKind.WHEEL))

    def send(self, data: bytes, kind: UploadKind) -> tuple[int, list[str]]:
        """The status of the answer, and what is wrong with it."""
        before, rows = self._files(), self._rows()
        with rolled_back():
            upload = self._declare(data, kind)
            started_s = time.monotonic()
            path = "wheels" if kind == UploadKind.WHEEL else "versions"
            answer = self.client.post(f"/api/v1/environmentshub/{self.environment.id}/{path}/{upload.id}/finalize")
            wrong = [] if time.monotonic() - started_s < TRIAL_S_MAX else ["it took too long"]
            if answer.status_code != 200:
                wrong += [] if 400 <= answer.status_code < 500 else [f"{answer.status_code}: {answer.content[:300]!r}"]
                wrong += [f"left {name}" for name in self._files() - before]
                wrong += [] if self._rows() == rows else ["left rows"]
        for left in self._files() - before:
            left.unlink()
        return answer.status_code, wrong

    def _declare(self, data: bytes, kind: UploadKind) -> Upload:
        if kind == UploadKind.WHEEL:
            body: DeclareUpload = DeclareUpload.model_validate(self.package.declaration(data, self.package.wheel_filename))
        else:
            body = DeclareSource.model_validate(self.package.declaration(data, "source.tar.gz"))
        upload, _ = services.declare_upload(self.member.actor, self.environment, body)
        store().put(upload.object_key, data)
        return upload

    def _files(self) -> set[Path]:
        return {path for path in self.objects.rglob("*") if path.is_file()}

    def _rows(self) -> tuple[int, ...]:
        with acting_as_system():
            return tuple(model.objects.count() for model in (Environment, Upload, Release))


@contextmanager
def rolled_back() -> Iterator[None]:
    with transaction.atomic():
        yield
        transaction.set_rollback(True)


@pytest.fixture
def sender(settings) -> Sender:
    return Sender(make_member(), build_package(NAME, VERSION), Path(urlsplit(settings.OBJECT_STORE_URL).path))


def seeds_of(package: Package, kind: UploadKind) -> list[bytes]:
    """What damage is done to: an archive that would be taken, three times as often as each of the bad ones."""
    suffix, good = ("*.whl", package.wheel) if kind == UploadKind.WHEEL else ("*.tar.gz", package.source)
    bad = [path.read_bytes() for path in sorted((CORPUS / "reject").glob(suffix))]
    return [good] * 3 * len(bad) + bad


@pytest.mark.heavy
@pytest.mark.gate("R1")
@pytest.mark.parametrize("kind", list(UploadKind))
def test_damaged_archives_are_refused_and_leave_nothing(sender: Sender, kind: UploadKind, gate: Gate) -> None:
    """R1: no 5xx, no row, no object; each within seconds, and all of them in little memory."""
    chance, wanted = random.Random(f"{gate.seed}:{kind}"), gate.pick(small=200, large=1000) // 2
    seeds, refused, violations = seeds_of(sender.package, kind), 0, []
    peak_bytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    while refused < wanted:
        status, wrong = sender.send(damaged(chance.choice(seeds), chance), kind)
        violations += wrong
        refused += status != 200
    growth_bytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 - peak_bytes
    violations += [] if growth_bytes < GROWTH_BYTES_MAX else [f"{growth_bytes} bytes of memory"]
    gate.record(trials=refused, violations=len(violations))
    assert violations == []


@pytest.mark.gate("R1")
@pytest.mark.parametrize("name", sorted(path.name for path in (CORPUS / "reject").iterdir()))
def test_every_bad_archive_of_the_corpus_is_refused_over_http(sender: Sender, name: str, gate: Gate) -> None:
    kind = UploadKind.WHEEL if name.endswith(".whl") else UploadKind.SOURCE
    status, wrong = sender.send((CORPUS / "reject" / name).read_bytes(), kind)
    violations = [*wrong, *([] if status == 422 else [f"answered {status}"])]
    gate.record(trials=1, violations=len(violations))
    assert violations == []


def test_the_gate_turns_red_when_a_check_forgets_to_refuse(sender: Sender, monkeypatch: pytest.MonkeyPatch) -> None:
    """A check that breaks instead of refusing is what R1 is for."""

    def breaks(*args: object, **named: object) -> None:
        raise RuntimeError("no rule for this")

    monkeypatch.setattr(services, "inspect_wheel", breaks)
    assert any("500" in line for line in sender.send(b"anything", UploadKind.WHEEL)[1])


def test_a_bomb_is_refused_before_it_has_unpacked(monkeypatch: pytest.MonkeyPatch) -> None:
    """The limits count what comes out: a wheel of 64 MiB of zeros ends after the first megabytes."""
    counted: list[int] = []
    refuse = members.Census._refuse_bomb

    def counting(self: members.Census, name: str) -> None:
        counted.append(self.unpacked_bytes)
        refuse(self, name)

    monkeypatch.setattr(members.Census, "_refuse_bomb", counting)
    data = wheel({"demo_env/zeros.bin": bytes(64 * 2**20)})
    with pytest.raises(ArchiveRefused, match="times its size"):
        inspect_wheel(io.BytesIO(data), len(data), name=NAME, version=VERSION, filename=WHEEL_NAME)
    assert max(counted) < 2 * 2**20 + members.RATIO_MAX * len(data)
