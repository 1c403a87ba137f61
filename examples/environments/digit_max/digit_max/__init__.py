"""Compare two digits: prompt `x+y?`, reward 1 when a finished reply ends with the larger."""

import random
from collections.abc import Iterator

import verifiers.v1 as vf

__all__ = ["DigitMaxTaskset"]


class DigitMaxData(vf.TaskData):
    x: int
    y: int


class DigitMaxTask(vf.Task[DigitMaxData]):
    @vf.reward
    async def is_max(self, task: DigitMaxData, trace: vf.Trace) -> float:
        if trace.is_truncated:
            return 0.0
        return float(last_word(trace.last_reply) == str(max(task.x, task.y)))

    @vf.metric
    async def is_number(self, trace: vf.Trace) -> float:
        return float(last_word(trace.last_reply).isdigit())


class DigitMaxConfig(vf.TasksetConfig):
    num_tasks: int = 10_000
    seed: int = 0


class DigitMaxTaskset(vf.Taskset[DigitMaxTask, DigitMaxConfig]):
    """Digits from 1 to 9, drawn lazily in an order that the seed fixes. Zero is left out: x+0 equals the larger digit, and
    then this environment and `digit-sum` would pay for the same reply."""

    def load(self) -> Iterator[DigitMaxTask]:
        draw = random.Random(self.config.seed)
        for _ in range(self.config.num_tasks):
            x, y = draw.randint(1, 9), draw.randint(1, 9)
            yield DigitMaxTask(DigitMaxData(prompt=f"{x}+{y}?", x=x, y=y), self.config.task)


def last_word(reply: str) -> str:
    return reply.rsplit(" ", 1)[-1]
