"""Append-only record of who did what."""
