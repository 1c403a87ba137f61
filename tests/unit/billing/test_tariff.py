"""Promise: every meter has a price, for every model of the catalogue."""

from decimal import Decimal

from controlplane.billing.tariff import list_prices, priced_model
from trainer.contracts.catalogue import BaseModelSpec, ModelPrices
from trainer.contracts.events import Meter

SPEC = BaseModelSpec(
    id="tiny",
    display_name="Tiny",
    description="",
    license="Apache-2.0",
    weights="tiny",
    tokenizer="tiny",
    renderer={"name": "default"},
    context_tokens=2048,
    target_modules=("q_proj",),
    rank_max=64,
    prices_usd_per_mtok=ModelPrices(input=Decimal("0.02"), output=Decimal("0.06"), training=Decimal("0.07")),
)


def test_every_meter_is_priced_under_the_model_it_is_looked_up_by() -> None:
    listed = {(price.model, price.meter): price.usd_per_million for price in list_prices({"tiny": SPEC})}
    assert set(listed) == {(priced_model(meter, "tiny"), meter) for meter in Meter}


def test_rollouts_cost_what_inference_costs() -> None:
    listed = {price.meter: price.usd_per_million for price in list_prices({"tiny": SPEC})}
    assert listed[Meter.ROLLOUT_INPUT_TOKENS] == listed[Meter.INFERENCE_INPUT_TOKENS] == Decimal("0.02")
    assert listed[Meter.ROLLOUT_OUTPUT_TOKENS] == listed[Meter.INFERENCE_OUTPUT_TOKENS] == Decimal("0.06")
    assert listed[Meter.TRAINING_TOKENS] == Decimal("0.07")
