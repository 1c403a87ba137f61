"""docs/cli.md is what the command says about itself, and the command's surface does not change unseen."""

from primecli.output import ExitCode
from primecli.reference import render
from tests.fixtures.places import REPOSITORY


def test_the_reference_is_up_to_date():
    written = (REPOSITORY / "docs" / "cli.md").read_text()
    assert written == render(), "run: python -m primecli.reference > docs/cli.md"


def test_every_exit_code_is_documented():
    text = render()
    assert [code for code in ExitCode if f"| {code.value} |" not in text] == []


def test_every_command_says_what_it_does():
    sections = render().partition("## Commands\n")[2].split("### ")[1:]
    assert [section.splitlines()[0] for section in sections if not section.splitlines()[4].strip()] == []
