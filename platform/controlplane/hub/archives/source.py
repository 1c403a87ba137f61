"""Checks a source archive: a gzipped tar of regular files whose content hash and pyproject.toml are what the sender declared."""

import gzip
import tarfile
import tomllib
import zlib
from dataclasses import dataclass
from tempfile import SpooledTemporaryFile
from typing import BinaryIO

from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version

from controlplane.hub.archives.members import UNPACKED_MAX_BYTES, ArchiveRefused, Census
from controlplane.hub.archives.tree import SpooledTree
from trainer.contracts.packages import content_hash, folder_hash

EXTENDING = frozenset(
    {tarfile.XHDTYPE, tarfile.XGLTYPE, tarfile.SOLARIS_XHDTYPE, tarfile.GNUTYPE_LONGNAME, tarfile.GNUTYPE_LONGLINK}
)
UNREADABLE = (tarfile.TarError, EOFError, zlib.error, gzip.BadGzipFile, ValueError, OverflowError, RecursionError)
"""What the libraries raise at damaged input: endless chains of headers and numbers of any length among it."""
DESCRIBING = ("pyproject.toml", "README.md")
KEPT_MAX_BYTES = 2**20
SPOOL_MAX_BYTES = 8 * 2**20
"""Of files that are kept aside in memory; what is larger goes to the disk until they are hashed."""
EXTENDED_MAX_BYTES = 64 * 1024
"""Of a header that extends another: long names and the like. The library reads it whole."""
TAR_OVERHEAD_BYTES = 64 * 2**20
"""Headers, padding and long names of the largest archive that is taken."""


@dataclass(frozen=True)
class SourceFacts:
    """What the source says about itself. `readme` is Markdown, '' without one; `folder_hash` is contracts.packages'."""

    readme: str
    pyproject: str
    files_count: int
    folder_hash: str


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


def inspect_source(stream: BinaryIO, size_bytes: int, *, name: str, version: str, declared_hash: str) -> SourceFacts:
    """Raises `ArchiveRefused` unless the archive is safe to extract and is what its sender declared."""
    with SpooledTemporaryFile(max_size=SPOOL_MAX_BYTES) as spool:
        tree = SpooledTree(spool)
        _read(stream, Census(size_bytes), tree)
        found = content_hash(tree)
        if found != declared_hash:
            raise ArchiveRefused("", f"the files hash to {found}, the sender said {declared_hash}")
        pyproject = _kept(tree, "pyproject.toml")
        _check_pyproject(pyproject, name, version)
        return SourceFacts(_text(_kept(tree, "README.md")), _text(pyproject), len(tree), folder_hash(tree))


def _read(stream: BinaryIO, census: Census, tree: SpooledTree) -> None:
    try:
        with gzip.GzipFile(fileobj=stream, mode="rb") as unpacked, _opened(unpacked) as archive:
            for member in archive:
                clean = census.admit(member.name, is_folder=member.isdir())
                _check_kind(member)
                if not member.isdir():
                    _take(archive, member, clean, census, tree)
    except UNREADABLE as error:
        raise ArchiveRefused("", f"not a readable source archive: {error}") from error


def _opened(unpacked: gzip.GzipFile) -> tarfile.TarFile:
    return tarfile.open(fileobj=_Bounded(unpacked), mode="r|", tarinfo=_Member)  # type: ignore[call-overload,no-any-return]


def _check_kind(member: tarfile.TarInfo) -> None:
    if member.issym() or member.islnk():
        raise ArchiveRefused(member.name, f"it is a link to '{member.linkname}'")
    if not (member.isdir() or (member.isreg() and not member.issparse())):
        raise ArchiveRefused(member.name, "it is a device, a pipe or a sparse file")


def _take(archive: tarfile.TarFile, member: tarfile.TarInfo, clean: str, census: Census, tree: SpooledTree) -> None:
    content = archive.extractfile(member)
    if content is None:
        raise ArchiveRefused(member.name, "it has no content")
    if clean in DESCRIBING and member.size > KEPT_MAX_BYTES:
        raise ArchiveRefused(member.name, f"it has more than {KEPT_MAX_BYTES} bytes")
    tree.add(clean, census.read(clean, content))  # type: ignore[arg-type]


def _kept(tree: SpooledTree, name: str) -> bytes | None:
    return b"".join(tree[name]) if name in tree else None


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


def _text(content: bytes | None) -> str:
    return (content or b"").decode("utf-8", errors="replace")
