"""How a run's curves, its timeline and its configuration look on the wire. snake_case, bare objects; knows spelling only."""

from dataclasses import asdict
from datetime import datetime
from typing import Annotated, Self

from pydantic import Field

from controlplane.core.schemas import Answer, Query
from controlplane.runs.curves import Branch, Curves, Span
from controlplane.runs.schemas import EventAnswer

POINTS_MAX = 5_000
TIMELINE_MAX = 2_000


class CurvesQuery(Query):
    """`points` bounds the answer: more steps than that are taken together, the extremes kept."""

    min_step: Annotated[int, Field(ge=0)] | None = None
    max_step: Annotated[int, Field(ge=0)] | None = None
    points: Annotated[int, Field(ge=2, le=POINTS_MAX)] = 600


class SpanAnswer(Answer):
    """Steps of one attempt that count."""

    attempt: int
    segment: int
    first_step: int
    last_step: int
    started_at: datetime
    last_at: datetime


class BranchAnswer(Answer):
    """Steps of an attempt that a later attempt took again: folded, because it had gone on from an earlier step."""

    attempt: int
    superseded_by: int
    first_step: int
    last_step: int
    steps: list[int]
    rewards: list[float | None]


class CurvesAnswer(Answer):
    """`series[name][i]` belongs to `steps[i]`. `cursor` is the event up to which the numbers are complete: stream from there."""

    cursor: int
    steps: list[int]
    series: dict[str, list[float | None]]
    steps_count: int
    bucket_steps: int
    names_left_out: int
    attempts: list[SpanAnswer]
    branches: list[BranchAnswer]

    @classmethod
    def of(cls, cursor: int, curves: Curves, attempts: list[Span], branches: list[Branch]) -> Self:
        return cls(
            cursor=cursor,
            **asdict(curves),
            attempts=[SpanAnswer(**asdict(span)) for span in attempts],
            branches=[BranchAnswer(**asdict(branch)) for branch in branches],
        )


class TimelineQuery(Query):
    limit: Annotated[int, Field(ge=1, le=TIMELINE_MAX)] = 500


class TimelineAnswer(Answer):
    """The newest events but for log lines and steps, oldest first. `left_out` counts the older ones."""

    cursor: int
    events: list[EventAnswer]
    left_out: int


class ConfigAnswer(Answer):
    """`toml` starts the same run again: what equals the default is left out of it. `changed` names the dotted paths, in
    `effectiveConfig`, of what does not equal the default."""

    toml: str
    changed: list[str]
