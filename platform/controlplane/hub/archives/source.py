"""Checks a source archive: a gzipped tar of regular files whose content hash and pyproject.toml are what the sender declared."""

import gzip
import tarfile
import tomllib
import zlib
from dataclasses import dataclass
from typing import BinaryIO

from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version

from controlplane.hub.archives.members import UNPACKED_MAX_BYTES, ArchiveRefused, Census
from trainer.contracts.packages import ContentHash

EXTENDING = frozenset(
    {tarfile.XHDTYPE, tarfile.XGLTYPE, tarfile.SOLARIS_XHDTYPE, tarfile.GNUTYPE_LONGNAME, tarfile.GNUTYPE_LONGLINK}
)
UNREADABLE = (tarfile.TarError, EOFError, zlib.error, gzip.BadGzipFile, ValueError, OverflowError, RecursionError)
"""What the libraries raise at damaged input: endless chains of headers and numbers of any length among it."""
KEPT_MAX_BYTES = 2**20
EXTENDED_MAX_BYTES = 64 * 1024
"""Of a header that extends another: long names and the like. The library reads it whole."""
TAR_OVERHEAD_BYTES = 64 * 2**20
"""Headers, padding and long names of the largest archive that is taken."""


@dataclass(frozen=True)
class SourceFacts:
    """What the source says about itself. `readme` is Markdown, '' without one."""

    readme: str
    pyproject: str
    files_count: int


class _Member(tarfile.TarInfo):
    """A header that is looked at before what it announces is read into memory."""

    def _proc_member(self, tar: tarfile.TarFile) -> tarfile.TarInfo:
        """The library's own hook: called with each header as it stands in the file."""
        if self.type in EXTENDING and self.size > EXTENDED_MAX_BYTES:
            raise ArchiveRefused(self.name, f"it is a header of more than {EXTENDED_MAX_BYTES} bytes")
        found: tarfile.TarInfo = super()._proc_member(tar)  # type: ignore[misc]
        return found


class _Bounded:
    """A stream that refuses to give more than a tar of the largest size can have, whatever reads it: headers count too."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream, self._left_bytes = stream, UNPACKED_MAX_BYTES + TAR_OVERHEAD_BYTES

    def read(self, size_bytes: int) -> bytes:
        chunk = self._stream.read(size_bytes)
        self._left_bytes -= len(chunk)
        if self._left_bytes < 0:
            raise ArchiveRefused("", f"the archive unpacks to more than {UNPACKED_MAX_BYTES} bytes")
        return chunk


def inspect_source(stream: BinaryIO, size_bytes: int, *, name: str, version: str, content_hash: str) -> SourceFacts:
    """Raises `ArchiveRefused` unless the archive is safe to extract and is what its sender declared. The hash is taken in the
    archive's own order, which is the order its sender hashed in."""
    census, hashed, kept = Census(size_bytes), ContentHash(), dict[str, bytes]()
    files_count = 0
    try:
        with gzip.GzipFile(fileobj=stream, mode="rb") as unpacked, _opened(unpacked) as archive:
            for member in archive:
                clean = census.admit(member.name, is_folder=member.isdir())
                _check_kind(member)
                if member.isdir():
                    continue
                files_count += 1
                _take(archive, member, clean, census, hashed, kept)
    except UNREADABLE as error:
        raise ArchiveRefused("", f"not a readable source archive: {error}") from error
    if hashed.hexdigest() != content_hash:
        raise ArchiveRefused("", f"the files hash to {hashed.hexdigest()}, the sender said {content_hash}")
    _check_pyproject(kept.get("pyproject.toml"), name, version)
    return SourceFacts(_text(kept.get("README.md", b"")), _text(kept["pyproject.toml"]), files_count)


def _opened(unpacked: gzip.GzipFile) -> tarfile.TarFile:
    return tarfile.open(fileobj=_Bounded(unpacked), mode="r|", tarinfo=_Member)  # type: ignore[call-overload,no-any-return]


def _check_kind(member: tarfile.TarInfo) -> None:
    if member.issym() or member.islnk():
        raise ArchiveRefused(member.name, f"it is a link to '{member.linkname}'")
    if not (member.isdir() or (member.isreg() and not member.issparse())):
        raise ArchiveRefused(member.name, "it is a device, a pipe or a sparse file")


def _take(
    archive: tarfile.TarFile, member: tarfile.TarInfo, clean: str, census: Census, hashed: ContentHash, kept: dict[str, bytes]
) -> None:
    """Hash one file, and keep it where it describes the project."""
    content = archive.extractfile(member)
    if content is None:
        raise ArchiveRefused(member.name, "it has no content")
    hashed.begin(clean)
    wanted = clean in ("pyproject.toml", "README.md")
    if wanted and member.size > KEPT_MAX_BYTES:
        raise ArchiveRefused(member.name, f"it has more than {KEPT_MAX_BYTES} bytes")
    parts = []
    for chunk in census.read(clean, content):  # type: ignore[arg-type]
        hashed.feed(chunk)
        if wanted:
            parts.append(chunk)
    if wanted:
        kept[clean] = b"".join(parts)


def _check_pyproject(content: bytes | None, name: str, version: str) -> None:
    if content is None:
        raise ArchiveRefused("pyproject.toml", "it is missing")
    try:
        project = tomllib.loads(content.decode("utf-8")).get("project", {})
    except (UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise ArchiveRefused("pyproject.toml", f"not readable: {error}") from error
    found = project.get("name") if isinstance(project, dict) else None
    if not isinstance(found, str) or canonicalize_name(found) != canonicalize_name(name):
        raise ArchiveRefused("pyproject.toml", f"[project].name is {found!r}, the environment is {name!r}")
    declared = project.get("version")
    if isinstance(declared, str) and not _same_version(declared, version):
        raise ArchiveRefused("pyproject.toml", f"[project].version is {declared!r}, the sender said {version!r}")


def _same_version(one: str, other: str) -> bool:
    try:
        return Version(one) == Version(other)
    except InvalidVersion:
        return False


def _text(content: bytes) -> str:
    return content.decode("utf-8", errors="replace")
