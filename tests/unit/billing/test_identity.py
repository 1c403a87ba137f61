"""Promise: one fact has one id; another fact, team, segment or meter has another."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controlplane.billing.identity import Subject, meter_event_id

FACT: dict[str, Any] = {
    "team_id": "team",
    "subject": Subject("run", "r1"),
    "segment": 1,
    "meter": "training_tokens",
    "sequence": "41",
}
CHANGES: list[dict[str, Any]] = [
    {"team_id": "other"},
    {"subject": Subject("eval", "r1")},
    {"subject": Subject("run", "r2")},
    {"segment": 2},
    {"meter": "judge_calls"},
    {"sequence": "42"},
]


def test_a_replay_has_the_same_id() -> None:
    assert meter_event_id(**FACT) == meter_event_id(**FACT)
    assert len(meter_event_id(**FACT)) == 64


@pytest.mark.parametrize("change", CHANGES)
def test_every_part_counts(change: dict[str, Any]) -> None:
    assert meter_event_id(**{**FACT, **change}) != meter_event_id(**FACT)


@given(st.tuples(st.text(), st.text()), st.tuples(st.text(), st.text()))
def test_parts_cannot_be_shifted_into_each_other(one: tuple[str, str], two: tuple[str, str]) -> None:
    ids = [meter_event_id(**{**FACT, "subject": Subject("run", left), "sequence": right}) for left, right in (one, two)]
    assert (ids[0] == ids[1]) == (one == two)
