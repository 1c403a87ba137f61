"""State of money. Knows columns and constraints; does no I/O beyond its own row.

Four accounts a team, whose entries sum to zero over every transfer and therefore over the team:

  cash     what the payment gateway received for the team (negative: it came from outside)
  wallet   what the team may still spend
  held     what is reserved for work that has started
  revenue  what the team's usage has cost

Prices, meter events, transfers and entries are append-only: triggers of the first migration refuse UPDATE and DELETE, keep
`Account.balance_microusd` equal to the sum of its entries, and check at commit that a transfer's entries sum to zero.
"""

from django.db import models
from django.db.models import F, Q

from controlplane.core.models import TenantModel
from trainer.contracts.events import Meter

SUBJECT_ID_LENGTH_MAX = 255
MODEL_LENGTH_MAX = 127
SEQUENCE_LENGTH_MAX = 128


class AccountKind(models.TextChoices):
    CASH = "cash"
    WALLET = "wallet"
    HELD = "held"
    REVENUE = "revenue"


class TransferKind(models.TextChoices):
    TOP_UP = "top_up"
    USAGE = "usage"
    HOLD = "hold"
    RELEASE = "release"


class TopUpStatus(models.TextChoices):
    PENDING = "pending"
    SETTLED = "settled"
    FAILED = "failed"


class Price(models.Model):
    """One version of one price. The newest version whose `effective_at` is not after a fact is that fact's price."""

    model = models.CharField(max_length=MODEL_LENGTH_MAX, blank=True)
    """Base model, or empty where the price holds whatever the model is."""
    meter = models.CharField(max_length=32, choices=[(meter.value, meter.value) for meter in Meter])
    version = models.PositiveIntegerField()
    usd_per_million = models.DecimalField(max_digits=20, decimal_places=9)
    effective_at = models.DateTimeField()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["model", "meter", "version"], name="price_version_once"),
            models.CheckConstraint(condition=Q(usd_per_million__gte=0), name="price_not_negative"),
        ]

    def __str__(self) -> str:
        return f"{self.meter} {self.model} v{self.version}: {self.usd_per_million} USD/M"


class SubjectModel(TenantModel):
    """Anything that is itemised by subject. `subject_id` is a public id, or a served model's name for kind `inference`."""

    subject_kind = models.CharField(max_length=16)
    subject_id = models.CharField(max_length=SUBJECT_ID_LENGTH_MAX)

    class Meta:
        abstract = True


class MeterEvent(SubjectModel):
    """A fact: this quantity was used. Its id is derived from the fact (`identity.py`), which makes a replay a no-op."""

    id = models.CharField(primary_key=True, max_length=64, editable=False)
    segment = models.PositiveIntegerField()
    model = models.CharField(max_length=MODEL_LENGTH_MAX, blank=True)
    meter = models.CharField(max_length=32)
    sequence = models.CharField(max_length=SEQUENCE_LENGTH_MAX)
    quantity = models.BigIntegerField()
    occurred_at = models.DateTimeField()

    class Meta:
        constraints = [models.CheckConstraint(condition=Q(quantity__gte=0), name="meterevent_not_negative")]
        indexes = [models.Index(fields=["subject_kind", "subject_id", "meter"], name="meterevent_by_subject")]

    def __str__(self) -> str:
        return f"{self.meter} {self.quantity} of {self.subject_kind} {self.subject_id}"


class Charge(SubjectModel):
    """The running total of one subject at one price version: cumulative quantity, and what of it is in the ledger."""

    price = models.ForeignKey(Price, on_delete=models.PROTECT, related_name="charges")
    quantity = models.BigIntegerField(default=0)
    posted_microusd = models.BigIntegerField(default=0)
    last_billed_at = models.DateTimeField()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["team", "subject_kind", "subject_id", "price"], name="charge_once_per_price"),
            models.CheckConstraint(condition=Q(quantity__gte=0, posted_microusd__gte=0), name="charge_not_negative"),
        ]
        indexes = [
            models.Index(fields=["subject_kind", "subject_id"], name="charge_by_subject"),
            models.Index(fields=["team", "-last_billed_at"], name="charge_newest_of_team"),
        ]

    def __str__(self) -> str:
        return f"{self.posted_microusd} micro-USD for {self.subject_kind} {self.subject_id}"


class Account(TenantModel):
    """`balance_microusd` is the sum of the account's entries, kept by a trigger and never written by code."""

    kind = models.CharField(max_length=8, choices=AccountKind)
    balance_microusd = models.BigIntegerField(default=0, editable=False)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["team", "kind"], name="account_once_per_kind"),
            models.CheckConstraint(condition=~Q(kind="held") | Q(balance_microusd__gte=0), name="account_held_not_negative"),
        ]

    def __str__(self) -> str:
        return f"{self.kind}: {self.balance_microusd} micro-USD"


class Transfer(TenantModel):
    """A balanced set of entries. `key` is the caller's name for the intent: the same intent is posted once."""

    kind = models.CharField(max_length=8, choices=TransferKind)
    key = models.CharField(max_length=128)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["team", "key"], name="transfer_once_per_key")]

    def __str__(self) -> str:
        return f"{self.kind} {self.key}"


class LedgerEntry(TenantModel):
    """One side of a transfer. A positive amount raises the account's balance."""

    transfer = models.ForeignKey(Transfer, on_delete=models.PROTECT, related_name="entries")
    account = models.ForeignKey(Account, on_delete=models.PROTECT, related_name="entries")
    charge = models.ForeignKey(Charge, on_delete=models.PROTECT, null=True, related_name="entries")
    """What the entry pays for, where it pays for usage."""
    amount_microusd = models.BigIntegerField()

    class Meta:
        constraints = [models.CheckConstraint(condition=~Q(amount_microusd=0), name="ledgerentry_not_zero")]
        indexes = [models.Index(fields=["team", "-created_at", "-id"], name="ledgerentry_newest_of_team")]

    def __str__(self) -> str:
        return f"{self.amount_microusd} micro-USD"


class Hold(SubjectModel):
    """Money reserved for one subject. Its usage draws on `remaining_microusd` first; the release gives the rest back."""

    amount_microusd = models.BigIntegerField()
    remaining_microusd = models.BigIntegerField()
    released_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["team", "subject_kind", "subject_id"],
                condition=Q(released_at__isnull=True),
                name="hold_one_open_per_subject",
            ),
            models.CheckConstraint(
                condition=Q(amount_microusd__gt=0, remaining_microusd__gte=0, remaining_microusd__lte=F("amount_microusd")),
                name="hold_within_amount",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.remaining_microusd} of {self.amount_microusd} micro-USD for {self.subject_kind} {self.subject_id}"


class TopUp(TenantModel):
    """Money that a team pays in."""

    amount_microusd = models.BigIntegerField()
    status = models.CharField(max_length=8, choices=TopUpStatus, default=TopUpStatus.PENDING)
    gateway = models.CharField(max_length=16)

    class Meta:
        constraints = [
            models.CheckConstraint(condition=Q(amount_microusd__gt=0), name="topup_positive"),
        ]

    def __str__(self) -> str:
        return f"{self.amount_microusd} micro-USD, {self.status}"
