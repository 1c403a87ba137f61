"""`prime install` into a real virtual environment: by uv and by pip, a public release and a private one, and how it says no."""

import os
import shutil
import subprocess
import venv
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.functional.test_prime_cli import origin, person
from trainer.sandboxing.uv import find_uv

__all__ = ["origin", "person"]
pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("broker")]
NAME, MODULE = "only-sums", "only_sums"


def write_project(folder: Path, *dependencies: str, name: str = NAME) -> Path:
    """An environment's package whose installation asks nobody else for anything, unless told to."""
    module = folder / name.replace("-", "_")
    module.mkdir(parents=True)
    (module / "__init__.py").write_text('ANSWER = 7\n__all__ = ["ANSWER"]\n')
    (folder / "README.md").write_text("# sums\n")
    (folder / "pyproject.toml").write_text(
        f'[build-system]\nrequires = ["hatchling"]\nbuild-backend = "hatchling.build"\n\n'
        f'[project]\nname = "{name}"\nversion = "0.1.0"\ndescription = "Sums."\ndependencies = {list(dependencies)!r}\n\n'
        f"[tool.hatch.metadata]\nallow-direct-references = true\n"
    )
    return folder


@pytest.fixture(scope="module")
def bare(tmp_path_factory) -> Path:
    """A virtual environment with pip and nothing else, to be copied."""
    folder = tmp_path_factory.mktemp("bare") / "venv"
    venv.create(folder, with_pip=True, symlinks=True)
    return folder


@pytest.fixture
def target(bare, tmp_path) -> Callable[[str], Path]:
    """`target("mine")` is the interpreter of a new environment."""
    return lambda name: shutil.copytree(bare, tmp_path / name, symlinks=True) / "bin" / "python"


@pytest.fixture
def only(tmp_path, monkeypatch) -> Callable[[str], None]:
    """`only("pip")`: the command takes uv where it finds one, else pip. Neither may ask the network."""

    def choose(installer: str) -> None:
        tools = tmp_path / "tools"
        tools.mkdir()
        if installer == "uv":
            (tools / "uv").symlink_to(find_uv())
        monkeypatch.setenv("PATH", f"{tools}{os.pathsep}/usr/bin{os.pathsep}/bin")
        monkeypatch.setenv("UV_OFFLINE", "1")
        monkeypatch.setenv("PIP_NO_INDEX", "1")

    return choose


def answer_of(interpreter: Path) -> str:
    """Where the installed module is and what it says, with nothing of the test's on its path."""
    code = f"import {MODULE}; print({MODULE}.__file__, {MODULE}.ANSWER)"
    done = subprocess.run([interpreter, "-I", "-c", code], capture_output=True, text=True, check=False)
    return done.stdout + done.stderr


@pytest.mark.parametrize("installer", ["uv", "pip"])
def test_a_private_release_is_its_teams_and_a_public_one_everybodys(person, target, only, installer, tmp_path):
    """The team's is built from the source that its key opens; the public one is the wheel that was pushed."""
    only(installer)
    ada, bob, project = person("ada"), person("bob"), write_project(tmp_path / "sums")
    mine, his = target("mine"), target("his")
    ada("push", str(project), "--no-wait")
    assert NAME in bob("install", f"ada/{NAME}", "--python", str(his), exits=3)
    assert "ModuleNotFoundError" in answer_of(his)
    made = ada.json("install", NAME, "--python", str(mine))
    assert (made["environment"], made["version"], made["python"]) == (f"ada/{NAME}", "0.1.0", str(mine))
    ada("push", str(project), "--no-wait", "--visibility", "PUBLIC")
    bob("install", f"ada/{NAME}@0.1.0", "--python", str(his))
    for interpreter in (mine, his):
        assert answer_of(interpreter).split() == [str(module_of(interpreter)), "7"]


def test_what_it_stands_on_comes_along(person, target, only, tmp_path, monkeypatch):
    """By an installer that takes no package from any index: it follows the addresses that a wheel on the disk requires."""
    only("uv")
    monkeypatch.delenv("UV_OFFLINE")
    monkeypatch.setenv("UV_NO_INDEX", "1")
    monkeypatch.setenv("UV_CACHE_DIR", str(tmp_path / "cache"))
    ada, mine = person("ada"), target("mine")
    ada("push", str(write_project(tmp_path / "sums")), "--no-wait", "--visibility", "PUBLIC")
    line = ada.json("env", "info", NAME)["data"]["requirement"]
    deep = write_project(tmp_path / "deep", line, name="deep-sums")
    ada("push", str(deep), "--no-wait", "--visibility", "PUBLIC")
    ada("install", "deep-sums", "--python", str(mine))
    assert answer_of(mine).split() == [str(module_of(mine)), "7"]


def test_what_cannot_be_installed_is_told_and_nothing_is(person, target, only, tmp_path):
    only("uv")
    ada, interpreter = person("ada"), target("mine")
    ada("push", str(write_project(tmp_path / "sums", "a-package-that-nobody-has>=3")), "--no-wait")
    said = ada("install", NAME, "--python", str(interpreter), exits=1)
    assert "could not be installed" in said and "a-package-that-nobody-has" in said
    assert "ModuleNotFoundError" in answer_of(interpreter)
    nowhere = tmp_path / "nowhere" / "python"
    assert str(nowhere) in ada("install", NAME, "--python", str(nowhere), exits=1)
    assert "no-such-sums" in ada("install", "no-such-sums", exits=3)
    assert "9.9.9" in ada("install", f"{NAME}@9.9.9", exits=3)


def module_of(interpreter: Path) -> Path:
    (found,) = interpreter.parent.parent.glob(f"lib/python3.*/site-packages/{MODULE}/__init__.py")
    return found
