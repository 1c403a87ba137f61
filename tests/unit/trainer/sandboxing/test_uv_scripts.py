"""Single-file scripts: their metadata, their part of a lock, and which calls of uv the sandbox's own front answers."""

from pathlib import Path

import pytest

from tests.factories.wheels import make_wheel
from trainer.sandboxing import uv_front
from trainer.sandboxing.uv_scripts import find_scripts, joined_lock, split_lock
from trainer.sandboxing.wheels import ReleaseRefused

PYTHON = (3, 11, 2)
PIN = f"extra-words==2.5 --hash=sha256:{'0' * 64}"


def script(*lines: str, body: str = "print(1)\n") -> str:
    return "".join(f"{line}\n" for line in ("# /// script", *(f"# {line}" for line in lines), "# ///")) + body


def scripts_of(folder: Path, **files: str):
    return find_scripts([make_wheel(folder, "tasks", {f"tasks/{name}.py": text for name, text in files.items()})], PYTHON)


def test_scripts_are_found_as_files_and_inside_of_modules(tmp_path):
    grader, tool = script('dependencies = ["extra-words>=2"]'), script("dependencies = []")
    found = scripts_of(tmp_path, grade=grader, again=grader + "print(2)\n", inside=f'TOOL = """\n{tool}"""\n', plain="# ///\n")
    assert [(one.file, one.dependencies) for one in found] == [
        ("tasks/grade.py", ("extra-words>=2",)),
        ("tasks/inside.py", ()),
    ]


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("dependencies = [", "tasks/grade.py: "),
        ('requires-python = ">=3.13"', "asks for Python >=3.13; the runner has 3.11.2"),
        ('dependencies = ["no such thing"]', "'no such thing' is invalid"),
        ('dependencies = ["x @ https://example.com/x.whl"]', "named by address"),
        ('tool.uv.sources.x = { path = "../x" }', r"tool\.uv\.sources is not supported"),
        ("dependencies = 3", "tasks/grade.py: "),
    ],
)
def test_a_script_that_cannot_be_prepared_is_refused_by_its_name(tmp_path, line, words):
    with pytest.raises(ReleaseRefused, match=words) as refused:
        scripts_of(tmp_path, grade=script(line))
    assert str(refused.value).startswith("uv script tasks/grade.py: ")


def test_each_script_has_a_part_of_the_lock(tmp_path):
    found = scripts_of(tmp_path, a=script('dependencies = ["extra-words"]'), b=script("dependencies = []"))
    parts = {found[0].digest: PIN, found[1].digest: ""}
    lock = joined_lock(PIN.replace("2.5", "1.0"), found, parts)
    assert lock.splitlines()[1] == f"# uv script {found[0].digest} tasks/a.py"
    assert split_lock(lock) == (PIN.replace("2.5", "1.0"), parts)
    assert split_lock(joined_lock("", found, parts)) == ("", parts)
    assert split_lock("") == ("", {})


def test_a_part_that_is_no_lock_is_refused():
    with pytest.raises(ReleaseRefused, match="--index-url"):
        split_lock(f"{PIN}\n# uv script {'0' * 64} a.py\n--index-url https://example.com\n")


@pytest.mark.parametrize(
    ("arguments", "asked"),
    [
        (["run", "--offline", "--script", "a.py", "--script", "x"], ("run", "a.py", ["--script", "x"])),
        (["-q", "run", "-p", "3.11", "a.py"], ("run", "a.py", [])),
        (["sync", "--script", "a.py", "-q", "--no-config"], ("sync", "a.py", [])),
        (["python", "find", "--script", "a.py", "--no-config"], ("find", "a.py", [])),
        (["run", "--with", "numpy", "a.py"], None),
        (["sync", "--help"], None),
        (["sync", "--script"], None),
        (["run"], None),
        (["pip", "install", "x"], None),
        ([], None),
    ],
)
def test_the_front_answers_for_scripts_alone(arguments, asked):
    assert uv_front.asked_script(arguments) == asked


def test_a_script_finds_the_packages_of_its_block_whatever_it_does(tmp_path):
    text = script('dependencies = ["extra-words"]')
    python = tmp_path / "scripts" / uv_front.digest(uv_front.blocks(text)[0]) / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.touch()
    for name, content in {"a.py": text, "b.py": text + "print(2)\n", "c.py": script(), "d.py": "print(1)\n"}.items():
        (tmp_path / name).write_text(content)
    found = [
        uv_front.prepared_interpreter(str(tmp_path / name), tmp_path / "scripts") for name in ("a.py", "b.py", "c.py", "d.py")
    ]
    assert found == [python, python, None, None]
    assert uv_front.prepared_interpreter(str(tmp_path / "absent.py"), tmp_path / "scripts") is None
