"""What an address must look like that a tenant names and that we call: a model's API, a webhook.

Knows spelling. Refuses to look a name up: who connects checks where it leads (`trainer.contracts.addresses`).
"""

from urllib.parse import urlsplit

from controlplane.core.errors import Invalid
from trainer.contracts.addresses import names_private


def check_address(loc: tuple[str | int, ...], url: str, *, may_be_private: bool, may_have_query: bool = False) -> None:
    """Raises Invalid naming `loc`. Where private ones are allowed, `http://` is too: development, or a network of its own."""
    try:
        parts = urlsplit(url)
        named = (parts.hostname, parts.port)[0]
    except ValueError:
        raise Invalid(loc, "not an address") from None
    schemes = ("https", "http") if may_be_private else ("https",)
    if parts.scheme not in schemes or not named:
        raise Invalid(loc, f"an address begins with {' or '.join(f'{scheme}://' for scheme in schemes)} and names a host")
    if parts.username or parts.password or parts.fragment or not url.isascii() or not url.isprintable() or " " in url:
        raise Invalid(loc, "an address has no user, fragment or space")
    if parts.query and not may_have_query:
        raise Invalid(loc, "an address has no query")
    if not may_be_private and names_private(named):
        raise Invalid(loc, "an address inside this installation's own network")
