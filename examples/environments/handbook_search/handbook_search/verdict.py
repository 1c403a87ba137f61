"""What the judge is asked, and how its answer is read. Plain functions of text."""


def brief_of(question: str, answer: str, said: str) -> str:
    return f"Question: {question}\nRight answer: {answer}\nGiven answer: {said}\nIs the given answer right? Say yes or no."


def is_yes(verdict: str) -> bool:
    """The first word decides: a judge that says more has said it first."""
    words = verdict.lower().replace(",", " ").replace(".", " ").split()
    return bool(words) and words[0] == "yes"


def says(reply: str, answer: str) -> bool:
    """The answer's words stand in the reply, in their order and side by side."""
    said, wanted = _words(reply), _words(answer)
    return any(said[start : start + len(wanted)] == wanted for start in range(len(said) - len(wanted) + 1))


def _words(text: str) -> list[str]:
    return [word for part in text.lower().split() if (word := part.strip(".,;!?\"'()"))]
