"""What a push packs: one tree, one hash, one archive; and what a pull refuses to unpack."""

from pathlib import Path

import pytest

from primecli.output import CliError
from primecli.packaging import (
    build_source,
    bump_patch,
    read_project,
    read_push_record,
    refuse_secrets,
    source_hash,
    unpack_source,
    write_push_record,
)
from tests.data.archives.corpus import HERE as CORPUS
from tests.data.archives.corpus import TOKEN

PYPROJECT = (
    '[project]\nname = "digit-sum"\nversion = "0.1.9"\ndependencies = ["verifiers>=0.4.0", "rich"]\nkeywords = ["digits"]\n'
)


def make_tree(root: Path) -> Path:
    (root / "digit_sum" / "data").mkdir(parents=True)
    (root / "pyproject.toml").write_text(PYPROJECT)
    (root / "README.md").write_text("# Digits\n")
    (root / "digit_sum" / "__init__.py").write_text("x = 1\n")
    (root / "digit_sum" / "data" / "tasks.json").write_text("[]\n")
    return root


def test_the_project_is_read(tmp_path):
    project = read_project(make_tree(tmp_path))
    assert (project.name, project.version, project.runtime_hint) == ("digit-sum", "0.1.9", "VERIFIERS_V1")
    assert project.metadata["tags"] == ["digits"] and project.metadata["dependencies"] == ["verifiers>=0.4.0", "rich"]


@pytest.mark.parametrize(
    ("line", "hint"),
    [("verifiers>=0.1.5", "VERIFIERS_V0"), ("verifiers[all]==0.4.0", "VERIFIERS_V1"), ("verifiers", None), ("other>=1.0", None)],
)
def test_the_generation_is_read_off_the_lower_bound(tmp_path, line, hint):
    root = make_tree(tmp_path)
    (root / "pyproject.toml").write_text(PYPROJECT.replace("verifiers>=0.4.0", line))
    assert read_project(root).runtime_hint == hint


@pytest.mark.parametrize(
    ("content", "reason"),
    [(None, "no pyproject"), ("[project", "pyproject.toml"), ("[project]\nname = 'x'\n", "version is missing")],
)
def test_a_folder_that_is_no_project_says_why(tmp_path, content, reason):
    if content is not None:
        (tmp_path / "pyproject.toml").write_text(content)
    with pytest.raises(CliError, match=reason):
        read_project(tmp_path)


def test_a_project_without_code_says_so(tmp_path):
    (tmp_path / "pyproject.toml").write_text(PYPROJECT)
    with pytest.raises(CliError, match="no Python code"):
        read_project(tmp_path)


def test_a_key_in_the_source_stops_the_push_before_it_begins(tmp_path):
    project = read_project(make_tree(tmp_path))
    refuse_secrets(project)
    (tmp_path / "digit_sum" / "judge.py").write_text(f"import os\nKEY = '{TOKEN.decode()}'\n")
    with pytest.raises(CliError) as refused:
        refuse_secrets(project)
    assert refused.value.fields == (("digit_sum/judge.py:2", "a token of GitHub"),)
    assert "not-a-secret" in refused.value.hint


def test_equal_trees_give_equal_archives(tmp_path):
    made = []
    for name in ("one", "two"):
        project = read_project(make_tree(tmp_path / name))
        made.append(build_source(project, source_hash(project)))
    assert made[0].sha256 == made[1].sha256
    assert made[0].filename == f"digit-sum-0.1.9-{source_hash(project)[:8]}.tar.gz"


def test_what_is_pulled_is_what_was_pushed(tmp_path):
    project = read_project(make_tree(tmp_path / "one"))
    artefact = build_source(project, source_hash(project))
    assert unpack_source(artefact.path, tmp_path / "two") == 4
    assert source_hash(read_project(tmp_path / "two")) == source_hash(project)


@pytest.mark.parametrize("name", ["traversal.tar.gz", "absolute.tar.gz", "symlink.tar.gz", "hardlink.tar.gz", "device.tar.gz"])
def test_a_hostile_archive_writes_nothing(tmp_path, name):
    target = tmp_path / "deep" / "target"
    if name == "absolute.tar.gz":
        # The leading slash is dropped by the filter: harmless, and inside the folder.
        unpack_source(CORPUS / "reject" / name, target)
        assert not Path("/etc/evil").exists()
        return
    with pytest.raises(CliError, match="refused"):
        unpack_source(CORPUS / "reject" / name, target)
    assert list(target.iterdir()) == [] and list(target.parent.iterdir()) == [target]


def test_a_folder_in_use_is_not_unpacked_into(tmp_path):
    (tmp_path / "mine.txt").write_text("mine")
    with pytest.raises(CliError, match="not empty"):
        unpack_source(CORPUS / "accept" / "plain.tar.gz", tmp_path)


@pytest.mark.parametrize(("before", "after"), [("0.1.9", "0.1.10"), ("1.0.0rc1", "1.0.0rc2")])
def test_a_version_is_raised_in_place(tmp_path, before, after):
    root = make_tree(tmp_path)
    (root / "pyproject.toml").write_text("# mine\n" + PYPROJECT.replace("0.1.9", before))
    assert bump_patch(root) == after
    assert (root / "pyproject.toml").read_text() == "# mine\n" + PYPROJECT.replace("0.1.9", after)


def test_the_push_record_comes_back(tmp_path):
    assert read_push_record(tmp_path) == {}
    write_push_record(tmp_path, {"owner": "ada"})
    assert read_push_record(tmp_path) == {"owner": "ada"}
