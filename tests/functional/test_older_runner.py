"""The runner of packages with `load_environment`, as an orchestrator meets it: real sandbox, real library of that time.

One sandbox holds every environment of `older_modes` that can be played, a row each; those that cannot are asked outside of one.
"""

import asyncio
import json
import subprocess
from itertools import pairwise

import pytest
import pytest_asyncio
from transformers import AutoTokenizer

from tests.factories.model_socket import END_OF_TURN, FakeEngine, encode
from tests.fixtures.places import REPOSITORY
from tests.fixtures.runner import ReleaseMaker, RunningEnvironment, running
from trainer.contracts.base import new_id
from trainer.contracts.catalogue import load_catalogue, model_folder
from trainer.contracts.release_checks import Inspection
from trainer.contracts.rollouts import RolloutEnd, TaskPage, TenantError

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.timeout(300)]

PLAYED = ["single", "echo", "endless", "tools", "raising", "nothing", "nan", "slow", "leaving", "raising-turn"]
CALL = '<tool_call>{"name": "add", "arguments": {"a": 2, "b": 3}}</tool_call>'
SCORING_S = 0.5


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def modes(make_release: ReleaseMaker):
    release = await asyncio.to_thread(make_release, "older_modes")
    async with running(release, FakeEngine(), scoring_s=SCORING_S) as environment:
        yield environment


@pytest.fixture(autouse=True)
def _fresh_engine(request):
    if "modes" in request.fixturenames:
        engine = request.getfixturevalue("modes").engine
        engine.start_over(lambda prompt: "hello")
        engine.status = 200


async def play(modes: RunningEnvironment, mode: str, **fields) -> RolloutEnd:
    return await modes.play(PLAYED.index(mode), **{"sampling": {"max_tokens": 80}} | fields)


async def test_rows_are_tasks_and_are_counted(modes: RunningEnvironment):
    page = TaskPage.model_validate_json((await modes.handle.http.get("/tasks?limit=100")).content)
    assert (len(page.tasks), page.cursor) == (len(PLAYED), None)
    assert [entry.key for entry in page.tasks] == [str(index) for index in range(len(PLAYED))]
    assert page.tasks[PLAYED.index("tools")].preview == "2+3"
    assert (await modes.handle.check()).tasks_count == len(PLAYED)
    cut = TaskPage.model_validate_json((await modes.handle.http.get("/tasks?cursor=8&limit=2")).content)
    assert ([entry.index for entry in cut.tasks], cut.cursor) == ([8, 9], 10)


async def test_a_good_rollout_is_paid_by_part(modes: RunningEnvironment):
    end = await play(modes, "single")
    (trace,) = end.traces
    assert (end.state, end.fault, trace.reward, trace.rewards) == ("ok", "none", 1.0, {"one": 1.0})
    assert (trace.metrics, trace.turns, trace.truncated) == ({"num_turns": 1.0}, 1, False)
    assert [(message["role"], message["content"]) for message in trace.messages] == [("user", "a"), ("assistant", "hello")]


async def test_the_engine_is_asked_in_the_ids_of_the_chat_template_and_told_the_trace(modes: RunningEnvironment):
    end = await play(modes, "single", sampling={"max_tokens": 8, "temperature": 0.5})
    (request,) = modes.engine.requests
    tokenizer = AutoTokenizer.from_pretrained(model_folder(load_catalogue()["tiny"].tokenizer))
    asked = [{"role": "user", "content": "a"}]
    expected = tokenizer.apply_chat_template(asked, add_generation_prompt=True, tokenize=True, return_dict=False)
    assert request["token_ids"] == expected
    assert request["sampling_params"] == request["sampling_params"] | {"max_tokens": 8, "temperature": 0.5, "logprobs": 1}
    assert modes.engine.sessions == [end.traces[0].trace_id]


async def test_later_turns_continue_exactly_what_was_sampled(modes: RunningEnvironment):
    # A byte that is no text, and a reply without an end of turn: no rendering of the text would give these ids again.
    replies = iter([[255, 104], [105, 255, END_OF_TURN], encode("done")])
    modes.engine.reply = lambda prompt: next(replies)
    end = await play(modes, "echo")
    assert (end.state, end.traces[0].turns) == ("ok", 3)
    for (prompt, reply), (following, _) in pairwise(modes.engine.spoken):
        assert following[: len(prompt) + len(reply)] == prompt + reply
    assert set(modes.engine.sessions) == {end.traces[0].trace_id}


async def test_the_runs_limit_of_turns_holds_where_the_environment_has_none(modes: RunningEnvironment):
    end = await play(modes, "endless")
    assert (end.state, end.traces[0].turns, end.traces[0].stop) == ("ok", 16, "max_turns_reached")


async def test_functions_are_called_as_tools(modes: RunningEnvironment):
    modes.engine.reply = lambda prompt: "five" if "5" in prompt.split("2+3")[-1] else CALL
    end = await play(modes, "tools")
    trace = end.traces[0]
    assert (end.state, trace.reward, trace.metrics["add_calls"]) == ("ok", 1.0, 1.0)
    assert [message["role"] for message in trace.messages] == ["user", "assistant", "tool", "assistant"]
    assert trace.messages[1]["tool_calls"] == [{"name": "add", "arguments": '{"a": 2, "b": 3}'}]


@pytest.mark.parametrize("client", ["train", "eval"])
async def test_an_empty_reply_is_scored_like_any_other(modes: RunningEnvironment, client: str):
    modes.engine.reply = lambda prompt: ""
    end = await play(modes, "single", client=client)
    assert (end.state, end.traces[0].reward, end.traces[0].messages[-1]["content"]) == ("ok", 1.0, "")


async def test_an_evaluation_uses_chat_completions(modes: RunningEnvironment):
    end = await play(modes, "single", client="eval", sampling={"max_tokens": 8, "temperature": 0.0})
    (request,) = modes.engine.requests
    assert (end.state, request["max_completion_tokens"], request["temperature"]) == ("ok", 8, 0.0)
    assert modes.engine.sessions == [end.traces[0].trace_id]


@pytest.mark.parametrize(
    ("mode", "kind", "words"),
    [
        ("raising", "KeyError", "missing"),
        ("nothing", "TypeError", "NoneType"),
        ("nan", "BadReward", "reward 'not_a_number' is nan"),
    ],
)
async def test_a_reward_that_fails_is_a_failed_rollout_and_not_a_zero(modes: RunningEnvironment, mode, kind, words):
    end = await play(modes, mode)
    (trace,) = end.traces
    assert (end.state, end.fault, trace.state, trace.reward) == ("failed", "tenant", "failed", None)
    failed = trace.errors[0].function
    assert trace.rewards == {"one": 1.0, failed: None}
    assert trace.errors[0].type == kind and words in trace.errors[0].message


async def test_the_error_of_a_reward_has_its_line(modes: RunningEnvironment):
    (error,) = (await play(modes, "raising")).traces[0].errors
    source = (REPOSITORY / "tests/data/environments/older_modes/older_modes/modes.py").read_text().splitlines()
    assert (error.module, error.function) == ("older_modes/modes.py", "raising")
    assert source[error.line - 1].strip() == 'return {}["missing"]'


async def test_a_reward_that_does_not_end_is_cut_off_and_named(modes: RunningEnvironment):
    end = await play(modes, "slow")
    (error,) = end.traces[0].errors
    assert (end.state, end.fault, end.traces[0].reward) == ("incomplete", "tenant", None)
    assert (error.type, error.function, error.message) == ("Timeout", "slow", f"the scoring took longer than {SCORING_S:g} s")


async def test_an_environment_that_raises_between_turns_fails_its_rollout(modes: RunningEnvironment):
    end = await play(modes, "raising-turn")
    (error,) = end.traces[0].errors
    assert (end.state, end.fault, error.type, error.function) == ("failed", "tenant", "LookupError", "env_response")
    assert modes.engine.sessions == [end.traces[0].trace_id], "its tokens are on its own account"


async def test_one_that_leaves_takes_nobody_along(modes: RunningEnvironment):
    end = await play(modes, "leaving")
    assert (end.state, end.errors[0].type) == ("failed", "SystemExit")
    assert (await play(modes, "single")).state == "ok"


@pytest.mark.parametrize("client", ["train", "eval"])
async def test_a_failing_engine_is_nobodys_reward_and_our_fault(modes: RunningEnvironment, client: str):
    modes.engine.status = 500
    end = await play(modes, "single", client=client)
    assert (end.state, end.fault, end.traces[0].reward) == ("failed", "infrastructure", None)


async def test_a_request_that_the_engine_refuses_is_the_environments_fault(modes: RunningEnvironment):
    modes.engine.status = 400
    end = await play(modes, "single")
    assert (end.state, end.fault) == ("failed", "tenant")


async def test_a_rollout_ends_at_its_deadline(modes: RunningEnvironment):
    modes.engine.hold.clear()
    end = await play(modes, "single", deadline_s=0.3)
    assert (end.state, end.fault, end.errors[0].message) == (
        "deadline", "infrastructure", "the rollout passed its deadline during agent",
    )  # fmt: skip
    assert (await modes.handle.check()).live == 0


async def test_a_rollout_can_be_cancelled(modes: RunningEnvironment):
    modes.engine.hold.clear()
    rollout_id = new_id()
    playing = asyncio.create_task(play(modes, "single", rollout_id=rollout_id))
    while not modes.engine.requests:
        await asyncio.sleep(0.01)
    assert (await modes.handle.http.delete(f"/rollouts/{rollout_id}")).json() == {"cancelled": True}
    end = await playing
    assert (end.state, [trace.trace_id for trace in end.traces]) == ("cancelled", [rollout_id])


async def test_a_row_that_is_not_there_is_404(modes: RunningEnvironment):
    body = {"rollout_id": new_id(), "task": len(PLAYED), "policy": "tiny"}
    reply = await modes.handle.http.post("/rollouts", json=body)
    assert (reply.status_code, reply.json()["code"]) == (404, "no_such_task")


ASK = """
import asyncio, contextlib, json, sys
from trainer.contracts.release_checks import InspectionRequest
from trainer.contracts.rollouts import RunnerConfig
from trainer.runner.hosting import host

async def ask(environment, args, **more):
    names = {"environment": environment, "interface": "load_environment", "renderer": {}, "tokenizer_path": ""}
    hosted = host(RunnerConfig(**names, args=args, **more))
    await hosted.load(contextlib.AsyncExitStack())
    error = hosted.error and hosted.error.model_dump(exclude_none=True)
    told = {"status": hosted.status, "error": error, "count": hosted.tasks_count}
    if error:
        return told
    inspection = await hosted.inspect(InspectionRequest(tasks_per_split=2))
    return told | {"preview": (await hosted.page(0, 1))[0][0].preview, "inspection": inspection.model_dump()}

print(json.dumps([asyncio.run(ask(**asked)) for asked in json.load(sys.stdin)]))
"""


@pytest.fixture(scope="module")
def loaded(make_release: ReleaseMaker, tmp_path_factory):
    """What becomes of an environment when it is loaded; one process outside of a box answers all questions."""
    modes, digits = make_release("older_modes"), make_release("digit_min")
    code = tmp_path_factory.mktemp("code") / "trainer"
    code.mkdir()
    for part in ("__init__.py", "contracts", "runner"):
        (code / part).symlink_to(REPOSITORY / "trainer" / part)
    refused = ["by-group", "judge", "judge-with-key", "container", "unscored", "completion", "no-rows", "no such mode", "unfit"]
    questions = [{"environment": "older_modes", "args": {"mode": mode}} for mode in refused]
    questions.append({"environment": "older_modes", "args": {"levels": 3}})
    questions += [{"environment": "digit_min", "args": {"num_eval_tasks": 7}, "held_out": held_out} for held_out in (True, False)]
    done = subprocess.run(
        [str(modes.python), "-P", "-c", ASK],
        input=json.dumps(questions),
        env={"PYTHONPATH": f"{code.parent}:{digits.site_packages}", "HOME": str(code.parent), "HF_HUB_OFFLINE": "1"},
        capture_output=True, text=True, timeout=240, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    return dict(zip([*refused, "arguments", "held out", "trained"], json.loads(done.stdout.splitlines()[-1]), strict=True))


@pytest.mark.parametrize(
    ("mode", "words"),
    [
        ("by-group", "scores all rollouts of a task together"),
        ("judge", "JudgeRubric asks a judge over the network"),
        ("judge-with-key", "JudgeRubric asks a judge over the network"),
        ("container", "wants a container of its own"),
        ("unscored", "scores no rollout"),
        ("completion", "prompts with plain text"),
        ("no-rows", "its dataset has no rows"),
        ("arguments", "unexpected keyword argument 'levels'"),
        ("no such mode", "no such mode"),
    ],
)
async def test_what_cannot_be_played_is_refused_at_load_in_words(loaded, mode, words):
    assert loaded[mode]["status"] == "broken"
    assert words in TenantError.model_validate(loaded[mode]["error"]).message


async def test_a_check_looks_at_the_rows_of_both_datasets(loaded):
    seen = loaded["trained"]["inspection"]
    assert [(split["name"], split["tasks_count"], split["checked"]) for split in seen["splits"]] == [
        ("train", 2_000, [0, 1_999]),
        ("eval", 7, [0, 6]),
    ]
    assert seen["problems"] == []


async def test_rows_that_cannot_be_asked_or_told_apart_are_named(loaded):
    problems = [(one["task"], one["field"], one["message"]) for one in loaded["unfit"]["inspection"]["problems"]]
    assert problems == [
        (0, "prompt", "is empty: the model would be asked nothing"),
        (1, "example_id", "is that of row 0 too: they must be unique"),
    ]


async def test_a_check_learns_what_the_environment_needs(modes: RunningEnvironment):
    inspection = Inspection.model_validate_json((await modes.handle.http.post("/inspection", json={})).content)
    assert inspection.problems == [] and inspection.needs.tools == ["add"]
    assert [(fit.harness, fit.evaluate, fit.train) for fit in inspection.needs.harnesses] == [("EnvGroup", True, True)]


async def test_evaluations_get_the_rows_that_are_kept_for_them(loaded):
    assert (loaded["held out"]["count"], loaded["trained"]["count"]) == (7, 2_000)
    assert loaded["held out"]["preview"] != loaded["trained"]["preview"]
