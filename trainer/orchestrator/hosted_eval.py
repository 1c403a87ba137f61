"""A hosted evaluation: one environment, one served model, a mean with its interval.

Knows the order of an evaluation. Refuses to train. Each chunk of tasks is reported under its own number, so that an attempt that
repeats a crashed one reports, and charges, nothing twice.
"""

import asyncio
import time
from pathlib import Path

from trainer.contracts.events import Component, EventKind, FailureCode
from trainer.contracts.internal import Finish, ServedModel, UsageBatch
from trainer.contracts.rollouts import RolloutSampling
from trainer.contracts.run_config import EvalConfig
from trainer.orchestrator.attempt.endings import AttemptOver, ending_of, failed
from trainer.orchestrator.engines.policies import Policy
from trainer.orchestrator.engines.publishing import load_served
from trainer.orchestrator.engines.seats import load_seats, seat_models
from trainer.orchestrator.environments.environment import Environment, held_up_by
from trainer.orchestrator.environments.runner_start import limits_of
from trainer.orchestrator.evals.playing import EvalPass
from trainer.orchestrator.evals.statistics import eval_result
from trainer.orchestrator.rollouts.records import rollout_batch, rollout_usage
from trainer.orchestrator.rollouts.rollout import Accounted
from trainer.orchestrator.rollouts.unclaimed import unclaimed_rollouts
from trainer.orchestrator.watch import Watch, silence_limits_s
from trainer.orchestrator.workplace import Workplace

TAG = "eval"


async def run_evaluation(place: Workplace) -> Finish:
    """Raises StaleLease."""
    if place.spec.eval is None or place.spec.served_model is None or not place.spec.releases:
        raise failed(FailureCode.INTERNAL, "an attempt of kind eval came without configuration, model or release")
    evaluation = Evaluation(place, place.spec.eval, place.spec.served_model)
    ending = await ending_of(evaluation.work())
    return await evaluation.wind_up(ending)


class Evaluation:
    def __init__(self, place: Workplace, config: EvalConfig, served: ServedModel):
        self._place = place
        self._config = config
        self._served = served
        self._engines = place.engines()
        self._gate = place.gate(self._engines)
        self._accounted: list[Accounted] = []
        self._progress_s = time.monotonic()
        ref, release = config.environment, place.spec.releases[0]
        name = ref.name or release.environment
        self._sampling = RolloutSampling(temperature=config.temperature, max_tokens=config.max_tokens)
        seats = seat_models(ref, place.spec.seats[0] if place.spec.seats else {}, self._sampling)
        proxy = place.proxy(name, self._gate, temperature=config.temperature, max_tokens=config.max_tokens, seats=seats)
        self._environment = Environment(
            name,
            place.start_runner(release, ref.args, limits_of(ref), seats),
            model_app=proxy.app,
            reporter=place.reporter,
            meter_name=f"{place.spec.attempt}.eval",
        )
        place.environments = {self._environment.name: self._environment}

    async def work(self) -> None:
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._owner(), name="owner")
            self._place.phase("starting the environment", Component.SANDBOX)
            await self._environment.start()
            artifacts, policies = Path(self._place.pool.artifact_root), self._place.policies
            policy = await load_served(self._served, artifacts, self._engines)
            policies.publish(policy)
            await load_seats(self._place.spec.seats, artifacts, engines=self._engines, policies=policies)
            tasks.create_task(self._environment.supervise(), name="supervise")
            tasks.create_task(self._watch().run(), name="watch")
            tasks.create_task(self._deadline(), name="deadline")
            tasks.create_task(self._evaluate(policy), name="evaluate")

    async def wind_up(self, ending: AttemptOver) -> Finish:
        place = self._place
        await place.stop_environments()
        await place.report_sandbox_seconds()
        unclaimed = unclaimed_rollouts(place.sessions.unclaimed(time.monotonic()))
        if unclaimed:
            await self._report(f"rest-{place.spec.attempt}", 0, unclaimed)
        result = eval_result(self._accounted)
        payload = {"environment": self._environment.name} | result.model_dump()
        place.reporter.emit(EventKind.EVAL, payload)
        return Finish(outcome=ending.outcome, code=ending.code, message=ending.message, detail=ending.detail, eval_result=result)

    async def _evaluate(self, policy: Policy) -> None:
        config, ref = self._config, self._config.environment
        evaluation = EvalPass(
            environment=self._environment,
            policy=policy,
            tasks=self._environment.tasks.first(config.num_examples),
            rollouts_per_example=config.rollouts_per_example,
            sampling=self._sampling,
            deadline_s=ref.timeout,
            concurrency=config.max_concurrent,
            gate=self._gate,
            on_end=self._note_progress,
        )
        total = len(evaluation.tasks) * config.rollouts_per_example
        self._place.phase(f"evaluating {policy.engine_name}: {total} rollouts", Component.EVAL)
        await evaluation.run(self._place.sessions, self._keep)
        if all(item.state != "ok" for item in self._accounted):
            first = next((item.rollout.outcome.error for item in self._accounted if item.rollout.outcome), "no rollout ran")
            raise failed(FailureCode.ENVIRONMENT_FAILING, f"none of {total} rollouts succeeded; the first error: {first}")
        raise AttemptOver("completed", f"{total} rollouts done")

    async def _keep(self, number: int, chunk: list[Accounted]) -> None:
        self._accounted += chunk
        self._place.status.step = len(self._accounted)
        await self._report(TAG, number, chunk)

    def _note_progress(self) -> None:
        self._progress_s = time.monotonic()

    async def _report(self, tag: str, number: int, accounted: list[Accounted]) -> None:
        await self._place.control.rollouts(rollout_batch(accounted, step=number, tag=tag, texts=self._place.texts))
        usage = rollout_usage(accounted, sequence=f"{tag}.{number}")
        if usage:
            await self._place.control.usage(UsageBatch(events=usage))

    def _watch(self) -> Watch:
        return Watch(
            self._place,
            self._gate,
            limits_s=silence_limits_s(rollout_s=0.0, eval_rollout_s=self._config.environment.timeout),
            progress_s=lambda: self._progress_s,
            waiting_for=lambda: held_up_by([self._environment], self._place.sessions, self._environment.live_count),
            inflight=lambda: self._environment.live_count,
            notice=self._place.silence_notice(),
        )

    async def _deadline(self) -> None:
        minutes = self._config.timeout_minutes
        await asyncio.sleep(60.0 * minutes)
        raise failed(FailureCode.STALLED, f"the evaluation took longer than timeout_minutes = {minutes}")

    async def _owner(self) -> None:
        await self._place.desire.changed.wait()
        ending = self._place.desire.ending()
        if ending is not None:
            raise ending
