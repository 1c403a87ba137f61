"""The corpus of archives that the hub takes and refuses. Each entry is built here from its one difference to a good archive.

`python tests/data/archives/corpus.py` writes the files beside this module: wheels (`*.whl`) and source archives (`*.tar.gz`) in
`accept/` and `reject/`. They are committed, so that the rule is visible as files and other tools can be pointed at them. All call
themselves demo-env 0.1.0.
"""

import base64
import gzip
import hashlib
import io
import stat
import struct
import tarfile
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

HERE = Path(__file__).parent
NAME, VERSION = "demo-env", "0.1.0"
WHEEL_NAME = "demo_env-0.1.0-py3-none-any.whl"
DIST_INFO = "demo_env-0.1.0.dist-info"
EPOCH = (2026, 1, 1, 0, 0, 0)
METADATA = b"Metadata-Version: 2.3\nName: demo-env\nVersion: 0.1.0\nSummary: A demo.\nRequires-Dist: verifiers>=0.4\n"
WHEEL = b"Wheel-Version: 1.0\nGenerator: corpus\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
# In two parts, so that no scanner takes this file for a leak.
TOKEN = b"gh" + b"p_aB3dE5gH7jK9mN1pQ3rS5tU7vW9xY1zA3bC5"
MODULE = {"demo_env/__init__.py": b'"""A demo."""\n'}
PYPROJECT = b'[project]\nname = "demo-env"\nversion = "0.1.0"\n'
SOURCES = {"README.md": b"# Demo\n", "demo_env/__init__.py": b'"""A demo."""\n', "pyproject.toml": PYPROJECT}


class Case(NamedTuple):
    """`reason` is part of the refusal's text; '' for an archive that is taken."""

    build: Callable[[], bytes]
    why: str
    reason: str = ""


def record_of(files: Mapping[str, bytes]) -> bytes:
    def row(name: str, content: bytes) -> str:
        digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
        return f"{name},sha256={digest},{len(content)}\n"

    return ("".join(row(name, content) for name, content in files.items()) + f"{DIST_INFO}/RECORD,,\n").encode()


def wheel(
    extra: Mapping[str, bytes] | None = None,
    *,
    without: str = "",
    record: bytes | None = None,
    metadata: bytes = METADATA,
    modules: Mapping[str, bytes] = MODULE,
    tamper: Callable[[zipfile.ZipFile], None] | None = None,
) -> bytes:
    files = {**modules, **(extra or {}), f"{DIST_INFO}/METADATA": metadata, f"{DIST_INFO}/WHEEL": WHEEL}
    files[f"{DIST_INFO}/RECORD"] = record_of(files) if record is None else record
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            if name != without:
                archive.writestr(_entry(name), content)
        if tamper:
            tamper(archive)
    return packed.getvalue()


def _entry(name: str, mode: int = stat.S_IFREG | 0o644) -> zipfile.ZipInfo:
    info = zipfile.ZipInfo(name, EPOCH)
    info.compress_type = zipfile.ZIP_DEFLATED
    info.external_attr = mode << 16
    return info


def _special(name: str, mode: int, content: bytes = b"") -> Callable[[zipfile.ZipFile], None]:
    return lambda archive: archive.writestr(_entry(name, mode), content)


def _twice(archive: zipfile.ZipFile) -> None:
    archive.writestr(_entry("demo_env/__init__.py"), b"import os\n")


def _comment(archive: zipfile.ZipFile) -> None:
    archive.comment = b"anything can stand here"


def _prefixed() -> bytes:
    """A zip file behind other bytes, which zip readers skip and others do not."""
    return b"#!/bin/sh\n" + wheel()


def _behind() -> bytes:
    return wheel() + b"behind the end"


def _encrypted() -> bytes:
    """The flag alone, in both headers of the first member."""
    packed = bytearray(wheel())
    packed[6] |= 1
    packed[packed.index(b"PK\x01\x02") + 8] |= 1
    return bytes(packed)


def _renamed_header() -> bytes:
    """The member's own header and the directory name different files."""
    return wheel().replace(b"demo_env/__init__.py", b"demo_env/__evil__.py", 1)


def _overlapping() -> bytes:
    """Two directory entries for one member's bytes: what makes a bomb of any size from a few kilobytes."""
    packed = wheel()
    start = packed.index(b"PK\x01\x02")
    end = packed.index(b"PK\x01\x02", start + 4)
    entry = packed[start:end].replace(b"__init__.py", b"__copy__.py")
    tail = packed.index(b"PK\x05\x06")
    directory = packed[start:tail] + entry
    count = struct.unpack_from("<H", packed, tail + 10)[0] + 1
    ending = struct.pack("<4s4H2LH", b"PK\x05\x06", 0, 0, count, count, len(directory), start, 0)
    return packed[:start] + directory + ending


def source(files: Mapping[str, bytes] = SOURCES, *members: tuple[tarfile.TarInfo, bytes]) -> bytes:
    packed = io.BytesIO()
    with gzip.GzipFile(filename="", fileobj=packed, mode="wb", mtime=0) as raw, tarfile.open(fileobj=raw, mode="w") as archive:
        for name, content in sorted(files.items()):
            archive.addfile(_member(name, size=len(content)), io.BytesIO(content))
        for member, content in members:
            archive.addfile(member, io.BytesIO(content))
    return packed.getvalue()


def _member(name: str, kind: bytes = tarfile.REGTYPE, target: str = "", size: int = 0) -> tarfile.TarInfo:
    member = tarfile.TarInfo(name)
    member.type, member.linkname, member.size = kind, target, size
    return member


def _with(name: str, kind: bytes = tarfile.REGTYPE, target: str = "") -> Callable[[], bytes]:
    return lambda: source(SOURCES, (_member(name, kind, target), b""))


def _sparse() -> bytes:
    """A file with holes, as GNU tar writes it: type S, its map in the header, its real size behind it."""
    member = _member("demo_env/holes.bin", tarfile.GNUTYPE_SPARSE)
    header = bytearray(member.tobuf(tarfile.GNU_FORMAT))
    header[386:410] = b"%011o\0%011o\0" % (0, 0)
    header[483:495] = b"%011o\0" % 2**24
    header[148:156] = b" " * 8
    header[148:156] = b"%06o\0 " % sum(header)
    packed = io.BytesIO()
    with gzip.GzipFile(filename="", fileobj=packed, mode="wb", mtime=0) as raw:
        raw.write(bytes(header) + bytes(1024))
    return packed.getvalue()


def _long_header() -> bytes:
    """Eight megabytes of comment in a header, which a reader takes into memory before it knows the member."""
    packed = io.BytesIO()
    member = _member("demo_env/x.py")
    member.pax_headers = {"comment": "x" * 2**23}
    with gzip.GzipFile(filename="", fileobj=packed, mode="wb", mtime=0) as raw:
        raw.write(member.tobuf(tarfile.PAX_FORMAT) + bytes(1024))
    return packed.getvalue()


def _nested_headers() -> bytes:
    """Thousands of headers, each of which extends the next: a reader that follows them by calling itself runs out of stack."""
    member = _member("x")
    member.pax_headers = {"comment": "x"}
    extending = member.tobuf(tarfile.PAX_FORMAT)[: 2 * tarfile.BLOCKSIZE]
    return gzip.compress(extending * 5000 + bytes(1024), mtime=0)


def _replaced(**files: bytes) -> Callable[[], bytes]:
    return lambda: source({**SOURCES, **{name.replace("_toml", ".toml"): content for name, content in files.items()}})


ACCEPT: dict[str, Case] = {
    "plain.whl": Case(wheel, "what hatchling makes"),
    "with-folders.whl": Case(lambda: wheel(tamper=_special("demo_env/data/", stat.S_IFDIR | 0o755)), "folders have entries too"),
    "with-data-files.whl": Case(lambda: wheel({"demo_env/tasks.json": b"[1, 2, 3]\n"}), "packages bring their tasks along"),
    "single-module.whl": Case(lambda: wheel(modules={"demo_env.py": b"x = 1\n"}), "one module at the root is a package too"),
    "older.whl": Case(
        lambda: wheel(
            modules={"demo_env.py": b"def load_environment():\n    return None\n"},
            metadata=METADATA.replace(b"verifiers>=0.4", b"verifiers>=0.1.12.dev5"),
        ),
        "a package of the older interface",
    ),
    "marked-example.whl": Case(
        lambda: wheel({"demo_env/docs.py": b'KEY = "' + TOKEN + b'"  # rootstock: not-a-secret\n'}),
        "a false alarm, marked as one",
    ),
    "plain.tar.gz": Case(source, "what `prime push` makes"),
    "with-folders.tar.gz": Case(_with("demo_env", tarfile.DIRTYPE), "folders have entries too"),
    "deep.tar.gz": Case(lambda: source({**SOURCES, "a/b/c/d/e/f.txt": b"deep\n"}), "nested data"),
}

REJECT: dict[str, Case] = {
    "traversal.whl": Case(lambda: wheel({"../evil.py": b""}), "would be written beside the target", "leads out"),
    "traversal-inside.whl": Case(lambda: wheel({"demo_env/../../evil.py": b""}), "the same, hidden in the middle", "leads out"),
    "absolute.whl": Case(lambda: wheel({"/etc/evil": b""}), "would be written to /etc", "absolute"),
    "backslash.whl": Case(lambda: wheel({"..\\evil.py": b""}), "a path on Windows", "backslash"),
    "drive.whl": Case(lambda: wheel({"C:evil.py": b""}), "a path on Windows", "colon"),
    "control-character.whl": Case(
        lambda: wheel({"demo_env/a\nb.py": b""}), "a name that forges a line of RECORD or a log", "control"
    ),
    "dot-segment.whl": Case(lambda: wheel({"demo_env/./b.py": b""}), "two spellings of one file", "simplest form"),
    "link.whl": Case(
        lambda: wheel(tamper=_special("demo_env/link", stat.S_IFLNK | 0o777, b"/etc/passwd")), "a link out of the target", "link"
    ),
    "device.whl": Case(lambda: wheel(tamper=_special("demo_env/null", stat.S_IFCHR | 0o666)), "a device node", "device"),
    "duplicate.whl": Case(lambda: wheel(tamper=_twice), "readers disagree on which one counts", "differ only in case"),
    "case-collision.whl": Case(lambda: wheel({"Demo_Env/__init__.py": b""}), "one file on some systems", "differ only in case"),
    "file-as-folder.whl": Case(lambda: wheel({"demo_env/__init__.py/x.py": b""}), "a folder that is a file", "folder is a file"),
    "comment.whl": Case(lambda: wheel(tamper=_comment), "a second archive hides in the comment", "comment"),
    "prefixed.whl": Case(_prefixed, "a script in front of the archive", "lie between"),
    "behind.whl": Case(_behind, "bytes behind the archive", "behind"),
    "overlapping.whl": Case(_overlapping, "many members share one member's bytes", "overlap"),
    "renamed-header.whl": Case(_renamed_header, "header and directory disagree", "differ"),
    "encrypted.whl": Case(_encrypted, "nobody can check what is inside", "encrypted"),
    "bomb.whl": Case(lambda: wheel({"demo_env/zeros.bin": bytes(4 * 2**20)}), "2 MiB from each 2 KiB", "times its size"),
    "not-a-zip.whl": Case(lambda: b"this is no archive\n" * 10, "not a zip file", "not a readable wheel"),
    "cut-short.whl": Case(lambda: wheel()[:-40], "an upload that broke off", "not a readable wheel"),
    "record-missing.whl": Case(lambda: wheel(without=f"{DIST_INFO}/RECORD"), "no RECORD", "missing"),
    "record-omits.whl": Case(lambda: wheel(record=f"{DIST_INFO}/RECORD,,\n".encode()), "unlisted files", "does not list"),
    "record-lies.whl": Case(
        lambda: wheel(record=record_of({"demo_env/__init__.py": b"other"})), "listed with another hash", "another hash"
    ),
    "record-invents.whl": Case(lambda: wheel(without="demo_env/__init__.py"), "lists what is not there", "no such file"),
    "metadata-missing.whl": Case(lambda: wheel(without=f"{DIST_INFO}/METADATA"), "no METADATA", "no such file"),
    "other-name.whl": Case(
        lambda: wheel(metadata=METADATA.replace(b"demo-env", b"other")), "METADATA names another project", "says other"
    ),
    "other-version.whl": Case(
        lambda: wheel(metadata=METADATA.replace(b"0.1.0", b"0.2.0")), "METADATA: another version", "says demo-env 0.2.0"
    ),
    "pth.whl": Case(lambda: wheel({"evil.pth": b"import os\n"}), "runs at every start of Python", ".pth"),
    "sitecustomize.whl": Case(lambda: wheel({"sitecustomize.py": b""}), "runs at every start of Python", "every start"),
    "data-scripts.whl": Case(
        lambda: wheel({"demo_env-0.1.0.data/scripts/python": b""}), "would be installed over a program", "outside the package"
    ),
    "compiled.whl": Case(lambda: wheel({"demo_env/fast.so": b""}), "native code", "compiled"),
    "shadows-json.whl": Case(lambda: wheel({"json/__init__.py": b""}), "shadows the standard library", "shadow"),
    "shadows-verifiers.whl": Case(lambda: wheel({"verifiers/__init__.py": b""}), "shadows what scores it", "shadow"),
    "secret.whl": Case(
        lambda: wheel({"demo_env/judge.py": b'import os\n\nKEY = "' + TOKEN + b'"\n'}),
        "a token that every reader could use",
        "demo_env/judge.py: line 3 holds a token of GitHub",
    ),
    "library-too-old.whl": Case(
        lambda: wheel(
            modules={"demo_env.py": b"def load_environment():\n    return None\n"},
            metadata=METADATA.replace(b"verifiers>=0.4", b"verifiers==0.1.5"),
        ),
        "no runner here has that version",
        "played with verifiers 0.3.1",
    ),
    "library-without-loader.whl": Case(
        lambda: wheel(metadata=METADATA.replace(b"verifiers>=0.4", b"verifiers<0.4")),
        "what would an older runner load?",
        "defines no load_environment",
    ),
    "two-modules.whl": Case(
        lambda: wheel(modules={"one/__init__.py": b"", "two/__init__.py": b""}), "which one is the environment?", "must bring"
    ),
    "traversal.tar.gz": Case(_with("../evil.py"), "would be written beside the target", "leads out"),
    "absolute.tar.gz": Case(_with("/etc/evil"), "would be written to /etc", "absolute"),
    "symlink.tar.gz": Case(_with("demo_env/link", tarfile.SYMTYPE, "/etc"), "a link out of the target", "link"),
    "hardlink.tar.gz": Case(_with("demo_env/link", tarfile.LNKTYPE, "../../etc/passwd"), "the same file as one outside", "link"),
    "device.tar.gz": Case(_with("demo_env/null", tarfile.CHRTYPE), "a device node", "device"),
    "pipe.tar.gz": Case(_with("demo_env/pipe", tarfile.FIFOTYPE), "reading it hangs", "pipe"),
    "secret.tar.gz": Case(
        lambda: source({**SOURCES, "demo_env/judge.py": b'KEY = "' + TOKEN + b'"\n'}), "the same, in the source", "line 1 holds"
    ),
    "sparse.tar.gz": Case(_sparse, "megabytes of holes in a few bytes", "sparse"),
    "long-header.tar.gz": Case(_long_header, "megabytes in a header", "header of more than"),
    "nested-headers.tar.gz": Case(_nested_headers, "headers upon headers", "not a readable"),
    "duplicate.tar.gz": Case(_with("pyproject.toml"), "readers disagree on which one counts", "differ only in case"),
    "bomb.tar.gz": Case(lambda: source({**SOURCES, "zeros.bin": bytes(4 * 2**20)}), "1000 to 1", "times its size"),
    "not-a-tar.tar.gz": Case(lambda: gzip.compress(b"no tar\n" * 200, mtime=0), "gzip of something else", "not a readable"),
    "not-gzip.tar.gz": Case(lambda: b"no gzip\n" * 10, "something else", "not a readable"),
    "cut-short.tar.gz": Case(lambda: source()[:-60], "an upload that broke off", "not a readable"),
    "pyproject-missing.tar.gz": Case(lambda: source({"a.py": b""}), "no project", "missing"),
    "pyproject-broken.tar.gz": Case(_replaced(pyproject_toml=b"[project\n"), "not TOML", "not readable"),
    "other-name.tar.gz": Case(_replaced(pyproject_toml=PYPROJECT.replace(b"demo-env", b"other")), "another project", "name"),
    "other-version.tar.gz": Case(_replaced(pyproject_toml=PYPROJECT.replace(b"0.1.0", b"0.2.0")), "another version", "version"),
}


def write() -> None:
    for folder, cases in (("accept", ACCEPT), ("reject", REJECT)):
        (HERE / folder).mkdir(exist_ok=True)
        for name, case in cases.items():
            (HERE / folder / name).write_bytes(case.build())


if __name__ == "__main__":
    write()
