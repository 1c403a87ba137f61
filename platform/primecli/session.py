"""What every command has at hand: settings, client, terminal. Made once per command from the root command's context."""

from dataclasses import dataclass
from typing import Annotated

import typer

from primecli.client import Client
from primecli.config import Config
from primecli.output import OutputFormat, Terminal

YesOption = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]


@dataclass(frozen=True)
class Session:
    config: Config
    client: Client
    terminal: Terminal

    def with_config(self, config: Config) -> "Session":
        return Session(config, self.client.pointed_at(config), self.terminal)

    def page(self, path: str) -> str:
        """Address of a page of the dashboard."""
        return f"{self.config.frontend_url}{path}"

    def show_page(self, path: str) -> None:
        """The link that follows each create."""
        self.terminal.link(self.page(path))

    def confirm(self, question: str, *, yes: bool) -> None:
        """Ask unless told not to; a script that cannot answer is refused by name rather than left hanging."""
        if not yes:
            typer.confirm(question, abort=True, err=True)


def session_of(ctx: typer.Context, output: OutputFormat) -> Session:
    """The session of one command. The root command left the profile in `meta`; its `obj`, when set, is the network."""
    root = ctx.find_root()
    config = Config.load(root.meta.get("profile"))
    return Session(config, Client(config, root.obj), Terminal(output))
