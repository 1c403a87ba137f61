import itertools
from typing import Literal

import verifiers.v1 as vf

__all__ = ["UnevenTaskset"]
READINGS = itertools.count()


class UnevenConfig(vf.TasksetConfig):
    split: Literal["train", "eval"] = "train"


class UnevenData(vf.TaskData):
    answer: str = "2"


class UnevenTask(vf.Task[UnevenData]):
    @property
    def key(self) -> str:
        return self.data.name or super().key

    async def validate(self, runtime: vf.Runtime) -> bool:
        if self.data.answer == "raise":
            raise ValueError("no such answer")
        return self.data.answer == "2"

    @vf.reward
    async def right(self) -> float:
        return 0.5


class UnevenTaskset(vf.Taskset[UnevenTask, UnevenConfig]):
    def load(self):
        rows = [{"prompt": "1+1?"} for _ in range(20)] if self.config.split == "train" else list(_uneven())
        for row in rows:
            yield UnevenTask(UnevenData(**row), self.config.task)


def _uneven():
    yield {"prompt": "1+1?", "name": "same"}
    yield {"prompt": " "}
    yield {"prompt": f"reading {next(READINGS)}"}
    yield {"prompt": "1+1?", "image": "python:3.12"}
    yield {"prompt": "1+1?", "answer": "3"}
    yield {"prompt": "1+1?", "answer": "raise"}
    yield {"prompt": "1+1?", "name": "same"}
