"""Seconds of a sandbox, each billed once."""

from hypothesis import given, settings
from hypothesis import strategies as st

from trainer.orchestrator.environments.sandbox_meter import SandboxMeter


@settings(max_examples=40, deadline=None)
@given(st.lists(st.floats(0.1, 200), max_size=10), st.floats(0, 100))
def test_all_seconds_are_billed_once_in_minutes_of_their_own(gaps, tail):
    meter, now_s, events = SandboxMeter("1.1", started_s=100.0), 100.0, []
    for gap in gaps:
        now_s += gap
        events += meter.due(now_s)
    now_s += tail
    events += meter.due(now_s, ended=True)
    assert sum(event.quantity for event in events) == int(now_s - 100.0)
    assert len({event.sequence for event in events}) == len(events)
    assert all(event.quantity <= 60 for event in events)


def test_a_minute_is_billed_when_it_is_over():
    meter = SandboxMeter("1.1", started_s=0.0)
    assert meter.due(59.0) == []
    assert [(event.sequence, event.quantity) for event in meter.due(125.0)] == [("1.1.0", 60), ("1.1.1", 60)]
    assert [(event.sequence, event.quantity) for event in meter.due(130.5, ended=True)] == [("1.1.2", 10)]
