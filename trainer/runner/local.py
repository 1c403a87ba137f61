"""`python -m trainer.runner.local FILE`: play an environment on this machine, without a box, against an OpenAI-like API.

Knows a job, the file of its samples, and how to go on with one that is half done. Refuses to isolate: it runs code that its user
has chosen, as its user. Samples are open documents in the shape that the API takes; stdout carries progress alone, and what the
environment prints goes to stderr.
"""

import asyncio
import json
import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any, TextIO

from trainer.contracts.local_eval import INFRASTRUCTURE, LocalJob, LocalProgress
from trainer.contracts.rollouts import RolloutEnd, RolloutRequest, RunnerConfig, RunnerLimits, TaskEntry
from trainer.runner.hosting import host
from trainer.runner.rollouts import Rollouts

PAGE = 1000
Pair = tuple[int, int]


def settled(results: Path) -> set[Pair]:
    """(example, rollout) of the samples that need not be made again. A line that a crash has cut off is none."""
    found = set()
    for line in results.read_text(encoding="utf-8").splitlines() if results.exists() else ():
        try:
            sample = json.loads(line)
        except ValueError:
            continue
        if sample["state"] != INFRASTRUCTURE:
            found.add((sample["example_id"], sample["rollout_number"]))
    return found


def sample_of(entry: TaskEntry, number: int, end: RolloutEnd, duration_s: float) -> dict[str, Any]:
    """A rollout as it is pushed: the prompt is all before the model's first turn, the completion the rest."""
    learners = [trace for trace in end.traces if trace.trainable] or end.traces
    shown = learners[0] if learners else None
    messages = shown.messages if shown else []
    first = next((index for index, message in enumerate(messages) if message["role"] == "assistant"), len(messages))
    rewards = [trace.reward for trace in learners if trace.reward is not None]
    is_good = end.state == "ok" and len(rewards) == len(learners) > 0
    return {
        "example_id": entry.index,
        "rollout_number": number,
        "task": entry.key,
        "task_preview": entry.preview,
        "prompt": messages[:first],
        "completion": messages[first:],
        "state": "ok" if is_good else INFRASTRUCTURE if end.fault == "infrastructure" else "failed",
        "reward": sum(rewards) / len(rewards) if is_good else None,
        "rewards": shown.rewards if shown else {},
        "metrics": shown.metrics if shown else {},
        "error": None if is_good else _reason(end),
        "duration_s": round(duration_s, 3),
        "token_usage": {
            "input_tokens": sum(trace.input_tokens for trace in end.traces),
            "output_tokens": sum(trace.output_tokens for trace in end.traces),
        },
    }


def _reason(end: RolloutEnd) -> str:
    errors = [*end.errors, *(error for trace in end.traces for error in trace.errors)]
    return f"{errors[0].type}: {errors[0].message}" if errors else f"the rollout ended {end.state}"


class LocalEvaluation:
    def __init__(self, job: LocalJob, tell: Callable[[LocalProgress], None]) -> None:
        self._job, self._tell = job, tell
        self._environment = host(_runner_config(job))
        self._rollouts = Rollouts(self._environment)

    async def run(self) -> None:
        """Raises SystemExit with the words of an environment that does not load."""
        async with AsyncExitStack() as stack:
            await self._environment.load(stack)
            if (error := self._environment.error) is not None:
                place = f" ({error.module}:{error.line})" if error.module else ""
                raise SystemExit(f"the environment does not load: {error.type}: {error.message}{place}")
            await self._play(await self._entries())

    async def _entries(self) -> list[TaskEntry]:
        wanted, entries, cursor = self._job.num_examples, list[TaskEntry](), 0
        while wanted < 0 or len(entries) < wanted:
            page, following = await self._environment.page(cursor, PAGE if wanted < 0 else min(PAGE, wanted - len(entries)))
            entries += page
            if following is None or not page:
                break
            cursor = following
        return entries

    async def _play(self, entries: list[TaskEntry]) -> None:
        numbers, done = range(self._job.rollouts_per_example), settled(Path(self._job.results))
        pairs = [(entry, number) for entry in entries for number in numbers]
        missing = [(entry, number) for entry, number in pairs if (entry.index, number) not in done]
        self._total, self._done = len(pairs), len(pairs) - len(missing)
        self._tell(LocalProgress(done=self._done, total=self._total))
        jobs = iter(missing)
        with Path(self._job.results).open("a", encoding="utf-8") as results:
            if results.tell() and not _ends_whole(Path(self._job.results)):
                results.write("\n")
            async with asyncio.TaskGroup() as workers:
                for _ in range(min(self._job.max_concurrent, len(missing))):
                    workers.create_task(self._work(jobs, results))

    async def _work(self, jobs: Iterator[tuple[TaskEntry, int]], results: TextIO) -> None:
        for entry, number in jobs:
            started_s = time.monotonic()
            end = await self._one(entry, number)
            sample = sample_of(entry, number, end, time.monotonic() - started_s)
            results.write(json.dumps(sample) + "\n")
            results.flush()
            self._done += 1
            self._tell(LocalProgress(done=self._done, total=self._total, reward=sample["reward"]))

    async def _one(self, entry: TaskEntry, number: int) -> RolloutEnd:
        request = RolloutRequest(
            rollout_id=f"{entry.index}-{number}",
            task=entry.index,
            policy=self._job.model,
            client="eval",
            sampling=self._job.sampling,
            deadline_s=self._job.deadline_s,
        )
        async for message in self._rollouts.play(request):
            if isinstance(message, RolloutEnd):
                return message
        raise AssertionError("a rollout ends with RolloutEnd")


def _ends_whole(results: Path) -> bool:
    with results.open("rb") as file:
        file.seek(-1, os.SEEK_END)
        return file.read(1) == b"\n"


def _runner_config(job: LocalJob) -> RunnerConfig:
    limits = RunnerLimits(rollout_s=job.deadline_s)
    return RunnerConfig(
        environment=job.environment,
        interface=job.interface,
        held_out=True,
        args=job.args,
        renderer={},
        tokenizer_path="",
        limits=limits,
        base_url=job.base_url,
        api_key_var=job.api_key_var,
    )


def main() -> None:
    job = LocalJob.model_validate_json(Path(sys.argv[1]).read_bytes())
    # From here on whatever is printed is the environment's and goes to stderr.
    protocol = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)

    def tell(progress: LocalProgress) -> None:
        protocol.write(progress.model_dump_json() + "\n")
        protocol.flush()

    asyncio.run(LocalEvaluation(job, tell).run())


if __name__ == "__main__":
    main()
