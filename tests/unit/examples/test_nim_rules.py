"""Who wins a game of Nim, from what both players said."""

import pytest

from tests.factories.example_modules import plain_module

rules = plain_module("nim", "rules")


@pytest.mark.parametrize(
    ("pile", "first", "second", "first_won", "moves"),
    [
        (5, ["1", "2"], ["2"], True, 3),
        (4, ["1"], ["3"], False, 2),
        (5, ["four"], [], False, 0),
        (5, ["3"], ["3"], True, 1),  # only two were left
        (5, ["3", "1"], ["1"], True, 3),
        (9, ["1", "0"], ["1"], False, 2),
        (9, ["1"], [], True, 1),  # who does not answer when asked loses
        (9, [], [], False, 0),
    ],
)
def test_who_takes_the_last_stone_wins_and_who_errs_loses(pile, first, second, first_won, moves):
    assert rules.played(pile, first, second) == (first_won, moves)


@pytest.mark.parametrize(("reply", "move"), [("1", 1), (" 3\n", 3), ("4", None), ("", None), ("1 stone", None), ("²", None)])
def test_a_move_is_a_number_from_one_to_three_alone(reply, move):
    assert rules.move_of(reply) == move
