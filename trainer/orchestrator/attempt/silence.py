"""Who keeps a run waiting, said within a minute of its last sign of progress, long before anything is given up.

Knows how to ask a machine whether it is at work, and tells a slow one from one that hangs: a slow one is a line of the log, one
that hangs an incident. Whom nobody can ask (an environment's own code, a queue) is given, after it has once come back by itself,
half as long again as it took then. Refuses to end anything: that is the watch's.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field

import httpx

from trainer.contracts.events import Component
from trainer.contracts.training import TrainerHealth
from trainer.orchestrator.attempt.reporting import Reporter

PROBE_S = 10.0
NOTICE_S = 45.0
STILL_S = 30.0
"""For how long a trainer that answers may finish no pass before that is told too."""
ANSWER_S = 5.0
PATIENCE_TIMES = 1.5
SILENT = "silent"
SILENT_OVER = "silent_over"


@dataclass(frozen=True, slots=True)
class Pulse:
    """`works`: it is alive and gets on. `words` finish a sentence that begins with its name."""

    works: bool
    words: str


Probe = Callable[[float], Awaitable[Pulse]]
"""Asked at a moment of the monotonic clock, in seconds."""


@dataclass(slots=True)
class TrainerPulse:
    """By the passes that it has finished, for whichever run."""

    http: httpx.AsyncClient
    url: str
    _passes: int = -1
    _moved_s: float = 0.0

    async def __call__(self, now_s: float) -> Pulse:
        try:
            answer = await self.http.get(f"{self.url}/health", timeout=ANSWER_S)
            health = TrainerHealth.model_validate_json(answer.content)
        except (httpx.TransportError, ValueError) as error:
            return Pulse(False, f"does not answer ({type(error).__name__})")
        if health.status != "ok":
            return Pulse(False, f"says that it is {health.status}")
        if health.passes != self._passes:
            self._passes, self._moved_s = health.passes, now_s
        still_s = now_s - self._moved_s
        return Pulse(still_s < STILL_S, f"answers; its last pass ended {still_s:.0f} s ago or before")


@dataclass(frozen=True, slots=True)
class EnginePulse:
    """By the tokens that it samples: each replica's /health samples one where none was sampled of late."""

    http: httpx.AsyncClient
    urls: Sequence[str]

    async def __call__(self, now_s: float) -> Pulse:
        for number, url in enumerate(self.urls, start=1):
            try:
                answer = await self.http.get(f"{url}/health", timeout=ANSWER_S)
            except httpx.TransportError as error:
                return Pulse(False, f"does not answer (inference server {number}: {type(error).__name__})")
            if not answer.is_success:
                return Pulse(False, f"says that it is unhealthy (inference server {number}, {answer.status_code})")
        return Pulse(True, "answers and samples tokens")


@dataclass(slots=True)
class SilenceNotice:
    """`look` is called every few seconds; each silence is told once of each component."""

    reporter: Reporter
    probes: Mapping[Component, Probe]
    _told: set[Component] = field(default_factory=set)
    _slow: set[Component] = field(default_factory=set)
    _longest_s: dict[Component, float] = field(default_factory=dict)
    _silent_s: float = 0.0

    async def look(self, culprit: Component, silent_s: float, *, phase: str, now_s: float) -> None:
        """`silent_s`: since the last sign of progress of what the run waits for."""
        if silent_s < self._silent_s:
            self._over()
        self._silent_s = silent_s
        if silent_s < PROBE_S or culprit in self._told:
            return
        probe = self.probes.get(culprit)
        pulse = await probe(now_s) if probe else Pulse(False, "has not finished anything")
        if silent_s < NOTICE_S:
            return
        if pulse.works:
            self._tell_slow(culprit, pulse, phase)
        elif probe or silent_s >= PATIENCE_TIMES * self._longest_s.get(culprit, 0.0):
            self._told.add(culprit)
            message = f"the run has waited {silent_s:.0f} s for the {culprit}, which {pulse.words}: {phase}"
            self.reporter.incident(SILENT, message, component=culprit)

    def _tell_slow(self, culprit: Component, pulse: Pulse, phase: str) -> None:
        if culprit not in self._slow:
            self._slow.add(culprit)
            message = f"the run has waited {self._silent_s:.0f} s for the {culprit}, which is slow but {pulse.words}: {phase}"
            self.reporter.log(message, level="warning", component=culprit)

    def _over(self) -> None:
        for culprit in self._told:
            self._longest_s[culprit] = max(self._silent_s, self._longest_s.get(culprit, 0.0))
            message = f"the {culprit} has gone on after {self._silent_s:.0f} s"
            self.reporter.incident(SILENT_OVER, message, component=culprit)
        self._told.clear()
        self._slow.clear()
