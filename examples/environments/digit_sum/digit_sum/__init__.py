"""Add two digits: prompt `x+y?`, reward 1 when a finished reply ends with the sum."""

import random
from collections.abc import Iterator

import verifiers.v1 as vf

__all__ = ["DigitSumTaskset"]


class DigitSumData(vf.TaskData):
    x: int
    y: int


class DigitSumTask(vf.Task[DigitSumData]):
    @vf.reward
    async def is_sum(self, task: DigitSumData, trace: vf.Trace) -> float:
        if trace.is_truncated:
            return 0.0
        return float(last_word(trace.last_reply) == str(task.x + task.y))

    @vf.metric
    async def is_number(self, trace: vf.Trace) -> float:
        return float(last_word(trace.last_reply).isdigit())


class DigitSumConfig(vf.TasksetConfig):
    num_tasks: int = 10_000
    seed: int = 0


class DigitSumTaskset(vf.Taskset[DigitSumTask, DigitSumConfig]):
    """Digits from 1 to 9, drawn lazily in an order that the seed fixes. Zero is left out: x+0 equals the larger digit, and
    then this environment and `digit-max` would pay for the same reply."""

    def load(self) -> Iterator[DigitSumTask]:
        draw = random.Random(self.config.seed)
        for _ in range(self.config.num_tasks):
            x, y = draw.randint(1, 9), draw.randint(1, 9)
            yield DigitSumTask(DigitSumData(prompt=f"{x}+{y}?", x=x, y=y), self.config.task)


def last_word(reply: str) -> str:
    return reply.rsplit(" ", 1)[-1]
