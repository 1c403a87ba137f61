"""The rollouts of a release check: a few tasks played on a canned model, and what is said and kept of them.

Knows a check's one policy. Refuses to judge rewards: any finite number will do, and a canned model says the same to every task.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace

from trainer.contracts.base import new_id
from trainer.contracts.release_checks import MESSAGE_CHARS, MESSAGES_MAX, SampleMessage, SampleRollout
from trainer.contracts.rollouts import TEXT_MAX, RolloutEnd, RolloutRequest, RolloutSampling, TenantError
from trainer.orchestrator.environments.environment import Environment
from trainer.orchestrator.rollouts.rollout import RolloutOutcome
from trainer.orchestrator.rollouts.verdicts import judge
from trainer.orchestrator.workplace import Workplace

SAMPLES = 3
ROLLOUT_S = 60.0
MAX_TOKENS = 64


@dataclass(frozen=True, slots=True)
class Sample:
    task: int
    preview: str
    end: RolloutEnd
    outcome: RolloutOutcome

    @property
    def is_good(self) -> bool:
        return self.outcome.state == "ok"

    @property
    def error(self) -> TenantError | None:
        """The first one, with its place in the tenant's code where there is one."""
        errors = [*self.end.errors, *(error for report in self.end.traces for error in report.errors)]
        return errors[0] if errors else None

    def kept(self) -> SampleRollout:
        """As it stands with the release: one agent's messages, cut."""
        shown = next((report for report in self.end.traces if report.trainable), None) or next(iter(self.end.traces), None)
        said = [message for message in shown.messages if isinstance(message.get("content"), str)] if shown else []
        return SampleRollout(
            task=self.task,
            preview=self.preview[:TEXT_MAX],
            state=self.outcome.state,
            reward=self.outcome.reward,
            rewards=shown.rewards if shown else {},
            turns=self.outcome.turns,
            stop=self.outcome.stop,
            error=(self.outcome.error or "")[:TEXT_MAX],
            messages=[
                SampleMessage(role=str(message.get("role"))[:32], content=message["content"][:MESSAGE_CHARS])
                for message in said[-MESSAGES_MAX:]
            ],
        )


async def play_samples(place: Workplace, environment: Environment, tasks: Sequence[int]) -> list[Sample]:
    """All at once. Raises RunnerSilent."""
    return await asyncio.gather(*(_play(place, environment, task) for task in tasks))


async def _play(place: Workplace, environment: Environment, task: int) -> Sample:
    entry = await environment.tasks.at(task)
    request = RolloutRequest(
        rollout_id=new_id(),
        task=entry.index,
        policy=place.policies.current.engine_name,
        sampling=RolloutSampling(max_tokens=MAX_TOKENS),
        deadline_s=ROLLOUT_S,
    )
    end = await environment.roll(request)
    outcome = judge(end, place.sessions, environment=environment.name, engine_name=request.policy, needs_tokens=False)
    return Sample(task, entry.preview, end, _with_tokens(outcome))


def _with_tokens(outcome: RolloutOutcome) -> RolloutOutcome:
    """A run wants tokens of each agent that it trains. Here one will do: a canned model may end a game before all are asked.
    Where nobody is trained, none is wanted."""
    is_trained = any(trace.report.trainable for trace in outcome.traces)
    if outcome.state != "ok" or not is_trained or any(call.token_ids for trace in outcome.traces for call in trace.calls):
        return outcome
    return replace(outcome, state="failed", reward=None, error="no sampled token was recorded: there is nothing to train on")


def failure_of(samples: Sequence[Sample]) -> str:
    """What went wrong, by task; '' where nothing did. One cause is told once."""
    failed = [sample for sample in samples if not sample.is_good]
    if not failed:
        return ""
    causes = {sample.outcome.error for sample in failed}
    if len(samples) > 1 and len(failed) == len(samples) and len(causes) == 1:
        return f"all {len(samples)} sample rollouts failed alike: {failed[0].outcome.error}"
    told = "; ".join(f"the rollout of task {sample.task} failed: {sample.outcome.error}" for sample in failed)
    return told if len(samples) == 1 else f"{told} ({len(failed)} of {len(samples)} failed)"
