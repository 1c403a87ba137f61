"""A package with `load_environment` through the orchestrator: fetched, installed on the base of its library, and trained on."""

import random
from pathlib import Path

import pytest

from tests.factories.model_socket import encode
from tests.functional.test_orchestrator_sandboxed import Packed, done, packed

__all__ = ["packed"]
pytestmark = pytest.mark.timeout(300)


async def test_an_older_package_trains_on_what_the_engine_sampled(packed: Packed, runner_dir: Path, tmp_path: Path):
    draw = random.Random(0)

    def say(prompt: list[int]) -> list[int]:
        return encode(f"min {draw.randint(1, 9)}")

    finish, place = await done("run", packed("digit_min"), runner_dir, tmp_path, say=say)
    assert finish.outcome == "completed", finish
    rows = [row for row in place.control.summaries("train") if row.trained]
    assert len(rows) == 16 and {row.turns for row in rows} == {1}
    assert all(set(row.rewards) == {"is_smaller", "ends_in_digit"} for row in rows)
    assert {row.reward for row in rows} <= {0.25, 1.25}
    heard = [tuple(prompt + reply) for prompt, reply in place.engine.spoken]
    for asked in place.trainer.batches.values():
        assert len(asked.batch.samples) == 8
        for sample in asked.batch.samples:
            assert tuple(sample.token_ids) in heard
            sampled = [token for token, mine in zip(sample.token_ids, sample.mask, strict=True) if mine]
            assert sampled == encode(f"min {chr(sampled[4])}"), "the reply and its end, and nothing of the prompt"
