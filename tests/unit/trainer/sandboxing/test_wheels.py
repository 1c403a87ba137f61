"""What a release may not bring along, refused by name."""

import zipfile

import pytest

from trainer.sandboxing import wheels
from trainer.sandboxing.wheels import ReleaseRefused

BASE = frozenset({"verifiers", "openai", "_cffi_backend", "google.protobuf"})
HASH = "--hash=sha256:" + "a" * 64


def make_wheel(path, metadata="", members=()):
    wheel = path / "tasks-1.0-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr("tasks-1.0.dist-info/METADATA", f"Metadata-Version: 2.4\nName: tasks\nVersion: 1.0\n{metadata}\n\nText")
        for name, content in members:
            archive.writestr(name, content)
    return wheel


def test_an_ordinary_package_passes():
    wheels.check_names(["tasks", "tasks_data.py", "tasks-1.0.dist-info", "__pycache__", "fast.cpython-311-x86_64.so"], BASE)


@pytest.mark.parametrize(
    ("entry", "word"),
    [
        ("start.pth", ".pth"),
        ("zz_rootstock_base.pth", ".pth"),
        ("sitecustomize.py", "sitecustomize"),
        ("sitecustomize", "sitecustomize"),
        ("usercustomize.cpython-311-x86_64.so", "usercustomize"),
        ("verifiers", "verifiers"),
        ("openai.py", "openai"),
        ("_cffi_backend.abi3.so", "_cffi_backend"),
        ("trainer", "trainer"),
        ("rootstock_chat", "rootstock_chat"),
        ("google", "google"),
        ("google/protobuf", "google.protobuf"),
        ("verifiers/more.py", "verifiers.more"),
        ("trainer/runner", "trainer.runner"),
    ],
)
def test_a_name_that_would_run_or_replace_our_code_is_refused(entry, word):
    with pytest.raises(ReleaseRefused, match=word.replace(".", r"\.")):
        wheels.check_names(["tasks", entry], BASE)


def test_a_folder_that_several_distributions_share_may_be_added_to(tmp_path):
    for file in ("google/genai/__init__.py", "google/types.py", "tasks/__init__.py", "tasks-1.0.dist-info/METADATA"):
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / file).touch()
    entries = wheels.entries_of(tmp_path)
    assert entries == {"google/genai", "google/types.py", "tasks", "tasks-1.0.dist-info"}
    wheels.check_names(entries, BASE)


def test_a_lock_of_pinned_hashed_wheels_passes():
    wheels.check_lock(
        f"# made by uv\nrapidfuzz==3.14.1 \\\n    {HASH} \\\n    {HASH}\ntzdata==2026.1 ; sys_platform == 'linux' {HASH}\n"
    )


@pytest.mark.parametrize(
    "line",
    [
        "rapidfuzz==3.14.1",
        f"rapidfuzz>=3 {HASH}",
        f"rapidfuzz @ file:///tmp/x.whl {HASH}",
        "--index-url https://elsewhere.example/simple",
        f"rapidfuzz==3.14.1 {HASH} --index-url https://elsewhere.example",
        "-r /etc/passwd",
        "-e .",
        "./local.whl",
    ],
)
def test_anything_else_in_a_lock_is_refused(line):
    with pytest.raises(ReleaseRefused, match="requirements lock"):
        wheels.check_lock(f"{line}\n")


def test_a_bomb_is_refused_before_it_is_unpacked(tmp_path, monkeypatch):
    monkeypatch.setattr(wheels, "UNPACKED_BYTES_MAX", 1000)
    with pytest.raises(ReleaseRefused, match="unpacks to"):
        wheels.check_archive(make_wheel(tmp_path, members=[("tasks/zeros.bin", b"0" * 2000)]))


def test_too_many_members_are_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(wheels, "MEMBERS_MAX", 3)
    with pytest.raises(ReleaseRefused, match="members"):
        wheels.check_archive(make_wheel(tmp_path, members=[(f"tasks/{n}.py", "") for n in range(5)]))


def test_a_file_that_is_no_archive_is_refused(tmp_path):
    (tmp_path / "x.whl").write_bytes(b"not a zip")
    with pytest.raises(ReleaseRefused, match="not a wheel"):
        wheels.check_archive(tmp_path / "x.whl")


def test_requirements_that_the_base_meets_need_nothing(tmp_path):
    metadata = (
        "Requires-Dist: verifiers>=0.4,<0.5\nRequires-Dist: pytest; extra == 'test'\nRequires-Dist: x; sys_platform == 'win32'"
    )
    assert wheels.unmet_requirements(make_wheel(tmp_path, metadata), ["verifiers==0.4.0"]) == []


def test_missing_and_conflicting_requirements_are_listed(tmp_path):
    metadata = "Requires-Dist: Rapid_Fuzz[fast]>=3\nRequires-Dist: numpy<2"
    assert wheels.unmet_requirements(make_wheel(tmp_path, metadata), ["numpy==2.4.6"]) == ["Rapid_Fuzz[fast]>=3", "numpy<2"]


def test_an_extra_of_a_package_of_the_base_is_not_met_by_the_package(tmp_path):
    wheel = make_wheel(tmp_path, "Requires-Dist: verifiers[ta]")
    assert wheels.unmet_requirements(wheel, ["verifiers==0.4.0"]) == ["verifiers[ta]"]


def test_an_address_that_the_hub_resolved_is_met_and_no_other(tmp_path):
    address = "https://hub.example/hub/ann/sums/packages/sums-1.0-py3-none-any.whl#sha256=" + "a" * 64
    wheel = make_wheel(tmp_path, f"Requires-Dist: sums @ {address}")
    assert wheels.unmet_requirements(wheel, [], {address}) == []
    with pytest.raises(ReleaseRefused, match=r"sums @ .*by address only a wheel of this hub.*prime env info"):
        wheels.unmet_requirements(wheel, [], {address.replace("aaa", "bbb")})


@pytest.mark.parametrize(("requirement", "words"), [("x @ https://e.example/x.whl", "by address"), ("!!", "invalid requirement")])
def test_a_requirement_that_names_no_index_package_is_refused(tmp_path, requirement, words):
    with pytest.raises(ReleaseRefused, match=words):
        wheels.unmet_requirements(make_wheel(tmp_path, f"Requires-Dist: {requirement}"), [])
