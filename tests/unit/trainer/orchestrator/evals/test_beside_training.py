"""An evaluation never keeps the training waiting: not while its environment starts, not while it goes on, not when it breaks."""

import asyncio
from pathlib import Path

from tests.fixtures.scripted_run import ScriptedEnvironment, ScriptedRun, good
from tests.fixtures.virtual_time import run_virtually
from trainer.contracts.rollouts import RolloutEnd, RolloutRequest
from trainer.contracts.run_config import RunConfig

EVAL = "acme/digits (eval)"
EVAL_S = 100.0


def make_config(**plan) -> RunConfig:
    environment = {"id": "acme/digits", "timeout": 600.0}
    return RunConfig.model_validate(
        {
            "model": {"name": "tiny"},
            "environments": [environment],
            "eval": {"environments": [environment], "interval": 100, "num_examples": 2} | plan,
            "max_steps": 4,
            "batch_size": 4,
            "rollouts_per_example": 4,
        }
    )


class Scene:
    """A run of quick rollouts whose evaluation rollouts take `eval_s`; `trained_s` is when each step was trained."""

    def __init__(self, folder: Path, config: RunConfig, *, eval_s: float = 0.0, start_s: float = 0.0, breaks: bool = False):
        self.eval_s, self.breaks = eval_s, breaks
        self.run = ScriptedRun(config, folder, self._play)
        self.run.start_s = {EVAL: start_s}
        self.run.trainer.before_step = self._note
        self.trained_s: list[float] = []
        self.finish = run_virtually(asyncio.wait_for(self.run.attempt(), 3_600.0))

    def incidents(self) -> list[str]:
        return [event.payload["code"] for event in self.run.control.of_kind("incident")]

    async def _note(self, step: int) -> None:
        self.trained_s.append(asyncio.get_running_loop().time())

    async def _play(self, request: RolloutRequest, environment: ScriptedEnvironment) -> RolloutEnd:
        evaluates = request.client == "eval"
        if evaluates and self.breaks:
            raise RuntimeError("a defect of ours")
        await environment.take(request.rollout_id, self.eval_s if evaluates else 1.0)
        return good(environment.say(request), float(environment.started.index(request.rollout_id) % 2))


def test_the_evaluation_of_version_0_goes_on_beside_all_of_the_training(tmp_path: Path):
    scene = Scene(tmp_path, make_config(), eval_s=EVAL_S)
    assert scene.finish.outcome == "completed"
    assert len(scene.trained_s) == 4 and max(scene.trained_s) < EVAL_S
    (told,) = scene.run.control.of_kind("eval")
    assert told.step == 0 and {row.policy_version_min for row in scene.run.control.summaries(f"eval/{EVAL}")} == {0}


def test_training_begins_while_the_evaluations_environment_starts(tmp_path: Path):
    scene = Scene(tmp_path, make_config(), start_s=EVAL_S)
    assert scene.finish.outcome == "completed"
    assert len(scene.trained_s) == 4 and max(scene.trained_s) < EVAL_S
    assert [event.step for event in scene.run.control.of_kind("eval")] == [0]


def test_an_evaluation_that_is_due_while_the_last_goes_on_is_left_out(tmp_path: Path):
    scene = Scene(tmp_path, make_config(interval=1), eval_s=EVAL_S)
    assert max(scene.trained_s) < EVAL_S
    assert [event.step for event in scene.run.control.of_kind("eval")] == [0]


def test_an_evaluation_that_breaks_is_told_and_the_run_goes_on(tmp_path: Path):
    scene = Scene(tmp_path, make_config(), breaks=True)
    assert (scene.finish.outcome, len(scene.trained_s)) == ("completed", 4)
    assert scene.incidents() == ["eval_failed"]
