"""Bodies of the billing API. Knows spellings and how rows become them; decides nothing.

Money travels twice: as a dollar number where the public client wants one (for display), and as the integer `…_microusd` that
everything is computed from.
"""

from datetime import date, datetime
from decimal import Decimal
from typing import Annotated, Any, Literal, Self

from pydantic import Field, model_validator

from controlplane.billing.models import SUBJECT_ID_LENGTH_MAX, Charge, LedgerEntry, Price, TopUp
from controlplane.billing.queries import Bucket, LedgerTotals, MeterLine
from controlplane.billing.services import TOP_UP_MAX_MICROUSD
from controlplane.core.money import microusd_floor, usd
from controlplane.core.pagination import CursorQuery, OffsetQuery
from controlplane.core.schemas import Answer, Body, Query, example
from trainer.contracts.events import Meter

RESOURCE_TYPES: dict[Meter, str] = {
    Meter.TRAINING_TOKENS: "training",
    Meter.ROLLOUT_INPUT_TOKENS: "inference",
    Meter.ROLLOUT_OUTPUT_TOKENS: "inference",
    Meter.INFERENCE_INPUT_TOKENS: "inference",
    Meter.INFERENCE_OUTPUT_TOKENS: "inference",
    Meter.SANDBOX_SECONDS: "sandbox",
    Meter.JUDGE_CALLS: "judge",
}


def dollars(amount_microusd: int) -> float:
    return float(usd(amount_microusd))


class WalletQuery(OffsetQuery):
    limit: Annotated[int, Field(ge=1, le=100)] = 20


class TopUpRequest(Body):
    """Exactly one of the two amounts. Dollars have at most six decimals."""

    model_config = example({"amount_usd": 5})

    amount_usd: Annotated[Decimal, Field(gt=0, decimal_places=6, max_digits=16)] | None = None
    amount_microusd: Annotated[int, Field(gt=0, le=TOP_UP_MAX_MICROUSD)] | None = None

    @model_validator(mode="after")
    def _one_amount(self) -> Self:
        if (self.amount_usd is None) == (self.amount_microusd is None):
            raise ValueError("give one of amount_usd and amount_microusd")
        if self.total_microusd > TOP_UP_MAX_MICROUSD:
            raise ValueError(f"at most {usd(TOP_UP_MAX_MICROUSD)} USD at once")
        return self

    @property
    def total_microusd(self) -> int:
        return self.amount_microusd if self.amount_usd is None else microusd_floor(self.amount_usd)  # type: ignore[return-value]


class TopUpAnswer(Answer):
    id: str
    created_at: datetime
    status: Literal["pending", "settled", "failed"]
    amount_usd: float
    amount_microusd: int
    gateway: str
    notice: str
    balance_usd: float
    balance_microusd: int

    @classmethod
    def of(cls, row: TopUp, *, notice: str, balance_microusd: int) -> Self:
        return cls.model_validate(
            {
                "id": row.pk,
                "created_at": row.created_at,
                "status": row.status,
                "amount_usd": dollars(row.amount_microusd),
                "amount_microusd": row.amount_microusd,
                "gateway": row.gateway,
                "notice": notice,
                "balance_usd": dollars(balance_microusd),
                "balance_microusd": balance_microusd,
            }
        )


class BillingRow(Answer):
    """One charge: what a subject has cost at one price so far."""

    id: str
    created_at: datetime
    updated_at: datetime
    last_billed_at: datetime
    amount_usd: float
    amount_microusd: int
    currency: str = "USD"
    resource_type: str
    resource_id: str
    subject_kind: str
    meter: Meter
    quantity: int

    @classmethod
    def of(cls, row: Charge) -> Self:
        meter = Meter(row.price.meter)
        return cls(
            id=row.pk,
            created_at=row.created_at,
            updated_at=row.last_billed_at,
            last_billed_at=row.last_billed_at,
            amount_usd=dollars(row.posted_microusd),
            amount_microusd=row.posted_microusd,
            resource_type=RESOURCE_TYPES[meter],
            resource_id=row.subject_id,
            subject_kind=row.subject_kind,
            meter=meter,
            quantity=row.quantity,
        )


class WalletAnswer(Answer):
    """`held_microusd` is reserved for work in progress and no longer part of the balance."""

    wallet_id: str
    team_id: str
    balance_usd: float
    balance_microusd: int
    held_microusd: int
    currency: str = "USD"
    total_billings: int
    recent_billings: list[BillingRow]


class UsageBucket(Answer):
    tokens: int
    input_tokens: int
    output_tokens: int
    cost_usd: float
    cost_microusd: int

    @classmethod
    def of(cls, bucket: Bucket) -> Self:
        return cls(
            tokens=bucket.quantity,
            input_tokens=bucket.input_quantity,
            output_tokens=bucket.output_quantity,
            cost_usd=dollars(bucket.amount_microusd),
            cost_microusd=bucket.amount_microusd,
        )


class RunPricing(Answer):
    """US dollars per million tokens."""

    training_per_mtok: float
    inference_input_per_mtok: float
    inference_output_per_mtok: float


class MeterRow(Answer):
    """One itemised line: `amount_microusd` is the floor of quantity times the price."""

    subject_kind: str
    subject_id: str
    meter: Meter
    model: str
    price_version: int
    usd_per_million: Decimal
    quantity: int
    amount_microusd: int
    last_billed_at: datetime

    @classmethod
    def of(cls, line: MeterLine) -> Self:
        return cls.model_validate(vars(line))


class RunUsage(Answer):
    run_id: str
    run_name: str
    base_model: str
    status: str
    training: UsageBucket
    inference: UsageBucket
    total_tokens: int
    total_cost_usd: float
    total_cost_microusd: int
    pricing: RunPricing
    record_count: int
    meters: list[MeterRow]


class UsageQuery(CursorQuery):
    subject_id: Annotated[str, Field(max_length=SUBJECT_ID_LENGTH_MAX)] = ""


class TeamUsage(Answer):
    """A page of the team's bill, newest line first. `total_microusd` is the sum of the lines on all pages."""

    total_usd: float
    total_microusd: int
    items: list[MeterRow]
    next_cursor: str | None

    @classmethod
    def of(cls, page: dict[str, Any], total_microusd: int) -> Self:
        return cls(total_usd=dollars(total_microusd), total_microusd=total_microusd, **page)


class DailyQuery(Query):
    days: Annotated[int, Field(ge=1, le=366)] = 31


class DailyRow(Answer):
    day: date
    meter: Meter
    amount_microusd: int


class DailyUsage(Answer):
    """Cost by day (UTC) and meter, oldest first. What cost nothing has no row; `first_day` is the first one asked for."""

    first_day: date
    rows: list[DailyRow]


class EntryRow(Answer):
    """One side of a transfer. Entries that share `transfer_id` sum to zero."""

    id: str
    created_at: datetime
    transfer_id: str
    transfer_kind: str
    account: str
    amount_microusd: int
    subject_kind: str | None
    subject_id: str | None
    meter: Meter | None

    @classmethod
    def of(cls, row: LedgerEntry) -> Self:
        charge = row.charge
        return cls(
            id=row.pk,
            created_at=row.created_at,
            transfer_id=row.transfer_id,
            transfer_kind=row.transfer.kind,
            account=row.account.kind,
            amount_microusd=row.amount_microusd,
            subject_kind=charge.subject_kind if charge else None,
            subject_id=charge.subject_id if charge else None,
            meter=Meter(charge.price.meter) if charge else None,
        )


class LedgerAnswer(Answer):
    """A page of entries, newest first, and the totals over all of the team's entries: the sum is always zero."""

    items: list[EntryRow]
    next_cursor: str | None
    sum_microusd: int
    entries_count: int

    @classmethod
    def of(cls, page: dict[str, object], totals: LedgerTotals) -> Self:
        return cls.model_validate({**page, "sum_microusd": totals.sum_microusd, "entries_count": totals.entries_count})


class PriceRow(Answer):
    model: str
    meter: Meter
    version: int
    usd_per_million: Decimal
    effective_at: datetime

    @classmethod
    def of(cls, row: Price) -> Self:
        return cls(
            model=row.model,
            meter=Meter(row.meter),
            version=row.version,
            usd_per_million=row.usd_per_million,
            effective_at=row.effective_at,
        )


class PriceList(Answer):
    """Prices in force. `model` is empty where a price holds whatever the model is."""

    prices: list[PriceRow]
