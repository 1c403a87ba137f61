"""`prime eval run`: start evaluations of one model or several, and wait for them."""

import json
import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.progress import Progress, TaskID

from primecli.commands.eval_local import LocalPlaces, LocalRequest, run_locally
from primecli.environment_names import ENVIRONMENT_HELP
from primecli.eval_tables import evaluation_facts, quality_columns
from primecli.output import CliError, ExitCode, OutputFormat, OutputOption
from primecli.session import Session, session_of
from trainer.contracts.rollouts import RolloutSampling

POLL_S = 1.0
LOCAL_CONCURRENT = 16
FINAL_STATUSES = frozenset({"COMPLETED", "FAILED", "TIMEOUT", "CANCELLED"})
MODEL_HELP = "A base model, base:adapter_id, name@step, or several with commas between."


def run(
    ctx: typer.Context,
    environment: Annotated[str, typer.Argument(help=ENVIRONMENT_HELP)],
    model: Annotated[str, typer.Option("--model", "-m", help=MODEL_HELP)],
    num_examples: Annotated[int, typer.Option("--num-examples", "-n", min=-1, help="-1 takes all.")] = 32,
    rollouts: Annotated[int, typer.Option("--rollouts-per-example", "-r", min=1)] = 1,
    max_tokens: Annotated[int | None, typer.Option("--max-tokens", min=1)] = None,
    temperature: Annotated[float | None, typer.Option("--temperature", min=0.0)] = None,
    env_args: Annotated[str | None, typer.Option("--env-args", help="Arguments of the environment, as a JSON object.")] = None,
    seat: Annotated[
        list[str] | None, typer.Option("--seat", help="AGENT=MODEL: another model plays this agent. May be repeated.")
    ] = None,
    api_base_url: Annotated[
        str | None, typer.Option("--api-base-url", help="Evaluate a model behind this OpenAI-compatible address.")
    ] = None,
    api_key_var: Annotated[
        str | None, typer.Option("--api-key-var", help="The team's secret, or variable of your shell, with the key for it.")
    ] = None,
    price_input: Annotated[float | None, typer.Option("--price-input", min=0.0, help="USD per million tokens of it.")] = None,
    price_output: Annotated[float | None, typer.Option("--price-output", min=0.0, help="USD per million tokens of it.")] = None,
    group: Annotated[str | None, typer.Option("--group", help="Add to this group of evaluations.")] = None,
    name: Annotated[str | None, typer.Option("--name")] = None,
    public: Annotated[bool, typer.Option("--public", help="Show it to everybody who may see the environment.")] = False,
    force: Annotated[bool, typer.Option("--force", help="Evaluate a release that failed its check.")] = False,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Wait, and exit with the outcome.")] = False,
    local: Annotated[bool, typer.Option("--local", help="Play it on this machine; ENVIRONMENT may be a folder.")] = False,
    out: Annotated[Path | None, typer.Option("--out", help="With --local: the folder of its samples.")] = None,
    upload: Annotated[bool, typer.Option("--upload", help="With --local: push the samples at the end.")] = False,
    max_concurrent: Annotated[int | None, typer.Option("--max-concurrent", min=1, max=1024, help="Rollouts at once.")] = None,
    hosted: Annotated[bool, typer.Option("--hosted", help="Accepted for compatibility; it is the default.")] = True,
    output: OutputOption = OutputFormat.TABLE,
) -> None:
    """Start evaluations, one for each model: hosted, or with --local on this machine."""
    cli = session_of(ctx, output)
    sampling, args = _given(max_tokens=max_tokens, temperature=temperature), _object(env_args) if env_args else {}
    prices = _prices(price_input, price_output)
    if local:
        asked = LocalRequest(environment, num_examples, rollouts, RolloutSampling(**sampling), args, api_base_url, api_key_var)
        places = LocalPlaces(
            out, upload=upload, is_public=public, prices=prices, max_concurrent=max_concurrent or LOCAL_CONCURRENT
        )
        return run_locally(cli, _names(model), asked, places)
    config: dict[str, Any] = {"num_examples": num_examples, "rollouts_per_example": rollouts}
    config |= ({"sampling_args": sampling} if sampling else {}) | ({"env_args": args} if args else {})
    config |= ({"seats": _seats(seat)} if seat else {}) | _given(max_concurrent=max_concurrent)
    config |= _external(api_base_url, api_key_var) | prices
    body = {"environment_ids": [environment], "eval_config": config} | _models(model)
    body |= _given(name=name, force=force or None, group_id=group, is_public=public or None)
    body |= _given(team_id=cli.config.team_id or None)
    made = cli.client.post("/hosted-evaluations", body)
    ids = made.get("evaluation_ids") or [made["evaluation_id"]]
    for eval_id in ids:
        cli.terminal.success(f"evaluation {eval_id} is {made.get('status', 'PENDING')}")
    _show_page(cli, ids)
    if follow:
        return _finish(cli, await_evaluations(cli, ids))
    return cli.terminal.data(made)


def _given(**fields: Any) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value is not None}


def _names(text: str) -> list[str]:
    names = [name.strip() for name in text.split(",") if name.strip()]
    if not names:
        raise typer.BadParameter("names no model", param_hint="--model")
    return names


def _models(text: str) -> dict[str, Any]:
    names = _names(text)
    return {"inference_model": names[0]} if len(names) == 1 else {"inference_models": names}


def _external(base_url: str | None, key_var: str | None) -> dict[str, Any]:
    """A key of this shell goes along as a secret of the evaluation; without one the server has the team's of that name."""
    given = _given(api_base_url=base_url, api_key_var=key_var)
    value = os.environ.get(key_var or "")
    return given | ({"custom_secrets": {key_var: value}} if key_var and value else {})


def _prices(input_price: float | None, output_price: float | None) -> dict[str, Any]:
    if (input_price is None) != (output_price is None):
        raise typer.BadParameter("give both --price-input and --price-output", param_hint="--price-input")
    if input_price is None:
        return {}
    return {"prices": {"input_usd_per_mtok": input_price, "output_usd_per_mtok": output_price}}


def _object(text: str) -> dict[str, Any]:
    try:
        found = json.loads(text)
    except ValueError as error:
        raise typer.BadParameter(f"not JSON: {error}", param_hint="--env-args") from error
    if not isinstance(found, dict):
        raise typer.BadParameter("not a JSON object", param_hint="--env-args")
    return found


def _seats(pairs: list[str]) -> dict[str, Any]:
    cut = [pair.partition("=") for pair in pairs]
    if wrong := next((pair for pair, (agent, _, model) in zip(pairs, cut, strict=True) if not (agent and model)), None):
        raise typer.BadParameter(f"{wrong} is not AGENT=MODEL, as in user=tiny", param_hint="--seat")
    return {agent: {"model": {"name": model}} for agent, _, model in cut}


def _show_page(cli: Session, ids: list[str]) -> None:
    cli.show_page(f"/evaluations/{ids[0]}" if len(ids) == 1 else f"/evaluations/compare?ids={','.join(ids)}")


def await_evaluations(cli: Session, ids: list[str]) -> list[dict[str, Any]]:
    """Poll until every evaluation has ended; the server ends each at its own time limit."""
    with cli.terminal.progress(unit="rollouts") as progress:
        bars = {eval_id: progress.add_task("evaluating", total=None) for eval_id in ids}
        found: dict[str, dict[str, Any]] = {}
        while True:
            for eval_id in ids:
                if found.get(eval_id, {}).get("status") not in FINAL_STATUSES:
                    found[eval_id] = cli.client.get(f"/evaluations/{eval_id}")
                    _show_progress(progress, bars[eval_id], found[eval_id])
            if all(one["status"] in FINAL_STATUSES for one in found.values()):
                return [found[eval_id] for eval_id in ids]
            time.sleep(POLL_S)


def _show_progress(progress: Progress, bar: TaskID, found: Mapping[str, Any]) -> None:
    counts = found.get("metadata") or {}
    total = (counts.get("num_examples") or 0) * (counts.get("rollouts_per_example") or 0)
    text = f"{found.get('model_name') or 'evaluating'} ({found['status'].lower()})"
    progress.update(bar, completed=found.get("total_samples") or 0, total=total if total > 0 else None, description=text)


def _finish(cli: Session, found: list[dict[str, Any]]) -> None:
    if len(found) == 1:
        cli.terminal.facts(found[0], evaluation_facts(found[0]))
    else:
        compared = cli.client.get("/evaluations/compare", ids=",".join(one["evaluation_id"] for one in found))
        cli.terminal.table(compared, compared["evaluations"], quality_columns(), empty="nothing to compare")
    failed = [one for one in found if one["status"] != "COMPLETED"]
    if failed:
        reason = failed[0].get("error_message") or "no reason was given"
        which = "the evaluation" if len(found) == 1 else f"the evaluation of {failed[0].get('model_name')}"
        raise CliError(f"{which} ended {failed[0]['status']}: {reason}", ExitCode.RUN_FAILED, code="run_failed")
