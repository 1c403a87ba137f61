import asyncio

import verifiers.v1 as vf

__all__ = ["HangingTaskset"]


class HangingTask(vf.Task):
    @vf.reward
    async def points(self) -> float:
        await asyncio.Event().wait()
        return 1.0


class HangingTaskset(vf.Taskset[HangingTask]):
    def load(self):
        for _ in range(100):
            yield HangingTask(vf.TaskData(prompt="1+1?"), self.config.task)
