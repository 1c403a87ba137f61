"""Rules that hold for a member of any archive: where its name may lead, and how much there may be in all.

Pure. No member holds a key that somebody could use. Limits are counted on the bytes that come out, never on what a header claims.
"""

import unicodedata
from collections.abc import Iterator
from typing import BinaryIO

from trainer.contracts.secret_scan import Finding, SecretScan

ARCHIVE_MAX_BYTES = 256 * 2**20
UNPACKED_MAX_BYTES = 512 * 2**20
MEMBER_MAX_BYTES = 256 * 2**20
MEMBERS_MAX = 10_000
DEPTH_MAX = 32
NAME_MAX_CHARACTERS = 512
SEGMENT_MAX_BYTES = 255
RATIO_MAX = 200
RATIO_FLOOR_BYTES = 2**20
"""Below this much output nobody is hurt: a file of a thousand spaces packs 200 to 1 and is honest."""
CHUNK_BYTES = 64 * 1024


class ArchiveRefused(Exception):
    """`member` is the name as the archive spells it ('' for the archive as a whole); `reason` says what is wrong with it."""

    def __init__(self, member: str, reason: str) -> None:
        super().__init__(f"{member}: {reason}" if member else reason)
        self.member, self.reason = member, reason


class SecretFound(ArchiveRefused):
    """A file holds keys, which whoever may read the release could use."""

    def __init__(self, member: str, findings: list[Finding]) -> None:
        super().__init__(member, ", ".join(map(str, findings)))
        self.findings = findings


class Census:
    """Counts members and bytes of one archive, and refuses names that lead elsewhere or meet another's."""

    def __init__(self, packed_bytes: int) -> None:
        if packed_bytes > ARCHIVE_MAX_BYTES:
            raise ArchiveRefused("", f"the archive has {packed_bytes} bytes; at most {ARCHIVE_MAX_BYTES} are taken")
        self.packed_bytes, self.unpacked_bytes = packed_bytes, 0
        self._kinds: dict[str, bool] = {}

    def admit(self, name: str, *, is_folder: bool) -> str:
        """Check a member's name and return it without a trailing slash."""
        if len(self._kinds) >= MEMBERS_MAX:
            raise ArchiveRefused(name, f"the archive has more than {MEMBERS_MAX} members")
        clean = name.removesuffix("/") if is_folder else name
        if reason := name_refusal(clean):
            raise ArchiveRefused(name, reason)
        self._refuse_meeting(name, clean, is_folder)
        return clean

    def _refuse_meeting(self, name: str, clean: str, is_folder: bool) -> None:
        """Two members must not become one file, on any file system: spelling is compared without case and composition."""
        *folders, last = _folded(clean).split("/")
        for depth in range(len(folders)):
            if self._kinds.setdefault("/".join(folders[: depth + 1]), True) is False:
                raise ArchiveRefused(name, "a member of this name's folder is a file")
        path = "/".join([*folders, last])
        if path in self._kinds and not (is_folder and self._kinds[path]):
            raise ArchiveRefused(name, "two members have this name, or names that differ only in case")
        self._kinds[path] = is_folder

    def read(self, name: str, stream: BinaryIO) -> Iterator[bytes]:
        """A member's content in chunks, counted and searched for keys as it comes."""
        size_bytes, secrets = 0, SecretScan()
        while chunk := stream.read(CHUNK_BYTES):
            size_bytes += len(chunk)
            self.unpacked_bytes += len(chunk)
            if size_bytes > MEMBER_MAX_BYTES:
                raise ArchiveRefused(name, f"it unpacks to more than {MEMBER_MAX_BYTES} bytes")
            self._refuse_bomb(name)
            secrets.feed(chunk)
            yield chunk
        if findings := secrets.findings():
            raise SecretFound(name, findings)

    def _refuse_bomb(self, name: str) -> None:
        if self.unpacked_bytes > UNPACKED_MAX_BYTES:
            raise ArchiveRefused(name, f"the archive unpacks to more than {UNPACKED_MAX_BYTES} bytes")
        if self.unpacked_bytes > RATIO_FLOOR_BYTES and self.unpacked_bytes > RATIO_MAX * max(self.packed_bytes, 1):
            raise ArchiveRefused(name, f"the archive unpacks to more than {RATIO_MAX} times its size")


def name_refusal(name: str) -> str | None:
    """Why no member may have this name, or None. A name is a relative path below the place of extraction."""
    if not name or len(name) > NAME_MAX_CHARACTERS:
        return f"a member's name has 1 to {NAME_MAX_CHARACTERS} characters"
    if any(unicodedata.category(character).startswith("C") for character in name):
        return "its name has control or unassigned characters"
    if "\\" in name or ":" in name:
        return "its name has a backslash or a colon, which other systems read as a path"
    if name.startswith("/"):
        return "its name is an absolute path"
    segments = name.split("/")
    if ".." in segments:
        return "its name leads out of the archive"
    if "" in segments or "." in segments:
        return "its name is not in its simplest form"
    if len(segments) > DEPTH_MAX or any(len(segment.encode()) > SEGMENT_MAX_BYTES for segment in segments):
        return f"its name is deeper than {DEPTH_MAX} folders, or a part of it is longer than {SEGMENT_MAX_BYTES} bytes"
    return None


def _folded(name: str) -> str:
    return unicodedata.normalize("NFKC", name).casefold()
