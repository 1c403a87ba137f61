"""What a pool cannot serve is refused before a run exists, by field, and its limits can be asked for (CASES 31, 32)."""

import pytest

from controlplane.billing.price_book import publish_prices
from controlplane.runs.models import Run
from tests.factories.runs import make_funded_member, make_pool, make_release, run_body
from trainer.contracts.teaching import SCORED

pytestmark = pytest.mark.django_db
RUNS = "/api/v1/rft/runs"
OPSD = {"id": "opsd", "options": {"hint": "The answer is {hint}."}}


@pytest.fixture
def ann():
    publish_prices()
    return make_funded_member()


def refused(answer) -> dict[str, str]:
    assert answer.status_code == 422, answer.content
    return {".".join(map(str, problem["loc"])): problem["msg"] for problem in answer.json()["detail"]}


@pytest.mark.parametrize(
    ("pool", "asked", "field", "says"),
    [
        ({"rank_max": 4}, {"lora_rank": 8}, "body.lora_rank", "rank 8 is above 4"),
        ({"target_modules": ["lm_head"]}, {}, "body.model.name", "target_modules is empty"),
        ({"context_tokens": 64}, {"max_tokens": 64}, "body.max_tokens", "64 tokens of context"),
        ({"engine": "vllm"}, {"algorithm": OPSD, "temperature": 0.7}, "body.temperature", "(vllm) scores at 1.0 alone"),
    ],
)
def test_what_the_pool_cannot_serve_is_refused_by_field(ann, client_of, pool, asked, field, says):
    make_pool(**pool)
    answer = client_of(ann).post(RUNS, run_body(make_release(ann)) | asked)
    problems = refused(answer)
    assert list(problems) == [field] and says in problems[field]
    assert not Run.objects.exists()


def test_a_rollout_longer_than_the_pools_context_is_refused(ann, client_of):
    make_pool(context_tokens=128)
    body = run_body(make_release(ann)) | {"max_tokens": 16}
    body["environments"] = [body["environments"][0] | {"max_total_tokens": 129}]
    assert list(refused(client_of(ann).post(RUNS, body))) == ["body.environments.0.max_total_tokens"]


@pytest.mark.parametrize(("engine", "temperature"), [("torch", 0.7), ("vllm", 1.0)])
def test_scoring_that_the_engine_can_do_is_taken(ann, client_of, engine, temperature):
    make_pool(engine=engine)
    body = run_body(make_release(ann)) | {"algorithm": OPSD, "temperature": temperature}
    assert client_of(ann).post(RUNS, body).status_code in {200, 201}


def test_the_limits_are_listed_with_the_models(ann, client_of):
    make_pool(engine="vllm", rank_max=4, context_tokens=256, target_modules=["q_proj", "v_proj"])
    client = client_of(ann)
    (model,) = client.get("/api/v1/rft/models").json()["models"]
    assert (model["rankMax"], model["contextTokens"], model["engine"]) == (4, 256, "vllm")
    assert model["targetModules"] == ["q_proj", "v_proj"]
    limits = client.get("/api/v1/rft/deployable-models").json()["limits"]["tiny"]
    assert limits == {"rank_max": 4, "context_tokens": 256, "target_modules": ["q_proj", "v_proj"], "engine": "vllm"}


def test_the_contract_knows_which_algorithms_ask_for_scores():
    from trainer.algorithms.registry import ALGORITHMS

    assert {name for name, algorithm in ALGORITHMS.items() if algorithm.needs_reference} == SCORED
