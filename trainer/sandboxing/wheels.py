"""What a release may bring along: checks on wheels as bytes and on installed names, before anything could run them.

Knows zip members, top-level names, lock lines. Refuses to know how to install. A release comes first on the import path, so a
name that the base has, or that is ours, would replace trusted code; a `.pth` file or a sitecustomize module would run at every
start of the interpreter, outside of any box too.
"""

import re
import zipfile
from collections.abc import Collection, Iterable, Sequence
from email.parser import HeaderParser
from pathlib import Path

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name

from trainer.contracts.interfaces import Interface
from trainer.contracts.package_interfaces import InterfaceRefused, interface_of, member_reader

UNPACKED_BYTES_MAX = 512 * 1024 * 1024
MEMBERS_MAX = 20_000
OUR_NAMES = frozenset({"controlplane", "migrations", "primecli", "rootstock_chat", "trainer", "workers"})
ADDRESS_WAY_OUT = (
    "by address only a wheel of this hub can be required, in the line that `prime env info` shows for it; "
    "a package of the public index goes by its name"
)
_STARTUP_MODULES = frozenset({"sitecustomize", "usercustomize"})
_LOCK_LINE = re.compile(
    r"[A-Za-z0-9][A-Za-z0-9._-]*(\[[A-Za-z0-9,._-]*\])?==[A-Za-z0-9.+!_-]+( *;[^#\\]*)?( +--hash=sha256:[0-9a-f]{64})+"
)


class ReleaseRefused(Exception):
    """The package itself is at fault; the text names what."""


def entries_of(site_packages: Path) -> frozenset[str]:
    """Its files and folders. One without `__init__.py` is nobody's: what lies in it stands for it (`google/protobuf`)."""
    found: set[str] = set()
    for entry in site_packages.iterdir():
        is_shared = entry.is_dir() and top_level_name(entry.name) and not any(entry.glob("__init__.*"))
        found.update(f"{entry.name}/{inner.name}" for inner in entry.iterdir()) if is_shared else found.add(entry.name)
    return frozenset(found)


def top_level_name(entry: str) -> str | None:
    """The import name that an entry of site-packages provides, or None for metadata and caches."""
    if entry.endswith(("__pycache__", ".dist-info", ".libs", ".data")):
        return None
    folder, _, last = entry.rpartition("/")
    return ".".join(part for part in (folder, last.split(".", 1)[0]) if part)


def check_archive(wheel: Path) -> None:
    """Sizes only; refuses a bomb before it is unpacked."""
    try:
        with zipfile.ZipFile(wheel) as archive:
            members = archive.infolist()
    except zipfile.BadZipFile as error:
        raise ReleaseRefused(f"{wheel.name} is not a wheel: {error}") from error
    if len(members) > MEMBERS_MAX:
        raise ReleaseRefused(f"{wheel.name} has {len(members)} members, the limit is {MEMBERS_MAX}")
    if (size := sum(member.file_size for member in members)) > UNPACKED_BYTES_MAX:
        raise ReleaseRefused(f"{wheel.name} unpacks to {size} bytes, the limit is {UNPACKED_BYTES_MAX}")


def interface_of_wheel(wheel: Path, module: str) -> Interface:
    """What `module` of a checked wheel is written for."""
    try:
        with zipfile.ZipFile(wheel) as archive:
            return interface_of(module, member_reader(archive), _requires(wheel))
    except InterfaceRefused as error:
        raise ReleaseRefused(str(error)) from error


def check_names(entries: Iterable[str], base_names: frozenset[str]) -> None:
    """`entries` are those of the release's site-packages (`entries_of`); ReleaseRefused names the first bad one."""
    for entry in sorted(entries):
        name = top_level_name(entry)
        if entry.endswith(".pth"):
            raise ReleaseRefused(f"it installs {entry}: a .pth file runs code at every start of the interpreter")
        if name and name.partition(".")[0] in _STARTUP_MODULES:
            raise ReleaseRefused(f"it installs {entry}: {name} runs at every start of the interpreter")
        if name and any(_hides(name, taken) for taken in (*base_names, *OUR_NAMES)):
            raise ReleaseRefused(f"it installs {entry}: the name {name} belongs to the runner's base environment")


def _hides(name: str, taken: str) -> bool:
    """Whether one of two import names is the other, or holds it."""
    return name == taken or name.startswith(f"{taken}.") or taken.startswith(f"{name}.")


def base_names(site_packages: Path) -> frozenset[str]:
    return frozenset(name for entry in entries_of(site_packages) if (name := top_level_name(entry)))


def check_lock(text: str) -> None:
    """A lock holds pinned, hashed wheels of an index and nothing else: no options, addresses or paths."""
    logical = re.sub(r"\\\n", " ", text)
    for line in (line.split(" #")[0].strip() for line in logical.splitlines()):
        if line and not line.startswith("#") and not _LOCK_LINE.fullmatch(re.sub(r"\s+", " ", line)):
            raise ReleaseRefused(f"its requirements lock holds {line[:120]!r}, which is not `name==version --hash=sha256:…`")


def unmet_requirements(wheel: Path, frozen: Iterable[str], addresses: Collection[str] = ()) -> list[str]:
    """What `wheel` requires, on this platform and without extras of its own, that `frozen` (`name==version` lines) does not meet.
    An extra of a package is never met: the package is there, what its extra brings may not be. Of addresses only those of
    `addresses` may be required: their wheels come along."""
    versions = {canonicalize_name(name): version for name, _, version in (line.partition("==") for line in frozen)}
    unmet = []
    for text in _requires(wheel):
        try:
            requirement = Requirement(text)
        except InvalidRequirement as error:
            raise ReleaseRefused(f"{wheel.name} has an invalid requirement {text!r}: {error}") from error
        if requirement.marker and not requirement.marker.evaluate({"extra": ""}):
            continue
        if requirement.url in addresses:
            continue
        if requirement.url:
            raise ReleaseRefused(f"{wheel.name} requires {text!r}: {ADDRESS_WAY_OUT}")
        version = versions.get(canonicalize_name(requirement.name))
        if version is None or requirement.extras or not requirement.specifier.contains(version, prereleases=True):
            unmet.append(f"{requirement.name}{_extras(requirement)}{requirement.specifier}")
    return unmet


def check_apart(wheels: Sequence[Path], lock: str) -> None:
    """A release and the wheels of the hub that it stands on are installed into one folder: each brings import names of its own,
    and the lock, whose packages are the public index's, has none of theirs."""
    locked = {canonicalize_name(name) for name in re.findall(r"(?m)^([A-Za-z0-9][A-Za-z0-9._-]*)[^\n]*==", lock)}
    brought: dict[str, Path] = {}
    for wheel in wheels:
        if (name := canonicalize_name(wheel.name.partition("-")[0])) in locked:
            raise ReleaseRefused(
                f"{name} is required by name, which means the public index, and {wheel.name} is of that name too"
            )
        with zipfile.ZipFile(wheel) as archive:
            modules = {top_level_name(member.partition("/")[0]) for member in archive.namelist()} - {None}
        for module in sorted(map(str, modules)):
            if (other := brought.setdefault(module, wheel)) != wheel:
                raise ReleaseRefused(f"{other.name} and {wheel.name} both install {module}: give one of them another name")


def _requires(wheel: Path) -> list[str]:
    with zipfile.ZipFile(wheel) as archive:
        names = [name for name in archive.namelist() if re.fullmatch(r"[^/]+\.dist-info/METADATA", name)]
        if len(names) != 1:
            raise ReleaseRefused(f"{wheel.name} has {len(names)} METADATA files instead of one")
        metadata = HeaderParser().parsestr(archive.read(names[0]).decode("utf-8", errors="replace"))
    return metadata.get_all("Requires-Dist") or []


def _extras(requirement: Requirement) -> str:
    return f"[{','.join(sorted(requirement.extras))}]" if requirement.extras else ""
