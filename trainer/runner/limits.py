"""What fits into a report, and what counts as a score.

Knows numbers. Refuses to know which library the reported rollout was played with.
"""

import math

SCORE_MAX = 1e6
ERRORS_MAX = 16
MESSAGES_MAX = 512
MESSAGE_CHARS = 20_000
NAME_CHARS = 128
KEY_CHARS = 512
PREVIEW_CHARS = 200
CALLERS_FAULT = frozenset({400, 413, 422})
"""Statuses of a model call that its request was to blame for."""


def is_score(value: float | None) -> bool:
    return value is not None and math.isfinite(value) and abs(value) <= SCORE_MAX
