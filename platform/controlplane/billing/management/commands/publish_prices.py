"""`manage.py publish_prices`: bring the price book up to the catalogue. Repeatable; run it after every deployment."""

from typing import Any

from django.core.management.base import BaseCommand

from controlplane.billing.price_book import publish_prices


class Command(BaseCommand):
    help = "Append a version for every price that differs from the catalogue's."

    def handle(self, *args: Any, **options: Any) -> None:
        for price in publish_prices():
            self.stdout.write(str(price))
