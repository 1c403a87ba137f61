"""Answer from a handbook that can only be searched. Another model reads the answer and says whether it is right."""

import random
from collections.abc import Iterator

import verifiers.v1 as vf

from handbook_search.handbook import QUESTIONS, read, search
from handbook_search.verdict import brief_of, is_yes, says

__all__ = ["HandbookEnv", "HandbookTaskset"]


class Shelf(vf.Toolset):
    """The handbook over MCP. It keeps nothing, so that one server is shared by all rollouts."""

    TOOL_PREFIX = None

    @vf.tool(name="search")
    async def find(self, query: str) -> str:
        """Titles of the handbook's entries that fit the query, one a line."""
        return "\n".join(search(query)) or "Nothing fits."

    @vf.tool(name="read")
    async def entry(self, title: str) -> str:
        """The text of one entry."""
        return read(title)


class HandbookData(vf.TaskData):
    question: str
    answer: str
    entry: str


class HandbookTask(vf.Task[HandbookData]):
    @vf.reward(weight=0.5)
    async def says_it(self, task: HandbookData, trace: vf.Trace) -> float:
        """The answer stands in the last reply, word by word."""
        return float(says(trace.last_reply, task.answer))

    @vf.metric
    async def read_the_entry(self, task: HandbookData, trace: vf.Trace) -> float:
        return float(any(read(task.entry) == message.content for message in trace.tool_messages))


class HandbookConfig(vf.TasksetConfig):
    seed: int = 0


class HandbookTaskset(vf.Taskset[HandbookTask, HandbookConfig]):
    @classmethod
    def toolsets(cls, config: HandbookConfig) -> list[vf.Toolset]:
        return [Shelf(vf.SharedToolsetConfig())]

    def load(self) -> Iterator[HandbookTask]:
        asked = list(QUESTIONS)
        random.Random(self.config.seed).shuffle(asked)
        for question, answer, entry in asked:
            yield HandbookTask(HandbookData(prompt=question, question=question, answer=answer, entry=entry), self.config.task)


class HandbookEnvConfig(vf.EnvConfig):
    reader: vf.AgentConfig = vf.AgentConfig()
    judge: vf.AgentConfig = vf.AgentConfig()


class HandbookEnv(vf.Env[HandbookEnvConfig]):
    """The reader answers, the judge compares its answer with the right one. The judge is never trained."""

    async def setup(self, agents: vf.Agents) -> None:
        agents.judge.trainable = False

    async def run(self, task: HandbookTask, agents: vf.Agents) -> None:
        # Without a prompt a conversation begins with what is said in it first. The judge is paid for nothing.
        asked, bench = (
            HandbookTask(task.data.model_copy(update={"prompt": None}), task.config),
            vf.Task(vf.TaskData(), task.config),
        )
        async with agents.reader.interaction(asked) as reader, agents.judge.interaction(bench) as judge:
            answer = await reader.turn(task.data.question)
            if not answer.terminated:
                await judge.turn(brief_of(task.data.question, task.data.answer, answer.last_reply))

    async def finalize(self, task: HandbookTask, episode: vf.Episode) -> None:
        traces = {trace.agent.name: trace for trace in episode.traces}
        verdict = traces["judge"].last_reply if "judge" in traces else ""
        if "reader" in traces:
            traces["reader"].record_reward("judged", float(is_yes(verdict)))
