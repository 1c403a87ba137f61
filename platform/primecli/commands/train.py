"""`prime train`: start a run from a TOML file, and everything about runs afterwards.

`prime train CONFIG.toml` starts one; the verbs below it read and steer. The file's translation is the contract's
(`toml_config`); which fields exist and what they may hold is the server's to say.
"""

import os
import tomllib
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from primecli.commands import models
from primecli.commands.init import train_init
from primecli.commands.why import why
from primecli.following import follow_run, log_line, raise_unless_completed
from primecli.output import CliError, OutputFormat, OutputOption, flat, last_words, moment, usd
from primecli.session import Session, YesOption, session_of
from trainer.contracts.toml_config import OverrideError, apply_override, parse_overrides, translate

RUNS = "/rft/runs"


class StartsByDefault(TyperGroup):
    """`prime train run.toml` means `prime train start run.toml`: what is no verb is a file."""

    def parse_args(self, ctx: typer.Context, args: list[str]) -> list[str]:
        if args and not args[0].startswith("-") and args[0] not in self.commands:
            args = ["start", *args]
        return super().parse_args(ctx, args)


app = typer.Typer(cls=StartsByDefault, no_args_is_help=True, help="Start, follow and steer training runs.")
RunArgument = Annotated[str, typer.Argument(metavar="RUN", help="The run's id.")]


@app.command("start", context_settings={"allow_extra_args": True, "ignore_unknown_options": True})
def start(
    ctx: typer.Context,
    config: Annotated[Path, typer.Argument(help="Run configuration (TOML).")],
    yes: YesOption = False,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Stay, print events, and exit with the run's outcome.")] = False,
    env_var: Annotated[
        list[str] | None, typer.Option("--env-var", "-e", help="Secret KEY=VALUE, or KEY from this shell.")
    ] = None,
    env_file: Annotated[list[Path] | None, typer.Option("--env-file", help="File of KEY=VALUE secrets.")] = None,
    force: Annotated[bool, typer.Option("--force", help="Run on a release that failed its check or trains no agent.")] = False,
    output: OutputOption = OutputFormat.TABLE,
) -> None:
    """Start a run. Any field can be set behind the file: --max_steps 20 --env.0.args.low 1"""
    cli = session_of(ctx, output)
    document = _read_toml(config)
    for key, value in _override(document, ctx.args):
        cli.terminal.note(f"set {key} = {value!r}")
    made = translate(document)
    for notice in made.notices:
        cli.terminal.note(f"notice: {notice}", style="yellow")
    files = [config.parent / name for name in made.env_files] + list(env_file or [])
    body = made.body | _secrets(env_var or [], files) | ({"team_id": cli.config.team_id} if cli.config.team_id else {})
    _announce(cli, body)
    cli.confirm("Start this run?", yes=yes)
    run = cli.client.request("POST", RUNS, params={"force": "true" if force else None}, body=body)["run"]
    _started(cli, run, follow=follow)
    if follow:
        ended = follow_run(cli, run["id"])
        if cli.terminal.is_json:
            cli.terminal.line({"run": ended}, "")
        raise_unless_completed(ended)


def _started(cli: Session, run: dict[str, Any], *, follow: bool) -> None:
    """In a followed JSON run, stdout is JSON lines: the run is the first."""
    if run.get("notice"):
        cli.terminal.note(f"notice: {run['notice']}", style="yellow")
    if cli.terminal.is_json and follow:
        cli.terminal.line({"run": run}, "")
    else:
        cli.terminal.facts({"run": run}, [*_facts(run), *flat(run.get("effectiveConfig") or {})])
    cli.terminal.success(f"run {run['id']} is {run['status']}")
    cli.show_page(f"/runs/{run['id']}")


def _read_toml(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise typer.BadParameter(f"no file '{path}'; overrides (--key value) come after the file", param_hint="CONFIG") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise CliError(f"{path}: {error}", code="invalid_toml") from error


def _override(document: dict[str, Any], words: list[str]) -> list[tuple[str, Any]]:
    try:
        return [(key, apply_override(document, key, text)) for key, text in parse_overrides(words)]
    except OverrideError as error:
        raise typer.BadParameter(str(error)) from error


def _secrets(pairs: list[str], files: list[Path]) -> dict[str, Any]:
    """Secrets of the run. A bare KEY is read from this shell, so that no value needs to stand on a command line."""
    found: dict[str, str] = {}
    for path in files:
        for line in path.read_text(encoding="utf-8").splitlines():
            if line.strip() and not line.lstrip().startswith("#"):
                key, _, value = line.partition("=")
                found[key.strip().removeprefix("export ")] = value.strip().strip("\"'")
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not equals and key not in os.environ:
            raise typer.BadParameter(f"{key} is not set in this shell", param_hint="--env-var")
        found[key] = value if equals else os.environ[key]
    return {"secrets": [{"key": key, "value": value} for key, value in found.items()]} if found else {}


def _announce(cli: Session, body: dict[str, Any]) -> None:
    """What the model costs, before the question."""
    model = body.get("model")
    name = model.get("name") if isinstance(model, dict) else None
    for row in models.trainable(cli.client)["models"]:
        if row["name"] == name:
            prices = (row["trainingPricePerMtok"], row["inferenceInputPricePerMtok"], row["inferenceOutputPricePerMtok"])
            training, given, sampled = (usd(price) for price in prices)
            cli.terminal.note(f"{name}: {training} training, {given} input, {sampled} output per million tokens")


def _facts(run: dict[str, Any]) -> list[tuple[str, Any]]:
    failure = run.get("failureAnalysis") or {}
    return [
        ("run", run["id"]),
        ("name", run.get("name")),
        ("forked from", _forked_from(run)),
        ("status", run["status"]),
        ("waits for", run.get("queueReason")),
        ("runs ahead", run.get("runsAhead")),
        ("model", run.get("baseModel")),
        ("environments", [entry.get("id") or entry.get("name") for entry in run.get("environments") or []]),
        ("datasets", [entry["id"] for entry in (run.get("effectiveConfig") or {}).get("datasets") or []]),
        ("steps", run.get("maxSteps")),
        ("batch", run.get("batchSize")),
        ("created", moment(run.get("createdAt"))),
        ("started", moment(run.get("startedAt"))),
        ("completed", moment(run.get("completedAt"))),
        ("error", run.get("errorMessage")),
        ("cause", failure.get("rootCause")),
        ("evidence", failure.get("evidence")),
    ]


@app.command("list")
def list_runs(
    ctx: typer.Context,
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, max=100)] = 20,
    page: Annotated[int, typer.Option("--page", min=1)] = 1,
    mine: Annotated[bool, typer.Option("--mine", help="Only the runs that you started.")] = False,
    output: OutputOption = OutputFormat.TABLE,
) -> None:
    """List the team's runs, newest first."""
    cli = session_of(ctx, output)
    reply = cli.client.get(RUNS, page=page, limit=limit, team_id=cli.config.team_id or None, mine="true" if mine else None)
    columns = [
        ("run", lambda row: row["id"]),
        ("name", lambda row: row.get("name")),
        ("status", lambda row: row["status"]),
        ("model", lambda row: row.get("baseModel")),
        ("steps", lambda row: row.get("maxSteps")),
        ("created", lambda row: moment(row["createdAt"])),
    ]
    cli.terminal.table(reply, reply["runs"], columns, empty="no runs yet; start one with `prime train CONFIG.toml`")


@app.command("get")
def get(ctx: typer.Context, run_id: RunArgument, output: OutputOption = OutputFormat.TABLE) -> None:
    """Show one run."""
    cli = session_of(ctx, output)
    reply = cli.client.get(f"{RUNS}/{run_id}")
    cli.terminal.facts(reply, _facts(reply["run"]))


@app.command("logs")
def logs(
    ctx: typer.Context,
    run_id: RunArgument,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Go on until the run ends or is paused.")] = False,
    tail: Annotated[int, typer.Option("--tail", "-n", min=1, max=10_000, help="Lines from the end.")] = 500,
    search: Annotated[str | None, typer.Option("--search", help="Only lines with this text.")] = None,
    level: Annotated[str | None, typer.Option("--level", help="Only this level.")] = None,
    component: Annotated[
        str | None, typer.Option("--component", help="orchestrator, trainer, engine, sandbox, environment, worker, ...")
    ] = None,
    env: Annotated[str | None, typer.Option("--env", help="Only lines of this environment, by its name.")] = None,
    output: OutputOption = OutputFormat.TABLE,
) -> None:
    """Print a run's log. With -f: every event from the first on, without gap or repeat, until the run ends or is paused."""
    cli = session_of(ctx, output)
    if follow:
        follow_run(cli, run_id)
        return
    asked = {"tail_lines": tail, "search": search, "level": level, "component": component, "env_name": env}
    reply = cli.client.get(f"{RUNS}/{run_id}/logs", **asked)
    cli.terminal.data(reply)
    if not cli.terminal.is_json:
        for line in reply["logs"].splitlines():
            cli.terminal.out.print(log_line(line), markup=False)


@app.command("metrics")
def metrics(
    ctx: typer.Context,
    run_id: RunArgument,
    min_step: Annotated[int | None, typer.Option("--min-step")] = None,
    max_step: Annotated[int | None, typer.Option("--max-step")] = None,
    env: Annotated[
        str | None, typer.Option("--env", help="What this environment pays and measures, part by part, by its name.")
    ] = None,
    output: OutputOption = OutputFormat.TABLE,
) -> None:
    """Print the numbers of each step: the run's, or those of one environment."""
    cli = session_of(ctx, output)
    reply = cli.client.get(f"{RUNS}/{run_id}/metrics", min_step=min_step, max_step=max_step)
    rows = reply["metrics"]
    titles = _environment_titles(rows, env) if env else {name: name for name in _RUN_METRICS}
    known = {name: title for name, title in titles.items() if any(name in row for row in rows)}
    columns = [
        ("step", lambda row: row["step"]),
        *((title, lambda row, name=name: row.get(name)) for name, title in known.items()),
    ]
    cli.terminal.table(reply, rows, columns, empty="no step has been committed yet")


_RUN_METRICS = ("reward", "loss", "grad_norm", "entropy", "mismatch_kl")


def _environment_titles(rows: list[dict[str, Any]], environment: str) -> dict[str, str]:
    """Metrics of one environment and the titles of their columns. An environment that no step has trained on is a usage error."""
    names = sorted({name for row in rows for name in row})
    known = [name.removeprefix("reward/") for name in names if name.startswith("reward/")]
    # An environment of one's own needs no owner in front of its name, here as elsewhere.
    alike = [name for name in known if environment in {name, name.rpartition("/")[2]}]
    if rows and len(alike) != 1:
        raise typer.BadParameter(f"no step has learnt from {environment}; there are {', '.join(known)}", param_hint="--env")
    environment = alike[0] if alike else environment
    prefixes = (f"reward_part/{environment}/", f"metric/{environment}/")
    parts = {name: name.removeprefix(prefix) for prefix in prefixes for name in names if name.startswith(prefix)}
    return {f"reward/{environment}": "reward"} | parts


@app.command("rollouts")
def rollouts(
    ctx: typer.Context,
    run_id: RunArgument,
    step: Annotated[int | None, typer.Option("--step", "-s", help="Which step; default: the newest one with rollouts.")] = None,
    page: Annotated[int, typer.Option("--page", min=1)] = 1,
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, max=100)] = 20,
    output: OutputOption = OutputFormat.TABLE,
) -> None:
    """Show the rollouts of one step."""
    cli = session_of(ctx, output)
    if step is None:
        steps = cli.client.get(f"{RUNS}/{run_id}/progress")["stepsWithSamples"]
        if not steps:
            return cli.terminal.table({"samples": []}, [], [], empty="no rollouts yet")
        step = max(steps)
    reply = cli.client.get(f"{RUNS}/{run_id}/samples", step=step, page=page, limit=limit)
    cli.terminal.table(reply, reply["samples"], _ROLLOUT_COLUMNS, empty=f"no rollouts at step {step}")
    return None


_ROLLOUT_COLUMNS = [
    ("task", lambda row: row.get("problem_id", row.get("task"))),
    ("reward", lambda row: row.get("reward")),
    ("advantage", lambda row: row.get("advantage")),
    ("state", lambda row: row.get("state")),
    ("error", lambda row: row.get("error")),
    ("completion", last_words),
]


@app.command("checkpoints")
def checkpoints(ctx: typer.Context, run_id: RunArgument, output: OutputOption = OutputFormat.TABLE) -> None:
    """List what the run could be continued, or another one started, from."""
    cli = session_of(ctx, output)
    reply = cli.client.get(f"{RUNS}/{run_id}/checkpoints")
    columns = [
        ("checkpoint", lambda row: row["id"]),
        ("step", lambda row: row["step"]),
        ("status", lambda row: row.get("status")),
        ("bytes", lambda row: row.get("sizeBytes")),
        ("created", lambda row: moment(row.get("createdAt"))),
    ]
    cli.terminal.table(reply, reply["checkpoints"], columns, empty="no checkpoint has been committed yet")


@app.command("usage")
def usage(ctx: typer.Context, run_id: RunArgument, output: OutputOption = OutputFormat.TABLE) -> None:
    """Show what a run has cost so far, everything it caused included."""
    cli = session_of(ctx, output)
    reply = cli.client.get(f"/billing/runs/{run_id}/usage")
    training, inference = reply["training"], reply["inference"]
    facts = [
        ("run", reply["run_id"]),
        ("status", reply.get("status")),
        ("training", f"{training['tokens']:,} tokens, {usd(training['cost_usd'])}"),
        ("inference", f"{inference['tokens']:,} tokens, {usd(inference['cost_usd'])}"),
        *_other_meters(reply),
        ("total", usd(reply["total_cost_usd"])),
    ]
    cli.terminal.facts(reply, facts)


def _other_meters(reply: dict[str, Any]) -> list[tuple[str, str]]:
    """What is not counted in tokens: sandboxes, judges."""
    rows = [row for row in reply.get("meters", []) if not row["meter"].endswith("_tokens")]
    return [(row["meter"].replace("_", " "), f"{row['quantity']:,}, {usd(row['amount_microusd'] / 1_000_000)}") for row in rows]


def _steer(ctx: typer.Context, output: OutputFormat, run_id: str, method: str, path: str, done: str) -> None:
    cli = session_of(ctx, output)
    reply = cli.client.request(method, path)
    cli.terminal.data(reply)
    cli.terminal.success(f"{done} {run_id}")
    cli.show_page(f"/runs/{run_id}")


@app.command("stop")
def stop(ctx: typer.Context, run_id: RunArgument, yes: YesOption = False, output: OutputOption = OutputFormat.TABLE) -> None:
    """Stop a run. Its adapter versions stay."""
    session_of(ctx, output).confirm(f"Stop run {run_id}?", yes=yes)
    _steer(ctx, output, run_id, "PUT", f"{RUNS}/{run_id}/stop", "stopping")


@app.command("restart")
def restart(ctx: typer.Context, run_id: RunArgument, output: OutputOption = OutputFormat.TABLE) -> None:
    """Go on from the newest checkpoint of a run that stopped or failed; new work is billed."""
    _steer(ctx, output, run_id, "PUT", f"{RUNS}/{run_id}/restart", "restarting")


def _forked_from(run: dict[str, Any]) -> str | None:
    origin = run.get("forkedFrom")
    return f"{origin['runId']} at step {origin['step']}" if origin else None


@app.command("fork")
def fork(
    ctx: typer.Context,
    checkpoint_id: Annotated[str, typer.Argument(metavar="CHECKPOINT", help="Id (`prime train checkpoints RUN`).")],
    name: Annotated[str | None, typer.Option("--name", help="What you call the fork.")] = None,
    max_steps: Annotated[int | None, typer.Option("--max-steps", help="Steps in all, those before the fork among them.")] = None,
    learning_rate: Annotated[float | None, typer.Option("--learning-rate", help="From the fork on.")] = None,
    output: OutputOption = OutputFormat.TABLE,
) -> None:
    """Start a run that goes on where the checkpoint's run was, optimizer and place in the data included."""
    cli = session_of(ctx, output)
    changes = {"name": name, "max_steps": max_steps, "learning_rate": learning_rate}
    given = {field: value for field, value in changes.items() if value is not None}
    reply = cli.client.post(f"/rft/checkpoints/{checkpoint_id}/fork", given)
    run = reply["run"]
    facts = [("run", run["id"]), ("name", run["name"]), ("forked from", _forked_from(run)), ("status", run["status"])]
    cli.terminal.facts(reply, facts)
    cli.show_page(f"/runs/{run['id']}")


@app.command("pause")
def pause(ctx: typer.Context, run_id: RunArgument, output: OutputOption = OutputFormat.TABLE) -> None:
    """Give the run's place back until it is resumed."""
    _steer(ctx, output, run_id, "PUT", f"{RUNS}/{run_id}/pause", "pausing")


@app.command("resume")
def resume(ctx: typer.Context, run_id: RunArgument, output: OutputOption = OutputFormat.TABLE) -> None:
    """Queue a paused run again."""
    _steer(ctx, output, run_id, "PUT", f"{RUNS}/{run_id}/resume", "resuming")


app.command("init")(train_init)
app.command("why")(why)
app.command("models")(models.train_models)
