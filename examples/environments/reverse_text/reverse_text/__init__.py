"""Say a text backwards."""

import random
from collections.abc import Iterator

import verifiers.v1 as vf

from reverse_text.likeness import likeness

__all__ = ["ReverseTextTaskset"]


class ReverseTextData(vf.TaskData):
    text: str


class ReverseTextTask(vf.Task[ReverseTextData]):
    @vf.reward
    async def backwards(self, task: ReverseTextData, trace: vf.Trace) -> float:
        """How much of the text stands in the reply in its new order; a reply that was cut off earns nothing."""
        return 0.0 if trace.is_truncated else likeness(trace.last_reply.strip(), task.text[::-1])

    @vf.metric
    async def exact(self, task: ReverseTextData, trace: vf.Trace) -> float:
        return float(trace.last_reply.strip() == task.text[::-1])


class ReverseTextConfig(vf.TasksetConfig):
    num_tasks: int = 10_000
    seed: int = 0
    alphabet: str = "abcdefghijklmnopqrstuvwxyz"
    length: int = 5
    question: str = "{text} backwards?"


class ReverseTextTaskset(vf.Taskset[ReverseTextTask, ReverseTextConfig]):
    """Texts drawn lazily in an order that the seed fixes."""

    def load(self) -> Iterator[ReverseTextTask]:
        draw, config = random.Random(self.config.seed), self.config
        for _ in range(config.num_tasks):
            text = "".join(draw.choice(config.alphabet) for _ in range(config.length))
            data = ReverseTextData(prompt=config.question.replace("{text}", text), text=text)
            yield ReverseTextTask(data, config.task)
