"""Promises of money, on PostgreSQL as the application's role: recorded once, charged exactly, balanced, append-only."""

import random
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest
from django.core.management import call_command
from django.db import DatabaseError, IntegrityError, connection, transaction

from controlplane.billing import ledger, queries, services
from controlplane.billing.gateways import NullGateway
from controlplane.billing.ledger import Entry
from controlplane.billing.models import Account, AccountKind, Charge, LedgerEntry, MeterEvent, Price, Transfer, TransferKind
from controlplane.billing.price_book import publish_prices
from controlplane.billing.tariff import ListPrice, list_prices
from controlplane.core.errors import PaymentRequired
from controlplane.core.tenancy import acting_as_system, acting_for
from tests.factories.teams import Member, make_member
from trainer.contracts.base import new_id
from trainer.contracts.catalogue import BaseModelSpec, ModelPrices
from trainer.contracts.events import Meter
from trainer.contracts.internal import UsageIn

MODEL = "priced"
SPEC = BaseModelSpec(
    id=MODEL,
    display_name="Priced",
    description="",
    license="Apache-2.0",
    weights="none",
    tokenizer="none",
    renderer={"name": "none"},
    context_tokens=2048,
    target_modules=("q_proj",),
    rank_max=8,
    prices_usd_per_mtok=ModelPrices(input=Decimal("0.07"), output=Decimal("0.21"), training=Decimal("0.33")),
)
AT = datetime(2026, 11, 1, tzinfo=UTC)


@pytest.fixture
def member(db) -> Member:
    publish_prices(list_prices({MODEL: SPEC}))
    return make_member()


def event(sequence: int, quantity: int, meter: Meter = Meter.TRAINING_TOKENS, at: datetime = AT) -> UsageIn:
    return UsageIn(meter=meter, sequence=str(sequence), quantity=quantity, at=at)


def record(member: Member, events: list[UsageIn], *, subject_id: str = "run-1", segment: int = 1):
    with acting_for(member.team_id):
        return services.record_usage(
            team_id=member.team_id, subject_kind="run", subject_id=subject_id, segment=segment, model=MODEL, events=events
        )


def pay_in(member: Member, amount_microusd: int) -> None:
    with acting_for(member.team_id):
        services.top_up(team_id=member.team_id, amount_microusd=amount_microusd, gateway=NullGateway())


def balance(member: Member) -> int:
    with acting_for(member.team_id):
        return queries.wallet_balance(member.actor.team)


def cost(member: Member, subject_id: str = "run-1") -> int:
    with acting_for(member.team_id):
        return queries.subject_usage("run", subject_id).total_microusd


# Recorded once


def test_a_replay_is_counted_and_free(member):
    first = record(member, [event(1, 100), event(2, 50)])
    again = record(member, [event(2, 50), event(1, 100), event(3, 10)])
    assert (first.inserted, first.duplicates) == (2, 0)
    assert (again.inserted, again.duplicates) == (1, 2)
    assert cost(member) == 160 * 33 // 100


def test_twins_inside_one_batch_count_once(member):
    receipt = record(member, [event(1, 100), event(1, 100)])
    assert (receipt.inserted, receipt.duplicates) == (1, 1)
    assert cost(member) == 33


def test_three_replays_in_random_order_leave_the_total(member):
    facts = [
        event(step, step % 97, meter) for step in range(120) for meter in (Meter.TRAINING_TOKENS, Meter.ROLLOUT_INPUT_TOKENS)
    ]
    replayed = facts * 3
    random.Random(7).shuffle(replayed)
    for start in range(0, len(replayed), 17):
        record(member, replayed[start : start + 17])
    tokens = sum(step % 97 for step in range(120))
    assert cost(member) == tokens * 33 // 100 + tokens * 7 // 100


def test_a_new_segment_is_new_usage(member):
    record(member, [event(1, 100)], segment=1)
    record(member, [event(1, 100)], segment=2)
    assert cost(member) == 66


def test_the_same_fact_of_another_team_is_another_fact(member):
    other = make_member()
    record(member, [event(1, 100)])
    record(other, [event(1, 200)])
    assert (cost(member), cost(other)) == (33, 66)


def test_an_unknown_price_records_nothing(member, client_of):
    with acting_for(member.team_id), pytest.raises(Exception, match="no price for training_tokens of model 'nobody'"):
        services.record_usage(
            team_id=member.team_id, subject_kind="run", subject_id="r", segment=1, model="nobody", events=[event(1, 1)]
        )
    with acting_for(member.team_id):
        assert not MeterEvent.objects.exists()


# Charged exactly


def test_small_pieces_add_up_to_the_floor_of_the_exact_amount(member):
    for step in range(50):
        record(member, [event(step, 1)])
    assert cost(member) == 50 * 33 // 100 == 16


def test_a_price_change_charges_each_fact_at_its_own_time(member, shift_clock):
    with acting_as_system():
        before = Price.objects.get(model=MODEL, meter=Meter.TRAINING_TOKENS)
        shift_clock(timedelta(hours=2))
        (after,) = publish_prices([ListPrice(MODEL, Meter.TRAINING_TOKENS, Decimal("0.66"))])
    assert after.version == 2
    record(member, [event(1, 100, at=before.effective_at), event(2, 100, at=after.effective_at + timedelta(hours=1))])
    with acting_for(member.team_id):
        lines = queries.subject_usage("run", "run-1").lines
    assert [(line.price_version, line.amount_microusd) for line in lines] == [(1, 33), (2, 66)]


def test_publishing_the_same_prices_again_makes_no_version(member):
    assert publish_prices(list_prices({MODEL: SPEC})) == []


def test_the_command_publishes_the_catalogue_once(db, capsys):
    call_command("publish_prices")
    assert f"{Meter.TRAINING_TOKENS} tiny v1: " in capsys.readouterr().out
    call_command("publish_prices")
    assert capsys.readouterr().out == ""


def test_prices_are_immutable(member):
    with pytest.raises(DatabaseError), transaction.atomic():
        Price.objects.update(usd_per_million=1)


# Balanced, append-only


def test_the_ledger_sums_to_zero_and_the_wallet_is_its_entries(member):
    pay_in(member, 1_000_000)
    record(member, [event(1, 12_345), event(2, 999, Meter.ROLLOUT_OUTPUT_TOKENS)])
    with acting_for(member.team_id):
        totals = queries.ledger_totals()
        wallet = Account.objects.get(kind=AccountKind.WALLET)
        entries = sum(LedgerEntry.objects.filter(account=wallet).values_list("amount_microusd", flat=True))
    assert totals.sum_microusd == 0 and totals.entries_count > 0
    assert wallet.balance_microusd == entries == 1_000_000 - cost(member)


def test_posted_charges_equal_the_entries_that_paid_for_them(member):
    pay_in(member, 1_000_000)
    for step in range(20):
        record(member, [event(step, 37), event(step, 11, Meter.ROLLOUT_INPUT_TOKENS)])
    with acting_for(member.team_id):
        for charge in Charge.objects.all():
            revenue = charge.entries.filter(account__kind=AccountKind.REVENUE)
            assert sum(revenue.values_list("amount_microusd", flat=True)) == charge.posted_microusd


@pytest.mark.parametrize("table", ["billing_ledgerentry", "billing_transfer", "billing_meterevent", "billing_price"])
@pytest.mark.parametrize("statement", ["UPDATE {} SET id = id", "DELETE FROM {}"])
def test_history_is_append_only(member, table, statement):
    pay_in(member, 1_000_000)
    record(member, [event(1, 100)])
    with acting_as_system(), pytest.raises(DatabaseError), transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(statement.format(table))


def test_a_balance_is_never_written(member):
    pay_in(member, 1_000_000)
    with acting_for(member.team_id), pytest.raises(DatabaseError, match="sum of its entries"), transaction.atomic():
        Account.objects.filter(kind=AccountKind.WALLET).update(balance_microusd=5)


def post_raw(team_id: str, *entries: tuple[str, int]) -> None:
    """Entries past the service, as a bug would write them."""
    accounts = ledger.lock_accounts(team_id)
    transfer = Transfer.objects.create(team_id=team_id, kind=TransferKind.TOP_UP, key=new_id())
    for kind, amount in entries:
        LedgerEntry.objects.create(team_id=team_id, transfer=transfer, account=accounts.by_kind[kind], amount_microusd=amount)


@pytest.mark.django_db(transaction=True)
def test_the_database_refuses_an_unbalanced_transfer_at_commit():
    member = make_member()
    with acting_for(member.team_id), pytest.raises(IntegrityError, match="does not balance"), transaction.atomic():
        post_raw(member.team_id, ("wallet", 5), ("cash", -4))
    with acting_for(member.team_id), transaction.atomic():
        post_raw(member.team_id, ("wallet", 5), ("cash", -5))
    assert balance(member) == 5


@pytest.mark.django_db(transaction=True)
def test_the_balance_check_sees_the_entries_although_the_scope_has_ended():
    member = make_member()
    with transaction.atomic():
        with acting_for(member.team_id):
            post_raw(member.team_id, ("wallet", 5), ("cash", -5))
        with acting_for(make_member().team_id):
            LedgerEntry.objects.count()
    assert balance(member) == 5


def test_the_service_refuses_an_unbalanced_transfer(member):
    with acting_for(member.team_id), transaction.atomic(), pytest.raises(ValueError, match="does not balance"):
        accounts = ledger.lock_accounts(member.team_id)
        ledger.post_transfer(accounts, kind=TransferKind.TOP_UP, key="x", entries=[Entry(AccountKind.WALLET, 1)])


# Funds and holds


def test_an_empty_wallet_is_refused_and_the_boundary_counts_as_empty(member):
    with acting_for(member.team_id), pytest.raises(PaymentRequired):
        services.require_funds(member.actor.team)
    pay_in(member, 33)
    with acting_for(member.team_id):
        services.require_funds(member.actor.team)
    record(member, [event(1, 100)])
    with acting_for(member.team_id), pytest.raises(PaymentRequired):
        services.require_funds(member.actor.team)
    assert balance(member) == 0


def hold(member: Member, amount_microusd: int, subject_id: str = "run-1"):
    with acting_for(member.team_id):
        return services.place_hold(
            team_id=member.team_id, subject_kind="run", subject_id=subject_id, amount_microusd=amount_microusd
        )


def release(member: Member, subject_id: str = "run-1") -> None:
    with acting_for(member.team_id):
        services.release_hold(team_id=member.team_id, subject_kind="run", subject_id=subject_id)


def test_a_hold_leaves_the_wallet_and_the_rest_comes_back(member):
    pay_in(member, 1_000)
    assert hold(member, 600).pk == hold(member, 600).pk
    assert balance(member) == 400
    record(member, [event(1, 1_000)])
    assert balance(member) == 400
    release(member)
    release(member)
    assert balance(member) == 1_000 - 330


def test_usage_beyond_the_hold_is_taken_from_the_wallet(member):
    pay_in(member, 1_000)
    hold(member, 100)
    record(member, [event(1, 1_000)])
    assert balance(member) == 900 - 230
    release(member)
    assert balance(member) == 670


def test_a_hold_is_not_drawn_on_by_another_subject(member):
    pay_in(member, 1_000)
    hold(member, 600, "run-2")
    record(member, [event(1, 1_000)])
    release(member, "run-2")
    assert balance(member) == 670


def test_a_hold_needs_the_money(member):
    pay_in(member, 100)
    with pytest.raises(PaymentRequired):
        hold(member, 101)
    assert balance(member) == 100


def test_work_with_a_hold_goes_on_when_the_wallet_is_empty(member):
    pay_in(member, 100)
    hold(member, 100)
    with acting_for(member.team_id):
        assert queries.is_exhausted(member.team_id)
        assert not queries.is_exhausted(member.team_id, subject_kind="run", subject_id="run-1")


# Concurrency


@pytest.mark.django_db(transaction=True)
def test_concurrent_overlapping_reports_of_one_wallet_are_exact():
    publish_prices(list_prices({MODEL: SPEC}))
    member = make_member()
    pay_in(member, 10_000_000)
    facts = [event(step, 101, meter) for step in range(60) for meter in (Meter.TRAINING_TOKENS, Meter.ROLLOUT_OUTPUT_TOKENS)]

    def report(seed: int) -> None:
        mine = list(facts)
        random.Random(seed).shuffle(mine)
        try:
            for start in range(0, len(mine), 10):
                record(member, mine[start : start + 10])
        finally:
            connection.close()

    with ThreadPoolExecutor(6) as threads:
        list(threads.map(report, range(6)))
    expected = 6_060 * 33 // 100 + 6_060 * 21 // 100
    assert cost(member) == expected
    assert balance(member) == 10_000_000 - expected
    with acting_as_system():
        assert queries.ledger_totals().sum_microusd == 0


@pytest.mark.django_db(transaction=True)
def test_concurrent_holds_never_promise_more_than_there_is():
    member = make_member()
    pay_in(member, 10)

    def try_hold(number: int) -> bool:
        try:
            hold(member, 3, f"run-{number}")
        except PaymentRequired:
            return False
        finally:
            connection.close()
        return True

    with ThreadPoolExecutor(6) as threads:
        assert sum(threads.map(try_hold, range(12))) == 3
    assert balance(member) == 1
