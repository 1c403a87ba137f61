"""The public name of a team: its grammar, and which names nobody gets. Does no I/O."""

import re
import secrets

from controlplane.core.errors import Invalid
from controlplane.teams.models import SLUG_LENGTH_MAX, SLUG_PATTERN

RESERVED = frozenset(
    {"admin", "api", "dashboard", "docs", "healthz", "hub", "internal", "objects"}
    | {"prime", "rootstock", "settings", "static", "www"}
)


def check_slug(slug: str, *, loc: tuple[str, ...] = ("body", "slug")) -> str:
    """Raises Invalid for a name that is malformed or reserved."""
    if not re.fullmatch(SLUG_PATTERN, slug):
        raise Invalid(loc, "3 to 30 lower-case letters, digits and hyphens; no hyphen at either end", code="invalid_slug")
    if slug in RESERVED:
        raise Invalid(loc, f"the name {slug!r} is already taken", code="slug_taken")
    return slug


def suggest_slug(text: str) -> str:
    """A well-formed name made from an e-mail's local part or a display name; random at its end, so that it is free."""
    stem = re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")[: SLUG_LENGTH_MAX - 7].strip("-") or "team"
    return f"{stem}-{secrets.token_hex(3)}"
