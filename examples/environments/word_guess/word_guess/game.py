"""The rules of the game: what counts as a guess, how its letters are marked, and what is said next. Plain functions of text.

Knows the word list. Refuses to know models and rewards.
"""

from pathlib import Path

LETTERS = 5
GREEN, YELLOW, GREY = "G", "Y", "-"

WORDS: tuple[str, ...] = tuple(Path(__file__).with_name("words.txt").read_text().split())
_KNOWN = frozenset(WORDS)
_BEGINNINGS = frozenset(word[:size] for word in WORDS for size in range(1, LETTERS + 1))


def guess_of(reply: str) -> str | None:
    """The reply as a guess, or None where it is not one word of five letters."""
    word = reply.strip().lower()
    return word if len(word) == LETTERS and word.isascii() and word.isalpha() else None


def is_known(guess: str) -> bool:
    return guess in _KNOWN


def marks(guess: str, secret: str) -> str:
    """One mark a letter: G in its place, Y elsewhere in the word, - not in it. A letter is marked as often as the word has it."""
    marked = [GREEN if mine == theirs else GREY for mine, theirs in zip(guess, secret, strict=True)]
    left = [letter for letter, mark in zip(secret, marked, strict=True) if mark == GREY]
    for place, letter in enumerate(guess):
        if marked[place] == GREY and letter in left:
            marked[place] = YELLOW
            left.remove(letter)
    return "".join(marked)


def likeness(reply: str) -> float:
    """How far a reply spells a word of the list, in [0, 1]: 1 is such a word and nothing else. Partial credit lets a model that
    never says a five-letter word begin to learn."""
    text = reply.strip().lower()
    if is_known(text):
        return 1.0
    spelled = next((size for size in range(LETTERS, 0, -1) if text[:size] in _BEGINNINGS), 0)
    return 0.9 * spelled / max(len(text), LETTERS)


def answer_to(reply: str, secret: str, turns_left: int, *, brief: bool = False) -> str:
    """What the player is told after a reply that does not end the game."""
    guess = guess_of(reply)
    if guess is None:
        return f"no word, {LETTERS} letters?" if brief else f"Not a word of {LETTERS} letters. {turns_left} left."
    told = f"{guess} {marks(guess, secret)}" if is_known(guess) else f"{guess} is not in the list."
    return f"{told} again? {LETTERS} letters?" if brief else f"{told} {turns_left} left."


def opening(turns: int, *, brief: bool = False) -> str:
    if brief:
        return f"A word of {LETTERS} letters?"
    return (
        f"Find my English word of {LETTERS} letters in {turns} turns. Reply with one word only. "
        f"I mark its letters: {GREEN} right place, {YELLOW} other place, {GREY} not in it."
    )
