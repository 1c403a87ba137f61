"""POST /inference/v1/generate: token ids in, token ids and log-probabilities out. No text is made or read here."""

from starlette.requests import Request
from starlette.responses import Response

from trainer.contracts.generation import GenerateChoice, GenerateReply, GenerateRequest, LogprobContent, TokenLogprob
from trainer.inference.chat_request import parse_generate
from trainer.inference.http import answer, read_body, request_id
from trainer.inference.sequence import FinishReason, Sequence
from trainer.inference.service import InferenceService, raise_if_ended_by_us, usage_of

_WIRE_REASON = {FinishReason.STOP: "stop", FinishReason.LENGTH: "length", FinishReason.ABORT: "abort"}


async def generate(request: Request) -> Response:
    service: InferenceService = request.app.state.service
    asked = parse_generate(await read_body(request))
    resolved = await service.resolve(asked.model)
    ticket = service.submit(
        resolved,
        asked.token_ids,
        asked.sampling_params,
        prompt_top_logprobs=asked.sampling_params.prompt_logprobs,
        cache_salt=asked.cache_salt,
    )
    sequence = await answer(request, service.engine, ticket)
    raise_if_ended_by_us(sequence)
    return Response(_reply(asked, sequence, request_id(request)).model_dump_json(), media_type="application/json")


def _reply(asked: GenerateRequest, sequence: Sequence, request_id: str) -> GenerateReply:
    assert sequence.finish_reason is not None
    # Built by us from checked numbers: validating every token again would cost more than sampling it did.
    content = [_spelled(token_id, logprob) for token_id, logprob in zip(sequence.token_ids, sequence.logprobs, strict=True)]
    choice = GenerateChoice.model_construct(
        index=0,
        token_ids=sequence.token_ids,
        logprobs=LogprobContent.model_construct(content=content),
        finish_reason=_WIRE_REASON[sequence.finish_reason],
    )
    return GenerateReply.model_construct(
        id=f"gen-{sequence.id}",
        request_id=request_id,
        model=asked.model,
        choices=[choice],
        usage=usage_of(sequence),
        adapter=sequence.identity,
        prompt_logprobs=_prompt_logprobs(sequence),
    )


def _spelled(token_id: int, logprob: float) -> TokenLogprob:
    return TokenLogprob.model_construct(token=f"token_id:{token_id}", logprob=logprob)


def _prompt_logprobs(sequence: Sequence) -> list[dict[str, TokenLogprob] | None] | None:
    """Per prompt token its own entry first, then the most likely ones; None for the first, which nothing precedes."""
    if sequence.prompt_top_logprobs is None:
        return None
    entries: list[dict[str, TokenLogprob] | None] = [None]
    for index, logprob in enumerate(sequence.prompt_logprobs):
        own = (sequence.prompt[index + 1], logprob)
        tops = sequence.prompt_tops[index] if sequence.prompt_top_logprobs else []
        entries.append({str(token_id): _spelled(token_id, value) for token_id, value in [own, *tops]})
    return entries
