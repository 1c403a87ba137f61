"""The versioned price book. Knows how list prices become versions and which version a fact falls under.

A version is never changed: a new price is a new row, in force from the moment of its publication, so that no fact of the past
ever changes its price.
"""

from collections.abc import Iterable
from datetime import datetime

from django.db import connection, transaction
from django.db.models import Q

from controlplane.billing.errors import UnknownPrice
from controlplane.billing.models import Price
from controlplane.billing.tariff import ListPrice, list_prices, priced_model
from controlplane.core import clock
from trainer.contracts.catalogue import load_catalogue
from trainer.contracts.events import Meter

_PUBLISH_LOCK = 0x7052_1CE5
"""Key of the advisory lock under which versions are numbered."""


@transaction.atomic
def publish_prices(listed: Iterable[ListPrice] | None = None) -> list[Price]:
    """Append a version for every price that differs from its newest one; without argument, for those of the catalogue.

    Idempotent: a second call publishes nothing. Returns what was published.
    """
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(%s)", [_PUBLISH_LOCK])
    newest = {(price.model, price.meter): price for price in Price.objects.order_by("version")}
    wanted = list(list_prices(load_catalogue()) if listed is None else listed)
    effective_at = clock.now()
    return Price.objects.bulk_create(
        _next_version(entry, newest.get((entry.model, entry.meter)), effective_at)
        for entry in wanted
        if _differs(entry, newest.get((entry.model, entry.meter)))
    )


def prices_for(model: str, meters: Iterable[Meter]) -> list[Price]:
    """Every version of the meters' prices under `model`, oldest first. Publishes the catalogue where one is missing.

    Raises UnknownPrice when the catalogue has none either.
    """
    wanted = {(priced_model(meter, model), meter) for meter in meters}
    found = _versions(wanted)
    if {(price.model, price.meter) for price in found} != wanted:
        publish_prices()
        found = _versions(wanted)
    missing = wanted - {(price.model, Meter(price.meter)) for price in found}
    for missing_model, meter in sorted(missing):
        raise UnknownPrice(meter, missing_model)
    return found


def price_at(versions: list[Price], meter: Meter, at: datetime) -> Price:
    """The version in force at `at`, or the first one for a fact that is older than the book. `versions` is oldest first."""
    of_meter = [price for price in versions if price.meter == meter]
    in_force = [price for price in of_meter if price.effective_at <= at]
    return in_force[-1] if in_force else of_meter[0]


def _versions(wanted: set[tuple[str, Meter]]) -> list[Price]:
    matching = Q(pk__in=[])
    for model, meter in wanted:
        matching |= Q(model=model, meter=meter)
    return list(Price.objects.filter(matching).order_by("version"))


def _differs(entry: ListPrice, newest: Price | None) -> bool:
    return newest is None or newest.usd_per_million != entry.usd_per_million


def _next_version(entry: ListPrice, newest: Price | None, effective_at: datetime) -> Price:
    return Price(
        model=entry.model,
        meter=entry.meter,
        version=newest.version + 1 if newest else 1,
        usd_per_million=entry.usd_per_million,
        effective_at=effective_at,
    )
