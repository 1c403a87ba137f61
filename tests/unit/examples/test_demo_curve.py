"""The curves that a demo's reports are drawn as."""

import pytest

from tests.fixtures.places import REPOSITORY


@pytest.fixture
def curve(monkeypatch):
    monkeypatch.syspath_prepend(str(REPOSITORY / "examples" / "demo"))
    import curve

    return curve


def report(seed: int, rewards: list[float]) -> dict:
    return {"model": "smollm2", "seed": seed, "teams": {"words": {"rewards": rewards}}}


def test_every_step_of_every_report_is_a_point(curve):
    curves = [one for seed in (0, 1) for one in curve.curves_of(report(seed, [0.0, 0.5, 1.0]))]
    text = curve.draw(curves)
    assert text.count("<polyline") == 4, "a thin and a thick line each"
    assert "smollm2, words, seed 0" in text and "seed 1" in text
    assert "56.0,334.0 400.0,181.0 744.0,28.0" in text, "reward 0 lies at the bottom, 1 at the top"


def test_the_thick_line_is_the_mean_of_the_last_five(curve):
    assert curve.smoothed([1, 2, 3, 4, 5, 6]) == [1, 1.5, 2, 2.5, 3, 4]
