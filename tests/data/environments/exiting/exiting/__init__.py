import os
import sys

import verifiers.v1 as vf

__all__ = ["ExitingTaskset"]


class ExitingTask(vf.Task):
    @vf.reward
    async def points(self, task: vf.TaskData) -> float:
        if task.idx == 1:
            sys.exit(3)
        if task.idx == 2:
            os._exit(4)
        return 1.0


class ExitingTaskset(vf.Taskset[ExitingTask]):
    def load(self):
        for _ in range(100):
            yield ExitingTask(vf.TaskData(prompt="1+1?"), self.config.task)
