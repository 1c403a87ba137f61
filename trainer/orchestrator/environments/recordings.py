"""An environment that is not played: its rollouts are those that an ended run of the team has recorded.

Knows the record's shape and its order: from the first step to the last, then from the start again. Holds one step at a time.
Refuses to know sandboxes, engines and bills: what is replayed was paid when it was made. It stands where an `Environment` does.
"""

import time
from collections import defaultdict
from collections.abc import Awaitable, Callable
from itertools import accumulate
from typing import Any

from trainer.contracts.events import FailureCode
from trainer.contracts.internal import ReplaySpec, UsageIn
from trainer.contracts.rollouts import GroupScoreRequest, GroupScores, RunnerHealth, TaskEntry, TraceReport
from trainer.orchestrator.attempt.endings import failed
from trainer.orchestrator.environments.environment import Environment
from trainer.orchestrator.proxy.sessions import Call
from trainer.orchestrator.rollouts.rollout import RolloutOutcome, Trace

ReadStep = Callable[[int], Awaitable[list[dict[str, Any]]]]
"""Step of the record → its good rollouts of this environment."""


class RecordedTasks:
    """One task per recorded rollout. `position` counts the places that have been passed and survives a restart; a place whose
    rollout cannot be learnt from is passed over."""

    def __init__(self, name: str, spec: ReplaySpec, read: ReadStep) -> None:
        self.position = 0
        self._name = name
        self._spec = spec
        self._read = read
        self._ends = list(accumulate(step.rollouts_count for step in spec.steps))
        self._step: tuple[int, list[RolloutOutcome]] | None = None
        self._handed: dict[int, list[RolloutOutcome]] = defaultdict(list)

    async def next(self) -> TaskEntry:
        """The task of the next group. Raises AttemptOver when the whole record holds nothing to learn from."""
        total = self._ends[-1] if self._ends else 0
        for _ in range(total):
            index = self.position % total
            self.position += 1
            outcome = await self._at(index)
            if outcome is not None:
                self._handed[index].append(outcome)
                return TaskEntry(index=index, key=f"{self._spec.run_id}/{index}")
        message = f"run {self._spec.run_id} has recorded nothing of {self._name} that can be learnt from"
        raise failed(FailureCode.ENVIRONMENT_BROKEN, message)

    def recall(self, index: int) -> RolloutOutcome:
        """The rollout of a task that was handed out; once each time."""
        outcome = self._handed[index].pop()
        if not self._handed[index]:
            del self._handed[index]
        return outcome

    async def _at(self, index: int) -> RolloutOutcome | None:
        number = next(number for number, end in enumerate(self._ends) if index < end)
        if self._step is None or self._step[0] != number:
            records = await self._read(self._spec.steps[number].step)
            self._step = number, [outcome for record in records if (outcome := outcome_of(record))]
        place = index - (self._ends[number - 1] if number else 0)
        outcomes = self._step[1]
        return outcomes[place] if place < len(outcomes) else None


class RecordedEnvironment:
    """Always there, and never asked to play."""

    health = RunnerHealth(status="ready")
    is_ready = True
    live_count = 0

    def __init__(self, name: str, spec: ReplaySpec, read: ReadStep) -> None:
        self.name = name
        self.tasks = RecordedTasks(name, spec, read)

    def recall(self, task: int) -> RolloutOutcome:
        return self.tasks.recall(task)

    async def start(self) -> None:
        """There is nothing to start."""

    async def supervise(self) -> None:
        """There is nothing that could be lost."""

    async def stop(self) -> None:
        """There is nothing to stop."""

    async def cancel(self, rollout_id: str) -> None:
        """A replayed rollout is home as soon as it is asked for."""

    async def score_group(self, request: GroupScoreRequest) -> GroupScores:
        """A record declares no group rewards: what was paid by comparison stands in it."""
        return GroupScores(scores={})

    def take_usage(self) -> list[UsageIn]:
        return []

    def logs(self) -> str:
        return ""


AnyEnvironment = Environment | RecordedEnvironment


def outcome_of(record: dict[str, Any]) -> RolloutOutcome | None:
    """A recorded rollout as it came home, free of charge; None where it holds no sampled token ids. The reward is the one that it
    was given in the end, by its group too."""
    reward = record.get("reward")
    traces = tuple(_trace(one, reward) for one in record.get("traces") or [])
    sampled = any(call.token_ids for trace in traces if trace.report.trainable for call in trace.calls)
    if reward is None or not sampled:
        return None
    return RolloutOutcome(
        state="ok",
        reward=reward,
        rewards=record.get("rewards") or {},
        metrics=record.get("metrics") or {},
        turns=record.get("turns") or 0,
        stop=record.get("stop"),
        traces=traces,
    )


def _trace(trace: dict[str, Any], reward: float | None) -> Trace:
    known = {name: value for name, value in trace.items() if name in TraceReport.model_fields}
    return Trace(TraceReport.model_validate(known | {"reward": reward}), tuple(_call(one) for one in trace["calls"]))


def _call(call: dict[str, Any]) -> Call:
    now_s = time.monotonic()
    return Call(
        engine_name=call["engine_name"],
        adapter_digest=call["adapter_digest"],
        prompt_ids=tuple(call["prompt_ids"]),
        token_ids=tuple(call["token_ids"]),
        logprobs=tuple(call["logprobs"]),
        temperature=call["temperature"],
        input_tokens=0,
        output_tokens=0,
        finish_reason=call["finish_reason"],
        route=call["route"],
        seat=call.get("seat", ""),
        started_s=now_s,
        ended_s=now_s,
    )
