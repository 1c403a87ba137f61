"""What a push tells of the commit it comes from: never a credential, nothing outside a repository."""

import subprocess

import pytest

from primecli.commits import commit_of, web_address


@pytest.mark.parametrize(
    ("remote", "address"),
    [
        ("git@github.com:ada/digits.git", "https://github.com/ada/digits"),
        ("ssh://git@host.example:2222/ada/digits.git", "https://host.example/ada/digits"),
        ("https://ada:token@host.example/ada/digits.git", "https://host.example/ada/digits"),
        ("http://host.example:8080/digits/", "http://host.example:8080/digits"),
        ("/srv/git/digits.git", None),
        ("file:///srv/git/digits.git", None),
        ("", None),
    ],
)
def test_a_remote_becomes_an_address_for_readers(remote, address):
    assert web_address(remote) == address


def test_a_folder_outside_a_repository_has_no_commit(tmp_path, monkeypatch):
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    assert commit_of(tmp_path) == {}


def test_a_commit_is_told_with_whether_the_folder_differs_from_it(tmp_path):
    def git(*arguments: str) -> None:
        identity = ["-c", "user.name=ada", "-c", "user.email=ada@example.com"]
        subprocess.run(["git", "-C", str(tmp_path), *identity, *arguments], check=True, capture_output=True)

    git("init", "-q")
    (tmp_path / "a.py").write_text("x = 1\n")
    git("add", ".")
    git("commit", "-q", "-m", "one")
    told = commit_of(tmp_path)
    assert len(told["commit"]) == 40 and told["commit_is_clean"] is True and "repository" not in told
    (tmp_path / "a.py").write_text("x = 2\n")
    assert commit_of(tmp_path)["commit_is_clean"] is False
