"""The guide against the code: links lead somewhere, and every `prime` command that a page shows exists with its options."""

import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer.main

from primecli.app import app
from tests.fixtures.places import REPOSITORY

PAGES = sorted([*REPOSITORY.glob("*.md"), *(REPOSITORY / "docs").rglob("*.md"), *(REPOSITORY / "examples").rglob("README.md")])
LINK = re.compile(r"(?<!!)\[[^\]]*\]\(([^)\s#]+)(?:#[^)]*)?\)")
FENCE = re.compile(r"^```sh\n(.*?)^```$", re.MULTILINE | re.DOTALL)
COMMAND = re.compile(r"(?:^|[(;|&]\s*|\bif\s+)prime\s+(?P<rest>[^|;&)]*)")
COMMANDS = typer.main.get_command(app)


def name_of(page: Path) -> str:
    return str(page.relative_to(REPOSITORY))


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_links_lead_somewhere(page: Path):
    targets = [target for target in LINK.findall(page.read_text()) if not re.match(r"[a-z]+:", target)]
    assert [target for target in targets if not (page.parent / target).exists()] == []


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_the_commands_that_a_page_shows_exist(page: Path):
    assert [problem for line in shown_commands(page.read_text()) if (problem := what_is_wrong(line))] == []


@pytest.mark.parametrize(
    ("line", "wrong"),
    [
        ("train list --limit 5", None),
        ("train run.toml --max_steps 8 -y", None),
        ("trian list", "trian"),
        ("train list --colour", "--colour"),
        ("wallet top-down 5", "top-down"),
    ],
)
def test_a_wrong_command_would_be_noticed(line: str, wrong: str | None):
    assert (what_is_wrong(line) or "").endswith(wrong or "")
    assert bool(what_is_wrong(line)) == bool(wrong)


def shown_commands(text: str) -> Iterator[str]:
    for block in FENCE.findall(text):
        for line in block.replace("\\\n", " ").splitlines():
            yield from (match["rest"].strip() for match in COMMAND.finditer(line.split(" #")[0]))


def what_is_wrong(line: str) -> str | None:
    """The line with the first word of it that the command does not know, or None."""
    words = shlex.split(line.replace("…", "x"))
    command: Any = COMMANDS
    while words and (group := getattr(command, "commands", None)):
        found = group.get(words[0])
        if found is None:
            # `prime train FILE` is `prime train start FILE`; a group without a word is its own command.
            found = group.get("start") if words[0].endswith(".toml") else None
            if found is None:
                return None if command.invoke_without_command and words[0].startswith("-") else f"{line}: {words[0]}"
            words.insert(0, "start")
        command, words = found, words[1:]
    known = {option for parameter in command.params for option in (*parameter.opts, *parameter.secondary_opts)} | {"--help"}
    free = command.context_settings.get("ignore_unknown_options", False)
    unknown = [word for word in words if re.match(r"--?[a-z]", word) and word.partition("=")[0] not in known]
    return None if free or not unknown else f"{line}: {unknown[0]}"
