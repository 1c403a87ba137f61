"""An evaluation of a model behind somebody else's API: called from outside the sandbox, its failures named, its key nowhere."""

from pathlib import Path

import httpx
import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from tests.fixtures.orchestrator_world import answer, serve, world
from tests.functional.test_orchestrator import attempt, eval_spec
from trainer.contracts.addresses import is_public
from trainer.contracts.internal import ExternalModel
from trainer.contracts.rollouts import RolloutEnd, TenantError
from trainer.orchestrator.engines.external import spelled

KEY = "sk-of-somebody"


class Outside:
    """Speaks chat completions at `/v9`, and refuses what OpenAI's servers refuse. `status` is what it answers."""

    def __init__(self) -> None:
        self.status, self.busy_left, self.calls = 200, 0, []
        self.app = Starlette(routes=[Route("/v9/chat/completions", self._chat, methods=["POST"])])

    async def _chat(self, request: Request) -> Response:
        self.calls.append(await request.json())
        if self.busy_left:
            self.busy_left -= 1
            return JSONResponse({"error": {"message": "slow down"}}, status_code=429)
        key = request.headers["authorization"].removeprefix("Bearer ")
        if self.status != 200:
            return JSONResponse({"error": {"message": f"no such key: {key}"}}, status_code=self.status)
        assert key == KEY and "cache_salt" not in self.calls[-1]
        message = {"role": "assistant", "content": "sum 7"}
        usage = {"prompt_tokens": 11, "completion_tokens": 3}
        return JSONResponse({"choices": [{"message": message, "finish_reason": "stop"}], "usage": usage})


async def play(asked, runner):
    """As a harness does: a model call that fails is the end of the rollout."""
    try:
        return await answer(asked, runner)
    except httpx.HTTPStatusError as error:
        fault = TenantError(type="ModelError", message=str(error))
        return RolloutEnd(state="failed", errors=[fault], fault="infrastructure")


async def played(folder: Path, outside: Outside, **changes):
    """(finish, world) of an evaluation of four examples."""
    async with serve(outside.app) as url:
        external = ExternalModel(base_url=f"{url}/v9", model="their/model", api_key=KEY, may_be_private=True)
        spec = eval_spec(external=external.model_copy(update=changes))
        async with world(spec, folder, play, tasks_count=4) as place:
            return await attempt(place), place


async def test_it_is_called_under_its_name_and_its_tokens_are_counted_and_not_billed(tmp_path: Path):
    outside = Outside()
    outside.busy_left = 2
    finish, place = await played(tmp_path, outside)
    rows = place.control.summaries("eval")
    assert finish.outcome == "completed" and len(rows) == 8
    assert {call["model"] for call in outside.calls} == {"their/model"} and place.engine.calls == 0
    assert {(row.state, row.input_tokens, row.output_tokens, row.billed) for row in rows} == {("ok", 11, 3, False)}
    assert {meter for meter, _ in place.control.usage} <= {"sandbox_seconds"}


@pytest.mark.parametrize("status", [401, 402, 404])
async def test_a_server_that_refuses_ends_the_evaluation_with_its_words_and_without_the_key(tmp_path: Path, status: int):
    outside = Outside()
    outside.status = status
    finish, place = await played(tmp_path, outside)
    assert (finish.outcome, finish.code) == ("failed", "model_refused")
    assert f"answered {status}" in finish.message and "no such key: [redacted]" in finish.message
    told = [*place.control.events.values(), *place.control.summaries()]
    assert not [one for one in told if KEY in one.model_dump_json()]
    assert all(row.reward is None for row in place.control.summaries())


async def test_a_name_that_leads_into_our_network_is_not_called(tmp_path: Path):
    outside = Outside()
    finish, _ = await played(tmp_path, outside, may_be_private=False)
    assert (finish.outcome, finish.code) == ("failed", "model_refused")
    assert "own network" in finish.message and not outside.calls


@pytest.mark.parametrize(
    "address", ["127.0.0.1", "10.0.0.1", "169.254.169.254", "::1", "fe80::1%eth0", "::ffff:10.0.0.1", "224.0.0.1", "0.0.0.0"]
)
def test_addresses_of_ours_are_told_from_the_internets(address: str):
    assert not is_public(address) and is_public("93.184.216.34") and is_public("2606:2800:220:1::1")


def test_each_server_gets_the_limit_as_it_spells_it():
    asked = b'{"model": "m", "max_tokens": 5, "cache_salt": "team"}'
    assert spelled(asked, "api.openai.com") == b'{"model": "m", "max_completion_tokens": 5}'
    assert spelled(asked, "models.example.com") == b'{"model": "m", "max_tokens": 5}'
