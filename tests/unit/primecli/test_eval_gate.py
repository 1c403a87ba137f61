"""`prime eval gate`: each verdict with its exit code, and the comment."""

import json

import pytest

from primecli.gating import Limits, comment, rules_of

NEW, OLD = "c" + "a" * 24, "c" + "b" * 24


def row(evaluation_id: str, mean: float, *, missing: int = 0) -> dict:
    statistics = {"mean": mean, "ci_low": mean - 0.05, "ci_high": mean + 0.05, "rewards_count": 20, "pass_rates": []}
    statistics["missing"] = {"infrastructure": missing} if missing else {}
    quality = {"mean": mean, "cost_per_sample_usd": 0.001, "cost_usd": 0.02, "duration_median_s": 1.0}
    return {"evaluation": {"evaluation_id": evaluation_id, "model_name": "m|x"}, "statistics": statistics, "quality": quality}


def comparison(new: dict, *, difference: float = 0.0, half: float = 0.04) -> dict:
    pair = {"evaluation_id": NEW, "examples": 20, "difference": difference, "p_value": 0.2}
    pair |= {"ci_low": difference - half, "ci_high": difference + half, "improved": 1, "regressed": 2, "same": 17}
    return {
        "evaluations": [row(OLD, 0.7), new],
        "pairs": [pair],
        "notes": [],
        "viewer_url": "http://here/evaluations/compare?ids=x",
    }


@pytest.mark.parametrize(
    ("limits", "difference", "is_open"),
    [
        (Limits(mean_min=0.7), 0.0, True),
        (Limits(mean_min=0.71), 0.0, False),
        (Limits(mean_min=0.66, is_strict=True), 0.0, False),
        (Limits(mean_min=0.64, is_strict=True), 0.0, True),
        (Limits(drop_max=0.0), -0.03, True),
        (Limits(drop_max=0.0), -0.05, False),
        (Limits(drop_max=0.02), -0.05, True),
        (Limits(drop_max=0.0, is_strict=True), 0.03, False),
        (Limits(drop_max=0.02, is_strict=True), 0.03, True),
    ],
)
def test_rules(limits, difference, is_open):
    (rule,) = rules_of(comparison(row(NEW, 0.7), difference=difference), limits)
    assert rule.is_met is is_open, rule.text


def test_nothing_in_common_closes_the_gate():
    found = comparison(row(NEW, 0.7)) | {"pairs": []}
    assert [rule.is_met for rule in rules_of(found, Limits(drop_max=1.0))] == [False]


def test_the_comment_says_everything_and_takes_no_markup_from_anybody():
    found = comparison(row(NEW, 0.6))
    example = {"example": "7", "change": -1.0, "title": "<img src=x> @everybody | `rm`"}
    text = comment(found, rules_of(found, Limits(mean_min=0.9)), [example])
    assert text.startswith("### ❌") and "mean reward 0.600 (95 %: 0.550 to 0.650), at least 0.9 is asked" in text
    assert "| m\\|x | 0.600 | 0.550 to 0.650 | - | none | $0.001 |" in text
    assert "\\<img src=x\\>" in text and "@everybody" not in text and "\\`rm\\`" in text
    assert "[All of it](http://here/evaluations/compare?ids=x)" in text


@pytest.fixture
def gated(server):
    for one in (NEW, OLD):
        server.routes["GET", f"/api/v1/evaluations/{one}"] = {"evaluation_id": one, "status": "COMPLETED"}
    server.routes["GET", "/api/v1/evaluations/compare"] = comparison(row(NEW, 0.7), difference=-0.2)
    example = {"example": "7", "change": -1.0, "title": "3+4?"}
    server.routes["GET", "/api/v1/evaluations/compare/examples"] = {"items": [example]}
    return server


def test_an_open_gate_is_0_and_a_closed_one_7(gated, tmp_path):
    assert gated.run("eval", "gate", NEW, "--min-mean", "0.6").exit_code == 0
    done = gated.run("eval", "gate", NEW, "--min-mean", "0.6", "--baseline", OLD, "--comment", str(tmp_path / "comment.md"))
    assert done.exit_code == 7 and "the gate is closed" in done.stderr
    assert "✗ -0.200 against the baseline (95 %: -0.240 to -0.160, p = 0.2000)" in done.stdout
    assert "| 7 | -1.000 | 3+4? |" in (tmp_path / "comment.md").read_text()
    told = json.loads(gated.run("eval", "gate", NEW, "--baseline", OLD, "-o", "json").stdout)
    assert told["is_open"] is False and told["comment"].startswith("### ❌")


def test_no_verdict_is_6(gated):
    gated.routes["GET", "/api/v1/evaluations/compare"] = comparison(row(NEW, 1.0, missing=5))
    broken = gated.run("eval", "gate", NEW, "--min-mean", "0.5")
    assert broken.exit_code == 6 and "20% of the rollouts" in broken.stderr
    gated.routes["GET", f"/api/v1/evaluations/{NEW}"] = {"evaluation_id": NEW, "status": "FAILED", "error_message": "no funds"}
    failed = gated.run("eval", "gate", NEW, "--min-mean", "0.5")
    assert failed.exit_code == 6 and "no funds" in failed.stderr


def test_a_gate_without_a_limit_is_a_usage_error(gated):
    assert gated.run("eval", "gate", NEW).exit_code == 2
