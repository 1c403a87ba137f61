"""Reading manifests of this release and of the one before.

Knows what each format number looked like and how to say it in today's words. Refuses to know files: bytes in, a manifest out. A
format is read for one release after the one that last wrote it; a change of layout is a new number here, an upgrade from the
number before, and a folder of the old layout under `tests/data/artifacts`.
"""

import json
from collections.abc import Callable
from typing import Any

from trainer.contracts.adapters import FORMAT, AdapterManifest, CheckpointManifest

FORMAT_OLDEST = 1
ADAPTER_KIND = "rootstock.adapter"
CHECKPOINT_KIND = "rootstock.checkpoint"
Document = dict[str, Any]


class UnknownFormat(ValueError):
    """Written by a release that is too new or too old; the text names the number and the way out."""


def manifest_kind(data: bytes) -> str:
    """`rootstock.adapter` or `rootstock.checkpoint`, whatever the format. Raises ValueError for anything else."""
    kind = _identity(_document(data))[0]
    if kind not in {ADAPTER_KIND, CHECKPOINT_KIND}:
        raise ValueError(f"the manifest is of kind {kind!r}, which is neither an adapter version nor a checkpoint")
    return kind


def read_adapter_manifest(data: bytes) -> AdapterManifest:
    """Raises UnknownFormat, or ValueError for a manifest that is not one."""
    return AdapterManifest.model_validate(_current(data, ADAPTER_KIND))


def read_checkpoint_manifest(data: bytes) -> CheckpointManifest:
    """Raises UnknownFormat, or ValueError for a manifest that is not one."""
    return CheckpointManifest.model_validate(_current(data, CHECKPOINT_KIND))


def _current(data: bytes, kind: str) -> Document:
    document = _document(data)
    found, number = _identity(document)
    if found != kind:
        raise ValueError(f"the manifest is of kind {found!r}, not {kind!r}")
    if number > FORMAT:
        raise UnknownFormat(
            f"the manifest has format {number}; this release reads {FORMAT_OLDEST} to {FORMAT}. A newer one wrote it: upgrade "
            "trainer, engines and workers to that release, or begin from an artifact that this one wrote"
        )
    if number < FORMAT_OLDEST:
        raise UnknownFormat(
            f"the manifest has format {number}; this release reads {FORMAT_OLDEST} to {FORMAT}. Resume the run once with the "
            "release before this one, which writes it anew"
        )
    for older in range(number, FORMAT):
        document = UPGRADES[older](document)
    return document


def _document(data: bytes) -> Document:
    document = json.loads(data)
    if not isinstance(document, dict):
        raise ValueError("the manifest is not a JSON object")
    return document


def _identity(document: Document) -> tuple[str, int]:
    """Kind and number. Format 1 wrote both into one text."""
    kind, number = document.get("kind"), document.get("format")
    if isinstance(number, str):
        kind, _, digits = number.rpartition("/")
        number = int(digits) if digits.isdecimal() else None
    if not isinstance(kind, str) or not isinstance(number, int):
        raise ValueError("the manifest names no kind and format")
    return kind, number


def _from_1(document: Document) -> Document:
    """Format 2 has the kind by itself. Whose a checkpoint of format 1 is stands in its run's specification."""
    return document | {"kind": _identity(document)[0], "format": 2}


UPGRADES: dict[int, Callable[[Document], Document]] = {1: _from_1}
"""By the number that each reads: the same manifest in the next format."""
