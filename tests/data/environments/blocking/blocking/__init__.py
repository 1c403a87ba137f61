import time

import verifiers.v1 as vf

__all__ = ["BlockingTaskset"]


class BlockingConfig(vf.TasksetConfig):
    block_s: float = 600.0


class BlockingTask(vf.Task):
    @vf.reward
    async def points(self, task: vf.TaskData) -> float:
        time.sleep(float(task.name or 0))
        return 1.0


class BlockingTaskset(vf.Taskset[BlockingTask, BlockingConfig]):
    def load(self):
        for _ in range(100):
            yield BlockingTask(vf.TaskData(prompt="1+1?", name=str(self.config.block_s)), self.config.task)
