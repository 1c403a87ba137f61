"""Evaluations during a run: every so many steps, beside the training and never in its way.

Knows the plan. Refuses to wait: its environments start beside the training, an evaluation that is still going on when the next
is due makes that one be left out, with a warning, and one that breaks is told and left out. Its rollouts stay on the version
that was current when it was due.
"""

import asyncio
import time

from trainer.contracts.events import Component, EventKind
from trainer.contracts.internal import UsageBatch
from trainer.contracts.rollouts import RolloutSampling
from trainer.contracts.run_config import EnvironmentRef, EvalPlan, RunConfig
from trainer.orchestrator.attempt.endings import AttemptOver, StaleLease, first_ending
from trainer.orchestrator.engines.gate import EngineGate
from trainer.orchestrator.engines.policies import Policy
from trainer.orchestrator.environments.environment import Environment
from trainer.orchestrator.evals.playing import EvalPass
from trainer.orchestrator.evals.statistics import eval_result
from trainer.orchestrator.rollouts.records import rollout_batch, rollout_usage
from trainer.orchestrator.rollouts.rollout import Accounted
from trainer.orchestrator.workplace import Workplace

CONCURRENCY = 16


class RunEvals:
    """`environments` are those of the plan, in its order. `run` must be running beside the training."""

    def __init__(self, place: Workplace, config: RunConfig, environments: list[Environment], *, gate: EngineGate):
        self._place = place
        self._config = config
        self._plan = config.eval or EvalPlan()
        self._environments = environments
        self._gate = gate
        self._started = {environment.name: asyncio.Event() for environment in environments}
        self._job: asyncio.Task[None] | None = None
        self.progress_s = time.monotonic()

    async def run(self) -> None:
        """Start the plan's environments and keep them until cancelled. Raises AttemptOver where one does not load."""
        async with asyncio.TaskGroup() as tasks:
            for environment in self._environments:
                tasks.create_task(self._keep(environment), name=f"keep {environment.name}")

    async def maybe_start(self, step: int) -> None:
        """Begin an evaluation of the current version if one is due at this step."""
        if not self._environments or step % self._plan.interval or (step == 0 and self._plan.skip_first_step):
            return
        if self._job is not None and not self._job.done():
            self._place.reporter.log(
                f"the evaluation due at step {step} is left out: the last one is still going on", level="warning"
            )
            return
        await self.finished()
        policy = self._place.policies.current
        self._place.policies.hold(policy)
        self._job = asyncio.create_task(self._evaluate(step, policy), name=f"evaluation at step {step}")

    async def finished(self) -> None:
        """Wait for the evaluation that is going on; raises what it raised."""
        if self._job is not None:
            await self._job
            self._job = None

    async def abandon(self) -> None:
        if self._job is not None:
            self._job.cancel()
            await asyncio.wait({self._job})
            self._job = None

    async def _keep(self, environment: Environment) -> None:
        await environment.start()
        self._started[environment.name].set()
        await environment.supervise()

    async def _evaluate(self, step: int, policy: Policy) -> None:
        """Raises StaleLease."""
        try:
            for environment, ref in zip(self._environments, self._plan.environments, strict=True):
                await self._started[environment.name].wait()
                await self._evaluate_one(step, policy, environment, ref)
        except Exception as error:
            cause = first_ending(error)
            if isinstance(cause, StaleLease):
                raise cause from error
            reason = cause.message if isinstance(cause, AttemptOver) else f"{type(cause).__name__}: {cause}"
            message = f"the evaluation at step {step} did not finish and is left out: {reason}"
            self._place.reporter.incident("eval_failed", message, component=Component.EVAL, step=step)
        finally:
            self._place.policies.release(policy)

    async def _evaluate_one(self, step: int, policy: Policy, environment: Environment, ref: EnvironmentRef) -> None:
        wanted = ref.num_examples if ref.num_examples is not None else self._plan.num_examples
        evaluation = EvalPass(
            environment=environment,
            policy=policy,
            tasks=environment.tasks.first(wanted),
            rollouts_per_example=ref.rollouts_per_example or self._plan.rollouts_per_example,
            sampling=RolloutSampling(temperature=self._config.temperature, max_tokens=self._config.max_tokens),
            deadline_s=ref.timeout,
            concurrency=CONCURRENCY,
            gate=self._gate,
            on_end=self._note_progress,
        )
        accounted: list[Accounted] = []

        async def keep(item: Accounted) -> None:
            accounted.append(item)

        await evaluation.run(self._place.sessions, keep)
        await self._report(step, environment.name, accounted)

    def _note_progress(self) -> None:
        self.progress_s = time.monotonic()

    async def _report(self, step: int, name: str, accounted: list[Accounted]) -> None:
        tag = f"eval/{name}"[:64]
        await self._place.control.rollouts(rollout_batch(accounted, step=step, tag=tag, texts=self._place.texts))
        usage = rollout_usage(accounted, sequence=f"{tag}.{step}")
        if usage:
            await self._place.control.usage(UsageBatch(events=usage))
        result = eval_result(accounted)
        self._place.reporter.emit(EventKind.EVAL, {"environment": name, **result.model_dump()}, step=step)
