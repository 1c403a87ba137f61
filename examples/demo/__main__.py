"""From push to a trained, served and billed adapter, through public interfaces only. What is done depends on the base model: with
`tiny`, two teams with opposite rewards share one trainer; with `smollm2`, a pretrained model learns on a real book.

    python examples/demo [--model tiny] [--seed 0] [--root .rootstock] [--steps N] [--rollouts N] [--exit]

Writes reports/demo.json (reports/demo-<model>.json for another model) and ends with 1 when a gate does not hold.
"""

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from itertools import permutations
from pathlib import Path
from statistics import fmean
from typing import Any

import httpx
from bill import recompute
from gates import broken_gates
from plan import Plan, models
from prime import DemoError, Prime
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table
from team import Team

from workers.embedded.stack import BASE_MODEL, ENGINES, REPOSITORY, Stack

LAST_STEPS = 5
POLL_S = 1.0
SPARKS = "▁▂▃▄▅▆▇█"
ENDED = {"COMPLETED", "FAILED", "STOPPED", "PAUSED"}
console = Console(highlight=False)


class Clock:
    """Where the time went."""

    def __init__(self) -> None:
        self.began = time.monotonic()
        self.stages_s: dict[str, float] = {}

    @contextmanager
    def stage(self, name: str, text: str) -> Iterator[None]:
        console.rule(f"[bold]{text}", align="left", style="dim")
        began = time.monotonic()
        yield
        self.stages_s[name] = round(time.monotonic() - began, 1)
        console.print(f"[dim]{self.stages_s[name]:.1f} s[/dim]")

    def wall_s(self) -> float:
        return round(time.monotonic() - self.began, 1)


def stack_command(command: str, root: Path, *options: str) -> None:
    subprocess.run([sys.executable, "-m", "workers.embedded", command, "--root", str(root), *options], cwd=REPOSITORY, check=True)


def operator_view(stack: Stack, service: str, path: str) -> dict[str, Any]:
    """What the machine's operator may ask of trainer and engine: their health and statistics."""
    headers = {"Authorization": f"Bearer {stack.secrets['pool_token']}"}
    response = httpx.get(stack.url(service) + path, headers=headers, timeout=30, trust_env=False)
    response.raise_for_status()
    document: dict[str, Any] = response.json()
    return document


def evaluate(wanted: list[tuple[Team, str, str, str]]) -> None:
    """Run evaluations side by side; each is (team, figure, model, environment)."""
    started = [(team, figure, team.start_eval(model, environment)) for team, figure, model, environment in wanted]
    for team, figure, process in started:
        team.figures[figure] = team.finish_eval(process)
        console.print(f"team {team.name:<5} {figure:<13} {team.figures[figure]:.3f}")


def follow(teams: list[Team], plan: Plan) -> None:
    """The runs live, until all have ended well."""
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.completed:.0f}/{task.total:.0f}"),
        TimeElapsedColumn(),
    )
    deadline = time.monotonic() + plan.run_deadline_s
    with Progress(*columns, console=console) as progress:
        bars = {team.name: progress.add_task(f"team {team.name}", total=plan.steps) for team in teams}
        seen = dict.fromkeys(bars, 0)
        open_teams = list(teams)
        while open_teams:
            if time.monotonic() > deadline:
                raise DemoError(f"the runs did not end within {plan.run_deadline_s:.0f} s")
            time.sleep(POLL_S)
            for team in list(open_teams):
                run, points = team.run(), team.metrics(after=seen[team.name])
                reward = f"reward {points[-1]['reward']:.2f}" if points else ""
                seen[team.name] = points[-1]["step"] if points else seen[team.name]
                text = f"team {team.name:<5} {run['status'].lower():<9} {reward}"
                progress.update(bars[team.name], completed=seen[team.name], description=text if points else None)
                if run["status"] in ENDED:
                    open_teams.remove(team)
                    _require_completed(team, run)


def _require_completed(team: Team, run: dict[str, Any]) -> None:
    if run["status"] != "COMPLETED":
        raise DemoError(f"team {team.name}'s run ended {run['status']}: {run['failureAnalysis'] or run['errorMessage']}")


def training_figures(team: Team, first_steps: int) -> None:
    points = team.metrics()
    rewards = [point["reward"] for point in points]
    swaps = [int(point["requests_in_flight_at_swap"]) for point in points]
    first, last = fmean(rewards[:first_steps]), fmean(rewards[-LAST_STEPS:])
    team.figures |= {
        "reward_first": first,
        "reward_last": last,
        "reward_rise": last - first,
        "rewards": rewards,
        "steps": len(points),
        "trained_tokens": int(sum(point["trained_tokens"] for point in points)),
        "max_staleness": int(max(point["staleness_max"] for point in points)),
        "versions_served": len({sample["policy_version_max"] for sample in team.rollouts(team.run_id)}),
        "requests_in_flight_at_swap": swaps,
    }


def show(teams: list[Team], bills: dict[str, dict[str, Any]]) -> None:
    """Curves, answers before and after, and each team's itemised bill."""
    for team in teams:
        rewards = team.figures["rewards"]
        curve = "".join(SPARKS[min(len(SPARKS) - 1, int(reward * len(SPARKS)))] for reward in rewards)
        span = f"{team.figures['reward_first']:.2f} → {team.figures['reward_last']:.2f}"
        console.print(f"\n[bold]team {team.name}[/bold]  reward  {curve}  {span}")
        answers = f"before: {team.figures['answer_before']!r}  after: {team.figures['answer_after']!r}"
        console.print(f"  asked {team.demo.question!r}  {answers}")
        table = Table("what", "which", "quantity", "amount", box=None, pad_edge=False, header_style="bold")
        for row in bills[team.name]["rows"]:
            table.add_row(
                row["meter"].replace("_", " "), row["subject_id"], f"{row['quantity']:,}", f"${row['amount_microusd'] / 1e6:.6f}"
            )
        table.add_row("total", "", "", f"${bills[team.name]['charged_microusd'] / 1e6:.6f}", style="bold")
        console.print(table)


def run_demo(stack: Stack, clock: Clock, plan: Plan, seed: int) -> dict[str, Any]:
    teams = [Team(one, plan, Prime(stack.root / "home" / f"team-{one.name}", stack.origin)) for one in plan.teams]
    before, packs_before = operator_view(stack, "trainer", "/health"), operator_view(stack, "trainer", "/stats")
    with clock.stage("arrive", "Sign up, top up, push what is paid for"), ThreadPoolExecutor(len(teams)) as pool:
        for team in pool.map(Team.settle, teams):
            console.print(f"team {team.name:<5} pushed {team.environment}")
    with clock.stage("base_eval", "The base model, before"):
        evaluate([(team, "base_eval", plan.model, team.environment) for team in teams])
    with clock.stage("train", "Training, all teams at the same time on one trainer"):
        for team in teams:
            team.train(seed)
        follow(teams, plan)
    with clock.stage("deploy", "Deploy, and call the adapter with the OpenAI SDK"):
        for team in teams:
            training_figures(team, plan.first_steps)
            team.deploy()
            team.call_deployment()
    with clock.stage("adapter_eval", "The adapters, on their own and on the others' reward"):
        own = [(team, "adapter_eval", team.served_name, team.environment) for team in teams]
        evaluate(own + [(team, "cross_eval", team.served_name, other.environment) for team, other in permutations(teams, 2)])
    with clock.stage("bill", "The bill, recomputed from the records"):
        bills = {team.name: recompute(team) for team in teams}
        show(teams, bills)
    after, packs_after = operator_view(stack, "trainer", "/health"), operator_view(stack, "trainer", "/stats")
    report = make_report(teams, bills, clock, health=(before, after), packs=(packs_before, packs_after))
    return {"model": plan.model, "seed": seed} | report


def make_report(
    teams: list[Team],
    bills: dict[str, dict[str, Any]],
    clock: Clock,
    *,
    health: tuple[dict[str, Any], dict[str, Any]],
    packs: tuple[dict[str, Any], dict[str, Any]],
) -> dict[str, Any]:
    everyone = ",".join(sorted(team.run_id for team in teams))
    swaps = [count for team in teams for count in team.figures["requests_in_flight_at_swap"]]
    totals = [team.prime.get("/billing/ledger", limit=1) for team in teams]
    for team in teams:
        team.figures["charged_microusd"] = bills[team.name]["charged_microusd"]
        del team.figures["requests_in_flight_at_swap"]
    return {
        "teams": {team.name: team.figures for team in teams},
        "packs_with_all_runs": packs[1]["shared_by"].get(everyone, 0) - packs[0]["shared_by"].get(everyone, 0),
        "trainer_pids": sorted({one["pid"] for one in health}),
        "base_weights_sha256": {"before": packs[0]["base_digest_now"], "after": packs[1]["base_digest_now"]},
        "requests_in_flight_at_swap": {
            "max": max(swaps, default=0),
            "swaps": len(swaps),
            "under_load": sum(n > 0 for n in swaps),
        },
        "ledger_sum_microusd": sum(total["sum_microusd"] for total in totals),
        "ledger_entries_count": sum(total["entries_count"] for total in totals),
        "bill_recomputed_equal": all(bill["equal"] for bill in bills.values()),
        "stages_s": clock.stages_s,
        "wall_s": clock.wall_s(),
    }


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python examples/demo")
    parser.add_argument("--root", type=Path, default=REPOSITORY / ".rootstock")
    parser.add_argument("--report", type=Path, help="default: reports/demo.json, reports/demo-<model>.json for another model")
    parser.add_argument("--model", choices=models(), default=BASE_MODEL)
    parser.add_argument("--engine", choices=ENGINES, default=ENGINES[0], help="what answers model calls")
    parser.add_argument("--seed", type=int, default=0, help="of the runs: the order of tasks and the first weights")
    parser.add_argument("--steps", type=int, help="instead of the model's own number")
    parser.add_argument("--rollouts", type=int, help="of each evaluation, instead of the model's own number")
    parser.add_argument("--exit", action="store_true", help="stop everything at the end")
    return parser.parse_args()


def plan_of(options: argparse.Namespace) -> Plan:
    plan = Plan.read(options.model)
    return replace(plan, steps=options.steps or plan.steps, rollouts=options.rollouts or plan.rollouts)


def main() -> int:
    options = arguments()
    root, clock, plan = options.root.resolve(), Clock(), plan_of(options)
    default_name = "demo.json" if plan.model == BASE_MODEL else f"demo-{plan.model}.json"
    path = options.report or REPOSITORY / "reports" / default_name
    with clock.stage("start", "The stack"):
        stack_command("up", root, "--model", plan.model, "--engine", options.engine)
    stack = Stack.running(root)
    try:
        report = run_demo(stack, clock, plan, options.seed)
    except DemoError as failure:
        console.print(f"[red]{failure}[/red]")
        return 1
    finally:
        if options.exit:
            stack_command("down", root)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(report, indent=1))
    return conclude(report, path, stack, plan, stays_up=not options.exit)


def conclude(report: dict[str, Any], path: Path, stack: Stack, plan: Plan, *, stays_up: bool) -> int:
    console.rule("[bold]Where the time went", align="left", style="dim")
    console.print(
        "  ".join(f"{name} {seconds:.0f} s" for name, seconds in report["stages_s"].items()) + f"  total {report['wall_s']:.0f} s"
    )
    broken = broken_gates(report, plan.gates)
    for text in broken:
        console.print(f"[red]does not hold:[/red] {text}")
    if not broken:
        console.print("[green]every gate holds[/green]")
    console.print(f"report: {path}")
    if stays_up:
        console.print(f"dashboard: {stack.origin}   (make down stops the stack)")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
