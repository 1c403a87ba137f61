"""`manage.py quarantine_release OWNER/NAME@VERSION --reason TEXT`: take a release out of circulation, or give it back."""

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from controlplane.core.errors import NotFound
from controlplane.hub import access, services
from controlplane.hub.models import QUARANTINE_REASON_LENGTH_MAX


class Command(BaseCommand):
    help = "Put releases into quarantine: nobody installs or starts them, and their owner is told why."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("release", help="owner/name@version; without a version, every release of the environment")
        parser.add_argument("--reason", default="", help="what the owner is told")
        parser.add_argument("--lift", action="store_true", help="end the quarantine")

    def handle(self, *args: Any, **options: Any) -> None:
        reason = options["reason"].strip()
        if not options["lift"] and not 0 < len(reason) <= QUARANTINE_REASON_LENGTH_MAX:
            raise CommandError(f"--reason: 1 to {QUARANTINE_REASON_LENGTH_MAX} characters; the owner reads them")
        try:
            found = access.releases_for_operator(options["release"])
        except NotFound as error:
            raise CommandError(error.detail) from error
        for release in found:
            services.lift_quarantine(release) if options["lift"] else services.quarantine(release, reason)
            state = "released from quarantine" if options["lift"] else "in quarantine"
            self.stdout.write(f"{release.environment.slug}@{release.version} is {state}")
