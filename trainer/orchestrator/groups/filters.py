"""Rollouts and groups that a run's owner does not want to train on: loops, gibberish, groups that teach nothing.

Knows what to look for in recorded tokens and in lessons. Refuses to know rewards: what is filtered keeps the reward that it was
given and is never one of 0. It is counted, shown with its reason and billed, since its owner chose to spend it.
"""

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace

from trainer.contracts.events import FailureCode
from trainer.contracts.filters import FilterType, GibberishFilter, RepetitionFilter, RolloutFilter, ZeroAdvantageFilter
from trainer.orchestrator.attempt.endings import AttemptOver
from trainer.orchestrator.proxy.sessions import Call
from trainer.orchestrator.rollouts.rollout import Group, Rollout, RolloutOutcome

DROPPED_BATCHES_MAX = 4
"""Batches' worth of rollouts in groups that teach nothing, after which a step takes such groups too: a task set that is solved,
or hopeless, must not keep a run sampling for ever."""

UNUSED_BATCHES_MAX = 16
"""Batches' worth of rollouts that the algorithm takes nothing from, one after the other, after which the run pauses: such
rollouts can fill no batch, and each costs its owner."""

Verdict = Callable[[Call], str | None]
"""What is wrong with one reply, or None."""


class RolloutFilters:
    """`batch_size` in rollouts; `warn` is told once for each step that takes what should have been left out."""

    def __init__(self, filters: Sequence[RolloutFilter], *, batch_size: int, warn: Callable[[str], None]):
        self._replies = [(one, _verdict(one)) for one in filters if not isinstance(one, ZeroAdvantageFilter)]
        self._zero = next((one for one in filters if isinstance(one, ZeroAdvantageFilter)), None)
        self._dropped_max = DROPPED_BATCHES_MAX * batch_size
        self._unused_max = UNUSED_BATCHES_MAX * batch_size
        self._unused = 0
        self._warn = warn
        self._step = 0
        self._dropped = 0
        self._found: Counter[FilterType] = Counter()

    def examine(self, outcome: RolloutOutcome) -> RolloutOutcome:
        """The outcome of a rollout that ended, filtered if the first enforced filter that finds something says so."""
        if outcome.state != "ok":
            return outcome
        calls = [call for trace in outcome.traces if trace.report.trainable for call in trace.calls]
        for one, verdict in self._replies:
            reason = next((found for call in calls if (found := verdict(call))), None)
            if reason is None:
                continue
            self._found[one.type] += 1
            if one.enforce:
                return replace(outcome, state="filtered", error=f"{one.type}: {reason}")
        return outcome

    def sift(self, group: Group, *, step: int) -> None:
        """Leave out what the algorithm takes nothing from, and a scored group that teaches nothing, unless batch `step` has
        waited long enough for others. Raises AttemptOver when nothing is taken for too long."""
        for rollout in group.valid:
            self._sift_unused(rollout)
        if self._zero is None or not group.is_worth_scoring or group.teaches:
            return
        self._found["zero_advantage"] += len(group.valid)
        if not self._zero.enforce or not self._may_drop(len(group.valid), step):
            return
        for rollout in group.valid:
            assert rollout.outcome is not None
            reason = "zero_advantage: the group teaches nothing, as when no rollout is better than another"
            rollout.outcome, rollout.lessons = replace(rollout.outcome, state="filtered", error=reason), ()

    def _sift_unused(self, rollout: Rollout) -> None:
        if any(lesson.has_weight for lesson in rollout.lessons):
            self._unused = 0
            return
        assert rollout.outcome is not None
        reason = "unused: the algorithm takes none of its tokens, as sft does below options.min_reward"
        rollout.outcome, rollout.lessons = replace(rollout.outcome, state="filtered", error=reason), ()
        self._unused += 1
        if self._unused >= self._unused_max:
            message = f"the algorithm takes nothing from the last {self._unused} rollouts: is options.min_reward out of reach?"
            raise AttemptOver("paused", message, FailureCode.ENVIRONMENT_FAILING)

    def take_counts(self) -> dict[str, float]:
        """`filter/<type>`: rollouts in which something was found since the last call, left out or not."""
        taken, self._found = self._found, Counter()
        kinds: list[FilterType] = [one.type for one, _ in self._replies] + ([self._zero.type] if self._zero else [])
        return {f"filter/{kind}": taken[kind] for kind in kinds}

    def _may_drop(self, count: int, step: int) -> bool:
        if step != self._step:
            self._step, self._dropped = step, 0
        if self._dropped >= self._dropped_max:
            return False
        self._dropped += count
        if self._dropped >= self._dropped_max:
            self._warn(
                f"step {step}: {self._dropped} rollouts were left out since their groups teach nothing; from now on the step "
                "takes what comes. Are the tasks solved, or out of reach?"
            )
        return True


def _verdict(one: RolloutFilter) -> Verdict:
    if isinstance(one, RepetitionFilter):
        return lambda call: _repeats(call, one.window, math.log(one.prob_threshold))
    assert isinstance(one, GibberishFilter)
    return lambda call: _gibbers(call, one.token_id_threshold, one.logprob_threshold)


def _repeats(call: Call, window: int, logprob_above: float) -> str | None:
    streak = 0
    for position, logprob in enumerate(call.logprobs):
        streak = streak + 1 if logprob > logprob_above else 0
        if streak >= window:
            return f"{window} tokens in a row were certain, up to token {position + 1} of a reply"
    return None


def _gibbers(call: Call, token_above: int, logprob_below: float) -> str | None:
    for position, (token, logprob) in enumerate(zip(call.token_ids, call.logprobs, strict=True)):
        if token > token_above and logprob < logprob_below:
            return f"token {position + 1} of a reply is the rare {token}, sampled at a log-probability of {logprob:.1f}"
    return None
