"""What the handbook's search finds, and how a judge's answer is read."""

import pytest

from tests.factories.example_modules import plain_module

handbook, verdict = plain_module("handbook_search", "handbook"), plain_module("handbook_search", "verdict")


def test_each_question_finds_the_entry_that_answers_it():
    for question, answer, entry in handbook.QUESTIONS:
        assert handbook.search(question)[0] == entry
        assert verdict.says(handbook.read(entry.upper()), answer), (entry, answer)


def test_what_is_not_there_is_said():
    assert handbook.search("zeppelin") == [] and "Search first" in handbook.read("zeppelin")
    assert len(handbook.search("the and for are")) <= handbook.FOUND_MAX


@pytest.mark.parametrize(
    ("said", "yes"), [("Yes.", True), ("yes, it is", True), ("No, yes", False), ("", False), ("yesterday", False)]
)
def test_the_first_word_is_the_verdict(said, yes):
    assert verdict.is_yes(said) is yes


@pytest.mark.parametrize(
    ("reply", "answer", "right"),
    [
        ("Locker 7.", "7", True),
        ("locker 17", "7", False),
        ("On Friday at 16:00!", "Friday at 16:00", True),
        ("at Friday 16:00", "Friday at 16:00", False),
    ],
)
def test_an_answer_counts_word_by_word(reply, answer, right):
    assert verdict.says(reply, answer) is right
