"""A training run from its orders: every part made and wired, then run until one of them says that it is over.

Knows which part gets what. Refuses to know how any of them works.
"""

import asyncio
from pathlib import Path

from trainer.algorithms import algorithm_for
from trainer.contracts.events import FailureCode
from trainer.contracts.internal import Finish
from trainer.contracts.rollouts import ReleaseSpec
from trainer.contracts.run_config import EnvironmentRef, RunConfig
from trainer.orchestrator.dispatch import Dispatcher
from trainer.orchestrator.endings import AttemptOver, StaleLease, failed, first_ending
from trainer.orchestrator.environments import Environment
from trainer.orchestrator.group_book import GroupBook
from trainer.orchestrator.publishing import Publisher
from trainer.orchestrator.run_evals import RunEvals
from trainer.orchestrator.run_loop import Run
from trainer.orchestrator.runner_start import limits_of
from trainer.orchestrator.scoring import GroupScorer
from trainer.orchestrator.staleness import StalenessRule
from trainer.orchestrator.step_journal import StepJournal
from trainer.orchestrator.step_reports import StepReports
from trainer.orchestrator.trainer_client import TrainerClient, open_request
from trainer.orchestrator.workplace import Workplace, engine_ending, stall_ending

WATCH_S = 5.0
STALL_MIN_S = 900.0
END_GRACE_S = 30.0
"""How long a step that is going on may take to finish once the owner wants an end."""
UNREACHABLE = frozenset({FailureCode.TRAINER_UNREACHABLE, FailureCode.TRAINER_REFUSED, FailureCode.NON_FINITE})


async def run_training(place: Workplace) -> Finish:
    """Everything from the first sandbox to the last report. Raises StaleLease."""
    config = place.spec.run
    if config is None:
        raise failed(FailureCode.INTERNAL, "an attempt of kind run came without a configuration")
    training = Training(place, config)
    ending = await ending_of(training.work())
    return await training.wind_up(ending)


async def ending_of(work) -> AttemptOver:
    """How the work ended; an error that nobody foresaw is a failure of ours, with its own words."""
    try:
        await work
    except BaseException as error:
        cause = first_ending(error)
        if isinstance(cause, AttemptOver):
            return cause
        if isinstance(cause, Exception) and not isinstance(cause, StaleLease):
            return failed(FailureCode.INTERNAL, f"{type(cause).__name__}: {cause}")
        raise cause from error
    return failed(FailureCode.INTERNAL, "the run ended without saying why")


class Training:
    def __init__(self, place: Workplace, config: RunConfig):
        self._place = place
        self._config = config
        spec = place.spec
        engines = place.engines()
        self._gate = place.gate(engines)
        plan = config.eval.environments if config.eval else []
        train_releases, eval_releases = spec.releases[: len(config.environments)], spec.releases[len(config.environments) :]
        trained = [
            self._environment(ref, release, "train") for ref, release in zip(config.environments, train_releases, strict=True)
        ]
        evaluated = [self._environment(ref, release, "eval") for ref, release in zip(plan, eval_releases, strict=True)]
        place.environments = {environment.name: environment for environment in (*trained, *evaluated)}
        by_name = {environment.name: environment for environment in trained}
        algorithm = algorithm_for(config.algorithm)
        self._book = GroupBook(valid_min=algorithm.valid_min)
        self._dispatcher = Dispatcher(
            config,
            by_name,
            book=self._book,
            rule=StalenessRule(config.max_off_policy_steps, config.batch_size),
            policies=place.policies,
            sessions=place.sessions,
            gate=self._gate,
            score_group=GroupScorer(algorithm, by_name),
        )
        root = Path(place.pool.artifact_root)
        journal = StepJournal(root, spec.subject_id)
        publisher = Publisher(spec.subject_id, config, root, engines=engines, policies=place.policies)
        self._reports = StepReports(
            place.control,
            place.reporter,
            journal,
            publisher,
            segment=spec.segment,
            versions_in_use=self._book.versions_in_use,
        )
        self._evals = RunEvals(place, config, evaluated)
        self._run = Run(
            place,
            config,
            trainer=TrainerClient(place.trainer(), spec.subject_id, open_request(spec, config), on_phase=place.phase),
            publisher=publisher,
            book=self._book,
            dispatcher=self._dispatcher,
            journal=journal,
            reports=self._reports,
            evals=self._evals,
            component=algorithm.component,
        )

    async def work(self) -> None:
        """Raises AttemptOver, in a group with whatever else was cancelled."""
        await self._start()
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._reports.run(), name="reports")
            await self._run.resume()
            for environment in self._place.environments.values():
                tasks.create_task(environment.supervise(), name=f"supervise {environment.name}")
            tasks.create_task(self._dispatcher.run(), name="dispatch")
            tasks.create_task(self._watch(), name="watch")
            tasks.create_task(self._honour_owner(), name="owner")
            tasks.create_task(self._run.train(), name="train")

    async def wind_up(self, ending: AttemptOver) -> Finish:
        """Stop what tenants pay for first, then leave everything so that another attempt can go on."""
        place = self._place
        place.phase(f"ending: {ending.message[:200]}")
        await self._evals.abandon()
        await place.stop_environments()
        await place.report_sandbox_seconds()
        if ending.code not in UNREACHABLE:
            try:
                await self._run.wind_up()
            except AttemptOver as error:
                place.reporter.incident("wind_up", f"the run's last state could not be saved: {error.message}")
        return Finish(outcome=ending.outcome, code=ending.code, message=ending.message, detail=ending.detail)

    def _environment(self, ref: EnvironmentRef, release: ReleaseSpec, use: str) -> Environment:
        place, config = self._place, self._config
        name = (ref.name or release.environment) + ("" if use == "train" else " (eval)")
        proxy = place.proxy(name, self._gate, temperature=config.temperature, max_tokens=config.max_tokens)
        return Environment(
            name,
            place.start_runner(release, ref.args, limits_of(ref)),
            model_app=proxy.app,
            reporter=place.reporter,
            meter_name=f"{place.spec.attempt}.{use}.{name}",
            seed=config.seed,
            tasks_max=ref.num_examples,
        )

    async def _start(self) -> None:
        self._place.phase("starting environments")
        async with asyncio.TaskGroup() as tasks:
            for environment in self._place.environments.values():
                tasks.create_task(environment.start(), name=f"start {environment.name}")

    async def _watch(self) -> None:
        """Meter sandboxes, and notice what has been stuck for too long."""
        limit_s = max(STALL_MIN_S, 3 * max(ref.timeout for ref in self._config.environments))
        while True:
            await asyncio.sleep(WATCH_S)
            await self._place.report_sandbox_seconds()
            self._place.status.inflight = self._book.inflight_count
            progress_s = max(self._run.progress_s, self._dispatcher.progress_s)
            for ending in (engine_ending(self._gate), stall_ending(self._place.status, progress_s, limit_s=limit_s)):
                if ending is not None:
                    raise ending

    async def _honour_owner(self) -> None:
        """The run ends between two steps by itself; this ends one that does not get there."""
        await self._place.desire.changed.wait()
        await asyncio.sleep(END_GRACE_S)
        ending = self._place.desire.ending()
        if ending is not None:
            raise ending
