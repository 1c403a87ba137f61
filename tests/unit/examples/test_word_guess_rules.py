"""The word game's rules: marks, forms of a guess, and what the player is told."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.factories.example_modules import plain_module

game = plain_module("word_guess", "game")
WORD = st.text("abcde", min_size=5, max_size=5)


@pytest.mark.parametrize(
    ("guess", "secret", "marks"),
    [
        ("crane", "crane", "GGGGG"),
        ("slate", "stale", "GYGYG"),
        ("mound", "crisp", "-----"),
        # A letter is marked as often as the secret has it, places first.
        ("eerie", "abide", "---YG"),
        ("llama", "hello", "YY---"),
        ("allay", "hello", "-YG--"),
        ("speed", "abide", "--Y-Y"),
        ("geese", "eerie", "-GY-G"),
    ],
)
def test_letters_are_marked_in_place_elsewhere_or_not_at_all(guess, secret, marks):
    assert game.marks(guess, secret) == marks


@given(WORD, WORD)
def test_only_the_word_itself_is_all_green_and_no_letter_is_marked_more_often_than_it_occurs(guess, secret):
    marks = game.marks(guess, secret)
    assert (marks == "GGGGG") == (guess == secret)
    for letter in set(guess):
        marked = sum(mark != "-" for mark, mine in zip(marks, guess, strict=True) if mine == letter)
        assert marked == min(guess.count(letter), secret.count(letter))


@pytest.mark.parametrize(
    ("reply", "guess"),
    [
        ("crane", "crane"),
        (" Crane\n", "crane"),
        ("cranes", None),
        ("cr4ne", None),
        ("crane!", None),
        ("I say crane", None),
        ("écran", None),
        ("", None),
    ],
)
def test_a_guess_is_one_word_of_five_letters(reply, guess):
    assert game.guess_of(reply) == guess


@given(st.text(max_size=40) | st.sampled_from(game.WORDS))
def test_a_word_of_the_list_has_full_likeness_and_nothing_else_has(reply):
    score = game.likeness(reply)
    assert 0.0 <= score <= 1.0
    assert (score == 1.0) == (reply.strip().lower() in game.WORDS)


def test_what_spells_more_of_a_word_is_likelier():
    order = ["", "7", "dif 4", "max 12", "max 7", "crane!", "crane"]
    scores = [game.likeness(reply) for reply in order]
    assert scores == sorted(scores)
    assert scores == pytest.approx([0, 0, 0.36, 0.45, 0.54, 0.75, 1.0])


@pytest.mark.parametrize(
    ("reply", "told"),
    [
        ("slate", "slate --G-G 4 left."),
        ("zzzzz", "zzzzz is not in the list. 4 left."),
        ("what?", "Not a word of 5 letters. 4 left."),
    ],
)
def test_the_player_is_told_marks_or_what_was_wrong(reply, told):
    assert game.answer_to(reply, "crane", 4) == told


def test_the_list_is_words_of_five_letters_each_once():
    assert len(game.WORDS) == len(set(game.WORDS)) > 3000
    assert all(game.guess_of(word) == word and game.is_known(word) for word in game.WORDS)


@pytest.mark.parametrize(("reply", "told"), [("slate", "slate --G-G again? 5 letters?"), ("what?", "no word, 5 letters?")])
def test_the_brief_wording_leaves_the_rules_out(reply, told):
    assert game.answer_to(reply, "crane", 4, brief=True) == told
