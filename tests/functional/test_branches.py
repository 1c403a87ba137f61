"""A package whose own harness asks a sub-agent and forks, in the real runner: which streams that makes, and what is trainable."""

import asyncio

import pytest

from tests.factories.model_socket import FakeEngine
from tests.factories.rollouts import make_call
from tests.fixtures.runner import ReleaseMaker, running
from trainer.orchestrator.rollouts.branches import merge_calls

pytestmark = pytest.mark.timeout(300)

REPLIES = ["plan", "seven", "slowly", "fast"]


async def test_a_sub_agent_and_a_fork_are_branches_and_each_token_is_trainable_once(make_release: ReleaseMaker):
    left = iter(REPLIES)
    engine = FakeEngine(reply=lambda prompt: next(left))
    async with running(await asyncio.to_thread(make_release, "scouts"), engine) as environment:
        end = await environment.play(sampling={"max_tokens": 16})
    (trace,) = end.traces
    assert (end.state, trace.turns, trace.reward) == ("ok", 4, 3.0), end
    assert len(set(engine.sessions)) == 1, "all is one trace's"
    merged = merge_calls(make_call(prompt, reply) for prompt, reply in engine.spoken)
    assert (merged.broken, [place.branch for place in merged.places]) == (0, [0, 1, 0, 2])
    assert [text_of(branch.token_ids, branch.mask) for branch in merged.branches] == ["planslowly", "seven", "fast"]
    read = [not sampled for sampled in merged.branches[2].mask]
    assert "plan" in text_of(merged.branches[2].token_ids, read), "the fork reads the plan and learns nothing of it"


def text_of(token_ids: list[int], chosen: list[bool]) -> str:
    """The bytes among the chosen tokens."""
    return bytes(token for token, is_chosen in zip(token_ids, chosen, strict=True) if is_chosen and token < 256).decode()
