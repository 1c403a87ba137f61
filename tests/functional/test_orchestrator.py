"""An orchestrator's promises, driven through its real HTTP against a small world with switches."""

import asyncio
import random
from itertools import count
from pathlib import Path

import pytest
from httpx import HTTPStatusError
from starlette.responses import JSONResponse

from tests.fixtures.orchestrator_world import World, answer, release, tiny, versions, world
from trainer.contracts.base import new_id
from trainer.contracts.internal import AttemptSpec, Finish, ServedModel
from trainer.contracts.rollouts import RolloutEnd, TenantError, TraceReport
from trainer.contracts.run_config import EvalConfig, RunConfig
from trainer.orchestrator.__main__ import attend
from trainer.orchestrator.attempt.control import ControlClient, internal_client
from trainer.orchestrator.attempt.endings import StaleLease, first_ending
from trainer.orchestrator.environments.task_order import TaskOrder


def run_config(**changes) -> RunConfig:
    settings = {
        "model": {"name": "tiny"},
        "environments": [{"id": "acme/digits", "timeout": 60.0}],
        "max_steps": 4,
        "batch_size": 8,
        "rollouts_per_example": 4,
        "checkpoints": {"interval": 2},
    }
    return RunConfig.model_validate(settings | changes)


def run_spec(**changes) -> AttemptSpec:
    config = changes.pop("config", None) or run_config()
    settings = {
        "kind": "run",
        "subject_id": new_id(),
        "team_id": new_id(),
        "attempt": 1,
        "segment": 1,
        "fencing_token": 1,
        "lease_s": 12.0,
        "base_model": tiny(),
        "run": config,
        "releases": [release() for _ in [*config.environments, *(config.eval.environments if config.eval else [])]],
    }
    return AttemptSpec.model_validate(settings | changes)


async def attempt(place: World, **options) -> Finish:
    control = ControlClient(internal_client(place.control_url, "token"))
    try:
        return await attend(control, runner_dir=place.artifacts, pool_token="pool", starter=options.pop("starter", place.starter))
    finally:
        await control.aclose()


async def mixed(asked, runner):
    """Rewards that differ inside a group, after a short and uneven time."""
    await asyncio.sleep(random.uniform(0.0, 0.01))
    return await answer(asked, runner, reward=float(hash(asked.rollout_id) % 2))


async def test_a_run_trains_every_step_and_reports_each_once(tmp_path: Path):
    async with world(run_spec(), tmp_path, mixed) as place:
        finish = await attempt(place)
    control = place.control
    assert (finish.outcome, finish.code) == ("completed", None)
    assert control.finish == finish
    assert sorted(control.steps()) == [1, 2, 3, 4]
    assert place.trainer.trained == 4
    assert control.checkpoints == [2, 4]
    assert place.trainer.closed == 1
    assert [len(batch.batch.samples) for batch in place.trainer.batches.values()] == [8, 8, 8, 8]
    assert control.versions[4].keep and not control.versions[3].keep


async def test_every_dispatched_rollout_is_accounted_exactly_once(tmp_path: Path):
    seen: list[str] = []

    async def play(asked, runner):
        seen.append(asked.rollout_id)
        return await mixed(asked, runner)

    async with world(run_spec(), tmp_path, play) as place:
        await attempt(place)
    rows = [row.rollout_id for row in place.control.summaries()]
    assert len(rows) == len(set(rows))
    trained = {sample.rollout_id for batch in place.trainer.batches.values() for sample in batch.batch.samples}
    assert trained == {row.rollout_id for row in place.control.summaries() if row.trained}
    assert set(seen) <= set(rows)


async def test_rollouts_go_on_while_the_trainer_steps_and_stay_within_the_bound(tmp_path: Path):
    config = run_config(max_steps=8, max_off_policy_steps=2)
    async with world(run_spec(config=config), tmp_path, mixed) as place:

        async def slow(step):
            await asyncio.sleep(0.05)

        place.trainer.before_step = slow
        await attempt(place)
    trained = [row for row in place.control.summaries("train") if row.trained]
    assert max(row.staleness for row in trained) in (1, 2)
    assert len(set(versions(place.engine.loads))) == 9
    assert all(row.policy_version_min == row.policy_version_max for row in trained)
    assert place.engine.unloads and set(versions(place.engine.unloads)) <= set(range(8))


async def test_a_bound_of_zero_trains_on_fresh_rollouts_alone(tmp_path: Path):
    async with world(run_spec(config=run_config(max_off_policy_steps=0)), tmp_path, mixed) as place:
        finish = await attempt(place)
    assert finish.outcome == "completed"
    assert {row.staleness for row in place.control.summaries("train") if row.trained} == {0}


async def test_usage_equals_the_billed_rollouts_and_the_trained_tokens(tmp_path: Path):
    async with world(run_spec(), tmp_path, mixed) as place:
        await attempt(place)
    usage, rows = place.control.usage, place.control.summaries()
    billed = [row for row in rows if row.billed]
    assert sum(q for (meter, _), q in usage.items() if meter == "rollout_input_tokens") == sum(r.input_tokens for r in billed)
    assert sum(q for (meter, _), q in usage.items() if meter == "rollout_output_tokens") == sum(r.output_tokens for r in billed)
    tokens = sum(len(s.token_ids) for b in place.trainer.batches.values() for s in b.batch.samples)
    assert sum(q for (meter, _), q in usage.items() if meter == "training_tokens") == tokens


async def test_a_failing_minority_is_masked_and_never_a_reward_of_zero(tmp_path: Path):
    failures, numbers = set(), count()

    async def play(asked, runner):
        if next(numbers) % 4 == 3 and len(failures) < 6:
            failures.add(asked.rollout_id)
            error = TenantError(type="KeyError", message="'x'", module="digits/__init__.py", line=7, function="score")
            return RolloutEnd(state="failed", errors=[error], fault="tenant")
        return await answer(asked, runner, reward=1.0)

    async with world(run_spec(), tmp_path, play) as place:
        finish = await attempt(place)
    assert finish.outcome == "completed"
    rows = {row.rollout_id: row for row in place.control.summaries()}
    assert failures
    for rollout_id in failures & set(rows):
        assert (rows[rollout_id].state, rows[rollout_id].reward, rows[rollout_id].trained) == ("failed", None, False)
        assert "digits/__init__.py:7" in rows[rollout_id].error
    samples = [sample for batch in place.trainer.batches.values() for sample in batch.batch.samples]
    assert {advantage for sample in samples for advantage in sample.advantages} == {0.0}


@pytest.mark.parametrize(
    ("fault", "code", "is_billed"), [("tenant", "environment_failing", True), ("infrastructure", "rollouts_lost", False)]
)
async def test_nine_failures_in_ten_teach_nothing_are_charted_and_pause_the_run(tmp_path: Path, fault, code, is_billed):
    """The kind: rollouts that fail before they are played, once counted as real rewards of 0. Groups that have too few good
    members are dropped, the rest is compared among the good ones alone, and what we break is free."""
    numbers = count()

    async def play(asked, runner):
        number, trace_id = next(numbers), new_id()
        is_bad = number >= 16 and number % 10 > 0
        if is_bad and fault == "infrastructure":
            place.engine.lies_left = max(0, place.engine.lies_left) + 1
        try:
            await runner.generate(asked, trace_id, [257, 49, 43, 49])
        except HTTPStatusError:
            return RolloutEnd(state="failed", traces=[TraceReport(trace_id=trace_id, state="failed")])
        if is_bad and fault == "tenant":
            error = TenantError(type="ConnectionError", message="the session was not reset")
            return RolloutEnd(
                state="failed", traces=[TraceReport(trace_id=trace_id, state="failed", errors=[error])], fault="tenant"
            )
        return RolloutEnd(state="ok", traces=[TraceReport(trace_id=trace_id, state="ok", reward=1.0, turns=1)])

    config = run_config(max_steps=50, failure_pause_fraction=0.5)
    async with world(run_spec(config=config), tmp_path, play) as place:
        finish = await attempt(place)
    assert (finish.outcome, finish.code) == ("paused", code)
    rows = place.control.summaries()
    broken = [row for row in rows if row.state in {"failed", "infrastructure"}]
    assert len(broken) >= 5
    assert not any(row.trained or row.reward is not None for row in broken)
    assert {row.billed for row in broken} == {is_billed}
    samples = [sample for batch in place.trainer.batches.values() for sample in batch.batch.samples]
    assert samples and {advantage for sample in samples for advantage in sample.advantages} == {0.0}, "no failure was a 0"
    billed = [row for row in rows if row.billed]
    usage = place.control.usage
    assert sum(q for (meter, _), q in usage.items() if meter == "rollout_input_tokens") == sum(r.input_tokens for r in billed)


async def test_a_run_pauses_with_the_reason_when_most_rollouts_fail(tmp_path: Path):
    async def play(asked, runner):
        error = TenantError(type="KeyError", message="'missing'", module="digits/__init__.py", line=21, function="score_it")
        return RolloutEnd(state="failed", errors=[error], fault="tenant")

    async with world(run_spec(), tmp_path, play) as place:
        finish = await attempt(place)
    assert (finish.outcome, finish.code) == ("paused", "environment_failing")
    assert "KeyError: 'missing' at digits/__init__.py:21" in finish.message
    assert place.trainer.closed == 1


@pytest.mark.parametrize(("pauses", "ending"), [(True, ("paused", "diverging")), (False, ("completed", None))])
async def test_a_run_that_falls_apart_is_told_once_and_pauses_if_its_owner_wants(tmp_path: Path, pauses, ending):
    config = run_config(max_steps=8, pause_on_divergence=pauses, learning_rate=0.02)
    async with world(run_spec(config=config), tmp_path, mixed) as place:
        place.trainer.metrics = {"step_kl": 9.0, "grad_norm": 3.5}
        finish = await attempt(place)
    assert (finish.outcome, finish.code) == ending
    (told,) = [event for event in place.control.of_kind("incident") if event.payload["code"] == "diverging"]
    assert (told.step, told.payload["component"]) == (3, "orchestrator")
    assert "grad_norm 3.5" in told.payload["message"] and "learning_rate below 0.02" in told.payload["message"]
    assert max(place.control.steps()) == (3 if pauses else 8), "the step that raised the alarm is reported too"
    if pauses:
        assert finish.message == told.payload["message"]
        assert place.control.checkpoints[-1] == 3 and place.control.versions[3].keep


async def test_a_hanging_rollout_is_cut_off_at_its_deadline(tmp_path: Path):
    hung = []

    async def play(asked, runner):
        if len(hung) < 2:
            hung.append(asked.rollout_id)
            await asyncio.Event().wait()
        return await mixed(asked, runner)

    slots = {"max_inflight_rollouts": 4, "failure_pause_fraction": 1.0}
    config = run_config(environments=[{"id": "acme/digits", "timeout": 2.0}], **slots)
    async with world(run_spec(config=config), tmp_path, play) as place:
        finish = await attempt(place)
    assert finish.outcome == "completed"
    states = {row.rollout_id: row.state for row in place.control.summaries()}
    assert {states.get(rollout_id) for rollout_id in hung} <= {"deadline", "stale"}


async def test_an_engine_that_restarts_gets_its_versions_again(tmp_path: Path):
    async with world(run_spec(), tmp_path, mixed) as place:

        async def restart(step):
            if step == 2:
                place.engine.restart()

        place.trainer.before_step = restart
        finish = await attempt(place)
    assert finish.outcome == "completed"
    assert place.control.of_kind("incident")
    assert len(place.engine.loads) > 5


async def test_an_adapter_digest_that_was_not_published_is_never_trained_on(tmp_path: Path):
    lied = set()

    async def play(asked, runner):
        try:
            return await answer(asked, runner)
        except HTTPStatusError:
            lied.add(asked.rollout_id)
            return RolloutEnd(state="failed", errors=[TenantError(type="ProviderError", message="502")])

    async with world(run_spec(), tmp_path, play) as place:
        place.engine.lies_left = 4
        finish = await attempt(place)
    assert finish.outcome == "completed"
    assert len(lied) == 4
    trained = {row.rollout_id for row in place.control.summaries() if row.trained}
    assert not trained & lied


async def test_a_trainer_that_forgot_the_run_is_opened_again(tmp_path: Path):
    async with world(run_spec(), tmp_path, mixed) as place:
        forgotten = []

        async def forget(step):
            if step == 3 and not forgotten:
                forgotten.append(step)
                place.trainer.open_runs.clear()
                return JSONResponse({"detail": "not open", "code": "run_not_open"}, status_code=404)
            return None

        place.trainer.before_step = forget
        finish = await attempt(place)
    assert finish.outcome == "completed"
    assert sorted(place.control.steps()) == [1, 2, 3, 4]


async def test_a_trainer_that_refuses_ends_the_run_with_its_words(tmp_path: Path):
    async with world(run_spec(), tmp_path, mixed) as place:

        async def refuse(step):
            return JSONResponse({"detail": "logprobs are not finite", "code": "bad_batch"}, status_code=422)

        place.trainer.before_step = refuse
        finish = await attempt(place)
    assert (finish.outcome, finish.code) == ("failed", "trainer_refused")
    assert "logprobs are not finite" in finish.message


async def test_a_lost_lease_stops_everything_and_writes_nothing_more(tmp_path: Path):
    async with world(run_spec(config=run_config(max_steps=1000)), tmp_path, mixed) as place:
        task = asyncio.ensure_future(attempt(place))
        while len(place.control.steps()) < 2:
            await asyncio.sleep(0.01)
        place.control.stale = True
        with pytest.raises(BaseException) as caught:
            await asyncio.wait_for(task, 50)
        assert isinstance(first_ending(caught.value), StaleLease)
        calls = place.engine.calls
        await asyncio.sleep(0.1)
        assert place.engine.calls == calls
        assert place.control.finish is None


@pytest.mark.parametrize(("desired", "outcome"), [("pause", "paused"), ("stop", "stopped")])
async def test_the_owner_can_end_a_run_and_it_leaves_a_checkpoint(tmp_path: Path, desired: str, outcome: str):
    config = run_config(max_steps=1000, checkpoints={"interval": 1000})
    async with world(run_spec(config=config), tmp_path, mixed) as place:
        task = asyncio.ensure_future(attempt(place))
        while len(place.control.steps()) < 2:
            await asyncio.sleep(0.01)
        place.control.desired = {"desired": desired, "reason": "enough"}
        finish = await asyncio.wait_for(task, 50)
    assert (finish.outcome, finish.message) == (outcome, "enough")
    last = max(place.control.steps())
    assert place.control.checkpoints == [last]
    assert place.control.versions[last].keep


async def test_a_fork_goes_on_behind_the_others_tasks_and_tells_no_step_lost(tmp_path: Path):
    """From the position that was reported with the checkpoint of step 2: tasks, steps and versions go on from there."""
    async with world(run_spec(), tmp_path / "parent", mixed) as parent:
        await attempt(parent)
    position = parent.control.positions[2]
    (taken,) = position.cursors.values()
    spec = run_spec(position=position, resume_step=2)
    seen: list[int] = []

    async def noted(asked, runner):
        seen.append(asked.task)
        return await mixed(asked, runner)

    async with world(spec, tmp_path / "fork", noted) as place:
        place.trainer.results[spec.subject_id, 2] = {}  # as the trainer has it once it has taken the checkpoint
        finish = await attempt(place)
    assert finish.outcome == "completed"
    assert sorted(place.control.steps()) == [3, 4] and place.control.of_kind("warning") == []
    order = TaskOrder(seed=spec.run.seed, environment=next(iter(position.cursors)), tasks_count=50)
    assert seen[0] in {order.index_at(taken + ahead) for ahead in range(4)}
    assert not set(seen) & {order.index_at(done) for done in range(taken)}
    (later,) = place.control.positions[4].cursors.values()
    assert later > taken


async def test_a_control_plane_that_is_away_for_a_moment_loses_nothing(tmp_path: Path):
    async with world(run_spec(), tmp_path, mixed) as place:
        task = asyncio.ensure_future(attempt(place))
        while not place.control.steps():
            await asyncio.sleep(0.005)
        place.control.down = True
        await asyncio.sleep(0.5)
        place.control.down = False
        finish = await task
    assert finish.outcome == "completed"
    assert sorted(place.control.steps()) == [1, 2, 3, 4]


@pytest.mark.parametrize("crash", ["before_train", "after_train"])
async def test_a_crash_between_two_lines_of_a_step_repeats_and_bills_nothing(tmp_path: Path, crash: str):
    """The first attempt dies around the trainer's step 3; the second goes on from the journal."""
    spec = run_spec()
    async with world(spec, tmp_path, mixed) as place:
        reached = asyncio.Event()

        async def stop_here(step):
            if step == 3 and crash == "before_train":
                reached.set()
                await asyncio.sleep(3600)

        place.trainer.before_step = stop_here
        if crash == "after_train":
            place.control.refuse_paths = set()

            async def watch():
                while place.trainer.trained < 2:
                    await asyncio.sleep(0.001)
                place.control.refuse_paths = {"rollouts"}
                while place.trainer.trained < 3:
                    await asyncio.sleep(0.001)
                reached.set()

            watcher = asyncio.ensure_future(watch())
        first = asyncio.ensure_future(attempt(place))
        await asyncio.wait_for(reached.wait(), 50)
        first.cancel()
        await asyncio.wait({first}, timeout=30)
        if crash == "after_train":
            await watcher
        place.control.refuse_paths = set()
        place.trainer.before_step = None
        held = max(place.control.steps(), default=0)
        trained_by_first = dict(place.trainer.batches)
        place.control.spec = place.control.spec.model_copy(update={"attempt": 2, "fencing_token": 2, "resume_step": held})
        place.control.events = {key + 100_000: event for key, event in place.control.events.items()}
        finish = await attempt(place)
    assert finish.outcome == "completed"
    assert sorted(place.control.steps()) == [1, 2, 3, 4]
    assert len(place.control.of_kind("step")) == 4
    assert place.trainer.trained == 4
    assert all(place.trainer.batches[step] == batch for step, batch in trained_by_first.items())
    for step, sent in place.trainer.batches.items():
        rows = {row.rollout_id for row in place.control.rollouts[step, "train"].summaries if row.trained}
        assert rows == {sample.rollout_id for sample in sent.batch.samples}


async def test_a_runner_that_dies_is_started_again_and_its_rollouts_are_free(tmp_path: Path):
    killed, deaths = [], []

    async def play(asked, runner):
        if len(killed) < 1:
            killed.append(asked.rollout_id)
            deaths.append(asyncio.ensure_future(runner.die("oom")))
            await asyncio.sleep(3600)
        return await mixed(asked, runner)

    async with world(run_spec(), tmp_path, play) as place:
        finish = await attempt(place)
    assert finish.outcome == "completed"
    assert place.runner.lives == 2
    incident = next(event for event in place.control.of_kind("incident") if event.payload["code"] == "runner_lost")
    assert "oom" in incident.payload["message"]
    lost = [row for row in place.control.summaries() if row.state == "infrastructure"]
    assert lost and not any(row.billed or row.trained for row in lost)


async def test_a_runner_that_keeps_dying_fails_the_run_and_names_the_rollouts(tmp_path: Path):
    deaths = []

    async def play(asked, runner):
        deaths.append(asyncio.ensure_future(runner.die("exit")))
        await asyncio.sleep(3600)

    async with world(run_spec(), tmp_path, play) as place:
        finish = await attempt(place)
    assert (finish.outcome, finish.code) == ("failed", "runner_lost")
    assert "task" in finish.message


async def test_a_runner_that_talks_nonsense_is_replaced(tmp_path: Path):
    async def play(asked, runner):
        if runner.lives == 1:
            return RolloutEnd.model_construct(event="end", state="splendid", traces=[], errors=[], fault="none")
        return await mixed(asked, runner)

    async with world(run_spec(), tmp_path, play) as place:
        finish = await attempt(place)
    assert finish.outcome == "completed"
    assert place.runner.lives == 2


async def test_evaluations_during_a_run_share_its_axis(tmp_path: Path):
    plan = {"environments": [{"id": "acme/digits"}], "interval": 2, "num_examples": 3, "rollouts_per_example": 2}
    async with world(run_spec(config=run_config(eval=plan)), tmp_path, mixed) as place:
        finish = await attempt(place)
    assert finish.outcome == "completed"
    evals = place.control.of_kind("eval")
    assert {event.step for event in evals} <= {0, 2, 4} and {event.step for event in evals} >= {0}
    assert all(event.payload["rollouts"] == 6 for event in evals)


async def test_an_evaluation_rollout_that_never_returns_delays_nothing_for_good(tmp_path: Path):
    async def play(asked, runner):
        if asked.client == "eval" and asked.task == 0:
            await asyncio.Event().wait()
        return await mixed(asked, runner)

    plan = {"environments": [{"id": "acme/digits", "timeout": 2.0}], "interval": 4, "num_examples": 2}
    async with world(run_spec(config=run_config(eval=plan)), tmp_path, play) as place:
        finish = await attempt(place)
    assert finish.outcome == "completed" and sorted(place.control.steps()) == [1, 2, 3, 4]
    first = next(event for event in place.control.of_kind("eval") if event.step == 0)
    assert (first.payload["rollouts"], first.payload["failed"]) == (2, 1)


def eval_spec(**changes) -> AttemptSpec:
    config = EvalConfig.model_validate(
        {"environment": {"id": "acme/digits", "timeout": 60.0}, "model": "tiny", "num_examples": 20, "rollouts_per_example": 2}
    )
    settings = {
        "kind": "eval",
        "subject_id": new_id(),
        "team_id": new_id(),
        "attempt": 1,
        "segment": 1,
        "fencing_token": 1,
        "lease_s": 12.0,
        "base_model": tiny(),
        "eval": config,
        "served_model": ServedModel(engine_name="tiny"),
        "releases": [release()],
    }
    return AttemptSpec.model_validate(settings | changes)


async def test_an_evaluation_excludes_failures_and_counts_them(tmp_path: Path):
    async def play(asked, runner):
        if asked.task == 3:
            return RolloutEnd(state="failed", errors=[TenantError(type="E", message="no")], fault="tenant")
        return await answer(asked, runner, reward=float(asked.task % 2))

    async with world(eval_spec(), tmp_path, play) as place:
        finish = await attempt(place)
    rows = place.control.summaries("eval")
    assert finish.outcome == "completed"
    assert sorted((row.task, row.rollout_number) for row in rows) == [(task, number) for task in range(20) for number in (0, 1)]
    assert [row.task for row in rows if row.reward is None] == [3, 3]
    assert place.control.usage["rollout_input_tokens", "eval.7.1"] == 7


async def test_an_evaluation_goes_on_with_what_is_missing(tmp_path: Path):
    done = [(task, number) for task in range(20) for number in (0, 1) if (task, number) not in ((4, 1), (19, 0))]

    async def play(asked, runner):
        return await answer(asked, runner)

    async with world(eval_spec(done=done, attempt=2, fencing_token=2), tmp_path, play) as place:
        finish = await attempt(place)
    assert finish.outcome == "completed"
    assert sorted((row.task, row.rollout_number) for row in place.control.summaries("eval")) == [(4, 1), (19, 0)]


async def test_an_evaluation_repeated_by_another_attempt_bills_nothing_twice(tmp_path: Path):
    async def play(asked, runner):
        return await answer(asked, runner)

    async with world(eval_spec(), tmp_path, play) as place:
        await attempt(place)
        once = dict(place.control.usage)
        place.control.spec = place.control.spec.model_copy(update={"attempt": 2, "fencing_token": 2})
        await attempt(place)
    tokens = {key: value for key, value in place.control.usage.items() if key[0] != "sandbox_seconds"}
    assert tokens == {key: value for key, value in once.items() if key[0] != "sandbox_seconds"}
