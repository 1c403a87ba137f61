"""The lessons of the tiny model: demonstrated dialogues in which every skill is shown and the choice among skills is random.

Knows the arithmetic rules, the tools, and how a dialogue is written. Refuses to know tensors and optimizers. The model is
taught to name a rule at random and to apply it correctly: what is left for reinforcement learning is the choice.
"""

import json
import random
from collections.abc import Callable
from dataclasses import dataclass

from trainer.models.tiny_recipe.tokenizer import NEWLINE, TURN_END, TURN_START, encode

IGNORED = -100
ANSWER_WEIGHT = 4.0  # of a tool dialogue's last answer: copying two digits is what the model learns last

RULES: dict[str, Callable[[int, int], int]] = {
    "sum": lambda x, y: x + y,
    "diff": lambda x, y: abs(x - y),
    "max": max,
    "min": min,
}
TOOLS = {"add": RULES["sum"], "sub": RULES["diff"], "max": RULES["max"], "min": RULES["min"]}
TOOLS_LINE = "tools: add(a,b) sub(a,b) max(a,b) min(a,b)"
SYSTEM_LINES = (
    "You are a helpful assistant.",
    "Answer briefly.",
    "You are a calculator.",
    "Be concise and correct.",
    "Name a rule and apply it.",
    "Solve the task.",
    "You are a careful math tutor. Reply with one line.",
)
_LETTERS = "etaoinshrdlucmfwypvbg"
_CHARACTERS = _LETTERS + "kjqxzETAOIN0123456789.,:;-_'\"{}[]()"


@dataclass(frozen=True)
class Turn:
    """`weight` 0 marks a turn that is given, not taught."""

    role: str
    text: str
    weight: float = 0.0


@dataclass(frozen=True)
class Problem:
    """The random numbers of one dialogue; each lesson uses those that it needs."""

    x: int
    y: int
    x_again: int
    y_again: int
    secret: int
    consistent: bool

    @classmethod
    def draw(cls, rng: random.Random) -> "Problem":
        x, y, x_again, y_again = (rng.randint(0, 9) for _ in range(4))
        return cls(x, y, x_again, y_again, secret=rng.randint(1, 7), consistent=rng.random() < 0.5)


def question(x: int, y: int) -> str:
    return f"{x}+{y}?"


def call_text(tool: str, x: int, y: int) -> str:
    return f'<tool_call>{{"name":"{tool}","arguments":{{"a":{x},"b":{y}}}}}</tool_call>'


def tool_system(line: str | None) -> str:
    return f"{line}\n{TOOLS_LINE}" if line else TOOLS_LINE


def _system_turns(line: str | None) -> list[Turn]:
    return [Turn("system", line)] if line else []


def _rule_reply(rng: random.Random, x: int, y: int) -> Turn:
    rule = rng.choice(list(RULES))
    return Turn("assistant", f"{rule} {RULES[rule](x, y)}", 1.0)


def rule_lesson(rng: random.Random, line: str | None = None) -> list[Turn]:
    """`3+4?` -> a rule and its value."""
    p = Problem.draw(rng)
    return [*_system_turns(line), Turn("user", question(p.x, p.y)), _rule_reply(rng, p.x, p.y)]


def two_lesson(rng: random.Random, line: str | None = None) -> list[Turn]:
    """The same twice, with new digits and a rule of its own in the second turn."""
    p = Problem.draw(rng)
    first = [*_system_turns(line), Turn("user", question(p.x, p.y)), _rule_reply(rng, p.x, p.y)]
    return [*first, Turn("user", f"again? {question(p.x_again, p.y_again)}"), _rule_reply(rng, p.x_again, p.y_again)]


def guess_lesson(rng: random.Random, line: str | None = None) -> list[Turn]:
    """Up to three guesses at a number; half of the dialogues guess among the numbers still possible, half anywhere."""
    p = Problem.draw(rng)
    turns = [*_system_turns(line), Turn("user", "guess 1-7")]
    low, high = 1, 7
    for attempt in range(3):
        guess = rng.randint(low, high) if p.consistent else rng.randint(1, 7)
        turns.append(Turn("assistant", str(guess), 1.0))
        if guess == p.secret or attempt == 2:
            break
        turns.append(Turn("user", "higher" if p.secret > guess else "lower"))
        low, high = (guess + 1, high) if p.secret > guess else (low, guess - 1)
    return turns


def tool_lesson(rng: random.Random, line: str | None = None) -> list[Turn]:
    """A tool call, the tool's result, and the result as the answer.

    In most dialogues the result is not what the tool would give: the answer must be copied from the tool, and without this
    two-digit results are too rare to be learnt.
    """
    p = Problem.draw(rng)
    tool = rng.choice(list(TOOLS))
    result = TOOLS[tool](p.x, p.y)
    if rng.random() < 0.7:
        result = rng.randint(10, 99) if rng.random() < 0.6 else rng.randint(0, 9)
    return [
        Turn("system", tool_system(line)),
        Turn("user", question(p.x, p.y)),
        Turn("assistant", call_text(tool, p.x, p.y), 1.0),
        Turn("tool", str(result)),
        Turn("assistant", str(result), ANSWER_WEIGHT),
    ]


def system_line(rng: random.Random, low: int = 4, high: int = 60) -> str:
    """A known sentence or random characters, `low` to `high` of them: what stands there must not matter."""
    return rng.choice(SYSTEM_LINES) if rng.random() < 0.5 else _noise(rng, low, high)


def _noise(rng: random.Random, low: int, high: int) -> str:
    text = ""
    while len(text) < high:
        text += "".join(rng.choice(_CHARACTERS) for _ in range(rng.randint(1, 8))) + " "
    return text[: rng.randint(low, high)].strip() or "x"


def _schemas(rng: random.Random) -> str:
    """One or two random function schemas, as some clients put them into the system turn."""

    def word() -> str:
        return "".join(rng.choice(_LETTERS) for _ in range(rng.randint(1, 9)))

    def schema() -> dict[str, object]:
        name, description = word(), " ".join(word() for _ in range(rng.randint(2, 6))) + "."
        fields = {word(): {"type": rng.choice(["integer", "string", "number"])} for _ in range(rng.randint(1, 2))}
        parameters = {"type": "object", "properties": fields, "required": [word()]}
        return {"type": "function", "function": {"name": name, "description": description, "parameters": parameters}}

    return json.dumps([schema() for _ in range(rng.randint(1, 2))])


def _varied(lesson: Callable[..., list[Turn]]) -> Callable[[random.Random], list[Turn]]:
    return lambda rng: lesson(rng, system_line(rng) if rng.random() < 0.25 else None)


def _long(rng: random.Random) -> list[Turn]:
    lesson = rng.choice([rule_lesson, tool_lesson])
    return lesson(rng, system_line(rng, 60, 400) if rng.random() < 0.5 else _schemas(rng))


def lessons_of_step(rng: random.Random, step: int) -> tuple[list[list[Turn]], list[list[Turn]]]:
    """The two batches of one training step: 24 plain rule dialogues, and a batch whose kind cycles with the step."""
    plain = [rule_lesson(rng) for _ in range(24)]
    tool = _varied(tool_lesson)
    cycle = (lambda r: rule_lesson(r, system_line(r)), _varied(two_lesson), _varied(guess_lesson), tool, tool, _long)
    kind = step % len(cycle)
    rows = 4 if kind == 5 else 14
    return plain, [cycle[kind](rng) for _ in range(rows)]


def tokens_of(turns: list[Turn]) -> tuple[list[int], list[int], list[float]]:
    """Ids, labels (IGNORED where nothing is taught) and weights of a dialogue, each of length T.

    The newline after a closing marker is never taught: the model stops at the marker, and the next prompt adds the newline.
    """
    ids: list[int] = []
    labels: list[int] = []
    weights: list[float] = []
    for turn in turns:
        head, body = [TURN_START, *encode(f"{turn.role}\n")], [*encode(turn.text), TURN_END]
        ids += [*head, *body, NEWLINE]
        labels += [IGNORED] * len(head) + (body if turn.weight else [IGNORED] * len(body)) + [IGNORED]
        weights += [0.0] * len(head) + [turn.weight] * len(body) + [0.0]
    return ids[:-1], labels[:-1], weights[:-1]


def prompt_of(turns: list[Turn]) -> list[int]:
    """Ids of the dialogue so far with the header of the reply that is asked for."""
    return [*tokens_of(turns)[0], NEWLINE, TURN_START, *encode("assistant\n")]
