"""The rules of Nim on strings. Knows nothing of models."""

from itertools import zip_longest

TAKE_MAX = 3
OPENING = "Take 1, 2 or 3 stones. Who takes the last one wins. "


def left(pile: int) -> str:
    return f"{pile} left."


def move_of(reply: str) -> int | None:
    """The stones that a reply takes; None where it is no number from 1 to 3."""
    text = reply.strip()
    return int(text) if text in {str(count) for count in range(1, TAKE_MAX + 1)} else None


def played(pile: int, first: list[str], second: list[str]) -> tuple[bool, int]:
    """(whether the first player won, legal moves). Who has no legal answer when asked loses."""
    moves = 0
    for number, reply in enumerate(reply for pair in zip_longest(first, second) for reply in pair):
        taken = move_of(reply or "")
        if taken is None or taken > pile:
            return bool(number % 2), moves
        pile, moves = pile - taken, moves + 1
        if not pile:
            return number % 2 == 0, moves
    return moves % 2 == 1, moves
