"""How a person names an environment: `owner/name@version`, or less where the rest is plain.

Knows that a name without an owner is the acting team's own, as it is in a run's configuration. Refuses to know whether it exists.
"""

from primecli.output import CliError, ExitCode
from primecli.session import Session
from trainer.contracts.toml_config import split_version

ENVIRONMENT_HELP = "[owner/]name[@version]; without an owner, your own."


def full_name(cli: Session, given: str) -> tuple[str, str | None]:
    """`name@1.0.0` → (`owner/name`, `1.0.0`)."""
    name, version = split_version(given)
    return (name if "/" in name else f"{_acting_owner(cli)}/{name}"), version


def _acting_owner(cli: Session) -> str:
    if not cli.config.team_id:
        return str(cli.client.get("/user/whoami")["data"]["slug"])
    teams = cli.client.get("/user/teams", offset=0, limit=100)["data"]
    found = next((team["slug"] for team in teams if team["teamId"] == cli.config.team_id), None)
    if found is None:
        raise CliError("you do not belong to the team that you act for", ExitCode.NOT_FOUND, hint="prime switch personal")
    return str(found)
