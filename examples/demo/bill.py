"""Recomputes a team's bill from the records of its requests, and compares it with the ledger.

Two ways to one sum: what the proxies wrote down per rollout and per request, priced here; and what the ledger charged.
"""

from collections import Counter
from decimal import Decimal
from fractions import Fraction
from typing import Any

from team import Team


def token_counts(team: Team) -> Counter[tuple[str, str]]:
    """(subject, meter) → quantity, from rollout records, trained tokens and the gateway's request records."""
    counts: Counter[tuple[str, str]] = Counter()
    for run in team.prime.get("/rft/runs", limit=100)["runs"]:
        _count_rollouts(counts, run["id"], team.rollouts(run["id"]))
        for point in team.prime.get(f"/rft/runs/{run['id']}/metrics", limit=100_000)["metrics"]:
            counts[run["id"], "training_tokens"] += int(point["trained_tokens"])
    for evaluation in team.prime.get("/evaluations/", limit=100)["evaluations"]:
        identity = evaluation["evaluation_id"]
        _count_rollouts(counts, identity, team.samples(f"/evaluations/{identity}/samples"))
    for request in _pages(team, "/inference/requests"):
        counts[request["model"], "inference_input_tokens"] += request["input_tokens_count"]
        counts[request["model"], "inference_output_tokens"] += request["output_tokens_count"]
    return counts


def _count_rollouts(counts: Counter[tuple[str, str]], subject: str, rollouts: list[dict[str, Any]]) -> None:
    for rollout in rollouts:
        if rollout["billed"]:
            counts[subject, "rollout_input_tokens"] += rollout["input_tokens"]
            counts[subject, "rollout_output_tokens"] += rollout["output_tokens"]


def _pages(team: Team, path: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    cursor: str | None = None
    while True:
        page = team.prime.get(path, limit=100, **({"cursor": cursor} if cursor else {}))
        found += page["items"]
        cursor = page.get("next_cursor")
        if not cursor:
            return found


def recompute(team: Team) -> dict[str, Any]:
    """The ledger's charges beside the recomputed ones, by meter. Sandbox seconds have no second record: they are taken over."""
    lines, book = _pages(team, "/billing/usage"), team.prime.get("/billing/prices")["prices"]
    prices = {(row["meter"], row["model"]): Decimal(row["usd_per_million"]) for row in book}
    counts = token_counts(team)
    equal, total = True, 0
    for row in lines:
        total += row["amount_microusd"]
        if row["meter"] == "sandbox_seconds":
            continue
        quantity = counts.pop((row["subject_id"], row["meter"]), 0)
        exact = Fraction(prices[row["meter"], row["model"]]) * quantity
        equal = equal and quantity == row["quantity"] and exact.__floor__() == row["amount_microusd"]
    return {"equal": equal and not any(counts.values()), "charged_microusd": total, "rows": lines}
