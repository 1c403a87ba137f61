"""Release environments on a real base: built once, layered, and refused before anything of theirs could run."""

import asyncio
import hashlib
import re
import subprocess
from pathlib import Path

import pytest

from tests.factories.wheels import make_wheel
from tests.fixtures.runner import read_file, release_spec, running
from trainer.contracts.rollouts import HubWheel
from trainer.orchestrator.attempt.endings import AttemptOver
from trainer.orchestrator.environments.runner_start import installed
from trainer.sandboxing.base_venv import BaseVenv, frozen_packages, pins_of
from trainer.sandboxing.releases import ReleaseVenv, ensure_release
from trainer.sandboxing.uv import InstallFailed
from trainer.sandboxing.wheels import ReleaseRefused

pytestmark = pytest.mark.timeout(300)

GOOD = {"tasks/__init__.py": "ANSWER = 42\n"}


@pytest.fixture
def runner_home(base_venv: BaseVenv, tmp_path: Path, monkeypatch) -> Path:
    """A runner directory of the test's own, on the shared base. Packages come from one local folder, never from an index."""
    home = tmp_path / "runner"
    home.mkdir()
    (tmp_path / "index").mkdir()
    base = _moved(base_venv, home)
    monkeypatch.setattr("trainer.sandboxing.releases.ensure_base", lambda runner_dir, interface: base)
    monkeypatch.setattr("trainer.sandboxing.releases.find_base", lambda runner_dir, interface: base)
    monkeypatch.setenv("UV_NO_INDEX", "1")
    monkeypatch.setenv("UV_FIND_LINKS", str(tmp_path / "index"))
    return home


def _moved(base: BaseVenv, home: Path) -> BaseVenv:
    """The shared base under the test's own directory, by a link: releases lie beside the base's path."""
    (home / "base").symlink_to(base.path)
    return BaseVenv(home / "base", base.digest, base.python_version, base.base_prefix)


def test_the_base_holds_what_is_pinned_and_nothing_else(base_venv: BaseVenv):
    assert set(frozen_packages(base_venv)) <= set(pins_of(base_venv.interface).read_text().split())


async def build(home: Path, wheel: Path, module: str = "tasks", **changes) -> ReleaseVenv:
    spec = release_spec(wheel, module).model_copy(update={"release_id": "r1", **changes})
    return await ensure_release(home, spec, read_file)


def run_inside(release: ReleaseVenv, code: str) -> str:
    """What `code` prints in the release's environment, outside of any box: it holds test code alone."""
    done = subprocess.run([str(release.python), "-I", "-c", code], capture_output=True, text=True, timeout=120, check=True)
    return done.stdout.strip()


async def test_a_release_sees_its_own_package_and_then_the_base(runner_home, tmp_path):
    release = await build(runner_home, make_wheel(tmp_path, "tasks", GOOD, ["verifiers>=0.4,<0.5"]))
    code = "import importlib.metadata as m, tasks; print(tasks.ANSWER, m.version('verifiers'), m.version('tasks'))"
    assert run_inside(release, code) == "42 0.4.0 1.0"
    assert list((release.site_packages / "tasks" / "__pycache__").glob("*.pyc"))
    assert release.requirements_lock == ""


async def test_it_is_built_once_and_again_when_its_content_changes(runner_home, tmp_path):
    wheel = make_wheel(tmp_path, "tasks", GOOD)
    spec = release_spec(wheel, "tasks").model_copy(update={"release_id": "r1"})
    fetched = []

    async def fetch(url: str) -> bytes:
        fetched.append(url)
        return await read_file(url)

    first = await ensure_release(runner_home, spec, fetch)
    assert await ensure_release(runner_home, spec, fetch) == first
    assert len(fetched) == 1
    changed = make_wheel(tmp_path, "tasks", {"tasks/__init__.py": "ANSWER = 43\n"})
    assert run_inside(await build(runner_home, changed), "import tasks; print(tasks.ANSWER)") == "43"


async def test_builders_at_the_same_time_do_not_meet(runner_home, tmp_path):
    wheel = make_wheel(tmp_path, "tasks", GOOD)
    releases = await asyncio.gather(*[build(runner_home, wheel) for _ in range(3)])
    assert len(set(releases)) == 1
    assert sorted(path.name for path in (runner_home / "releases").iterdir()) == ["r1", "r1.lock"]


@pytest.mark.parametrize(
    ("files", "words"),
    [
        ({"start.pth": "import os; open({trap!r}, 'w')\n"}, r"start\.pth"),
        ({"sitecustomize.py": "open({trap!r}, 'w')\n"}, "sitecustomize"),
        ({"openai/__init__.py": ""}, "openai"),
        ({"trainer/__init__.py": ""}, "trainer"),
        ({"tasks-1.0.data/purelib/late.pth": "import os\n"}, r"late\.pth"),
    ],
)
async def test_a_wheel_that_would_run_or_replace_code_is_refused_and_leaves_nothing(runner_home, tmp_path, files, words):
    trap = tmp_path / "it-ran"
    evil = {name: content.replace("{trap!r}", repr(str(trap))) for name, content in files.items()}
    with pytest.raises(ReleaseRefused, match=words):
        await build(runner_home, make_wheel(tmp_path, "tasks", {**GOOD, **evil}))
    assert not trap.exists()
    assert [path.name for path in (runner_home / "releases").iterdir()] == ["r1.lock"]


async def test_a_wheel_without_the_named_module_is_refused(runner_home, tmp_path):
    with pytest.raises(ReleaseRefused, match="no module other"):
        await build(runner_home, make_wheel(tmp_path, "tasks", GOOD), module="other")


async def test_bytes_of_another_digest_are_not_installed(runner_home, tmp_path):
    with pytest.raises(InstallFailed, match="another digest"):
        await build(runner_home, make_wheel(tmp_path, "tasks", GOOD), wheel_sha256="0" * 64)


async def test_a_syntax_error_is_left_for_the_import_to_report(runner_home, tmp_path):
    release = await build(runner_home, make_wheel(tmp_path, "tasks", {"tasks/__init__.py": "def broken(:\n"}))
    with pytest.raises(subprocess.CalledProcessError):
        run_inside(release, "import tasks")


async def test_extra_dependencies_are_locked_by_hash_and_installed(runner_home, tmp_path):
    make_wheel(tmp_path / "index", "extra_words", {"extra_words.py": "WORDS = 'more'\n"}, version="2.5")
    release = await build(runner_home, make_wheel(tmp_path, "tasks", GOOD, ["extra-words>=2"]))
    assert release.requirements_lock.startswith("extra-words==2.5")
    assert "--hash=sha256:" in release.requirements_lock
    assert run_inside(release, "import extra_words; print(extra_words.WORDS)") == "more"


async def test_a_requirement_that_names_a_pre_release_gets_one(runner_home, tmp_path):
    make_wheel(tmp_path / "index", "extra_words", {"extra_words.py": ""}, version="2.0")
    make_wheel(tmp_path / "index", "extra_words", {"extra_words.py": ""}, version="2.1.dev5")
    release = await build(runner_home, make_wheel(tmp_path, "tasks", GOOD, ["extra-words>=2.1.dev3"]))
    assert release.requirements_lock.startswith("extra-words==2.1.dev5")


async def test_a_pre_release_that_a_dependency_needs_is_named_with_the_setting_that_allows_it(runner_home, tmp_path, monkeypatch):
    """Case 3: where the installer takes none by itself, the check says which setting is needed; with it, it locks what every
    later start installs."""
    monkeypatch.setenv("UV_PRERELEASE", "disallow")
    make_wheel(tmp_path / "index", "extra_words", {"extra_words.py": ""}, version="2.0")
    make_wheel(tmp_path / "index", "extra_words", {"extra_words.py": ""}, version="2.1.dev5")
    make_wheel(tmp_path / "index", "word_count_middle", {"word_count_middle.py": ""}, ["extra-words>2.0"])
    wheel = make_wheel(tmp_path, "tasks", GOOD, ["word-count-middle"])
    with pytest.raises(ReleaseRefused, match=r'prerelease = "allow"` under \[tool\.uv\]'):
        await build(runner_home, wheel)
    checked = await build(runner_home, wheel, allows_prereleases=True)
    assert "extra-words==2.1.dev5" in checked.requirements_lock
    started = await build(runner_home, wheel, allows_prereleases=True, requirements_lock=checked.requirements_lock)
    assert started.path == checked.path and run_inside(started, "import extra_words, word_count_middle") == ""


async def test_a_start_with_the_lock_of_the_check_builds_nothing_anew(runner_home, tmp_path):
    make_wheel(tmp_path / "index", "extra_words", {"extra_words.py": ""})
    wheel = make_wheel(tmp_path, "tasks", GOOD, ["extra-words"])
    checked = await build(runner_home, wheel)
    made = checked.path.stat().st_ino
    started = await build(runner_home, wheel, requirements_lock=checked.requirements_lock)
    assert started.requirements_lock and started.path.stat().st_ino == made


async def test_a_release_in_quarantine_is_neither_fetched_nor_installed(tmp_path):
    spec = release_spec(make_wheel(tmp_path, "tasks", GOOD), "tasks")
    with pytest.raises(AttemptOver, match=r"is in quarantine: it leaks"):
        await installed(spec.model_copy(update={"withheld": "is in quarantine: it leaks"}), tmp_path / "runner")
    assert not (tmp_path / "runner").exists()


async def test_a_lock_is_taken_as_it_stands_and_a_changed_hash_is_refused(runner_home, tmp_path):
    make_wheel(tmp_path / "index", "extra_words", {"extra_words.py": ""})
    wheel = make_wheel(tmp_path, "tasks", GOOD, ["extra-words"])
    with pytest.raises(InstallFailed, match=r"(?i)hash"):
        await build(runner_home, wheel, requirements_lock=f"extra-words==1.0 --hash=sha256:{'0' * 64}")


async def test_a_dependency_is_held_to_the_same_rules(runner_home, tmp_path):
    trap = tmp_path / "it-ran"
    make_wheel(tmp_path / "index", "extra_words", {"extra.pth": f"import os; open({str(trap)!r}, 'w')\n"})
    with pytest.raises(ReleaseRefused, match=r"extra\.pth"):
        await build(runner_home, make_wheel(tmp_path, "tasks", GOOD, ["extra-words"]))
    assert not trap.exists()


def hub_wheel(wheel: Path) -> HubWheel:
    """As the hub resolves a requirement by address."""
    digest = hashlib.sha256(wheel.read_bytes()).hexdigest()
    address = f"https://hub.example/hub/ann/words/packages/{wheel.name}#sha256={digest}"
    return HubWheel(address=address, wheel_url=str(wheel), wheel_filename=wheel.name, wheel_sha256=digest)


async def test_wheels_of_the_hub_come_with_what_they_require_and_are_reused(runner_home, tmp_path):
    make_wheel(tmp_path / "index", "extra_words", {"extra_words.py": "WORDS = 'more'\n"}, version="2.5")
    needed = hub_wheel(make_wheel(tmp_path, "words", {"words/__init__.py": "from extra_words import WORDS\n"}, ["extra-words"]))
    wheel = make_wheel(tmp_path, "tasks", {"tasks/__init__.py": "from words import WORDS\n"}, [f"words @ {needed.address}"])
    release = await build(runner_home, wheel, hub_wheels=[needed])
    assert run_inside(release, "import tasks; print(tasks.WORDS)") == "more"
    lock = release.requirements_lock
    assert lock.startswith("extra-words==2.5") and "hub.example" not in lock
    made = release.path.stat().st_ino
    again = await build(runner_home, wheel, hub_wheels=[needed], requirements_lock=lock)
    assert again.path.stat().st_ino == made


async def test_wheels_of_the_hub_are_held_to_their_digest_to_names_of_their_own_and_to_what_was_resolved(runner_home, tmp_path):
    needed = hub_wheel(make_wheel(tmp_path, "words", {"words.py": "", "tests/__init__.py": ""}))
    requires = [f"words @ {needed.address}"]
    wheel = make_wheel(tmp_path, "tasks", {**GOOD, "tests/__init__.py": ""}, requires)
    with pytest.raises(ReleaseRefused, match="both install tests"):
        await build(runner_home, wheel, hub_wheels=[needed])
    with pytest.raises(InstallFailed, match="another digest"):
        await build(runner_home, wheel, hub_wheels=[needed.model_copy(update={"wheel_sha256": "0" * 64})])
    with pytest.raises(ReleaseRefused, match=r"words @ https://hub\.example/.* by address only a wheel of this hub"):
        await build(runner_home, wheel)
    make_wheel(tmp_path / "index", "words", {"words.py": ""})
    by_both = make_wheel(tmp_path, "tasks", GOOD, [*requires, "words>=0.5"])
    with pytest.raises(ReleaseRefused, match="words is required by name, which means the public index"):
        await build(runner_home, by_both, hub_wheels=[needed])


async def test_a_requirement_that_cannot_be_met_is_refused_by_name(runner_home, tmp_path):
    with pytest.raises(ReleaseRefused, match=r"verifiers>=9"):
        await build(runner_home, make_wheel(tmp_path, "tasks", GOOD, ["verifiers>=9"]))


GRADER = """# /// script
# dependencies = ["extra-words>=2"]
# ///
import sys
import extra_words
print(extra_words.WORDS if sys.argv[1] == "how many" else 0)
"""
GRADED = """
import subprocess
from pathlib import Path
import verifiers.v1 as vf

__all__ = ["GradedTaskset"]
GRADER = Path(__file__).with_name("grade.py")


class GradedTask(vf.Task):
    @vf.reward
    async def by_the_library(self, runtime: vf.Runtime) -> float:
        return float((await runtime.run_uv_script(GRADER.read_text(), ["how many"])).stdout)

    @vf.reward
    async def by_uv(self) -> float:
        command = ["uv", "run", "--offline", "--script", str(GRADER), "how many"]
        return float(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


class GradedTaskset(vf.Taskset[GradedTask]):
    def load(self):
        yield GradedTask(vf.TaskData(prompt="1+1?"), self.config.task)
"""


async def test_a_grader_that_is_a_uv_script_runs_in_a_sandbox_with_its_own_locked_packages(runner_home, tmp_path):
    make_wheel(tmp_path / "index", "extra_words", {"extra_words.py": "WORDS = 7\n"}, version="2.5")
    wheel = make_wheel(tmp_path, "tasks", {"tasks/__init__.py": GRADED, "tasks/grade.py": GRADER})
    release = await build(runner_home, wheel)
    header, pin = release.requirements_lock.splitlines()[:2]
    assert header.startswith("# uv script ") and header.endswith(" tasks/grade.py") and pin.startswith("extra-words==2.5 ")
    # The release itself has not got the script's packages.
    assert not (release.site_packages / "extra_words.py").exists()
    async with running(release) as environment:
        end = await environment.play()
    assert end.traces[0].rewards == {"by_the_library": 7.0, "by_uv": 7.0}, end
    made = release.path.stat().st_ino
    again = await build(runner_home, wheel, requirements_lock=release.requirements_lock)
    assert again.path.stat().st_ino == made


async def test_a_script_whose_packages_cannot_be_had_is_refused_by_its_name_and_theirs(runner_home, tmp_path):
    files = {**GOOD, "tasks/grade.py": GRADER}
    with pytest.raises(ReleaseRefused, match=r"uv script tasks/grade\.py: its dependencies extra-words>=2 cannot be installed"):
        await build(runner_home, make_wheel(tmp_path, "tasks", files))


async def test_a_changed_hash_of_a_scripts_package_is_refused(runner_home, tmp_path):
    make_wheel(tmp_path / "index", "extra_words", {"extra_words.py": "WORDS = 7\n"}, version="2.5")
    wheel = make_wheel(tmp_path, "tasks", {**GOOD, "tasks/grade.py": GRADER})
    lock = (await build(runner_home, wheel)).requirements_lock
    forged = re.sub(r"sha256:[0-9a-f]{64}", f"sha256:{'0' * 64}", lock)
    with pytest.raises(InstallFailed, match=r"(?i)hash"):
        await build(runner_home, wheel, requirements_lock=forged)
