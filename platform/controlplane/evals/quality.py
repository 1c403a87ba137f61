"""Quality against dollars and seconds: what an evaluation's answers cost, how long they took, and which models nobody beats.

Knows where a cost comes from: our bill, and usage times the stated prices where somebody else was paid; none where that is not
known. Refuses to guess a price.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from statistics import median
from typing import Any, Literal

from django.db.models import Sum

from controlplane.billing.queries import subject_totals
from controlplane.evals.models import Evaluation, EvaluationSample
from controlplane.evals.scores import READ_ROWS

CostSource = Literal["bill", "prices"]


@dataclass(frozen=True)
class Cost:
    amount_microusd: int
    source: CostSource


def costs_of(evaluations: Sequence[Evaluation]) -> dict[str, Cost]:
    """By evaluation; absent where nobody knows."""
    bills = subject_totals("eval", [row.id for row in evaluations if row.is_hosted])
    found = {}
    for row in evaluations:
        billed = bills.get(row.id, 0)
        if prices := prices_of(row):
            found[row.id] = Cost(_priced(row, *prices) + billed, "prices")
        elif row.is_hosted and not (row.config or {}).get("api_base_url"):
            found[row.id] = Cost(billed, "bill")
    return found


def per_sample_usd(evaluation: Evaluation, cost: Cost | None) -> float | None:
    return None if cost is None else cost.amount_microusd / 1e6 / max(1, evaluation.samples_count)


def prices_of(evaluation: Evaluation) -> tuple[Decimal, Decimal] | None:
    """(input, output) in USD per million tokens, as whoever started or pushed the evaluation stated them."""
    stated = evaluation.metadata.get("prices")
    if not isinstance(stated, dict):
        return None
    amounts = [_amount(stated.get(name)) for name in ("input_usd_per_mtok", "output_usd_per_mtok")]
    return None if amounts[0] is None or amounts[1] is None else (amounts[0], amounts[1])


def _amount(value: Any) -> Decimal | None:
    is_price = isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < 1e6
    return Decimal(str(value)) if is_price else None


def _priced(evaluation: Evaluation, input_price: Decimal, output_price: Decimal) -> int:
    """A dollar per million tokens is a micro-dollar per token."""
    used = EvaluationSample.objects.filter(evaluation=evaluation).aggregate(
        input=Sum("input_tokens", default=0), output=Sum("output_tokens", default=0)
    )
    return int(used["input"] * input_price + used["output"] * output_price)


def median_duration_s(evaluation: Evaluation) -> float | None:
    """Of the rollouts that have a reward."""
    rows = EvaluationSample.objects.filter(evaluation=evaluation, reward__isnull=False, duration_s__isnull=False)
    found = [value for value in rows.values_list("duration_s", flat=True).iterator(READ_ROWS) if value is not None]
    return median(found) if found else None


def unbeaten(points: Sequence[tuple[float | None, float | None]]) -> list[bool]:
    """Of (quality, price) points: those that no other equals or betters in both and betters in one. A point that lacks either
    is beaten by definition."""
    known = [(quality, price) for quality, price in points if quality is not None and price is not None]

    def is_beaten(quality: float, price: float) -> bool:
        return any(q >= quality and p <= price and (q > quality or p < price) for q, p in known)

    return [q is not None and p is not None and not is_beaten(q, p) for q, p in points]
