"""Reads of money. Knows how rows become balances, bills and totals; writes nothing.

Every figure that a page, the CLI or a report shows comes from here, so that they cannot disagree.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import NamedTuple

from django.db.models import Count, F, QuerySet, Sum
from django.db.models.functions import TruncDate

from controlplane.billing.models import Account, AccountKind, Charge, Hold, LedgerEntry, MeterEvent, Price
from controlplane.core import clock
from controlplane.teams.models import Team
from trainer.contracts.events import Meter

TRAINING_METERS = frozenset({Meter.TRAINING_TOKENS})
INPUT_METERS = frozenset({Meter.ROLLOUT_INPUT_TOKENS, Meter.INFERENCE_INPUT_TOKENS})
OUTPUT_METERS = frozenset({Meter.ROLLOUT_OUTPUT_TOKENS, Meter.INFERENCE_OUTPUT_TOKENS})


class LedgerTotals(NamedTuple):
    sum_microusd: int
    entries_count: int


class DailyCost(NamedTuple):
    day: date
    meter: Meter
    amount_microusd: int


@dataclass(frozen=True)
class MeterLine:
    """One line of a bill: a subject's use of one meter at one price version."""

    subject_kind: str
    subject_id: str
    meter: Meter
    model: str
    price_version: int
    usd_per_million: Decimal
    quantity: int
    amount_microusd: int
    last_billed_at: datetime


@dataclass(frozen=True)
class Bucket:
    """Several meters of a subject taken together."""

    quantity: int
    input_quantity: int
    output_quantity: int
    amount_microusd: int

    @classmethod
    def of(cls, lines: Iterable[MeterLine]) -> "Bucket":
        found = list(lines)
        return cls(
            quantity=sum(line.quantity for line in found),
            input_quantity=sum(line.quantity for line in found if line.meter in INPUT_METERS),
            output_quantity=sum(line.quantity for line in found if line.meter in OUTPUT_METERS),
            amount_microusd=sum(line.amount_microusd for line in found),
        )


@dataclass(frozen=True)
class SubjectUsage:
    """Everything that one subject caused, itemised. The total is the sum of the lines, rounded nowhere again."""

    lines: list[MeterLine]

    @property
    def total_microusd(self) -> int:
        return sum(line.amount_microusd for line in self.lines)

    @property
    def training(self) -> Bucket:
        return Bucket.of(line for line in self.lines if line.meter in TRAINING_METERS)

    @property
    def inference(self) -> Bucket:
        return Bucket.of(line for line in self.lines if line.meter in INPUT_METERS | OUTPUT_METERS)

    def quantity(self, meter: Meter) -> int:
        return sum(line.quantity for line in self.lines if line.meter == meter)


def wallet_balance(team: Team) -> int:
    """What the team may still spend, in micro-USD. Below zero when usage overtook the wallet before work could be stopped."""
    return _balance(team.pk, AccountKind.WALLET)


def account_balance(team: Team, kind: AccountKind) -> int:
    return _balance(team.pk, kind)


def is_exhausted(team_id: str, *, subject_kind: str = "", subject_id: str = "") -> bool:
    """Whether paid work must not go on: nothing in the wallet, and nothing held for the given subject."""
    if _balance(team_id, AccountKind.WALLET) > 0:
        return False
    held = Hold.objects.filter(team_id=team_id, subject_kind=subject_kind, subject_id=subject_id, remaining_microusd__gt=0)
    return not held.exists()


def subject_usage(subject_kind: str, subject_id: str) -> SubjectUsage:
    """A subject's lines in the order of their meters."""
    return SubjectUsage(_lines(Charge.objects.filter(subject_kind=subject_kind, subject_id=subject_id)))


def subject_totals(subject_kind: str, subject_ids: list[str]) -> dict[str, int]:
    """What each of several subjects has cost so far, in micro-USD; a subject without a charge is absent."""
    charges = Charge.objects.filter(subject_kind=subject_kind, subject_id__in=subject_ids)
    return dict(charges.values_list("subject_id").annotate(total=Sum("posted_microusd")).order_by())


def subject_events_count(subject_kind: str, subject_id: str) -> int:
    """How many facts stand behind the subject's bill."""
    return MeterEvent.objects.filter(subject_kind=subject_kind, subject_id=subject_id).count()


def team_charges(team: Team, subject_id: str = "") -> QuerySet[Charge]:
    """The lines of the team's bill, or of what one subject caused."""
    charges = Charge.objects.filter(team=team).select_related("price")
    return charges.filter(subject_id=subject_id) if subject_id else charges


def charges_total(charges: QuerySet[Charge]) -> int:
    """The sum of the lines in micro-USD, rounded nowhere again."""
    return charges.aggregate(total=Sum("posted_microusd"))["total"] or 0


def daily_costs(team: Team, *, days: int) -> tuple[date, list[DailyCost]]:
    """What usage has cost on each of the last `days` days (UTC) by meter, oldest first, and the first of these days.

    Days are those of the ledger's entries, so the figures of all days sum to the bill."""
    first = clock.now().astimezone(UTC).date() - timedelta(days=days - 1)
    entries = LedgerEntry.objects.filter(team=team, account__kind=AccountKind.REVENUE, charge__isnull=False)
    rows = (
        entries.filter(created_at__gte=datetime.combine(first, time.min, tzinfo=UTC))
        .values(day=TruncDate("created_at", tzinfo=UTC), meter=F("charge__price__meter"))
        .annotate(amount=Sum("amount_microusd"))
        .order_by("day", "meter")
    )
    return first, [DailyCost(row["day"], Meter(row["meter"]), int(row["amount"])) for row in rows]


def recent_charges(team: Team) -> QuerySet[Charge]:
    """The team's charges, newest `last_billed_at` first."""
    return Charge.objects.filter(team=team).select_related("price").order_by("-last_billed_at", "id")


def ledger_totals() -> LedgerTotals:
    """Sum and number of all entries that the current scope may see. The sum of a sound ledger is zero."""
    return _totals(LedgerEntry.objects.all())


def team_ledger_totals(team: Team) -> LedgerTotals:
    return _totals(LedgerEntry.objects.filter(team=team))


def team_entries(team: Team) -> QuerySet[LedgerEntry]:
    """The team's entries with what they belong to, newest first."""
    entries = LedgerEntry.objects.filter(team=team)
    return entries.select_related("transfer", "account", "charge", "charge__price").order_by("-id")


def prices_in_force(at: datetime) -> list[Price]:
    """The version of every price that holds at `at`."""
    effective = Price.objects.filter(effective_at__lte=at)
    return list(effective.order_by("model", "meter", "-version").distinct("model", "meter"))


def price_in_force(model: str, meter: Meter, at: datetime) -> Decimal | None:
    """US dollars per million, or None where the book has no price."""
    price = Price.objects.filter(model=model, meter=meter, effective_at__lte=at).order_by("-version").first()
    return price.usd_per_million if price else None


def _balance(team_id: str, kind: AccountKind) -> int:
    balance = Account.objects.filter(team_id=team_id, kind=kind).values_list("balance_microusd", flat=True).first()
    return balance or 0


def _totals(entries: QuerySet[LedgerEntry]) -> LedgerTotals:
    totals = entries.aggregate(amount=Sum("amount_microusd", default=0), number=Count("id"))
    return LedgerTotals(int(totals["amount"]), totals["number"])


def _lines(charges: QuerySet[Charge]) -> list[MeterLine]:
    order = ["subject_kind", "subject_id", "price__meter", "price__version"]
    return [meter_line(charge) for charge in charges.select_related("price").order_by(*order)]


def meter_line(charge: Charge) -> MeterLine:
    return MeterLine(
        subject_kind=charge.subject_kind,
        subject_id=charge.subject_id,
        meter=Meter(charge.price.meter),
        model=charge.price.model,
        price_version=charge.price.version,
        usd_per_million=charge.price.usd_per_million,
        quantity=charge.quantity,
        amount_microusd=charge.posted_microusd,
        last_billed_at=charge.last_billed_at,
    )
