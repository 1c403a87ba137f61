"""Evaluations side by side: aligned by example, tested in pairs, weighed against what they cost."""

import pytest

from controlplane.core.tenancy import acting_as_system
from controlplane.evals.models import Evaluation
from tests.factories.runs import make_funded_member, make_pool, make_release
from trainer.contracts.base import new_id

pytestmark = pytest.mark.django_db
EVALUATIONS = "/api/v1/evaluations"
COMPARE = f"{EVALUATIONS}/compare"


@pytest.fixture
def ann():
    make_pool()
    return make_funded_member("ann-lab")


@pytest.fixture
def client(ann, client_of):
    return client_of(ann)


@pytest.fixture
def release(ann):
    return make_release(ann, "rules")


def sample(example: int, reward: float | None, said: str = "") -> dict:
    prompt = [{"role": "user", "content": f"question {example}"}]
    completion = [{"role": "assistant", "content": said}]
    usage = {"input_tokens": 100, "output_tokens": 10}
    told = {"error": "timeout", "reward": 0.0} if reward is None else {"reward": reward}
    return {"example_id": example, "prompt": prompt, "completion": completion, "token_usage": usage, "duration_s": 2.0} | told


@pytest.fixture
def pushed(client, release):
    """Push an evaluation with one sample an example; the rewards are those of examples 0, 1, …"""

    def push(*rewards: float | None, model: str = "m", prices: tuple[float, float] | None = None, of=release) -> str:
        body = {"name": model, "model_name": model, "environments": [{"id": of.environment_id}]}
        if prices:
            body["metadata"] = {"prices": {"input_usd_per_mtok": prices[0], "output_usd_per_mtok": prices[1]}}
        made = client.post(f"{EVALUATIONS}/", body).json()["evaluation_id"]
        samples = [sample(number, reward, f"{model} on {number}") for number, reward in enumerate(rewards)]
        client.post(f"{EVALUATIONS}/{made}/samples", {"samples": samples})
        client.post(f"{EVALUATIONS}/{made}/finalize", {})
        return made

    return push


def test_a_pair_is_tested_over_the_examples_that_both_have(client, pushed):
    first, second = pushed(0, 0, 1, 1, None, model="a"), pushed(1, 1, 0, 1, 1, 1, model="b")
    found = client.get(COMPARE, {"ids": f"{first},{second}"}).json()
    (pair,) = found["pairs"]
    assert (pair["evaluation_id"], pair["examples"], pair["difference"]) == (second, 4, 0.25)
    assert (pair["improved"], pair["regressed"], pair["same"]) == (2, 1, 1)
    # Differences 1, 1, -1, 0: the standard error is sqrt(11/12)/2, t with three degrees 3.18245.
    assert pair["ci_high"] == pytest.approx(0.25 + 3.18245 * (11 / 12) ** 0.5 / 2, abs=1e-4)
    assert pair["p_value"] == pytest.approx(0.6376, abs=1e-3)
    assert found["evaluations"][0]["statistics"]["missing"] == {"failed": 1}
    assert found["viewer_url"].endswith(f"/evaluations/compare?ids={first},{second}")


def test_examples_come_worst_first_in_pages_and_by_verdict(client, pushed):
    first, second = pushed(1, 1, 0, 1, None), pushed(1, 0, 1, 0.5, 1)
    asked = {"ids": f"{first},{second}", "limit": 2}
    page = client.get(f"{COMPARE}/examples", asked).json()
    assert [(row["example"], row["change"], row["verdict"]) for row in page["items"]] == [
        ("1", -1.0, "regressed"),
        ("3", -0.5, "regressed"),
    ]
    assert (page["total"], page["items"][0]["title"]) == (5, "question 1")
    rest = client.get(f"{COMPARE}/examples", asked | {"cursor": page["next_cursor"], "limit": 9}).json()
    assert [row["example"] for row in rest["items"]] == ["0", "2", "4"] and rest["next_cursor"] is None
    assert (rest["items"][2]["means"], rest["items"][2]["verdict"]) == ([None, 1.0], "missing")
    best = client.get(f"{COMPARE}/examples", asked | {"verdict": "improved", "order": "improvement"}).json()
    assert [row["example"] for row in best["items"]] == ["2"]
    other = client.get(f"{COMPARE}/examples", asked | {"ids": f"{second},{first}", "cursor": page["next_cursor"]})
    assert other.status_code == 422 and other.json()["detail"][0]["loc"] == ["query", "cursor"]


def test_one_example_shows_what_each_has_answered(client, pushed):
    first, second = pushed(1, 0, model="a"), pushed(1, 1, model="b")
    found = client.get(f"{COMPARE}/example", {"ids": f"{first},{second}", "example": "1"}).json()
    assert [one["samples"][0]["completion"][0]["content"] for one in found["evaluations"]] == ["a on 1", "b on 1"]


def test_quality_is_weighed_against_dollars(client, pushed):
    """100 tokens in and 10 out a sample, at 10 and 100 USD a million: 2,000 micro-dollars each."""
    dear, cheap = pushed(1, 1, model="dear", prices=(10, 100)), pushed(1, 0, model="cheap", prices=(1, 10))
    beaten, unknown = pushed(0, 0, model="beaten", prices=(2, 20)), pushed(1, 1, model="unknown")
    rows = client.get(COMPARE, {"ids": ",".join([dear, cheap, beaten, unknown])}).json()["evaluations"]
    found = {row["evaluation"]["model_name"]: row["quality"] for row in rows}
    assert found["dear"]["cost_per_sample_usd"] == pytest.approx(0.002)
    assert found["dear"]["cost_usd"] == pytest.approx(0.004) and found["dear"]["cost_source"] == "prices"
    assert {name for name, quality in found.items() if quality["best_for_cost"]} == {"dear", "cheap"}
    assert (found["unknown"]["cost_usd"], found["unknown"]["duration_median_s"]) == (None, 2.0)


def test_what_has_no_examples_in_common_is_refused_and_versions_are_told(client, ann, pushed):
    first, other = pushed(1), pushed(1, of=make_release(ann, "other"))
    refused = client.get(COMPARE, {"ids": f"{first},{other}"})
    assert refused.status_code == 422 and "no examples in common" in str(refused.json()["detail"])
    second = pushed(1)
    with acting_as_system():
        for version, one in (("0.1.0", first), ("0.2.0", second)):
            Evaluation.objects.filter(id=one).update(metadata={"version": version})
    (note,) = client.get(COMPARE, {"ids": f"{first},{second}"}).json()["notes"]
    assert "0.1.0, 0.2.0" in note


@pytest.mark.parametrize("suffix", ["", "/examples", "/example"])
def test_somebody_elses_is_absent(suffix, client_of, pushed, client):
    mine, stranger = pushed(1), client_of(make_funded_member())
    ids = {"ids": f"{mine},{mine}", "example": "0"}
    assert client.get(f"{COMPARE}{suffix}", ids).status_code == 200
    answers = [stranger.get(f"{COMPARE}{suffix}", ids | {"ids": one}) for one in (mine, new_id())]
    assert [answer.status_code for answer in answers] == [404, 404]
    assert client.get(f"{COMPARE}{suffix}", ids | {"ids": f"{mine},{new_id()}"}).status_code == 404
    assert client.get(f"{COMPARE}{suffix}", {"ids": "x", "example": "0"}).status_code == 422
