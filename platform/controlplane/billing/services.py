"""Writes of money: one transaction each, no network. Billing is told what happened and never asks other apps.

Idempotency: usage by the ids of its facts, holds by their subject, top-ups by the `Idempotency-Key` of their request.
"""

from dataclasses import dataclass

from django.db import transaction

from controlplane.billing import ledger, metering, queries
from controlplane.billing.gateways import PaymentGateway
from controlplane.billing.identity import Subject
from controlplane.billing.ledger import Accounts, Entry
from controlplane.billing.models import AccountKind, Hold, TopUp, TopUpStatus, TransferKind
from controlplane.core import clock
from controlplane.core.errors import Conflict, PaymentRequired
from controlplane.core.money import MICRO
from controlplane.teams.models import Team
from controlplane.webhooks.models import EventType
from controlplane.webhooks.publishing import page_url, publish
from trainer.contracts.internal import UsageIn, UsageReceipt

TOP_UP_MAX_MICROUSD = 100_000 * MICRO
LOW_WALLET_MICROUSD = MICRO
"""A wallet that falls below this is told of once, until it has been filled again."""
EMPTY_WALLET = "the wallet is empty"
EMPTY_WALLET_HINT = "Top up with `prime wallet top-up AMOUNT` or POST /api/v1/billing/top-ups."


@transaction.atomic
def open_wallet(team: Team) -> None:
    """Make the team's accounts. Repeatable; every payment does it where it was forgotten."""
    ledger.open_accounts(team.pk)


def require_funds(team: Team) -> None:
    """Refuse to start paid work on an empty wallet. Raises PaymentRequired at a balance of zero or below."""
    if queries.is_exhausted(team.pk):
        raise PaymentRequired(EMPTY_WALLET, hint=EMPTY_WALLET_HINT)


@transaction.atomic
def record_usage(
    *, team_id: str, subject_kind: str, subject_id: str, segment: int, model: str, events: list[UsageIn]
) -> UsageReceipt:
    """Record facts once, add them to the subject's charges, post what they owe. Replays are counted and free.

    `model` is the base model that the prices are listed under. Raises UnknownPrice, and then records nothing.
    """
    reported = metering.Reported(team_id, Subject(subject_kind, subject_id), segment, model)
    fresh = metering.insert_new(reported, events)
    due = metering.add_to_charges(reported, fresh.values()) if fresh else []
    if due:
        _post_usage(reported, due, key=metering.batch_key(fresh))
    return UsageReceipt(inserted=len(fresh), duplicates=len(events) - len(fresh))


@transaction.atomic
def place_hold(*, team_id: str, subject_kind: str, subject_id: str, amount_microusd: int) -> Hold:
    """Reserve money for a subject before its work starts. Asking again for the same subject returns the hold that is open.

    Raises PaymentRequired when the wallet holds less than the amount.
    """
    accounts = ledger.lock_accounts(team_id)
    open_hold = _open_hold(team_id, Subject(subject_kind, subject_id))
    if open_hold is not None:
        return open_hold
    if accounts.balance_microusd(AccountKind.WALLET) < amount_microusd:
        raise PaymentRequired("the wallet does not cover what this work may cost", hint=EMPTY_WALLET_HINT)
    hold = Hold.objects.create(
        team_id=team_id,
        subject_kind=subject_kind,
        subject_id=subject_id,
        amount_microusd=amount_microusd,
        remaining_microusd=amount_microusd,
    )
    _move_to_held(accounts, amount_microusd, kind=TransferKind.HOLD, key=f"hold:{hold.pk}")
    return hold


@transaction.atomic
def release_hold(*, team_id: str, subject_kind: str, subject_id: str) -> None:
    """Give back what a finished subject did not use. Nothing to release is no error: ends are reported more than once."""
    accounts = ledger.lock_accounts(team_id)
    hold = _open_hold(team_id, Subject(subject_kind, subject_id))
    if hold is None:
        return
    if hold.remaining_microusd:
        _move_to_held(accounts, -hold.remaining_microusd, kind=TransferKind.RELEASE, key=f"release:{hold.pk}")
    hold.remaining_microusd = 0
    hold.released_at = clock.now()
    hold.save(update_fields=["remaining_microusd", "released_at"])


@transaction.atomic
def top_up(*, team_id: str, amount_microusd: int, gateway: PaymentGateway) -> TopUp:
    """Take money in through `gateway`."""
    row = TopUp.objects.create(team_id=team_id, amount_microusd=amount_microusd, gateway=gateway.name)
    if gateway.settles_at_once:
        settle_top_up(row)
    return row


@transaction.atomic
def settle_top_up(row: TopUp) -> None:
    """The money has arrived: cash → wallet, once. Raises Conflict for a top-up that had failed."""
    accounts = ledger.lock_accounts(row.team_id)
    row.refresh_from_db()
    if row.status == TopUpStatus.SETTLED:
        return
    if row.status == TopUpStatus.FAILED:
        raise Conflict("the payment of this top-up failed")
    amount = row.amount_microusd
    entries = [Entry(AccountKind.CASH, -amount), Entry(AccountKind.WALLET, amount)]
    ledger.post_transfer(accounts, kind=TransferKind.TOP_UP, key=f"top_up:{row.pk}", entries=entries)
    row.status = TopUpStatus.SETTLED
    row.save(update_fields=["status"])


@dataclass
class _Draw:
    """What a subject's open hold still covers while a batch is being posted."""

    hold: Hold | None

    def take(self, wanted_microusd: int) -> int:
        if self.hold is None:
            return 0
        taken = min(wanted_microusd, self.hold.remaining_microusd)
        self.hold.remaining_microusd -= taken
        return taken


def _post_usage(reported: metering.Reported, due: list[metering.Due], *, key: str) -> None:
    accounts = ledger.lock_accounts(reported.team_id)
    draw = _Draw(_open_hold(reported.team_id, reported.subject))
    entries = [
        entry
        for charge, amount in due
        for entry in ledger.charge_entries(charge, due_microusd=amount, from_held_microusd=draw.take(amount))
    ]
    ledger.post_transfer(accounts, kind=TransferKind.USAGE, key=key, entries=entries)
    if draw.hold is not None:
        draw.hold.save(update_fields=["remaining_microusd"])
    _tell_low_wallet(accounts, entries, key=key)


def _tell_low_wallet(accounts: Accounts, entries: list[Entry], *, key: str) -> None:
    before = accounts.balance_microusd(AccountKind.WALLET)
    after = before + sum(entry.amount_microusd for entry in entries if entry.account == AccountKind.WALLET)
    if before >= LOW_WALLET_MICROUSD > after:
        data = {"balance_microusd": after, "reason": f"the balance fell below ${LOW_WALLET_MICROUSD // MICRO}"}
        publish(accounts.team_id, EventType.WALLET_LOW, key=key, data=data | {"url": page_url("/billing")})


def _open_hold(team_id: str, subject: Subject) -> Hold | None:
    """The subject's open hold. Read under the lock of the team's accounts, which every writer of holds takes first."""
    return Hold.objects.filter(
        team_id=team_id, subject_kind=subject.kind, subject_id=subject.id, released_at__isnull=True
    ).first()


def _move_to_held(accounts: Accounts, amount_microusd: int, *, kind: TransferKind, key: str) -> None:
    entries = [Entry(AccountKind.WALLET, -amount_microusd), Entry(AccountKind.HELD, amount_microusd)]
    ledger.post_transfer(accounts, kind=kind, key=key, entries=entries)
