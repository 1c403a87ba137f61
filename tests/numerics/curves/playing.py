"""Tasks of the tiny model and their rollouts, sampled by the trainer's own forward pass: what is shown is learning, not serving.

Knows digits, rules and what an environment says between two turns. Refuses to know algorithms. A quarter of the digit pairs is
never trained on; what is measured before and after is measured on those.
"""

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean

import numpy as np
import torch

from tests.factories.rollouts import make_call
from trainer.core.adapter_stack import AdapterStack
from trainer.core.layout import lay_out
from trainer.core.pool import Pool
from trainer.models.tiny_recipe.lessons import RULES, Turn, prompt_of, question
from trainer.models.tiny_recipe.tokenizer import NEWLINE, TURN_END, TURN_START, decode, encode
from trainer.orchestrator.proxy.sessions import Call

REPLY_MAX, HELD_OUT_REPEAT = 7, 4
# Digits from 1: where a digit is 0, sum and maximum agree.
PAIRS = [(x, y) for x in range(1, 10) for y in range(1, 10)]
HELD_OUT = [(x, y) for x, y in PAIRS if (x + 2 * y) % 4 == 0]
TRAINED = [pair for pair in PAIRS if pair not in HELD_OUT]

Reply = tuple[list[int], list[float]]
"""Token ids and the sampler's log-probability of each."""


@dataclass(frozen=True)
class Task:
    """What an environment asks under its system line, and the rule that it pays for."""

    name: str
    rule: str
    system: str | None = None

    def prompt(self, pair: tuple[int, int]) -> list[int]:
        given = [Turn("system", self.system)] if self.system else []
        return prompt_of([*given, Turn("user", question(*pair))])

    def reward(self, reply: Sequence[int], pair: tuple[int, int]) -> float:
        text = decode(reply[:-1]) if reply and reply[-1] == TURN_END else ""
        return float(text.split(" ")[-1] == str(RULES[self.rule](*pair)))


SUM = Task("sum", "sum")


@dataclass
class Played:
    """One rollout: `reward` is the mean over its turns."""

    task: Task
    pair: tuple[int, int]
    calls: list[Call] = field(default_factory=list)
    rewards: list[float] = field(default_factory=list)

    @property
    def reward(self) -> float:
        return fmean(self.rewards)

    def prompt(self) -> list[int]:
        """The conversation so far. After a reply the environment asks the same, the other way round."""
        if not self.calls:
            return self.task.prompt(self.pair)
        last = self.calls[-1]
        end = [] if last.token_ids[-1] == TURN_END else [TURN_END]
        asked = encode(f"user\nagain? {question(*reversed(self.pair))}")
        said = [*end, NEWLINE, TURN_START, *asked, TURN_END, NEWLINE, TURN_START, *encode("assistant\n")]
        return [*last.prompt_ids, *last.token_ids, *said]

    def hear(self, reply: Reply) -> None:
        ids, logprobs = reply
        self.calls.append(make_call(self.prompt(), ids, logprobs=tuple(logprobs)))
        self.rewards.append(self.task.reward(ids, self.pair))


def drawn(rng: random.Random, tasks: Sequence[Task], groups: int, group_size: int) -> list[Played]:
    """Rollouts that are still to be played: groups of the tasks in turn, each of one pair that may be trained on."""
    chosen = [(tasks[index % len(tasks)], rng.choice(TRAINED)) for index in range(groups)]
    return [Played(task, pair) for task, pair in chosen for _ in range(group_size)]


def held_out(tasks: Sequence[Task]) -> list[Played]:
    return [Played(task, pair) for task in tasks for pair in HELD_OUT for _ in range(HELD_OUT_REPEAT)]


def play(pool: Pool, rollouts: Mapping[str, list[Played]], generator: torch.Generator, *, turns=1, speaker: str | None = None):
    """Play the rollouts of every run; `speaker` answers for all of them, where it is given."""
    for _ in range(turns):
        prompts = {run: [rollout.prompt() for rollout in rollouts[run]] for run in rollouts}
        replies = sample_replies(pool, prompts, generator, speaker=speaker)
        for run in rollouts:
            for rollout, reply in zip(rollouts[run], replies[run], strict=True):
                rollout.hear(reply)


@torch.no_grad()
def sample_replies(
    pool: Pool, prompts: Mapping[str, list[list[int]]], generator: torch.Generator, *, speaker: str | None = None
) -> dict[str, list[Reply]]:
    """One reply per prompt at temperature 1; what is not finished is read anew for each token, all runs in one pass."""
    rows = {run: [(list(prompt), []) for prompt in prompts[run]] for run in prompts}
    for _ in range(REPLY_MAX):
        open_rows = {run: [row for row in rows[run] if row[0][-1] != TURN_END] for run in rows}
        open_rows = {run: some for run, some in open_rows.items() if some}
        if not open_rows:
            break
        table = next_token_table(pool, {run: [ids for ids, _ in some] for run, some in open_rows.items()}, speaker)
        picks = torch.multinomial(table.exp(), 1, generator=generator)
        chosen = table.gather(1, picks)[:, 0].tolist()
        flat = [row for some in open_rows.values() for row in some]
        for (ids, logprobs), token, logprob in zip(flat, picks[:, 0].tolist(), chosen, strict=True):
            ids.append(token)
            logprobs.append(logprob)
    return {run: [(ids[-len(logprobs) :], logprobs) for ids, logprobs in rows[run]] for run in rows}


def next_token_table(pool: Pool, rows: Mapping[str, list[list[int]]], speaker: str | None = None) -> torch.Tensor:
    """[rows, V]: the distribution behind each row, the runs' one after the other."""
    hidden, layout = hidden_of(pool, rows, speaker)
    return pool.model.logits(hidden[torch.tensor([places[-1] for places in layout.sample_rows])]).log_softmax(-1)


def hidden_of(pool: Pool, rows: Mapping[str, list[list[int]]], speaker: str | None = None):
    """(what the model makes of the rows, where each token of a row lies in it)."""
    names = [speaker] if speaker else list(rows)
    flat = [row for some in rows.values() for row in some]
    tokens = [sum(map(len, some)) for some in rows.values()]
    layout = lay_out([np.array(row) for row in flat], [sum(tokens)] if speaker else tokens)
    adapters = [pool.tenant(name).adapter for name in names]
    return pool.model.hidden(layout, AdapterStack(adapters, pool.model.targets, layout.group_rows)), layout
