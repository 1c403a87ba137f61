"""Whom a reference asks, with what, and which answers it does not believe."""

import json

import pytest

from trainer.algorithms import SignalsLost
from trainer.orchestrator.attempt.endings import AttemptOver
from trainer.orchestrator.engines.gate import EngineAway, EngineReply
from trainer.orchestrator.engines.policies import Policy, PolicyTable
from trainer.orchestrator.groups.references import EngineReference
from trainer.orchestrator.proxy.model_requests import Pins
from trainer.orchestrator.proxy.token_texts import TokenTexts

DIGEST = "d" * 64
PINS = Pins("team", temperature=0.7, max_tokens=8, context_tokens=16)


class Gate:
    """Answers one reply, and keeps what was asked."""

    def __init__(self, status=200, away=False, **changes):
        usage = {"prompt_tokens": 3, "completion_tokens": 0, "total_tokens": 3}
        adapter = {"name": "x", "digest": changes.pop("digest", DIGEST)}
        body = {"id": "s", "request_id": "s", "model": "x", "logprobs": [None, -1.0, -2.0], "usage": usage, "adapter": adapter}
        self._reply = EngineReply(status, json.dumps(body | changes).encode())
        self._away = away
        self.asked = []

    async def ask(self, path, content, policy):
        if self._away:
            raise EngineAway("no answer")
        self.asked.append((path, json.loads(content), policy.engine_name))
        return self._reply


def reference(gate, teacher=None, tmp_path=None) -> EngineReference:
    policies = PolicyTable()
    policies.publish(Policy("run.v0", DIGEST, 0, "/v0"))
    policies.add(Policy("other.v7", DIGEST, path="/v7", keep=True))
    return EngineReference(gate, policies, pins=PINS, texts=TokenTexts(tmp_path), teacher=teacher)


@pytest.mark.parametrize(("teacher", "asked"), [(None, "run.v0"), ("other.v7", "other.v7")])
async def test_the_teacher_is_asked_or_the_version_that_sampled_at_the_runs_temperature(teacher, asked):
    gate = Gate()
    assert await reference(gate, teacher).logprobs([5, 6, 7], policy="run.v0") == [0.0, -1.0, -2.0]
    body = {"model": asked, "token_ids": [5, 6, 7], "temperature": 0.7, "cache_salt": "team"}
    assert gate.asked == [("/inference/v1/score", body, asked)]


@pytest.mark.parametrize(
    "gate",
    [
        Gate(away=True),
        Gate(digest="e" * 64),
        Gate(logprobs=[None, -1.0]),
        Gate(logprobs=[None, -1.0, None]),
        Gate(logprobs="none"),
    ],
    ids=["away", "other weights", "too few", "a gap", "no list"],
)
async def test_scores_that_cannot_be_had_or_believed_are_lost(gate):
    with pytest.raises(SignalsLost):
        await reference(gate).logprobs([5, 6, 7], policy="run.v0")


async def test_more_tokens_than_the_context_are_lost_without_asking():
    gate = Gate()
    with pytest.raises(SignalsLost, match="context of 16"):
        await reference(gate).logprobs([1] * 17, policy="run.v0")
    assert gate.asked == []


async def test_a_version_that_is_gone_is_lost():
    with pytest.raises(SignalsLost, match=r"run\.v9"):
        await reference(Gate()).logprobs([5, 6], policy="run.v9")


async def test_a_refusal_that_would_meet_every_group_ends_the_run():
    with pytest.raises(AttemptOver, match="do not score tokens"):
        await reference(Gate(status=400)).logprobs([5, 6, 7], policy="run.v0")


def test_a_hint_cannot_be_spelled_without_a_tokenizer(tmp_path):
    with pytest.raises(LookupError, match=r"tokenizer\.json"):
        reference(Gate(), tmp_path=tmp_path).spell("hint")
