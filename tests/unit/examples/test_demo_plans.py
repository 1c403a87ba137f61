"""The demo's plans: each names a model of the catalogue, and files and figures that there are."""

import sys
import tomllib

import pytest

from tests.fixtures.places import REPOSITORY
from trainer.contracts.catalogue import load_catalogue
from trainer.contracts.run_config import RunConfig
from trainer.contracts.toml_config import translate

EXAMPLES = REPOSITORY / "examples"
MODELS = sorted(path.stem for path in (EXAMPLES / "demo").glob("*.toml"))


@pytest.fixture
def plan_module(monkeypatch):
    """The demo is a script: its modules lie on the path while it runs, and only then."""
    monkeypatch.syspath_prepend(str(EXAMPLES / "demo"))
    import plan

    yield plan
    for name in ("plan", "gates"):
        sys.modules.pop(name, None)


@pytest.mark.parametrize("model", MODELS)
def test_a_plan_trains_its_own_model_on_an_environment_that_is_there(plan_module, model):
    plan = plan_module.Plan.read(model)
    assert model in load_catalogue()
    for team in plan.teams:
        document = tomllib.loads((EXAMPLES / "configs" / team.config).read_text())
        config = RunConfig.model_validate(translate(document).body)
        assert config.model.name == model
        assert config.environments[0].id == team.package
        assert config.max_tokens == plan.reply_tokens
        assert (EXAMPLES / "environments" / team.environment / "pyproject.toml").exists()


def test_the_real_model_must_rise_by_what_the_documentation_says(plan_module):
    plan = plan_module.Plan.read("smollm2")
    assert plan.gates.at_least["reward_rise"] >= 0.15
    assert plan.first_steps == 5


def test_a_gate_that_does_not_hold_is_named(plan_module):
    from gates import broken_gates

    gates = plan_module.Gates(packs_shared_min=1, at_most={"base_eval": 0.5}, at_least={"reward_rise": 0.15})
    figures = {"base_eval": 0.6, "reward_rise": 0.1, "response_digest": "a", "deployed_digest": "b", "openai_call_ok": True}
    report = {
        "teams": {"words": figures},
        "packs_with_all_runs": 1,
        "trainer_pids": [1],
        "base_weights_sha256": {"before": "x", "after": "x"},
        "requests_in_flight_at_swap": {"max": 1},
        "ledger_sum_microusd": 0,
        "ledger_entries_count": 4,
        "bill_recomputed_equal": True,
    }
    assert broken_gates(report, gates) == [
        "team words: the deployed and the answering digest differ",
        "team words: base_eval 0.60 > 0.5",
        "team words: reward_rise 0.10 < 0.15",
    ]
