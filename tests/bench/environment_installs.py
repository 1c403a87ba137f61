"""P18: a new release on the runner's base, against a new virtual environment that pip fills with the same packages.

Both install one small wheel that wants verifiers and what that wants in turn, and have every file that they need on this machine:
ours the base that all releases share, pip a folder of wheels of the same versions. CPU seconds of this process and of those that
it starts: the machine's other work does not count. The sides agree where both import the module and the same verifiers.
"""

import asyncio
import hashlib
import resource
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from tests.bench.rows import Bound, Disagreement, Row
from tests.factories.wheels import make_wheel
from tests.fixtures.own_stack import RUNNER_FOLDER
from trainer.contracts.rollouts import ReleaseSpec
from trainer.sandboxing.base_venv import BaseVenv, ensure_base, frozen_packages
from trainer.sandboxing.releases import ensure_release

MODULE = "benchmark_tasks"
RELEASE = "benchmark-install"
FILES = {f"{MODULE}/__init__.py": "ANSWER = 42\n"}
QUESTION = f"import importlib.metadata as m, verifiers, {MODULE}; print({MODULE}.ANSWER, m.version('verifiers'))"


def p18(pairs: int) -> list[float]:
    base = ensure_base(Path(RUNNER_FOLDER))
    with tempfile.TemporaryDirectory() as folder:
        wheels, place = Path(folder) / "wheels", Path(folder) / "venv"
        wheel = make_wheel(Path(folder), MODULE, FILES, ["verifiers"])
        gather_wheels(base, wheels)
        shutil.copy(wheel, wheels)
        ratios = [_ratio(base, wheel, wheels, place) for _ in range(pairs + 1)]
    # The first warms the disk's cache for both.
    return ratios[1:]


def gather_wheels(base: BaseVenv, folder: Path) -> None:
    """What the base holds, in its versions, as wheels for the interpreter that pip is measured with. Not measured itself."""
    wanted = [name for name in frozen_packages(base) if not name.startswith(("pip==", "setuptools=="))]
    command = [sys.executable, "-m", "pip", "download", "-qq", "--no-deps", "--only-binary", ":all:", "-d", str(folder), *wanted]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)


def _ratio(base: BaseVenv, wheel: Path, wheels: Path, place: Path) -> float:
    ours = base.path.parent / "releases" / RELEASE
    shutil.rmtree(ours, ignore_errors=True)
    shutil.rmtree(place, ignore_errors=True)
    try:
        ours_s, theirs_s = cpu_with_children_s(lambda: by_us(wheel)), cpu_with_children_s(lambda: by_pip(wheels, place))
        said = [_ask(python / "bin" / "python") for python in (ours, place)]
        if said[0] != said[1]:
            raise Disagreement(f"ours has {said[0]}, pip's {said[1]}")
    finally:
        shutil.rmtree(ours, ignore_errors=True)
    return ours_s / theirs_s


def by_us(wheel: Path) -> None:
    content = wheel.read_bytes()

    async def fetch(_: str) -> bytes:
        return content

    spec = ReleaseSpec(
        release_id=RELEASE,
        environment=f"bench/{MODULE}",
        version="1.0",
        module=MODULE,
        wheel_url=str(wheel),
        wheel_filename=wheel.name,
        wheel_sha256=hashlib.sha256(content).hexdigest(),
        requirements_lock="",
    )
    asyncio.run(ensure_release(Path(RUNNER_FOLDER), spec, fetch))


def by_pip(wheels: Path, place: Path) -> None:
    subprocess.run([sys.executable, "-m", "venv", str(place)], check=True)
    options = ["-q", "--disable-pip-version-check", "--no-index", "--find-links", str(wheels)]
    subprocess.run([place / "bin" / "python", "-m", "pip", "install", *options, MODULE], check=True)


def cpu_with_children_s(work: Callable[[], None]) -> float:
    """CPU time of this process and of those that `work` has started and waited for."""
    before_s = _spent_s()
    work()
    return _spent_s() - before_s


def _spent_s() -> float:
    spent = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in spent)


def _ask(python: Path) -> str:
    return subprocess.run([python, "-I", "-c", QUESTION], check=True, capture_output=True, text=True).stdout.strip()


def rows() -> list[Row]:
    what = "environment install: a new release on the shared base ÷ new venv + pip, all wheels at hand"
    return [Row("P18", what, "pip", Bound("lower", 0.1, 0.03), p18)]
