"""A curriculum passes over what teaches nothing now, comes back to it, and goes on after a restart as if there had been none."""

import asyncio
import logging
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.fixtures.scripted_run import ScriptedEnvironment, ScriptedRun, good
from tests.fixtures.virtual_time import run_virtually
from trainer.contracts.rollouts import RolloutEnd, RolloutRequest, TaskEntry, TaskPage
from trainer.contracts.run_config import Curriculum, EvalPlan, RunConfig
from trainer.orchestrator.attempt.endings import AttemptOver
from trainer.orchestrator.environments import curriculum, task_source
from trainer.orchestrator.environments.curriculum import CurriculumState, TaskChooser
from trainer.orchestrator.environments.task_source import TaskSource
from trainer.orchestrator.steps.journal import StepJournal

TASKS = 12
RIGHT, WRONG, MIXED = [1.0, 1.0], [0.0, 0.0], [1.0, 0.0]


def chooser(**config) -> TaskChooser:
    return TaskChooser(Curriculum(**config), seed=3, environment="digits")


def source(config: Curriculum | None, count: int | None = TASKS) -> TaskSource:
    async def page(cursor: int, limit: int) -> TaskPage:
        tasks = [TaskEntry(index=index, key=f"t{index}") for index in range(cursor, cursor + limit)]
        return TaskPage(tasks=tasks, cursor=cursor + limit)

    made = TaskSource("digits", page, seed=3)
    if config is not None:
        made.chooser = TaskChooser(config, seed=3, environment="digits")
    asyncio.run(made.learn(count))
    return made


def drawn(tasks: TaskSource, count: int) -> list[int]:
    async def draw() -> list[int]:
        return [(await tasks.next()).index for _ in range(count)]

    return asyncio.run(draw())


def test_a_task_is_easy_or_hard_once_all_of_its_latest_groups_say_so():
    chosen = chooser(groups=2, revisit=0.25)
    seen = []
    for rewards in (RIGHT, RIGHT, MIXED, WRONG, WRONG, RIGHT):
        chosen.learn(7, rewards)
        seen.append(chosen.chance(7))
    assert seen == [1.0, 0.25, 1.0, 1.0, 0.25, 1.0]
    assert chosen.chance(8) == 1.0, "nothing is known of it"


def test_thresholds_are_means_and_one_can_be_left_out():
    chosen = chooser(groups=1, easy_threshold=0.75, hard_threshold=-1.0, revisit=0.0)
    chosen.learn(1, [1.0, 1.0, 1.0, 0.0])
    chosen.learn(2, [1.0, 1.0, 0.0, 0.0])
    chosen.learn(3, WRONG)
    assert [chosen.chance(task) for task in (1, 2, 3)] == [0.0, 1.0, 1.0]


def test_a_weight_is_the_variance_next_to_the_widest():
    """Variances: task 1 has 1/4 and 0, in the mean 1/8; task 2 has 1/4; task 3 has 3/16. Task 4 has none, and is revisited."""
    chosen = chooser(groups=2, revisit=0.1, weight="variance", easy_threshold=2.0, hard_threshold=-1.0)
    for task, rewards in ((1, MIXED), (1, RIGHT), (2, MIXED), (3, [1.0, 0.0, 0.0, 0.0]), (4, RIGHT)):
        chosen.learn(task, rewards)
    assert [chosen.chance(task) for task in (1, 2, 3, 4, 5)] == pytest.approx([0.5, 1.0, 0.75, 0.1, 1.0])
    lone = chooser(weight="variance", easy_threshold=2.0)
    lone.learn(1, RIGHT)
    assert lone.chance(1) == 1.0, "where none varies, none is better"


def test_what_is_solved_is_passed_over_and_comes_back_now_and_then():
    tasks = source(Curriculum(groups=1, revisit=0.1))
    for task in range(TASKS // 2):
        tasks.chooser.learn(task, RIGHT)
    picked = drawn(tasks, 2_000)
    easy = sum(index < TASKS // 2 for index in picked) / len(picked)
    assert easy == pytest.approx(0.1 / 1.1, abs=0.02), "one in ten of as many"
    assert set(picked) == set(range(TASKS))
    metrics = tasks.chooser.take_metrics()
    assert metrics["tasks_skipped_fraction"] == pytest.approx(0.9 / 2, abs=0.02)
    assert (metrics["tasks_easy"], metrics["tasks_hard"], metrics["tasks_between"]) == (TASKS // 2, 0, 0)
    assert tasks.chooser.take_metrics()["tasks_skipped_fraction"] == 0.0


def test_tasks_are_drawn_in_their_order_even_where_all_are_solved():
    tasks, plain = source(Curriculum(groups=1, revisit=0.0)), source(None)
    for task in range(TASKS):
        tasks.chooser.learn(task, RIGHT)
    assert drawn(tasks, 3) == [drawn(plain, TASKS)[-1] for _ in range(3)], "one round of all, then whoever stands there"


@settings(max_examples=25, deadline=None)
@given(
    taught=st.lists(st.tuples(st.integers(0, TASKS - 1), st.sampled_from([RIGHT, WRONG, MIXED])), max_size=60),
    before=st.integers(0, 30),
    weight=st.sampled_from(["uniform", "variance"]),
)
def test_what_goes_on_from_a_saved_state_draws_the_same_tasks(taught, before, weight):
    config = Curriculum(groups=2, revisit=0.2, weight=weight)
    whole = source(config)
    for task, rewards in taught:
        whole.chooser.learn(task, rewards)
    drawn(whole, before)
    saved, position = whole.chooser.state().model_dump_json(), whole.position
    resumed = source(config)
    resumed.chooser.restore(CurriculumState.model_validate_json(saved))
    resumed.position = position
    assert drawn(resumed, 40) == drawn(whole, 40)
    assert resumed.chooser.state() == whole.chooser.state()


def test_the_tasks_that_were_learnt_from_longest_ago_are_forgotten_first(monkeypatch):
    monkeypatch.setattr(curriculum, "TASKS_KEPT", 3)
    chosen = chooser()
    for task in (1, 2, 3, 1, 4):
        chosen.learn(task, RIGHT)
    assert list(chosen.state().groups) == [3, 1, 4]


def test_a_taskset_without_a_known_end_has_no_curriculum(monkeypatch):
    monkeypatch.setattr(task_source, "COUNTED_MAX", 400)
    with pytest.raises(AttemptOver, match="num_examples"):
        source(Curriculum(), count=None)


@pytest.mark.parametrize(
    ("fields", "place"),
    [
        ({"curriculum": {"easy_threshold": 0.5, "hard_threshold": 0.5}}, r"environments\.0\.curriculum\.hard_threshold"),
        ({"curriculum": {"revisit": 2}}, r"environments\.0\.curriculum\.revisit"),
        ({"curriculum": {"chance": 2}}, r"environments\.0\.curriculum\.chance"),
        ({"curriculum": {}, "replay": {"run_id": "c" * 25}}, r"environments\.0\.curriculum"),
    ],
)
def test_what_makes_no_sense_is_refused_by_field(fields, place):
    with pytest.raises(ValueError, match=place):
        RunConfig.model_validate({"model": {"name": "tiny"}, "environments": [{"id": "a/b"} | fields]})
    with pytest.raises(ValueError, match="environments"):
        EvalPlan.model_validate({"environments": [{"id": "a/b", "curriculum": {}}]})


def make_run(folder: Path, curriculum: dict | None) -> ScriptedRun:
    """Of 50 tasks the policy always solves 30, never 10, and sometimes the other 10."""

    async def play(request: RolloutRequest, environment: ScriptedEnvironment) -> RolloutEnd:
        await environment.take(request.rollout_id, 1.0)
        number = environment.started.index(request.rollout_id)
        reward = 1.0 if request.task < 30 else 0.0 if request.task < 40 else float(number % 2)
        return good(environment.say(request), reward)

    fields = {"environments": [{"id": "a/b", "curriculum": curriculum}], "max_steps": 24, "batch_size": 8}
    config = RunConfig.model_validate({"model": {"name": "tiny"}, "rollouts_per_example": 2} | fields)
    return ScriptedRun(config, folder, play)


@pytest.fixture
def _quiet():
    logging.disable(logging.INFO)
    yield
    logging.disable(logging.NOTSET)


@pytest.mark.usefixtures("_quiet")
def test_a_run_with_a_curriculum_trains_on_fewer_groups_that_teach_nothing(tmp_path):
    chosen = {"groups": 1, "revisit": 0.05}
    idle = {}
    for name, given_curriculum in (("plain", None), ("chosen", chosen)):
        run = make_run(tmp_path / name, given_curriculum)
        assert run_virtually(asyncio.wait_for(run.attempt(), 3_600.0)).outcome == "completed"
        last = [metrics for step, metrics in run.control.steps().items() if step > 14]
        idle[name] = sum(metrics["zero_advantage_fraction"] for metrics in last) / len(last)
    assert idle["plain"] > 0.6 and idle["chosen"] < 0.35, idle
    assert last[-1]["tasks_easy/a/b"] >= 25 and last[-1]["tasks_skipped_fraction/a/b"] > 0.5


@pytest.mark.usefixtures("_quiet")
def test_a_run_that_goes_on_remembers_the_tasks(tmp_path):
    run = make_run(tmp_path, {"groups": 1, "revisit": 0.05})
    journal = StepJournal(run.folder, run.spec.subject_id)

    async def until_killed(steps: int) -> dict[int, list]:
        attempt = asyncio.ensure_future(run.attempt())
        while max(run.trainer.batches, default=0) < steps:
            await asyncio.sleep(0.5)
        attempt.cancel()
        await asyncio.wait({attempt})
        record = journal.newest()
        assert record is not None and record.curricula["a/b"].passed > 0
        return record.curricula["a/b"].groups

    async def lives() -> tuple[dict, dict]:
        return await until_killed(14), await until_killed(15)

    before, after = run_virtually(asyncio.wait_for(lives(), 3_600.0))
    assert len(before) > 30 and before.keys() <= after.keys(), "one more step alone could not have learnt of them"
