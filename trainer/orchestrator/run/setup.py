"""A training run from its orders: every part made and wired, then run until one of them says that it is over.

Knows which part gets what. Refuses to know how any of them works.
"""

import asyncio
from collections.abc import Iterable
from functools import partial
from pathlib import Path
from typing import Any

from trainer.algorithms import Algorithm, UnknownAlgorithm, algorithm_for
from trainer.contracts.events import Component, EventKind, FailureCode
from trainer.contracts.internal import Finish
from trainer.contracts.rollouts import ReleaseSpec, RolloutSampling
from trainer.contracts.run_config import AlgorithmChoice, EnvironmentRef, RunConfig
from trainer.contracts.teaching import generator_of, own_sampling, sampling_of
from trainer.orchestrator.attempt.endings import AttemptOver, ending_of, failed
from trainer.orchestrator.datasets.opening import Datasets
from trainer.orchestrator.engines.loads import EngineLoads
from trainer.orchestrator.engines.publishing import Publisher
from trainer.orchestrator.engines.seats import load_seats, seat_models
from trainer.orchestrator.engines.teachers import Teachers
from trainer.orchestrator.environments.environment import Environment
from trainer.orchestrator.environments.recordings import AnyEnvironment, RecordedEnvironment
from trainer.orchestrator.environments.runner_start import limits_of
from trainer.orchestrator.evals.beside_training import RunEvals
from trainer.orchestrator.groups.book import GroupBook
from trainer.orchestrator.groups.dispatch import Dispatcher
from trainer.orchestrator.groups.filters import RolloutFilters
from trainer.orchestrator.groups.references import EngineReference
from trainer.orchestrator.groups.rewards import GroupRewards
from trainer.orchestrator.groups.scoring import GroupScorer
from trainer.orchestrator.groups.staleness import StalenessRule
from trainer.orchestrator.run.loop import Run
from trainer.orchestrator.steps.journal import StepJournal
from trainer.orchestrator.steps.reports import StepReports
from trainer.orchestrator.steps.trainer_client import TrainerClient, open_request
from trainer.orchestrator.watch import Watch, silence_limits_s
from trainer.orchestrator.workplace import Workplace

END_GRACE_S = 30.0
"""How long a step that is going on may take to finish once the owner wants an end."""
NO_TRAINER = frozenset({FailureCode.TRAINER_UNREACHABLE, FailureCode.TRAINER_REFUSED, FailureCode.NON_FINITE})
"""Endings after which the trainer is asked for nothing more."""


async def run_training(place: Workplace) -> Finish:
    """Everything from the first sandbox to the last report. Raises StaleLease."""
    config = place.spec.run
    if config is None:
        raise failed(FailureCode.INTERNAL, "an attempt of kind run came without a configuration")
    training = Training(place, config)
    ending = await ending_of(training.work())
    return await training.wind_up(ending)


class Training:
    def __init__(self, place: Workplace, config: RunConfig):
        self._place = place
        self._config = config
        self._engines = place.engines()
        self._gate = place.gate(self._engines)
        self._book = GroupBook()
        trained, evaluated = self._environments()
        self._trained = list(trained.values())
        place.environments = {**trained, **evaluated}
        self._teachers = self._made_teachers(trained)
        algorithms = {
            name: _algorithm(config.algorithm_of(ref), self._reference(name))
            for name, ref in zip(trained, config.environments, strict=True)
        }
        refs = zip(trained.items(), config.environments, strict=True)
        rewards = {name: GroupRewards(environment, ref.group_rewards) for (name, environment), ref in refs}
        self._scorer = scorer = GroupScorer(algorithms, rewards)
        filters = self._filters()
        self._datasets = Datasets(place, config)
        self._dispatcher = self._make_dispatcher(trained, algorithms, scorer, filters)
        self._evals = RunEvals(place, config, list(evaluated.values()), gate=self._gate)
        root = Path(place.pool.artifact_root)
        journal = StepJournal(root, place.spec.subject_id)
        publisher = Publisher(place.spec.subject_id, config, root, engines=self._engines, policies=place.policies)
        self._reports = StepReports(
            place.control,
            place.reporter,
            journal,
            publisher,
            segment=place.spec.segment,
            versions_in_use=self._book.versions_in_use,
        )
        self._run = Run(
            place,
            config,
            trainer=TrainerClient(
                place.trainer(),
                place.spec.subject_id,
                open_request(place.spec, config),
                on_wait=partial(place.phase, waiting_for=Component.QUEUE),
            ),
            publisher=publisher,
            book=self._book,
            dispatcher=self._dispatcher,
            journal=journal,
            reports=self._reports,
            evals=self._evals,
            scorer=scorer,
            filters=filters,
            feed=self._datasets.feed,
        )

    async def work(self) -> None:
        """Raises AttemptOver, in a group with whatever else was cancelled."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._honour_owner(), name="owner")
            tasks.create_task(self._reports.run(), name="reports")
            tasks.create_task(self._watch().run(), name="watch")
            await self._datasets.load()
            tasks.create_task(self._evals.run(), name="evaluation environments")
            await self._start_environments()
            self._scorer.check()
            await self._run.resume()
            await self._teachers.load()
            await load_seats(
                self._place.spec.seats,
                Path(self._place.pool.artifact_root),
                engines=self._engines,
                policies=self._place.policies,
            )
            for environment in self._trained:
                tasks.create_task(environment.supervise(), name=f"supervise {environment.name}")
            tasks.create_task(self._engine_loads().run(), name="engine loads")
            tasks.create_task(self._dispatcher.run(), name="dispatch")
            tasks.create_task(self._run.train(), name="train")

    async def wind_up(self, ending: AttemptOver) -> Finish:
        """Stop what tenants pay for first, then leave everything so that another attempt can go on."""
        place = self._place
        place.phase(f"ending: {ending.message[:200]}")
        await self._evals.abandon()
        await place.stop_environments()
        await place.report_sandbox_seconds()
        if ending.code not in NO_TRAINER and ending.detail.get("component") is not Component.TRAINER:
            try:
                await self._run.wind_up()
            except AttemptOver as error:
                place.reporter.incident("wind_up", f"the run's last state could not be saved: {error.message}")
        return Finish(outcome=ending.outcome, code=ending.code, message=ending.message, detail=ending.detail)

    def _environments(self) -> tuple[dict[str, AnyEnvironment], dict[str, Environment]]:
        """Those that are trained on, and those of the evaluation plan, by their names; releases come in the same order."""
        config, releases = self._config, self._place.spec.releases
        names, count = config.environment_names(), len(config.environments)
        if len(names) != len(releases):
            raise failed(FailureCode.INTERNAL, f"{len(names)} environments came with {len(releases)} releases")
        trained: dict[str, AnyEnvironment] = {}
        for index, (name, ref, release) in enumerate(zip(names[:count], config.environments, releases[:count], strict=True)):
            if ref.replay:
                trained[name] = self._recorded_environment(name, index)
            else:
                trained[name] = self._environment(name, ref, release, sampling_of(config, ref), index)
        # Evaluations are the policy's own, whoever makes the rollouts that it trains on.
        plan = zip(names[count:], config.eval.environments if config.eval else [], releases[count:], strict=True)
        evaluated = {
            name: self._environment(name, ref, release, own_sampling(config), index, held_out=True)
            for index, (name, ref, release) in enumerate(plan, start=count)
        }
        return trained, evaluated

    def _recorded_environment(self, name: str, index: int) -> RecordedEnvironment:
        replays = self._place.spec.replays
        spec = replays[index] if index < len(replays) else None
        if spec is None:
            raise failed(FailureCode.INTERNAL, f"{name} replays a run, but the orders name none")
        return RecordedEnvironment(name, spec, partial(self._place.control.replay, index))

    def _environment(
        self,
        name: str,
        ref: EnvironmentRef,
        release: ReleaseSpec,
        sampling: RolloutSampling,
        index: int,
        *,
        held_out: bool = False,
    ) -> Environment:
        """`index` is its place among the orders' releases."""
        place, config = self._place, self._config
        seats = seat_models(ref, place.spec.seats[index] if place.spec.seats else {}, sampling)
        proxy = place.proxy(name, self._gate, temperature=sampling.temperature, max_tokens=sampling.max_tokens, seats=seats)
        return Environment(
            name,
            place.start_runner(release, ref.args, limits_of(ref), seats, held_out=held_out),
            model_app=proxy.app,
            reporter=place.reporter,
            meter_name=f"{place.spec.attempt}.{name}",
            seed=config.seed,
            tasks_max=ref.num_examples,
        )

    def _made_teachers(self, environments: Iterable[str]) -> Teachers:
        place = self._place
        served = {name: teacher for name, teacher in zip(environments, place.spec.teachers, strict=False) if teacher}
        return Teachers(served, Path(place.pool.artifact_root), engines=self._engines, policies=place.policies)

    def _reference(self, environment: str) -> EngineReference:
        """Whom the environment's algorithm may ask how likely tokens are: its teacher, else the policy itself."""
        place, config = self._place, self._config
        pins = place.pins(temperature=config.temperature, max_tokens=config.max_tokens)
        teacher = self._teachers.name_of(environment)
        return EngineReference(self._gate, place.policies, pins=pins, texts=place.texts, teacher=teacher)

    def _filters(self) -> RolloutFilters:
        config, reporter = self._config, self._place.reporter
        return RolloutFilters(
            config.pre_batch_filters,
            batch_size=config.batch_size,
            warn=lambda message: reporter.emit(EventKind.WARNING, {"message": message}),
        )

    def _make_dispatcher(
        self,
        environments: dict[str, AnyEnvironment],
        algorithms: dict[str, Algorithm[Any]],
        scorer: GroupScorer,
        filters: RolloutFilters,
    ) -> Dispatcher:
        return Dispatcher(
            self._config,
            environments,
            book=self._book,
            rule=StalenessRule(self._config.max_off_policy_steps, max(1, self._config.rollouts_per_batch())),
            policies=self._place.policies,
            sessions=self._place.sessions,
            gate=self._gate,
            score_group=scorer,
            filters=filters,
            valid_min={name: algorithm.valid_min for name, algorithm in algorithms.items()},
            generators={
                name: teacher
                for name, ref in zip(environments, self._config.environments, strict=True)
                if generator_of(self._config, ref) == "teacher" and (teacher := self._teachers.name_of(name))
            },
        )

    async def _start_environments(self) -> None:
        self._place.phase("starting environments", Component.SANDBOX)
        async with asyncio.TaskGroup() as tasks:
            for environment in self._trained:
                tasks.create_task(environment.start(), name=f"start {environment.name}")

    def _engine_loads(self) -> EngineLoads:
        place, dispatcher = self._place, self._dispatcher
        return EngineLoads(
            place.pool_http, place.pool.inference_urls, dispatcher.limit, lambda: self._book.inflight_count, dispatcher.wake
        )

    def _watch(self) -> Watch:
        plan = self._config.eval.environments if self._config.eval else []
        return Watch(
            self._place,
            self._gate,
            limits_s=silence_limits_s(
                rollout_s=max((ref.timeout for ref in self._config.environments), default=0.0),
                eval_rollout_s=max((ref.timeout for ref in plan), default=0.0),
            ),
            progress_s=lambda: max(self._run.progress_s, self._dispatcher.progress_s, self._evals.progress_s),
            waiting_for=self._dispatcher.waiting_for,
            inflight=lambda: self._book.inflight_count,
            notice=self._place.silence_notice(),
        )

    async def _honour_owner(self) -> None:
        """The run ends between two steps by itself; this ends one that does not get there."""
        await self._place.desire.changed.wait()
        await asyncio.sleep(END_GRACE_S if self._run.is_stepping else 0)
        ending = self._place.desire.ending()
        if ending is not None:
            raise ending


def _algorithm(config: AlgorithmChoice, reference: EngineReference) -> Algorithm[Any]:
    try:
        return algorithm_for(config, reference)
    except UnknownAlgorithm as error:
        raise failed(FailureCode.INTERNAL, str(error)) from error
