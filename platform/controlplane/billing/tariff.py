"""What is on sale and at which list price. Knows the catalogue and two flat prices; refuses to know versions and rows.

This is the source that the price book is published from. A new meter needs one line here.
"""

from collections.abc import Iterator
from decimal import Decimal
from typing import NamedTuple

from trainer.contracts.catalogue import BaseModelSpec, ModelPrices
from trainer.contracts.events import Meter

ANY_MODEL = ""
"""Model of a price that holds whatever the model is."""

FLAT_USD_PER_MILLION: dict[Meter, Decimal] = {
    Meter.SANDBOX_SECONDS: Decimal("14"),  # 0.0504 USD an hour
    Meter.JUDGE_CALLS: Decimal("100"),
}
_MODEL_PRICE: dict[Meter, str] = {
    Meter.TRAINING_TOKENS: "training",
    Meter.ROLLOUT_INPUT_TOKENS: "input",
    Meter.ROLLOUT_OUTPUT_TOKENS: "output",
    Meter.INFERENCE_INPUT_TOKENS: "input",
    Meter.INFERENCE_OUTPUT_TOKENS: "output",
}


class ListPrice(NamedTuple):
    model: str
    meter: Meter
    usd_per_million: Decimal


def priced_model(meter: Meter, model: str) -> str:
    """The model under which the price of `meter` is booked."""
    return model if meter in _MODEL_PRICE else ANY_MODEL


def model_price(prices: ModelPrices, meter: Meter) -> Decimal:
    price: Decimal = getattr(prices, _MODEL_PRICE[meter])
    return price


def list_prices(catalogue: dict[str, BaseModelSpec]) -> Iterator[ListPrice]:
    """Every price that is to be in force now."""
    for meter, usd in FLAT_USD_PER_MILLION.items():
        yield ListPrice(ANY_MODEL, meter, usd)
    for spec in catalogue.values():
        for meter in _MODEL_PRICE:
            yield ListPrice(spec.id, meter, model_price(spec.prices_usd_per_mtok, meter))
