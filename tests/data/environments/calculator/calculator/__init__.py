import verifiers.v1 as vf

__all__ = ["CalculatorTaskset"]


class AddTool(vf.Toolset):
    TOOL_PREFIX = "calc"

    @vf.tool
    async def add(self, a: int, b: int) -> str:
        """Add two numbers."""
        return str(a + b)


class CalculatorConfig(vf.TasksetConfig):
    hint: str = ""


class SumData(vf.TaskData):
    hint: str


class SumTask(vf.Task[SumData]):
    @vf.reward
    async def used_the_tool(self, trace: vf.Trace) -> float:
        return float(bool(trace.tool_messages) and trace.last_reply == trace.tool_messages[-1].content)


class CalculatorTaskset(vf.Taskset[SumTask, CalculatorConfig]):
    @classmethod
    def toolsets(cls, config):
        return [AddTool(vf.SharedToolsetConfig())]

    def load(self):
        for _ in range(100):
            yield SumTask(SumData(prompt="3+4?", hint=self.config.hint), self.config.task)
