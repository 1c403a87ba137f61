import verifiers.v1 as vf

__all__ = ["RaisingTaskset"]


class RaisingTask(vf.Task):
    @vf.reward
    async def points(self, task: vf.TaskData) -> float:
        return look_up(task.idx)


class RaisingTaskset(vf.Taskset[RaisingTask]):
    def load(self):
        for _ in range(100):
            yield RaisingTask(vf.TaskData(prompt="1+1?"), self.config.task)


def look_up(index: int) -> float:
    return {0: 1.0}[index % 2]
