"""Tell a caller when a shop closes: a dialogue with a user whom a model of its own plays."""

import random
from collections.abc import Iterator

import verifiers.v1 as vf
from verifiers.v1.envs.user_sim import UserSimEnv

from opening_hours.shops import CLOSED, DAYS, SHOPS, closing, desk

__all__ = ["OpeningHoursTaskset", "UserSimEnv"]

BRIEF_CHARS = 80


class OpeningHoursData(vf.TaskData):
    answer: str


class OpeningHoursTask(vf.Task[OpeningHoursData]):
    @vf.reward
    async def right_time(self, task: OpeningHoursData, trace: vf.Trace) -> float:
        """Whether the assistant said it, and none of the other times of the list instead."""
        said = " ".join(message.content or "" for message in trace.assistant_messages).lower()
        return float(task.answer in said and not any(other in said for other in others(task.answer)))

    @vf.reward(weight=0.2)
    async def brief(self, trace: vf.Trace) -> float:
        said = [message.content or "" for message in trace.assistant_messages]
        return sum(len(reply) <= BRIEF_CHARS for reply in said) / len(said) if said else 0.0


class OpeningHoursConfig(vf.TasksetConfig):
    seed: int = 0


class OpeningHoursTaskset(vf.Taskset[OpeningHoursTask, OpeningHoursConfig]):
    """The prompt is the caller's situation; the assistant gets its system prompt alone."""

    def load(self) -> Iterator[OpeningHoursTask]:
        wishes = [(shop, day) for shop in SHOPS for day in DAYS]
        random.Random(self.config.seed).shuffle(wishes)
        for shop, day in wishes:
            data = OpeningHoursData(
                prompt=f"You want to know when the {shop} closes on {day}.",
                system_prompt=desk(),
                answer=closing(shop, day),
            )
            yield OpeningHoursTask(data, self.config.task)


def others(answer: str) -> set[str]:
    return {closing(shop, day) for shop in SHOPS for day in DAYS} - {answer, CLOSED}
