"""Teachers in a run, driven through the orchestrator's real HTTP: who is loaded, who is asked, what the batches say."""

import base64
import json
from pathlib import Path

import pytest
import torch
import zstandard

from tests.factories.engines import small_limits
from tests.factories.tiny_llama import make_model, model_spec, write_adapter
from tests.fixtures.orchestrator_world import answer, digest_of, serve, world
from tests.functional.test_orchestrator import attempt, mixed, run_config, run_spec
from trainer.contracts.base import new_id
from trainer.contracts.events import FailureCode
from trainer.contracts.generation import GenerateReply, GenerateRequest, SamplingParams
from trainer.contracts.internal import ServedModel
from trainer.inference.assembly import torch_service
from trainer.inference.server import make_app
from trainer.orchestrator.attempt.services import Service, pool_client
from trainer.orchestrator.engines.client import Engines
from trainer.orchestrator.engines.gate import EngineGate
from trainer.orchestrator.engines.policies import Policy, PolicyTable
from trainer.orchestrator.engines.publishing import load_served
from trainer.orchestrator.groups.references import EngineReference
from trainer.orchestrator.proxy.model_requests import Pins
from trainer.orchestrator.proxy.token_texts import TokenTexts
from trainer.orchestrator.transport.link import Link

EXPERT = f"{new_id()}.v7"


def quiet(code: str, message: str) -> None:
    """Nobody is told of engines that come and go."""


def served(name: str) -> ServedModel:
    return ServedModel(engine_name=name, adapter_path="v7", adapter_digest=digest_of(name))


def samples_of(place, step: int = 1):
    return place.trainer.batches[step].batch.samples


async def test_opd_trains_on_the_teachers_scores_and_leaves_the_teacher_loaded(tmp_path: Path):
    config = run_config(algorithm={"id": "opd"}, teacher={"model": {"name": "math@7"}}, max_steps=2, temperature=0.8)
    async with world(run_spec(config=config, teachers=[served(EXPERT)]), tmp_path, mixed) as place:
        finish = await attempt(place)
    assert finish.outcome == "completed"
    assert EXPERT in place.engine.loads and EXPERT not in place.engine.unloads
    assert {(body["model"], body["temperature"], body["cache_salt"]) for body in place.engine.scored} == {
        (EXPERT, 0.8, place.control.spec.team_id)
    }
    batch = place.trainer.batches[1].batch
    assert (batch.n_rl, batch.n_ce, batch.n_ref_kl) == (0, 0, sum(sum(sample.mask) for sample in batch.samples))
    for sample in batch.samples:
        assert sample.ref_logprobs == [-n / 100 if sampled else 0.0 for n, sampled in enumerate(sample.mask)]
        assert sample.ref_kl_weights == [1.0 if sampled else 0.0 for sampled in sample.mask]
    assert all(body["token_ids"] in [sample.token_ids for sample in batch.samples] for body in place.engine.scored[:8])


async def test_opsd_asks_the_version_that_sampled_and_slices_the_hint_off(tmp_path: Path):
    config = run_config(algorithm={"id": "opsd", "options": {"hint": "{hint}!"}}, max_steps=2)
    async with world(run_spec(config=config), tmp_path, mixed) as place:
        place.runner.hint = "1+1"
        finish = await attempt(place)
    assert finish.outcome == "completed"
    run_id, hint = place.control.spec.subject_id, [49, 43, 49, 33]
    assert {body["model"] for body in place.engine.scored} <= {f"{run_id}.v{version}" for version in range(3)}
    assert all(body["token_ids"][: len(hint)] == hint for body in place.engine.scored)
    for sample in samples_of(place):
        assert sample.ref_logprobs == [-(n + len(hint)) / 100 if sampled else 0.0 for n, sampled in enumerate(sample.mask)]


async def test_a_task_without_a_hint_ends_an_opsd_run_by_name(tmp_path: Path):
    async with world(run_spec(config=run_config(algorithm={"id": "opsd"})), tmp_path, mixed) as place:
        finish = await attempt(place)
    assert (finish.outcome, finish.code) == ("failed", "environment_failing")
    assert "has no hint" in finish.message and "acme/digits" in finish.message


async def test_sft_learns_what_the_teacher_says_while_versions_go_on(tmp_path: Path):
    """Rewards choose the rollouts; the policy of the moment samples none of them."""
    config = run_config(
        algorithm={"id": "sft", "options": {"min_reward": 0.5}},
        teacher={"model": {"name": "math@7"}, "sampling": {"temperature": 0.6}},
        max_steps=3,
    )
    asked: list[str] = []

    async def play(request, runner):
        asked.append(request.policy)
        return await answer(request, runner, reward=float(len(asked) % 2))

    async with world(run_spec(config=config, teachers=[served(EXPERT)]), tmp_path, play) as place:
        finish = await attempt(place)
    assert finish.outcome == "completed" and set(asked) == {EXPERT}
    assert not place.engine.scored and EXPERT not in place.engine.unloads
    rewards = {row.rollout_id: row.reward for row in place.control.summaries()}
    assert {0.0, 1.0} <= set(rewards.values())
    for sample in samples_of(place, 2):
        assert rewards[sample.rollout_id] == 1.0, "the others are left out of the batch"
        assert sample.ce_weights == [1.0 if sampled else 0.0 for sampled in sample.mask]
        assert not any(sample.rl_weights) and set(sample.temperatures) == {0.6}


async def test_an_sft_run_whose_teacher_is_never_good_enough_pauses(tmp_path: Path):
    config = run_config(algorithm={"id": "sft", "options": {"min_reward": 2.0}}, teacher={"model": {"name": "math@7"}})
    async with world(run_spec(config=config, teachers=[served(EXPERT)]), tmp_path, mixed) as place:
        finish = await attempt(place)
    assert (finish.outcome, finish.code) == ("paused", "environment_failing")
    assert "min_reward" in finish.message and place.trainer.trained == 0


async def test_several_teachers_teach_one_run_each_in_its_own_environment(tmp_path: Path):
    other = f"{new_id()}.v3"
    config = run_config(
        environments=[
            {"id": "acme/sums", "timeout": 60.0, "teacher": {"model": {"name": "sums@7"}}},
            {"id": "acme/maxes", "timeout": 60.0, "teacher": {"model": {"name": "maxes@3"}}},
        ],
        algorithm={"id": "opd"},
        max_steps=2,
        batch_size=16,
        max_off_policy_steps=0,
    )
    async with world(run_spec(config=config, teachers=[served(EXPERT), served(other)]), tmp_path, mixed) as place:
        finish = await attempt(place)
    assert finish.outcome == "completed"
    assert {body["model"] for body in place.engine.scored} == {EXPERT, other}
    assert {sample.environment for sample in samples_of(place)} == {"acme/sums", "acme/maxes"}


async def test_engines_that_refuse_to_score_end_the_run_with_their_words(tmp_path: Path):
    config = run_config(algorithm={"id": "opd"}, teacher={"model": {"name": "math@7"}})
    async with world(run_spec(config=config, teachers=[served(EXPERT)]), tmp_path, mixed) as place:
        place.engine.score_refusal = "temperature 1 alone"
        finish = await attempt(place)
    assert finish.outcome == "failed" and "temperature 1 alone" in finish.message


async def test_a_run_whose_groups_can_never_be_scored_pauses_and_costs_nothing(tmp_path: Path):
    """The hint alone is longer than the context: every rollout is good, and none can be learnt from."""
    config = run_config(algorithm={"id": "opsd", "options": {"hint": "a very long hint " * 200}})
    async with world(run_spec(config=config), tmp_path, mixed) as place:
        finish = await attempt(place)
    assert (finish.outcome, finish.code) == ("paused", "rollouts_lost")
    assert "more than the context" in finish.message
    assert not any(row.billed for row in place.control.summaries() if row.state == "infrastructure")


async def test_an_engine_that_forgot_the_teacher_is_told_again(tmp_path: Path):
    config = run_config(algorithm={"id": "opd"}, teacher={"model": {"name": "math@7"}}, max_steps=3)
    async with world(run_spec(config=config, teachers=[served(EXPERT)]), tmp_path, mixed) as place:

        async def forget(step):
            if step == 2:
                place.engine.loaded.pop(EXPERT, None)

        place.trainer.before_step = forget
        finish = await attempt(place)
    # Calls that were refused at the same moment may each ask for it.
    assert finish.outcome == "completed" and place.engine.loads.count(EXPERT) >= 2


async def test_a_recorded_run_is_learnt_from_without_a_sandbox_an_engine_or_a_bill(tmp_path: Path):
    async with world(run_spec(config=run_config(max_steps=2)), tmp_path / "first", mixed) as source:
        await attempt(source)
    kept = {step: records(batch) for (step, tag), batch in source.control.rollouts.items() if tag == "train"}
    config = run_config(
        environments=[{"id": "acme/digits", "replay": {"run_id": source.control.spec.subject_id}}],
        algorithm={"id": "sft", "options": {"min_reward": 1.0}},
        max_steps=3,
    )
    steps = [{"step": step, "rollouts_count": len(rows)} for step, rows in sorted(kept.items())]
    replays = [{"run_id": source.control.spec.subject_id, "steps": steps}]
    async with world(run_spec(config=config, replays=replays), tmp_path / "second", mixed) as place:
        place.control.recorded = {(0, step): [row for row in rows if row["state"] == "ok"] for step, rows in kept.items()}
        finish = await attempt(place)
    assert finish.outcome == "completed"
    assert (place.runners, place.engine.calls, place.engine.scored) == ([], 0, [])
    assert {meter for meter, _ in place.control.usage} == {"training_tokens"}
    taught = [sample for step in (1, 2, 3) for sample in samples_of(place, step)]
    said = {tuple(sample.token_ids) for step in (1, 2) for sample in samples_of(source, step)}
    assert {tuple(sample.token_ids) for sample in taught} <= said
    rewards = {row.rollout_id: row.reward for row in place.control.summaries()}
    assert all(any(sample.ce_weights) and rewards[sample.rollout_id] == 1.0 for sample in taught)


async def test_a_real_engine_tells_a_reference_what_its_sampling_told(tmp_path: Path):
    """Over HTTP, at the run's temperature, under the name of a teacher and of the policy."""
    folder = make_model(tmp_path / "model")
    digest = write_adapter(tmp_path / "v7", folder, seed=3)
    service = torch_service(
        model_spec(folder),
        artifacts=tmp_path,
        limits=small_limits(),
        on_fatal=lambda: None,
        device=torch.device("cpu"),
        dtype=torch.float32,
    )
    await service.start()
    pins, policies = Pins("team", temperature=0.7, max_tokens=8, context_tokens=256), PolicyTable()
    try:
        async with serve(make_app(service, pool_token=None)) as url, pool_client(None) as http:
            engines = Engines([Service(http, url, "engine", FailureCode.INFERENCE_UNREACHABLE, quiet)])
            teacher = await load_served(
                ServedModel(engine_name="c.v7", adapter_path="v7", adapter_digest=digest), tmp_path, engines
            )
            policies.publish(Policy("random", await engines.base_digest("random")))
            policies.add(teacher)
            gate = EngineGate(Link.to_url(url, {}), engines, quiet)
            for name in ("random", "c.v7"):
                made = await generated(gate, policies.find(name), [5, 6, 7])
                reference = EngineReference(
                    gate, policies, pins=pins, texts=TokenTexts(folder), teacher=None if name == "random" else name
                )
                scores = await reference.logprobs([5, 6, 7, *made.token_ids], policy="random")
                sampled_at = [entry.logprob for entry in made.logprobs.content]
                assert scores[3:] == pytest.approx(sampled_at, abs=5e-5) and scores[0] == 0.0
    finally:
        await service.stop()


async def generated(gate: EngineGate, policy: Policy, prompt: list[int]):
    sampling = SamplingParams(temperature=0.7, max_tokens=8, seed=1, ignore_eos=True)
    asked = GenerateRequest(model=policy.engine_name, token_ids=prompt, sampling_params=sampling)
    reply = await gate.ask("/inference/v1/generate", asked.model_dump_json().encode(), policy)
    return GenerateReply.model_validate_json(reply.body).choices[0]


def records(batch) -> list[dict]:
    text = zstandard.decompress(base64.b64decode(batch.body_zstd_b64), max_output_size=2**24)
    return [json.loads(line) for line in text.splitlines()]
