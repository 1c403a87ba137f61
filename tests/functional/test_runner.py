"""The environment runner as an orchestrator meets it: real sandbox, real library, an engine that says what the test wants."""

import asyncio
import hashlib
import json
from contextlib import suppress
from pathlib import Path

import httpx
import pytest
import pytest_asyncio
from transformers import AutoTokenizer

from tests.factories.model_socket import FakeEngine
from tests.fixtures.runner import RunningEnvironment, running
from trainer.contracts.base import new_id
from trainer.contracts.catalogue import load_catalogue, model_folder
from trainer.contracts.release_checks import Inspection
from trainer.contracts.rollouts import RunnerHealth, TaskPage
from trainer.sandboxing.runners import EnvironmentBroken, RunnerLost

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.timeout(300)]


def arguments_of_all_processes() -> list[bytes]:
    """What every user of the host can read."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(ProcessLookupError, FileNotFoundError):  # it ended meanwhile
            found.append(path.read_bytes())
    return found


def right_sum(prompt: str) -> str:
    """What a model that learned says: the prompt's digits added."""
    question = prompt.rsplit("user\n", 1)[-1].strip()
    return f"sum {int(question[0]) + int(question[2])}"


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def digits(make_release):
    async with running(await asyncio.to_thread(make_release, "digit_sum")) as environment:
        yield environment


@pytest.fixture(autouse=True)
def _fresh_engine(request):
    """The shared runner's engine starts each test in order and without a past."""
    if "digits" in request.fixturenames:
        engine = request.getfixturevalue("digits").engine
        engine.reply, engine.status = right_sum, 200
        engine.requests.clear()
        engine.sessions.clear()
        engine.hold.set()


async def test_it_becomes_ready_and_says_what_it_has(digits: RunningEnvironment):
    health = await digits.handle.check()
    # Another test may have listed tasks before: their count is known from then on.
    assert health.model_copy(update={"tasks_count": None}) == RunnerHealth(status="ready", live=0)


async def test_tasks_come_in_pages_in_an_order_that_holds(digits: RunningEnvironment):
    first = TaskPage.model_validate_json((await digits.handle.http.get("/tasks?limit=5")).content)
    again = TaskPage.model_validate_json((await digits.handle.http.get("/tasks?limit=5")).content)
    second = TaskPage.model_validate_json((await digits.handle.http.get(f"/tasks?cursor={first.cursor}&limit=5")).content)
    assert first == again
    assert [task.index for task in first.tasks + second.tasks] == list(range(10))
    assert len(first.tasks[0].preview) == len("1+1?")


async def test_the_last_page_has_no_cursor(digits: RunningEnvironment):
    page = TaskPage.model_validate_json((await digits.handle.http.get("/tasks?cursor=9990&limit=100")).content)
    assert (len(page.tasks), page.cursor) == (10, None)
    assert (await digits.handle.check()).tasks_count == 10_000


async def test_a_right_answer_is_paid_and_shown(digits: RunningEnvironment):
    end = await digits.play(3)
    (trace,) = end.traces
    assert (end.state, end.fault, trace.state, trace.reward) == ("ok", "none", "ok", 1.0)
    assert trace.rewards == {"is_sum": 1.0}
    assert trace.metrics == {"is_number": 1.0}
    assert (trace.turns, trace.truncated, trace.trainable, trace.stop) == (1, False, True, "agent_completed")
    assert [message["role"] for message in trace.messages] == ["user", "assistant"]
    assert trace.messages[1]["content"].startswith("sum ")


async def test_a_wrong_answer_is_a_reward_of_zero_and_no_failure(digits: RunningEnvironment):
    digits.engine.reply = lambda prompt: "max 3 no"
    end = await digits.play()
    assert (end.state, end.traces[0].reward) == ("ok", 0.0)


async def test_a_reply_that_was_cut_is_truncated(digits: RunningEnvironment):
    digits.engine.reply = lambda prompt: "sum and then some words"
    end = await digits.play()
    assert (end.traces[0].truncated, end.traces[0].reward) == (True, 0.0)


async def test_the_engine_is_asked_in_exactly_the_ids_of_the_chat_template(digits: RunningEnvironment):
    page = TaskPage.model_validate_json((await digits.handle.http.get("/tasks?limit=1")).content)
    end = await digits.play(0)
    (request,) = digits.engine.requests
    tokenizer = AutoTokenizer.from_pretrained(model_folder(load_catalogue()["tiny"].tokenizer))
    messages = [{"role": "user", "content": page.tasks[0].preview}]
    expected = tokenizer.apply_chat_template(messages, add_generation_prompt=True, tokenize=True, return_dict=False)
    assert request["token_ids"] == expected
    assert request["model"] == "tiny"
    assert request["sampling_params"]["stop_token_ids"] == [tokenizer.eos_token_id]
    assert request["sampling_params"]["max_tokens"] == 8
    assert request["sampling_params"]["logprobs"] == 1
    # The proxy joins its record of tokens with what the runner reports by this header.
    assert digits.engine.sessions == [end.traces[0].trace_id]


async def test_an_evaluation_uses_chat_completions(digits: RunningEnvironment):
    end = await digits.play(client="eval", sampling={"max_tokens": 8, "temperature": 0.0})
    (request,) = digits.engine.requests
    assert (end.state, end.traces[0].reward) == ("ok", 1.0)
    assert (request["max_tokens"], request["temperature"]) == (8, 0.0)
    assert digits.engine.sessions == [end.traces[0].trace_id]


async def test_a_failing_engine_is_nobodys_reward_and_our_fault(digits: RunningEnvironment):
    digits.engine.status = 500
    end = await digits.play()
    assert (end.state, end.fault) == ("failed", "infrastructure")
    assert end.traces[0].reward is None
    assert end.traces[0].errors[-1].type == "ProviderError"


async def test_a_malformed_engine_reply_is_our_fault_too(digits: RunningEnvironment):
    digits.engine.logprob = float("-9999.0")
    try:
        end = await digits.play()
    finally:
        digits.engine.logprob = -0.5
    assert (end.state, end.fault) == ("failed", "infrastructure")


async def test_a_rollout_ends_at_its_deadline(digits: RunningEnvironment):
    digits.engine.hold.clear()
    end = await digits.play(deadline_s=0.5)
    assert (end.state, end.fault) == ("deadline", "infrastructure")
    assert (await digits.handle.check()).live == 0


async def test_a_rollout_can_be_cancelled(digits: RunningEnvironment):
    digits.engine.hold.clear()
    rollout_id = new_id()
    playing = asyncio.create_task(digits.play(rollout_id=rollout_id))
    await until(lambda: digits.engine.requests)
    reply = await digits.handle.http.delete(f"/rollouts/{rollout_id}")
    assert reply.json() == {"cancelled": True}
    assert (await playing).state == "cancelled"
    assert (await digits.handle.http.delete(f"/rollouts/{rollout_id}")).json() == {"cancelled": False}


async def test_hanging_up_cancels(digits: RunningEnvironment):
    digits.engine.hold.clear()
    playing = asyncio.create_task(digits.play())
    await until(lambda: digits.engine.requests)
    playing.cancel()
    await asyncio.wait({playing})
    for _ in range(100):
        if (await digits.handle.check()).live == 0:
            return
        await asyncio.sleep(0.05)
    pytest.fail("the rollout is still live")


async def test_an_id_is_played_once_at_a_time(digits: RunningEnvironment):
    digits.engine.hold.clear()
    rollout_id = new_id()
    playing = asyncio.create_task(digits.play(rollout_id=rollout_id))
    await until(lambda: digits.engine.requests)
    reply = await digits.handle.http.post("/rollouts", json={"rollout_id": rollout_id, "task": 0, "policy": "tiny"})
    assert (reply.status_code, reply.json()["code"]) == (409, "already_live")
    digits.engine.hold.set()
    assert (await playing).state == "ok"


@pytest.mark.parametrize(
    ("method", "path", "body", "status", "code"),
    [
        ("POST", "/rollouts", {"rollout_id": "r", "task": 10_000, "policy": "tiny"}, 404, "no_such_task"),
        ("POST", "/rollouts", {"rollout_id": "r", "policy": "tiny"}, 422, "bad_request"),
        ("POST", "/rollouts", {"rollout_id": "r", "task": 0, "policy": "tiny", "colour": 1}, 422, "bad_request"),
        ("GET", "/tasks?limit=5000", None, 422, "bad_page"),
        ("POST", "/groups/score", {"task": 0, "names": ["best"], "members": []}, 404, "no_such_group_reward"),
    ],
)
async def test_a_bad_request_is_refused_by_code(digits: RunningEnvironment, method, path, body, status, code):
    reply = await digits.handle.http.request(method, path, json=body)
    assert (reply.status_code, reply.json()["code"]) == (status, code)


async def test_sixty_four_rollouts_play_at_once(digits: RunningEnvironment):
    digits.engine.hold.clear()
    playing = [asyncio.create_task(digits.play(task)) for task in range(64)]
    await until(lambda: len(digits.engine.requests) == 64)
    assert (await digits.handle.check()).live == 64
    digits.engine.hold.set()
    ends = await asyncio.gather(*playing)
    assert {(end.state, end.traces[0].reward) for end in ends} == {("ok", 1.0)}
    assert len(set(digits.engine.sessions)) == 64


async def test_the_other_example_pays_for_the_larger_digit(make_release):
    async with running(await asyncio.to_thread(make_release, "digit_max"), FakeEngine(reply=right_sum)) as environment:
        summed = await environment.play(0)
        environment.engine.reply = lambda prompt: f"max {max(prompt.rsplit('user', 1)[-1].strip()[0:3:2])}"
        larger = await environment.play(0)
    assert (summed.traces[0].reward, larger.traces[0].reward) == (0.0, 1.0)


async def test_tools_are_served_in_the_runner(make_release):
    replies = iter(['<tool_call>{"name":"calc_add","arguments":{"a":3,"b":4}}</tool_call>', "7"])
    engine = FakeEngine(reply=lambda prompt: next(replies))
    async with running(await asyncio.to_thread(make_release, "calculator"), engine) as environment:
        end = await environment.play(sampling={"max_tokens": 80})
    (trace,) = end.traces
    assert (end.state, trace.reward, trace.turns) == ("ok", 1.0, 2), end
    assert [message["role"] for message in trace.messages][-4:] == ["user", "assistant", "tool", "assistant"]
    first, second = (request["token_ids"] for request in engine.requests)
    # Turn two extends what was sampled in turn one, token for token.
    assert second[: len(first)] == first
    assert trace.messages[-3]["tool_calls"] == [{"name": "calc_add", "arguments": '{"a": 3, "b": 4}'}]


async def test_a_tasks_hint_is_told_beside_it_and_is_not_in_its_prompt(make_release):
    async with running(await asyncio.to_thread(make_release, "calculator"), hint="ask calc_add") as environment:
        page = TaskPage.model_validate_json((await environment.handle.http.get("/tasks?limit=1")).content)
        await environment.play(sampling={"max_tokens": 8})
    assert (page.tasks[0].hint, page.tasks[0].preview) == ("ask calc_add", "3+4?")
    tokenizer = AutoTokenizer.from_pretrained(model_folder(load_catalogue()["tiny"].tokenizer))
    assert "ask calc_add" not in tokenizer.decode(environment.engine.requests[0]["token_ids"])


async def test_an_environment_that_does_not_import_is_broken_with_module_and_line(make_release):
    with pytest.raises(EnvironmentBroken) as caught:
        async with running(await asyncio.to_thread(make_release, "broken_import")):
            pass
    error = caught.value.error
    assert (error.type, error.module, error.line) == ("ModuleNotFoundError", "broken_import/tasks.py", 2)
    assert error.message == "No module named 'a_module_that_nobody_has'"
    assert 'tasks.py", line 2, in <module>' in caught.value.log


async def test_arguments_that_the_taskset_does_not_know_are_named(make_release):
    with pytest.raises(EnvironmentBroken, match="num_taks"):
        async with running(await asyncio.to_thread(make_release, "digit_sum"), num_taks=3):
            pass


async def test_a_reward_that_raises_names_its_line(make_release):
    async with running(await asyncio.to_thread(make_release, "raising_reward")) as environment:
        good, bad = await environment.play(0), await environment.play(1)
    assert (good.state, good.traces[0].reward) == ("ok", 1.0)
    assert (bad.state, bad.fault, bad.traces[0].reward) == ("failed", "tenant", None)
    error = bad.traces[0].errors[-1]
    assert (error.module, error.function, error.message) == (
        "raising_reward/__init__.py",
        "look_up",
        "task RaisingTask scoring: KeyError: 1",
    )


async def test_a_reward_that_is_no_number_is_incomplete(make_release):
    async with running(await asyncio.to_thread(make_release, "nan_reward")) as environment:
        end = await environment.play()
    (trace,) = end.traces
    assert (end.state, end.fault, trace.state, trace.reward) == ("incomplete", "tenant", "incomplete", None)
    assert trace.rewards == {"points": None, "good": 0.5}
    error = trace.errors[-1]
    assert (error.message, error.function) == ("reward 'points' is nan", "points")
    assert (error.module, error.line) == ("nan_reward/__init__.py", 7)


async def test_a_reward_that_hangs_is_incomplete_at_its_time_out(make_release):
    async with running(await asyncio.to_thread(make_release, "hanging_reward"), scoring_s=1.0) as environment:
        end = await environment.play()
    assert (end.state, end.fault, end.traces[0].stop) == ("incomplete", "tenant", "scoring_timeout")
    assert end.traces[0].reward is None
    error = end.traces[0].errors[-1]
    assert (error.type, error.module, error.line, error.function) == ("Timeout", "hanging_reward/__init__.py", 9, "points")


async def test_a_reward_that_outlives_the_deadline_names_its_line(make_release):
    async with running(await asyncio.to_thread(make_release, "hanging_reward")) as environment:
        end = await environment.play(deadline_s=20.0)
    assert (end.state, end.fault) == ("deadline", "tenant")
    (error,) = end.errors
    assert error.message == "the rollout passed its deadline during scoring"
    assert (error.module, error.line, error.function) == ("hanging_reward/__init__.py", 9, "points")


async def test_sys_exit_ends_a_rollout_and_not_the_runner(make_release):
    async with running(await asyncio.to_thread(make_release, "exiting")) as environment:
        end = await environment.play(1)
        assert (end.state, end.fault) == ("failed", "tenant")
        assert (end.errors[0].type, end.errors[0].message) == ("SystemExit", "the environment called sys.exit(3)")
        assert (await environment.play(0)).state == "ok"
        # os._exit cannot be caught: the stream breaks and the sandbox has ended.
        with pytest.raises((httpx.HTTPError, json.JSONDecodeError, IndexError)):
            await environment.play(2)
        end = await environment.handle.sandbox.wait()
        assert (end.reason, end.exit_code) == ("exit", 4)


async def test_a_reward_that_blocks_silences_the_runner_and_it_can_be_killed(make_release, monkeypatch):
    monkeypatch.setattr("trainer.sandboxing.runners._HEALTH_S", 0.5)
    async with running(await asyncio.to_thread(make_release, "blocking")) as environment:
        playing = asyncio.create_task(environment.play())
        await until(lambda: environment.engine.requests)
        with pytest.raises(RunnerLost):
            for _ in range(20):
                await environment.handle.check()
        end = await environment.handle.sandbox.kill("it is silent")
        assert (end.reason, end.detail) == ("killed", "it is silent")
        with pytest.raises((httpx.HTTPError, json.JSONDecodeError, IndexError)):
            await playing


async def until(condition) -> None:
    """Wait for what another task is about to do."""
    async with asyncio.timeout(60):
        while not condition():
            await asyncio.sleep(0.01)


async def test_secrets_are_environment_variables_of_tenant_code_and_nowhere_else(make_release):
    value = "sk-judge-0123456789"
    release = await asyncio.to_thread(make_release, "secret_reader")
    async with running(release, secrets={"JUDGE_KEY": value}) as environment:
        trace = (await environment.play()).traces[0]
        left = [path.name for path in environment.folder.iterdir()]
        arguments = arguments_of_all_processes()
    assert trace.reward == 1.0
    assert trace.metrics["digest_head"] == int(hashlib.sha256(value.encode()).hexdigest()[:4], 16)
    assert trace.metrics["child_sees_it"] == 1.0
    assert "config.json" not in left
    assert not [line for line in arguments if value.encode() in line]


async def test_without_secrets_tenant_code_sees_none(make_release):
    async with running(await asyncio.to_thread(make_release, "secret_reader")) as environment:
        assert (await environment.play()).traces[0].reward == 0.0


def group_of(*replies: str, task: int = 0, names: tuple[str, ...] = ("longest",)) -> dict:
    """A request to compare rollouts that said these things."""
    members = [
        {
            "rollout_id": f"r{number}",
            "reward": 1.0,
            "completion_tokens": len(reply),
            "traces": [{"agent": "agent", "messages": [{"role": "assistant", "content": reply}]}],
        }
        for number, reply in enumerate(replies)
    ]
    return {"task": task, "names": names, "members": members}


async def test_group_rewards_see_the_whole_group_and_errors_name_their_line(make_release):
    async with running(await asyncio.to_thread(make_release, "group_scores")) as environment:
        post = environment.handle.http.post
        assert (await environment.handle.check()).group_rewards == ["forgetful", "longest"]
        both = await post("/groups/score", json=group_of("a", "abc", names=("longest", "forgetful")))
        raised = await post("/groups/score", json=group_of("a", "abc", task=1))
        short = await post("/groups/score", json=group_of("a", "b", "c", names=("forgetful",)))
        unknown = await post("/groups/score", json=group_of("a", names=("shortest",)))
        after = await environment.play()
    assert both.json() == {"scores": {"longest": [0.0, 1.0], "forgetful": [0.5, 0.5]}}
    assert (raised.status_code, raised.json()["code"]) == (422, "group_reward_failed")
    error = raised.json()["error"]
    assert (error["module"], error["line"], error["function"]) == ("group_scores/__init__.py", 17, "group_reward_longest")
    assert "gave 2 numbers for 3 rollouts" in short.json()["message"]
    assert (unknown.status_code, unknown.json()["code"]) == (404, "no_such_group_reward")
    assert after.state == "ok"


async def test_an_inspection_names_split_task_and_field_of_what_is_unfit(make_release):
    async with running(await asyncio.to_thread(make_release, "uneven_tasks")) as environment:
        seen = Inspection.model_validate_json((await environment.handle.http.post("/inspection", json={})).content)
    splits = [(split.name, split.tasks_count, split.checked) for split in seen.splits]
    assert splits == [("train", 20, [0, 2, 5, 8, 10, 13, 16, 19]), ("eval", 7, [0, 1, 2, 3, 4, 5, 6])]
    told = {(problem.split, problem.task, problem.field): problem.message for problem in seen.problems}
    assert sorted(told) == [
        ("eval", 1, "prompt"),
        ("eval", 2, "prompt"),
        ("eval", 3, "image"),
        ("eval", 4, "validate"),
        ("eval", 5, "validate"),
        ("eval", 6, "key"),
    ]
    assert "reading 0" in told["eval", 2, "prompt"] and "reading 1" in told["eval", 2, "prompt"]
    assert "no such answer (uneven_tasks/__init__.py:25)" in told["eval", 5, "validate"]
    assert "task 0" in told["eval", 6, "key"]


async def test_an_inspection_says_what_an_environment_needs(make_release):
    async with running(await asyncio.to_thread(make_release, "calculator")) as environment:
        seen = Inspection.model_validate_json((await environment.handle.http.post("/inspection", json={})).content)
    assert seen.problems == [] and not seen.needs.container and not seen.needs.network
    assert seen.needs.tools == ["calc_add"]
    fits = {fit.harness: fit for fit in seen.needs.harnesses}
    assert fits["rootstock-chat"].evaluate and fits["codex"].reason == "needs a container"
    assert fits["null"].reason == "fetches packages when it starts"
