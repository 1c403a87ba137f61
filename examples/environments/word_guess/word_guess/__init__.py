"""Find a five-letter word in a few turns: a game of several turns with the environment as the other player."""

import asyncio
import random
from collections.abc import Iterator

import verifiers.v1 as vf

from word_guess.game import WORDS, answer_to, guess_of, is_known, likeness, marks, opening

__all__ = ["WordGuessEnv", "WordGuessTaskset"]


class WordGuessData(vf.TaskData):
    secret: str
    turns: int
    turn_s: float
    brief: bool


class WordGuessTask(vf.Task[WordGuessData]):
    @vf.reward
    async def solved(self, task: WordGuessData, trace: vf.Trace) -> float:
        return float(task.secret in guesses(trace))

    @vf.reward(weight=0.5)
    async def quick(self, task: WordGuessData, trace: vf.Trace) -> float:
        """1 for the first turn, less for each later one, 0 where the word was not found."""
        found = guesses(trace)
        return 1.0 - found.index(task.secret) / task.turns if task.secret in found else 0.0

    @vf.reward(weight=0.5)
    async def well_formed(self, trace: vf.Trace) -> float:
        """Mean over the turns of how far the reply spells a word of the list."""
        said = replies(trace)
        return sum(map(likeness, said)) / len(said) if said else 0.0

    @vf.metric
    async def greens(self, task: WordGuessData, trace: vf.Trace) -> float:
        """Letters in their place in the best guess."""
        return float(max((marks(guess, task.secret).count("G") for guess in guesses(trace) if guess), default=0))

    @vf.metric
    async def known_words(self, trace: vf.Trace) -> float:
        """Share of the turns that guessed a word of the list."""
        said = guesses(trace)
        return sum(guess is not None and is_known(guess) for guess in said) / max(len(said), 1)


class WordGuessConfig(vf.TasksetConfig):
    num_tasks: int = 10_000
    seed: int = 0
    turns: int = 6
    turn_s: float = 60.0
    brief: bool = False


class WordGuessTaskset(vf.Taskset[WordGuessTask, WordGuessConfig]):
    """Secrets drawn lazily from the list in an order that the seed fixes."""

    def load(self) -> Iterator[WordGuessTask]:
        draw, config = random.Random(self.config.seed), self.config
        for _ in range(config.num_tasks):
            data = WordGuessData(
                prompt=opening(config.turns, brief=config.brief),
                secret=draw.choice(WORDS),
                turns=config.turns,
                turn_s=config.turn_s,
                brief=config.brief,
            )
            yield WordGuessTask(data, config.task)


class WordGuessEnvConfig(vf.EnvConfig):
    agent: vf.AgentConfig = vf.AgentConfig()


class WordGuessEnv(vf.Env[WordGuessEnvConfig]):
    """Plays the other side: marks each guess until the word is found or the turns are used up."""

    async def run(self, task: WordGuessTask, agents: vf.Agents) -> None:
        data = task.data
        async with agents.agent.interaction(task) as game:
            said: str | None = None
            for turn in range(1, data.turns + 1):
                # A turn that takes longer fails this rollout: it is masked, and no score of 0.
                async with asyncio.timeout(data.turn_s):
                    answer = await game.turn(said)
                if answer.terminated or guess_of(answer.last_reply) == data.secret:
                    return
                said = answer_to(answer.last_reply, data.secret, data.turns - turn, brief=data.brief)


def replies(trace: vf.Trace) -> list[str]:
    return [message.content or "" for message in trace.assistant_messages]


def guesses(trace: vf.Trace) -> list[str | None]:
    """One entry a turn; None where the reply was no guess."""
    return [guess_of(reply) for reply in replies(trace)]
