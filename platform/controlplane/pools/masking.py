"""Masks a subject's own secrets, by value, in everything that tenant code or its logs bring back, before it is written."""

from collections.abc import Callable
from typing import Any

from controlplane.core.redaction import MASK, SECRET_LENGTH_MIN
from controlplane.core.sealing import unseal

Document = dict[str, Any]


def masker(sealed_secrets: str) -> Callable[[Document], Document]:
    """A function that copies a JSON document with the secrets masked in every text of it. Values too short to be secret, which
    would mask ordinary words, are left alone."""
    values = sorted((v for v in unseal(sealed_secrets).values() if len(v) >= SECRET_LENGTH_MIN), key=len, reverse=True)

    def mask(node: Any) -> Any:
        if isinstance(node, str):
            for value in values:
                node = node.replace(value, MASK)
            return node
        if isinstance(node, dict):
            return {mask(key): mask(entry) for key, entry in node.items()}
        return [mask(entry) for entry in node] if isinstance(node, list) else node

    return mask if values else lambda document: document
