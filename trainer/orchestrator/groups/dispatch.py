"""Keeps rollouts in flight: starts groups while there is room, drives each rollout to its outcome, gives up what is too late.

Knows when to start and when to cancel. Refuses to know the trainer and reports. All of a group's rollouts are dispatched on the
policy version that is current at that moment and stay on it. Nothing here delays anything: the loop sleeps until a rollout
ends, a version is published or a batch is cut.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from statistics import median

from trainer.contracts.base import new_id
from trainer.contracts.events import Component
from trainer.contracts.rollouts import RolloutRequest
from trainer.contracts.run_config import RunConfig
from trainer.contracts.teaching import sampling_of
from trainer.orchestrator.engines.concurrency import InflightLimit
from trainer.orchestrator.engines.gate import EngineGate
from trainer.orchestrator.engines.policies import Policy, PolicyTable
from trainer.orchestrator.environments.curriculum import CurriculumState, TaskChooser
from trainer.orchestrator.environments.environment import held_up_by
from trainer.orchestrator.environments.mixture import Mixture
from trainer.orchestrator.environments.recordings import AnyEnvironment, RecordedEnvironment
from trainer.orchestrator.environments.runner_client import RunnerSilent
from trainer.orchestrator.groups.book import GroupBook
from trainer.orchestrator.groups.failure_window import FailureWindow
from trainer.orchestrator.groups.filters import RolloutFilters
from trainer.orchestrator.groups.staleness import StalenessRule
from trainer.orchestrator.proxy.sessions import SessionBook
from trainer.orchestrator.rollouts.rollout import Group, Rollout, RolloutOutcome
from trainer.orchestrator.rollouts.verdicts import judge, lost

TICK_S = 1.0
STRAGGLER_FACTOR = 10.0
STRAGGLER_MIN_S = 30.0

ScoreGroup = Callable[[Group], Awaitable[None]]
"""Sets the lessons of a complete group's valid rollouts."""


def inflight_limit(config: RunConfig) -> InflightLimit:
    """Rollouts in flight at once. At most one batch by default: while the trainer steps, the next batch is being made."""
    largest = max((config.group_size_of(ref) for ref in config.environments), default=1)
    most = config.max_inflight_rollouts or round(config.rollouts_per_batch() * (config.oversampling_factor or 1.0))
    return InflightLimit(floor=largest, ceiling=most)


class Dispatcher:
    """`next_step` is the batch that will be cut next; `changed` is set whenever a rollout has ended. `valid_min` says for each
    environment how many valid rollouts a group of it needs, `generators` which frozen model makes them if not the policy."""

    def __init__(
        self,
        config: RunConfig,
        environments: Mapping[str, AnyEnvironment],
        *,
        book: GroupBook,
        rule: StalenessRule,
        policies: PolicyTable,
        sessions: SessionBook,
        gate: EngineGate,
        score_group: ScoreGroup,
        filters: RolloutFilters,
        valid_min: Mapping[str, int],
        generators: Mapping[str, str],
    ):
        self.next_step = 1
        self.changed = asyncio.Event()
        self.progress_s = time.monotonic()
        self._config = config
        self._environments = environments
        self._refs = dict(zip(environments, config.environments, strict=True))
        self._mixture = Mixture({name: ref.ratio for name, ref in self._refs.items()})
        self._choosers = {
            name: TaskChooser(ref.curriculum, seed=config.seed, environment=name)
            for name, ref in self._refs.items()
            if ref.curriculum is not None
        }
        for name, chooser in self._choosers.items():
            environments[name].tasks.chooser = chooser
        self._book = book
        self._rule = rule
        self._policies = policies
        self._sessions = sessions
        self._gate = gate
        self._score_group = score_group
        self._filters = filters
        self._valid_min = valid_min
        self._generators = generators
        self.limit = inflight_limit(config)
        self._group_max = max((config.group_size_of(ref) for ref in config.environments), default=1)
        self._window = FailureWindow(size=config.batch_size, fraction=config.failure_pause_fraction)
        self._wake = asyncio.Event()
        self._given_up: set[str] = set()
        self._looked_s = float("-inf")

    def resume_at(self, cursors: Mapping[str, int], curricula: Mapping[str, CurriculumState]) -> None:
        """Go on with the tasks where an earlier attempt stopped taking them."""
        for name, position in cursors.items():
            if name in self._environments:
                self._environments[name].tasks.position = position
        known = {name: state for name, state in curricula.items() if name in self._choosers}
        for name, state in known.items():
            self._choosers[name].restore(state)
        turns = sum(cursors.values()) - sum(state.passed for state in known.values())
        self._mixture.skip(turns % 10_000)

    def cursors(self) -> dict[str, int]:
        return {name: environment.tasks.position for name, environment in self._environments.items()}

    def curricula(self) -> dict[str, CurriculumState]:
        """What is known of the tasks of each environment that has a curriculum."""
        return {name: chooser.state() for name, chooser in self._choosers.items()}

    def take_task_metrics(self) -> dict[str, float]:
        """`<metric>/<environment>`, of the time since the last call."""
        kept = {name: chooser.take_metrics() for name, chooser in self._choosers.items()}
        return {f"{metric}/{name}": value for name, metrics in kept.items() for metric, value in metrics.items()}

    def wake(self) -> None:
        """A version was published or a batch was cut: there may be room."""
        self._wake.set()

    def waiting_for(self) -> Component:
        """Whom the rollouts that are not home yet wait for."""
        groups = self._book.open_groups()
        inflight = sum(len(group.inflight) for group in groups)
        if groups and not inflight:
            return Component.JUDGE
        return held_up_by(self._environments.values(), self._sessions, inflight)

    async def run(self) -> None:
        """Dispatch until cancelled. Raises AttemptOver when rollouts fail too often."""
        async with asyncio.TaskGroup() as rollouts:
            while True:
                self._wake.clear()
                while self._has_room():
                    await self._start_group(rollouts)
                for rollout in self._stragglers():
                    rollouts.create_task(self._give_up(rollout))
                ending = self._window.verdict()
                if ending is not None:
                    raise ending
                try:
                    async with asyncio.timeout(TICK_S):
                        await self._wake.wait()
                except TimeoutError:
                    continue

    async def drop_stale(self) -> None:
        """Give up everything that batch `next_step` may no longer train on."""
        late = self._book.doom(self._rule.oldest_version(self.next_step), step=self.next_step)
        await asyncio.gather(*(self._give_up(rollout) for rollout in late))
        self._wake.set()

    def _has_room(self) -> bool:
        if not self._environments:
            return False
        if self._book.inflight_count + self._group_max > self.limit.value and self._book.inflight_count:
            return False
        # A whole batch waits: more would only grow old. Members of a group that waits for its last one wait for nothing else,
        # and must not keep others from being started.
        if self._book.ready_count >= self._config.rollouts_per_batch():
            return False
        return self._rule.may_dispatch(
            version=self._policies.current.version, next_step=self.next_step, outstanding=self._book.outstanding_count
        )

    async def _start_group(self, rollouts: asyncio.TaskGroup) -> None:
        name = self._mixture.next()
        environment, ref = self._environments[name], self._refs[name]
        entry = await environment.tasks.next()
        current = self._policies.current
        policy = self._generator(name) or current
        group_id, now_s = new_id(), time.monotonic()
        members = [
            Rollout(new_id(), group_id, name, entry.index, entry.key, entry.preview, current.version, now_s)
            for _ in range(self._config.group_size_of(ref))
        ]
        group = Group(
            group_id, name, entry.index, current.version, members, policy.engine_name, self._valid_min[name], entry.hint
        )
        self._book.open(group)
        request = RolloutRequest(
            rollout_id="",
            task=entry.index,
            policy=policy.engine_name,
            sampling=sampling_of(self._config, ref),
            deadline_s=ref.timeout,
        )
        for member in members:
            rollouts.create_task(self._drive(group, member, request.model_copy(update={"rollout_id": member.rollout_id})))

    def _generator(self, environment: str) -> Policy | None:
        """The frozen model that makes this environment's rollouts, where it is not the policy."""
        name = self._generators.get(environment)
        return self._policies.find(name) if name else None

    async def _drive(self, group: Group, rollout: Rollout, request: RolloutRequest) -> None:
        outcome = await self._rolled(rollout, request)
        self._given_up.discard(rollout.rollout_id)
        if outcome.state != "ok":
            self._note(rollout, outcome)
        self.progress_s = time.monotonic()
        scorable = self._book.settle(rollout, outcome, ended_s=self.progress_s)
        if group.complete:
            await self._conclude(group, scorable)
        self.changed.set()
        self._wake.set()

    async def _conclude(self, group: Group, scorable: Group | None) -> None:
        """Everybody is home. Good rollouts are noted once the group is scored: those that cannot be scored have failed after all,
        and a run in which none can must not go on for ever."""
        good = group.valid
        if scorable is not None:
            await self._score_group(scorable)
            self._learn_of_task(scorable)
        for rollout in good:
            if rollout.outcome is not None:
                self._note(rollout, rollout.outcome)
        if scorable is not None:
            self._filters.sift(scorable, step=self.next_step)
            self._book.admit(scorable)

    def _learn_of_task(self, group: Group) -> None:
        """Before anything is filtered: what its owner does not train on has been earned all the same."""
        rewards = [rollout.outcome.reward for rollout in group.valid if rollout.outcome and rollout.outcome.reward is not None]
        if rewards and group.environment in self._choosers:
            self._choosers[group.environment].learn(group.task, rewards)

    def _note(self, rollout: Rollout, outcome: RolloutOutcome) -> None:
        """Engines that are away for long end the attempt by themselves, and another one follows."""
        if outcome.state != "infrastructure" or not self._gate.was_away(since_s=rollout.started_s):
            self._window.add(outcome)

    async def _rolled(self, rollout: Rollout, request: RolloutRequest) -> RolloutOutcome:
        environment = self._environments[rollout.environment]
        if isinstance(environment, RecordedEnvironment):
            return self._filters.examine(environment.recall(rollout.task))
        try:
            end = await environment.roll(request)
        except RunnerSilent as error:
            self._sessions.forgive(rollout.environment)
            return lost("infrastructure", f"the runner was lost: {error}")
        engine_was_away = self._gate.was_away(since_s=rollout.started_s)
        outcome = judge(
            end,
            self._sessions,
            environment=rollout.environment,
            engine_name=request.policy,
            engine_was_away=engine_was_away,
        )
        if rollout.rollout_id in self._given_up and outcome.state != "ok":
            return replace(outcome, state="cancelled", error="cancelled: too late to be trained on")
        return self._filters.examine(outcome)

    async def _give_up(self, rollout: Rollout) -> None:
        if rollout.rollout_id not in self._given_up:
            self._given_up.add(rollout.rollout_id)
            await self._environments[rollout.environment].cancel(rollout.rollout_id)

    def _stragglers(self) -> list[Rollout]:
        """Rollouts that keep a nearly finished group waiting for many times as long as their siblings took. Once a second: going
        through all groups whenever one rollout ends would cost more than ending it."""
        now_s = time.monotonic()
        if now_s - self._looked_s < TICK_S:
            return []
        self._looked_s, late = now_s, []
        for group in self._book.open_groups():
            waiting = group.inflight
            if not waiting or len(waiting) * 2 > len(group.rollouts):
                continue
            siblings_s = median(rollout.duration_s for rollout in group.rollouts if rollout.outcome is not None)
            limit_s = max(STRAGGLER_MIN_S, STRAGGLER_FACTOR * siblings_s)
            late += [rollout for rollout in waiting if now_s - rollout.started_s > limit_s]
        return late
