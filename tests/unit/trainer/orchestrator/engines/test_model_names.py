"""Rollouts go to the adapter that trains, or the run ends with the cause (case 19): a policy that stays the base model while an
adapter trains beside it would learn nothing, in silence."""

import asyncio
from pathlib import Path

from tests.fixtures.memory_link import call_app
from tests.fixtures.orchestrator_world import BASE_DIGEST
from tests.fixtures.scripted_run import ScriptedEnvironment, ScriptedRun, good
from tests.fixtures.virtual_time import run_virtually
from tests.unit.trainer.orchestrator.test_injected_failures import GENERATE, Engine
from trainer.contracts.internal import Finish
from trainer.contracts.names import parse_engine_name
from trainer.contracts.rollouts import RolloutEnd, RolloutRequest
from trainer.contracts.run_config import RunConfig

STEPS = 4


class Environment:
    """Plays one call under `name`, or under the policy that it was told; keeps what it was answered."""

    def __init__(self, name: str = ""):
        self.name = name
        self.statuses: list[int] = []

    async def play(self, request: RolloutRequest, environment: ScriptedEnvironment) -> RolloutEnd:
        asked = {"model": self.name or request.policy, "token_ids": [257, 0], "sampling_params": {"max_tokens": 8}}
        status, _ = await call_app(environment.model_app, GENERATE, asked, {"X-Session-ID": request.rollout_id})
        self.statuses.append(status)
        return good(request.rollout_id, float(len(self.statuses) % 2))


def played(folder: Path, environment: Environment, digests: dict[str, str] | None = None) -> tuple[ScriptedRun, Engine, Finish]:
    fields = {"model": {"name": "tiny"}, "environments": [{"id": "acme/digits"}], "max_steps": STEPS, "batch_size": 16}
    run = ScriptedRun(RunConfig.model_validate(fields | {"max_off_policy_steps": 0}), folder, environment.play)
    engine = Engine(run.engine.loaded if digests is None else digests)
    run.gate_link = engine.peer.link
    return run, engine, run_virtually(asyncio.wait_for(run.attempt(), 3_600.0))


def test_each_call_names_the_version_that_trains_and_each_version_is_asked(tmp_path):
    run, engine, finish = played(tmp_path, Environment())
    assert finish.outcome == "completed"
    names = [parse_engine_name(name) for name in engine.models]
    assert {name.version for name in names} >= set(range(STEPS)) and {name.run_id for name in names} == {run.spec.subject_id}
    for step, samples in run.samples().items():
        assert {version for sample in samples for version in sample.policy_versions} == {step - 1}


def test_an_environment_that_asks_the_base_model_is_refused_and_the_run_pauses_with_the_cause(tmp_path):
    run, engine, finish = played(tmp_path, environment := Environment("tiny"))
    assert set(environment.statuses) == {404} and not engine.models, "the base never answered"
    assert (finish.outcome, finish.code) == ("paused", "environment_failing")
    assert "no sampled token was recorded" in finish.message
    assert not run.samples() and not any(row.trained or row.output_tokens for row in run.rows())


def test_an_engine_that_answers_with_the_base_under_the_adapters_name_is_found_out(tmp_path):
    class Base(dict):
        def get(self, name, default=None):
            return BASE_DIGEST

    run, engine, finish = played(tmp_path, Environment(), Base())
    assert engine.models and (finish.outcome, finish.code) == ("paused", "rollouts_lost")
    assert f"answered with weights {BASE_DIGEST[:12]}" in finish.message
    assert not run.samples() and not run.control.usage, "nothing is trained, and nothing is billed"
