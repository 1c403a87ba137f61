"""Add two numbers with a tool: call it, read its answer, say it."""

import random
from collections.abc import Iterator

import verifiers.v1 as vf

from arithmetic_tools.calls import call_score, call_text, last_word

__all__ = ["ArithmeticToolsTaskset"]


class Calculator(vf.Toolset):
    """Four tools over MCP. One server is shared by all rollouts, since it keeps nothing. The library offers tools in the order of
    their methods' names: add, sub, max, min."""

    TOOL_PREFIX = None

    @vf.tool
    async def add(self, a: int, b: int) -> str:
        """The sum of a and b."""
        return str(a + b)

    @vf.tool(name="sub")
    async def difference(self, a: int, b: int) -> str:
        """The difference between a and b."""
        return str(abs(a - b))

    @vf.tool(name="max")
    async def larger(self, a: int, b: int) -> str:
        """The larger of a and b."""
        return str(max(a, b))

    @vf.tool(name="min")
    async def smaller(self, a: int, b: int) -> str:
        """The smaller of a and b."""
        return str(min(a, b))


class SumData(vf.TaskData):
    x: int
    y: int


class SumTask(vf.Task[SumData]):
    @vf.reward
    async def right_answer(self, task: SumData, trace: vf.Trace) -> float:
        """1 where a tool was used and the last word of the last reply is the sum."""
        return float(bool(trace.tool_messages) and last_word(trace.last_reply) == str(task.x + task.y))

    @vf.reward(weight=0.5)
    async def well_formed_call(self, trace: vf.Trace) -> float:
        """How well formed the first reply is as a call of one tool."""
        said = trace.assistant_messages
        if not said:
            return 0.0
        return call_score(said[0].content or "", [(call.name, call.arguments) for call in said[0].tool_calls or []])

    @vf.metric
    async def tool_calls(self, trace: vf.Trace) -> float:
        """Calls that a tool answered."""
        return float(len(trace.tool_messages))


class ArithmeticToolsConfig(vf.TasksetConfig):
    num_tasks: int = 10_000
    seed: int = 0
    largest: int = 9
    question: str = "{x}+{y}?"
    examples: int = 0


class ArithmeticToolsTaskset(vf.Taskset[SumTask, ArithmeticToolsConfig]):
    """Numbers from 1 to `largest`, drawn lazily in an order that the seed fixes."""

    @classmethod
    def toolsets(cls, config: ArithmeticToolsConfig) -> list[vf.Toolset]:
        return [Calculator(vf.SharedToolsetConfig())]

    def load(self) -> Iterator[SumTask]:
        draw, config = random.Random(self.config.seed), self.config
        opening = worked_examples(config)
        for _ in range(config.num_tasks):
            x, y = draw.randint(1, config.largest), draw.randint(1, config.largest)
            data = SumData(prompt=[*opening, vf.UserMessage(content=worded(config.question, x, y))], x=x, y=y)
            yield SumTask(data, config.task)


def worked_examples(config: ArithmeticToolsConfig) -> list[vf.UserMessage | vf.AssistantMessage]:
    """Questions with the call that answers them, in front of every task: a model that was not taught to call tools copies the
    form now and then, which is what learning begins with."""
    draw = random.Random(config.seed + 1)
    opening: list[vf.UserMessage | vf.AssistantMessage] = []
    for _ in range(config.examples):
        x, y = draw.randint(1, config.largest), draw.randint(1, config.largest)
        opening.append(vf.UserMessage(content=worded(config.question, x, y)))
        opening.append(vf.AssistantMessage(content=call_text("add", x, y)))
    return opening


def worded(question: str, x: int, y: int) -> str:
    return question.replace("{x}", str(x)).replace("{y}", str(y))
