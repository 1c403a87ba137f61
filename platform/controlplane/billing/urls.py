"""Routes of the app, below `/api/v1` (see `controlplane.urls`)."""

from controlplane.billing import api
from controlplane.core.routes import endpoint

urlpatterns = [
    *endpoint("billing/wallet", api.WalletView),
    *endpoint("billing/top-ups", api.TopUpsView),
    *endpoint("billing/runs/<str:run_id>/usage", api.RunUsageView),
    *endpoint("billing/usage", api.TeamUsageView),
    *endpoint("billing/usage/daily", api.DailyUsageView),
    *endpoint("billing/ledger", api.LedgerView),
    *endpoint("billing/prices", api.PricesView),
]
