"""The lines of the book and the score of a reply, as the first-words environment computes them. No verifiers needed."""

import pytest

from tests.factories.example_modules import plain_module
from tests.fixtures.places import REPOSITORY

PACKAGE = REPOSITORY / "examples" / "environments" / "first_words" / "first_words"
lines = plain_module("first_words", "lines")
BOOK = (PACKAGE / "alice.txt").read_text()
WANTED = ["the", "white", "rabbit"]


@pytest.mark.parametrize(
    ("reply", "score"),
    [
        ("The White Rabbit", 1.0),
        ("the white rabbit.", 1.0),
        ("The White Rabbit ran", 6 / 7),
        ("white rabbit", 4 / 5),
        ("rabbit white the", 2 / 6),
        ("The White Rabbit ran close by her", 6 / 10),
        ("Here it is", 0.0),
        ("", 0.0),
        ("the the the the the the the", 2 / 10),
    ],
)
def test_a_reply_scores_its_share_of_the_wanted_words_in_order(reply, score):
    assert lines.overlap(lines.words_of(reply), WANTED) == pytest.approx(score)


def test_only_the_wanted_words_alone_score_one():
    for said in (WANTED[:2], [*WANTED, "ran"], ["so", *WANTED], WANTED[::-1]):
        assert lines.overlap(said, WANTED) < 1.0


def test_lines_are_short_clauses_of_the_book_without_quotes_or_repeated_words():
    said = "'Oh dear! I shall be _very_ late,' said the Rabbit; it was so, so late."
    text = f"{said}\n\n== CHAPTER I. Down the hole of it\n\nI don't know, said he"
    assert lines.lines_of(text) == ["I shall be very late, said the Rabbit", "I don't know, said he"]


def test_the_book_gives_hundreds_of_different_lines():
    found = lines.lines_of(BOOK)
    assert len(found) == len(set(found)) > 600
    assert all(lines.SHORTEST <= len(lines.words_of(line)) <= lines.LONGEST for line in found)
    assert not any(mark in line for line in found for mark in '_="()[]')


def test_the_books_data_is_small_and_says_where_it_is_from():
    assert (PACKAGE / "alice.txt").stat().st_size < 500_000
    readme = " ".join((PACKAGE.parent / "README.md").read_text().split())
    assert "Lewis Carroll" in readme and "public domain" in readme
