"""A hosted evaluation: one environment, one model of ours or behind an API outside, so many rollouts of each example.

Knows the order of an evaluation. Refuses to train, and to sum up: earlier attempts may have done a part, and the control plane
holds it all. Rollouts are reported a few at a time and charged under their own (task, number), so that an attempt goes on where a
lost one ended and charges nothing twice.
"""

import asyncio
import time
from functools import partial
from pathlib import Path

from trainer.contracts.events import Component, FailureCode
from trainer.contracts.internal import ExternalModel, Finish, ServedModel, UsageBatch, UsageIn
from trainer.contracts.rollouts import RolloutSampling
from trainer.contracts.run_config import EvalConfig
from trainer.orchestrator.attempt.endings import AttemptOver, ending_of, failed
from trainer.orchestrator.engines.external import ExternalGate, external_gate, external_policy
from trainer.orchestrator.engines.gate import EngineGate
from trainer.orchestrator.engines.policies import Policy
from trainer.orchestrator.engines.publishing import load_served
from trainer.orchestrator.engines.seats import load_seats, seat_models
from trainer.orchestrator.environments.environment import Environment, held_up_by
from trainer.orchestrator.environments.runner_start import limits_of
from trainer.orchestrator.evals.playing import EvalPass
from trainer.orchestrator.rollouts.records import rollout_batch, rollout_usage
from trainer.orchestrator.rollouts.rollout import Accounted
from trainer.orchestrator.rollouts.unclaimed import unclaimed_rollouts
from trainer.orchestrator.watch import Watch, silence_limits_s
from trainer.orchestrator.workplace import Workplace

TAG = "eval"
REPORT_ROLLOUTS = 16
REPORT_S = 2.0
"""A report goes out with this many rollouts, or with the first one that ends this long after the last report."""


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
        self._external = place.spec.external
        self._gate = self._gate_to(self._external)
        self._settled_count = 0
        self._has_succeeded = bool(place.spec.done)
        self._first_error = "no rollout ran"
        self._unreported: list[Accounted] = []
        self._reports_count = 0
        self._reported_s = time.monotonic()
        self._progress_s = time.monotonic()
        ref, release = config.environment, place.spec.releases[0]
        name = ref.name or release.environment
        self._sampling = RolloutSampling(temperature=config.temperature, max_tokens=config.max_tokens)
        seats = seat_models(ref, place.spec.seats[0] if place.spec.seats else {}, self._sampling)
        proxy = place.proxy(name, self._gate, temperature=config.temperature, max_tokens=config.max_tokens, seats=seats)
        self._environment = Environment(
            name,
            place.start_runner(release, ref.args, limits_of(ref), seats, held_out=True),
            model_app=proxy.app,
            reporter=place.reporter,
            meter_name=f"{place.spec.attempt}.eval",
        )
        place.environments = {self._environment.name: self._environment}

    def _gate_to(self, external: ExternalModel | None) -> EngineGate:
        if external is None:
            return self._place.gate(self._engines)
        return external_gate(external, partial(self._place.reporter.incident, component=Component.ENGINE))

    async def work(self) -> None:
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._owner(), name="owner")
            self._place.phase("starting the environment", Component.SANDBOX)
            await self._environment.start()
            artifacts, policies = Path(self._place.pool.artifact_root), self._place.policies
            policy = await self._policy(artifacts)
            policies.publish(policy)
            await load_seats(self._place.spec.seats, artifacts, engines=self._engines, policies=policies)
            tasks.create_task(self._environment.supervise(), name="supervise")
            tasks.create_task(self._watch().run(), name="watch")
            tasks.create_task(self._deadline(), name="deadline")
            tasks.create_task(self._refusal(), name="refusal")
            tasks.create_task(self._evaluate(policy), name="evaluate")

    async def _policy(self, artifacts: Path) -> Policy:
        if self._external is not None:
            return external_policy(self._external)
        return await load_served(self._served, artifacts, self._engines)

    async def wind_up(self, ending: AttemptOver) -> Finish:
        """However it ended, what was done is kept."""
        place = self._place
        await place.stop_environments()
        await self._report_all()
        await place.report_sandbox_seconds()
        unclaimed = unclaimed_rollouts(place.sessions.unclaimed(time.monotonic()))
        if unclaimed:
            rest = f"rest-{place.spec.attempt}"
            await place.control.rollouts(rollout_batch(unclaimed, step=0, tag=rest, texts=place.texts))
            await self._charge(rollout_usage(unclaimed, sequence=f"{rest}.0"))
        return Finish(outcome=ending.outcome, code=ending.code, message=ending.message, detail=ending.detail)

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
            done=frozenset(self._place.spec.done),
            is_metered=self._external is None,
        )
        total, before = len(evaluation.tasks) * config.rollouts_per_example, len(evaluation.done)
        past = f", {before} of them are there" if before else ""
        self._place.phase(f"evaluating {policy.engine_name}: {total} rollouts{past}", Component.EVAL)
        await evaluation.run(self._place.sessions, self._keep)
        if not self._has_succeeded:
            message = f"none of {total} rollouts succeeded; the first error: {self._first_error}"
            raise failed(FailureCode.ENVIRONMENT_FAILING, message)
        raise AttemptOver("completed", f"{total} rollouts done")

    async def _keep(self, item: Accounted) -> None:
        if self._settled_count == 0 and item.rollout.outcome is not None:
            self._first_error = item.rollout.outcome.error or ""
        self._has_succeeded = self._has_succeeded or item.state == "ok"
        self._settled_count += 1
        self._unreported.append(item)
        self._place.status.step = len(self._place.spec.done) + self._settled_count
        is_due = time.monotonic() - self._reported_s >= REPORT_S
        if is_due or len(self._unreported) >= REPORT_ROLLOUTS:
            await self._report_all()

    async def _report_all(self) -> None:
        """What an interrupted report held is reported again: the control plane knows a rollout by its task and number."""
        items, self._unreported = self._unreported, []
        if not items:
            return
        self._reports_count, self._reported_s = self._reports_count + 1, time.monotonic()
        number = self._reports_count
        try:
            await self._place.control.rollouts(rollout_batch(items, step=number, tag=TAG, texts=self._place.texts))
            await self._charge([event for item in items for event in rollout_usage([item], sequence=_sequence(item))])
        except BaseException:
            self._unreported = items + self._unreported
            raise

    async def _charge(self, usage: list[UsageIn]) -> None:
        if usage:
            await self._place.control.usage(UsageBatch(events=usage))

    def _note_progress(self) -> None:
        self._progress_s = time.monotonic()

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

    async def _refusal(self) -> None:
        """A server outside that refuses for good ends the evaluation: every other rollout would fail the same way."""
        if isinstance(self._gate, ExternalGate):
            await self._gate.refused.wait()
            raise failed(FailureCode.MODEL_REFUSED, f"the model's server refuses: {self._gate.refusal}")

    async def _owner(self) -> None:
        await self._place.desire.changed.wait()
        ending = self._place.desire.ending()
        if ending is not None:
            raise ending


def _sequence(item: Accounted) -> str:
    """What a rollout is charged under, whichever attempt made it."""
    return f"{TAG}.{item.rollout.task}.{item.rollout.number}"
