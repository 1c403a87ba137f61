"""HTTP of money: parse, call, render. Every figure comes from `queries`, so that pages, CLI and ledger cannot disagree."""

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from controlplane.billing import queries, services
from controlplane.billing.gateways import configured_gateway
from controlplane.billing.models import AccountKind
from controlplane.billing.schemas import (
    BillingRow,
    DailyQuery,
    DailyRow,
    DailyUsage,
    EntryRow,
    LedgerAnswer,
    MeterRow,
    PriceList,
    PriceRow,
    RunPricing,
    RunUsage,
    TeamUsage,
    TopUpAnswer,
    TopUpRequest,
    UsageBucket,
    UsageQuery,
    WalletAnswer,
    WalletQuery,
    dollars,
)
from controlplane.core import clock
from controlplane.core.declarations import PUBLIC
from controlplane.core.pagination import CursorQuery, cursor_page
from controlplane.core.schemas import query_parameters, read_body, read_query, render
from controlplane.core.views import ApiView
from controlplane.runs.access import access_run
from controlplane.teams.actors import actor_in
from trainer.contracts.events import Meter


class WalletView(ApiView):
    scope = "billing"

    @extend_schema(operation_id="billing_wallet", parameters=query_parameters(WalletQuery), responses=WalletAnswer)
    def get(self, request: Request) -> Response:
        """What the team may spend, and what it has spent on what."""
        query, team = read_query(request, WalletQuery), actor_in(request).team
        charges = queries.recent_charges(team)
        balance = queries.wallet_balance(team)
        answer = WalletAnswer(
            wallet_id=team.id,
            team_id=team.id,
            balance_usd=dollars(balance),
            balance_microusd=balance,
            held_microusd=queries.account_balance(team, AccountKind.HELD),
            total_billings=charges.count(),
            recent_billings=[BillingRow.of(charge) for charge in charges[query.offset : query.offset + query.limit]],
        )
        return render(answer)


class TopUpsView(ApiView):
    scope = "billing"

    @extend_schema(operation_id="billing_top_ups_create", request=TopUpRequest, responses={201: TopUpAnswer})
    def post(self, request: Request) -> Response:
        """Pay money in."""
        body, actor, gateway = read_body(request, TopUpRequest), actor_in(request), configured_gateway()
        actor.require_admin()
        row = services.top_up(team_id=actor.team_id, amount_microusd=body.total_microusd, gateway=gateway)
        answer = TopUpAnswer.of(row, notice=gateway.notice, balance_microusd=queries.wallet_balance(actor.team))
        return render(answer, status=201)


class RunUsageView(ApiView):
    scope = "billing"

    @extend_schema(operation_id="billing_run_usage", responses=RunUsage)
    def get(self, request: Request, run_id: str) -> Response:
        """Everything that a run caused, by bucket and itemised by meter."""
        run = access_run(actor_in(request), run_id)
        usage = queries.subject_usage("run", run.pk)
        answer = RunUsage(
            run_id=run.pk,
            run_name=run.name,
            base_model=run.base_model,
            status=run.state,
            training=UsageBucket.of(usage.training),
            inference=UsageBucket.of(usage.inference),
            total_tokens=usage.training.quantity + usage.inference.quantity,
            total_cost_usd=dollars(usage.total_microusd),
            total_cost_microusd=usage.total_microusd,
            pricing=run_pricing(run.base_model),
            record_count=queries.subject_events_count("run", run.pk),
            meters=[MeterRow.of(line) for line in usage.lines],
        )
        return render(answer)


class TeamUsageView(ApiView):
    scope = "billing"

    @extend_schema(operation_id="billing_usage", parameters=query_parameters(UsageQuery), responses=TeamUsage)
    def get(self, request: Request) -> Response:
        """The team's bill: a line per subject, meter and price; `subject_id` leaves the lines of one run, evaluation or model."""
        query = read_query(request, UsageQuery)
        charges = queries.team_charges(actor_in(request).team, query.subject_id)
        page = cursor_page(charges, query, lambda charge: MeterRow.of(queries.meter_line(charge)))
        return render(TeamUsage.of(page, queries.charges_total(charges)))


class DailyUsageView(ApiView):
    scope = "billing"

    @extend_schema(operation_id="billing_daily_usage", parameters=query_parameters(DailyQuery), responses=DailyUsage)
    def get(self, request: Request) -> Response:
        """What the team's usage has cost on each of the last days, by meter."""
        first_day, costs = queries.daily_costs(actor_in(request).team, days=read_query(request, DailyQuery).days)
        return render(DailyUsage(first_day=first_day, rows=[DailyRow(**cost._asdict()) for cost in costs]))


class LedgerView(ApiView):
    scope = "billing"

    @extend_schema(operation_id="billing_ledger", parameters=query_parameters(CursorQuery), responses=LedgerAnswer)
    def get(self, request: Request) -> Response:
        """The team's ledger entries, newest first, and their sum, which is always zero."""
        query, team = read_query(request, CursorQuery), actor_in(request).team
        page = cursor_page(queries.team_entries(team), query, EntryRow.of)
        return render(LedgerAnswer.of(page, queries.team_ledger_totals(team)))


class PricesView(ApiView):
    """The prices in force, for everybody: they are on the price list."""

    scope = PUBLIC

    @extend_schema(operation_id="billing_prices", responses=PriceList)
    def get(self, request: Request) -> Response:
        """The prices in force."""
        rows = [PriceRow.of(price) for price in queries.prices_in_force(clock.now())]
        return render(PriceList(prices=rows))


def run_pricing(base_model: str) -> RunPricing:
    """What the model costs now. What a run was billed at stands in its lines, with the version of each price."""
    moment = clock.now()

    def price(meter: Meter) -> float:
        return float(queries.price_in_force(base_model, meter, moment) or 0)

    return RunPricing(
        training_per_mtok=price(Meter.TRAINING_TOKENS),
        inference_input_per_mtok=price(Meter.ROLLOUT_INPUT_TOKENS),
        inference_output_per_mtok=price(Meter.ROLLOUT_OUTPUT_TOKENS),
    )
