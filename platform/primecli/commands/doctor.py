"""`prime doctor`: looks at everything between this terminal and a run, and says the way out of what is wrong.

Each check stands alone: one that fails does not hide the next, unless the next one cannot be made without it.
"""

import shutil
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from importlib.metadata import version
from typing import Annotated, Any

import typer

from primecli.output import CliError, ExitCode, OutputFormat, OutputOption, usd
from primecli.session import Session, session_of

CLOCK_OFF_MAX_S = 60.0
MARKS = {True: "✓", False: "✗", None: "–"}


@dataclass(frozen=True)
class Finding:
    """`ok` is None where there was nothing to look at. `way_out` is empty where nothing is wrong."""

    check: str
    ok: bool | None
    found: str
    way_out: str = ""


def doctor(
    ctx: typer.Context,
    output: OutputOption = OutputFormat.TABLE,
    strict: Annotated[bool, typer.Option("--strict", help="Exit with 1 when anything is wrong.")] = False,
) -> None:
    """Check address, clock, key, versions, sandbox, wallet and tools, and say the way out of what is wrong."""
    cli = session_of(ctx, output)
    findings = list(_examine(cli))
    columns = [
        ("", lambda row: MARKS[row["ok"]]),
        ("check", lambda row: row["check"]),
        ("found", lambda row: row["found"]),
        ("way out", lambda row: row["way_out"]),
    ]
    rows = [asdict(one) for one in findings]
    cli.terminal.table({"checks": rows, "ok": all(one.ok is not False for one in findings)}, rows, columns, empty="")
    wrong = [one.check for one in findings if one.ok is False]
    if wrong and strict:
        raise CliError(f"not in order: {', '.join(wrong)}", ExitCode.ERROR, code="not_in_order")


def _examine(cli: Session) -> Iterator[Finding]:
    address, at = _address(cli)
    yield address
    if address.ok:
        yield _clock(at)
        key = _told("key", lambda: _key(cli), "prime login")
        yield key
        if key.ok:
            yield from _installation(cli)
            yield _told("wallet", lambda: _wallet(cli), "prime wallet top-up AMOUNT_USD")
    yield _tools()


def _told(check: str, look: Callable[[], Finding], way_out: str) -> Finding:
    """A check that asks the server: its refusal is the finding."""
    try:
        return look()
    except CliError as error:
        return Finding(check, False, error.message, error.hint or way_out)


def _address(cli: Session) -> tuple[Finding, str]:
    where = cli.config.base_url
    try:
        parts, at = cli.client.health()
    except CliError as error:
        return Finding("address", False, error.message, error.hint), ""
    away = ", ".join(name for name, answers in parts.items() if not answers)
    if away:
        return Finding("address", False, f"{where} answers, but not its {away}", "the operator looks at `make status`"), at
    return Finding("address", True, where), at


def _clock(at: str) -> Finding:
    """This machine's clock by the `Date` of the answer: signed addresses and keys end by the server's."""
    if not at:
        return Finding("clock", None, "the server does not tell its time")
    off_s = (datetime.now(UTC) - parsedate_to_datetime(at)).total_seconds()
    if abs(off_s) <= CLOCK_OFF_MAX_S:
        return Finding("clock", True, f"within {CLOCK_OFF_MAX_S:.0f} s of the server's")
    return Finding("clock", False, f"{off_s:+.0f} s from the server's", "set this machine's clock, for example by NTP")


def _key(cli: Session) -> Finding:
    who = cli.client.get("/user/whoami")["data"]
    team = cli.config.value("team_name") or cli.config.team_id or "personal"
    return Finding("key", True, f"{who.get('email')}, acting for team {team}")


def _installation(cli: Session) -> Iterator[Finding]:
    try:
        told = cli.client.get("/installation")
    except CliError as error:
        yield Finding("versions", False, error.message, "update the server, or this command, so that both are of one version")
        return
    yield _versions(told["version"])
    yield _pools(told["pools"])
    yield _sandbox(told["sandbox"])


def _versions(server: str) -> Finding:
    own = version("rootstock-lab")
    if own == server:
        return Finding("versions", True, f"command and server {own}")
    return Finding("versions", False, f"command {own}, server {server}", f"pip install rootstock-lab=={server}")


def _pools(pools: list[dict[str, Any]]) -> Finding:
    shown = ", ".join(f"{pool['base_model']} {pool['runs']}/{pool['run_slots']} runs" for pool in pools)
    return Finding("pools", bool(pools), shown or "none", "" if pools else "the operator registers one: manage.py register_pool")


def _sandbox(told: dict[str, Any]) -> Finding:
    if told["last_at"] is None:
        return Finding("sandbox", None, "no release was checked yet", "prime push ENVIRONMENT tries it")
    if told["lost"] > told["ended"]:
        return Finding(
            "sandbox", False, f"{told['lost']} of the newest checks were lost", "the operator looks at the worker's log"
        )
    return Finding("sandbox", True, f"{told['ended']} of the newest {told['ended'] + told['lost']} checks ended by themselves")


def _wallet(cli: Session) -> Finding:
    balance = float(cli.client.get("/billing/wallet", limit=1, teamId=cli.config.team_id or None)["balance_usd"])
    return Finding("wallet", balance > 0, usd(balance), "" if balance > 0 else "prime wallet top-up AMOUNT_USD")


def _tools() -> Finding:
    """What pushes and installs use on this machine."""
    if uv := shutil.which("uv"):
        return Finding("tools", True, f"uv at {uv}")
    return Finding("tools", True, "pip; uv installs environments faster")
