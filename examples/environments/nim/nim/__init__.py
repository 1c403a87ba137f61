"""Nim: two agents, each with a reward of its own, play one game."""

from collections.abc import Iterator
from contextlib import AsyncExitStack

import verifiers.v1 as vf

from nim.rules import OPENING, left, move_of, played

__all__ = ["NimEnv", "NimTaskset"]


class NimData(vf.TaskData):
    pile: int


class NimTask(vf.Task[NimData]):
    @vf.reward(weight=0.5)
    async def well_formed(self, trace: vf.Trace) -> float:
        said = replies(trace)
        return sum(move_of(reply) is not None for reply in said) / len(said) if said else 0.0


class NimConfig(vf.TasksetConfig):
    num_tasks: int = 10_000
    pile_min: int = 5
    pile_max: int = 12


class NimTaskset(vf.Taskset[NimTask, NimConfig]):
    def load(self) -> Iterator[NimTask]:
        config = self.config
        for number in range(config.num_tasks):
            pile = config.pile_min + number % (config.pile_max - config.pile_min + 1)
            yield NimTask(NimData(prompt=OPENING + left(pile), pile=pile), config.task)


class NimEnvConfig(vf.EnvConfig):
    first: vf.AgentConfig = vf.AgentConfig()
    second: vf.AgentConfig = vf.AgentConfig()


class NimEnv(vf.Env[NimEnvConfig]):
    """Relays the moves. A player that is never asked has no trace: it has said nothing to learn from."""

    async def run(self, task: NimTask, agents: vf.Agents) -> None:
        pile, text = task.data.pile, OPENING + left(task.data.pile)
        # Without a prompt each player's conversation begins with what it is told first.
        seat = NimTask(task.data.model_copy(update={"prompt": None}), task.config)
        async with AsyncExitStack() as stack:
            first = await stack.enter_async_context(agents.first.interaction(seat))
            players = [first]
            while pile:
                answer = await players[0].turn(text)
                taken = None if answer.terminated else move_of(answer.last_reply)
                if taken is None or taken > pile:
                    return
                pile -= taken
                text = left(pile)
                if len(players) == 1 and pile:
                    players.append(await stack.enter_async_context(agents.second.interaction(seat)))
                    text = OPENING + text
                players.reverse()

    async def finalize(self, task: NimTask, episode: vf.Episode) -> None:
        traces = {trace.agent.name: trace for trace in episode.traces}
        said = [replies(traces[name]) if name in traces else [] for name in ("first", "second")]
        first_won, moves = played(task.data.pile, *said)
        for name, trace in traces.items():
            trace.record_reward("won", float(first_won == (name == "first")))
            trace.record_metric("moves", float(moves))


def replies(trace: vf.Trace) -> list[str]:
    return [message.content or "" for message in trace.assistant_messages]
