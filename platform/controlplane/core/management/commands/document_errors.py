"""`manage.py document_errors`: writes `docs/errors.md` from the table of codes."""

from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand

from controlplane.core.error_codes import document


class Command(BaseCommand):
    help = "Write docs/errors.md."

    def handle(self, *args: Any, **options: Any) -> None:
        (settings.REPOSITORY / "docs" / "errors.md").write_text(document())
