"""The steps of the tool environment's format reward."""

import json

import pytest

from tests.factories.example_modules import plain_module

calls = plain_module("arithmetic_tools", "calls")
GOOD = '{"a": 3, "b": 4}'


@pytest.mark.parametrize(
    ("text", "made", "score"),
    [
        ("", [("add", GOOD)], 1.0),
        ("Sure.", [("add", GOOD)], 0.75),
        ("", [("add", GOOD), ("sub", GOOD)], 0.75),
        ("", [("multiply", GOOD)], 0.75),
        ("", [("add", '{"a": 3}')], 0.75),
        ("", [("add", '{"a": 3, "b": "4"}')], 0.75),
        ("", [("add", '{"a": true, "b": 4}')], 0.75),
        ("", [("add", "three and four")], 0.75),
        ("<tool_call>add 3 4</tool_call>", [], 0.5),
        ('<tool_call>{"name": "add"', [], 0.25),
        ("</tool_call><tool_call>", [], 0.25),
        ("The sum is 7.", [], 0.0),
        ("", [], 0.0),
    ],
)
def test_a_call_is_scored_by_how_much_of_its_form_is_right(text, made, score):
    assert calls.call_score(text, made) == score


@pytest.mark.parametrize(("reply", "word"), [("7", "7"), ("The sum is 7.", "7"), ("7 \n", "7"), ("", ""), ("  ", "")])
def test_the_answer_is_the_last_word(reply, word):
    assert calls.last_word(reply) == word


def test_a_worked_example_has_full_marks():
    text = calls.call_text("add", 3, 4)
    assert text == '<tool_call>{"name": "add", "arguments": {"a": 3, "b": 4}}</tool_call>'
    call = json.loads(text.removeprefix(calls.OPEN).removesuffix(calls.CLOSE))
    assert calls.call_score("", [(call["name"], json.dumps(call["arguments"]))]) == 1.0
