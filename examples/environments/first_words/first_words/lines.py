"""From a book to its short lines, and from two lists of words to how alike they are. Knows text alone."""

import re

SHORTEST, LONGEST = 5, 9
HEADING = re.compile(r"^[=:*].*$", re.MULTILINE)
QUOTE = re.compile(r"(?<![A-Za-z])['‘’]|['‘’](?![A-Za-z])|[_\"“”]")
CLAUSE_END = re.compile(r"[.;:!?()\[\]—]|--")
WORD = re.compile(r"[A-Za-z]+(?:[-'’][A-Za-z]+)*")


def lines_of(book: str) -> list[str]:
    """Clauses of five to nine words of which none is said twice, in the order of the book, each once."""
    found: dict[str, None] = {}
    for paragraph in re.split(r"\n\s*\n", HEADING.sub("\n\n", book)):
        for clause in CLAUSE_END.split(QUOTE.sub("", " ".join(paragraph.split()))):
            words = words_of(clause)
            if SHORTEST <= len(words) <= LONGEST and len(set(words)) == len(words):
                found.setdefault(clause.strip(" ,"), None)
    return list(found)


def words_of(text: str) -> list[str]:
    return [word.lower() for word in WORD.findall(text)]


def overlap(said: list[str], wanted: list[str]) -> float:
    """Twice the length of the longest common subsequence over the length of both: 1.0 for the same words in the same order, 0.0
    where none is shared. Too many words cost as much as too few."""
    if not said or not wanted:
        return 0.0
    best = [0] * (len(wanted) + 1)
    for word in said:
        above = best[:]
        for index, want in enumerate(wanted, 1):
            best[index] = above[index - 1] + 1 if word == want else max(above[index], best[index - 1])
    return 2 * best[-1] / (len(said) + len(wanted))
