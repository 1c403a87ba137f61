"""Playing rollouts: one task of asyncio each, with a deadline, a way to cancel it, and a sign of life meanwhile.

Knows jobs and clocks. Refuses to know HTTP: it yields wire messages. A rollout's last message is always a `RolloutEnd`.
"""

import asyncio
import time
from collections.abc import AsyncGenerator

from verifiers.v1.env import RunSlot
from verifiers.v1.episode import Episode

from trainer.contracts.rollouts import RolloutAlive, RolloutEnd, RolloutRequest
from trainer.runner.environment import Environment
from trainer.runner.faults import from_exception
from trainer.runner.reports import error_of_deadline, fault_of, report_episode, report_unfinished
from trainer.runner.seats import model_context

LIVE_MAX = 1024
_ALIVE_EVERY_S = 5.0
_UNWIND_S = 10.0


class AlreadyLive(Exception):
    """A rollout with this id is being played."""


class Rollouts:
    """The rollouts of one environment that are being played."""

    def __init__(self, environment: Environment) -> None:
        self._environment = environment
        self._jobs: dict[str, asyncio.Task[Episode]] = {}

    @property
    def live(self) -> int:
        return len(self._jobs)

    def cancel(self, rollout_id: str) -> bool:
        """Whether it was live. Its stream then ends with state `cancelled`."""
        job = self._jobs.get(rollout_id)
        return job.cancel() if job else False

    async def play(self, request: RolloutRequest) -> AsyncGenerator[RolloutAlive | RolloutEnd, None]:
        """Raises AlreadyLive, and NoSuchTask or the taskset's own error, before the first message."""
        if request.rollout_id in self._jobs:
            raise AlreadyLive(request.rollout_id)
        task = await self._environment.task(request.task)
        env = self._environment.env
        (slot,) = env.slots(task, 1)
        job = asyncio.create_task(env.run_slot(slot, model_context(request, self._environment.config)))
        self._jobs[request.rollout_id] = job
        try:
            ends_at = time.monotonic() + request.deadline_s
            while not await _settled(job, min(_ALIVE_EVERY_S, ends_at - time.monotonic())):
                if time.monotonic() >= ends_at:
                    error = error_of_deadline(slot.traces, task)
                    await _unwind(job)
                    traces = report_unfinished(slot.traces)
                    end = RolloutEnd(state="deadline", traces=traces, errors=[error], fault=fault_of(slot.traces))
                    yield self._untrained(end)
                    return
                yield RolloutAlive(turns=[trace.num_turns for trace in slot.traces])
            yield self._untrained(_end(job, slot))
        finally:
            del self._jobs[request.rollout_id]
            job.cancel()

    def _untrained(self, end: RolloutEnd) -> RolloutEnd:
        """Agents that another model plays are no learners, whatever the environment says of them."""
        seats = self._environment.config.seats
        traces = [trace.model_copy(update={"trainable": trace.trainable and trace.agent not in seats}) for trace in end.traces]
        return end.model_copy(update={"traces": traces})


async def _settled(job: asyncio.Task[Episode], timeout_s: float) -> bool:
    done, _ = await asyncio.wait({job}, timeout=max(0.0, timeout_s))
    return bool(done)


async def _unwind(job: asyncio.Task[Episode]) -> None:
    """Tenant code may swallow the cancellation; we stop waiting for it."""
    job.cancel()
    await asyncio.wait({job}, timeout=_UNWIND_S)


def _end(job: asyncio.Task[Episode], slot: RunSlot) -> RolloutEnd:
    if job.cancelled():
        fault_of(slot.traces)  # so that what was interrupted is forgotten
        return RolloutEnd(state="cancelled", traces=report_unfinished(slot.traces))
    if error := job.exception():
        return RolloutEnd(state="failed", errors=[from_exception(error)], fault="tenant")
    return report_episode(job.result(), slot.task)
