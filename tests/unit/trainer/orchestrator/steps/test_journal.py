"""The write-ahead journal of steps."""

from pathlib import Path

from tests.factories.rollouts import make_group, make_outcome, teach
from trainer.contracts.base import new_id
from trainer.orchestrator.rollouts.records import rollout_batch
from trainer.orchestrator.steps.batches import cut_batch
from trainer.orchestrator.steps.journal import StepJournal, StepRecord

RUN = new_id()


def record(step: int, attempt: int = 1) -> StepRecord:
    group = make_group(0, 2)
    for rollout in group.rollouts:
        rollout.outcome = make_outcome()
    return StepRecord(
        run_id=RUN,
        step=step,
        attempt=attempt,
        segment=1,
        batch=cut_batch(RUN, step, [teach(group, [0.0, 0.0])]).batch,
        rollouts=rollout_batch([], step=step),
        usage=[],
        metrics={"reward": 1.0},
        cursors={"digits": 7},
        algorithm_state={"digits": {"agent": 1 / 3}},
    )


def test_a_record_comes_back_as_it_was(tmp_path: Path):
    journal, written = StepJournal(tmp_path, RUN), record(1)
    journal.write(written)
    assert journal.read(1) == written


def test_the_newest_step_is_the_numeric_maximum_and_the_newest_attempt_counts(tmp_path: Path):
    journal = StepJournal(tmp_path, RUN)
    for step, attempt in ((9, 2), (10, 2), (10, 10)):
        journal.write(record(step, attempt))
    newest = journal.newest()
    assert (newest.step, newest.attempt) == (10, 10)


def test_a_half_written_record_is_not_seen(tmp_path: Path):
    journal = StepJournal(tmp_path, RUN)
    journal.write(record(1))
    (tmp_path / "runs" / RUN / "steps" / "step-2.attempt-1.json.tmp").write_bytes(b"half")
    assert journal.newest().step == 1
    assert journal.read(2) is None


def test_reported_steps_are_forgotten_and_the_last_one_is_kept(tmp_path: Path):
    journal = StepJournal(tmp_path, RUN)
    for step in (1, 2, 3):
        journal.write(record(step))
    journal.forget_before(3)
    assert [journal.read(step) is not None for step in (1, 2, 3)] == [False, False, True]
