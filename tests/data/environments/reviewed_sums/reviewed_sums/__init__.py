"""A solver and its reviewer, both with a calculator; the solver alone learns."""

from collections.abc import Iterator

import verifiers.v1 as vf

__all__ = ["ReviewedSumsEnv", "ReviewedSumsTaskset"]


class Calculator(vf.Toolset):
    TOOL_PREFIX = None

    @vf.tool
    async def add(self, a: int, b: int) -> str:
        """The sum of a and b."""
        return f"={a + b}"


class SumTask(vf.Task[vf.TaskData]):
    @vf.reward
    async def used_a_tool(self, trace: vf.Trace) -> float:
        return float(len(trace.tool_messages))


class ReviewedSumsTaskset(vf.Taskset[SumTask, vf.TasksetConfig]):
    @classmethod
    def toolsets(cls, config: vf.TasksetConfig) -> list[vf.Toolset]:
        return [Calculator(vf.SharedToolsetConfig())]

    def load(self) -> Iterator[SumTask]:
        for number in range(64):
            yield SumTask(vf.TaskData(prompt=f"1+{number}?"), self.config.task)


class ReviewedSumsEnvConfig(vf.EnvConfig):
    solver: vf.AgentConfig = vf.AgentConfig()
    reviewer: vf.AgentConfig = vf.AgentConfig()


class ReviewedSumsEnv(vf.Env[ReviewedSumsEnvConfig]):
    async def setup(self, agents: vf.Agents) -> None:
        agents.reviewer.trainable = False

    async def run(self, task: SumTask, agents: vf.Agents) -> None:
        seat = SumTask(task.data.model_copy(update={"prompt": None}), task.config)
        async with agents.solver.interaction(seat) as solver, agents.reviewer.interaction(seat) as reviewer:
            answer = await solver.turn(f"solve {task.data.prompt}")
            review = await reviewer.turn(f"review {answer.last_reply}")
            await solver.turn(f"remark {review.last_reply}")
