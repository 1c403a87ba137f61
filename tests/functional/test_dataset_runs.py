"""Runs that learn from datasets, driven through the orchestrator's real HTTP: batches, crashes, bills."""

import hashlib
import json
from collections import Counter
from pathlib import Path

import pytest
from starlette.responses import JSONResponse

from tests.fixtures.orchestrator_world import World, world
from tests.functional.test_orchestrator import attempt, mixed, run_config, run_spec
from trainer.contracts.base import new_id
from trainer.contracts.internal import AttemptSpec
from trainer.orchestrator.attempt.endings import StaleLease, first_ending


def file_of(*rows: dict) -> bytes:
    return "".join(json.dumps(row) + "\n" for row in rows).encode()


def sums(count: int) -> bytes:
    asked = [[{"role": "user", "content": f"{n}+1"}, {"role": "assistant", "content": f"{n + 1}"}] for n in range(count)]
    return file_of(*({"messages": messages} for messages in asked))


def spec_of(content: bytes, *, kind: str = "chat", dataset: dict | None = None, **changes) -> AttemptSpec:
    config = run_config(datasets=[{"id": "sums"} | (dataset or {})], **({"environments": []} | changes))
    sha256, size_bytes = hashlib.sha256(content).hexdigest(), len(content)
    told = {"dataset_id": new_id(), "name": "sums", "kind": kind, "sha256": sha256, "size_bytes": size_bytes}
    return run_spec(config=config, datasets=[told])


def rows_of(place: World) -> list[str]:
    return [sample.group_id for _, asked in sorted(place.trainer.batches.items()) for sample in asked.batch.samples]


async def test_a_dataset_alone_needs_no_sandbox_and_no_rollouts_and_ends_with_its_epochs(tmp_path: Path):
    content = sums(10)
    async with world(spec_of(content, dataset={"epochs": 1}), tmp_path, mixed) as place:
        place.control.files = [content]
        finish = await attempt(place)
    assert (finish.outcome, finish.message) == ("completed", "2 steps are done")
    assert (place.runners, place.engine.calls) == ([], 0)
    assert {meter for meter, _ in place.control.usage} == {"training_tokens"}
    assert sorted(rows_of(place)) == sorted(f"sums/0/{line}" for line in range(1, 11))
    assert [len(asked.batch.samples) for asked in place.trainer.batches.values()] == [8, 2]
    batch = place.trainer.batches[1].batch
    assert (batch.n_rl, batch.n_ce) == (0, sum(sum(sample.ce_weights) for sample in batch.samples))
    metrics = place.control.steps()
    assert [metrics[step]["dataset_rows/sums"] for step in (1, 2)] == [8, 2] and metrics[2]["dataset_epochs/sums"] == 1.0
    assert "reward" not in metrics[1] and place.control.versions[2].keep
    assert place.trainer.optimizer.total_steps == 2, "a schedule ends with the epochs, not with max_steps"


async def test_a_killed_run_trains_no_row_twice_and_skips_none(tmp_path: Path):
    """Killed with step 3 at the trainer, journaled and not committed, then gone on with by another attempt."""
    content = sums(20)
    spec = spec_of(content, dataset={"epochs": 2}, batch_size=4, max_steps=100)
    async with world(spec, tmp_path, mixed) as place:
        place.control.files = [content]

        async def die(step):
            if step == 3:
                return JSONResponse({"detail": "a newer attempt", "code": "stale_lease"}, status_code=409)
            return None

        place.trainer.before_step = die
        with pytest.raises(BaseException) as ended:
            await attempt(place)
        assert isinstance(first_ending(ended.value), StaleLease) and place.trainer.trained == 2
        place.trainer.before_step = None
        place.control.spec = place.control.spec.model_copy(update={"attempt": 2, "fencing_token": 2, "resume_step": 1})
        finish = await attempt(place)
    assert finish.outcome == "completed"
    assert Counter(rows_of(place)) == Counter(f"sums/{epoch}/{line}" for epoch in (0, 1) for line in range(1, 21))


async def test_rows_and_rollouts_share_each_batch(tmp_path: Path):
    content = file_of(*({"text": f"text {n}"} for n in range(5)))
    environments = [{"id": "acme/digits", "timeout": 60.0}]
    spec = spec_of(content, kind="text", environments=environments, max_off_policy_steps=0, max_steps=3)
    async with world(spec, tmp_path, mixed) as place:
        place.control.files = [content]
        finish = await attempt(place)
    assert finish.outcome == "completed"
    for asked in place.trainer.batches.values():
        sources = Counter(sample.environment for sample in asked.batch.samples)
        assert sources == {"sums": 4, "acme/digits": 4}
    assert all("reward" in metrics for metrics in place.control.steps().values())


async def test_a_dataset_that_the_model_cannot_take_is_refused_by_line_before_anything_starts(tmp_path: Path):
    content = file_of({"prompt": "1", "completion": "1"}, {"prompt": "2", "completion": "x" * 5000})
    async with world(spec_of(content), tmp_path, mixed) as place:
        place.control.files = [content]
        finish = await attempt(place)
    assert (finish.outcome, finish.code) == ("failed", "dataset_refused")
    assert "line 2: longer than the model's context of 2048 tokens" in finish.message
    assert place.trainer.trained == 0
    reasons = {"longer than the model's context of 2048 tokens": 1}
    assert finish.detail == {"dataset": "sums", "rows": 2, "kept": 1, "dropped": 1, "reasons": reasons}


async def test_dropped_rows_that_are_allowed_are_counted_by_reason_and_named_in_the_log(tmp_path: Path):
    content = file_of({"prompt": "1", "completion": "1"}, {"prompt": "2", "completion": "x" * 5000})
    async with world(spec_of(content, dataset={"dropped_max": 0.5, "epochs": 1}), tmp_path, mixed) as place:
        place.control.files = [content]
        finish = await attempt(place)
    assert finish.outcome == "completed" and rows_of(place) == ["sums/0/1"]
    log = [event.payload["message"] for event in place.control.of_kind("log")]
    assert "dataset sums, line 2: longer than the model's context of 2048 tokens" in log
    assert any("1 of 2 rows are kept, 1 dropped" in line for line in log)
    (told,) = place.control.of_kind("incident")
    assert told.payload["code"] == "dataset_rows_dropped"
    expected = "dataset sums: 1 of 2 rows are kept; left out: 1 × longer than the model's context of 2048 tokens"
    assert told.payload["message"] == expected and place.control.steps()[1]["dataset_dropped/sums"] == 1


async def test_another_file_than_the_uploaded_one_is_not_trained_on(tmp_path: Path):
    async with world(spec_of(sums(3)), tmp_path, mixed) as place:
        place.control.files = [sums(4)]
        finish = await attempt(place)
    assert finish.outcome == "failed" and "not the one that was uploaded" in finish.message
