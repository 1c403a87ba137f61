"""Money under whatever is done to it, at the size that the gate asks for.

R8: after any sequence of top-ups, usage, holds and releases of several teams the ledger sums to 0, transfer by transfer and as a
whole, each balance is the sum of its entries, and nobody can rewrite an entry. R9: what is billed is what the client counted,
however often and in whatever order the reports arrive.
"""

import itertools
import random
from collections import Counter

import pytest
from django.core.exceptions import ObjectDoesNotExist
from django.db import DatabaseError, transaction
from django.db.models import Sum
from django.db.models.functions import Coalesce

from controlplane.billing import metering, services
from controlplane.billing.gateways import NullGateway
from controlplane.billing.models import Account, LedgerEntry, MeterEvent
from controlplane.billing.price_book import publish_prices
from controlplane.billing.tariff import list_prices
from controlplane.core.errors import ApiError
from controlplane.core.tenancy import acting_as_system, acting_for
from tests.factories.teams import Member, make_member
from tests.fixtures.gates import Gate
from tests.functional.test_billing import MODEL, SPEC, event, hold, record, release
from trainer.contracts.base import new_id
from trainer.contracts.events import Meter

METERS = (Meter.TRAINING_TOKENS, Meter.ROLLOUT_INPUT_TOKENS, Meter.ROLLOUT_OUTPUT_TOKENS)
OPERATIONS = {"record": 6, "repeat": 2, "top_up": 2, "hold": 3, "release": 2}
TEAMS = 5


@pytest.fixture
def members(db) -> list[Member]:
    publish_prices(list_prices({MODEL: SPEC}))
    return [make_member() for _ in range(TEAMS)]


class Chance:
    """Random operations on random teams; the same seed does the same."""

    def __init__(self, seed: int, members: list[Member]) -> None:
        self.rng, self.members, self.done = random.Random(seed), members, Counter()
        self.sent: dict[str, list] = {member.team_id: [] for member in members}

    def act(self) -> None:
        member = self.rng.choice(self.members)
        (name,) = self.rng.choices(list(OPERATIONS), weights=list(OPERATIONS.values()))
        try:
            with transaction.atomic():
                getattr(self, f"_{name}")(member, f"run-{self.rng.randint(1, 4)}")
        except (ApiError, ObjectDoesNotExist):
            name = f"{name}, refused"
        self.done[name] += 1

    def _record(self, member: Member, subject: str) -> None:
        sequence = self.done.total()
        batch = [
            event(sequence * 10 + n, self.rng.randint(0, 10**6), self.rng.choice(METERS)) for n in range(self.rng.randint(1, 3))
        ]
        self.sent[member.team_id] = [*self.sent[member.team_id][-50:], (batch, subject)]
        record(member, batch, subject_id=subject)

    def _repeat(self, member: Member, subject: str) -> None:
        if self.sent[member.team_id]:
            batch, subject = self.rng.choice(self.sent[member.team_id])
            record(member, batch, subject_id=subject)

    def _top_up(self, member: Member, subject: str) -> None:
        # A little more comes in than usage takes out: most holds are granted, and some are refused.
        amount = self.rng.randint(1, 1_500_000)
        with acting_for(member.team_id):
            services.top_up(team_id=member.team_id, amount_microusd=amount, gateway=NullGateway())

    def _hold(self, member: Member, subject: str) -> None:
        hold(member, self.rng.randint(1, 10**6), subject_id=subject)

    def _release(self, member: Member, subject: str) -> None:
        release(member, subject_id=subject)


def imbalances() -> list[str]:
    """What does not add up, by name."""
    with acting_as_system():
        transfers = LedgerEntry.objects.values("transfer_id").annotate(total=Sum("amount_microusd")).exclude(total=0)
        wrong = [f"transfer {row['transfer_id']} sums to {row['total']}" for row in transfers]
        whole = LedgerEntry.objects.aggregate(total=Sum("amount_microusd"))["total"] or 0
        accounts = Account.objects.annotate(total=Coalesce(Sum("entries__amount_microusd"), 0))
        off = [account for account in accounts if account.balance_microusd != account.total]
        wrong += [f"account {account.pk} shows {account.balance_microusd}, its entries are {account.total}" for account in off]
    return wrong + ([f"the ledger sums to {whole}"] if whole else [])


def rewritten() -> list[str]:
    """Attempts to change history that the database let pass."""
    passed = []
    with acting_as_system():
        entries = LedgerEntry.objects.all()
        changes = {"update": lambda: entries.update(amount_microusd=0), "delete": lambda: entries._raw_delete(entries.db)}
        for name, change in changes.items():
            try:
                with transaction.atomic():
                    change()
                passed.append(name)
            except DatabaseError:
                continue
    return passed


@pytest.mark.heavy
@pytest.mark.gate("R8")
@pytest.mark.timeout(7200)
@pytest.mark.django_db(transaction=True)
def test_whatever_is_done_the_ledger_is_balanced_and_only_grows(members: list[Member], gate: Gate):
    """Each operation commits, so that the database's own rules judge it as well."""
    chance, operations = Chance(gate.seed, members), gate.pick(small=10_000, large=100_000)
    wrong = []
    for number in range(1, operations + 1):
        chance.act()
        if number % 1_000 == 0:
            wrong += imbalances()
    wrong += rewritten()
    gate.record(trials=operations, violations=len(wrong))
    assert wrong == []
    assert all(chance.done[name] > operations // 50 for name in OPERATIONS), chance.done


def count_differences(members: list[Member], rng: random.Random, *, facts: int) -> list[str]:
    """Report `facts` facts up to three times each, in any order and in batches of any size; what differs from the own count."""
    counted: Counter[tuple[str, str]] = Counter()
    reports = []
    for number in range(facts):
        member, fact = rng.choice(members), event(number, rng.randint(0, 10_000), rng.choice(METERS))
        counted[member.team_id, fact.meter] += fact.quantity
        reports += [(member, fact)] * rng.randint(1, 3)
    rng.shuffle(reports)
    while reports:
        size = rng.randint(1, 40)
        batch, reports = reports[:size], reports[size:]
        for member in members:
            record(member, [fact for owner, fact in batch if owner is member])
    with acting_as_system():
        rows = MeterEvent.objects.values_list("team_id", "meter").annotate(total=Sum("quantity"))
        billed = {(team_id, meter): total for team_id, meter, total in rows}
    return [
        f"{key}: billed {billed.get(key, 0)}, counted {number}" for key, number in counted.items() if billed.get(key, 0) != number
    ]


@pytest.mark.gate("R9")
@pytest.mark.timeout(1800)
def test_what_is_billed_is_what_the_client_counted(members: list[Member], gate: Gate):
    facts = gate.pick(small=300, large=50_000)
    wrong = count_differences(members, random.Random(gate.seed), facts=facts)
    gate.record(trials=facts, violations=len(wrong))
    assert wrong == []


# Each gate can fail


def test_r8_turns_red_when_one_side_of_a_transfer_is_skipped(members: list[Member]):
    Chance(0, members)._top_up(members[0], "")
    assert imbalances() == []
    with acting_as_system(), transaction.atomic():
        one_side = LedgerEntry.objects.latest("created_at")
        one_side.pk = new_id()
        one_side.save(force_insert=True)
        assert any("sums to" in line for line in imbalances())
        # PostgreSQL itself would refuse this at the commit.
        transaction.set_rollback(True)


def test_r9_turns_red_when_a_repeated_report_counts_again(members: list[Member], monkeypatch):
    identities = (f"{number:064x}" for number in itertools.count())
    monkeypatch.setattr(metering, "_event_id", lambda reported, fact: next(identities))
    assert count_differences(members, random.Random(0), facts=50) != []
