"""Money over HTTP, as the public client and our own read it."""

from datetime import UTC, datetime
from decimal import Decimal

import pytest

from controlplane.billing.services import record_usage
from controlplane.core import clock
from controlplane.core.tenancy import acting_for
from tests.factories.runs import MODEL, fund, make_pool, make_run
from tests.factories.teams import make_member, make_shared_team
from trainer.contracts.events import Meter
from trainer.contracts.internal import UsageIn

pytestmark = pytest.mark.django_db
AT = datetime(2026, 11, 1, tzinfo=UTC)
QUANTITIES = {
    Meter.TRAINING_TOKENS: 5_000,
    Meter.ROLLOUT_INPUT_TOKENS: 7_000,
    Meter.ROLLOUT_OUTPUT_TOKENS: 3_000,
    Meter.SANDBOX_SECONDS: 90,
}


@pytest.fixture
def member():
    make_pool()
    member = make_member()
    fund(member, 10)
    return member


@pytest.fixture
def run(member):
    run = make_run(member)
    events = [UsageIn(meter=meter, sequence="1", quantity=quantity, at=AT) for meter, quantity in QUANTITIES.items()]
    with acting_for(member.team_id):
        record_usage(team_id=member.team_id, subject_kind="run", subject_id=run.id, segment=1, model=MODEL, events=events)
    return run


def test_a_top_up_settles_at_once_and_says_that_no_money_moved(member, client_of):
    answer = client_of(member).post("/api/v1/billing/top-ups", {"amount_usd": "2.50"})
    assert answer.status_code == 201
    body = answer.json()
    assert (body["status"], body["gateway"], body["amount_microusd"]) == ("settled", "null", 2_500_000)
    assert "without a real payment" in body["notice"]
    assert body["balance_microusd"] == 12_500_000 and body["balance_usd"] == 12.5


def test_an_idempotency_key_pays_once(member, client_of):
    client = client_of(member)
    first, again = (
        client.post("/api/v1/billing/top-ups", {"amount_usd": 1}, headers={"Idempotency-Key": "abc"}) for _ in range(2)
    )
    assert first.json()["id"] == again.json()["id"] and again.json()["balance_microusd"] == 11_000_000
    other = client.post("/api/v1/billing/top-ups", {"amount_usd": 2}, headers={"Idempotency-Key": "abc"})
    assert (other.status_code, other.json()["code"]) == (422, "idempotency_mismatch")


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"amount_usd": 0}, "amount_usd"),
        ({"amount_usd": -1}, "amount_usd"),
        ({"amount_usd": "0.0000001"}, "amount_usd"),
        ({"amount_usd": "NaN"}, "amount_usd"),
        ({"amount_microusd": 10**12}, "amount_microusd"),
        ({"amount_usd": 1, "amount_microusd": 1}, None),
        ({}, None),
        ({"amount_usd": 1, "coupon": "x"}, "coupon"),
    ],
)
def test_a_bad_top_up_is_refused_by_name(member, client_of, body, field):
    answer = client_of(member).post("/api/v1/billing/top-ups", body)
    assert answer.status_code == 422
    if field:
        assert answer.json()["detail"][0]["loc"] == ["body", field]


def test_only_an_admin_pays_in(member, client_of):
    _, plain = make_shared_team(member, make_member())
    answer = client_of(plain).post("/api/v1/billing/top-ups", {"amount_usd": 1})
    assert (answer.status_code, answer.json()["code"]) == (403, "admin_required")


def test_the_wallet_lists_everything_that_was_charged(member, run, client_of):
    body = client_of(member).get("/api/v1/billing/wallet").json()
    assert body["total_billings"] == len(body["recent_billings"]) == len(QUANTITIES)
    assert {row["resource_type"] for row in body["recent_billings"]} == {"training", "inference", "sandbox"}
    assert {row["resource_id"] for row in body["recent_billings"]} == {run.id}
    assert body["balance_microusd"] == 10_000_000 - sum(row["amount_microusd"] for row in body["recent_billings"])
    page = client_of(member).get("/api/v1/billing/wallet?limit=1&offset=3").json()
    assert page["recent_billings"] == body["recent_billings"][3:]


def test_a_runs_usage_adds_up_and_can_be_recomputed_from_the_price_list(member, run, client_of):
    client = client_of(member)
    usage = client.get(f"/api/v1/billing/runs/{run.id}/usage").json()
    prices = {
        (row["model"], row["meter"]): row["usd_per_million"] for row in client.get("/api/v1/billing/prices").json()["prices"]
    }
    assert usage["training"]["tokens"] == 5_000
    assert (usage["inference"]["input_tokens"], usage["inference"]["output_tokens"]) == (7_000, 3_000)
    assert usage["total_tokens"] == 15_000 and usage["record_count"] == len(QUANTITIES)
    assert usage["pricing"]["training_per_mtok"] == float(prices[MODEL, "training_tokens"])
    assert usage["total_cost_microusd"] == sum(line["amount_microusd"] for line in usage["meters"])
    for line in usage["meters"]:
        assert line["amount_microusd"] == int(Decimal(prices[line["model"], line["meter"]]) * line["quantity"])


def test_the_teams_bill_the_run_and_the_ledger_agree(member, run, client_of):
    client = client_of(member)
    bill = client.get("/api/v1/billing/usage").json()
    run_cost = client.get(f"/api/v1/billing/runs/{run.id}/usage").json()["total_cost_microusd"]
    first = client.get("/api/v1/billing/ledger?limit=3").json()
    entries, cursor = list(first["items"]), first["next_cursor"]
    while cursor:
        page = client.get("/api/v1/billing/ledger", {"limit": 3, "cursor": cursor}).json()
        entries, cursor = entries + page["items"], page["next_cursor"]
    assert first["sum_microusd"] == 0 and first["entries_count"] == len(entries) == len({entry["id"] for entry in entries})
    revenue = sum(entry["amount_microusd"] for entry in entries if entry["account"] == "revenue")
    assert bill["total_microusd"] == run_cost == revenue


def test_the_bill_comes_in_pages_with_the_whole_sum_on_each(member, run, client_of):
    client = client_of(member)
    whole = client.get("/api/v1/billing/usage", {"subject_id": run.id}).json()
    lines, cursor = [], ""
    while cursor is not None:
        page = client.get("/api/v1/billing/usage", {"limit": 1, "cursor": cursor}).json()
        assert len(page["items"]) == 1 and page["total_microusd"] == whole["total_microusd"]
        lines, cursor = lines + page["items"], page["next_cursor"]
    assert lines == whole["items"] and len(lines) == len(QUANTITIES)
    assert sum(line["amount_microusd"] for line in lines) == whole["total_microusd"] > 0
    nobodys = client.get("/api/v1/billing/usage", {"subject_id": "c" + "0" * 24}).json()
    assert (nobodys["items"], nobodys["total_microusd"]) == ([], 0)


def test_another_teams_run_has_no_bill_for_us(member, run, client_of):
    client = client_of(make_member())
    nobodys = "c" + "0" * 24
    foreign, absent = (client.get(f"/api/v1/billing/runs/{run_id}/usage") for run_id in (run.id, nobodys))
    assert foreign.status_code == absent.status_code == 404
    # The text names the id that was asked for; nothing else may differ.
    same = foreign.json()["detail"].replace(run.id, nobodys)
    assert {**foreign.json(), "detail": same, "request_id": ""} == {**absent.json(), "request_id": ""}
    assert client.get("/api/v1/billing/usage").json()["items"] == []
    assert client.get("/api/v1/billing/ledger").json()["entries_count"] == 0


def test_money_needs_a_key_and_prices_do_not(client_of):
    assert client_of().get("/api/v1/billing/wallet").status_code == 401
    assert client_of().get("/api/v1/billing/prices").status_code == 200


def test_daily_usage_sums_to_the_bill(member, run, client_of):
    client = client_of(member)
    daily, bill = client.get("/api/v1/billing/usage/daily?days=7").json(), client.get("/api/v1/billing/usage").json()
    assert sum(row["amount_microusd"] for row in daily["rows"]) == bill["total_microusd"] > 0
    assert {row["day"] for row in daily["rows"]} == {clock.now().astimezone(UTC).date().isoformat()}
    assert {row["meter"] for row in daily["rows"]} == {line["meter"] for line in bill["items"]}
    assert client.get("/api/v1/billing/usage/daily?days=0").status_code == 422
