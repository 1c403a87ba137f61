"""Whoever freezes is named within a minute, by an incident; whoever is only slow by a line of the log.

The kind: each part that a run can wait for stops for good, with nobody else's deadline in sight.
"""

import asyncio
from types import SimpleNamespace

import httpx
import pytest

from trainer.contracts.events import Component
from trainer.contracts.training import TrainerHealth
from trainer.orchestrator.attempt.heartbeat import Status
from trainer.orchestrator.attempt.silence import ANSWER_S, EnginePulse, SilenceNotice, TrainerPulse
from trainer.orchestrator.watch import WATCH_S, Watch


class Reporter:
    def __init__(self) -> None:
        self.incidents: list[tuple[str, Component, str]] = []
        self.logs: list[tuple[Component, str]] = []

    def incident(self, code, message, *, component):
        self.incidents.append((code, component, message))

    def log(self, message, *, level, component):
        self.logs.append((component, message))


class Machine:
    """A trainer or an engine: `hangs` takes connections and answers nothing, as a stopped process does."""

    def __init__(self) -> None:
        self.passes, self.hangs, self.status = 0, False, 200

    def http(self) -> httpx.AsyncClient:
        return httpx.AsyncClient(transport=httpx.MockTransport(self._answer))

    def _answer(self, request: httpx.Request) -> httpx.Response:
        if self.hangs:
            raise httpx.ReadTimeout("nothing came")
        health = TrainerHealth(
            status="ok", pid=1, base_model="tiny", base_digest="d" * 64, slots_total=1, slots_used=1, passes=self.passes
        )
        return httpx.Response(self.status, text=health.model_dump_json())


class Scene:
    """A run whose clock is `now_s`; `wait` lets so many seconds pass with the watch looking every few of them."""

    def __init__(self, turn: Component, waiting_for: Component | None = None) -> None:
        self.now_s, self.progress_s = 0.0, 0.0
        self.trainer, self.engine, self.reporter = Machine(), Machine(), Reporter()
        self.status = Status(phase="step 3", waiting_for=turn, since_s=0.0)
        probes = {
            Component.TRAINER: TrainerPulse(self.trainer.http(), "http://trainer"),
            Component.ENGINE: EnginePulse(self.engine.http(), ["http://engine"]),
        }
        self.watch = Watch(
            SimpleNamespace(status=self.status),
            SimpleNamespace(away_since_s=None),
            limits_s={},
            progress_s=lambda: self.progress_s,
            waiting_for=lambda: waiting_for or turn,
            inflight=lambda: 7,
            notice=SilenceNotice(self.reporter, probes),
        )

    def wait(self, for_s: float, *, each=lambda: None) -> None:
        async def looking():
            end_s = self.now_s + for_s
            while self.now_s + WATCH_S <= end_s:
                self.now_s += WATCH_S
                each()
                await self.watch.look(self.now_s)

        asyncio.run(looking())

    def named(self) -> list[Component]:
        return [component for code, component, _ in self.reporter.incidents if code == "silent"]


@pytest.mark.parametrize("frozen", [Component.ENVIRONMENT, Component.JUDGE, Component.SANDBOX], ids=str)
def test_what_freezes_while_rollouts_are_awaited_is_named_within_a_minute(frozen: Component):
    scene = Scene(Component.ENVIRONMENT, waiting_for=frozen)
    scene.wait(60)
    assert scene.named() == [frozen]


@pytest.mark.parametrize("frozen", [Component.QUEUE, Component.API, Component.ORCHESTRATOR], ids=str)
def test_a_turn_that_does_not_end_is_named_within_a_minute(frozen: Component):
    scene = Scene(frozen)
    scene.wait(60)
    assert scene.named() == [frozen]


@pytest.mark.parametrize("turn", [Component.TRAINER, Component.ENGINE], ids=str)
def test_a_machine_that_hangs_is_named_in_time_for_its_answer_to_be_awaited(turn: Component):
    scene = Scene(turn)
    scene.trainer.hangs = scene.engine.hangs = True
    scene.wait(60 - ANSWER_S)
    ((_, component, message),) = scene.reporter.incidents
    assert component is turn and "does not answer" in message


def test_a_trainer_that_hangs_is_named_though_rollouts_go_on_coming_home():
    scene = Scene(Component.TRAINER)
    scene.trainer.hangs = True
    scene.wait(60, each=lambda: setattr(scene, "progress_s", scene.now_s))
    assert scene.named() == [Component.TRAINER]


def test_an_engine_that_holds_up_rollouts_is_named_when_it_samples_nothing():
    scene = Scene(Component.ENVIRONMENT, waiting_for=Component.ENGINE)
    scene.engine.status = 503
    scene.wait(60)
    assert scene.named() == [Component.ENGINE]


def test_a_trainer_that_answers_but_finishes_no_pass_is_named():
    scene = Scene(Component.TRAINER)
    scene.wait(60)
    assert scene.named() == [Component.TRAINER]


@pytest.mark.parametrize("turn", [Component.TRAINER, Component.ENGINE], ids=str)
def test_a_machine_that_is_slow_but_at_work_is_a_line_of_the_log_and_no_incident(turn: Component):
    scene = Scene(turn)

    def work() -> None:
        scene.trainer.passes += 1

    scene.wait(600, each=work)
    assert scene.reporter.incidents == []
    ((component, message),) = scene.reporter.logs
    assert component is turn and "slow but answers" in message


def test_a_silence_is_told_once_and_its_end_too():
    scene = Scene(Component.ENVIRONMENT)
    scene.wait(300)
    scene.progress_s = scene.now_s
    scene.wait(40)
    assert [code for code, *_ in scene.reporter.incidents] == ["silent", "silent_over"]


def test_an_environment_that_came_back_is_given_half_as_long_again():
    scene = Scene(Component.ENVIRONMENT)
    scene.wait(100)
    scene.progress_s = scene.now_s
    scene.wait(140)
    assert len(scene.named()) == 1
    scene.wait(20)
    assert len(scene.named()) == 2
