"""Which interface a package is written for: read off its files and its requirements, before anything of it could run.

Knows what the two look like. Refuses to import a package or to parse it: its text is a stranger's, and is searched by line.
"""

import re
from collections.abc import Callable, Iterable
from zipfile import ZipFile

from packaging.requirements import InvalidRequirement, Requirement

from trainer.contracts.interfaces import LIBRARY_VERSIONS, Interface

ReadMember = Callable[[str], str]
"""The text of a wheel's member; empty where there is none."""

SOURCE_BYTES_MAX = 2 * 2**20
_DEFINED = re.compile(r"^(?:async\s+)?def\s+load_environment\b|^load_environment\s*=", re.MULTILINE)
_IMPORTED = re.compile(r"^from\s+[.\w]+\s+import\s+(\([^)]*\)|[^\n]*)", re.MULTILINE)
_STAR = re.compile(r"^from\s+([.\w]+)\s+import\s+\*", re.MULTILINE)
_EXPORTS = re.compile(r"^__all__\s*(?::[^=\n]*)?=\s*[\[(]([^\])]*)", re.MULTILINE)
_TASKSET_CLASS = re.compile(r"^class\s+\w+\s*\([^)]*Taskset", re.MULTILINE)
_TASKSET_NAME = re.compile(r"""["']\w*Taskset["']""")


class InterfaceRefused(Exception):
    """No runner has what the package asks for; the text says which versions there are."""


def interface_of(module: str, read: ReadMember, requires_dist: Iterable[str]) -> Interface:
    """The interface of the package `module`, by what it defines and by which versions of the library it allows. A package that
    has both, and allows both, is played by the newer one. Raises InterfaceRefused."""
    entry = read(f"{module}/__init__.py") or read(f"{module}.py")
    wanted = [requirement for requirement in holding_requirements(requires_dist) if requirement.name.lower() == "verifiers"]
    allowed = {
        interface
        for interface, version in LIBRARY_VERSIONS.items()
        if all(requirement.specifier.contains(version, prereleases=True) for requirement in wanted)
    }
    is_older = _defines_loader(module, entry, read)
    if is_older and "load_environment" in allowed and not ("taskset" in allowed and _exports_taskset(entry)):
        return "load_environment"
    if "taskset" in allowed:
        return "taskset"
    asked = ", ".join(str(requirement) for requirement in wanted)
    if is_older:
        raise InterfaceRefused(f"it requires {asked}; a package with load_environment is played with verifiers 0.3.1: allow that")
    raise InterfaceRefused(
        f"it requires {asked} and {module} defines no load_environment, which packages for verifiers 0.3.1 and before do; "
        "a package with a Taskset is played with verifiers 0.4.0: allow that"
    )


def member_reader(archive: ZipFile) -> ReadMember:
    """Reads a wheel's members as text, each up to a limit. The caller has checked the archive."""
    names = frozenset(archive.namelist())

    def read(name: str) -> str:
        if name not in names:
            return ""
        with archive.open(name) as member:
            return member.read(SOURCE_BYTES_MAX).decode("utf-8", errors="replace")

    return read


def holding_requirements(lines: Iterable[str]) -> Iterable[Requirement]:
    """Those that hold on this platform without extras. Who installs the package refuses the malformed ones."""
    for line in lines:
        try:
            requirement = Requirement(line)
        except InvalidRequirement:
            continue
        if requirement.marker is None or requirement.marker.evaluate({"extra": ""}):
            yield requirement


def _defines_loader(module: str, entry: str, read: ReadMember) -> bool:
    """Whether the module has the name at its top: defined there, imported by name, or with everything of a file beside it."""
    if _DEFINED.search(entry) or any(re.search(r"\bload_environment\b", names[1]) for names in _IMPORTED.finditer(entry)):
        return True
    beside = (star[1].removeprefix(f"{module}.").lstrip(".") for star in _STAR.finditer(entry))
    return any(_DEFINED.search(read(f"{module}/{name.replace('.', '/')}.py")) for name in beside if name)


def _exports_taskset(entry: str) -> bool:
    return bool(_TASKSET_CLASS.search(entry)) or any(_TASKSET_NAME.search(names[1]) for names in _EXPORTS.finditer(entry))
