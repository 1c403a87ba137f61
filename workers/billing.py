"""Sweeps of money: keeps the price book up to the catalogue."""

from controlplane.billing import price_book
from workers.app import app


@app.task(name="billing.publish_prices")
def publish_prices() -> int:
    return len(price_book.publish_prices())
