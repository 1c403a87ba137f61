"""POST /inference/v1/score: token ids in, the log-probability of each out. Nothing is sampled, no text is made or read here."""

from starlette.requests import Request
from starlette.responses import Response

from trainer.contracts.generation import ScoreReply, ScoreRequest
from trainer.inference.chat_request import parse_wire
from trainer.inference.http import answer, read_body, request_id
from trainer.inference.service import InferenceService, raise_if_ended_by_us, usage_of


async def score(request: Request) -> Response:
    service: InferenceService = request.app.state.service
    asked = parse_wire(ScoreRequest, await read_body(request))
    resolved = await service.resolve(asked.model)
    ticket = service.score(resolved, asked.token_ids, asked.temperature, cache_salt=asked.cache_salt)
    sequence = await answer(request, service.engine, ticket)
    raise_if_ended_by_us(sequence)
    reply = ScoreReply.model_construct(
        id=f"score-{sequence.id}",
        request_id=request_id(request),
        model=asked.model,
        logprobs=[None, *sequence.prompt_logprobs],
        usage=usage_of(sequence),
        adapter=sequence.identity,
    )
    return Response(reply.model_dump_json(), media_type="application/json")
