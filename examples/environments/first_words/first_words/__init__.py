"""Quote the first three words of a line of *Alice's Adventures in Wonderland*, and stop. The reward is the share of that."""

from collections.abc import Iterator
from importlib.resources import files

import verifiers.v1 as vf

from first_words.lines import lines_of, overlap, words_of

__all__ = ["FirstWordsTaskset"]

WANTED = 3
INSTRUCTION = "Quote the first three words of the line."


class FirstWordsData(vf.TaskData):
    answer: list[str]


class FirstWordsTask(vf.Task[FirstWordsData]):
    @vf.reward
    async def likeness(self, task: FirstWordsData, trace: vf.Trace) -> float:
        return overlap(words_of(trace.last_reply), task.answer)

    @vf.metric
    async def exact(self, task: FirstWordsData, trace: vf.Trace) -> float:
        return float(not trace.is_truncated and words_of(trace.last_reply) == task.answer)


class FirstWordsConfig(vf.TasksetConfig):
    num_tasks: int = -1


class FirstWordsTaskset(vf.Taskset[FirstWordsTask, FirstWordsConfig]):
    """The lines in the order of the book; a run shuffles them by its own seed. `num_tasks` -1 takes all."""

    def load(self) -> Iterator[FirstWordsTask]:
        book = files("first_words").joinpath("alice.txt").read_text(encoding="utf-8")
        lines = lines_of(book)
        for line in lines if self.config.num_tasks < 0 else lines[: self.config.num_tasks]:
            data = FirstWordsData(prompt=line, system_prompt=INSTRUCTION, answer=words_of(line)[:WANTED])
            yield FirstWordsTask(data, self.config.task)
