"""What an environment needs of the place where it is played, read from its classes and tasks: a container, destinations in the
network, tools over MCP, skills, and which harnesses of the library fit.

Knows the library's flags. Refuses to play anything. A sandbox gives neither a container nor a network.
"""

import pkgutil
from collections.abc import Iterator

import verifiers.v1 as vf
from verifiers.v1 import harnesses
from verifiers.v1.utils.decorators import discover_decorated
from verifiers.v1.utils.loaders import harness_class

from trainer.contracts.release_checks import LIST_MAX, HarnessFit, Needs
from trainer.runner.environment import Environment
from trainer.runner.faults import clean
from trainer.runner.seats import harness_id

_NAME_CHARS = 128


def unmet_needs(task: vf.Task) -> Iterator[tuple[str, str]]:
    """(field, message) for each thing that a task asks for and no sandbox has."""
    data = task.data
    if data.image is not None:
        yield "image", f"asks for the container image {data.image!r}: a sandbox has no container"
    elif type(task).NEEDS_CONTAINER:
        yield "NEEDS_CONTAINER", f"{type(task).__name__} needs a container: a sandbox has none"
    if _names_destinations(data):
        yield "network_allow", "restricts the network by destination: a sandbox has no network at all"


def _names_destinations(data: vf.TaskData) -> bool:
    return "*" not in data.network_allow or bool(data.network_block)


def needs_of(environment: Environment) -> Needs:
    """Of a ready environment; its first task stands for the others, which are all of one class."""
    task = environment.first_task
    tools = _tools(environment.env.taskset, task)
    skills = [clean(str(skill), _NAME_CHARS) for skill in task.data.skills]
    return Needs(
        container=type(task).NEEDS_CONTAINER or task.data.image is not None,
        network=_names_destinations(task.data),
        tools=tools[:LIST_MAX],
        skills=skills[:LIST_MAX],
        harnesses=[*_fits(environment, bool(tools), bool(skills))],
    )


def _tools(taskset: vf.Taskset, task: vf.Task) -> list[str]:
    """Names as the model sees them."""
    toolsets = [*type(taskset).toolsets(taskset.config), *type(task).toolsets(task.config)]
    return sorted(_seen_name(toolset, tool) for toolset in toolsets for tool in discover_decorated(toolset, "tool"))


def _seen_name(toolset: vf.Toolset, tool: object) -> str:
    name = getattr(tool, "tool_name", None) or getattr(tool, "__name__", "")
    return clean(f"{toolset.server_name}_{name}" if toolset.server_name else name, _NAME_CHARS)


def _fits(environment: Environment, has_tools: bool, has_skills: bool) -> Iterator[HarnessFit]:
    """The harness that plays it, and each of the library's own with what stands in its way."""
    playing = harness_id(environment.config.environment)
    yield HarnessFit(harness=clean(playing, _NAME_CHARS), evaluate=True, train=True)
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
