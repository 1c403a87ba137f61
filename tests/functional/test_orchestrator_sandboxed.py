"""The orchestrator with real environments in real sandboxes: what their owners read when they are broken, and that good ones run.

Engine, trainer and control plane are the small world's; the wheel is fetched over HTTP and installed by the orchestrator itself.
"""

import random
import time
from collections.abc import Callable
from itertools import cycle
from pathlib import Path

import pytest
from starlette.applications import Starlette
from starlette.routing import Mount
from starlette.staticfiles import StaticFiles

from tests.factories.model_socket import END_OF_TURN, encode
from tests.fixtures.orchestrator_world import serve, tiny, world
from tests.fixtures.runner import ENVIRONMENT_PLACES, build_wheel, release_spec
from trainer.contracts.base import new_id
from trainer.contracts.internal import AttemptSpec, Finish, SandboxValues, ServedModel
from trainer.contracts.rollouts import ReleaseSpec
from trainer.orchestrator.__main__ import attend
from trainer.orchestrator.attempt.control import ControlClient, internal_client

pytestmark = pytest.mark.timeout(300)

Packed = Callable[[str], Path]
Say = Callable[[list[int]], list[int]]


@pytest.fixture(scope="module")
def packed(base_venv, sandbox_driver, tmp_path_factory) -> Packed:
    """`packed("digit_sum")`: the wheel of that environment, built once."""
    wheels: dict[str, Path] = {}

    def pack(module: str) -> Path:
        if module not in wheels:
            source = next(place / module for place in ENVIRONMENT_PLACES if (place / module).is_dir())
            wheels[module] = build_wheel(base_venv, source, tmp_path_factory.mktemp(module))
        return wheels[module]

    return pack


def spec_of(kind: str, release: ReleaseSpec, **changes) -> AttemptSpec:
    players = changes.pop("players", ())
    seats = {name: {"model": {"name": "tiny"}} for name in players}
    environment = {"id": release.environment, "timeout": changes.pop("timeout", 60.0), "seats": seats}
    trained = {"args": changes.pop("args", {}), "group_rewards": changes.pop("group_rewards", None)}
    trained |= {"algorithm": changes.pop("algorithm", None)}
    work = {
        "run": {
            "run": {
                "model": {"name": "tiny"},
                "environments": [environment | trained],
                "max_steps": 2,
                "batch_size": 8,
                "rollouts_per_example": 4,
                "max_tokens": changes.pop("max_tokens", 8),
            }
        },
        "eval": {
            "eval": {"environment": environment, "model": "tiny", "num_examples": 6},
            "served_model": ServedModel(engine_name="tiny"),
        },
        "release": {},
    }[kind]
    work["secrets"] = changes.pop("secrets", {})
    work["seats"] = [dict.fromkeys(players, ServedModel(engine_name="tiny"))]
    identity = {"kind": kind, "subject_id": new_id(), "team_id": new_id(), "attempt": 1, "segment": 1, "fencing_token": 1}
    return AttemptSpec.model_validate(identity | {"lease_s": 30.0, "base_model": tiny(), "releases": [release]} | work)


async def done(
    kind: str,
    wheel: Path,
    runner_dir: Path,
    artifacts: Path,
    *,
    say: Say | None = None,
    values: SandboxValues | None = None,
    **changes,
):
    """The finished attempt and the world that heard of it. `say` is the engine's reply to a prompt, `values` what the team has
    set for the environment."""
    module = wheel.name.split("-")[0]
    files = Starlette(routes=[Mount("/", StaticFiles(directory=str(wheel.parent)))])
    async with serve(files) as origin:
        identity = {"wheel_url": f"{origin}/{wheel.name}", "release_id": f"sandboxed-{module}"}
        release = release_spec(wheel, module).model_copy(update=identity)
        async with world(spec_of(kind, release, **changes), artifacts, None) as place:
            place.engine.say = say or place.engine.say
            place.control.values = values or place.control.values
            control = ControlClient(internal_client(place.control_url, "token"))
            finish: Finish = await attend(control, runner_dir=runner_dir, pool_token=None)
            await control.aclose()
    return finish, place


async def test_a_run_of_a_real_environment_trains(packed: Packed, runner_dir: Path, tmp_path: Path):
    finish, place = await done("run", packed("digit_sum"), runner_dir, tmp_path)
    assert finish.outcome == "completed"
    trained = [row for row in place.control.summaries("train") if row.trained]
    assert len(trained) == 16 and all(row.preview and row.input_tokens > 0 and row.turns == 1 for row in trained)
    assert place.engine.salts == {place.control.spec.team_id}
    assert place.control.usage["sandbox_seconds", "1.tests/digit_sum.1.0"] > 0


async def test_games_of_several_turns_train_on_what_the_engine_sampled_and_nothing_else(packed, runner_dir, tmp_path):
    # Bytes that are no UTF-8, special tokens inside, cut off or closed: what no rendering of the text would give again.
    draw = random.Random(0)
    tokens = [token for token in range(261) if token != END_OF_TURN]

    def say(prompt: list[int]) -> list[int]:
        return draw.choices(tokens, k=draw.randint(1, 7)) + [END_OF_TURN] * draw.randint(0, 1)

    finish, place = await done("run", packed("word_guess"), runner_dir, tmp_path, say=say, args={"turns": 3})
    assert finish.outcome == "completed", finish
    rows = [row for row in place.control.summaries("train") if row.trained]
    assert len(rows) == 16 and {row.turns for row in rows} == {3}
    heard = [tuple(prompt) + tuple(reply) for prompt, reply in place.engine.spoken]
    for step, asked in place.trainer.batches.items():
        assert place.control.steps()[step]["broken_prefixes"] == 0
        assert len(asked.batch.samples) == 8, "one stream a game"
        for sample in asked.batch.samples:
            turns = [(p, r) for p, r in place.engine.spoken if tuple(p + r) == tuple(sample.token_ids[: len(p) + len(r)])]
            assert tuple(sample.token_ids) in heard
            mask = [False] * len(sample.token_ids)
            for prompt, reply in turns:
                mask[len(prompt) : len(prompt) + len(reply)] = [True] * len(reply)
            assert sample.mask == mask and sum(mask) > 3


async def test_a_forked_rollout_trains_each_stream_and_each_token_once(packed: Packed, runner_dir: Path, tmp_path: Path):
    finish, place = await done("run", packed("scouts"), runner_dir, tmp_path)
    assert finish.outcome == "completed", finish
    rows = [row for row in place.control.summaries("train") if row.trained]
    assert len(rows) == 16 and {(row.turns, row.reward) for row in rows} == {(4, 3.0)}
    for step, asked in place.trainer.batches.items():
        assert place.control.steps()[step]["broken_prefixes"] == 0
        assert len(asked.batch.samples) == 3 * 8, "three streams a rollout"
        assert sum(map(sum, (sample.mask for sample in asked.batch.samples))) == sum(
            row.output_tokens for row in rows if row.rollout_id in {sample.rollout_id for sample in asked.batch.samples}
        )


async def test_echo_learns_what_tools_and_partners_told_the_agent_that_learns(packed: Packed, runner_dir: Path, tmp_path: Path):
    call = encode('<tool_call>{"name": "add", "arguments": {"a": 1, "b": 2}}</tool_call>')

    def say(prompt: list[int]) -> list[int]:
        heard = bytes(token for token in prompt if token < 256).decode()
        if "remark" in heard:
            return encode("s")
        return (encode("ok") if "review" in heard else encode("t")) if "=3" in heard else call

    algorithm = {"id": "echo", "options": {"alpha": 0.25}}
    finish, place = await done("run", packed("reviewed_sums"), runner_dir, tmp_path, say=say, algorithm=algorithm, max_tokens=80)
    assert finish.outcome == "completed", finish
    samples = [sample for asked in place.trainer.batches.values() for sample in asked.batch.samples]
    assert len(samples) == 16, "one stream a rollout: the solver's"
    for sample in samples:
        streams = zip(sample.token_ids, sample.mask, sample.ce_weights, strict=True)
        told = [(token, sampled, weight) for token, sampled, weight in streams if token < 256]
        learnt = bytes(token for token, _, weight in told if weight).decode()
        assert {weight for _, _, weight in told} == {0.0, 0.25} and not any(weight for _, sampled, weight in told if sampled)
        assert "=3" in learnt and "remark ok" in learnt and "solve" not in learnt, learnt
        assert b"review" not in bytes(token for token, _, _ in told), "the reviewer's own stream is in no batch"
        said = bytes(token for token, sampled, _ in told if sampled).decode()
        assert said.endswith("ts") and said.count("add") == 1


async def test_a_run_pays_for_its_frozen_user_apart_and_trains_the_assistant_alone(
    packed: Packed, runner_dir: Path, tmp_path: Path
):
    finish, place = await done("run", packed("opening_hours"), runner_dir, tmp_path, players=("user",))
    assert finish.outcome == "completed", finish
    samples = [sample for asked in place.trainer.batches.values() for sample in asked.batch.samples]
    assert len(samples) == 16, "one stream a dialogue: the assistant's"
    assert all(b"Opening hours" in bytes(token for token in sample.token_ids if token < 256) for sample in samples)
    output = {name: quantity for (meter, name), quantity in place.control.usage.items() if meter == "rollout_output_tokens"}
    assert {name.endswith(".seat.user") for name in output} == {True, False}, output


async def test_both_sides_of_a_game_are_trained_each_against_its_own_past(packed: Packed, runner_dir: Path, tmp_path: Path):
    finish, place = await done("run", packed("nim"), runner_dir, tmp_path, algorithm={"id": "rae"})
    assert finish.outcome == "completed", finish
    samples = [sample for asked in place.trainer.batches.values() for sample in asked.batch.samples]
    by_rollout = {rollout: [one for one in samples if one.rollout_id == rollout] for rollout in {s.rollout_id for s in samples}}
    assert len(by_rollout) == 16 and {len(sides) for sides in by_rollout.values()} == {2}
    # One side has won and the other lost: one signal for the whole rollout would tell both the same.
    told = [[max(side.advantages or (), key=abs, default=0.0) for side in sides] for sides in by_rollout.values()]
    assert all(first != second for first, second in told), told


async def test_an_import_that_fails_is_named_within_a_minute(packed: Packed, runner_dir: Path, tmp_path: Path):
    started_s = time.monotonic()
    finish, place = await done("run", packed("broken_import"), runner_dir, tmp_path)
    assert (finish.outcome, finish.code) == ("failed", "environment_broken")
    assert finish.detail["module"].startswith("broken_import/") and finish.detail["line"] > 0
    assert str(finish.detail["line"]) in finish.message
    said = [event.payload for event in place.control.of_kind("log") if event.payload["component"] == "environment"]
    assert {line["env_name"] for line in said} == {place.control.spec.releases[0].environment}
    assert any("Error" in line["message"] for line in said), "its own words are in the log, by its name"
    assert time.monotonic() - started_s < 60


@pytest.mark.parametrize(
    ("module", "words"), [("raising_reward", "raising_reward/"), ("nan_reward", "nan at nan_reward/__init__.py:7")]
)
async def test_rewards_that_fail_pause_the_run_and_name_the_cause(packed, runner_dir, tmp_path, module, words):
    finish, place = await done("run", packed(module), runner_dir, tmp_path)
    assert (finish.outcome, finish.code) == ("paused", "environment_failing")
    assert words in finish.message
    rows = place.control.summaries()
    # Every second task of the first package is scored well and may be home before the run has seen enough of the others.
    assert all(row.reward is None for row in rows if row.state == "failed") and not any(row.trained for row in rows)


async def test_rewards_that_hang_are_cut_off_and_pause_the_run(packed: Packed, runner_dir: Path, tmp_path: Path):
    finish, place = await done("run", packed("hanging_reward"), runner_dir, tmp_path, timeout=10.0)
    assert (finish.outcome, finish.code) == ("paused", "environment_failing")
    cut_off = [row for row in place.control.summaries() if row.state == "deadline"]
    assert cut_off and all(row.input_tokens > 0 and row.billed for row in cut_off)


async def test_an_evaluation_of_a_real_environment_has_a_mean(packed: Packed, runner_dir: Path, tmp_path: Path):
    finish, place = await done("eval", packed("digit_sum"), runner_dir, tmp_path)
    rows = place.control.summaries("eval")
    assert finish.outcome == "completed" and len(rows) == 6
    assert all(row.reward is not None and row.output_tokens == 2 for row in rows)


async def test_an_evaluation_lets_another_model_play_the_user_and_bills_it_apart(
    packed: Packed, runner_dir: Path, tmp_path: Path
):
    finish, place = await done("eval", packed("opening_hours"), runner_dir, tmp_path, players=("user",))
    assert finish.outcome == "completed", finish
    rows = place.control.summaries("eval")
    assert {(row.state, row.turns) for row in rows} == {("ok", 8)}, "the environment's own limit"
    output = {key[1]: quantity for key, quantity in place.control.usage.items() if key[0] == "rollout_output_tokens"}
    assert {name.endswith(".seat.user") for name in output} == {True, False}, output
    assert sum(output.values()) == sum(row.output_tokens for row in rows)


@pytest.mark.parametrize(
    ("module", "ok", "place"),
    [
        ("digit_sum", True, None),
        ("word_guess", True, None),
        ("arithmetic_tools", True, None),
        ("broken_import", False, "broken_import/"),
        ("nan_reward", False, "nan_reward/"),
        # What no base model here can read is found before any run: nothing starts on a red release.
        ("pictures", False, None),
    ],
)
async def test_a_release_check_says_green_or_red_and_where(packed, runner_dir, tmp_path, module, ok, place):
    finish, _ = await done("release", packed(module), runner_dir, tmp_path)
    verdict = finish.verdict
    assert finish.outcome == "completed" and verdict is not None
    assert verdict.ok == ok, verdict.summary
    assert (verdict.module or "").startswith(place or "")
    assert (verdict.line is not None) == (place is not None)


async def test_group_rewards_of_a_real_environment_are_paid_on_top(packed: Packed, runner_dir: Path, tmp_path: Path):
    replies = cycle([[97, END_OF_TURN], [97, 98, 99, END_OF_TURN]])
    rewards = [{"name": "longest", "weight": 0.5}, {"name": "shortest_correct", "weight": 0.25}]
    finish, place = await done(
        "run", packed("group_scores"), runner_dir, tmp_path, say=lambda prompt: next(replies), group_rewards=rewards
    )
    assert finish.outcome == "completed", finish
    rows = [row for row in place.control.summaries("train") if row.trained]
    for row in rows:
        parts = row.rewards
        assert row.reward == parts["said_something"] + 0.5 * parts["group/longest"] + 0.25 * parts["group/shortest_correct"]
    # A group whose replies are all alike earns both everywhere.
    assert {row.reward for row in rows} <= {1.25, 1.5, 1.75}
    metrics = place.control.steps()[1]
    assert 0 < metrics[f"reward_part/{rows[0].environment}/group/longest"] <= 1
