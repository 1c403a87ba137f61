"""How likely token ids are under a teacher, or under the version of the policy that sampled them.

Knows the pool's scoring route and the base model's tokenizer. Refuses to know algorithms and rollouts. Engines that are away
cost the group, masked and free; a refusal that would meet every further group ends the attempt.
"""

import math
from collections.abc import Sequence

from trainer.algorithms import SignalsLost
from trainer.contracts.events import FailureCode
from trainer.contracts.generation import ScoreReply, ScoreRequest
from trainer.orchestrator.attempt.endings import failed
from trainer.orchestrator.engines.gate import EngineAway, EngineGate
from trainer.orchestrator.engines.policies import Policy, PolicyTable
from trainer.orchestrator.proxy.model_requests import Pins
from trainer.orchestrator.proxy.token_texts import TokenTexts

SCORE = "/inference/v1/score"


class EngineReference:
    """`teacher` is the engine name of a frozen model; None asks the version of the policy that sampled. Scores are taken at the
    temperature and under the cache salt of `pins`, as the rollouts were."""

    def __init__(
        self, gate: EngineGate, policies: PolicyTable, *, pins: Pins, texts: TokenTexts, teacher: str | None = None
    ) -> None:
        self._gate = gate
        self._policies = policies
        self._pins = pins
        self._texts = texts
        self._teacher = teacher

    def spell(self, text: str) -> list[int]:
        """The text in the model's tokens; special tokens may be written out in it, none is added."""
        return self._texts.spell(text)

    async def logprobs(self, token_ids: Sequence[int], *, policy: str) -> list[float]:
        """One log-probability per token, 0.0 for the first. Raises SignalsLost, or AttemptOver for a refusal that is for good."""
        asked = self._policies.find(self._teacher or policy)
        if asked is None:
            raise SignalsLost(f"{self._teacher or policy} is not served any more")
        if len(token_ids) > self._pins.context_tokens:
            raise SignalsLost(f"{len(token_ids)} tokens are to be scored, more than the context of {self._pins.context_tokens}")
        request = ScoreRequest(
            model=asked.engine_name,
            token_ids=list(token_ids),
            temperature=self._pins.temperature,
            cache_salt=self._pins.cache_salt,
        )
        try:
            reply = await self._gate.ask(SCORE, request.model_dump_json().encode(), asked)
        except EngineAway as error:
            raise SignalsLost(f"no log-probabilities of {asked.engine_name}: {error}") from error
        if reply.status != 200:
            text = reply.body[:500].decode("utf-8", "replace")
            raise failed(
                FailureCode.INTERNAL, f"the engines do not score tokens for {asked.engine_name} ({reply.status}): {text}"
            )
        return _checked(reply.body, asked, len(token_ids))


def _checked(body: bytes, asked: Policy, count: int) -> list[float]:
    """Weights that are not the ones asked for, or numbers that do not align, teach nothing."""
    try:
        reply = ScoreReply.model_validate_json(body)
    except ValueError as error:
        raise SignalsLost(f"scores of {asked.engine_name} refused: {error}") from None
    if reply.adapter.digest != asked.digest:
        raise SignalsLost(f"scored with weights {reply.adapter.digest[:12]}, but {asked.engine_name} has {asked.digest[:12]}")
    scores = [0.0 if value is None else value for value in reply.logprobs]
    if len(scores) != count or None in reply.logprobs[1:] or not all(map(math.isfinite, scores)):
        raise SignalsLost(f"{count} tokens came back with {len(scores)} log-probabilities, or with one that is no number")
    return scores
