"""`prime env status`, `check`, `logs`: what the check of a release did and found."""

from typing import Annotated, Any

import typer

from primecli.commands.push import HUB, report_badge, wait_for_badge
from primecli.environment_names import ENVIRONMENT_HELP, full_name
from primecli.output import OutputFormat, OutputOption
from primecli.session import session_of
from trainer.contracts.interfaces import LIBRARY_VERSIONS

EnvironmentArgument = Annotated[str, typer.Argument(help=ENVIRONMENT_HELP)]


def status(ctx: typer.Context, environment: EnvironmentArgument, output: OutputOption = OutputFormat.TABLE) -> None:
    """Show whether a release passed its check, where it failed, what it needs, and the rollouts that were tried."""
    cli = session_of(ctx, output)
    name, version = full_name(cli, environment)
    reply = cli.client.get(f"{HUB}/{name}/@{version or 'latest'}/badge")
    found = reply["data"]
    verdict = found.get("verdict") or {}
    facts = [(key, verdict.get(key)) for key in ("summary", "module", "line", "tasks_count", "duration_s")]
    facts += [("tasks checked", [_split(split) for split in verdict.get("splits", [])])]
    facts += [("problem", _problem(problem)) for problem in verdict.get("problems", [])]
    facts += [(f"rollout of task {sample['task']}", _sample(sample)) for sample in verdict.get("samples", [])]
    facts += uses(verdict.get("compatibility") or {})
    cli.terminal.facts(reply, [("version", found["version"]), ("badge", found["badge"]), *facts])


def _split(split: dict[str, Any]) -> str:
    """`eval: 8 of 200`, `train: 8 of 200 (other values of dataset_split are unknown)`"""
    count = "an endless number" if split["tasks_count"] is None else split["tasks_count"]
    unknown = f" (other values of {split['open_setting']} are unknown)" if split.get("open_setting") else ""
    return f"{split['name'] + ': ' if split['name'] else ''}{len(split['checked'])} of {count}{unknown}"


def _problem(problem: dict[str, Any]) -> str:
    split = f" of {problem['split']}" if problem["split"] else ""
    return f"task {problem['task']}{split}: {problem['field']}: {problem['message']}"


def _sample(sample: dict[str, Any]) -> str:
    if sample["state"] != "ok":
        return f"{sample['state']}: {sample['error']}"
    turns = "1 turn" if sample["turns"] == 1 else f"{sample['turns']} turns"
    return f"reward {sample['reward']:.3g}, {turns}"


def uses(seen: dict[str, Any]) -> list[tuple[str, Any]]:
    """What an environment is good for and what it needs, a fact a line."""
    if not seen:
        return []
    needs = seen.get("needs") or {}
    return [
        ("good for", _good_for(seen)),
        ("interface", _interface(seen)),
        ("agents", seen["agents"]),
        ("turns", seen["turns"] or None),
        (
            "needs",
            [what for what in ("container", "network") if needs.get(what)] or ("nothing beyond a sandbox" if needs else None),
        ),
        ("tools over MCP", needs.get("tools")),
        ("skills", needs.get("skills")),
        ("harnesses", [_harness(fit) for fit in needs.get("harnesses", [])]),
        ("group rewards", seen["group_rewards"]),
    ]


def _missing(needs: dict[str, Any]) -> str:
    return " and ".join(what for what in ("container", "network") if needs[what]) or "nothing beyond a sandbox"


def _good_for(seen: dict[str, Any]) -> str | None:
    if not seen["agents"]:
        return None
    return "evaluation and training" if seen["trained_agents"] else "evaluation alone: no agent of it is trained"


def _interface(seen: dict[str, Any]) -> str | None:
    """`load_environment (verifiers 0.3.1)`"""
    found = seen.get("interface")
    return f"{found} (verifiers {LIBRARY_VERSIONS[found]})" if found else None


def _harness(fit: dict[str, Any]) -> str:
    """`rootstock-chat: evaluate, train`, `own: evaluate (no agent of it is trained)`, `codex: needs a container`"""
    can = ", ".join(what for what in ("evaluate", "train") if fit[what])
    reason = f" ({fit['reason']})" if can and fit["reason"] else fit["reason"]
    return f"{fit['harness']}: {can}{reason}"


def check(ctx: typer.Context, environment: EnvironmentArgument, output: OutputOption = OutputFormat.TABLE) -> None:
    """Have the hub check a release once more, and wait for the verdict."""
    cli = session_of(ctx, output)
    name, version = full_name(cli, environment)
    asked = cli.client.post(f"{HUB}/{name}/@{version or 'latest'}/check")["data"]
    badge = wait_for_badge(cli, name, asked["version"])
    cli.terminal.data({"environment": name, "version": asked["version"], **badge})
    report_badge(cli, badge)


def logs(ctx: typer.Context, environment: EnvironmentArgument, output: OutputOption = OutputFormat.TABLE) -> None:
    """Print the log of a release's check."""
    cli = session_of(ctx, output)
    name, version = full_name(cli, environment)
    reply = cli.client.get(f"{HUB}/{name}/@{version or 'latest'}/log")
    cli.terminal.data(reply)
    if not cli.terminal.is_json:
        cli.terminal.out.print(reply["data"]["log"], markup=False)
