"""Find where something is defined, with grep and read as tools."""

import random
from collections.abc import Iterator

import verifiers.v1 as vf

from code_search.files import definitions, grep, names_file, read

__all__ = ["CodeSearchTaskset"]


class Library(vf.Toolset):
    """Two tools over MCP. They change nothing, so that one server is shared by all rollouts."""

    TOOL_PREFIX = None

    @vf.tool(name="grep")
    async def lines(self, pattern: str) -> str:
        """Lines of the library that hold the pattern, as file:line: text."""
        return grep(pattern)

    @vf.tool(name="read")
    async def whole(self, file: str) -> str:
        """One file of the library."""
        return read(file)


class DefinitionData(vf.TaskData):
    file: str


class DefinitionTask(vf.Task[DefinitionData]):
    @vf.reward
    async def right_file(self, task: DefinitionData, trace: vf.Trace) -> float:
        """The last reply names the file, and no other."""
        return float(names_file(trace.last_reply, task.file))

    @vf.reward(weight=0.2)
    async def looked(self, trace: vf.Trace) -> float:
        """A tool was asked before the answer: a guess may be right, and teaches nothing."""
        return float(bool(trace.tool_messages))

    @vf.metric
    async def looks(self, trace: vf.Trace) -> float:
        return float(len(trace.tool_messages))


class CodeSearchConfig(vf.TasksetConfig):
    seed: int = 0


class CodeSearchTaskset(vf.Taskset[DefinitionTask, CodeSearchConfig]):
    @classmethod
    def toolsets(cls, config: CodeSearchConfig) -> list[vf.Toolset]:
        return [Library(vf.SharedToolsetConfig())]

    def load(self) -> Iterator[DefinitionTask]:
        asked = definitions()
        random.Random(self.config.seed).shuffle(asked)
        for name, file in asked:
            data = DefinitionData(prompt=f"In which file is {name} defined? Reply with the file's name.", file=file)
            yield DefinitionTask(data, self.config.task)
