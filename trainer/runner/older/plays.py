"""One rollout of a row: the environment talks to the model, then its rubric scores what was said, each within its own time.

Knows stages and whose fault their ends are. Refuses to know HTTP. The library's own run of a rollout has no time for scoring and
scores what has failed; this one does the same calls, one by one.
"""

import asyncio
import time
from typing import Any, Literal

from trainer.contracts.rollouts import RolloutEnd, RolloutRequest, RunnerLimits, TenantError, TraceReport
from trainer.runner.faults import at_place, from_exception
from trainer.runner.older.clients import AskedClient, TrainedClient
from trainer.runner.older.reports import report_trace
from trainer.runner.older.rewards import Scoring, error_in, watched


class RowPlay:
    def __init__(
        self,
        env: Any,
        row: dict[str, Any],
        request: RolloutRequest,
        limits: RunnerLimits,
        client: TrainedClient | AskedClient,
    ) -> None:
        self._env, self._row, self._request, self._limits = env, row, request, limits
        self._client = client
        self._stage: Literal["agent", "scoring"] = "agent"
        self._scoring = Scoring()
        self._scoring_s = 0.0
        self._state: Any = None

    @property
    def turns(self) -> list[int]:
        return [self._client.answered]

    async def run(self) -> RolloutEnd:
        try:
            async with asyncio.timeout(self._limits.rollout_s) as clock:
                self._state = await self._talk()
        except TimeoutError as error:
            return self._end("incomplete" if clock.expired() else "failed", self._time_out(error, clock, self._limits.rollout_s))
        except Exception as error:
            return self._end("failed", from_exception(error))
        if problem := self._problem():
            return self._end(*problem)
        return await self._score()

    async def _talk(self) -> Any:
        asked = self._request.sampling
        sampling = {"n": 1, "temperature": asked.temperature, "top_p": asked.top_p, "max_tokens": asked.max_tokens}
        return await self._env.rollout(self._row, self._client, self._request.policy, sampling)

    def _problem(self) -> tuple[Literal["failed", "incomplete"], TenantError] | None:
        """What the library keeps in the rollout's state instead of raising it."""
        state = self._state
        if (error := state.get("error")) is not None:
            return "failed", from_exception(error)
        if state.get("timed_out"):
            return "incomplete", TenantError(type="Timeout", message="the environment's own time for a rollout was over")
        if state.get("prompt_too_long") and not self._client.answered:
            return "failed", TenantError(type="OverlongPrompt", message="the prompt does not fit into the model's context")
        return None

    async def _score(self) -> RolloutEnd:
        self._stage, started_s = "scoring", time.monotonic()
        errors: list[TenantError] = []
        state: Literal["failed", "incomplete"] = "failed"
        try:
            with watched(self._scoring):
                async with asyncio.timeout(self._limits.scoring_s) as clock:
                    await self._env.rubric.score_rollout(self._state)
                    await self._env.rubric.cleanup(self._state)
        except TimeoutError as error:
            state = "incomplete" if clock.expired() else "failed"
            errors.append(self._time_out(error, clock, self._limits.scoring_s))
        except Exception as error:
            errors.append(from_exception(error))
        self._scoring_s = time.monotonic() - started_s
        errors = self._scoring.errors + errors
        return self._end(state, *errors) if errors else self._end("ok")

    def _time_out(self, error: TimeoutError, clock: asyncio.Timeout, limit_s: float) -> TenantError:
        """Of the stage, or what the tenant's own code raised."""
        if not clock.expired():
            return from_exception(error)
        return self._late(f"the {self._stage} took longer than {limit_s:g} s")

    def deadline_error(self) -> TenantError:
        return self._late(f"the rollout passed its deadline during {self._stage}")

    def _late(self, message: str) -> TenantError:
        return error_in(self._scoring.running, "Timeout", message)

    def cut_off(self, state: Literal["deadline", "cancelled"], errors: list[TenantError]) -> RolloutEnd:
        fault = "none" if state == "cancelled" else self._fault()
        return RolloutEnd(state=state, traces=[self._trace("incomplete")], errors=errors, fault=fault)

    def _end(self, state: Literal["ok", "failed", "incomplete"], *errors: TenantError) -> RolloutEnd:
        trace = self._trace(state, *errors)
        if state == "ok" and trace.state != "ok":
            bad = at_place("BadReward", "the weighted reward is not a finite number", None)
            return self._end("incomplete", bad)
        return RolloutEnd(state=state, traces=[trace], fault="none" if state == "ok" else self._fault())

    def _fault(self) -> Literal["tenant", "infrastructure"]:
        return "infrastructure" if self._client.is_ours else "tenant"

    def _trace(self, state: Literal["ok", "failed", "incomplete"], *errors: TenantError) -> TraceReport:
        return report_trace(
            self._request.rollout_id,
            state,
            env=self._env,
            played=self._state,
            turns=self._client.answered,
            failed=self._scoring.failed,
            errors=list(errors),
            scoring_s=self._scoring_s,
        )
