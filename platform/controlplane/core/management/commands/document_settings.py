"""`manage.py document_settings`: writes `docs/settings.md` from the declared variables."""

from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand

from controlplane.settings.env import document


class Command(BaseCommand):
    help = "Write docs/settings.md."

    def handle(self, *args: Any, **options: Any) -> None:
        (settings.REPOSITORY / "docs" / "settings.md").write_text(document())
