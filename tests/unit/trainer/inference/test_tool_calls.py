"""Calls are taken out of the text; what is no call stays in it; streamed and whole agree."""

import pytest

from trainer.inference.tool_calls import ToolCallStream, split_tool_calls

CALL = '<tool_call>{"name":"add","arguments":{"a":3,"b":4}}</tool_call>'


def parts(calls):
    return [(call.name, call.arguments) for call in calls]


@pytest.mark.parametrize(
    ("text", "content", "calls"),
    [
        (CALL, "", [("add", '{"a": 3, "b": 4}')]),
        (f"I add. {CALL}", "I add.", [("add", '{"a": 3, "b": 4}')]),
        (f"{CALL}\n{CALL}", "", [("add", '{"a": 3, "b": 4}')] * 2),
        ('<tool_call>{"name":"now"}</tool_call>', "", [("now", "{}")]),
        ('<tool_call>{"name":"raw","arguments":"x"}</tool_call>', "", [("raw", "x")]),
        ("no call ", "no call ", []),
        ("<tool_call>{broken</tool_call>", "<tool_call>{broken</tool_call>", []),
        ('<tool_call>{"name":"cut"', '<tool_call>{"name":"cut"', []),
        ('<tool_call>["name"]</tool_call>', '<tool_call>["name"]</tool_call>', []),
        ("a < b and <tool", "a < b and <tool", []),
    ],
)
def test_split(text, content, calls):
    found_content, found_calls = split_tool_calls(text)
    assert (found_content, parts(found_calls)) == (content, calls)
    for chunk in (1, 3, len(text)):
        stream = ToolCallStream()
        shown = "".join(stream.feed(text[start : start + chunk]) for start in range(0, len(text), chunk))
        rest, streamed = stream.finish()
        assert (shown + rest).strip() == content.strip()
        assert parts(streamed) == calls


def test_text_before_a_call_is_shown_at_once():
    stream = ToolCallStream()
    assert stream.feed("hello <tool") == "hello "
    assert stream.feed("box") == "<toolbox"


def test_ids_differ():
    _, calls = split_tool_calls(CALL + CALL)
    assert len({call.id for call in calls}) == 2
