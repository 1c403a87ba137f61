"""Masks a subject's own secrets, by value, in everything that tenant code or its logs bring back, before it is written."""

from collections.abc import Callable
from typing import Any

from controlplane.core.sealing import unseal
from trainer.contracts.redaction import Redactor

Document = dict[str, Any]


def masker(sealed_secrets: str) -> Callable[[Document], Document]:
    """A function that copies a JSON document with the secrets masked in every text of it, in every spelling."""
    return Redactor(unseal(sealed_secrets).values()).document
