"""The environment registry."""
