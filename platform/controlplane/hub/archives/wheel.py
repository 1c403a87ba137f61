"""Checks a wheel: a zip archive of pure Python whose RECORD, METADATA and file name agree with each other and with the sender.

Two readers must not be able to disagree about what is in the file: nothing may stand before, between or behind the members, and
RECORD must list exactly what is there.
"""

import base64
import csv
import hashlib
import io
import stat
import struct
import zipfile
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from email.message import Message
from email.parser import BytesParser
from typing import BinaryIO

from packaging.utils import InvalidWheelFilename, canonicalize_name, parse_wheel_filename
from packaging.version import InvalidVersion, Version

from controlplane.hub.archives import members
from controlplane.hub.archives.members import ArchiveRefused, Census
from controlplane.hub.names import module_name, module_refusal
from trainer.contracts.package_interfaces import InterfaceRefused, interface_of, member_reader

METHODS = frozenset({zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED})
ENCRYPTED = 0x1
LOCAL_HEADER = struct.Struct("<4s5H3L2H")
END_OF_DIRECTORY = struct.Struct("<4s4H2LH")
END_OF_DIRECTORY_BYTES = END_OF_DIRECTORY.size
COMMENT_MAX_BYTES = 2**16
ZIP64_LOCATOR_BYTES = 20
DIRECTORY_MAX_BYTES = 16 * 2**20
METADATA_MAX_BYTES = 2**20
STARTUP_NAMES = frozenset({"sitecustomize.py", "usercustomize.py", "sitecustomize", "usercustomize"})
COMPILED = (".so", ".pyd", ".dylib", ".dll")
UNREADABLE = (
    zipfile.BadZipFile, zipfile.LargeZipFile, zlib.error, struct.error, EOFError, NotImplementedError, ValueError, OverflowError,
)  # fmt: skip
"""What the library raises at damaged input."""
UNLISTED = frozenset({"RECORD", "RECORD.jws", "RECORD.p7s"})


@dataclass(frozen=True)
class WheelFacts:
    """What a wheel says about itself, after it was found to be true."""

    module: str
    """Import name of its package."""
    version: str
    summary: str = ""
    requires_dist: list[str] = field(default_factory=list)


def inspect_wheel(stream: BinaryIO, size_bytes: int, *, name: str, version: str, filename: str) -> WheelFacts:
    """Raises `ArchiveRefused` unless the wheel is safe to install and is what its sender declared."""
    census = Census(size_bytes)
    _check_filename(filename, name, version)
    _check_directory(stream, size_bytes)
    try:
        with zipfile.ZipFile(stream) as archive:
            infos = archive.infolist()
            _check_layout(stream, size_bytes, archive, infos)
            files = _check_members(archive, infos, census)
            return _check_contents(archive, files, name=name, version=version)
    except UNREADABLE as error:
        raise ArchiveRefused("", f"not a readable wheel: {error}") from error


def _check_filename(filename: str, name: str, version: str) -> None:
    try:
        found, found_version, _, tags = parse_wheel_filename(filename)
    except InvalidWheelFilename as error:
        raise ArchiveRefused(filename, "not a wheel's file name") from error
    if found != canonicalize_name(name) or found_version != Version(version):
        raise ArchiveRefused(filename, f"the file name says {found} {found_version}, the sender said {name} {version}")
    if not all(tag.abi == "none" and tag.platform == "any" for tag in tags):
        raise ArchiveRefused(filename, "only pure-Python wheels (none-any) are taken")


def _check_directory(stream: BinaryIO, size_bytes: int) -> None:
    """How long the directory says it is, before anybody reads it into memory. What is no zip file is told by its reader."""
    stream.seek(max(0, size_bytes - END_OF_DIRECTORY_BYTES - COMMENT_MAX_BYTES))
    tail = stream.read(END_OF_DIRECTORY_BYTES + COMMENT_MAX_BYTES)
    at = tail.rfind(b"PK\x05\x06")
    if at < 0 or len(tail) - at < END_OF_DIRECTORY_BYTES:
        return
    _, _, _, _, count, directory_bytes, _, _ = END_OF_DIRECTORY.unpack_from(tail, at)
    if tail[max(0, at - ZIP64_LOCATOR_BYTES) : at].startswith(b"PK\x06\x07"):
        raise ArchiveRefused("", "it is written for archives of more than 4 GiB (zip64)")
    if count > members.MEMBERS_MAX or directory_bytes > DIRECTORY_MAX_BYTES:
        raise ArchiveRefused("", f"the archive has more than {members.MEMBERS_MAX} members, or a directory of endless names")


def _check_layout(stream: BinaryIO, size_bytes: int, archive: zipfile.ZipFile, infos: list[zipfile.ZipInfo]) -> None:
    """Members lie one behind the other from byte 0 to the directory, and the directory ends the file."""
    if archive.comment:
        raise ArchiveRefused("", "the archive has a comment, in which a second archive could hide")
    position = 0
    for info in sorted(infos, key=lambda info: info.header_offset):
        if info.header_offset != position:
            raise ArchiveRefused(info.filename, "members overlap, or bytes lie between them that belong to none")
        stream.seek(position)
        header = LOCAL_HEADER.unpack(stream.read(LOCAL_HEADER.size))
        position += LOCAL_HEADER.size + header[9] + header[10] + info.compress_size
        if header[2] & 0x08:
            position = _behind_descriptor(stream, position)
    if position != archive.start_dir:
        raise ArchiveRefused("", "bytes lie between the last member and the directory")
    stream.seek(size_bytes - END_OF_DIRECTORY_BYTES)
    if not stream.read(4).startswith(b"PK\x05\x06"):
        raise ArchiveRefused("", "bytes lie behind the directory")


def _behind_descriptor(stream: BinaryIO, position: int) -> int:
    """The end of a data descriptor (a member whose writer learnt its size late): 12 bytes, with or without a signature."""
    stream.seek(position)
    return position + (16 if stream.read(4) == b"PK\x07\x08" else 12)


def _check_members(archive: zipfile.ZipFile, infos: list[zipfile.ZipInfo], census: Census) -> dict[str, tuple[str, int]]:
    """Name, kind and content of each member; returns (RECORD's hash, size) by name. Content is read whole and thrown away."""
    files = {}
    for info in infos:
        clean = census.admit(info.orig_filename, is_folder=info.is_dir())
        _check_kind(info)
        if info.is_dir():
            continue
        _check_name(clean)
        digest, size_bytes = hashlib.sha256(), 0
        with archive.open(info) as content:
            for chunk in census.read(clean, content):
                digest.update(chunk)
                size_bytes += len(chunk)
        files[clean] = (base64.urlsafe_b64encode(digest.digest()).rstrip(b"=").decode(), size_bytes)
    return files


def _check_kind(info: zipfile.ZipInfo) -> None:
    kind = stat.S_IFMT(info.external_attr >> 16)
    if kind == stat.S_IFLNK:
        raise ArchiveRefused(info.filename, "it is a link")
    if kind not in (0, stat.S_IFREG, stat.S_IFDIR):
        raise ArchiveRefused(info.filename, "it is a device, a pipe or a socket")
    if info.flag_bits & ENCRYPTED:
        raise ArchiveRefused(info.filename, "it is encrypted")
    if info.compress_type not in METHODS:
        raise ArchiveRefused(info.filename, f"it is packed by method {info.compress_type}; stored and deflated are taken")


def _check_name(name: str) -> None:
    top, _, rest = name.partition("/")
    if name.endswith(".pth"):
        raise ArchiveRefused(name, "a .pth file would run code at every start of Python")
    if top in STARTUP_NAMES:
        raise ArchiveRefused(name, "it would run code at every start of Python")
    if top.endswith(".data") and rest:
        raise ArchiveRefused(name, "files outside the package's folder (.data) are not installed")
    if name.lower().endswith(COMPILED):
        raise ArchiveRefused(name, "compiled code is not taken: an environment is pure Python")


def _check_contents(archive: zipfile.ZipFile, files: Mapping[str, tuple[str, int]], *, name: str, version: str) -> WheelFacts:
    folder = _dist_info(files, name, version)
    record = _read(archive, files, f"{folder}/RECORD")
    _check_record(record, files, folder)
    _read(archive, files, f"{folder}/WHEEL")
    metadata = BytesParser().parsebytes(_read(archive, files, f"{folder}/METADATA"))
    _check_metadata(metadata, f"{folder}/METADATA", name, version)
    module = _top_module(files, folder, name)
    requires_dist = [str(line) for line in metadata.get_all("Requires-Dist", [])]
    try:
        interface_of(module, member_reader(archive), requires_dist)
    except InterfaceRefused as error:
        raise ArchiveRefused(f"{folder}/METADATA", str(error)) from error
    return WheelFacts(module, version, str(metadata.get("Summary", "")), requires_dist)


def _dist_info(files: Mapping[str, tuple[str, int]], name: str, version: str) -> str:
    folders = {path.partition("/")[0] for path in files if path.partition("/")[0].endswith(".dist-info")}
    if len(folders) != 1:
        raise ArchiveRefused("", f"a wheel has one .dist-info folder, this one has {len(folders)}")
    folder = folders.pop()
    found, _, found_version = folder.removesuffix(".dist-info").partition("-")
    try:
        agrees = canonicalize_name(found) == canonicalize_name(name) and Version(found_version) == Version(version)
    except InvalidVersion:
        agrees = False
    if not agrees:
        raise ArchiveRefused(folder, f"the folder is not that of {name} {version}")
    return folder


def _read(archive: zipfile.ZipFile, files: Mapping[str, tuple[str, int]], path: str) -> bytes:
    if path not in files:
        raise ArchiveRefused(path, "it is missing")
    if files[path][1] > METADATA_MAX_BYTES:
        raise ArchiveRefused(path, f"it has more than {METADATA_MAX_BYTES} bytes")
    return archive.read(path)


def _check_record(record: bytes, files: Mapping[str, tuple[str, int]], folder: str) -> None:
    """RECORD lists every file with its hash and size, and nothing else."""
    unhashed = {f"{folder}/{name}" for name in UNLISTED}
    listed = set()
    for row in _record_rows(record, f"{folder}/RECORD"):
        path, digest, size_bytes = row
        if path not in files:
            raise ArchiveRefused(path, "RECORD lists it, the archive has no such file")
        listed.add(path)
        if path in unhashed:
            continue
        if digest != f"sha256={files[path][0]}" or size_bytes not in ("", str(files[path][1])):
            raise ArchiveRefused(path, "RECORD gives another hash or size than the file has")
    for path in files.keys() - listed - unhashed:
        raise ArchiveRefused(path, "RECORD does not list it")


def _record_rows(record: bytes, path: str) -> list[list[str]]:
    try:
        rows = [row for row in csv.reader(io.StringIO(record.decode("utf-8"))) if row]
    except (UnicodeDecodeError, csv.Error) as error:
        raise ArchiveRefused(path, f"not readable: {error}") from error
    if any(len(row) != 3 for row in rows):
        raise ArchiveRefused(path, "a row of RECORD has three fields")
    return rows


def _check_metadata(metadata: Message, path: str, name: str, version: str) -> None:
    found, found_version = str(metadata.get("Name", "")), str(metadata.get("Version", ""))
    try:
        agrees = canonicalize_name(found) == canonicalize_name(name) and Version(found_version) == Version(version)
    except InvalidVersion:
        agrees = False
    if not agrees:
        raise ArchiveRefused(path, f"it says {found} {found_version}, the sender said {name} {version}")


def _top_module(files: Mapping[str, tuple[str, int]], folder: str, name: str) -> str:
    """The one module that the wheel brings: the project's own name, or the only one there is."""
    tops = {
        path.partition("/")[0].removesuffix(".py") for path in files if path.endswith(".py") and not path.startswith(f"{folder}/")
    }
    for top in sorted(tops):
        if reason := module_refusal(top):
            raise ArchiveRefused(top, reason)
    wanted = module_name(name)
    if wanted in tops:
        return wanted
    if len(tops) == 1:
        return tops.pop()
    raise ArchiveRefused("", f"the wheel brings {', '.join(sorted(tops)) or 'no module'}; it must bring '{wanted}'")
