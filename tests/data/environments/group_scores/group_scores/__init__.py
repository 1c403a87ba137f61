import verifiers.v1 as vf

__all__ = ["ComparedTaskset"]


class ComparedData(vf.TaskData):
    raises: bool = False


class ComparedTask(vf.Task[ComparedData]):
    @vf.reward
    async def said_something(self, trace: vf.Trace) -> float:
        return float(bool(trace.last_reply))

    async def group_reward_longest(self, task: ComparedData, group: list) -> list[float]:
        if task.raises:
            raise LookupError("nobody to compare with")
        longest = max(len(member.reply) for member in group)
        return [float(len(member.reply) == longest) for member in group]

    async def group_reward_forgetful(self, group: list) -> list[float]:
        return [0.5] * (len(group) - 1 if len(group) == 3 else len(group))


class ComparedTaskset(vf.Taskset[ComparedTask]):
    def load(self):
        for number in range(100):
            yield ComparedTask(ComparedData(prompt="1+1?", raises=number == 1), self.config.task)
