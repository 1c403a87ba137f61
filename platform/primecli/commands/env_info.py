"""`prime env info`: one release, what stands on its environment, and how models do on it."""

from typing import Annotated, Any

import typer

from primecli.commands.env_checks import uses
from primecli.commands.push import HUB
from primecli.environment_names import ENVIRONMENT_HELP, full_name
from primecli.eval_tables import leaderboard_columns
from primecli.output import CliError, ExitCode, OutputFormat, OutputOption, moment
from primecli.session import Session, session_of


def info(
    ctx: typer.Context,
    environment: Annotated[str, typer.Argument(help=ENVIRONMENT_HELP)],
    output: OutputOption = OutputFormat.TABLE,
) -> None:
    """Show one release, what depends on its environment, your adapters trained on it, and the models evaluated on it."""
    cli = session_of(ctx, output)
    name, version = full_name(cli, environment)
    reply = cli.client.get(f"{HUB}/{name}/@{version or 'latest'}")
    related = cli.client.get(f"{HUB}/{name}/related")["data"]
    adapters = _allowed(cli, "/rft/adapters", environment=name)
    ranked = _allowed(cli, f"{HUB}/{name}/leaderboard")
    whole = {**reply, "related": related, "adapters": adapters, "leaderboard": ranked}
    cli.terminal.facts(whole, _facts(reply["data"], related, adapters))
    if ranked is not None and not cli.terminal.is_json:
        empty = f"no model was evaluated on it yet: prime eval run {name} -m MODEL"
        cli.terminal.table(ranked, ranked["data"], leaderboard_columns(), empty=empty)
    cli.show_page(f"/environments/{name}")


def _allowed(cli: Session, path: str, **asked: Any) -> dict[str, Any] | None:
    """None for somebody whose key does not reach that far: an environment may be read with less."""
    try:
        return cli.client.get(path, **asked)
    except CliError as error:
        if error.exit_code is ExitCode.AUTH:
            return None
        raise


def _facts(found: dict[str, Any], related: dict[str, Any], adapters: dict[str, Any] | None) -> list[tuple[str, Any]]:
    metadata = found.get("metadata") or {}
    return [
        ("environment", f"{found['owner']['name']}/{found['name']}"),
        ("version", found["semantic_version"]),
        ("badge", found.get("badge")),
        ("visibility", found["visibility"].lower()),
        ("description", metadata.get("description")),
        ("dependencies", metadata.get("dependencies")),
        ("tags", found.get("tags")),
        ("stars", found.get("stars")),
        ("forked from", found.get("forked_from")),
        ("forks", [row["environment"] for row in related["forks"]]),
        ("require it by", found.get("requirement")),
        ("needed by", [row["environment"] for row in related["dependants"]]),
        ("your adapters", [row["displayName"] for row in (adapters or {}).get("adapters", [])]),
        *uses(found.get("compatibility") or {}),
        ("content hash", found["content_hash"]),
        ("pushed", _pushed(found.get("provenance") or {})),
        ("quarantine", found.get("quarantine_reason") or ("yes" if found.get("quarantined") else None)),
        ("id", found["id"]),
    ]


def _pushed(provenance: dict[str, Any]) -> str | None:
    """`ada, 2 h ago, with prime/0.1.0, from commit 1a2b3c4d5e6f (with changes)`"""
    if not provenance:
        return None
    words = [str(provenance["pushed_by"]), moment(provenance.get("pushed_at"))]
    if provenance.get("client"):
        words.append(f"with {provenance['client']}")
    if provenance.get("commit"):
        changed = " with changes" if provenance.get("commit_is_clean") is False else ""
        words.append(f"from commit {provenance['commit'][:12]}{changed}")
    return ", ".join(words)
