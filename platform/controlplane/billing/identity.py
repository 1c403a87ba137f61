"""The identity of a metered fact. Knows how its parts become an id; refuses to know rows and prices.

The id is derived from what is billed and never from when it was reported: a crash replay has the same id and is free, while a
restart that the user asks for opens a new segment and with it new ids.
"""

import hashlib
import json
from typing import NamedTuple


class Subject(NamedTuple):
    """What usage is itemised by: a run, an evaluation, a release build, or a served model (kind `inference`)."""

    kind: str
    id: str


def meter_event_id(*, team_id: str, subject: Subject, segment: int, meter: str, sequence: str) -> str:
    """Hex sha256 of the parts as one JSON list, so that no two different lists of parts spell the same bytes."""
    parts = [team_id, subject.kind, subject.id, segment, meter, sequence]
    return hashlib.sha256(json.dumps(parts, separators=(",", ":")).encode()).hexdigest()
