"""One tree has one hash (case 6): whatever order, time or copy it comes in, with whatever lies beside it that is not packed."""

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from trainer.contracts.packages import content_hash, folder_hash, source_files, tree_hash

FILES = {
    "pyproject.toml": b'[project]\nname = "digit-sum"\nversion = "0.1.9"\n',
    "README.md": b"# Digits\n",
    "helper.py": b"y = 2\n",
    "digit_sum/__init__.py": b"x = 1\n",
    "digit_sum/data/tasks.json": b"[]\n",
    "Zeta/notes.txt": b"z\n",
}
IGNORED = ("dist/x.whl", "__pycache__/x.pyc", ".git/config", "digit_sum/__pycache__/y.pyc", "notes.txt", ".env", "outputs/a/b.py")
PUSHED_AS = "5890409e5c15bb5c170e4b8ff14f4c407aa0b57381757d28f1d234e157ce5923"
COMPARED_AS = "f4516bf9a0c65b4c08bed9c43e0f0b98f41cbac33060bf3eee134e21022524b3"
"""What the public client computes of `FILES` (0.18.0 and 0.12.0 alike): as `env push` declares it, and as it is compared."""

RULES = """# what nobody wants
*.log
!keep.log
/scratch.py
cache/
digit_sum/**/old
Zeta/*.md
**/deep/x?.bin
\\#odd.txt
"""
LEFT_OUT = (
    "scratch.py", "digit_sum/x.log", "digit_sum/cache/f.txt", "digit_sum/a/old/f", "Zeta/a.md", "digit_sum/deep/x1.bin",
    "digit_sum/#odd.txt", "digit_sum/.hidden/x", "digit_sum/build/x",
)  # fmt: skip
KEPT = (
    "digit_sum/keep.log", "digit_sum/scratch.py", "Zeta/sub/b.md", "digit_sum/deep/x12.bin", "digit_sum/dist",
    "digit_sum/y.egg-info",
)  # fmt: skip
PUSHED_WITH_RULES_AS = "9673d9862215aea91a82acb313f66c678fcfe77ff43cde0a66c5a5feddcecb06"


def write(root: Path, files: dict[str, bytes]) -> Path:
    for time, (name, content) in enumerate(files.items()):
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        os.utime(path, (time, time))
    return root


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(order=st.permutations(list(FILES)), beside=st.sets(st.sampled_from(IGNORED)), cuts=st.integers(1, 7))
def test_neither_order_nor_time_nor_what_is_not_packed_changes_the_hash(tmp_path_factory, order, beside, cuts):
    root = tmp_path_factory.mktemp("tree")
    write(root, {name: FILES[name] for name in order} | dict.fromkeys(sorted(beside), b"ignored"))
    (root / "digit_sum" / "link.py").symlink_to("/etc/passwd")
    assert tree_hash(root) == PUSHED_AS
    chunked = {name: [FILES[name][at : at + cuts] for at in range(0, len(FILES[name]), cuts)] for name in order}
    assert (content_hash(chunked), folder_hash(chunked)) == (PUSHED_AS, COMPARED_AS)


def test_the_roots_ignore_rules_hold_as_the_public_client_reads_them(tmp_path):
    ones = dict.fromkeys([*LEFT_OUT, *KEPT], b"1\n")
    root = write(tmp_path, FILES | {".gitignore": RULES.encode()} | ones)
    assert {path.relative_to(root).as_posix() for path in source_files(root)} == {*FILES, *KEPT}
    assert tree_hash(root) == PUSHED_WITH_RULES_AS


@pytest.mark.parametrize("name", FILES)
def test_any_byte_and_any_name_changes_both_hashes(name):
    plain = {path: [content] for path, content in FILES.items()}
    changed = [plain | {name: [FILES[name], b" "]}, {path: chunks for path, chunks in plain.items() if path != name}]
    for other in changed:
        assert content_hash(other) != PUSHED_AS and folder_hash(other) != COMPARED_AS
