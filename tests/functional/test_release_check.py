"""What a release check tries and says, on a runner without a sandbox: `tests/functional/test_runner.py` has the real one."""

from pathlib import Path

from tests.fixtures.orchestrator_world import answer, world
from tests.functional.test_orchestrator import attempt, eval_spec
from trainer.contracts.events import FailureCode
from trainer.contracts.internal import AttemptSpec
from trainer.contracts.release_checks import HarnessFit, Inspection, Needs, SplitSeen, TaskProblem
from trainer.contracts.rollouts import RolloutEnd, TenantError, TraceReport
from trainer.orchestrator.attempt.endings import failed


def release_spec() -> AttemptSpec:
    return eval_spec(kind="release", eval=None, served_model=None)


async def test_a_release_that_plays_a_rollout_gets_a_green_verdict(tmp_path: Path):
    async def play(asked, runner):
        return await answer(asked, runner)

    async with world(release_spec(), tmp_path, play) as place:
        place.runner.requirements_lock = "extra-words==2.5 --hash=sha256:00"
        place.runner.interface = "load_environment"
        finish = await attempt(place)
    assert finish.outcome == "completed" and finish.verdict is not None
    assert finish.verdict.ok and finish.verdict.tasks_count == 50
    assert finish.verdict.requirements_lock == "extra-words==2.5 --hash=sha256:00"
    seen = finish.verdict.compatibility
    assert seen is not None and seen.agents == seen.trained_agents == ["agent"] and not seen.calls_tools
    assert seen.interface == "load_environment"
    assert [split.checked for split in finish.verdict.splits] == [[0, 7, 14, 21, 28, 35, 42, 49]]
    assert [(sample.task, sample.state, sample.reward) for sample in finish.verdict.samples] == [
        (0, "ok", 1.0),
        (21, "ok", 1.0),
        (49, "ok", 1.0),
    ]
    assert place.engine.calls == 0


async def test_a_release_with_an_unfit_task_gets_a_red_verdict_that_names_it(tmp_path: Path):
    async def play(asked, runner):
        raise AssertionError("an unfit task is not played")

    problems = [
        TaskProblem(split="eval", task=7, field="prompt", message="is empty"),
        TaskProblem(task=8, field="key", message="no"),
    ]
    needs = Needs(tools=["add"], harnesses=[HarnessFit(harness="rootstock-chat", evaluate=True, train=True)])
    async with world(release_spec(), tmp_path, play) as place:
        place.runner.inspection = Inspection(splits=[SplitSeen(name="eval", checked=[7, 8])], problems=problems, needs=needs)
        finish = await attempt(place)
    verdict = finish.verdict
    assert verdict is not None and not verdict.ok and verdict.problems == problems
    assert verdict.summary == "task 7 of split eval: prompt: is empty (and 1 more)"
    assert verdict.compatibility is not None and verdict.compatibility.needs is not None
    assert verdict.compatibility.needs.tools == ["add"]
    # No rollout has shown that an agent is trained.
    assert [fit.train for fit in verdict.compatibility.needs.harnesses] == [False]


async def test_a_release_of_which_one_rollout_fails_says_which(tmp_path: Path):
    async def play(asked, runner):
        if asked.task == 21:
            return RolloutEnd(state="failed", errors=[TenantError(type="KeyError", message="'k'")], fault="tenant")
        return await answer(asked, runner)

    async with world(release_spec(), tmp_path, play) as place:
        finish = await attempt(place)
    assert finish.verdict is not None and not finish.verdict.ok
    assert finish.verdict.summary == "the rollout of task 21 failed: KeyError: 'k' (1 of 3 failed)"
    assert [(sample.task, sample.state) for sample in finish.verdict.samples] == [(0, "ok"), (21, "failed"), (49, "ok")]


async def test_a_release_that_reaches_for_a_network_is_said_to_need_one(tmp_path: Path):
    async def play(asked, runner):
        raise AssertionError("it does not load")

    async def start(folder):
        raise failed(FailureCode.ENVIRONMENT_BROKEN, "acme/digits does not load: ConnectError: Name or service not known")

    async with world(release_spec(), tmp_path, play) as place:
        place.runner.start = start
        finish = await attempt(place)
    assert finish.verdict is not None and not finish.verdict.ok
    assert finish.verdict.compatibility is not None and finish.verdict.compatibility.needs == Needs(network=True)


async def test_a_release_whose_reward_raises_gets_a_red_one_with_the_place(tmp_path: Path):
    async def play(asked, runner):
        error = TenantError(type="KeyError", message="'k'", module="digits/__init__.py", line=9)
        return RolloutEnd(state="failed", errors=[error], fault="tenant")

    async with world(release_spec(), tmp_path, play) as place:
        finish = await attempt(place)
    verdict = finish.verdict
    assert verdict is not None and not verdict.ok
    assert (verdict.module, verdict.line) == ("digits/__init__.py", 9)
    assert verdict.summary == "all 3 sample rollouts failed alike: KeyError: 'k' at digits/__init__.py:9"


async def test_a_release_that_trains_nobody_is_green_and_for_evaluations_alone(tmp_path: Path):
    async def watch(asked, runner):
        end = await answer(asked, runner)
        return end.model_copy(update={"traces": [trace.model_copy(update={"trainable": False}) for trace in end.traces]})

    plays = HarnessFit(harness="rootstock-chat", evaluate=True, train=True)
    async with world(release_spec(), tmp_path, watch) as place:
        place.runner.inspection = Inspection(splits=[SplitSeen(checked=[0, 1, 2])], needs=Needs(harnesses=[plays]))
        verdict = (await attempt(place)).verdict
    assert verdict is not None and verdict.ok, verdict
    assert verdict.summary == "loads, lists 50 tasks and plays 3 rollouts; no agent of it is trained: it is for evaluations alone"
    assert [(sample.state, sample.reward) for sample in verdict.samples] == [("ok", 1.0)] * 3
    seen = verdict.compatibility
    assert seen is not None and (seen.agents, seen.trained_agents) == (["agent"], [])
    (fit,) = seen.needs.harnesses
    assert (fit.evaluate, fit.train, fit.reason) == (True, False, "no agent of it is trained: it is for evaluations alone")


async def test_a_game_that_ends_before_all_its_agents_speak_passes_and_one_in_which_none_speaks_does_not(tmp_path: Path):
    silent = TraceReport(trace_id="silent", agent="second", state="ok", reward=1.0)

    async def half(asked, runner):
        end = await answer(asked, runner)
        return end.model_copy(update={"traces": [*end.traces, silent.model_copy(update={"trace_id": asked.rollout_id})]})

    async def nobody(asked, runner):
        return RolloutEnd(state="ok", traces=[silent])

    async with world(release_spec(), tmp_path, half) as place:
        passed = await attempt(place)
    async with world(release_spec(), tmp_path, nobody) as place:
        failed_check = await attempt(place)
    assert passed.verdict is not None and passed.verdict.ok
    assert passed.verdict.compatibility is not None and passed.verdict.compatibility.agents == ["agent", "second"]
    assert failed_check.verdict is not None and "no sampled token was recorded" in failed_check.verdict.summary
