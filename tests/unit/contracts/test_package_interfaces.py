"""Which version of the library plays a package: read off its text and its requirements, never by running it."""

import zipfile
from pathlib import Path

import pytest

from trainer.contracts.package_interfaces import SOURCE_BYTES_MAX, InterfaceRefused, interface_of, member_reader

OLDER = "import verifiers as vf\n\n\ndef load_environment(level: int = 1) -> vf.Environment: ...\n"
NEWER = "import verifiers.v1 as vf\n\n__all__ = ['Rules']\n\n\nclass Rules(vf.Taskset[Task, Config]): ...\n"


def found(files: dict[str, str], *requires: str) -> str:
    return interface_of("rules", lambda name: files.get(name, ""), requires)


@pytest.mark.parametrize(
    "files",
    [
        {"rules.py": OLDER},
        {"rules/__init__.py": OLDER},
        {"rules/__init__.py": OLDER.replace("def load", "async def load")},
        {"rules/__init__.py": "from .env import load_environment\n"},
        {"rules/__init__.py": "from rules.env import (\n    helper,\n    load_environment,\n)\n"},
        {"rules/__init__.py": "from .env import *\n", "rules/env.py": OLDER},
        {"rules/__init__.py": "from rules.deep.env import *\n", "rules/deep/env.py": OLDER},
        {"rules/__init__.py": "from .env import build\nload_environment = build\n"},
        {"rules/__init__.py": "__all__ = ['load_environment']\n" + OLDER},
    ],
)
@pytest.mark.parametrize("requires", [(), ("verifiers",), ("verifiers>=0.1.12.dev5",), ("verifiers[ta]>=0.2,<0.4", "datasets")])
def test_a_package_with_load_environment_is_an_older_one(files, requires):
    assert found(files, *requires) == "load_environment"


@pytest.mark.parametrize(
    "files",
    [
        {"rules/__init__.py": NEWER},
        {"rules.py": "x = 1\n"},
        {},
        {"rules/__init__.py": "from .env import *\n"},
        {"rules/__init__.py": "class Box:\n    def load_environment(self): ...\n"},
        {"rules/__init__.py": "from .env import load_environments\n"},
    ],
)
def test_anything_else_is_one_with_a_taskset(files):
    assert found(files, "verifiers>=0.2") == "taskset"


def test_a_package_with_both_is_played_by_the_newer_version_that_it_allows():
    both = {"rules/__init__.py": NEWER + OLDER}
    assert found(both) == "taskset"
    assert found(both, "verifiers<0.4") == "load_environment"
    exported = {
        "rules/__init__.py": "from .env import *\n__all__ = ['RulesTaskset', 'load_environment']\n",
        "rules/env.py": OLDER,
    }
    assert found(exported) == "taskset"


def test_what_a_package_requires_decides_over_a_function_of_that_name():
    assert found({"rules.py": OLDER}, "verifiers>=0.4,<0.5") == "taskset"


def test_requirements_of_another_platform_or_of_an_extra_decide_nothing():
    assert (
        found({"rules.py": OLDER}, "verifiers>=0.4; extra == 'new'", "verifiers>=0.4; sys_platform == 'plan9'")
        == "load_environment"
    )


@pytest.mark.parametrize(
    ("files", "requires", "words"),
    [
        ({"rules.py": OLDER}, "verifiers==0.1.5", r"verifiers==0\.1\.5.*played with verifiers 0\.3\.1"),
        ({"rules.py": OLDER}, "verifiers>=0.5", r"verifiers>=0\.5.*0\.3\.1"),
        ({"rules.py": NEWER}, "verifiers<0.4", r"defines no load_environment.*0\.4\.0"),
    ],
)
def test_a_package_that_no_version_here_plays_is_refused_in_words(files, requires, words):
    with pytest.raises(InterfaceRefused, match=words):
        found(files, requires)


def test_a_member_is_read_up_to_a_limit_and_an_absent_one_is_empty(tmp_path: Path):
    with zipfile.ZipFile(tmp_path / "w.whl", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("long.py", b"\xff" + b"x" * SOURCE_BYTES_MAX)
    with zipfile.ZipFile(tmp_path / "w.whl") as archive:
        read = member_reader(archive)
        assert len(read("long.py")) == SOURCE_BYTES_MAX
        assert read("absent.py") == ""
