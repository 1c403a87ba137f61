"""The environment that `load_environment` returns: its rows, its limits, and rollouts of one row each.

Knows the library's environments, groups of them included. Refuses to know HTTP and how a rollout is scored.
"""

import asyncio
import importlib
import signal
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import verifiers as vf
from verifiers.envs import environment as library

from trainer.contracts.release_checks import Inspection, InspectionRequest
from trainer.contracts.rollouts import GroupScoreRequest, RolloutRequest, RunnerConfig, RunnerLimits, TaskEntry
from trainer.runner.faults import clean
from trainer.runner.limits import KEY_CHARS, PREVIEW_CHARS
from trainer.runner.loading import LoadedEnvironment
from trainer.runner.older.clients import Endpoint
from trainer.runner.older.groups import members, routed
from trainer.runner.older.inspection import inspect
from trainer.runner.older.messages import text_of
from trainer.runner.older.plays import RowPlay
from trainer.runner.older.refusals import refusal, refusal_of
from trainer.runner.older.rewards import guard
from trainer.runner.rollouts import NoSuchTask


class EnvironmentRefused(Exception):
    """The runner cannot play what the package returned; the text says what and why."""


class OlderEnvironment(LoadedEnvironment):
    def __init__(self, config: RunnerConfig) -> None:
        super().__init__(config)
        self._env: Any = None
        self._rows: Any = None
        self._splits: dict[str, Any] = {}
        self._endpoint: Endpoint | None = None

    def _construct(self) -> None:
        env = self._made()
        if not isinstance(env, vf.Environment):
            raise EnvironmentRefused(f"load_environment returned {type(env).__name__}, not a verifiers.Environment")
        env.env_id = env.env_id or self.config.environment
        if reason := refusal(env):
            raise EnvironmentRefused(reason)
        for member in members(env):
            guard(member.rubric)
            _bound(member, self.config.limits)
        self._env = env
        self._choose_rows()
        self._endpoint = Endpoint(self.config)

    def _made(self) -> Any:
        with _no_signal_handlers():
            module = importlib.import_module(self.config.environment)
            try:
                return module.load_environment(**self.config.args)
            except Exception as error:
                if reason := refusal_of(error):
                    raise EnvironmentRefused(reason) from error
                raise

    def _choose_rows(self) -> None:
        """A package with one dataset is evaluated and trained on that one."""
        found = {"train": self._env.build_dataset(), "eval": self._env.build_eval_dataset()}
        order = ("eval", "train") if self.config.held_out else ("train", "eval")
        self._splits = {name: found[name] for name in order if found[name] is not None}
        self._rows = next(iter(self._splits.values()))
        self.tasks_count = len(self._rows)
        if not self.tasks_count:
            raise ValueError("its dataset has no rows")

    async def page(self, start: int, limit: int) -> tuple[list[TaskEntry], int | None]:
        """(entries, cursor of the next page or None at the end)."""
        entries = await asyncio.to_thread(self._entries, start, limit)
        return entries, start + limit if len(entries) == limit else None

    def _entries(self, start: int, limit: int) -> list[TaskEntry]:
        return [_entry(index, self._rows[index]) for index in range(start, min(start + limit, len(self._rows)))]

    async def open(self, request: RolloutRequest) -> RowPlay:
        """Raises NoSuchTask."""
        if not 0 <= request.task < len(self._rows):
            raise NoSuchTask(f"no task {request.task}: the dataset has {len(self._rows)} rows")
        assert self._endpoint is not None, "asked before ready"
        env, row = routed(self._env, self._rows[request.task])
        return RowPlay(env, row, request, self.config.limits, self._endpoint.client(request))

    async def inspect(self, asked: InspectionRequest) -> Inspection:
        """For a release check."""
        return await asyncio.to_thread(inspect, self._env, self._splits, asked)

    async def score_group(self, request: GroupScoreRequest) -> dict[str, list[float]]:
        """Packages that have group rewards are refused: nobody gets here."""
        return {}


def _bound(env: Any, limits: RunnerLimits) -> None:
    """An environment may ask for less than the run allows; -1 is the library's word for no limit."""
    if isinstance(env, vf.MultiTurnEnv):
        env.max_turns = min(env.max_turns, limits.max_turns) if env.max_turns > 0 else limits.max_turns
        own = env.max_total_completion_tokens
        env.set_max_total_completion_tokens(min(own, limits.max_total_tokens) if own > 0 else limits.max_total_tokens)


@contextmanager
def _no_signal_handlers() -> Iterator[None]:
    """Each environment of this library takes over the process's signals, and fails to outside of the main thread."""
    library.signal = SimpleNamespace(**{**vars(signal), "signal": lambda number, handler: None})
    try:
        yield
    finally:
        library.signal = signal


def _entry(index: int, row: Mapping[str, Any]) -> TaskEntry:
    prompt = row.get("prompt")
    text = prompt if isinstance(prompt, str) else " ".join(text_of(message) for message in prompt or [])
    return TaskEntry(index=index, key=clean(str(row.get("example_id", index)), KEY_CHARS), preview=clean(text, PREVIEW_CHARS))
