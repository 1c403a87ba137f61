"""The `prime` command (also `rootstock`): its root, its nouns, and the one place where a failure becomes an exit code.

Light on purpose: no Django, no torch, one module per noun.
"""

from importlib.metadata import version
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from primecli.commands import (
    adapters,
    auth,
    datasets,
    deployments,
    doctor,
    env,
    evals,
    inference,
    init,
    install,
    keys,
    models,
    push,
    secrets,
    teams,
    train,
    variables,
    wallet,
    webhooks,
)
from primecli.output import CliError, ExitCode, OutputFormat, Terminal


class RootGroup(TyperGroup):
    """Turns every told failure into its text and exit code, whichever command raised it."""

    def invoke(self, ctx: typer.Context) -> Any:
        try:
            return super().invoke(ctx)
        except CliError as error:
            Terminal(ctx.meta.get("output", OutputFormat.TABLE)).error(error)
            raise typer.Exit(error.exit_code) from error
        except KeyboardInterrupt as error:
            raise typer.Exit(130) from error


app = typer.Typer(
    cls=RootGroup,
    name="prime",
    help="Train, evaluate and serve adapters on Rootstock.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


def _print_version(value: bool) -> None:
    if value:
        typer.echo(version("rootstock-lab"))
        raise typer.Exit(ExitCode.OK)


@app.callback()
def root(
    ctx: typer.Context,
    profile: Annotated[str | None, typer.Option("--context", "-c", help="Profile in ~/.prime/environments.")] = None,
    plain: Annotated[bool, typer.Option("--plain", help="Accepted for compatibility; output to a pipe is always plain.")] = False,
    version: Annotated[
        bool, typer.Option("--version", help="Print the version.", callback=_print_version, is_eager=True)
    ] = False,
) -> None:
    """Train, evaluate and serve adapters on Rootstock."""
    ctx.meta["profile"] = profile


app.command("sign-up")(auth.sign_up)
app.command("login")(auth.login)
app.command("logout")(auth.logout)
app.command("whoami")(auth.whoami)
app.command("switch")(teams.switch)
app.command("doctor")(doctor.doctor)
app.command("init")(init.init)
app.command("push")(push.push)
app.command("pull")(push.pull)
app.command("install")(install.install)
app.command("list")(env.list_environments)
app.command("info")(env.info)
app.command("versions")(env.versions)
app.command("yank")(env.yank)
app.command("deploy")(deployments.create)
app.command("chat")(inference.chat)
app.add_typer(env.app, name="env")
app.add_typer(datasets.app, name="datasets")
app.add_typer(train.app, name="train")
app.add_typer(evals.app, name="eval")
app.add_typer(models.app, name="models")
app.add_typer(adapters.app, name="adapters")
app.add_typer(deployments.app, name="deployments")
app.add_typer(inference.app, name="inference")
app.add_typer(wallet.app, name="wallet")
app.add_typer(secrets.app, name="secret")
app.add_typer(variables.app, name="var")
app.add_typer(keys.app, name="keys")
app.add_typer(teams.app, name="teams")
app.add_typer(webhooks.app, name="webhook")


def main() -> None:
    app()


if __name__ == "__main__":
    main()
