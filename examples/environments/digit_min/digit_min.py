"""The smaller of two digits: prompt `x+y?`, reward 1 when a finished reply ends with it, and a quarter for any digit there."""

import random

import verifiers as vf
from datasets import Dataset


def load_environment(num_tasks: int = 2_000, num_eval_tasks: int = 100, seed: int = 0) -> vf.Environment:
    """Rows for training and other rows for evaluations; digits from 1 to 9 in an order that the seed fixes."""
    rubric = vf.Rubric(funcs=[is_smaller, ends_in_digit], weights=[1.0, 0.25])
    return vf.SingleTurnEnv(
        dataset=lambda: rows(num_tasks, seed),
        eval_dataset=lambda: rows(num_eval_tasks, seed + 1),
        rubric=rubric,
    )


def rows(count: int, seed: int) -> Dataset:
    draw = random.Random(seed)
    pairs = [(draw.randint(1, 9), draw.randint(1, 9)) for _ in range(count)]
    return Dataset.from_list([{"question": f"{x}+{y}?", "answer": str(min(x, y))} for x, y in pairs])


def is_smaller(completion: vf.Messages, answer: str, state: vf.State) -> float:
    return float(not state["is_truncated"] and last_word(completion) == answer)


def ends_in_digit(completion: vf.Messages) -> float:
    return float(last_word(completion).isdigit())


def last_word(completion: vf.Messages) -> str:
    return str(completion[-1]["content"]).rsplit(" ", 1)[-1]
