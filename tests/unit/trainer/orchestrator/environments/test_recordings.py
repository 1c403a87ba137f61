"""A record is learnt from in its order, from where a run stood, and costs nothing again."""

import base64
import json

import pytest
import zstandard

from tests.factories.rollouts import make_group, make_outcome
from trainer.contracts.base import new_id
from trainer.contracts.internal import ReplaySpec
from trainer.orchestrator.attempt.endings import AttemptOver
from trainer.orchestrator.environments.recordings import RecordedEnvironment, outcome_of
from trainer.orchestrator.rollouts.records import rollout_batch, rollout_usage
from trainer.orchestrator.rollouts.rollout import Accounted

SOURCE = new_id()


def record(mark: int) -> dict:
    """As the control plane gives it back; `mark` is its reward too."""
    group = make_group(size=1)
    group.rollouts[0].outcome, group.rollouts[0].ended_s = make_outcome(float(mark)), 1.0
    item = Accounted(group.rollouts[0], "ok", True, 0, True)
    return json.loads(zstandard.decompress(base64.b64decode(rollout_batch([item], step=1).body_zstd_b64)))


class Book:
    """Steps 3 and 8 of a record with three and two places, and who asked for which."""

    def __init__(self, steps: dict[int, list[dict]]) -> None:
        self.steps, self.reads = steps, []

    async def read(self, step: int) -> list[dict]:
        self.reads.append(step)
        return self.steps[step]


def environment(book: Book, counts=((3, 3), (8, 2))) -> RecordedEnvironment:
    steps = [{"step": step, "rollouts_count": count} for step, count in counts]
    return RecordedEnvironment("digits", ReplaySpec.model_validate({"run_id": SOURCE, "steps": steps}), book.read)


async def taken(place: RecordedEnvironment, count: int) -> list[float]:
    return [place.recall((await place.tasks.next()).index).reward for _ in range(count)]


async def test_rollouts_come_in_their_order_and_again_from_the_start():
    book = Book({3: [record(0), record(1), record(2)], 8: [record(3), record(4)]})
    place = environment(book)
    assert await taken(place, 7) == [0.0, 1.0, 2.0, 3.0, 4.0, 0.0, 1.0]
    assert book.reads == [3, 8, 3], "one step at a time"


async def test_places_without_something_to_learn_are_passed_over():
    """Of step 3 only one of three rollouts was good; one of step 8 has no token ids."""
    silent = record(3) | {"traces": [record(3)["traces"][0] | {"calls": []}]}
    place = environment(Book({3: [record(0)], 8: [silent, record(4)]}))
    assert await taken(place, 3) == [0.0, 4.0, 0.0]


async def test_a_resumed_run_goes_on_at_its_position():
    book = Book({3: [record(0), record(1), record(2)], 8: [record(3), record(4)]})
    first, second = environment(book), environment(book)
    await taken(first, 4)
    second.tasks.position = first.tasks.position
    assert await taken(second, 2) == [4.0, 0.0]


async def test_a_task_that_is_handed_out_twice_is_recalled_twice():
    place = environment(Book({3: [record(0)]}), counts=((3, 1),))
    entries = [await place.tasks.next() for _ in range(2)]
    assert [place.recall(entry.index).reward for entry in entries] == [0.0, 0.0]


@pytest.mark.parametrize("counts", [(), ((3, 2),)], ids=["no steps", "nothing usable"])
async def test_a_record_with_nothing_to_learn_ends_the_run_by_name(counts):
    with pytest.raises(AttemptOver, match=SOURCE):
        await environment(Book({3: []}), counts=counts).tasks.next()


def test_a_recalled_rollout_keeps_its_tokens_and_who_sampled_them_and_is_free():
    made = make_outcome(0.5)
    recalled = outcome_of(record(1) | {"reward": 0.25})
    (call,), (before,) = recalled.calls, made.calls
    assert (call.prompt_ids, call.token_ids, call.logprobs) == (before.prompt_ids, before.token_ids, before.logprobs)
    assert (call.engine_name, call.adapter_digest, call.temperature) == ("tiny", "d" * 64, 1.0)
    assert recalled.reward == recalled.traces[0].report.reward == 0.25, "the group's last word"
    group = make_group(size=1)
    group.rollouts[0].outcome = recalled
    assert rollout_usage([Accounted(group.rollouts[0], "ok", True, 0, True)], sequence="1") == []
