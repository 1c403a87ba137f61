"""A harness that asks a scout on the side, and then goes on in two ways behind one plan."""

from collections.abc import Iterator

import aiohttp
import verifiers.v1 as vf
from verifiers.v1.clients import ModelContext
from verifiers.v1.runtimes import ProgramResult, Runtime

__all__ = ["ScoutHarness", "ScoutsTaskset"]


class ScoutTask(vf.Task[vf.TaskData]):
    @vf.reward
    async def branches(self, trace: vf.Trace) -> float:
        return float(trace.num_branches)


class ScoutsTaskset(vf.Taskset[ScoutTask, vf.TasksetConfig]):
    def load(self) -> Iterator[ScoutTask]:
        for number in range(64):
            yield ScoutTask(vf.TaskData(prompt=f"Plan {number}."), self.config.task)


class ScoutHarness(vf.Harness[vf.HarnessConfig]):
    EXECUTES_CODE = False
    NEEDS_CONTAINER = False

    async def launch(
        self,
        ctx: ModelContext,
        trace: vf.Trace,
        runtime: Runtime,
        endpoint: str,
        secret: str,
        mcp_urls: dict[str, str],
        data: vf.TaskData,
        tool_interception_url: str | None = None,
    ) -> ProgramResult:
        headers = {"Authorization": f"Bearer {secret}"}
        async with aiohttp.ClientSession(headers=headers) as http:

            async def ask(*messages: dict) -> dict:
                body = {"model": ctx.model, "messages": list(messages)}
                async with http.post(f"{endpoint}/chat/completions", json=body) as reply:
                    reply.raise_for_status()
                    message = (await reply.json(content_type=None))["choices"][0]["message"]
                return {name: value for name, value in message.items() if value is not None}

            opening = {"role": "user", "content": data.prompt}
            plan = await ask(opening)
            found = await ask({"role": "user", "content": "Scout ahead."})
            await ask(opening, plan, {"role": "user", "content": f"Found: {found.get('content', '')}"})
            last = await ask(opening, plan, {"role": "user", "content": "Go at once."})
        return ProgramResult(exit_code=0, stdout=last.get("content", ""), stderr="")

    async def cleanup(self, trace: vf.Trace, runtime: Runtime) -> None:
        """Nothing outlives `launch`."""
