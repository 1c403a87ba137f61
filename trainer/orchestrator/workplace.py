"""What every kind of attempt stands on: its orders, its line to the control plane, the pool's machines, the proxy.

Knows how the parts fit together. Refuses to know the work itself: runs, evaluations and release checks each take what they need.
"""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import httpx

from trainer.contracts.catalogue import model_folder
from trainer.contracts.events import Component, FailureCode
from trainer.contracts.internal import AttemptSpec, PoolSpec, UsageBatch
from trainer.contracts.rollouts import ReleaseSpec, RunnerLimits, SeatModel
from trainer.orchestrator.attempt.control import ControlClient
from trainer.orchestrator.attempt.endings import failed
from trainer.orchestrator.attempt.heartbeat import Desire, Status
from trainer.orchestrator.attempt.reporting import Reporter
from trainer.orchestrator.attempt.services import Service, pool_headers
from trainer.orchestrator.attempt.silence import EnginePulse, SilenceNotice, TrainerPulse
from trainer.orchestrator.engines.client import Engines
from trainer.orchestrator.engines.gate import EngineGate
from trainer.orchestrator.engines.policies import PolicyTable
from trainer.orchestrator.environments.recordings import AnyEnvironment
from trainer.orchestrator.environments.runner_life import StartRunner
from trainer.orchestrator.environments.runner_start import runner_starter
from trainer.orchestrator.proxy.artifacts import RolloutArtifacts
from trainer.orchestrator.proxy.model_requests import Pins, SeatPins
from trainer.orchestrator.proxy.server import RolloutProxy
from trainer.orchestrator.proxy.sessions import SessionBook
from trainer.orchestrator.proxy.token_texts import TokenTexts
from trainer.orchestrator.transport.link import Link

EXTERNAL_CONTEXT_TOKENS = 1 << 24
"""Nobody tells us; the server outside knows its own limit."""
Starter = Callable[..., StartRunner]
"""The shape of `runner_starter`."""


@dataclass(slots=True)
class Workplace:
    """`environments` is filled by the work; whoever ends the attempt stops them. `starter` brings releases up on this host."""

    spec: AttemptSpec
    control: ControlClient
    reporter: Reporter
    status: Status
    desire: Desire
    runner_dir: Path
    pool_http: httpx.AsyncClient
    pool_token: str | None
    starter: Starter = runner_starter
    policies: PolicyTable = field(default_factory=PolicyTable)
    sessions: SessionBook = field(default_factory=SessionBook)
    environments: dict[str, AnyEnvironment] = field(default_factory=dict)
    texts: TokenTexts = field(init=False)

    def __post_init__(self) -> None:
        self.texts = TokenTexts(model_folder(self.spec.base_model.tokenizer))

    @property
    def pool(self) -> PoolSpec:
        if self.spec.pool is None:
            raise failed(FailureCode.INTERNAL, "the attempt names no pool")
        return self.spec.pool

    def start_runner(
        self,
        release: ReleaseSpec,
        args: Mapping[str, Any],
        limits: RunnerLimits,
        seats: Mapping[str, SeatModel] | None = None,
        *,
        held_out: bool = False,
    ) -> StartRunner:
        """`held_out`: an evaluation asks for the rows that a package keeps for one."""
        given = {"seats": seats} if seats else {}
        return self.starter(
            self.spec,
            release,
            runner_dir=self.runner_dir,
            args=args,
            limits=limits,
            values=partial(self.control.sandbox_values, release.release_id),
            redactor=self.reporter.redactor,
            held_out=held_out,
            **given,
        )

    def phase(self, text: str, waiting_for: Component = Component.ORCHESTRATOR) -> None:
        """What the process is doing, for the next heartbeat and the log, and whose turn it is, for the watch."""
        text = self.reporter.redactor.text(text)
        if self.status.phase != text:
            self.status.phase = text
            self.turn_of(waiting_for)
            self.reporter.log(text)

    def turn_of(self, component: Component) -> None:
        self.status.waiting_for, self.status.since_s = component, time.monotonic()

    def trainer(self) -> Service:
        incident = partial(self.reporter.incident, component=Component.TRAINER)
        return Service(self.pool_http, self.pool.trainer_url, "the trainer", FailureCode.TRAINER_UNREACHABLE, incident)

    def engines(self) -> Engines:
        incident = partial(self.reporter.incident, component=Component.ENGINE)
        named = enumerate(self.pool.inference_urls, start=1)
        return Engines(
            [
                Service(self.pool_http, url, f"inference server {number}", FailureCode.INFERENCE_UNREACHABLE, incident)
                for number, url in named
            ]
        )

    def gate(self, engines: Engines) -> EngineGate:
        link = Link.to_url(self.pool.pool_url, pool_headers(self.pool_token))
        return EngineGate(link, engines, partial(self.reporter.incident, component=Component.ENGINE))

    def pins(self, *, temperature: float, max_tokens: int) -> Pins:
        if self.spec.external is not None:
            return Pins(self.spec.team_id, temperature, max_tokens, EXTERNAL_CONTEXT_TOKENS, pictures=True)
        model = self.spec.base_model
        context_tokens = model.context_tokens
        return Pins(self.spec.team_id, temperature, min(max_tokens, context_tokens), context_tokens, model.reads_pictures)

    def proxy(
        self,
        environment: str,
        gate: EngineGate,
        *,
        temperature: float,
        max_tokens: int,
        seats: Mapping[str, SeatModel] | None = None,
    ) -> RolloutProxy:
        pins = self.pins(temperature=temperature, max_tokens=max_tokens)
        players = {
            name: SeatPins(seat.model, self.pins(temperature=seat.temperature, max_tokens=seat.max_tokens))
            for name, seat in (seats or {}).items()
        }
        return RolloutProxy(
            environment,
            policies=self.policies,
            gate=gate,
            sessions=self.sessions,
            pins=pins,
            seats=players,
            artifacts=self._artifacts(),
        )

    def _artifacts(self) -> RolloutArtifacts | None:
        """Where a run keeps what its rollouts carry by digest; nothing else learns from rollouts."""
        if self.spec.kind != "run":
            return None
        return RolloutArtifacts(Path(self.pool.artifact_root) / "runs" / self.spec.subject_id / "rollout-artifacts")

    def silence_notice(self) -> SilenceNotice:
        """Trainer and engines can be asked whether they are at work."""
        trainer = TrainerPulse(self.pool_http, self.pool.trainer_url)
        engine = EnginePulse(self.pool_http, self.pool.inference_urls)
        return SilenceNotice(self.reporter, {Component.TRAINER: trainer, Component.ENGINE: engine})

    async def report_sandbox_seconds(self) -> None:
        events = [event for environment in self.environments.values() for event in environment.take_usage()]
        if events:
            await self.control.usage(UsageBatch(events=events))

    async def stop_environments(self) -> None:
        for environment in self.environments.values():
            await environment.stop()
