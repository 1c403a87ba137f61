"""An adapter version for use elsewhere: what the trainer's host is asked to write, and how the files travel in parts.

Knows forms, names and sizes. Refuses to know PEFT and whose version it is. `POST /exports` of the trainer service takes an
ExportRequest and answers ExportWritten; asking again finds the files that are there.
"""

from typing import Annotated, Literal

from pydantic import Field

from trainer.contracts.adapters import FileEntry
from trainer.contracts.base import PublicId, Wire

ExportForm = Literal["adapter", "merged"]
"""PEFT's two files, or the whole model with the adapter added."""
SIZE_MAX = 32 * 2**30
"""Bytes of one export."""
PART_BYTES = 32 * 2**20
"""Of one message that carries a piece of a file."""
FileName = Annotated[str, Field(pattern=r"^[A-Za-z0-9_-][A-Za-z0-9_.-]{0,127}$")]


class ExportOrder(Wire):
    """What a leased process shall have written."""

    adapter_path: str
    """Folder of the version, relative to the artifact root."""
    form: ExportForm
    size_max: Annotated[int, Field(ge=1)] = SIZE_MAX


class ExportRequest(ExportOrder):
    export_id: PublicId


class ExportWritten(Wire):
    path: str
    """Folder of the files, relative to the artifact root."""
    files: dict[FileName, FileEntry]


def export_path(export_id: str) -> str:
    """Where the files wait until they have been sent on, relative to the artifact root."""
    return f"exports/{export_id}"


def parts_of(size_bytes: int) -> int:
    """Into how many parts a file is cut; an empty one has one."""
    return max(1, -(-size_bytes // PART_BYTES))
