"""One rollout of a taskset's task: the library plays an episode, of one agent or several.

Knows the library's slots and episodes. Refuses to know clocks and HTTP.
"""

from typing import Literal

import verifiers.v1 as vf

from trainer.contracts.rollouts import RolloutEnd, RolloutRequest, RunnerConfig, TenantError
from trainer.runner.reports import error_of_deadline, fault_of, report_episode, report_unfinished
from trainer.runner.seats import model_context


class EpisodePlay:
    def __init__(self, env: vf.Env, task: vf.Task, request: RolloutRequest, config: RunnerConfig) -> None:
        self._env, self._task = env, task
        self._request, self._config = request, config
        (self._slot,) = env.slots(task, 1)

    @property
    def turns(self) -> list[int]:
        return [trace.num_turns for trace in self._slot.traces]

    async def run(self) -> RolloutEnd:
        episode = await self._env.run_slot(self._slot, model_context(self._request, self._config))
        return self._untrained(report_episode(episode, self._task))

    def deadline_error(self) -> TenantError:
        return error_of_deadline(self._slot.traces, self._task)

    def cut_off(self, state: Literal["deadline", "cancelled"], errors: list[TenantError]) -> RolloutEnd:
        fault = fault_of(self._slot.traces)  # asked always, so that what was interrupted is forgotten
        traces = report_unfinished(self._slot.traces)
        if state == "cancelled":
            return RolloutEnd(state=state, traces=traces)
        return self._untrained(RolloutEnd(state=state, traces=traces, errors=errors, fault=fault))

    def _untrained(self, end: RolloutEnd) -> RolloutEnd:
        """Agents that another model plays are no learners, whatever the environment says of them."""
        seats = self._config.seats
        traces = [trace.model_copy(update={"trainable": trace.trainable and trace.agent not in seats}) for trace in end.traces]
        return end.model_copy(update={"traces": traces})
