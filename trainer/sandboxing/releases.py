"""A release's own environment: one wheel, its extra dependencies and those of its uv scripts, layered on the base by a path file
that only we write.

Knows folders below the runner directory. Refuses to know the hub, and never runs or imports what it installs: packages are copied
with the base's interpreter, checked by name, byte-compiled, and become visible by one rename.

    release = await ensure_release(runner_dir, spec, fetch)     # and the base that its interface asks for
"""

import asyncio
import hashlib
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from trainer.contracts.interfaces import LIBRARY_VERSIONS
from trainer.contracts.rollouts import HubWheel, ReleaseSpec
from trainer.sandboxing.base_venv import BaseVenv, ensure_base, find_base, frozen_packages
from trainer.sandboxing.locks import exclusive
from trainer.sandboxing.specs import Mount
from trainer.sandboxing.uv import InstallFailed, run_uv
from trainer.sandboxing.uv_scripts import find_scripts, install_scripts, joined_lock, lock_script, split_lock
from trainer.sandboxing.wheels import (
    ReleaseRefused,
    base_names,
    check_apart,
    check_archive,
    check_names,
    entries_of,
    interface_of_wheel,
    unmet_requirements,
)

Fetch = Callable[[str], Awaitable[bytes]]
"""Bytes behind a wheel's address; the caller owns credentials, redirects and the size limit."""

LAYER_FILE = "zz_rootstock_base.pth"
LOCK_NAME = "requirements.lock"
_DIGEST_NAME = "release.digest"
PRERELEASE_WAY_OUT = (
    """: one of them needs a pre-release; with `prerelease = "allow"` under [tool.uv] of pyproject.toml it gets one"""
)
_STEP_S = 60.0
_EXTRAS_S = 300.0
_LOCK_S = 600.0


@dataclass(frozen=True, slots=True)
class ReleaseVenv:
    """An environment that can start: `module` is importable with `python`, behind it everything of the base."""

    path: Path
    module: str
    base: BaseVenv

    @property
    def python(self) -> Path:
        return self.path / "bin" / "python"

    @property
    def site_packages(self) -> Path:
        return self.path / self.base.site_packages.relative_to(self.base.path)

    @property
    def requirements_lock(self) -> str:
        """The extra dependencies, and those of uv scripts, as they were installed; empty when there were none."""
        lock = self.path / LOCK_NAME
        return lock.read_text() if lock.exists() else ""

    @property
    def mounts(self) -> tuple[Mount, ...]:
        return (*self.base.mounts, Mount(self.path, str(self.path)))


async def ensure_release(runner_dir: Path, spec: ReleaseSpec, fetch: Fetch) -> ReleaseVenv:
    """The environment of `spec`, reused when it is there. Raises ReleaseRefused (the package's fault), InstallFailed (the
    installer's words), and whatever `fetch` raises."""
    path = runner_dir.resolve() / "releases" / _folder_name(spec.release_id)
    found = await asyncio.to_thread(_find, runner_dir, path, spec)
    if found is not None:
        return found
    wheels = [await fetch(one.wheel_url) for one in _sources(spec)]
    return await asyncio.to_thread(_make, runner_dir, path, spec, wheels)


def _sources(spec: ReleaseSpec) -> list[ReleaseSpec | HubWheel]:
    """Whose wheels are installed: the release's own first."""
    return [spec, *spec.hub_wheels]


def _find(runner_dir: Path, path: Path, spec: ReleaseSpec) -> ReleaseVenv | None:
    """The environment if it is there: a release stands on one of the bases."""
    for interface in LIBRARY_VERSIONS:
        base = find_base(runner_dir, interface)
        if base is not None and _is_complete(path, _digest(spec, base)):
            return ReleaseVenv(path, spec.module, base)
    return None


def _make(runner_dir: Path, path: Path, spec: ReleaseSpec, wheels: Sequence[bytes]) -> ReleaseVenv:
    with tempfile.TemporaryDirectory() as folder:
        interface = interface_of_wheel(_store_wheel(Path(folder), spec, wheels[0]), spec.module)
    venv = ReleaseVenv(path, spec.module, ensure_base(runner_dir, interface=interface))
    _build_once(venv, spec, wheels, _digest(spec, venv.base))
    return venv


def _folder_name(release_id: str) -> str:
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}", release_id):
        raise ValueError(f"release id {release_id!r} cannot name a folder")
    return release_id


def _digest(spec: ReleaseSpec, base: BaseVenv) -> str:
    """Same digest, same content: a moved release directory or a new base builds anew. The wheels of the hub that it stands on are
    pinned by what its own says, and so by its digest."""
    parts = (base.digest, str(base.path), spec.wheel_sha256, spec.module, spec.requirements_lock)
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


def _is_complete(path: Path, digest: str) -> bool:
    try:
        return digest in (path / _DIGEST_NAME).read_text().split()
    except OSError:
        return False


def _build_once(venv: ReleaseVenv, spec: ReleaseSpec, wheels: Sequence[bytes], digest: str) -> None:
    with exclusive(venv.path.with_suffix(".lock"), deadline_s=_LOCK_S):
        if _is_complete(venv.path, digest):
            return
        building = ReleaseVenv(venv.path.with_name(f".building-{venv.path.name}"), spec.module, venv.base)
        for leftover in (building.path, venv.path):
            shutil.rmtree(leftover, ignore_errors=True)
        try:
            _build(building, spec, wheels)
            # The hub sends what was locked here with every later start: that is this build too.
            locked = _digest(spec.model_copy(update={"requirements_lock": building.requirements_lock}), venv.base)
            (building.path / _DIGEST_NAME).write_text(f"{digest} {locked}")
            building.path.rename(venv.path)
        finally:
            shutil.rmtree(building.path, ignore_errors=True)


def _build(venv: ReleaseVenv, spec: ReleaseSpec, wheels: Sequence[bytes]) -> None:
    interpreter = os.path.realpath(venv.base.python)
    run_uv(["venv", "--offline", "--no-project", "--python", interpreter, str(venv.path)], deadline_s=_STEP_S)
    shutil.rmtree(venv.site_packages)  # some versions of uv put start-up files of their own there
    venv.site_packages.mkdir()
    files = [_store_wheel(venv.path, one, wheel) for one, wheel in zip(_sources(spec), wheels, strict=True)]
    _install_packages(venv, files, spec)
    for file in files:
        file.unlink()
    shutil.rmtree(venv.site_packages / "bin", ignore_errors=True)
    _check_installed(venv, spec)
    compiler = [str(venv.base.python), "-I", "-m", "compileall", "-q", "-j", "0", str(venv.path)]
    # A file with a syntax error fails here and again at import, where its module and line are reported.
    subprocess.run(compiler, stdout=subprocess.DEVNULL, timeout=_STEP_S, check=False)
    (venv.site_packages / LAYER_FILE).write_text(f"{venv.base.site_packages}\n")


def _install_packages(venv: ReleaseVenv, files: Sequence[Path], spec: ReleaseSpec) -> None:
    """The wheel, those of the hub that it stands on, their extra dependencies, and their scripts' environments, as the known lock
    says or as they resolve now."""
    own, parts = split_lock(spec.requirements_lock or _lock_extras(venv, files, spec))
    check_apart(files, own)
    scripts = find_scripts(files, venv.base.python_version)
    parts = {script.digest: parts.get(script.digest) or lock_script(script, venv.base, venv.path) for script in scripts}
    if lock := joined_lock(own, scripts, parts):
        (venv.path / LOCK_NAME).write_text(lock)
    if own:
        extras = venv.path / "extra.lock"
        extras.write_text(own)
        _install(venv, venv.site_packages, ["--require-hashes", "-r", str(extras)], deadline_s=_EXTRAS_S)
    _install(venv, venv.site_packages, ["--offline", "--no-index", *map(str, files)], deadline_s=_STEP_S)
    install_scripts(venv.path, venv.base, scripts, parts, partial(_install, venv, deadline_s=_EXTRAS_S))


def _store_wheel(folder: Path, spec: ReleaseSpec | HubWheel, wheel: bytes) -> Path:
    if hashlib.sha256(wheel).hexdigest() != spec.wheel_sha256:
        raise InstallFailed(f"{spec.wheel_filename} was fetched with another digest than {spec.wheel_sha256}")
    path = folder / Path(spec.wheel_filename).name
    path.write_bytes(wheel)
    check_archive(path)
    return path


def _lock_extras(venv: ReleaseVenv, files: Sequence[Path], spec: ReleaseSpec) -> str:
    """A lock for what the wheels want beyond the base; empty, and without network, when that is nothing."""
    frozen, addresses = frozen_packages(venv.base), {one.address for one in spec.hub_wheels}
    unmet = [line for file in files for line in unmet_requirements(file, frozen, addresses)]
    if not unmet:
        return ""
    wanted, constraints = venv.path / "extra.in", venv.path / "base.txt"
    wanted.write_text("\n".join(unmet))
    constraints.write_text("\n".join(frozen))
    options = ["--python", str(venv.base.python), "--constraint", str(constraints), "--only-binary", ":all:", "--generate-hashes"]
    options += ["--prerelease", "allow"] if spec.allows_prereleases else []
    try:
        locked = run_uv(["pip", "compile", *options, "--no-annotate", "--no-header", str(wanted)], deadline_s=_EXTRAS_S)
    except InstallFailed as error:
        way_out = PRERELEASE_WAY_OUT if "pre-release" in str(error).lower() and not spec.allows_prereleases else ""
        raise ReleaseRefused(
            f"its requirements {', '.join(unmet)} cannot be installed next to the runner's own{way_out}: {error}"
        ) from error
    return without_base(locked, frozen)


def without_base(lock: str, frozen: list[str]) -> str:
    """The blocks of a compiled lock that the base does not hold already in the same version."""
    blocks = re.split(r"\n(?=\S)", lock.strip())
    return "\n".join(block for block in blocks if block.split(maxsplit=1)[0] not in frozen)


def _install(venv: ReleaseVenv, folder: Path, what: list[str], *, deadline_s: float) -> None:
    # Into a folder and with the base's interpreter: the release's own would run a .pth file before we have looked for one.
    options = ["--python", str(venv.base.python), "--target", str(folder), "--no-deps", "--only-binary", ":all:"]
    # What is installed here is named by its exact version already: whether it is a pre-release was decided when it was locked.
    run_uv(["pip", "install", *options, "--prerelease", "allow", *what], deadline_s=deadline_s)


def _check_installed(venv: ReleaseVenv, spec: ReleaseSpec) -> None:
    entries = entries_of(venv.site_packages)
    check_names(entries, base_names(venv.base.site_packages))
    if not any(re.split(r"[./]", entry, maxsplit=1)[0] == spec.module for entry in entries):
        raise ReleaseRefused(f"{spec.wheel_filename} installs no module {spec.module}; it has {', '.join(sorted(entries))[:500]}")
