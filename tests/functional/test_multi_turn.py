"""Environments of several turns and with tools in the real runner: how they are played, and that no history is tokenized again.

The engine says what a test wants, token by token; what would be trained on is made of its own record, as in a run.
"""

import asyncio
import json
import random
import shutil
from pathlib import Path

import pytest
import pytest_asyncio

from tests.factories.model_socket import CALL_CLOSES, CALL_OPENS, END_OF_TURN, FakeEngine
from tests.factories.rollouts import make_call
from tests.fixtures.runner import RunningEnvironment, running
from trainer.contracts.catalogue import BaseModelSpec, load_catalogue, model_folder
from trainer.orchestrator.rollouts.branches import Branches, merge_calls

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.timeout(300)]

SECRET, MARKS_OF_CRANE = "windy", "---Y-"
"""The first task's word: the taskset's default seed fixes it."""
ROOM = {"max_tokens": 80}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def game(make_release):
    async with running(await asyncio.to_thread(make_release, "word_guess")) as environment:
        yield environment


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def tools(make_release):
    async with running(await asyncio.to_thread(make_release, "arithmetic_tools"), max_turns=3) as environment:
        yield environment


def script(environment: RunningEnvironment, *replies: str | list[int]) -> FakeEngine:
    """From now on the engine says these, one a call, and has no past."""
    left = iter(replies)
    environment.engine.start_over(lambda prompt: next(left))
    return environment.engine


def call(tool: str, *numbers: int) -> str:
    arguments = dict(zip("ab", numbers, strict=True))
    return f"<tool_call>{json.dumps({'name': tool, 'arguments': arguments})}</tool_call>"


def branches_of(engine: FakeEngine) -> Branches:
    """What a run would train on, from the engine's own record of one rollout."""
    return merge_calls(make_call(prompt, ids) for prompt, ids in engine.spoken)


async def test_a_word_found_in_the_second_turn_is_paid(game: RunningEnvironment):
    script(game, "crane", SECRET)
    (trace,) = (await game.play(sampling=ROOM)).traces
    assert (trace.state, trace.turns) == ("ok", 2)
    assert trace.rewards == {"solved": 1.0, "quick": pytest.approx(5 / 6), "well_formed": 1.0}
    assert trace.reward == pytest.approx(1 + 0.5 * 5 / 6 + 0.5)
    assert trace.metrics == {"greens": 5.0, "known_words": 1.0}
    assert trace.messages[2] == {"role": "user", "content": f"crane {MARKS_OF_CRANE} 5 left."}


async def test_a_game_ends_after_its_turns_and_form_is_paid_alone(game: RunningEnvironment):
    engine = script(game, *["min 7"] * 6)
    (trace,) = (await game.play(sampling=ROOM)).traces
    assert (trace.turns, len(engine.requests)) == (6, 6)
    assert trace.rewards == {"solved": 0.0, "quick": 0.0, "well_formed": pytest.approx(0.54)}


async def test_a_turn_that_takes_too_long_fails_the_rollout_and_is_no_score(make_release):
    engine = FakeEngine(reply=lambda prompt: "crane")
    async with running(await asyncio.to_thread(make_release, "word_guess"), engine, turn_s=1.0) as environment:
        engine.hold.clear()
        end = await environment.play(sampling=ROOM)
    assert (end.state, end.traces[0].reward) == ("failed", None)
    assert "timed out" in end.errors[0].message
    assert end.errors[0].module == "word_guess/__init__.py"


async def test_the_platforms_limit_of_turns_ends_a_tool_loop(tools: RunningEnvironment):
    engine = script(tools, *[call("add", 1, 2)] * 5)
    (trace,) = (await tools.play(sampling=ROOM)).traces
    assert (trace.state, len(engine.requests)) == ("ok", 3)
    assert trace.rewards == {"right_answer": 0.0, "well_formed_call": 1.0}


async def test_a_called_tool_answers_and_the_right_answer_is_paid(tools: RunningEnvironment):
    engine = script(tools, call("add", 7, 7), "It is 14.")
    (trace,) = (await tools.play(sampling=ROOM)).traces
    assert (trace.reward, trace.turns, trace.metrics) == (1.5, 2, {"tool_calls": 1.0})
    assert [message["role"] for message in trace.messages] == ["user", "assistant", "tool", "assistant"]
    assert trace.messages[2] == {"role": "tool", "content": "14", "name": "add"}
    first = bytes(token for token in engine.requests[0]["token_ids"] if token < 256).decode()
    assert "tools: add(a,b) sub(a,b) max(a,b) min(a,b)" in first


@pytest.mark.parametrize(
    ("said", "told", "score"),
    [
        (call("divide", 7, 7), "error: unknown tool 'divide'", 0.75),
        ('<tool_call>{"name":"add","arguments":[7,7]}</tool_call>', "error: tool arguments must be one JSON object", 0.75),
        ('<tool_call>{"name":"add","arguments":{"a":7}}</tool_call>', "validation error", 0.75),
    ],
)
async def test_a_call_that_cannot_be_made_is_told_to_the_model(tools: RunningEnvironment, said, told, score):
    script(tools, said, "14")
    (trace,) = (await tools.play(sampling=ROOM)).traces
    assert trace.state == "ok" and told in trace.messages[2]["content"]
    assert trace.rewards["well_formed_call"] == score


@pytest.mark.parametrize(("said", "score"), [("<tool_call>add</tool_call>", 0.5), ('<tool_call>{"name":"add"', 0.25), ("14", 0)])
async def test_what_is_no_call_stays_text_and_ends_the_rollout(tools: RunningEnvironment, said, score):
    script(tools, said)
    (trace,) = (await tools.play(sampling=ROOM)).traces
    assert (trace.turns, trace.messages[-1]["content"]) == (1, said)
    assert trace.rewards == {"right_answer": 0.0, "well_formed_call": score}


def odd_reply(draw: random.Random) -> list[int]:
    """Ids that no text encodes to: bytes that are no UTF-8, special tokens inside, cut off or closed."""
    body = [draw.choice([*range(256), CALL_OPENS, CALL_CLOSES]) for _ in range(draw.randint(1, 12))]
    return body + [END_OF_TURN] * draw.randint(0, 1)


@pytest.mark.parametrize("seed", range(8))
async def test_later_prompts_begin_with_the_ids_as_they_were_sampled(game: RunningEnvironment, seed: int):
    draw = random.Random(seed)
    engine = script(game, *[odd_reply(draw) for _ in range(6)])
    end = await game.play(sampling={"max_tokens": 10})
    assert (end.state, len(engine.spoken)) == ("ok", 6), end
    for (prompt, ids), (later, _) in zip(engine.spoken, engine.spoken[1:], strict=False):
        assert later[: len(prompt) + len(ids)] == prompt + ids
    assert_only_what_was_sampled_is_trained(engine)


async def test_tool_results_and_questions_are_never_trained_on(tools: RunningEnvironment):
    # Spaces that the template would not write: a second rendering of this call has other ids.
    engine = script(tools, '<tool_call>{ "name":"add",  "arguments": {"b":7,"a":7} }</tool_call>', "14")
    await tools.play(sampling=ROOM)
    (branch,) = assert_only_what_was_sampled_is_trained(engine).branches
    untrained = bytes(token for token, mask in zip(branch.token_ids, branch.mask, strict=True) if not mask and token < 256)
    assert b"7+7?" in untrained and b"tool\n14" in untrained and b"name" not in untrained


async def test_worked_examples_are_read_and_neither_scored_nor_trained_on(make_release):
    release = await asyncio.to_thread(make_release, "arithmetic_tools")
    async with running(release, FakeEngine(reply=lambda prompt: "I do not know"), examples=1) as environment:
        (trace,) = (await environment.play(sampling=ROOM)).traces
    assert trace.rewards == {"right_answer": 0.0, "well_formed_call": 0.0}
    assert [message["role"] for message in trace.messages] == ["user", "assistant", "user", "assistant"]
    (branch,) = assert_only_what_was_sampled_is_trained(environment.engine).branches
    assert branch.token_ids.count(CALL_OPENS) == 1


def assert_only_what_was_sampled_is_trained(engine: FakeEngine) -> Branches:
    """One stream, a mask for each token, true exactly where the engine sampled."""
    merged = branches_of(engine)
    (branch,) = merged.branches
    assert merged.broken == 0
    assert len(branch.token_ids) == len(branch.mask) == len(branch.logprobs)
    sampled = [token for token, mask in zip(branch.token_ids, branch.mask, strict=True) if mask]
    assert sampled == [token for _, ids in engine.spoken for token in ids]
    return merged


THINKING = (
    "{%- for message in messages %}<|im_start|>{{ message.role }}\n"
    "{% if message.role == 'assistant' and not loop.last %}{{ message.content.split('</think>')[-1] }}"
    "{% else %}{{ message.content }}{% endif %}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
"""Drops the thinking of earlier turns, as templates of thinking models do."""


OPENED = THINKING.replace("assistant\n{% endif %}", "assistant\n<think>\n{% endif %}")
"""Case 16: the prompt of every reply begins its thought, in eight more tokens of this vocabulary."""


def thinking_model(folder: Path, renderer: dict[str, str], template: str = THINKING) -> BaseModelSpec:
    """`tiny` with the tokenizer's template replaced: the case is one of templates alone."""
    tiny = load_catalogue()["tiny"]
    shutil.copytree(model_folder(tiny.tokenizer), folder)
    path = folder / "tokenizer_config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"chat_template": template}))
    return tiny.model_copy(update={"tokenizer": str(folder), "renderer": renderer})


async def play_thinking(make_release, model: BaseModelSpec, opening: str = "<think>") -> FakeEngine:
    replies = iter([f"{opening}vowels</think>crane", f"{opening}s</think>slate"])
    engine = FakeEngine(reply=lambda prompt: next(replies))
    async with running(await asyncio.to_thread(make_release, "word_guess"), engine, model=model, turns=2) as environment:
        end = await environment.play(sampling=ROOM)
    assert (end.state, end.traces[0].turns) == ("ok", 2), end
    return engine


async def test_our_renderer_keeps_thinking_that_the_template_would_drop(make_release, tmp_path: Path):
    engine = await play_thinking(make_release, thinking_model(tmp_path / "tokenizer", load_catalogue()["tiny"].renderer))
    assert_only_what_was_sampled_is_trained(engine)


async def test_a_renderer_that_drops_thinking_makes_a_branch_which_is_counted(make_release, tmp_path: Path):
    engine = await play_thinking(make_release, thinking_model(tmp_path / "tokenizer", {"name": "default"}))
    merged = branches_of(engine)
    assert (merged.broken, len(merged.branches)) == (1, 2)
    for branch, (prompt, ids) in zip(merged.branches, engine.spoken, strict=True):
        # Each keeps the ids that its own call saw and sampled: nothing is repaired.
        assert branch.token_ids == prompt + ids
        assert branch.mask == [False] * len(prompt) + [True] * len(ids)
    assert b"vowels" not in bytes(token for token in merged.branches[1].token_ids if token < 256)


async def test_a_generation_prompt_of_many_tokens_is_read_whole_in_every_turn(make_release, tmp_path: Path):
    """Case 16: its length is measured, never assumed, and no token of it is learnt."""
    model = thinking_model(tmp_path / "tokenizer", load_catalogue()["tiny"].renderer, OPENED)
    engine = await play_thinking(make_release, model, opening="")
    opening = list(b"assistant\n<think>\n")
    assert [prompt[-len(opening) :] for prompt, _ in engine.spoken] == [opening, opening]
    (branch,) = assert_only_what_was_sampled_is_trained(engine).branches
    learnt = bytes(token for token, sampled in zip(branch.token_ids, branch.mask, strict=True) if sampled and token < 256)
    assert learnt == b"vowels</think>cranes</think>slate"
