import verifiers.v1 as vf

__all__ = ["NanTaskset"]


class NanTask(vf.Task):
    @vf.reward
    async def points(self) -> float:
        return float("nan")

    @vf.reward
    async def good(self) -> float:
        return 0.5


class NanTaskset(vf.Taskset[NanTask]):
    def load(self):
        for _ in range(100):
            yield NanTask(vf.TaskData(prompt="1+1?"), self.config.task)
