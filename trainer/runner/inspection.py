"""Tasks looked at without a model: are they there at every reading, in a form that can be asked, within limits, right by their
own check?

Knows the library's tasksets and tasks. Refuses to judge what a task asks. What is found names split, task and field.
"""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack
from itertools import islice
from typing import Any

import verifiers.v1 as vf
from verifiers.v1.runtimes import SubprocessConfig, provision_runtime
from verifiers.v1.state import state_cls
from verifiers.v1.trace import AgentInfo, TraceTask
from verifiers.v1.utils.decorators import invoke
from verifiers.v1.utils.loaders import load_taskset

from trainer.contracts.release_checks import (
    LIST_MAX,
    ROW_BYTES_MAX,
    Inspection,
    InspectionRequest,
    SplitSeen,
    TaskProblem,
    spread,
)
from trainer.contracts.rollouts import TEXT_MAX
from trainer.runner.faults import clean, from_exception
from trainer.runner.needs import ReadyEnvironment, needs_of, unmet_needs
from trainer.runner.splits import Split, splits_of

READ_MAX = 20_000
"""Tasks of a split that are read on the way to its last one."""
READ_OF_ENDLESS_MAX = 200
_KEY_CHARS = 512
_SHOWN_CHARS = 80


async def inspect(environment: ReadyEnvironment, asked: InspectionRequest) -> Inspection:
    """All splits, the configured one first."""
    splits, problems = [], []
    configured = environment.env.taskset
    for split in splits_of(configured.config):
        taskset = load_taskset(configured.config.model_copy(update=split.changes)) if split.changes else configured
        seen, found = await _inspected(split, taskset, asked.tasks_per_split, environment)
        splits.append(seen)
        problems += found
    needs = await asyncio.to_thread(needs_of, environment)
    return Inspection(splits=splits, problems=problems[:LIST_MAX], needs=needs)


async def _inspected(
    split: Split, taskset: vf.Taskset, wanted: int, environment: ReadyEnvironment
) -> tuple[SplitSeen, list[TaskProblem]]:
    name, most = clean(split.name, 128), READ_MAX if taskset.bounded else READ_OF_ENDLESS_MAX
    tasks: list[vf.Task] = []
    try:
        await asyncio.to_thread(_read_into, tasks, taskset, most + 1)
    except Exception as error:  # Taskset.load is the tenant's
        problem = _problem(name, len(tasks), "load", _words(error))
        return SplitSeen(name=name, open_setting=split.open_setting, checked=[]), [problem]
    count = len(tasks) if len(tasks) <= most else None
    picked = spread(min(len(tasks), most), wanted)
    seen = SplitSeen(name=name, open_setting=split.open_setting, tasks_count=count, checked=picked)
    if not picked:
        return seen, [_problem(name, 0, "load", "the split has no tasks")]
    problems = await asyncio.to_thread(_again, name, taskset, {index: tasks[index] for index in picked})
    keys: dict[str, int] = {}
    for index in picked:
        found = [
            *_key(tasks[index], index, keys),
            *_form(tasks[index], environment),
            *unmet_needs(environment, taskset, tasks[index]),
        ]
        if not found:
            found = [("validate", text) async for text in _own_check(tasks[index], environment.config.limits.scoring_s)]
        problems += [_problem(name, index, field, message) for field, message in found]
    return seen, problems


def _read_into(tasks: list[vf.Task], taskset: vf.Taskset, most: int) -> None:
    """What was read before a failure stays in `tasks`: their number is where it failed."""
    tasks.extend(islice(iter(taskset), most))


def _again(name: str, taskset: vf.Taskset, first: dict[int, vf.Task]) -> list[TaskProblem]:
    """Read the taskset once more: a resumed run and its judge must find the same task at the same index."""
    problems, waiting = [], dict(first)
    try:
        for index, task in enumerate(islice(iter(taskset), max(first) + 1)):
            before = waiting.pop(index, None)
            if before is not None and (changed := _changed(before.data, task.data)):
                field, message = changed
                problems.append(_problem(name, index, field, f"differs when the taskset is read again: {message}"))
    except Exception as error:
        return [_problem(name, min(waiting), "load", f"fails when the taskset is read again: {_words(error)}")]
    return problems + [_problem(name, index, "index", "is gone when the taskset is read again") for index in waiting]


def _changed(before: vf.TaskData, after: vf.TaskData) -> tuple[str, str] | None:
    """The first field that has another value, and both."""
    for field in type(before).model_fields:
        was, now = repr(getattr(before, field)), repr(getattr(after, field, None))
        if was != now:
            return field, f"{was[:_SHOWN_CHARS]} and then {now[:_SHOWN_CHARS]}"
    return None


def _key(task: vf.Task, index: int, keys: dict[str, int]) -> Iterator[tuple[str, str]]:
    try:
        key = task.key
    except Exception as error:
        yield "key", _words(error)
        return
    if not isinstance(key, str) or not key or len(key) > _KEY_CHARS:
        yield "key", f"must be a text of 1 to {_KEY_CHARS} characters"
    elif (other := keys.setdefault(key, index)) != index:
        yield "key", f"is that of task {other} too: keys must be unique"


def _form(task: vf.Task, environment: ReadyEnvironment) -> Iterator[tuple[str, str]]:
    """What every rollout needs of a row: that it can be sent, that it is not too large, and that it asks something."""
    sizes: dict[str, int] = {}
    for field in type(task.data).model_fields:
        try:
            sizes[field] = len(task.data.model_dump_json(include={field}))
        except Exception as error:
            yield field, f"cannot be written as JSON: {_words(error)}"
    if sum(sizes.values()) > ROW_BYTES_MAX:
        largest = max(sizes, key=lambda field: sizes[field])
        yield largest, f"the task's data is {sum(sizes.values())} bytes as JSON, the limit is {ROW_BYTES_MAX}"
    yield from _prompt(task.data, must_ask=environment.asks_by_prompt)


def _prompt(data: vf.TaskData, *, must_ask: bool) -> Iterator[tuple[str, str]]:
    prompt: Any = data.prompt
    if prompt is not None and not isinstance(prompt, str | list):
        yield "prompt", f"must be a text or a list of messages, not {type(prompt).__name__}"
        return
    if must_ask and not data.system_prompt and not (prompt.strip() if isinstance(prompt, str) else prompt):
        yield "prompt", "is empty: the model would be asked nothing"
    for number, message in enumerate(prompt if isinstance(prompt, list) else []):
        role = getattr(message, "role", None)
        if role is None:
            yield f"prompt.{number}", f"must be a message, not {type(message).__name__}"
        elif role in ("system", "user") and not message.content:
            yield f"prompt.{number}.content", "is empty"


async def _own_check(task: vf.Task, deadline_s: float) -> AsyncIterator[str]:
    """What `Task.validate`, where a package has one, says against the task's ground truth. No model is asked."""
    if type(task).validate is vf.Task.validate:
        return
    try:
        async with AsyncExitStack() as stack:
            await stack.enter_async_context(asyncio.timeout(deadline_s))
            runtime = await stack.enter_async_context(provision_runtime(SubprocessConfig(), env=task.runtime_env()))
            await invoke(task.setup, {"trace": _blank_trace(task), "runtime": runtime})
            if await task.validate(runtime) is False:
                yield "the task's own check says that its answer does not hold"
    except TimeoutError:
        yield f"took longer than {deadline_s:g} s"
    except Exception as error:
        yield _words(error)


def _blank_trace(task: vf.Task) -> vf.Trace:
    """As the library's own validation gives `setup`: nobody has spoken."""
    agent = AgentInfo(config=vf.AgentConfig(runtime=SubprocessConfig()), name="validate", trainable=False)
    recorded = TraceTask(type=type(task).__name__, data=task.data, key=task.key, hash=task.hash)
    return vf.Trace(task=recorded, state=state_cls(type(task))(), agent=agent)


def _words(error: BaseException) -> str:
    told = from_exception(error)
    place = f" ({told.module}:{told.line})" if told.module else ""
    return f"{told.type}: {told.message}{place}"


def _problem(split: str, task: int, field: str, message: str) -> TaskProblem:
    return TaskProblem(split=split, task=task, field=clean(field, 128), message=clean(message, TEXT_MAX))
