"""`make curves`: train the tiny model by every algorithm, and write docs/figures and the tables of docs/algorithms.md.

One thread, so that the figures are the same each time on one machine. Minutes of one core.
"""

import argparse
import asyncio
import json
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import torch

from tests.numerics.curves.drawing import draw
from tests.numerics.curves.experts import Sizes, contest
from tests.numerics.curves.learning import learn
from tests.numerics.curves.pages import FIGURES, PAGE, experts_table, learning_table, rewritten
from tests.numerics.curves.plans import PLANS, SEEDS, Plan

LEARNING, EXPERTS = FIGURES / "learning.json", FIGURES / "experts.json"


def learning_report(chosen: Sequence[Plan]) -> dict[str, Any]:
    """Of the chosen plans; the others' figures are those that are there."""
    known = json.loads(LEARNING.read_text())["plans"] if LEARNING.exists() else {}
    for plan in chosen:
        settings = asdict(plan)
        name = settings.pop("name")
        objectives = {objective: asdict(shown) for objective, shown in asyncio.run(learn(plan)).items()}
        known[name] = rounded({"settings": settings, "objectives": objectives})
        print(learning_table({"plans": {name: known[name]}}).splitlines()[-1], flush=True)
    return {"command": "make curves", "seeds": SEEDS, "plans": {plan.name: known[plan.name] for plan in PLANS}}


def experts_report() -> dict[str, Any]:
    sizes = Sizes()
    seeds = [asdict(result) for result in asyncio.run(contest(sizes))]
    return {"command": "make curves ONLY=experts", "settings": asdict(sizes), "seeds": seeds}


def rounded(value: Any) -> Any:
    """Four digits are more than a curve shows."""
    if isinstance(value, float):
        return float(f"{value:.4g}")
    if isinstance(value, dict):
        return {name: rounded(one) for name, one in value.items()}
    return [rounded(one) for one in value] if isinstance(value, list | tuple) else value


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m tests.numerics.curves", description="Write the learning curves of the guide."
    )
    parser.add_argument("--only", help="names of plans, or experts, with commas between them")
    only = parser.parse_args().only
    chosen = only.split(",") if only else [*(plan.name for plan in PLANS), "experts"]
    torch.set_num_threads(1)
    parts = {}
    if plans := [plan for plan in PLANS if plan.name in chosen]:
        report = learning_report(plans)
        LEARNING.write_text(json.dumps(report) + "\n")
        for plan in plans:
            (FIGURES / f"learning-{plan.name}.svg").write_text(draw(plan.name, report["plans"][plan.name]))
        parts["learning"] = learning_table(report)
    if "experts" in chosen:
        report = rounded(experts_report())
        EXPERTS.write_text(json.dumps(report, indent=1) + "\n")
        parts["experts"] = experts_table(report)
        print(parts["experts"])
    PAGE.write_text(rewritten(PAGE.read_text(), parts))


if __name__ == "__main__":
    main()
