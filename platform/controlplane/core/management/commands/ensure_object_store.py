"""`manage.py ensure_object_store`: make the bucket that the settings name, where it is absent. Safe to repeat."""

from typing import Any

from django.core.management.base import BaseCommand

from controlplane.core.objects import store
from controlplane.core.objects.s3 import S3Store


class Command(BaseCommand):
    help = "Create the S3 bucket of ROOTSTOCK_OBJECT_STORE_URL. A local folder needs nothing."

    def handle(self, *args: Any, **options: Any) -> None:
        chosen = store()
        if isinstance(chosen, S3Store):
            chosen.ensure_bucket()
            self.stdout.write(f"bucket {chosen.bucket} is there")
