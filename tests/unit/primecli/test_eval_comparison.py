"""`prime eval compare`: what it asks for and what people read."""

import json

import pytest

FIRST, SECOND = "c" + "a" * 24, "c" + "b" * 24


def row(evaluation_id: str, model: str, mean: float, cost: float | None) -> dict:
    statistics = {"ci_low": mean - 0.1, "ci_high": mean + 0.1, "pass_rates": [{"k": 1, "any_of": mean}], "missing": {"failed": 2}}
    quality = {"mean": mean, "cost_usd": cost, "cost_per_sample_usd": cost, "duration_median_s": 1.5}
    quality |= {"best_for_cost": cost is not None, "best_for_time": False}
    evaluation = {"evaluation_id": evaluation_id, "model_name": model, "status": "COMPLETED"}
    return {"evaluation": evaluation, "statistics": statistics, "quality": quality}


PAIR = {"evaluation_id": SECOND, "examples": 4, "difference": -0.25, "ci_low": -0.5, "ci_high": -0.01, "p_value": 0.00001}
COMPARISON = {
    "evaluations": [row(FIRST, "tiny", 0.75, 0.001), row(SECOND, "other", 0.5, None)],
    "pairs": [PAIR | {"improved": 0, "regressed": 1, "same": 3}],
    "notes": ["Different versions."],
}
EXAMPLE = {"example": "7", "title": "3+4?", "means": [1.0, None], "counts": [2, 0], "change": None, "verdict": "missing"}


@pytest.fixture
def compared(server):
    server.routes["GET", "/api/v1/evaluations/compare"] = COMPARISON
    server.routes["GET", "/api/v1/evaluations/compare/examples"] = {"items": [EXAMPLE], "next_cursor": None, "total": 1}
    return server


def test_people_read_the_table_the_verdict_and_the_examples(compared):
    done = compared.run("eval", "compare", FIRST, SECOND, "--verdict", "missing")
    assert done.exit_code == 0, done.output
    assert compared.requests[-1].url.params["ids"] == f"{FIRST},{SECOND}"
    assert compared.requests[-1].url.params["verdict"] == "missing"
    for words in (
        "0.650 to 0.850",
        "$0.001",
        "*cost",
        "2 failed",
        "@1 0.75",
        "-0.250 (95 %: -0.500 to -0.010; p < 0.0001)",
        "3+4?",
    ):
        assert words in done.stdout, done.stdout
    assert "Different versions." in done.stderr and f"/evaluations/compare?ids={FIRST},{SECOND}" in done.stderr


def test_json_is_the_servers_with_its_page_of_examples(compared):
    done = compared.run("eval", "compare", FIRST, SECOND, "-o", "json")
    assert json.loads(done.stdout)["examples"]["items"] == [EXAMPLE]


def test_the_difference_of_two_answers_is_by_line(server):
    answers = [
        {"model_name": "tiny", "samples": [{"reward": 1.0, "completion": [{"role": "assistant", "content": "so\nsum 7"}]}]},
        {"model_name": "other", "samples": [{"reward": 0.0, "completion": [{"role": "assistant", "content": "so\nmax 4"}]}]},
    ]
    server.routes["GET", "/api/v1/evaluations/compare/example"] = {"example": "7", "evaluations": answers}
    done = server.run("eval", "compare", FIRST, SECOND, "--diff", "7")
    assert [line for line in done.stdout.splitlines() if line[:1] in "+-"][2:] == ["-sum 7", "+max 4"]


def test_one_evaluation_is_nothing_to_compare(server):
    done = server.run("eval", "compare", FIRST)
    assert done.exit_code == 2 and "at least two" in done.stderr
