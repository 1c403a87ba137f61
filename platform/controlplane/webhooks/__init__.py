"""Webhooks: what happened, told to addresses that a team has named, signed and until it is heard."""
