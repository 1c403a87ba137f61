"""What an environment needs of the place where it is played, read from its classes and tasks: a container, destinations in the
network, tools over MCP, skills, and which harnesses of the library fit.

Knows the library's flags. Refuses to play anything. A sandbox gives neither a container nor a network.
"""

import pkgutil
from collections.abc import Iterator
from typing import Protocol

import verifiers.v1 as vf
from verifiers.v1 import harnesses
from verifiers.v1.utils.decorators import discover_decorated
from verifiers.v1.utils.loaders import harness_class

from trainer.contracts.release_checks import LIST_MAX, HarnessFit, Needs
from trainer.contracts.rollouts import RunnerConfig
from trainer.runner.faults import clean
from trainer.runner.seats import harness_id

_NAME_CHARS = 128
_URL_CHARS = 200


class ReadyEnvironment(Protocol):
    """What a check reads of an environment that has loaded."""

    config: RunnerConfig

    @property
    def env(self) -> vf.Env: ...

    @property
    def first_task(self) -> vf.Task: ...

    @property
    def asks_by_prompt(self) -> bool:
        """Whether a rollout begins with the task's prompt."""


def unmet_needs(environment: ReadyEnvironment, taskset: vf.Taskset, task: vf.Task) -> Iterator[tuple[str, str]]:
    """(field, message) for each thing that a task asks for and no sandbox has."""
    data = task.data
    if data.image is not None:
        yield "image", f"asks for the container image {data.image!r}: a sandbox has no container"
    elif type(task).NEEDS_CONTAINER:
        yield "NEEDS_CONTAINER", f"{type(task).__name__} needs a container: a sandbox has none"
    if _playing(environment).NEEDS_CONTAINER:
        yield "harness", "the package's own harness needs a container: a sandbox has none"
    if _names_destinations(data):
        yield "network_allow", "restricts the network by destination: a sandbox has no network at all"
    for url in _remote_tools(taskset, task):
        yield "toolsets", f"has tools that are served at {url}: a sandbox has no network"


def _names_destinations(data: vf.TaskData) -> bool:
    return "*" not in data.network_allow or bool(data.network_block)


def _playing(environment: ReadyEnvironment) -> type[vf.Harness]:
    return harness_class(harness_id(environment.config.environment))


def _toolsets(taskset: vf.Taskset, task: vf.Task) -> list[vf.Toolset]:
    return [*type(taskset).toolsets(taskset.config), *type(task).toolsets(task.config)]


def _remote_tools(taskset: vf.Taskset, task: vf.Task) -> list[str]:
    """Addresses of tool servers that somebody else runs."""
    urls = [getattr(toolset.config, "url", None) for toolset in _toolsets(taskset, task)]
    return [clean(url, _URL_CHARS) for url in urls if isinstance(url, str)]


def needs_of(environment: ReadyEnvironment) -> Needs:
    """The first task stands for the others, which are all of one class."""
    task = environment.first_task
    taskset = environment.env.taskset
    tools = _tools(taskset, task)
    skills = [clean(str(skill), _NAME_CHARS) for skill in task.data.skills]
    return Needs(
        container=type(task).NEEDS_CONTAINER or task.data.image is not None or _playing(environment).NEEDS_CONTAINER,
        network=_names_destinations(task.data) or bool(_remote_tools(taskset, task)),
        tools=tools[:LIST_MAX],
        skills=skills[:LIST_MAX],
        harnesses=[*_fits(environment, bool(tools), bool(skills))],
    )


def _tools(taskset: vf.Taskset, task: vf.Task) -> list[str]:
    """Names as the model sees them."""
    toolsets = _toolsets(taskset, task)
    return sorted(_seen_name(toolset, tool) for toolset in toolsets for tool in discover_decorated(toolset, "tool"))


def _seen_name(toolset: vf.Toolset, tool: object) -> str:
    name = getattr(tool, "tool_name", None) or getattr(tool, "__name__", "")
    return clean(f"{toolset.server_name}_{name}" if toolset.server_name else name, _NAME_CHARS)


def _fits(environment: ReadyEnvironment, has_tools: bool, has_skills: bool) -> Iterator[HarnessFit]:
    """The harness that plays it, and each of the library's own with what stands in its way."""
    name, can_play = harness_id(environment.config.environment), not _playing(environment).NEEDS_CONTAINER
    reason = "" if can_play else _obstacle(_playing(environment), has_tools, has_skills)
    yield HarnessFit(harness=clean(name, _NAME_CHARS), evaluate=can_play, train=can_play, reason=reason)
    for module in pkgutil.iter_modules(harnesses.__path__):
        try:
            harness = harness_class(module.name)
        except (AttributeError, TypeError, ImportError):
            continue  # a folder of helpers
        reason = _obstacle(harness, has_tools, has_skills)
        yield HarnessFit(harness=module.name, evaluate=False, train=False, reason=reason)


def _obstacle(harness: type[vf.Harness], has_tools: bool, has_skills: bool) -> str:
    if harness.NEEDS_CONTAINER:
        return "needs a container"
    if has_tools and not harness.SUPPORTS_MCP:
        return "calls no tools over MCP"
    if has_skills and not harness.SUPPORTS_SKILLS:
        return "takes no skills"
    return "fetches packages when it starts"
